//! The ranges that a step settles.

use std::sync::OnceLock;

use super::group::{Extent, end_of};
use crate::ledger::{Cause, Kind, RecordRun, Span, Tiling};

/// The ranges that a step settles, and the one that is held back. Where they are those of a whole group of records, which they
/// nearly always are, they are not made before someone asks for them.
#[derive(Debug)]
pub(super) struct Settled {
    tiling: Tiling,
    spans: Vec<Span>,
    run: Option<RecordRun>,
    run_spans: OnceLock<Vec<Span>>,
}

impl Settled {
    /// Goes on at `offset`, up to which `held` may reach.
    pub(super) const fn resume(offset: u64, held: Option<Span>) -> Self {
        Self {
            tiling: Tiling::resume(offset, held),
            spans: Vec::new(),
            run: None,
            run_spans: OnceLock::new(),
        }
    }

    /// Forgets what the last step settled.
    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.run = None;
        self.run_spans.take();
    }

    /// Whether nothing is settled.
    pub(super) const fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.run.is_none()
    }

    /// The range that is held back.
    pub(super) const fn held(&self) -> Option<Span> {
        self.tiling.held()
    }

    /// Covers the bytes up to `end`.
    pub(super) fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
    }

    /// Covers a step's records, whose places count from `base`, one behind the other.
    pub(super) fn cover_records(&mut self, base: u64, records: &[Extent]) {
        self.tiling
            .cover_records(ends(base, records), &mut self.spans);
    }

    /// Likewise, of records that stay as they are until the next step.
    pub(super) fn cover_run(&mut self, base: u64, records: &[Extent]) {
        let end = records
            .last()
            .map_or(base, |last| base + end_of(last) as u64);
        self.run = self.tiling.cover_run(end, records.len() as u64);
        if self.run.is_none() {
            self.cover_records(base, records);
        }
    }

    /// Settles what was held back.
    pub(super) fn finish(&mut self) {
        self.tiling.finish(&mut self.spans);
    }

    /// What is settled, of a step with these records.
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

    /// What is settled, if it is a group of records.
    pub(super) const fn run(&self) -> Option<RecordRun> {
        self.run
    }
}

/// Where records end whose places count from `base`.
fn ends(base: u64, records: &[Extent]) -> impl Iterator<Item = u64> {
    records
        .iter()
        .map(move |record| base + end_of(record) as u64)
}
