//! A range of a ledger and its kind.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::words::words;

words! {
    /// The kind of a range.
    Kind {
        /// Bytes with the places or counts of other units.
        Header = "header",
        /// A record.
        Record = "record",
        /// A chunk of compressed records: its header and payload.
        Chunk = "chunk",
        /// The messages of one tenant in one partition.
        Block = "block",
        /// Zeros up to the next aligned offset.
        Padding = "padding",
        /// Zeros to the end of the file: space that was never written to.
        Unused = "unused",
        /// Bytes of a frozen segment of a log that are no record, after what is known to have been on the disk. Nobody was told of a
        /// record there, so this is not damage.
        Unproven = "unproven",
        /// What the writer that has the file open has not finished yet, at the end of the file.
        Pending = "pending",
        /// Damage with nothing sound after it: an interrupted write.
        TornTail = "torn_tail",
        /// Any other damage.
        Corrupt = "corrupt",
        /// Bytes that are damaged, or missing at the end of the file, and that its parity sidecar has.
        Repaired = "repaired",
        /// The checksums at the end of a sealed segment.
        Trailer = "trailer",
    }
}

impl Kind {
    /// Whether a range of this kind is one or several records that are checked together.
    pub(crate) const fn is_unit(self) -> bool {
        matches!(self, Self::Record | Self::Chunk | Self::Block)
    }

    /// Whether adjacent ranges of this kind and the same cause are merged.
    pub(crate) const fn joins(self) -> bool {
        !self.is_unit()
    }
}

/// A range of a ledger: bytes `start` to `end`, half-open, absolute file offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// The offset after the last byte.
    pub end: u64,
    /// The kind of the range.
    pub kind: Kind,
    /// The cause of the damage; `None` if the range is sound.
    pub cause: Option<Cause>,
}

impl Span {
    /// A range of a ledger.
    #[doc(hidden)] // public for tests, which expect ranges: walks make them
    #[must_use]
    pub const fn new(start: u64, end: u64, kind: Kind, cause: Option<Cause>) -> Self {
        Self {
            start,
            end,
            kind,
            cause,
        }
    }

    /// The number of bytes in the range.
    #[must_use]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a ledger's ranges are never empty"
    )]
    pub const fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Its bytes.
    pub(crate) const fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Whether the range and the one that begins where it ends are one.
    pub(crate) fn goes_on_in(&self, next: &Self) -> bool {
        self.kind.joins()
            && (self.end, self.kind, self.cause) == (next.start, next.kind, next.cause)
    }

    /// Whether the range is damage.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        self.cause.is_some()
    }
}

/// Those of ascending ranges which do not overlap that have bytes of a range. An empty range is taken as a place.
pub(crate) fn overlapping<'a, T>(
    ranges: &'a [T],
    bytes: impl Fn(&T) -> Range<u64>,
    within: &Range<u64>,
) -> &'a [T] {
    let (_, rest) = ranges.split_at(ranges.partition_point(|own| bytes(own).end <= within.start));
    rest.split_at(rest.partition_point(|own| bytes(own).start < within.end))
        .0
}

/// Adjacent sound records, each of which is a range of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRun {
    /// Where the first begins, in bytes from the start of the file.
    pub start: u64,
    /// The offset after the last.
    pub end: u64,
    /// The number of records.
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
