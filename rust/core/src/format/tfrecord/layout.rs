//! The bytes of a record, and the checks in their order ("Checks" in docs/formats/tfrecord.md).

use crate::cursor::fields;
use crate::engine::writer::missing;
use crate::error::{Finding, Result};
use crate::ledger::Cause;
use crate::record::Value;
use crate::saturating::saturating_usize;
use crate::walk::input::Input;

/// The length and its checksum.
pub(super) const HEADER_BYTES: usize = 12;
pub(super) const CRC_BYTES: usize = 4;
/// What a record has beside its data.
pub(super) const FRAMING_BYTES: u64 = (HEADER_BYTES + CRC_BYTES) as u64;

/// A checksum of a file: a CRC-32C, rotated and with a constant added, so that zeros are not a record.
const fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The length of a record's data, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: u64,
    stored: u32,
}

impl Header {
    /// Parses the header that begins `bytes`, if it is complete.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        let (length, stored): (&[u8; 8], &[u8; CRC_BYTES]) = fields(bytes);
        Some(Self {
            length: u64::from_le_bytes(*length),
            stored: u32::from_le_bytes(*stored),
        })
    }

    fn computed(&self) -> u32 {
        masked(crc32c::crc32c(&self.length.to_le_bytes()))
    }

    pub(super) fn is_proven(&self) -> bool {
        self.stored == self.computed()
    }

    /// The length of the whole record in bytes. No file is as long as the greatest one.
    pub(super) const fn total(&self) -> u64 {
        self.length.saturating_add(FRAMING_BYTES)
    }
}

/// The first three checks of the record that begins `bytes`. `left` is the file's length from there on. `None` if the header is not
/// whole in `bytes`, but in the file.
#[inline(always)]
pub(super) fn header(bytes: &[u8], left: u64) -> std::result::Result<Option<Header>, Finding> {
    match Header::parse(bytes) {
        Some(header) if !header.is_proven() => Err(Finding::Number {
            cause: Cause::HeaderChecksumMismatch,
            what: "the checksum of the record's length",
            expected: header.computed().into(),
            actual: header.stored.into(),
        }),
        Some(header) if header.total() > left => Err(Finding::TooLong {
            needed: header.total(),
            available: left,
        }),
        None if bytes.len() as u64 >= left => Err(Finding::Truncated {
            needed: HEADER_BYTES as u64,
            available: left,
        }),
        header => Ok(header),
    }
}

/// What the fourth check finds wrong, of a record within the file.
pub(super) fn data(input: &mut Input, at: u64, header: &Header) -> Result<Option<Finding>> {
    let start = at + HEADER_BYTES as u64;
    let (end, mut crc) = (start + header.length, 0);
    input.pieces(start..end, |piece| crc = crc32c::crc32c_append(crc, piece))?;
    let stored = u32::from_le_bytes(input.array(end)?);
    Ok((masked(crc) != stored).then(|| Finding::Checksum {
        stored: stored.into(),
        computed: Some(masked(crc).into()),
    }))
}

/// The difference between the CRC-32C that is stored for a record's data and that of its bytes; 0 too if it is not whole.
pub(super) fn difference(record: &[u8]) -> u32 {
    let data = record.get(HEADER_BYTES..).and_then(|rest| {
        let len = saturating_usize(Header::parse(record)?.length);
        rest.split_at_checked(len)
    });
    let stored = |rest: &[u8]| rest.first_chunk().copied().map(u32::from_le_bytes);
    let unmasked = |masked: u32| masked.wrapping_sub(0xa282_ead8).rotate_left(15);
    data.and_then(|(data, rest)| Some(crc32c::crc32c(data) ^ unmasked(stored(rest)?)))
        .unwrap_or(0)
}

/// Appends a record with these values to `out`.
pub(super) fn encode(out: &mut Vec<u8>, values: &[Value<'_>]) -> Result<()> {
    let [Value::Binary(data)] = values else {
        return Err(missing("value"));
    };
    let length = (data.len() as u64).to_le_bytes();
    for bytes in [&length, *data] {
        out.extend_from_slice(bytes);
        out.extend_from_slice(&masked(crc32c::crc32c(bytes)).to_le_bytes());
    }
    Ok(())
}
