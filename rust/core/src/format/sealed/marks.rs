//! What is wrong with entries of the index, as runs of neighbours with the same cause.

use serde::{Deserialize, Serialize};

use crate::ledger::Cause;

/// Neighbouring entries with the same cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    /// The number of the first.
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) cause: Cause,
}

impl Run {
    /// The number behind the last.
    pub(super) const fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

/// Runs in the order of the index: what is noted of an index is never larger than the index itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    /// Adds entries behind those that are there.
    pub(super) fn push(&mut self, run: Run) {
        match self.0.last_mut() {
            Some(last) if last.cause == run.cause && last.end() == run.first => {
                last.count = last.count.saturating_add(run.count);
            }
            _ => self.0.push(run),
        }
    }

    pub(super) fn as_slice(&self) -> &[Run] {
        &self.0
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them are entries from `from` on and below `until`, in order.
    pub(super) fn lie_within(&self, from: u64, until: u64) -> bool {
        let in_order = self.0.windows(2).all(|pair| match pair {
            [one, next] => one.end() <= next.first,
            _ => true,
        });
        let ends = self.0.first().zip(self.0.last());
        in_order && ends.is_none_or(|(first, last)| from <= first.first && last.end() <= until)
    }
}
