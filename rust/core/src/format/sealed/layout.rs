//! The bytes of a segment as fields, without any judgement.

use crate::cursor::{Cursor, fields};
use crate::saturating::saturating_usize;

pub(super) const UUID_BYTES: usize = 16;
pub(super) const CHECKSUM_BYTES: usize = 8;
/// The length of a UUID and an offset, and of the terminator.
pub(super) const ENTRY_BYTES: usize = 24;
/// What an entry takes in the index and the trailer together.
pub(super) const ENTRY_AND_CHECKSUM: usize = ENTRY_BYTES + CHECKSUM_BYTES;
/// The trailer after its checksums: key check, count, index hash, magic.
pub(super) const FOOT_BYTES: usize = 32;
pub(super) const MAGIC: [u8; 8] = *b"SLKSEAL1";
/// The type length and the value length.
pub(super) const LENGTHS_BYTES: u64 = 5;
/// The maximum length of a message's type length, type and value length.
pub(super) const MAX_HEADER_BYTES: usize = 5 + 255;
/// The minimum length of an entry, its message and its checksum.
pub(super) const MIN_MESSAGE_BYTES: u64 = 37;

/// One entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number. The first is 0.
    pub(super) number: u64,
    pub(super) uuid: [u8; UUID_BYTES],
    /// Where its message begins, in bytes from the beginning of the file.
    pub(super) offset: u64,
}

impl Entry {
    pub(super) fn parse(number: u64, bytes: &[u8; ENTRY_BYTES]) -> Self {
        let (uuid, offset) = fields(bytes);
        Self {
            number,
            uuid,
            offset,
        }
    }
}

/// A message's lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) type_len: u8,
    pub(super) value_len: u32,
}

/// The result of parsing a message: its header if it lies within the data, else what is missing.
pub(super) type Parsed = Result<Header, Short>;

/// The data ends inside a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    /// It ends inside the type or the lengths.
    pub(super) in_header: bool,
    /// How many bytes these, or the whole message, need, and how many there are.
    pub(super) needed: u64,
    pub(super) left: u64,
}

impl Header {
    /// Parses the header that begins `bytes`. The data has `left` bytes from there on. `bytes` are all of them, or
    /// at least the first [`MAX_HEADER_BYTES`].
    pub(super) fn parse(bytes: &[u8], left: u64) -> Parsed {
        let shown = Cursor::new(bytes).run_up_to(saturating_usize(left));
        let mut cursor = Cursor::new(shown);
        let short = |in_header, needed| Short {
            in_header,
            needed,
            left,
        };
        let type_len = cursor.u8().ok_or(short(true, LENGTHS_BYTES))?;
        let lengths = cursor.run(type_len.into()).and_then(|_| cursor.u32_be());
        let needed = LENGTHS_BYTES + u64::from(type_len);
        let header = Self {
            type_len,
            value_len: lengths.ok_or(short(true, needed))?,
        };
        match header.total() {
            total if total <= left => Ok(header),
            total => Err(short(false, total)),
        }
    }

    pub(super) const fn value_start(&self) -> u64 {
        LENGTHS_BYTES + self.type_len as u64
    }

    /// The length of the whole message.
    pub(super) const fn total(&self) -> u64 {
        self.value_start() + self.value_len as u64
    }
}

/// A good message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The number of its entry. The first is 0.
    pub(super) number: u64,
    /// The UUID in its entry.
    pub(super) uuid: [u8; UUID_BYTES],
    /// Where it begins, in bytes from the beginning of the file.
    pub(super) position: u64,
    pub(super) header: Header,
}

impl Message {
    pub(super) const fn end(&self) -> u64 {
        self.position + self.header.total()
    }
}
