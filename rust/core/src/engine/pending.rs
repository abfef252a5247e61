//! A file that is being appended to: what its writer has not finished yet at its end is no damage.

use std::slice;
use std::sync::Arc;

use super::Format;
use super::format::{OpenWalk, Unfinished};
use crate::bug::OrBug;
use crate::error::Result;
use crate::ledger::{Kind, RecordRun, Span};
use crate::source::{Source, data_end_after};
use crate::spec::Tail;
use crate::walk::layers::{Layered, WalkLayer};
use crate::walk::{Begin, Eof, Options, Step, Walk};

/// The options to walk a file with that a writer has open, if it is to be walked to its end; `None` where no writer is known to have it open.
pub(super) fn growing(
    format: &Format,
    source: &dyn Source,
    options: &Options,
    begin: Begin<'_>,
) -> Result<Option<Options>> {
    let is_part = matches!(begin, Begin::Part(_));
    let may_grow = options.eof == Eof::Final
        && source.by_sidecar().is_none()
        && format.tail != Tail::Complete
        && source.bound().is_none();
    if is_part || !may_grow || !source.is_written()? {
        return Ok(None);
    }
    Ok(Some(options.clone().eof(Eof::Growing)))
}

/// A walk of a file that its writer has open. Where it would wait for more, it settles what it has found so far, and covers the rest.
pub(super) struct Pending {
    walk: Box<dyn Walk>,
    source: Arc<dyn Source>,
    /// Opens the file as one that is complete.
    open: OpenWalk,
    /// Whether its end is one unit that is being written, and so no damage.
    unfinished: Option<Unfinished>,
    options: Options,
    /// Where the unfinished bytes begin, once that is known.
    end: Option<u64>,
    tail: Option<Span>,
}

impl Pending {
    /// Wraps a walk that was opened with options that are [`growing`].
    pub(super) fn around(
        walk: Box<dyn Walk>,
        (open, unfinished): (OpenWalk, Option<Unfinished>),
        source: Arc<dyn Source>,
        options: &Options,
    ) -> Box<dyn Walk> {
        Box::new(Layered(Self {
            walk,
            source,
            open,
            unfinished,
            options: options.clone().eof(Eof::Final),
            end: None,
            tail: None,
        }))
    }

    /// Whether the bytes that are not finished are one unit that is being written. Anything else is damage, whoever has the file open.
    fn is_unfinished(&self, tail: &Span) -> Result<bool> {
        match self.unfinished {
            Some(unfinished) => unfinished(&*self.source, &self.options, tail),
            None => Ok(false),
        }
    }

    /// The bytes from here to the end: space that was never written to, or what is not finished.
    fn rest(&self, start: u64) -> Result<Span> {
        let data_end = data_end_after(&*self.source, start, || self.options.poll())?;
        Ok(Span {
            start,
            end: self.source.len(),
            kind: match data_end == start {
                true => Kind::Unused,
                false => Kind::Pending,
            },
            cause: None,
        })
    }
}

impl WalkLayer for Pending {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        if self.end.is_none() {
            match self.walk.step()? {
                // Nothing was given so far, and more will not make the key the right one.
                Step::Wait if self.walk.suspects_key() => {
                    self.walk =
                        (self.open)(self.source.clone(), &self.options, Begin::Beginning.into())?;
                    return self.walk.step();
                }
                Step::Wait => {
                    let tail = self.rest(self.walk.offset())?;
                    if tail.kind == Kind::Pending && !self.is_unfinished(&tail)? {
                        let carry = self
                            .walk
                            .carry()
                            .or_bug("a walk that waits to have a state")?;
                        let begin = Begin::Carry(&carry);
                        self.walk = (self.open)(self.source.clone(), &self.options, begin.into())?;
                        return self.walk.step();
                    }
                    self.end = Some(tail.start);
                }
                step => return Ok(step),
            }
            if self.walk.settle()? == Step::More {
                return Ok(Step::More);
            }
        }
        match self.end.filter(|end| *end < self.source.len()) {
            Some(end) if self.tail.is_none() => {
                self.walk.settle()?; // so that nothing is given a second time
                self.tail = Some(self.rest(end)?);
                Ok(Step::More)
            }
            _ => Ok(Step::Done),
        }
    }

    fn spans(&self) -> &[Span] {
        match &self.tail {
            Some(tail) => slice::from_ref(tail),
            None => self.walk.spans(),
        }
    }

    fn record_run(&self) -> Option<RecordRun> {
        match self.tail {
            Some(_) => None,
            None => self.walk.record_run(),
        }
    }
}
