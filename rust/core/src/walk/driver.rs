//! The one loop that turns a format's scan into steps.

use super::{Carry, Eof, Options, Settle, Step, Walk};
use crate::error::Result;
use crate::ledger::{RecordRun, Span};
use crate::record::{Checked, Rows};

/// The outcome of one advance of a [`Scan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// There may be more.
    On,
    /// The step ends here: the next advance would push this step's records out of the window, or it ends the walk.
    Full,
    /// All bytes so far are read, and the file is still growing.
    Wait,
    /// Nothing follows.
    End,
}

impl Eof {
    /// The outcome of an advance at the end of the file.
    pub(crate) const fn reached(self) -> Advance {
        match self {
            Self::Final => Advance::End,
            Self::Growing => Advance::Wait,
        }
    }
}

/// Scans a file of one format: decides where to read next and what is there. [`Driver`] makes a [`Walk`] of it. Methods
/// that both have are described in [`Walk`].
pub(crate) trait Scan: Send {
    /// The records that a step emits.
    type Rows<'a>: Rows
    where
        Self: 'a;

    /// How the file is read.
    fn options(&self) -> &Options;

    /// Forgets what the last step found.
    ///
    /// # Errors
    /// An error that reading the last step's rows ran into and could not return. The scan has ended then.
    fn begin_step(&mut self) -> Result<()>;

    /// Goes on by one unit or group of units.
    ///
    /// # Errors
    /// Those of [`Walk::step`].
    fn advance(&mut self) -> Result<Advance>;

    /// Settles pending ranges at the end of the file.
    fn finish(&mut self);

    /// Whether this step has found anything.
    fn has_found(&self) -> bool;

    /// Whether this step has found enough to end. By default, anything is enough: each advance of most scans finds much
    /// at once.
    fn is_enough(&self) -> bool {
        self.has_found()
    }

    /// As [`Walk::rows`].
    fn rows(&self) -> Self::Rows<'_>;

    /// As [`Walk::spans`].
    fn spans(&self) -> &[Span];

    /// As [`Walk::record_run`].
    fn record_run(&self) -> Option<RecordRun> {
        None
    }

    /// As [`Walk::front_end`].
    fn front_end(&self) -> u64 {
        0
    }

    /// As [`Walk::checked`].
    fn checked(&self) -> Checked;

    /// As [`Walk::offset`]. `ended` says whether the scan is at its end.
    fn offset(&self, ended: bool) -> u64;

    /// As [`Walk::carry`]. `ended` says whether the scan is at its end.
    fn carry(&self, _ended: bool) -> Option<Carry> {
        None
    }

    /// As [`Walk::suspects_key`].
    fn suspects_key(&self) -> bool {
        false
    }
}

/// A walk: advances a scan until something is found. [`Failing`](super::layers::Failing) sees to it that nobody goes on after an error.
pub(crate) struct Driver<S> {
    scan: S,
    ended: bool,
}

impl<S: Scan> Driver<S> {
    /// Begins at the scan's position.
    pub(crate) const fn new(scan: S) -> Self {
        Self::resume(scan, false)
    }

    /// Begins at the scan's position. `ended` says whether the scan is at its end already.
    pub(crate) const fn resume(scan: S, ended: bool) -> Self {
        Self { scan, ended }
    }

    /// The scan, with what the last step found.
    pub(crate) const fn scan(&self) -> &S {
        &self.scan
    }

    /// The scan, for methods that need it mutable.
    pub(crate) const fn scan_mut(&mut self) -> &mut S {
        &mut self.scan
    }
}

impl<S: Scan> Settle for Driver<S> {
    fn settle(&mut self) -> Result<Step> {
        self.scan.begin_step()?;
        self.scan.finish();
        Ok(match self.scan.has_found() {
            true => Step::More,
            false => Step::Done,
        })
    }
}

impl<S: Scan> Walk for Driver<S> {
    fn step(&mut self) -> Result<Step> {
        self.scan.options().poll()?;
        self.scan.begin_step()?;
        while !self.ended {
            let advance = self.scan.advance()?;
            match advance {
                Advance::On if !self.scan.is_enough() => {
                    // A source whose bytes change may lead a scan nowhere.
                    if !self.scan.has_found() {
                        self.scan.options().poll()?;
                    }
                    continue;
                }
                Advance::On | Advance::Full | Advance::Wait => {}
                Advance::End => {
                    self.ended = true;
                    self.scan.finish();
                }
            }
            if self.scan.has_found() {
                return Ok(Step::More);
            }
            if advance == Advance::Wait {
                return Ok(Step::Wait);
            }
        }
        Ok(Step::Done)
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(self.scan.rows())
    }

    fn spans(&self) -> &[Span] {
        self.scan.spans()
    }

    fn record_run(&self) -> Option<RecordRun> {
        self.scan.record_run()
    }

    fn front_end(&self) -> u64 {
        self.scan.front_end()
    }

    fn checked(&self) -> Checked {
        self.scan.checked()
    }

    fn offset(&self) -> u64 {
        self.scan.offset(self.ended)
    }

    fn carry(&self) -> Option<Carry> {
        self.scan.carry(self.ended)
    }

    fn suspects_key(&self) -> bool {
        self.scan.suspects_key()
    }
}
