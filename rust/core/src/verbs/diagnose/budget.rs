//! How much may be tried.

use crate::engine::suspect::{Suspect, Trial};

/// What the trials of one suspect may take, in bytes hashed or decoded: all bits of a record of 4 KiB take half of it.
const SUSPECT_BYTES: u64 = 256 << 20;

/// What a trial costs at least, in bytes.
const LEAST_WORK: u64 = 32;

/// Bytes that may still be hashed or decoded in trials.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    /// What of that is for the suspect at hand.
    share: u64,
}

impl Budget {
    pub(super) const fn new(left: u64) -> Self {
        Self { left, share: 0 }
    }

    /// Begins with another suspect.
    pub(super) fn begin(&mut self) {
        self.share = SUSPECT_BYTES.min(self.left);
    }

    /// Tries bytes; `None` where nothing more may be tried.
    pub(super) fn attempt(&mut self, suspect: &mut Suspect, bytes: &[u8]) -> Option<Trial> {
        if !self.is_left() {
            return None;
        }
        let trial = (suspect.check)(bytes);
        self.spend(trial);
        Some(trial)
    }

    /// Whether more may be tried.
    pub(super) const fn is_left(&self) -> bool {
        self.share > 0
    }

    /// Counts the work of one trial. One that ends at once is not free either.
    pub(super) fn spend(&mut self, trial: Trial) {
        let work = trial.work.max(LEAST_WORK);
        self.left = self.left.saturating_sub(work);
        self.share = self.share.saturating_sub(work);
    }

    /// Takes so much at once, if it is left.
    pub(super) const fn afford(&mut self, work: u64) -> bool {
        let affordable = work <= self.left;
        if affordable {
            self.left -= work;
        }
        affordable
    }

    /// Whether nothing more may be tried at all.
    pub(super) const fn is_spent(&self) -> bool {
        self.left == 0
    }
}
