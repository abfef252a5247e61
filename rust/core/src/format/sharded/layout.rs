//! The bytes of a record: where its fields are, and how they are written. `judge` says which values are valid.

use crate::cursor::{Cursor, fields};
use crate::error::{Error, Result};

/// The fields before the body, including the checksum.
pub(super) const HEADER_BYTES: usize = HASHED_HEADER_BYTES + CHECKSUM_BYTES;
/// The fields that the checksum covers.
pub(super) const HASHED_HEADER_BYTES: usize = 4 + 8 + 2 + 8 + 1;
const CHECKSUM_BYTES: usize = 4;

/// The fields before a record's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: u32,
    /// Microseconds since 1970-01-01 UTC.
    pub(super) time: i64,
    pub(super) shard: u16,
    pub(super) sequence: u64,
    pub(super) level: u8,
    pub(super) checksum: u32,
}

impl Header {
    /// Parses the header that begins `bytes`, if it is complete.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let (length, time, shard, sequence, level, checksum) =
            fields(cursor.array::<HEADER_BYTES>()?);
        Some(Self {
            length,
            time,
            shard,
            sequence,
            level,
            checksum,
        })
    }

    /// The length of the whole record in bytes.
    pub(super) const fn total(&self) -> u64 {
        HEADER_BYTES as u64 + self.length as u64
    }
}

/// Appends one record to `out`. `header` has the values of all fields except length and checksum.
///
/// # Errors
/// [`Error::Usage`] for a body that is too long. `out` is then unchanged.
pub(super) fn encode(out: &mut Vec<u8>, header: &Header, body: &[u8]) -> Result<()> {
    let length = u32::try_from(body.len()).map_err(|_| {
        Error::Usage(format!(
            "the value has {} bytes: at most {} fit into a record",
            body.len(),
            u32::MAX
        ))
    })?;
    let start = out.len();
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&header.time.to_be_bytes());
    out.extend_from_slice(&header.shard.to_be_bytes());
    out.extend_from_slice(&header.sequence.to_be_bytes());
    out.push(header.level);
    let mut crc = crc32fast::Hasher::new();
    crc.update(out.get(start..).unwrap_or_default());
    crc.update(body);
    out.extend_from_slice(&crc.finalize().to_be_bytes());
    out.extend_from_slice(body);
    Ok(())
}
