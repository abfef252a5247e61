//! The bytes of a chunk's header, of a record and of an index item, to fields and back.

use crate::cursor::fields;

/// flags, length, start offset, record length, head crc.
pub(super) const HEADER_BYTES: usize = 21;
/// Chunks begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 0x80;
/// All message offsets are below this.
pub(super) const OFFSETS_END: u64 = 1 << 63;

/// The next multiple of [`ALIGNMENT`], `offset` itself if it is one.
pub(super) const fn align(offset: u64) -> u64 {
    offset.saturating_add(ALIGNMENT - 1) & !(ALIGNMENT - 1)
}

/// A chunk's header as stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) flags: u8,
    /// The bytes of the payload.
    pub(super) length: u32,
    /// The message offset of the first record.
    pub(super) start: i64,
    /// The number of records.
    pub(super) records: u32,
}

impl Header {
    /// Parses the fields, and the CRC stored after them.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> (Self, u32) {
        let (flags, length, start, records, crc) = fields(bytes);
        let header = Self {
            flags,
            length,
            start,
            records,
        };
        (header, crc)
    }

    /// Computes the CRC of a header's fields.
    pub(super) fn crc(bytes: &[u8; HEADER_BYTES]) -> u32 {
        let (checked, _): (&[u8; HEADER_BYTES - 4], u32) = fields(bytes);
        crc32fast::hash(checked)
    }

    /// Encodes the header.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.push(self.flags);
        bytes.extend_from_slice(&self.length.to_be_bytes());
        bytes.extend_from_slice(&self.start.to_be_bytes());
        bytes.extend_from_slice(&self.records.to_be_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    /// Where the payload of a chunk at `at` ends.
    pub(super) const fn payload_end(&self, at: u64) -> u64 {
        at.saturating_add(HEADER_BYTES as u64 + self.length as u64)
    }

    /// The message offset after the last record, at most 2^63. Valid only for headers that were not refused.
    pub(super) const fn end(&self) -> u64 {
        self.start
            .cast_unsigned()
            .saturating_add(self.records as u64)
    }
}

/// timestamp, length.
pub(super) const RECORD_HEADER_BYTES: usize = 12;

/// A record's timestamp and body length.
#[inline]
pub(super) fn decode_record(bytes: &[u8; RECORD_HEADER_BYTES]) -> (i64, u32) {
    fields(bytes)
}

/// The length of an item in bytes.
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
    /// The item of a chunk. A chunk without records has none: its message offset would equal the next one's, and
    /// an index ascends strictly.
    pub(super) fn of(header: &Header, position: u64) -> Option<Self> {
        let file_offset = i64::try_from(position).ok()?;
        (header.records > 0).then_some(Self {
            offset: header.start,
            file_offset,
        })
    }

    /// Parses an item. `None` if its checksum does not match.
    #[must_use]
    pub fn decode(bytes: &[u8; ITEM_BYTES]) -> Option<Self> {
        let (checked, crc): (&[u8; ITEM_BYTES - 4], u32) = fields(bytes);
        let (offset, file_offset) = fields(checked);
        let item = Self {
            offset,
            file_offset,
        };
        (crc == crc32fast::hash(checked)).then_some(item)
    }

    /// Encodes the item.
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
}
