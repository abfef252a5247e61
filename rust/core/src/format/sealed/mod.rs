//! The sealed format: a read-only segment with an index, made to be mapped.
//!
//! ```text
//! segment: (uuid 16 ‖ offset u64)* ‖ 24 zero bytes ‖ message* ‖ trailer, or nothing
//! message: type length u8 ‖ type ‖ value length u32 ‖ value
//! trailer: (checksum u64)* ‖ key check u64 ‖ count u64 ‖ index hash u64 ‖ "SLKSEAL1"
//! ```
//! Integers are unsigned and big-endian, offsets count from the start of the file. Entries ascend strictly by UUID, which is
//! of version 6 (RFC 9562), in network byte order. A checksum is HighwayHash-64 of an entry's UUID and its message: the very
//! checksum that the record has in an active segment. `docs/formats/sealed.md` has the whole story, with what a reader does
//! about damage.

mod check;
mod detect;
mod found;
mod front;
mod group;
mod guide;
mod index;
mod index_blocks;
mod lookup;
mod part;
mod ranges;
mod reader;
mod rows;
mod run;
mod salvage;
mod search;
mod start;
mod strict;
mod suspects;
mod table;
mod torn;
mod trailer;
mod walk;
mod writer;

pub use writer::Writer;

use super::active::COLUMNS;
use crate::cursor::Cursor;
use crate::engine::Format;
use crate::record::Checked;

/// The format's entry in the table.
pub static FORMAT: Format = Format {
    name: "sealed",
    extension: "sealed",
    checked: Checked::Checksum,
    has_plain_values: true,
    open_options: &["key"],
    create_options: &["key", "overwrite", "trailer"],
    columns: |_| COLUMNS,
    detect: detect::detect,
    walk: |source, options, start| Ok(Box::new(walk::SealedWalk::open(source, options, start)?)),
    split: Some(part::split),
    lookup: |source, options| Ok(Box::new(lookup::SealedLookup::open(source, options)?)),
    create: |path, options| Ok(Box::new(Writer::create(path, options)?)),
    salvage: salvage::salvage,
    suspects: |source, options| {
        Ok(suspects::SealedSuspects::open(source, options)?.map(|own| Box::new(own) as _))
    },
};

const UUID_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;
/// A UUID and an offset; also the zeros behind the last entry.
const ENTRY_BYTES: usize = 24;
/// The trailer behind its checksums: key check, count, index hash, magic.
const FOOT_BYTES: usize = 32;
const MAGIC: [u8; 8] = *b"SLKSEAL1";
/// The type length and the value length.
const LENGTHS_BYTES: u64 = 5;
/// The most that a message's type length, type and value length can take.
const MAX_HEADER_BYTES: usize = 5 + 255;
/// The least that an entry, its message and its checksum take.
const MIN_MESSAGE_BYTES: u64 = 37;

/// One entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    uuid: [u8; UUID_BYTES],
    /// Where its message begins, in bytes from the start of the file.
    offset: u64,
}

impl Entry {
    fn parse(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let mut cursor = Cursor::new(bytes);
        // The array is as long as both together.
        Self {
            uuid: cursor.array().copied().unwrap_or_default(),
            offset: cursor.u64_be().unwrap_or_default(),
        }
    }
}

/// A message's lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    type_len: u8,
    value_len: u32,
}

/// What stands where a message should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parsed {
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
    fn parse(bytes: &[u8], left: u64) -> Parsed {
        let shown = usize::try_from(left)
            .ok()
            .and_then(|left| bytes.get(..left));
        let mut cursor = Cursor::new(shown.unwrap_or(bytes));
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

    const fn value_start(&self) -> u64 {
        LENGTHS_BYTES + self.type_len as u64
    }

    /// The whole message.
    const fn total(&self) -> u64 {
        self.value_start() + self.value_len as u64
    }
}

/// A message that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    /// The number of its entry, the first being 0.
    number: u64,
    /// The UUID that its entry has.
    uuid: [u8; UUID_BYTES],
    /// Where it begins, in bytes from the start of the file.
    position: u64,
    header: Header,
}

impl Message {
    const fn end(&self) -> u64 {
        self.position + self.header.total()
    }
}
