//! Diagnoses of damage: the closed list of reasons, how certain a reason is, and its evidence.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::serialized::identifier;
use crate::ledger::Span;
use crate::record::RecordId;
use crate::words::words;

/// What probably damaged one range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The range, as in the report.
    pub span: Span,
    /// The probable reason.
    pub reason: Reason,
    /// How certain the reason is; `None` if nothing shows what happened.
    pub certainty: Option<Certainty>,
    /// The evidence in words, with numbers.
    pub evidence: String,
    /// What speaks against it, and what was not tried and why. Empty if nothing does.
    pub against: String,
    /// All damaged ranges that it explains, this one included. The others have the reason [`Consequence`](Reason::Consequence).
    pub ranges: Vec<Span>,
    /// The bytes where it happened. A range is that of whole records, and so it may be longer.
    pub place: Range<u64>,
    /// The changes that undo it, in file order. Empty if they are unknown, or if all of the file is transformed.
    pub edits: Vec<Edit>,
    /// How many more records are verified with it undone.
    pub regained: u64,
    /// Whether the whole file is sound with it undone.
    pub is_sound: bool,
    /// What the file has lost at its end, as far as its own index or table of contents says so.
    pub missing: Option<Missing>,
    /// The last sound record before the range.
    pub before: Option<Neighbour>,
    /// The first sound record after the range.
    pub after: Option<Neighbour>,
    /// Single bits whose flipping back would make a checksum match. They are proposals: nothing is changed.
    pub repairs: Vec<Repair>,
}

/// Bytes of a file that give way to others. It is a proposal: nothing applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Edit {
    /// The absolute offset of the first byte that gives way.
    pub start: u64,
    /// Where they end. If they end where they start, bytes are put in before.
    pub end: u64,
    /// How many bytes take their place. None: they are taken out.
    pub bytes: u64,
    /// Where in the file as it is these bytes are; `None`: they are zeros.
    pub from: Option<u64>,
}

/// What is missing at the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Missing {
    /// The least number of bytes.
    pub bytes: u64,
    /// How many records, if that is known.
    pub records: Option<u64>,
}

words! {
    /// The probable reason of damage: a closed list, the same for every format.
    Reason {
        /// One bit differs from what was written: flipped back, it makes the checksum match.
        FlippedBit = "flipped_bit",
        /// One or several whole sectors read as zeros.
        ZeroedSector = "zeroed_sector",
        /// One or several whole sectors read as 0xff, as erased flash does.
        ErasedSector = "erased_sector",
        /// The correct bytes of a sector are in another one.
        MovedSector = "moved_sector",
        /// A sector was written over by a copy of another one.
        DuplicatedSector = "duplicated_sector",
        /// A sector was written over by bytes from somewhere else.
        ForeignSector = "foreign_sector",
        /// From a page on, the file reads as zeros to its end.
        ZeroedTail = "zeroed_tail",
        /// Verified records that are elsewhere in the file as well.
        DuplicatedRecords = "duplicated_records",
        /// Verified records that are older than those before them.
        StaleData = "stale_data",
        /// A block of the file is in it a second time, right after the first.
        RepeatedBlock = "repeated_block",
        /// Another file follows in the same file.
        Concatenated = "concatenated",
        /// Inserted bytes moved the later ones back.
        InsertedBytes = "inserted_bytes",
        /// Bytes are missing, so later ones moved forward.
        MissingBytes = "missing_bytes",
        /// Bytes within one unit are others: which, and how many, is not known.
        ChangedBytes = "changed_bytes",
        /// The last write was not finished.
        InterruptedWrite = "interrupted_write",
        /// The file is cut off.
        Truncated = "truncated",
        /// The file was copied as text: its line ends were converted.
        TextConversion = "text_conversion",
        /// The file was taken for text, and its characters were encoded anew.
        Reencoded = "reencoded",
        /// The bytes of each word are in the other order.
        ByteOrder = "byte_order",
        /// The file is written in base64.
        Base64 = "base64",
        /// The file is compressed.
        Compressed = "compressed",
        /// The file is empty.
        Empty = "empty",
        /// The file consists of zeros.
        OnlyZeros = "only_zeros",
        /// The file's checksums are under another key.
        WrongKey = "wrong_key",
        /// The messages are of another dialect.
        OtherDialect = "other_dialect",
        /// The file is of another of these formats.
        OtherFormat = "other_format",
        /// The bytes belong to another program's file, or a text.
        OtherContent = "other_content",
        /// The checksum matches: the bytes are as they were written, and their writer is at fault.
        AsWritten = "as_written",
        /// A record names a key of an earlier record that is missing.
        LostReference = "lost_reference",
        /// The file's parity sidecar has the bytes as they were.
        Restorable = "restorable",
        /// The range is sound when other damage is repaired.
        Consequence = "consequence",
        /// Nothing shows what happened.
        Unknown = "unknown",
    }
}

words! {
    /// How certain a reason is.
    Certainty {
        /// A checksum proves it.
        Proven = "proven",
        /// Any other explanation would be a rare coincidence.
        Likely = "likely",
        /// The bytes are consistent with it, and with other reasons.
        Possible = "possible",
    }
}

/// A single bit whose flipping back makes a checksum match. It is a proposal: nothing applies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Repair {
    /// The absolute offset of the byte.
    pub offset: u64,
    /// The bit's number in the byte; 0 is the least significant.
    pub bit: u32,
    /// The byte in the file.
    pub old: u8,
    /// The byte with the bit flipped.
    pub new: u8,
    /// What is verified with the bit flipped, for people: `record`, `chunk header`.
    pub checks: Cow<'static, str>,
    /// Where that begins, as an absolute offset.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

/// A record next to damage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Neighbour {
    /// Its absolute offset; for a record in a compressed chunk, the chunk's offset.
    pub position: u64,
    /// The names of its identifying columns.
    #[serde(with = "identifier")]
    pub identifier: &'static [&'static str],
    /// Its identifier.
    pub id: Option<RecordId>,
    /// Its time in microseconds since 1970-01-01 UTC, if the format has times.
    pub timestamp: Option<i64>,
}
