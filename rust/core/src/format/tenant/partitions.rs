//! The scan of version 1: its unit is the partition (rules 24 and 25), whose blocks are then read in turn.

use super::block::BLOCK_HEADER_BYTES;
use super::claims::Origin;
use super::front::COUNT_BYTES;
use super::judge::{Fault, GoodPartition};
use super::layout::TocEntry;
use super::partition_search::{PartitionSearch, Verdict};
use super::probe::{Checks, Decoded};
use super::reading::ScanState;
use super::toc::{Entry, V1_ENTRY_BYTES};
use crate::bug::OrBug;
use crate::error::Result;
use crate::ledger::{Cause, Kind, whole_kind};
use crate::walk::Advance;
use crate::walk::indexed::{Note, Notes, Place};

/// A partition whose blocks are being read.
#[derive(Clone, Debug)]
pub(super) struct OpenPartition {
    partition: u32,
    /// Where the next block begins, and how many are left from there on.
    pub(super) at: u64,
    left: u32,
    /// Where the last of them ends.
    pub(super) end: u64,
    /// Its entry, if the file was cut inside the partition.
    cut: Option<u64>,
}

impl OpenPartition {
    /// Begins with the blocks of a good partition.
    pub(super) fn begin(on: &mut ScanState, good: GoodPartition) -> Self {
        on.found.add_partition(good);
        Self {
            partition: good.partition,
            at: good.at + COUNT_BYTES,
            left: good.tenants,
            end: good.end,
            cut: None,
        }
    }

    /// Ends the open block, which was emitted up to `end`.
    pub(super) fn end_block(&mut self, on: &mut ScanState, end: u64) {
        self.at = end;
        on.ranges.cover(end, Kind::Block, None, Origin::None);
    }

    /// Advances to the next block. `false` if there is none.
    pub(super) fn advance(&mut self, on: &mut ScanState) -> Result<bool> {
        if self.left == 0 {
            self.finish(on)?;
            return Ok(false);
        }
        if on.found.is_silent {
            // The blocks are sound, so it no longer matters where each ends.
            self.left = 0;
            self.end_block(on, self.end);
            return Ok(true);
        }
        let (input, at) = (&mut on.input, self.at);
        if self.end.saturating_sub(at) < BLOCK_HEADER_BYTES {
            return Err(input.changed());
        }
        let messages = input.u32_at(at)?;
        let tenant_len = input.u32_at(at + 4)?;
        let name_at = at + BLOCK_HEADER_BYTES;
        if name_at + u64::from(tenant_len) > self.end {
            return Err(input.changed());
        }
        let tenant = input.name_at(name_at, tenant_len)?;
        self.left -= 1;
        let entry = TocEntry {
            partition: self.partition,
            tenant_len,
            messages,
            offset: at,
            length: 0,
            crc: 0,
        };
        if on.commit_block(&tenant, entry, self.end, Checks::Unknown)? {
            return Ok(true);
        }
        let (decoded, _) = on.input.decode(at, self.end, u64::MAX)?;
        let Decoded::Block(shape) = decoded else {
            return Err(on.input.changed());
        };
        on.emitter.pass(at, at + shape.len);
        self.end_block(on, at + shape.len);
        Ok(true)
    }

    /// Commits what is after its blocks.
    fn finish(&self, on: &mut ScanState) -> Result<()> {
        if self.at != self.end {
            return Err(on.input.changed());
        }
        if let Some(toc_at) = self.cut {
            let (len, cause) = (on.input.front.len, Cause::LengthOutOfBounds);
            let kind = whole_kind(cause, true);
            on.ranges
                .cover(len, kind, Some(cause), Origin::Entry(toc_at));
        }
        Ok(())
    }
}

/// The failed entries after the last good partition.
#[derive(Debug, Default)]
pub(super) struct Gap {
    /// Why the first of them failed, and where it is in the table.
    first: Option<(Cause, u64)>,
    /// The ones whose offset may be in the gap, which only its end shows: ranges of the table in bytes.
    inside: Notes,
    /// The greatest of their offsets.
    farthest: u64,
}

#[derive(Debug, Default)]
pub(super) struct Partitions {
    pub(super) search: PartitionSearch,
    pub(super) gap: Gap,
}

impl Partitions {
    /// Advances by an entry. Sets `part` to the partition whose blocks come next.
    pub(super) fn advance(
        &mut self,
        on: &mut ScanState,
        part: &mut Option<OpenPartition>,
    ) -> Result<Advance> {
        let len = on.input.front.len;
        let Some(entry) = on.peek()?.cloned() else {
            self.close_gap(on, len)?;
            return Ok(Advance::End);
        };
        if on.place.is_limited {
            // The remaining entries are not examined.
            let cause = Cause::SearchLimit;
            let end = on.input.front.toc_end.or_bug("the end of the table")?;
            self.gap.first.get_or_insert((cause, entry.at));
            on.mark(entry.at, end, cause)?;
            self.close_gap(on, len)?;
            return Ok(Advance::End);
        }
        let verdict = self.search.find(on, &entry)?;
        on.place.table.pass();
        match verdict {
            Verdict::Good(good) => *part = Some(self.commit(on, good)?),
            Verdict::Disagrees(good) => {
                self.close_gap(on, good.at)?;
                on.mark(entry.at, entry.end, Cause::IndexDisagrees)?;
                *part = Some(self.commit(on, good)?);
            }
            Verdict::Cut(good, _) => *part = Some(self.commit_cut(on, entry.at, good)?),
            Verdict::Failed(fault) => self.fail(on, &entry, fault)?,
        }
        Ok(Advance::On)
    }

    /// Commits a good partition.
    fn commit(&mut self, on: &mut ScanState, good: GoodPartition) -> Result<OpenPartition> {
        self.close_gap(on, good.at)?;
        let header = good.at + COUNT_BYTES;
        on.ranges.cover(header, Kind::Header, None, Origin::None);
        let place = &mut on.place;
        self.search.go_past(place, good.end, good.partition);
        Ok(OpenPartition::begin(on, good))
    }

    /// Rule 25: commits the whole tenants of the partition that the file was cut in. Its entry is at `toc_at`.
    fn commit_cut(
        &mut self,
        on: &mut ScanState,
        toc_at: u64,
        good: GoodPartition,
    ) -> Result<OpenPartition> {
        let len = on.input.front.len;
        self.close_gap(on, good.at)?;
        // If no byte is left of the missing tenants, their number must show the damage.
        let (kind, cause) = match good.end == len {
            true => (Kind::Corrupt, Some(Cause::CountMismatch)),
            false => (Kind::Header, None),
        };
        let (header, tenants) = (good.at + COUNT_BYTES, u64::from(good.tenants));
        on.ranges
            .cover(header, kind, cause, Origin::Tenants(tenants));
        self.search.go_past(&mut on.place, len, good.partition);
        Ok(OpenPartition {
            cut: Some(toc_at),
            ..OpenPartition::begin(on, good)
        })
    }

    /// Handles a failed entry: its cause becomes the cause of the gap that it is in, or it is marked itself.
    fn fail(&mut self, on: &mut ScanState, entry: &Entry, fault: Fault) -> Result<()> {
        let cause = fault.cause();
        self.gap.first.get_or_insert((cause, entry.at));
        let outside = !on.input.front.in_bounds(entry.offset)
            || on.place.end.is_some_and(|end| entry.offset < end);
        if fault == Fault::Id || outside {
            return on.mark(entry.at, entry.end, cause);
        }
        self.gap.farthest = self.gap.farthest.max(entry.offset);
        self.gap.inside.push(Note {
            start: entry.at,
            end: entry.end,
            cause,
        })
    }

    /// Ends the gap from the last good partition to `end`, where the next one begins.
    fn close_gap(&mut self, on: &mut ScanState, end: u64) -> Result<()> {
        let gap = std::mem::take(&mut self.gap);
        let at_end = end == on.input.front.len;
        let (cause, origin) = match gap.first {
            Some((cause, toc_at)) => (cause, Origin::Entry(toc_at)),
            None => (Cause::Unreferenced, Origin::None),
        };
        let kind = whole_kind(cause, at_end);
        if end >= on.input.front.first_block() {
            on.ranges.cover(end, kind, Some(cause), origin);
        }
        if gap.farthest < end {
            return Ok(());
        }
        let mut place = Place::default();
        while let Some(note) = gap.inside.next(&mut place)? {
            let count = (note.end - note.start) / V1_ENTRY_BYTES;
            let mut entries = on.input.entries(note.start, count);
            while let Some(entry) = entries.next(&*on.input.source)? {
                if entry.offset >= end {
                    on.mark(entry.at, entry.end, note.cause)?;
                }
            }
        }
        Ok(())
    }
}
