//! Ranges laid end to end.

use super::{Kind, RecordRun, Span};
use crate::cause::Cause;

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
