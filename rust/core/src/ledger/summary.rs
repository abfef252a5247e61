//! Sums over the records and ranges of a walk, and of several walks of one file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Kind, RecordRun, Span};
use crate::bug::OrBug;
use crate::os_paths as paths;
use crate::record::{Checked, Rows};
use crate::words::Cause;

/// A summary of a file, or of the part of it that was read: sums, and the first damaged ranges.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The file, if it has a name.
    #[serde(with = "paths")]
    pub path: Option<PathBuf>,
    /// How records were checked.
    pub checked: Checked,
    /// The length of the whole file, in bytes.
    pub size: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// The number of sound records.
    pub records: u64,
    /// The number of records with bytes that a parity sidecar restores. They are among the sound ones only if that was
    /// asked for ([`Options::repair`](crate::Options::repair)).
    pub repaired: u64,
    /// The least time of an emitted record, in microseconds since 1970-01-01 UTC.
    pub first_timestamp: Option<i64>,
    /// The greatest time of an emitted record, in the same unit.
    pub last_timestamp: Option<i64>,
    /// Bytes and number of ranges by kind and cause.
    pub totals: Totals,
    /// The first [`MAX_DAMAGE`](Self::MAX_DAMAGE) damaged ranges, in file order.
    pub damage: Vec<Span>,
    /// Whether there are more damaged ranges than `damage` lists. `totals` include all of them.
    pub truncated: bool,
    suspects_key: bool,
    covered: Covered,
}

impl Summary {
    /// The most damaged ranges that a summary lists.
    pub const MAX_DAMAGE: usize = 10_000;

    /// An empty summary of a file of `size` bytes.
    #[must_use]
    #[doc(hidden)]
    pub fn new(checked: Checked, path: Option<&Path>, size: u64) -> Self {
        Self {
            path: path.map(Into::into),
            checked,
            size,
            bytes: 0,
            records: 0,
            repaired: 0,
            first_timestamp: None,
            last_timestamp: None,
            totals: Totals::default(),
            damage: Vec::new(),
            truncated: false,
            suspects_key: false,
            covered: Covered::default(),
        }
    }

    /// Adds a walk's step: its ranges, as a run if they are one, and its sound records.
    #[doc(hidden)]
    pub fn add(&mut self, run: Option<&RecordRun>, spans: &[Span], rows: &dyn Rows) {
        if let Some(run) = run {
            self.covered.extend(&[run.span()]);
            self.totals.add_records(run);
        } else {
            self.covered.extend(spans);
            if self.totals.add_all(spans) {
                for span in spans.iter().filter(|span| span.is_damage()) {
                    self.name(*span);
                }
            }
        }
        self.bytes = self.totals.bytes();
        self.records += rows.len() as u64;
        let (least, greatest) = rows.times().unzip();
        self.widen(least, greatest);
    }

    /// Sets what applies to everything read: how records are checked, and whether the key is probably wrong.
    #[doc(hidden)]
    pub const fn note(&mut self, checked: Checked, suspects_key: bool) {
        self.checked = checked;
        self.suspects_key = suspects_key;
    }

    /// Adds the summary of another [part](crate::format::Part) of the same file. The summaries of all parts, in any
    /// order, add up to that of the whole file.
    #[doc(hidden)]
    pub fn merge(&mut self, part: &Self) {
        self.records += part.records;
        self.repaired += part.repaired;
        self.widen(part.first_timestamp, part.last_timestamp);
        self.totals.merge(&part.totals);
        self.truncated |= part.truncated;
        self.join(&part.covered, &part.damage);
        self.bytes = self.totals.bytes();
        self.checked = part.checked;
        self.suspects_key |= part.suspects_key;
    }

    /// Ends a walk: it emits the ranges of an index or table of contents last, and the last of them may go on with its first.
    pub(crate) fn close(&mut self) {
        self.join(&Covered::default(), &[]);
    }

    /// Adds what was read elsewhere and is damaged there: where two ranges meet, two spans may be one.
    fn join(&mut self, covered: &Covered, damage: &[Span]) {
        let joined = self.covered.merge(covered);
        joined.iter().for_each(|span| self.totals.join(span));
        let is_whole = |span: &&Span| {
            let holds = |one: &Span| one.start <= span.start && span.end <= one.end;
            !joined.iter().any(holds)
        };
        self.damage.retain(|span| is_whole(&span));
        // The two halves of a merged range are left out, so that they do not use two places of a full list.
        for span in damage.iter().filter(is_whole).chain(&joined) {
            if span.is_damage() {
                self.name(*span);
            }
        }
    }

    /// Extends the range of times.
    fn widen(&mut self, least: Option<i64>, greatest: Option<i64>) {
        let first = self.first_timestamp.into_iter().chain(least);
        self.first_timestamp = first.min();
        self.last_timestamp = self.last_timestamp.max(greatest);
    }

    /// Lists a damaged range at its place. Ranges of an index come last although they are first in the file.
    fn name(&mut self, span: Span) {
        let is_last = self
            .damage
            .last()
            .is_none_or(|last| (last.start, last.end) <= (span.start, span.end));
        let place = if is_last {
            self.damage.len()
        } else {
            let before = |named: &Span| (named.start, named.end) <= (span.start, span.end);
            self.damage.partition_point(before)
        };
        self.truncated |= self.damage.len() == Self::MAX_DAMAGE;
        if place < Self::MAX_DAMAGE {
            self.damage.truncate(Self::MAX_DAMAGE - 1);
            self.damage.insert(place, span);
        }
    }

    /// Whether no range is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.totals.is_sound()
    }

    /// Whether no record was verified although the structure is sound to the end: the key is probably not the file's.
    #[must_use]
    pub const fn wrong_key(&self) -> bool {
        self.suspects_key
    }
}

/// The sum of ranges of one kind and cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Total {
    /// The kind of the ranges.
    pub kind: Kind,
    /// The cause of their damage, if they are damaged.
    pub cause: Option<Cause>,
    /// Their total bytes.
    pub bytes: u64,
    /// The number of ranges.
    pub ranges: u64,
}

/// Sums over a ledger by kind and cause: a few rows, however long the file is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Totals(Vec<Total>);

impl Totals {
    /// Adds one range.
    #[doc(hidden)]
    pub fn add(&mut self, span: &Span) {
        self.add_all(std::slice::from_ref(span));
    }

    /// Adds ranges. Returns whether any is damaged.
    #[doc(hidden)]
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
            spans = spans
                .get(ranges..)
                .or_bug_default("no more ranges than there are");
        }
        damaged
    }

    /// Adds records, each of which is a range.
    #[doc(hidden)]
    pub fn add_records(&mut self, run: &RecordRun) {
        let span = run.span();
        self.add_run(Total {
            kind: span.kind,
            cause: span.cause,
            bytes: span.len(),
            ranges: run.records,
        });
    }

    /// Adds the sums over another range of the file.
    fn merge(&mut self, other: &Self) {
        for run in &other.0 {
            self.add_run(*run);
        }
    }

    /// Subtracts one range: two adjacent ranges of the kind and cause of `span` are merged.
    fn join(&mut self, span: &Span) {
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

    /// The total bytes of all ranges.
    #[doc(hidden)] // public for tests: the summary has it
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|total| total.bytes).sum()
    }

    /// The sums, ordered by kind and cause.
    #[must_use]
    pub fn rows(&self) -> &[Total] {
        &self.0
    }

    /// Whether no range is damaged.
    #[must_use]
    fn is_sound(&self) -> bool {
        self.0.iter().all(|total| total.cause.is_none())
    }
}

/// A range with spans in file order. A pruned walk leaves gaps in it, and no other part reads those either.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CoveredRange {
    first: Span,
    last: Span,
}

/// Ranges that were read: of one walk in the order in which it read them, of several walks in file order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Covered(Vec<CoveredRange>);

impl Covered {
    /// Adds the next spans of a walk.
    fn extend(&mut self, spans: &[Span]) {
        for run in spans.chunk_by(|span, next| span.end <= next.start) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                continue;
            };
            match self.0.last_mut() {
                Some(range) if range.last.end <= first.start => range.last = *last,
                _ => self.0.push(CoveredRange {
                    first: *first,
                    last: *last,
                }),
            }
        }
    }

    /// Adds the ranges of a walk of another part of the file. Returns the spans that were merged from two.
    fn merge(&mut self, other: &Self) -> Vec<Span> {
        let mut all = std::mem::take(&mut self.0);
        all.extend_from_slice(&other.0);
        all.sort_by_key(|range| range.first.start);
        let mut joined = Vec::new();
        for next in all {
            match self.0.last_mut() {
                Some(last) if last.last.end == next.first.start => {
                    joined.extend(last.append(&next))
                }
                _ => self.0.push(next),
            }
        }
        joined
    }
}

impl CoveredRange {
    /// Adds the range after this one. If its first span and the last one here are one, returns the merged span.
    fn append(&mut self, next: &Self) -> Option<Span> {
        let (before, behind) = (self.last, next.first);
        if !before.goes_on_in(&behind) {
            self.last = next.last;
            return None;
        }
        let span = Span {
            end: behind.end,
            ..before
        };
        if self.first == before {
            self.first = span;
        }
        self.last = if next.last == behind { span } else { next.last };
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::ledger::Tiling;

    const SORTS: [(Kind, Option<Cause>); 7] = [
        (Kind::Record, None),
        (Kind::Record, Some(Cause::ChecksumMismatch)),
        (Kind::Chunk, None),
        (Kind::Corrupt, Some(Cause::ChecksumMismatch)),
        (Kind::Corrupt, Some(Cause::SearchLimit)),
        (Kind::TornTail, Some(Cause::SearchLimit)),
        (Kind::Unused, None),
    ];

    /// Adjacent ranges of so many bytes; some are empty.
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

    /// The ledger's ranges for these pieces, from `start` on.
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
                // Covered bytes are not covered again.
                tiling.cover(at, Kind::Header, None, &mut spans);
                tiling.cover(at - 1, Kind::Header, None, &mut spans);
                prop_assert_eq!(tiling.pending().is_some(), kind.joins());
                if pauses >> (place % 32) & 1 == 1 {
                    tiling = Tiling::resume(at, tiling.pending());
                }
            }
            tiling.finish(&mut spans);
            prop_assert_eq!(tiling.pending(), None);
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
        assert_eq!(tiling.cover_run(9, 2), None, "a range is pending");
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
