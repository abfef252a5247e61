//! What all scans share, as one value: what is read from, where that stands, what is given out, what the step found, and what was
//! laid.

use super::VERSION_1;
use super::block::{BLOCK_HEADER_BYTES, Name};
use super::found::{Found, Kept};
use super::give::{Giver, Open};
use super::layout::TocEntry;
use super::position::Position;
use super::probe::{Checks, Input};
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

    /// Whether so many bytes may be tried in vain. If not, the search ends.
    pub(super) fn affords(&mut self, bytes: u64) -> bool {
        let affords = self.input.affords(bytes);
        self.place.is_limited |= !affords;
        affords
    }

    /// Whether the rows that were found lie in the window, so that it has to stay where it is.
    pub(super) const fn is_held(&self) -> bool {
        !self.found.messages.is_empty()
    }

    /// Takes in a good block, which ends at `end` at the latest: its messages are given out next if they are wanted. `false` if not.
    pub(super) fn keep(
        &mut self,
        tenant: &Name,
        entry: TocEntry,
        end: u64,
        checks: Checks,
    ) -> Result<bool> {
        self.found.keep(|| Kept {
            tenant: tenant.clone(),
            entry,
        });
        let is_given = entry.messages > 0 && !self.found.is_silent;
        if !is_given || !self.wants(entry.partition, tenant)? {
            return Ok(false);
        }
        let open = Open {
            at: entry.offset,
            end,
            partition: entry.partition,
            messages: entry.messages,
            tenant_len: entry.tenant_len,
            next: 0,
            position: entry.offset + BLOCK_HEADER_BYTES + u64::from(entry.tenant_len),
            crc: (self.input.front.version != VERSION_1).then_some(entry.crc),
        };
        self.giver.begin(open, checks);
        Ok(true)
    }

    /// Whether records of this partition and tenant are wanted.
    pub(super) fn wants(&self, partition: u32, tenant: &Name) -> Result<bool> {
        let source = &*self.input.source;
        self.giver.wanted.has(source, partition, tenant)
    }
}
