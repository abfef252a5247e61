//! A file's ledger in file order.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::Result;
use crate::format::{Options, Start, Step, Walk, Wanted, open};
use crate::ledger::Span;
use crate::source::Source;

/// The ranges of a file, in file order, each once: an iterator. What an index or table of contents is worth only the walk
/// through its file shows, so files that have one are walked twice.
pub struct Ledger {
    walk: Box<dyn Walk>,
    /// Ranges that are known and not given out yet.
    ready: VecDeque<Span>,
    /// Ranges that begin before this offset were given out by the first walk.
    front_end: u64,
}

impl Ledger {
    /// Begins to read a file, whatever its damage.
    ///
    /// # Errors
    /// As [`open`], and those of a whole walk.
    pub fn new(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        let options = Options {
            strict: false,
            values: false,
            wanted: Wanted::default(),
            ..options.clone()
        };
        let mut walk = open(source.clone(), &options, Start::Beginning)?;
        let front_end = walk.front_end();
        let mut ready = VecDeque::new();
        if front_end > 0 {
            while walk.step()? == Step::More {
                let front = walk.spans().iter().filter(|span| span.start < front_end);
                ready.extend(front);
            }
            walk = open(source, &options, Start::Beginning)?;
        }
        Ok(Self {
            walk,
            ready,
            front_end,
        })
    }

    fn advance(&mut self) -> Result<Option<Span>> {
        while self.ready.is_empty() && self.walk.step()? == Step::More {
            let behind = self.walk.spans().iter();
            self.ready
                .extend(behind.filter(|span| span.start >= self.front_end));
        }
        Ok(self.ready.pop_front())
    }
}

impl Iterator for Ledger {
    type Item = Result<Span>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}
