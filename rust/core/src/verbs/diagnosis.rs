//! What damage probably comes from: the closed list of reasons, how sure one is, and what shows it.

use crate::ledger::Span;
use crate::record::RecordId;
use crate::words::words;

/// What probably happened to one damaged range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The range, as the report has it.
    pub span: Span,
    /// What probably happened.
    pub reason: Reason,
    /// How sure that is; `None` where nothing shows what happened.
    pub certainty: Option<Certainty>,
    /// What shows it, in words, with the numbers.
    pub evidence: String,
    /// The last good record in front of the range.
    pub before: Option<Neighbour>,
    /// The first good record behind it.
    pub after: Option<Neighbour>,
    /// Single bits that, flipped back, would make it check. They are proposed; nothing is changed.
    pub repairs: Vec<Repair>,
}

impl Diagnosis {
    /// What to do about it.
    #[must_use]
    pub const fn next(&self) -> &'static str {
        self.reason.next()
    }
}

words! {
    /// What probably happened to a damaged range: a closed list, the same for every format.
    Reason {
        /// One bit differs from what was written: with it flipped back the checksum is right.
        FlippedBit = "flipped_bit",
        /// A whole sector, or several, reads as zeros.
        ZeroedSector = "zeroed_sector",
        /// A whole sector, or several, reads as 0xff, as erased flash does.
        ErasedSector = "erased_sector",
        /// The bytes that belong into a sector stand in another one.
        MovedSector = "moved_sector",
        /// A sector holds a copy of another one.
        DuplicatedSector = "duplicated_sector",
        /// Whole records that check stand here once more.
        DuplicatedRecords = "duplicated_records",
        /// Whole records that check, but are older than those in front of them.
        StaleData = "stale_data",
        /// Bytes that do not belong here push the rest back.
        InsertedBytes = "inserted_bytes",
        /// Bytes are missing, so that the rest has moved forward.
        MissingBytes = "missing_bytes",
        /// The last write was not finished.
        InterruptedWrite = "interrupted_write",
        /// The file is cut off.
        Truncated = "truncated",
        /// The file was copied as text: line ends or characters were converted.
        TextConversion = "text_conversion",
        /// The file's checksums are under another key.
        WrongKey = "wrong_key",
        /// The messages are of another dialect.
        OtherDialect = "other_dialect",
        /// The bytes are of something else: another format, another program's file, text.
        OtherContent = "other_content",
        /// The checksum is right: the bytes are as they were written, and what wrote them is at fault.
        AsWritten = "as_written",
        /// A record names a key of an earlier one that is not there.
        LostReference = "lost_reference",
        /// It is sound as soon as other damage is repaired.
        Consequence = "consequence",
        /// Nothing shows what happened.
        Unknown = "unknown",
    }
}

words! {
    /// How sure a reason is.
    Certainty {
        /// A checksum shows it.
        Proven = "proven",
        /// It would be a rare coincidence otherwise.
        Likely = "likely",
        /// The bytes are consistent with it, and with other reasons as well.
        Possible = "possible",
    }
}

impl Reason {
    /// What to do about it, for the person on call.
    #[must_use]
    pub const fn next(self) -> &'static str {
        match self {
            Self::FlippedBit => {
                "try the proposal on a copy and verify that; then test memory (ECC log, memtest) and disk (SMART)"
            }
            Self::ZeroedSector | Self::ErasedSector => {
                "what was there is gone: restore it from a copy; look at the disk (SMART, kernel log) and at what unmounted uncleanly"
            }
            Self::MovedSector | Self::DuplicatedSector => {
                "a write went to the wrong place: keep the file as it is, look at disk, controller and file system, and check other files there"
            }
            Self::DuplicatedRecords => {
                "nothing is lost if the same records stand in front: look for a write that was retried, or two writers"
            }
            Self::StaleData => {
                "look for a clock that was set back, two writers, or a disk that lost writes; the records there can be copied out with `seglake extract`"
            }
            Self::InsertedBytes | Self::MissingBytes => {
                "the copy is not what was written: make it again from the source, in binary mode; look at what joined or cut the file"
            }
            Self::InterruptedWrite => {
                "every record in front is whole: let the program that writes the file clear the tail, or `seglake recover SRC DST`"
            }
            Self::Truncated => {
                "copy the file again from its source; `seglake recover SRC DST` keeps what is there"
            }
            Self::TextConversion => "copy the file again, in binary mode",
            Self::WrongKey => {
                "read it with the key that it was written with (--key-file, SEGLAKE_KEY); change nothing in the file"
            }
            Self::OtherDialect => "read it with the dialect that it was written in (--dialect)",
            Self::OtherContent => {
                "find out what wrote it there: another program, a wrong path, a file system that mixed files up"
            }
            Self::AsWritten => {
                "not the disk: look at the program that wrote it, or read it with a version that knows it"
            }
            Self::LostReference => {
                "find the part of the oplog in front of it; the messages themselves are whole"
            }
            Self::Consequence => "repair the other damage first",
            Self::Unknown => {
                "keep the file as it is; restore it from a copy, or `seglake recover SRC DST` keeps what checks"
            }
        }
    }
}

/// A single bit that, flipped back, makes something check. A proposal: nothing applies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The absolute offset of the byte.
    pub offset: u64,
    /// The bit's number in it, 0 being the least significant.
    pub bit: u32,
    /// The byte as it is.
    pub old: u8,
    /// The byte with the bit flipped.
    pub new: u8,
    /// What then checks, for a person: `record`, `chunk header`.
    pub checks: &'static str,
    /// Where that begins, as an absolute offset.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

/// A record beside damage: which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Where it begins, as an absolute offset; for records within a compressed chunk, where the chunk does.
    pub position: u64,
    /// The names of the columns that it is found by.
    pub identifier: &'static [&'static str],
    /// What it is found by.
    pub id: Option<RecordId>,
    /// Its time in microseconds since 1970-01-01 UTC, where the format has one.
    pub timestamp: Option<i64>,
}
