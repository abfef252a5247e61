//! Progress of work that goes through a file several times.

use crate::error::Result;

/// Tells several passes over about as many bytes as one.
pub(super) struct Stages<'a> {
    progress: &'a mut dyn FnMut(u64) -> Result<()>,
    total: u64,
    stages: u64,
    /// How many stages are done.
    done: u64,
}

impl<'a> Stages<'a> {
    /// Work of so many stages on a file of `total` bytes.
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

    /// Tells that this stage has done `done` bytes.
    pub(super) fn tell(&mut self, done: u64) -> Result<()> {
        let share = self.total / self.stages;
        let within = done.min(self.total) / self.stages;
        (self.progress)(share.saturating_mul(self.done).saturating_add(within))
    }

    /// Goes on to the next stage.
    pub(super) const fn next(&mut self) {
        self.done += 1;
    }

    /// Tells that all is done.
    pub(super) fn finish(self) -> Result<()> {
        (self.progress)(self.total)
    }
}
