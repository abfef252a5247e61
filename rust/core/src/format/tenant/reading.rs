//! The state that all scans share: what is read from, the position (in the table of contents, and after which good
//! block or partition), what is emitted, what the step found, and the ledger.

use super::VERSION_1;
use super::claims::Origin;
use super::emit::{Emitter, Open, has_tenant};
use super::layout::{BLOCK_HEADER_BYTES, Name, TocEntry};
use super::probe::{Checks, Input};
use super::rows::{GoodBlock, StepFindings};
use super::toc::{Entry, Table};
use crate::error::Result;
use crate::ledger::Cause;
use crate::walk::indexed::Ranges;

/// Where blocks and partitions are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchScope {
    /// At their entries' offsets, regardless of what is before.
    LockedFile,
    /// Also after the last good one.
    AfterLast,
}

pub(super) struct Position {
    pub(super) table: Table,
    pub(super) reach: SearchScope,
    /// Where the last good block (version 1: partition) ends. Before the first: where the number of partitions
    /// ends, if known.
    pub(super) end: Option<u64>,
    /// Its partition and tenant. The next one's must be greater. Version 1: the tenant is empty.
    pub(super) last: Option<(u32, Name)>,
    /// Whether the search budget is used up.
    pub(super) is_limited: bool,
}

impl Position {
    pub(super) const fn new(table: Table, reach: SearchScope, end: Option<u64>) -> Self {
        Self {
            table,
            reach,
            end,
            last: None,
            is_limited: false,
        }
    }

    /// Continues after a good block or partition that ends at `end`. In place, what is before the next one does
    /// not matter.
    pub(super) fn go_past(&mut self, end: u64, last: (u32, Name)) {
        self.end = Some(end);
        if self.reach == SearchScope::AfterLast {
            self.last = Some(last);
        }
    }

    /// Where the last good block ends. 0 before the first.
    pub(super) fn good_end(&self) -> u64 {
        match (&self.last, self.end) {
            (Some(_), Some(end)) => end,
            _ => 0,
        }
    }

    /// The last good partition's ID.
    pub(super) fn last_id(&self) -> Option<u32> {
        self.last.as_ref().map(|(partition, _)| *partition)
    }
}

pub(super) struct ScanState {
    pub(super) input: Input,
    pub(super) place: Position,
    pub(super) emitter: Emitter,
    pub(super) found: StepFindings,
    pub(super) ranges: Ranges<Origin>,
}

impl ScanState {
    /// Creates the state before anything is read. The first range of the data begins at `at`.
    pub(super) fn new(input: Input, place: Position, at: u64) -> Self {
        Self {
            emitter: Emitter::new(&input.options.filter),
            found: StepFindings::default(),
            ranges: Ranges::new(input.front.fields(), at),
            place,
            input,
        }
    }

    /// The next entry.
    pub(super) fn peek(&mut self) -> Result<Option<&Entry>> {
        self.place.table.entries.peek(&*self.input.source)
    }

    /// Marks damaged entries, of which the first is at `start`.
    pub(super) fn mark(&mut self, start: u64, end: u64, cause: Cause) {
        let origin = Origin::Entry(start);
        self.ranges.mark(start, end, cause, origin);
    }

    /// Whether this many bytes may be tried in vain. If not, the search ends.
    pub(super) fn affords(&mut self, bytes: u64) -> bool {
        let affords = self.input.affords(bytes);
        self.place.is_limited |= !affords;
        affords
    }

    /// Whether the rows that were found lie in the window, so that it must not move.
    pub(super) const fn is_held(&self) -> bool {
        !self.found.messages.is_empty()
    }

    /// Commits a good block, which ends at `end` at the latest. Its messages are emitted next if they match.
    /// `false` if not.
    pub(super) fn commit_block(
        &mut self,
        tenant: &Name,
        entry: TocEntry,
        end: u64,
        checks: Checks,
    ) -> Result<bool> {
        self.found.add_block(|| GoodBlock {
            tenant: tenant.clone(),
            entry,
        });
        let from = self.emitter.from;
        if from.is_some_and(|from| (entry.offset..end).contains(&from)) {
            // Reading begins in it.
            self.ranges = Ranges::new(None, entry.offset);
        }
        let is_given = entry.messages > 0 && !self.found.is_silent;
        let (filter, source) = (&self.emitter.filter, &*self.input.source);
        if !is_given
            || from.is_some_and(|from| end <= from)
            || !has_tenant(filter, source, entry.partition, tenant)?
        {
            return Ok(false);
        }
        let open = Open {
            block: entry,
            end,
            next: 0,
            position: entry.offset + BLOCK_HEADER_BYTES + u64::from(entry.tenant_len),
            crc: (self.input.front.version != VERSION_1).then_some(entry.crc),
        };
        self.emitter.begin(open, checks);
        Ok(true)
    }
}
