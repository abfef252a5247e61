//! The ledger: contiguous byte ranges that cover a file exactly. Each has a kind and, if it is damaged, a cause.
//!
//! ```
//! use std::sync::Arc;
//!
//! use seglake::ledger::Kind;
//! use seglake::source::BytesSource;
//! use seglake::{Options, Reader};
//! # use seglake::format::active;
//! # let mut segment = Vec::new();
//! # let uuids = seglake::uuid6::Generator::default();
//! # for value in [b"first", b"other", b"third"] {
//! #     active::encode(&mut segment, &Default::default(), uuids.now().as_bytes(), b"", value)?;
//! # }
//! # segment[50] ^= 1; // damage to the second of three records
//!
//! let reader = Reader::new(Arc::new(BytesSource::new(segment)), Options::default())?;
//! let mut kinds = Vec::new();
//! for range in reader.ledger()? {
//!     kinds.push(range?.kind);
//! }
//! assert_eq!(kinds, [Kind::Record, Kind::Corrupt, Kind::Record]);
//! # Ok::<(), seglake::Error>(())
//! ```

mod summary;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use crate::words::Cause;
use crate::words::words;
pub use summary::{Summary, Total, Totals};

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
    let first = ranges.partition_point(|range| bytes(range).end <= within.start);
    let (_, rest) = ranges.split_at(first);
    rest.split_at(rest.partition_point(|range| bytes(range).start < within.end))
        .0
}

/// Adjacent sound records, each of which is a range of its own.
#[doc(hidden)] // public for tests
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

/// What follows damage in a file that is appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    /// A sound unit follows, or the search for it was ended by its budget.
    Corrupt,
    /// No sound unit follows.
    Torn,
    /// No sound unit follows, and nothing in the file was verified. The key may be wrong.
    Unchecked,
}

impl Fate {
    /// The fate if no sound unit follows. `checked` says whether anything in the file was verified.
    pub(crate) const fn of_tail(checked: bool) -> Self {
        if checked { Self::Torn } else { Self::Unchecked }
    }

    /// Rule 3: the kind of damage with this cause, in a file that is appended to.
    pub(crate) const fn kind(self, cause: Cause) -> Kind {
        let is_torn = match self {
            Self::Corrupt => false,
            Self::Torn => !is_refused(cause),
            Self::Unchecked => is_missing(cause),
        };
        if is_torn {
            Kind::TornTail
        } else {
            Kind::Corrupt
        }
    }
}

/// Rule 5: the kind of damage with this cause, in a file that is written whole. `reaches_end` says whether it reaches
/// the end of the file.
pub(crate) const fn whole_kind(cause: Cause, reaches_end: bool) -> Kind {
    if reaches_end && is_missing(cause) {
        Kind::TornTail
    } else {
        Kind::Corrupt
    }
}

/// Rule 4: where a torn tail ends. Its last nonzero byte is before `data_end`, the file has `len` bytes, and units
/// begin at multiples of `alignment`. The bytes after the tail are unused.
pub(crate) const fn tail_end(data_end: u64, alignment: u64, len: u64) -> u64 {
    match data_end.checked_next_multiple_of(alignment) {
        Some(end) if end < len => end,
        _ => len,
    }
}

/// Whether a verified unit was refused for this cause. Then the cause stays, whatever follows.
pub(crate) const fn is_refused(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::OutOfOrder
            | Cause::BadUuid
            | Cause::UnsupportedFlags
            | Cause::OffsetOutOfBounds
            | Cause::IndexDisagrees
    )
}

/// Whether the cause says that bytes are missing, as after an interrupted write.
const fn is_missing(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::TruncatedHeader | Cause::TruncatedTrailer | Cause::LengthOutOfBounds
    )
}

/// Makes adjacent ranges. Each call says only where the next range ends, so they cover the file exactly by
/// construction. Adjacent ranges of the same kind and cause are merged, except records, chunks and blocks.
#[derive(Debug, Default)]
pub(crate) struct Tiling {
    end: u64,
    pending: Option<Span>,
}

impl Tiling {
    /// Resumes at `end`. A pending range may end there.
    pub(crate) const fn resume(end: u64, pending: Option<Span>) -> Self {
        Self { end, pending }
    }

    /// The offset after the last range.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// The pending range, which the next bytes may extend.
    pub(crate) const fn pending(&self) -> Option<Span> {
        self.pending
    }

    /// Covers the bytes up to `end`, and appends the ranges that are complete now to `out`.
    pub(crate) fn cover(
        &mut self,
        end: u64,
        kind: Kind,
        cause: Option<Cause>,
        out: &mut Vec<Span>,
    ) {
        if end <= self.end {
            return;
        }
        let span = Span {
            start: self.end,
            end,
            kind,
            cause,
        };
        self.end = end;
        if !kind.joins() {
            out.extend(self.pending.take());
            out.push(span);
            return;
        }
        match &mut self.pending {
            Some(pending) if pending.kind == kind && pending.cause == cause => pending.end = end,
            pending => out.extend(pending.replace(span)),
        }
    }

    /// Covers adjacent records that end at these ascending offsets.
    pub(crate) fn cover_records(&mut self, ends: impl Iterator<Item = u64>, out: &mut Vec<Span>) {
        out.extend(self.pending.take());
        let start = &mut self.end;
        out.extend(ends.map(|end| Span {
            start: std::mem::replace(start, end),
            end,
            kind: Kind::Record,
            cause: None,
        }));
    }

    /// As [`cover_records`](Self::cover_records), for `records` records up to `end`. Returns `None`, without covering
    /// them, if a range before them is pending.
    pub(crate) fn cover_run(&mut self, end: u64, records: u64) -> Option<RecordRun> {
        if self.pending.is_some() {
            return None;
        }
        let start = std::mem::replace(&mut self.end, end);
        Some(RecordRun {
            start,
            end,
            records,
        })
    }

    /// Appends the pending range, which is complete now.
    pub(crate) fn finish(&mut self, out: &mut Vec<Span>) {
        out.extend(self.pending.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_to_is_torn_where_nothing_good_follows() {
        for cause in Cause::ALL.iter().copied() {
            assert_eq!(Fate::Corrupt.kind(cause), Kind::Corrupt);
            let is_torn = |checked| Fate::of_tail(checked).kind(cause) == Kind::TornTail;
            assert_eq!(is_torn(true), !is_refused(cause), "{cause}");
            // Under another key nothing is verified. Then only damage of missing bytes is torn.
            assert_eq!(is_torn(false), is_missing(cause), "{cause}");
            assert!(!(is_refused(cause) && is_missing(cause)), "{cause}");
        }
    }

    #[test]
    fn what_is_written_whole_is_torn_where_bytes_are_missing_at_its_end() {
        assert_eq!(whole_kind(Cause::LengthOutOfBounds, true), Kind::TornTail);
        assert_eq!(whole_kind(Cause::LengthOutOfBounds, false), Kind::Corrupt);
        assert_eq!(whole_kind(Cause::ChecksumMismatch, true), Kind::Corrupt);
    }

    #[test]
    fn a_torn_tail_ends_where_the_next_thing_could_begin_or_the_file_does() {
        assert_eq!(tail_end(129, 1, 300), 129);
        assert_eq!(tail_end(129, 128, 300), 256);
        assert_eq!(tail_end(256, 128, 300), 256);
        assert_eq!(tail_end(257, 128, 300), 300);
        assert_eq!(tail_end(u64::MAX, 128, u64::MAX), u64::MAX);
    }
}
