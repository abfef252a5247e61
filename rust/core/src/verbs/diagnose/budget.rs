//! Limits how much is tried.

use crate::engine::candidate::{Candidate, Trial};

/// The most work for one candidate, in bytes hashed or decoded. All bits of a record of 4 KiB take half of it.
const SUSPECT_BYTES: u64 = 256 << 20;

/// The least cost of a trial, in bytes.
const LEAST_WORK: u64 = 32;

/// How many bytes may still be hashed or decoded in trials.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    /// How many of them the current candidate may use.
    share: u64,
}

impl Budget {
    pub(super) const fn new(left: u64) -> Self {
        Self { left, share: 0 }
    }

    /// Begins with another candidate.
    pub(super) fn begin(&mut self) {
        self.share = SUSPECT_BYTES.min(self.left);
    }

    /// Tries bytes; `None` if the budget is exhausted.
    pub(super) fn attempt(&mut self, candidate: &mut Candidate, bytes: &[u8]) -> Option<Trial> {
        if !self.is_left() {
            return None;
        }
        let trial = (candidate.check)(bytes);
        self.spend(trial);
        Some(trial)
    }

    /// Whether more may be tried.
    pub(super) const fn is_left(&self) -> bool {
        self.share > 0
    }

    /// Subtracts the work of one trial, and at least the minimum.
    pub(super) fn spend(&mut self, trial: Trial) {
        let work = trial.work.max(LEAST_WORK);
        self.left = self.left.saturating_sub(work);
        self.share = self.share.saturating_sub(work);
    }

    /// Whether `work` is left.
    pub(super) const fn affords(&self, work: u64) -> bool {
        work <= self.left
    }

    /// Subtracts `work`, if that much is left.
    pub(super) const fn afford(&mut self, work: u64) -> bool {
        let affordable = self.affords(work);
        if affordable {
            self.left -= work;
        }
        affordable
    }

    /// Whether the whole budget is exhausted.
    pub(super) const fn is_spent(&self) -> bool {
        self.left == 0
    }
}
