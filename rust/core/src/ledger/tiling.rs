//! Adjacent ranges.

use serde::{Deserialize, Serialize};

use super::{Kind, RecordRun, Span};
use crate::cause::Cause;

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

/// A range with spans in file order. A pruned walk leaves gaps in it, and no other part reads those either.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CoveredRange {
    first: Span,
    last: Span,
}

/// Ranges that were read: of one walk in the order in which it read them, of several walks in file order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Covered(Vec<CoveredRange>);

impl Covered {
    /// Adds the next spans of a walk.
    pub(crate) fn extend(&mut self, spans: &[Span]) {
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
    pub(crate) fn merge(&mut self, other: &Self) -> Vec<Span> {
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
