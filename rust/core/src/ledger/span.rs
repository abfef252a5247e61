//! One range of a ledger, and what it is.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::words::words;

words! {
    /// What a range of bytes is.
    Kind {
        /// Bytes that say where or how many other things are.
        Header = "header",
        /// A record.
        Record = "record",
        /// A chunk of compressed records: its header and payload.
        Chunk = "chunk",
        /// The messages of one tenant in one partition.
        Block = "block",
        /// Zeros up to the next aligned offset.
        Padding = "padding",
        /// Zeros to the end of the file, not yet written to.
        Unused = "unused",
        /// Damage with nothing sound behind it: an interrupted write.
        TornTail = "torn_tail",
        /// Any other damage.
        Corrupt = "corrupt",
        /// The checksums behind a sealed segment.
        Trailer = "trailer",
    }
}

impl Kind {
    /// Whether touching ranges of this kind and the same cause are one.
    pub(crate) const fn joins(self) -> bool {
        !matches!(self, Self::Record | Self::Chunk | Self::Block)
    }
}

/// One range of a ledger: bytes `start` to `end`, half-open, absolute file offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last.
    pub end: u64,
    /// What the range is.
    pub kind: Kind,
    /// Why it is damage; `None` where nothing is wrong.
    pub cause: Option<Cause>,
}

impl Span {
    /// The number of bytes in the range.
    #[must_use]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a ledger's ranges are never empty"
    )]
    pub const fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the range is damage.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        self.cause.is_some()
    }
}

/// Good records one directly behind the other, each of which is a range of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRun {
    /// Where the first begins, in bytes from the start of the file.
    pub start: u64,
    /// The offset behind the last.
    pub end: u64,
    /// How many there are.
    pub records: u64,
}

impl RecordRun {
    /// All of them as one range.
    #[must_use]
    pub const fn span(&self) -> Span {
        Span {
            start: self.start,
            end: self.end,
            kind: Kind::Record,
            cause: None,
        }
    }
}
