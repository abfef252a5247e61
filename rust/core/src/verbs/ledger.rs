//! A file's ledger, in file order.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::Start;
use crate::error::Result;
use crate::format::open;
use crate::ledger::Span;
use crate::record::Checked;
use crate::source::Source;
use crate::walk::{Options, Step, Walk};

/// Iterates over the ranges of a file, in file order, each once. Files with an index or table of contents are walked
/// twice, because only the walk of the whole file verifies it.
pub struct Ledger {
    walk: Box<dyn Walk>,
    /// The second walk, if this is the first of two.
    second: Option<Box<dyn Walk>>,
    /// Ranges that were found and not returned yet.
    ready: VecDeque<Span>,
    /// The first walk emits the ranges before this offset, the second the others.
    front_end: u64,
    /// Whether the walk has come to those, which are its last.
    is_at_front: bool,
}

impl Ledger {
    /// Opens a file, whatever its damage.
    ///
    /// # Errors
    /// As [`open`], and those of a whole walk.
    #[doc(hidden)] // public for tests: `Reader::ledger` makes it
    pub fn new(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Self::starting(source, options, Start::Beginning)
    }

    /// The ranges of a file from `start` on.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[doc(hidden)]
    pub fn starting(source: Arc<dyn Source>, options: &Options, start: Start<'_>) -> Result<Self> {
        let options = options.for_ledger();
        let walk = open(source.clone(), &options, start)?;
        let front_end = walk.front_end();
        let second = match front_end {
            0 => None,
            _ => Some(open(source, &options, start)?),
        };
        let mut ledger = Self {
            walk,
            second,
            ready: VecDeque::new(),
            front_end,
            is_at_front: false,
        };
        ledger.fill()?;
        Ok(ledger)
    }

    /// How records are verified, as far as the file was read.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn checked(&self) -> Checked {
        self.walk.checked()
    }

    /// Finds the next ranges, if there are any.
    fn fill(&mut self) -> Result<()> {
        while self.ready.is_empty() {
            let is_first = self.second.is_some();
            if self.walk.step()? == Step::More {
                // A range of the front may reach past it, and be several if the file has a parity sidecar.
                for span in self.walk.spans() {
                    self.is_at_front |= span.start < self.front_end;
                    if self.is_at_front == is_first {
                        self.ready.push_back(*span);
                    }
                }
            } else {
                match self.second.take() {
                    Some(second) => (self.walk, self.is_at_front) = (second, false),
                    None => break,
                }
            }
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<Span>> {
        self.fill()?;
        let Some(mut span) = self.ready.pop_front() else {
            return Ok(None);
        };
        // The first walk found it, and perhaps the second what comes next.
        if self.ready.is_empty() && self.second.is_some() {
            self.fill()?;
            if let Some(next) = self.ready.front().filter(|next| span.goes_on_in(next)) {
                span.end = next.end;
                self.ready.pop_front();
            }
        }
        Ok(Some(span))
    }
}

impl Iterator for Ledger {
    type Item = Result<Span>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}
