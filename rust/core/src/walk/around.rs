//! Walks that wrap other walks. Methods that a wrapper does not change are passed on here, in one place.

use super::{Carry, Step, Walk};
use crate::error::Result;
use crate::ledger::{RecordRun, Span};
use crate::own::Own;
use crate::record::{Checked, Rows};

/// What a wrapping walk changes.
pub(crate) trait Change: Send {
    /// The wrapped walk.
    fn walk(&self) -> &dyn Walk;

    /// As [`Walk::step`].
    ///
    /// # Errors
    /// As there.
    fn step(&mut self) -> Result<Step>;

    /// As [`Walk::settle`].
    ///
    /// # Errors
    /// As there.
    fn settle(&mut self) -> Result<Step>;

    /// As [`Walk::rows`].
    fn rows(&self) -> Box<dyn Rows + '_> {
        self.walk().rows()
    }

    /// As [`Walk::spans`].
    fn spans(&self) -> &[Span] {
        self.walk().spans()
    }

    /// As [`Walk::record_run`].
    fn record_run(&self) -> Option<RecordRun> {
        self.walk().record_run()
    }
}

/// The walk that a [`Change`] makes of the wrapped one. It passes on every other method of [`Walk`], also those with a
/// default.
pub(crate) struct Around<C>(pub(crate) C);

impl<C: Change> Own for Around<C> {}

impl<C: Change> Walk for Around<C> {
    fn step(&mut self) -> Result<Step> {
        self.0.step()
    }

    fn settle(&mut self) -> Result<Step> {
        self.0.settle()
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        self.0.rows()
    }

    fn spans(&self) -> &[Span] {
        self.0.spans()
    }

    fn record_run(&self) -> Option<RecordRun> {
        self.0.record_run()
    }

    fn found_damage(&self) -> bool {
        self.0.walk().found_damage()
    }

    fn repaired(&self) -> u64 {
        self.0.walk().repaired()
    }

    fn front_end(&self) -> u64 {
        self.0.walk().front_end()
    }

    fn checked(&self) -> Checked {
        self.0.walk().checked()
    }

    fn offset(&self) -> u64 {
        self.0.walk().offset()
    }

    fn carry(&self) -> Option<Carry> {
        self.0.walk().carry()
    }

    fn suspects_key(&self) -> bool {
        self.0.walk().suspects_key()
    }
}
