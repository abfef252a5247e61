//! Sums over a ledger.

use serde::{Deserialize, Serialize};

use super::{Kind, RecordRun, Span};
use crate::bug::OrBug;
use crate::cause::Cause;

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
    pub(crate) fn merge(&mut self, other: &Self) {
        for run in &other.0 {
            self.add_run(*run);
        }
    }

    /// Subtracts one range: two adjacent ranges of the kind and cause of `span` are merged.
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
    pub(crate) fn is_sound(&self) -> bool {
        self.0.iter().all(|total| total.cause.is_none())
    }
}
