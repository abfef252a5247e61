//! The one loop that makes steps of what a format's scan finds.

use super::{Carry, Eof, Options, Step, Walk};
use crate::error::{Damage, Error, Result};
use crate::ledger::{RecordRun, Span};
use crate::own::Own;
use crate::record::{Checked, Rows};

/// What one advance of a [`Scan`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// There is more.
    On,
    /// The step has to end here: what comes next would push what it found out of the window, or ends the reading.
    Full,
    /// What is there so far is read, and the file is still growing.
    Wait,
    /// Nothing follows.
    End,
}

impl Eof {
    /// What an advance comes to where the file ends.
    pub(crate) const fn reached(self) -> Advance {
        match self {
            Self::Final => Advance::End,
            Self::Growing => Advance::Wait,
        }
    }
}

/// Goes through a file of one format: where next, and what stands there. [`Driver`] makes a [`Walk`] of it; what the two have in
/// common is described there.
pub(crate) trait Scan: Send {
    /// The records that a step gives.
    type Rows<'a>: Rows
    where
        Self: 'a;

    /// How the file is read.
    fn options(&self) -> &Options;

    /// Forgets what the last step found.
    ///
    /// # Errors
    /// What whoever took the last step's records ran into, who could not tell: the scan is at its end then.
    fn begin_step(&mut self) -> Result<()>;

    /// Goes on by as much as is looked at together.
    ///
    /// # Errors
    /// Those of [`Walk::step`].
    fn advance(&mut self) -> Result<Advance>;

    /// Settles what is held back, nothing following.
    fn finish(&mut self);

    /// Whether this step has found anything.
    fn has_found(&self) -> bool;

    /// Whether this step has found as much as one should. Where each advance finds much at once, that is anything.
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

    /// As [`Walk::offset`], of a scan that is at its end or not.
    fn offset(&self, ended: bool) -> u64;

    /// As [`Walk::carry`], of a scan that is at its end or not.
    fn carry(&self, ended: bool) -> Carry;

    /// As [`Walk::suspects_key`].
    fn suspects_key(&self) -> bool {
        false
    }
}

/// What ended a walk for good.
enum Failure {
    Damage(Box<Damage>),
    /// A part cannot be read by itself.
    Refused(String),
}

/// A walk: goes on with a scan until something is found, and fails again in the same way with what ended it.
pub(crate) struct Driver<S> {
    scan: S,
    ended: bool,
    /// What every step fails with from now on.
    failure: Option<Failure>,
}

impl<S: Scan> Driver<S> {
    /// Begins where the scan is.
    pub(crate) const fn new(scan: S) -> Self {
        Self::resume(scan, false)
    }

    /// Begins where the scan is, which is at its end already or not.
    pub(crate) const fn resume(scan: S, ended: bool) -> Self {
        Self {
            scan,
            ended,
            failure: None,
        }
    }

    /// The scan, with what the last step found.
    pub(crate) const fn scan(&self) -> &S {
        &self.scan
    }

    /// The same, for what takes reading.
    pub(crate) const fn scan_mut(&mut self) -> &mut S {
        &mut self.scan
    }

    fn advance(&mut self) -> Result<Advance> {
        let advance = self.scan.advance();
        match &advance {
            Err(Error::Damage(damage)) => self.failure = Some(Failure::Damage(damage.clone())),
            Err(Error::Usage(why)) => self.failure = Some(Failure::Refused(why.clone())),
            _ => {}
        }
        advance
    }
}

impl<S: Scan> Own for Driver<S> {}

impl<S: Scan> Walk for Driver<S> {
    fn step(&mut self) -> Result<Step> {
        self.scan.options().poll()?;
        if let Err(error) = self.scan.begin_step() {
            self.ended = true;
            return Err(error);
        }
        match &self.failure {
            None => {}
            Some(Failure::Damage(damage)) => return Err(Error::Damage(damage.clone())),
            Some(Failure::Refused(why)) => return Err(Error::Usage(why.clone())),
        }
        while !self.ended {
            let advance = self.advance()?;
            match advance {
                Advance::On if !self.scan.is_enough() => continue,
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

    fn carry(&self) -> Carry {
        self.scan.carry(self.ended)
    }

    fn suspects_key(&self) -> bool {
        self.scan.suspects_key()
    }
}
