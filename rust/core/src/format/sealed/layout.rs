//! The bytes of a segment, to fields: nothing here knows what is right.

use crate::cursor::{Cursor, fields};
use crate::saturating::saturating_usize;

pub(super) const UUID_BYTES: usize = 16;
pub(super) const CHECKSUM_BYTES: usize = 8;
/// A UUID and an offset; also the zeros behind the last entry.
pub(super) const ENTRY_BYTES: usize = 24;
/// The trailer behind its checksums: key check, count, index hash, magic.
pub(super) const FOOT_BYTES: usize = 32;
pub(super) const MAGIC: [u8; 8] = *b"SLKSEAL1";
/// The type length and the value length.
pub(super) const LENGTHS_BYTES: u64 = 5;
/// The most that a message's type length, type and value length can take.
pub(super) const MAX_HEADER_BYTES: usize = 5 + 255;
/// The least that an entry, its message and its checksum take.
pub(super) const MIN_MESSAGE_BYTES: u64 = 37;

/// One entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) uuid: [u8; UUID_BYTES],
    /// Where its message begins, in bytes from the start of the file.
    pub(super) offset: u64,
}

impl Entry {
    pub(super) fn parse(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let (uuid, offset) = fields(bytes);
        Self { uuid, offset }
    }
}

/// A message's lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) type_len: u8,
    pub(super) value_len: u32,
}

/// What stands where a message should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A message that lies within the data.
    Message(Header),
    /// The data ends inside the lengths, which need so many bytes.
    Truncated(u64),
    /// The data ends inside the message, which needs so many bytes.
    TooLong(u64),
}

impl Header {
    /// Parses what stands at the beginning of `bytes`. The data has `left` bytes from there on, of which `bytes` are all, or
    /// at least the first [`MAX_HEADER_BYTES`].
    pub(super) fn parse(bytes: &[u8], left: u64) -> Parsed {
        let shown = Cursor::new(bytes).run_up_to(saturating_usize(left));
        let mut cursor = Cursor::new(shown);
        let Some(type_len) = cursor.u8() else {
            return Parsed::Truncated(LENGTHS_BYTES);
        };
        let lengths = cursor.run(type_len.into()).and_then(|_| cursor.u32_be());
        let Some(value_len) = lengths else {
            return Parsed::Truncated(LENGTHS_BYTES + u64::from(type_len));
        };
        let header = Self {
            type_len,
            value_len,
        };
        if header.total() <= left {
            Parsed::Message(header)
        } else {
            Parsed::TooLong(header.total())
        }
    }

    pub(super) const fn value_start(&self) -> u64 {
        LENGTHS_BYTES + self.type_len as u64
    }

    /// The whole message.
    pub(super) const fn total(&self) -> u64 {
        self.value_start() + self.value_len as u64
    }
}

/// A message that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The number of its entry, the first being 0.
    pub(super) number: u64,
    /// The UUID that its entry has.
    pub(super) uuid: [u8; UUID_BYTES],
    /// Where it begins, in bytes from the start of the file.
    pub(super) position: u64,
    pub(super) header: Header,
}

impl Message {
    pub(super) const fn end(&self) -> u64 {
        self.position + self.header.total()
    }
}
