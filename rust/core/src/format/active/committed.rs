//! The ledger ranges that a step commits.

use std::sync::OnceLock;

use super::group::{Extent, end_of};
use crate::ledger::{Cause, Kind, RecordRun, Span, Tiling};

/// The ledger ranges that a step commits, and the pending one. If they are a whole group of records, as they
/// nearly always are, they are built only on request.
#[derive(Debug)]
pub(super) struct Committed {
    tiling: Tiling,
    spans: Vec<Span>,
    run: Option<RecordRun>,
    run_spans: OnceLock<Vec<Span>>,
}

impl Committed {
    /// Resumes at `offset`, where the pending range `pending` ends.
    pub(super) const fn resume(offset: u64, pending: Option<Span>) -> Self {
        Self {
            tiling: Tiling::resume(offset, pending),
            spans: Vec::new(),
            run: None,
            run_spans: OnceLock::new(),
        }
    }

    /// Drops the ranges of the last step.
    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.run = None;
        self.run_spans.take();
    }

    /// Whether no range is committed.
    pub(super) const fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.run.is_none()
    }

    /// The pending range, which may still grow.
    pub(super) const fn pending(&self) -> Option<Span> {
        self.tiling.pending()
    }

    /// Covers the bytes up to `end`.
    pub(super) fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
    }

    /// Covers a step's adjacent records, whose positions are relative to `base`.
    pub(super) fn cover_records(&mut self, base: u64, records: &[Extent]) {
        self.tiling
            .cover_records(ends(base, records), &mut self.spans);
    }

    /// The same, for records that stay unchanged until the next step.
    pub(super) fn cover_run(&mut self, base: u64, records: &[Extent]) {
        let end = records
            .last()
            .map_or(base, |last| base + end_of(last) as u64);
        self.run = self.tiling.cover_run(end, records.len() as u64);
        if self.run.is_none() {
            self.cover_records(base, records);
        }
    }

    /// Commits the pending range.
    pub(super) fn finish(&mut self) {
        self.tiling.finish(&mut self.spans);
    }

    /// The committed ranges of a step with these records.
    pub(super) fn spans(&self, base: u64, records: &[Extent]) -> &[Span] {
        let Some(run) = self.run else {
            return &self.spans;
        };
        self.run_spans.get_or_init(|| {
            let mut spans = Vec::with_capacity(records.len());
            Tiling::resume(run.start, None).cover_records(ends(base, records), &mut spans);
            spans
        })
    }

    /// The committed records, if they are one group.
    pub(super) const fn run(&self) -> Option<RecordRun> {
        self.run
    }
}

/// Where the records end. Their positions are relative to `base`.
fn ends(base: u64, records: &[Extent]) -> impl Iterator<Item = u64> {
    records
        .iter()
        .map(move |record| base + end_of(record) as u64)
}
