//! What stands where: the bytes of a chunk's header, of a record and of an index item, to fields and back.

use crate::cursor::Cursor;
use crate::error::{Finding, Result};
use crate::ledger::Cause;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// flags, length, start offset, record length, head crc.
pub(super) const HEADER_BYTES: usize = 21;
/// Chunks begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 0x80;
/// The bytes that the head crc is of.
const CHECKED_BYTES: usize = HEADER_BYTES - 4;
/// What message offsets are below.
pub(super) const OFFSETS_END: u64 = 1 << 63;

/// The next multiple of [`ALIGNMENT`], `offset` itself if it is one.
pub(super) const fn align(offset: u64) -> u64 {
    offset.saturating_add(ALIGNMENT - 1) & !(ALIGNMENT - 1)
}

/// A chunk's header as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) flags: u8,
    /// The bytes of the payload.
    pub(super) length: u32,
    /// The message offset of the first record.
    pub(super) start: i64,
    /// How many records there are.
    pub(super) records: u32,
}

/// What stands where a header should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Zeros only, as far as a header reaches or the file does.
    Zeros,
    /// The file ends inside the header.
    Truncated(Finding),
    /// A header whose CRC is wrong; nothing that it says is to be relied on.
    Wrong(Header, Finding),
    /// A header whose CRC is right, but that cannot be: what is wrong, and whether the payload lies within the file.
    Refused(Header, Finding),
    /// A header whose CRC is right, of a chunk that lies within the file.
    Sound(Header),
}

impl Look {
    /// Looks at the header that should stand at `at`, where `bytes` begin, in a file of `len` bytes. `bytes` are at least as
    /// many as a header has, or reach to the end of the file.
    pub(super) fn at(at: u64, bytes: &[u8], len: u64) -> Self {
        let bytes = bytes.get(..HEADER_BYTES).unwrap_or(bytes);
        if bytes.iter().all(|byte| *byte == 0) {
            return Self::Zeros;
        }
        let Some((header, stored)) = Header::parse(bytes) else {
            return Self::Truncated(Finding::Truncated {
                needed: HEADER_BYTES as u64,
                available: bytes.len() as u64,
            });
        };
        let computed = Header::crc(bytes);
        if stored != computed {
            let finding = Finding::words(
                Cause::HeaderChecksumMismatch,
                format!("a chunk header whose CRC-32 is {stored:#010x}, as stored"),
                format!("header bytes whose CRC-32 is {computed:#010x}"),
            );
            return Self::Wrong(header, finding);
        }
        match header.refusal(at, len) {
            Some(finding) => Self::Refused(header, finding),
            None => Self::Sound(header),
        }
    }

    /// Reads and looks.
    pub(super) fn read(source: &dyn Source, at: u64) -> Result<Self> {
        let len = source.len();
        let left = saturating_usize(len.saturating_sub(at));
        let mut bytes = [0; HEADER_BYTES];
        let bytes = bytes.get_mut(..left.min(HEADER_BYTES)).unwrap_or_default();
        source.read_exact_at(at, bytes)?;
        Ok(Self::at(at, bytes, len))
    }

    /// The header, if its CRC is right.
    pub(super) const fn checked(&self) -> Option<Header> {
        match self {
            Self::Refused(header, _) | Self::Sound(header) => Some(*header),
            Self::Zeros | Self::Truncated(_) | Self::Wrong(..) => None,
        }
    }
}

impl Header {
    /// The fields and the stored CRC; `None` where there are too few bytes.
    fn parse(bytes: &[u8]) -> Option<(Self, u32)> {
        let mut cursor = Cursor::new(bytes);
        let header = Self {
            flags: cursor.u8()?,
            length: cursor.u32_be()?,
            start: cursor.i64_be()?,
            records: cursor.u32_be()?,
        };
        Some((header, cursor.u32_be()?))
    }

    /// The header in `bytes`, if its CRC is right: for looking at many places, of which hardly any has one. What is wrong with
    /// the others costs more to put into words than to find.
    pub(super) fn checked(bytes: &[u8]) -> Option<Self> {
        let (header, stored) = Self::parse(bytes)?;
        (stored == Self::crc(bytes)).then_some(header)
    }

    fn crc(bytes: &[u8]) -> u32 {
        crc32fast::hash(bytes.get(..CHECKED_BYTES).unwrap_or_default())
    }

    /// The header's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.push(self.flags);
        bytes.extend_from_slice(&self.length.to_be_bytes());
        bytes.extend_from_slice(&self.start.to_be_bytes());
        bytes.extend_from_slice(&self.records.to_be_bytes());
        bytes.extend_from_slice(&Self::crc(&bytes).to_be_bytes());
        bytes
    }

    /// Where the payload of a chunk at `at` ends.
    pub(super) const fn payload_end(&self, at: u64) -> u64 {
        at.saturating_add(HEADER_BYTES as u64 + self.length as u64)
    }

    /// The message offset behind the last record, at most 2^63; only for headers that are not refused.
    pub(super) const fn end(&self) -> u64 {
        self.start
            .cast_unsigned()
            .saturating_add(self.records as u64)
    }

    /// Why a header whose CRC is right cannot be that of a chunk at `at` in a file of `len` bytes.
    fn refusal(&self, at: u64, len: u64) -> Option<Finding> {
        if self.flags != 0 {
            let bits: Vec<_> = (0..8).filter(|bit| self.flags >> bit & 1 == 1).collect();
            return Some(Finding::words(
                Cause::UnsupportedFlags,
                "flags 0x00: none is defined",
                format!("flags {:#04x}, with bits {bits:?} set", self.flags),
            ));
        }
        if self.start < 0 || self.end() > OFFSETS_END {
            return Some(Finding::words(
                Cause::OffsetOutOfBounds,
                "message offsets from 0 to 2^63-1",
                format!("start offset {} and {} records", self.start, self.records),
            ));
        }
        let end = self.payload_end(at);
        (end > len).then(|| Finding::TooLong {
            needed: end.saturating_sub(at),
            available: len.saturating_sub(at),
        })
    }

    /// What a start offset before `end`, where the last good chunk ended, is.
    pub(super) fn disorder(&self, end: u64) -> Option<Finding> {
        (self.start.cast_unsigned() < end).then(|| {
            Finding::words(
                Cause::OutOfOrder,
                format!("a start offset of at least {end}, where the last good chunk ended"),
                format!("start offset {}", self.start),
            )
        })
    }

    /// Whether what stands behind the chunk at `at` fits what this header says of it: the next chunk, zeros from where the
    /// file's `data_end` is, or the end. A header tells of message offsets that are not there only if its payload is damaged,
    /// and then hardly ever so that the next one fits.
    pub(super) fn is_borne_out(
        &self,
        source: &dyn Source,
        at: u64,
        data_end: impl FnOnce() -> Result<u64>,
    ) -> Result<bool> {
        let next = align(self.payload_end(at));
        if next >= source.len() {
            return Ok(true);
        }
        Ok(match Look::read(source, next)? {
            Look::Zeros => data_end()? <= next,
            Look::Sound(header) => header.disorder(self.end()).is_none(),
            Look::Truncated(_) | Look::Wrong(..) | Look::Refused(..) => false,
        })
    }
}

/// timestamp, length.
pub(super) const RECORD_HEADER_BYTES: usize = 12;

/// The timestamp and body length of the record that `bytes` begin with.
pub(super) fn parse_record(bytes: &[u8]) -> Option<(i64, u32)> {
    let mut cursor = Cursor::new(bytes);
    Some((cursor.i64_be()?, cursor.u32_be()?))
}

/// How many bytes an item has.
pub const ITEM_BYTES: usize = 20;

/// One item: where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The message offset of the chunk's first record.
    pub offset: i64,
    /// Where the chunk begins in the segment's file, in bytes.
    pub file_offset: i64,
}

impl Item {
    /// The item of a chunk. One without records has none: its message offset is the next one's too, and an index ascends
    /// strictly.
    pub(super) fn of(header: &Header, position: u64) -> Option<Self> {
        let file_offset = i64::try_from(position).ok()?;
        (header.records > 0).then_some(Self {
            offset: header.start,
            file_offset,
        })
    }

    /// The item that these bytes are, if its checksum is right.
    #[must_use]
    pub fn decode(bytes: &[u8; ITEM_BYTES]) -> Option<Self> {
        let (checked, _) = bytes.split_last_chunk::<4>()?;
        let mut cursor = Cursor::new(bytes);
        let item = Self {
            offset: cursor.i64_be()?,
            file_offset: cursor.i64_be()?,
        };
        (cursor.u32_be()? == crc32fast::hash(checked)).then_some(item)
    }

    /// The item's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; ITEM_BYTES] {
        let mut bytes = [0; ITEM_BYTES];
        let mut fields = Vec::with_capacity(ITEM_BYTES);
        fields.extend_from_slice(&self.offset.to_be_bytes());
        fields.extend_from_slice(&self.file_offset.to_be_bytes());
        fields.extend_from_slice(&crc32fast::hash(&fields).to_be_bytes());
        bytes.copy_from_slice(&fields);
        bytes
    }

    /// Whether both offsets are greater than those of `last`.
    pub(super) fn ascends(&self, last: Option<Self>) -> bool {
        last.is_none_or(|last| self.offset > last.offset && self.file_offset > last.file_offset)
    }

    /// Where in `log` the chunk is, if a header that checks and has this start offset stands there.
    pub(super) fn position(&self, log: &dyn Source) -> Result<Option<u64>> {
        let Ok(position) = u64::try_from(self.file_offset) else {
            return Ok(None);
        };
        if !position.is_multiple_of(ALIGNMENT) || position >= log.len() {
            return Ok(None);
        }
        let header = Look::read(log, position)?.checked();
        Ok(header
            .filter(|header| header.start == self.offset)
            .map(|_| position))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is asked of many places is what a walk finds at one.
        #[test]
        fn a_header_checks_exactly_where_a_look_says_so(
            flags: u8, length: u32, start: i64, records: u32, len: u64, cut in 0..=HEADER_BYTES, flip in 0..HEADER_BYTES * 8 + 8,
        ) {
            let mut bytes = Header { flags, length, start, records }.encode();
            if let Some(byte) = bytes.get_mut(flip / 8) {
                *byte ^= 1 << (flip % 8);
            }
            let zeros = [0; HEADER_BYTES];
            let cuts = [bytes.as_slice(), &zeros].map(|bytes| bytes.get(..cut).unwrap_or_default());
            for bytes in cuts.into_iter().chain([bytes.as_slice()]) {
                prop_assert_eq!(Header::checked(bytes), Look::at(0, bytes, len).checked());
            }
        }
    }
}
