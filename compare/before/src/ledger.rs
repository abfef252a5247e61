//! The ledger: contiguous byte ranges that cover a file exactly, each with what it is and, where it is damaged, why.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word that ledgers, reports and errors use.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

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

words! {
    /// Why a range is damage: a closed list, the same for every format.
    Cause {
        /// The file ends inside the fields that say how long things are.
        TruncatedHeader = "truncated_header",
        /// The file ends inside the trailer that these records would have.
        TruncatedTrailer = "truncated_trailer",
        /// A length or count reaches beyond the file, or beyond what holds it.
        LengthOutOfBounds = "length_out_of_bounds",
        /// An offset points outside the data.
        OffsetOutOfBounds = "offset_out_of_bounds",
        /// A record, block or index item fails its own checksum.
        ChecksumMismatch = "checksum_mismatch",
        /// A header, index or table of contents fails its own checksum.
        HeaderChecksumMismatch = "header_checksum_mismatch",
        /// A chunk's payload is not the records that its header says.
        PayloadInvalid = "payload_invalid",
        /// Bytes are left over behind a message's last field.
        TrailingBytes = "trailing_bytes",
        /// A count differs from what is there.
        CountMismatch = "count_mismatch",
        /// It checks, but does not ascend.
        OutOfOrder = "out_of_order",
        /// It checks, but its UUID is not version 6, variant 10.
        BadUuid = "bad_uuid",
        /// A key reference points nowhere.
        DanglingReference = "dangling_reference",
        /// An index entry and what it points at disagree.
        IndexDisagrees = "index_disagrees",
        /// No intact index entry accounts for these bytes.
        Unreferenced = "unreferenced",
        /// Unused space that is not zero.
        NonzeroUnused = "nonzero_unused",
        /// Padding that is not zero.
        NonzeroPadding = "nonzero_padding",
        /// The magic is wrong.
        BadMagic = "bad_magic",
        /// No intact terminator where the index ends.
        BadTerminator = "bad_terminator",
        /// A version that is not known.
        UnsupportedVersion = "unsupported_version",
        /// Flags that are not known.
        UnsupportedFlags = "unsupported_flags",
        /// The search for the next good record reached its budget.
        SearchLimit = "search_limit",
        /// Every checksum fails and all else fits.
        WrongKey = "wrong_key",
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

/// Lays ranges end to end. Each call says only where the next range ends, so they cover the file exactly by construction;
/// touching ranges of the same kind and cause become one, except records, chunks and blocks.
#[derive(Debug, Default)]
pub(crate) struct Tiling {
    end: u64,
    held: Option<Span>,
}

impl Tiling {
    /// Goes on at `offset`, up to which `held` may reach.
    pub(crate) const fn resume(offset: u64, held: Option<Span>) -> Self {
        Self { end: offset, held }
    }

    /// The range that is held back because what comes next may be of the same kind and cause.
    pub(crate) const fn held(&self) -> Option<Span> {
        self.held
    }

    /// Covers the bytes up to `end` and appends to `out` what is now known to be a whole range.
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
            out.extend(self.held.take());
            out.push(span);
            return;
        }
        match &mut self.held {
            Some(held) if held.kind == kind && held.cause == cause => held.end = end,
            held => out.extend(held.replace(span)),
        }
    }

    /// Covers records that end at these ascending offsets, one behind the other.
    pub(crate) fn cover_records(&mut self, ends: impl Iterator<Item = u64>, out: &mut Vec<Span>) {
        out.extend(self.held.take());
        let start = &mut self.end;
        out.extend(ends.map(|end| Span {
            start: std::mem::replace(start, end),
            end,
            kind: Kind::Record,
            cause: None,
        }));
    }

    /// As [`cover_records`](Self::cover_records), of so many that end at `end` together; `None`, and nothing is covered, where a
    /// range in front of them is still held back.
    pub(crate) fn cover_run(&mut self, end: u64, records: u64) -> Option<RecordRun> {
        if self.held.is_some() {
            return None;
        }
        let start = std::mem::replace(&mut self.end, end);
        Some(RecordRun {
            start,
            end,
            records,
        })
    }

    /// Appends the range that was still held back, which nothing can grow any more.
    pub(crate) fn finish(&mut self, out: &mut Vec<Span>) {
        out.extend(self.held.take());
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

/// Bytes and ranges of one kind and cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Total {
    /// What the ranges are.
    pub kind: Kind,
    /// Why they are damage, if they are.
    pub cause: Option<Cause>,
    /// How many bytes they have together.
    pub bytes: u64,
    /// How many ranges there are.
    pub ranges: u64,
}

/// Sums over a ledger by kind and cause: a handful of rows, however long the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Totals(Vec<Total>);

impl Totals {
    /// Adds one range.
    pub fn add(&mut self, span: &Span) {
        self.add_all(std::slice::from_ref(span));
    }

    /// Adds ranges, and tells whether any is damage.
    pub fn add_all(&mut self, mut spans: &[Span]) -> bool {
        let mut damaged = false;
        while let [first, ..] = spans {
            let (mut bytes, mut ranges) = (0, 0);
            let alike = |span: &&Span| span.kind == first.kind && span.cause == first.cause;
            for span in spans.iter().take_while(alike) {
                bytes += span.len();
                ranges += 1;
            }
            self.add_run(Total {
                kind: first.kind,
                cause: first.cause,
                bytes,
                ranges: ranges as u64,
            });
            damaged |= first.is_damage();
            spans = spans.get(ranges..).unwrap_or_default();
        }
        damaged
    }

    /// Adds records that are a range each.
    pub fn add_records(&mut self, run: &RecordRun) {
        let span = run.span();
        self.add_run(Total {
            kind: span.kind,
            cause: span.cause,
            bytes: span.len(),
            ranges: run.records,
        });
    }

    /// Adds the sums over another stretch.
    pub(crate) fn merge(&mut self, other: &Self) {
        for run in &other.0 {
            self.add_run(*run);
        }
    }

    /// Counts two ranges of the same kind and cause as this one.
    pub(crate) fn join(&mut self, span: &Span) {
        let same = |total: &&mut Total| total.kind == span.kind && total.cause == span.cause;
        if let Some(total) = self.0.iter_mut().find(same) {
            total.ranges = total.ranges.saturating_sub(1);
        }
    }

    fn add_run(&mut self, run: Total) {
        let same = |total: &&mut Total| total.kind == run.kind && total.cause == run.cause;
        match self.0.iter_mut().find(same) {
            Some(total) => {
                total.bytes += run.bytes;
                total.ranges += run.ranges;
            }
            None => {
                self.0.push(run);
                self.0.sort_by_key(|total| (total.kind, total.cause));
            }
        }
    }

    /// The number of bytes of all ranges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|total| total.bytes).sum()
    }

    /// The sums, ordered by kind and cause.
    #[must_use]
    pub fn rows(&self) -> &[Total] {
        &self.0
    }

    /// Whether no range is damage.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.0.iter().all(|total| total.cause.is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const SORTS: [(Kind, Option<Cause>); 7] = [
        (Kind::Record, None),
        (Kind::Record, Some(Cause::ChecksumMismatch)),
        (Kind::Chunk, None),
        (Kind::Corrupt, Some(Cause::ChecksumMismatch)),
        (Kind::Corrupt, Some(Cause::SearchLimit)),
        (Kind::TornTail, Some(Cause::SearchLimit)),
        (Kind::Unused, None),
    ];

    /// Ranges of so many bytes one behind the other; none has no bytes.
    fn pieces() -> impl Strategy<Value = Vec<(u64, (Kind, Option<Cause>))>> {
        prop::collection::vec((1..5_u64, prop::sample::select(&SORTS[..])), 0..30)
    }

    fn span(start: u64, end: u64, (kind, cause): (Kind, Option<Cause>)) -> Span {
        Span {
            start,
            end,
            kind,
            cause,
        }
    }

    /// The ranges that a ledger has of these pieces, laid from `start` on.
    fn laid(start: u64, pieces: &[(u64, (Kind, Option<Cause>))]) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut at = start;
        for &(len, sort) in pieces {
            let joins = !matches!(sort.0, Kind::Record | Kind::Chunk | Kind::Block);
            match spans.last_mut() {
                Some(last) if joins && (last.kind, last.cause) == sort => last.end += len,
                _ => spans.push(span(at, at + len, sort)),
            }
            at += len;
        }
        spans
    }

    proptest! {
        #[test]
        fn ranges_cover_and_join(start in 0..100_u64, pieces in pieces(), pauses: u32) {
            let mut tiling = Tiling::resume(start, None);
            let (mut spans, mut at) = (Vec::new(), start);
            for (place, &(len, (kind, cause))) in pieces.iter().enumerate() {
                at += len;
                tiling.cover(at, kind, cause, &mut spans);
                // What is covered already is not covered again.
                tiling.cover(at, Kind::Header, None, &mut spans);
                tiling.cover(at - 1, Kind::Header, None, &mut spans);
                prop_assert_eq!(tiling.held().is_some(), kind.joins());
                if pauses >> (place % 32) & 1 == 1 {
                    tiling = Tiling::resume(at, tiling.held());
                }
            }
            tiling.finish(&mut spans);
            prop_assert_eq!(tiling.held(), None);
            prop_assert_eq!(spans, laid(start, &pieces));
        }

        #[test]
        fn totals_are_sums(pieces in pieces(), more in pieces()) {
            let (spans, others) = (laid(0, &pieces), laid(7, &more));
            let sums = |spans: &[Span]| {
                let mut sums = BTreeMap::new();
                for span in spans {
                    let sum: &mut (u64, u64) = sums.entry((span.kind, span.cause)).or_default();
                    *sum = (sum.0 + span.end - span.start, sum.1 + 1);
                }
                let rows = sums.into_iter();
                let rows = rows.map(|((kind, cause), (bytes, ranges))| Total { kind, cause, bytes, ranges });
                rows.collect::<Vec<_>>()
            };
            let mut totals = Totals::default();
            let is_damaged = totals.add_all(&spans);
            prop_assert_eq!(is_damaged, spans.iter().any(|span| span.cause.is_some()));
            prop_assert_eq!(totals.is_sound(), !is_damaged);
            prop_assert_eq!(totals.rows(), sums(&spans));
            prop_assert_eq!(totals.bytes(), pieces.iter().map(|(len, _)| len).sum::<u64>());
            let mut single = Totals::default();
            spans.iter().for_each(|span| single.add(span));
            prop_assert_eq!(&single, &totals);
            let mut other = Totals::default();
            other.add_all(&others);
            totals.merge(&other);
            prop_assert_eq!(totals.rows(), sums(&[spans, others].concat()));
        }
    }

    #[test]
    fn records_are_ranges_of_their_own() {
        let torn = (Kind::TornTail, Some(Cause::TruncatedHeader));
        let mut tiling = Tiling::default();
        let mut spans = Vec::new();
        tiling.cover(3, torn.0, torn.1, &mut spans);
        assert_eq!(tiling.cover_run(9, 2), None, "a range is held back");
        tiling.cover_records([5, 9].into_iter(), &mut spans);
        let records = [(3, 5), (5, 9)].map(|(start, end)| span(start, end, SORTS[0]));
        assert_eq!(spans, [span(0, 3, torn), records[0], records[1]]);
        let run = tiling.cover_run(20, 4);
        let expected = RecordRun {
            start: 9,
            end: 20,
            records: 4,
        };
        assert_eq!(run, Some(expected));
        assert_eq!(expected.span(), span(9, 20, SORTS[0]));
        tiling.cover(21, Kind::Record, None, &mut spans);
        assert_eq!(spans.last(), Some(&span(20, 21, SORTS[0])));
        let mut totals = Totals::default();
        totals.add_records(&expected);
        totals.add_all(&spans);
        let row = |kind, cause, bytes, ranges| Total {
            kind,
            cause,
            bytes,
            ranges,
        };
        let rows = [row(Kind::Record, None, 18, 7), row(torn.0, torn.1, 3, 1)];
        assert_eq!(totals.rows(), rows);
    }

    #[test]
    fn a_range_that_was_cut_in_two_is_counted_once() {
        let mut totals = Totals::default();
        let cut = (Kind::Header, None);
        let spans = [span(0, 5, cut), span(5, 9, SORTS[3]), span(9, 12, cut)];
        totals.add_all(&spans);
        let before = totals.clone();
        totals.join(&span(3, 7, SORTS[4]));
        assert_eq!(totals, before, "there is none like it");
        totals.join(&span(3, 7, cut));
        let rows = totals.rows().iter();
        let rows: Vec<_> = rows.map(|row| (row.kind, row.bytes, row.ranges)).collect();
        assert_eq!(rows, [(Kind::Header, 8, 1), (Kind::Corrupt, 4, 1)]);
    }

    #[test]
    fn a_range_without_bytes_has_none() {
        assert_eq!(span(5, 9, SORTS[0]).len(), 4);
        assert_eq!(span(5, 5, SORTS[0]).len(), 0);
        assert!(!span(5, 9, SORTS[0]).is_damage());
        assert!(span(5, 9, SORTS[1]).is_damage());
    }

    #[test]
    fn joining_takes_a_range_from_its_own_kind_and_cause() {
        let sorts = [
            (Kind::Header, None),
            (Kind::Header, Some(Cause::BadMagic)),
            (Kind::Record, None),
            (Kind::Corrupt, Some(Cause::BadMagic)),
        ];
        let spans = sorts.map(|sort| span(0, 8, sort));
        for joined in &spans {
            let mut totals = Totals::default();
            totals.add_all(&spans);
            totals.join(joined);
            for total in totals.rows() {
                let is_joined = (total.kind, total.cause) == (joined.kind, joined.cause);
                assert_eq!(total.ranges, u64::from(!is_joined), "{joined:?}: {total:?}");
            }
        }
    }
}
