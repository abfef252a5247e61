//! Progress of work that reads a file several times.

use crate::error::Result;

/// Reports the progress of several passes, of about as many bytes each, as one number.
pub(super) struct Stages<'a> {
    progress: &'a mut dyn FnMut(u64) -> Result<()>,
    total: u64,
    stages: u64,
    /// How many stages are done.
    done: u64,
}

impl<'a> Stages<'a> {
    /// Work of `count` stages on a file of `total` bytes.
    pub(super) fn new(
        total: u64,
        stages: u64,
        progress: &'a mut dyn FnMut(u64) -> Result<()>,
    ) -> Self {
        Self {
            progress,
            total,
            stages,
            done: 0,
        }
    }

    /// Reports that this stage has done `done` bytes.
    pub(super) fn tell(&mut self, done: u64) -> Result<()> {
        let share = self.total / self.stages;
        let within = done.min(self.total) / self.stages;
        (self.progress)(share.saturating_mul(self.done).saturating_add(within))
    }

    /// Goes on to the next stage.
    pub(super) const fn next(&mut self) {
        self.done += 1;
    }

    /// Reports that all stages are done.
    pub(super) fn finish(self) -> Result<()> {
        (self.progress)(self.total)
    }
}
