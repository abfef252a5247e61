//! Adjacent ranges.

use super::{Kind, RecordRun, Span};
use crate::cause::Cause;

/// Makes adjacent ranges. Each call says only where the next range ends, so they cover the file exactly by
/// construction. Adjacent ranges of the same kind and cause are merged, except records, chunks and blocks.
#[derive(Debug, Default)]
pub(crate) struct Tiling {
    end: u64,
    held: Option<Span>,
}

impl Tiling {
    /// Resumes at `offset`. A pending range may end there.
    pub(crate) const fn resume(offset: u64, held: Option<Span>) -> Self {
        Self { end: offset, held }
    }

    /// The pending range, which the next bytes may extend.
    pub(crate) const fn held(&self) -> Option<Span> {
        self.held
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
            out.extend(self.held.take());
            out.push(span);
            return;
        }
        match &mut self.held {
            Some(held) if held.kind == kind && held.cause == cause => held.end = end,
            held => out.extend(held.replace(span)),
        }
    }

    /// Covers adjacent records that end at these ascending offsets.
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

    /// As [`cover_records`](Self::cover_records), for `records` records up to `end`. Returns `None`, without covering
    /// them, if a range before them is pending.
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

    /// Appends the pending range, which is complete now.
    pub(crate) fn finish(&mut self, out: &mut Vec<Span>) {
        out.extend(self.held.take());
    }
}
