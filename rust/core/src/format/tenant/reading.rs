//! What all scans share, as one value: what is read from, where that stands, what is given out, what the step found, and what was
//! laid.

use super::block::Name;
use super::found::Found;
use super::give::Giver;
use super::position::Position;
use super::probe::Input;
use super::ranges::Ranges;
use super::toc::Entry;
use crate::error::Result;

pub(super) struct Reading {
    pub(super) input: Input,
    pub(super) place: Position,
    pub(super) giver: Giver,
    pub(super) found: Found,
    pub(super) ranges: Ranges,
}

impl Reading {
    /// Nothing is read yet; the first range of the data begins at `at`.
    pub(super) fn new(input: Input, place: Position, at: u64) -> Self {
        Self {
            giver: Giver::new(&input.options.wanted),
            found: Found::default(),
            ranges: Ranges::new(&input.front, at),
            place,
            input,
        }
    }

    /// The entry that comes next.
    pub(super) fn peek(&mut self) -> Result<Option<&Entry>> {
        self.place.table.entries.peek(&*self.input.source)
    }

    /// Whether the rows that were found lie in the window, so that it has to stay where it is.
    pub(super) const fn is_held(&self) -> bool {
        !self.found.messages.is_empty()
    }

    /// Whether records of this partition and tenant are wanted.
    pub(super) fn wants(&self, partition: u32, tenant: &Name) -> Result<bool> {
        let source = &*self.input.source;
        self.giver.wanted.has(source, partition, tenant)
    }
}
