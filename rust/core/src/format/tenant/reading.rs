//! The state that all scans share: what is read from, the position (in the table of contents, and after which good
//! block or partition), what is emitted, what the step found, and the ledger.

use super::VERSION_1;
use super::claims::Origin;
use super::emit::{Emitter, Open, has_tenant};
use super::layout::BLOCK_HEADER_BYTES;
use super::part::Progress;
use super::probe::{Checks, Input};
use super::rows::StepFindings;
use super::toc::{Entry, Table};
use crate::error::Result;
use crate::ledger::Cause;
use crate::walk::indexed::Ranges;

pub(super) struct Position {
    pub(super) table: Table,
    /// Whether each entry is read by itself, at its offset, regardless of what is before.
    pub(super) is_pruned: bool,
    /// Where the last good block (version 1: partition) ends. Before the first: where the number of partitions
    /// ends, if known.
    pub(super) end: Option<u64>,
    /// Its entry. The next one's partition and tenant must be greater.
    pub(super) last: Option<Entry>,
    /// Whether the search budget is used up.
    pub(super) is_limited: bool,
}

impl Position {
    pub(super) const fn new(table: Table, is_pruned: bool, end: Option<u64>) -> Self {
        Self {
            table,
            is_pruned,
            end,
            last: None,
            is_limited: false,
        }
    }

    /// Continues after a good block or partition that ends at `end`. In a pruned walk, what is before the next
    /// one does not matter.
    pub(super) fn go_past(&mut self, end: u64, last: Entry) {
        self.end = Some(end);
        if !self.is_pruned {
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
}

/// A partition whose blocks are being read.
#[derive(Clone, Debug)]
pub(super) struct OpenPartition {
    pub(super) partition: u32,
    /// Where the next block begins, and how many are left from there on.
    pub(super) at: u64,
    pub(super) left: u32,
    /// Where the last of them ends.
    pub(super) end: u64,
    /// Its entry, if the file was cut inside the partition.
    pub(super) cut: Option<u64>,
}

pub(super) struct ScanState {
    pub(super) input: Input,
    pub(super) place: Position,
    pub(super) emitter: Emitter,
    pub(super) found: StepFindings,
    pub(super) ranges: Ranges<Origin>,
    /// The part that is read, and the progress in it.
    pub(super) part: Option<Progress>,
    /// Version 1: the partition whose blocks are being read.
    pub(super) partition: Option<OpenPartition>,
}

impl ScanState {
    /// Creates the state before anything is read. The first range of the data begins at `at`.
    pub(super) fn new(input: Input, place: Position, at: u64) -> Self {
        Self {
            emitter: Emitter::new(&input.options.filter),
            found: StepFindings::default(),
            ranges: Ranges::new(input.front.fields(), at),
            part: None,
            partition: None,
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
    pub(super) fn commit_block(&mut self, block: Entry, end: u64, checks: Checks) -> Result<bool> {
        let from = self.emitter.from;
        if from.is_some_and(|from| (block.offset..end).contains(&from)) {
            // Reading begins in it.
            self.ranges = Ranges::new(None, block.offset);
        }
        let (filter, source) = (&self.emitter.filter, &*self.input.source);
        let is_emitted = block.messages > 0
            && !self.found.is_silent
            && from.is_none_or(|from| end > from)
            && has_tenant(filter, source, block.partition, &block.tenant)?;
        if is_emitted {
            let open = Open {
                block: block.fields,
                end,
                next: 0,
                position: block.offset + BLOCK_HEADER_BYTES + u64::from(block.tenant_len),
                crc: (self.input.front.version != VERSION_1).then_some(block.crc),
            };
            self.emitter.begin(open, checks);
        }
        self.found.add_block(block);
        Ok(is_emitted)
    }
}
