//! The scan of version 1: its unit is the partition, whose blocks are then read in turn (rule 25). Finds the partition
//! that an entry of the table of contents means, by its structure alone (rule 24).

use std::cmp::Ordering;

use super::claims::Origin;
use super::front::COUNT_BYTES;
use super::judge::{self, Fault, GoodPartition, Partition};
use super::layout::{BLOCK_HEADER_BYTES, Name, TocEntry};
use super::probe::{Checks, Decoded, Input};
use super::reading::{Position, ScanState, SearchScope};
use super::toc::{Entry, V1_ENTRY_BYTES};
use crate::bug::OrBug;
use crate::error::Result;
use crate::ledger::{Cause, Kind, whole_kind};
use crate::walk::Advance;
use crate::walk::indexed::Note;

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
            ..TocEntry::default()
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
    inside: Vec<Note>,
}

#[derive(Debug, Default)]
pub(super) struct Partitions {
    search: PartitionSearch,
    gap: Gap,
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
            on.mark(entry.at, end, cause);
            self.close_gap(on, len)?;
            return Ok(Advance::End);
        }
        let verdict = self.search.find(on, &entry)?;
        on.place.table.pass();
        match verdict {
            Verdict::Good(good, stated) => {
                if !stated {
                    on.mark(entry.at, entry.end, Cause::IndexDisagrees);
                }
                *part = Some(self.commit(on, good)?);
            }
            Verdict::Cut(good, _) => *part = Some(self.commit_cut(on, entry.at, good)?),
            Verdict::Failed(fault) => self.fail(on, &entry, fault),
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
    fn fail(&mut self, on: &mut ScanState, entry: &Entry, fault: Fault) {
        let (start, end, cause) = (entry.at, entry.end, fault.cause());
        self.gap.first.get_or_insert((cause, start));
        let outside = !on.input.front.in_bounds(entry.offset)
            || on.place.end.is_some_and(|end| entry.offset < end);
        if fault == Fault::Id || outside {
            on.mark(start, end, cause);
        } else {
            Note { start, end, cause }.add_to(&mut self.gap.inside);
        }
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
        for note in gap.inside {
            let count = (note.end - note.start) / V1_ENTRY_BYTES;
            let mut entries = on.input.entries(note.start, count);
            while let Some(entry) = entries.next(&*on.input.source)? {
                if entry.offset >= end {
                    on.mark(entry.at, entry.end, note.cause);
                }
            }
        }
        Ok(())
    }
}

/// The result for an entry.
pub(super) enum Verdict {
    /// The partition, and whether it is at the entry's offset and has its length.
    Good(GoodPartition, bool),
    /// It is at the entry's offset, and the file ends inside it. These are the tenants that are whole.
    Cut(GoodPartition, Fault),
    Failed(Fault),
}

/// Finds partitions, entry by entry. It keeps what it knows, because learning it again would be charged again.
#[derive(Clone, Debug, Default)]
pub(super) struct PartitionSearch {
    /// The offset after the last good partition, and what is there.
    seen: Option<(u64, Partition)>,
}

impl PartitionSearch {
    /// Continues after a good partition that ends at `end`.
    pub(super) fn go_past(&mut self, place: &mut Position, end: u64, partition: u32) {
        self.seen = None;
        place.go_past(end, (partition, Name::empty()));
    }

    /// Finds the partition that an entry means: at its offset, or after the last good one.
    pub(super) fn find(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Verdict> {
        let before = on.input.budget;
        let verdict = self.find_anywhere(on, entry)?;
        match verdict {
            Verdict::Good(..) => on.input.budget.take_back(before), // it was not in vain
            Verdict::Failed(_) if on.place.is_limited => {
                return Ok(Verdict::Failed(Fault::Unsearched));
            }
            Verdict::Failed(_) | Verdict::Cut(..) => {}
        }
        Ok(verdict)
    }

    fn find_anywhere(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Verdict> {
        let (front, good_end) = (on.input.front.clone(), end_of(&on.place));
        let id_ascends = || id_ascends(on, entry);
        let placed = judge::partition_place(&front, entry, good_end, id_ascends)?;
        let good = |(tenants, end)| GoodPartition {
            partition: entry.partition,
            at: entry.offset,
            tenants,
            end,
        };
        let (fault, beyond) = match placed {
            Err(Fault::Id) => return Ok(Verdict::Failed(Fault::Id)),
            Err(fault) => (fault, None),
            Ok(()) => {
                let decoded = self.partition_at(on, entry.offset)?;
                match judge::partition(&front, entry, decoded) {
                    Ok(whole) if whole.1 == entry.block_end() => {
                        return Ok(Verdict::Good(good(whole), true));
                    }
                    Ok(whole) if whole.1 == next_offset(on, entry)? => {
                        return Ok(Verdict::Good(good(whole), false));
                    }
                    Ok(_) => (Fault::Disagrees, None),
                    Err(fault) => match decoded {
                        Partition::Beyond { tenants, end } => (fault, Some(good((tenants, end)))),
                        _ => (fault, None),
                    },
                }
            }
        };
        if let Some(good) = self.after_last(on, entry)? {
            return Ok(Verdict::Good(good, false));
        }
        Ok(match beyond.filter(|_| judge::is_cut(&front, entry)) {
            Some(good) => Verdict::Cut(good, fault),
            None => Verdict::Failed(fault),
        })
    }

    /// The partition after the last good one, if an entry that failed at its own offset means that one.
    fn after_last(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Option<GoodPartition>> {
        let at = end_of(&on.place);
        let tried = on.place.is_limited || entry.offset == at || !on.input.front.in_bounds(at);
        if tried || on.place.reach == SearchScope::LockedFile || !id_ascends(on, entry)? {
            return Ok(None);
        }
        Ok(match self.partition_at(on, at)? {
            Partition::Whole {
                tenants,
                end,
                ascends: true,
            } if end - at == entry.length => Some(GoodPartition {
                partition: entry.partition,
                at,
                tenants,
                end,
            }),
            _ => None,
        })
    }

    /// Decodes the partition at `at`.
    fn partition_at(&mut self, on: &mut ScanState, at: u64) -> Result<Partition> {
        if let Some((_, partition)) = self.seen.filter(|seen| seen.0 == at) {
            return Ok(partition);
        }
        let (partition, cost) = decode(&mut on.input, at)?;
        on.input.budget.spend(cost);
        on.place.is_limited |= matches!(partition, Partition::Unaffordable);
        if at == end_of(&on.place) {
            self.seen = Some((at, partition));
        }
        Ok(partition)
    }
}

/// Where the next partition may begin.
fn end_of(place: &Position) -> u64 {
    place.end.unwrap_or(0)
}

/// Whether the entry's ID is in order.
fn id_ascends(on: &mut ScanState, entry: &Entry) -> Result<bool> {
    if on.place.reach == SearchScope::LockedFile {
        return Ok(true);
    }
    let last = on.place.last_id();
    if !judge::id_ascends(entry.partition, last, None) {
        return Ok(false);
    }
    let source = &*on.input.source;
    let ahead = on.place.table.ahead_of(source, entry)?;
    while let Some(next) = ahead.peek(source)? {
        if on.input.front.in_bounds(next.offset) {
            let next = Some(next.partition);
            return Ok(judge::id_ascends(entry.partition, last, next));
        }
        ahead.pass(); // no evidence
    }
    Ok(true)
}

/// The next entry's offset. After the last entry: the end of the file.
fn next_offset(on: &mut ScanState, entry: &Entry) -> Result<u64> {
    let (source, len) = (&*on.input.source, on.input.front.len);
    if on.input.front.toc_end == Some(entry.end) {
        return Ok(len);
    }
    match on.input.entries(entry.end, 1).next(source)? {
        Some(next) => Ok(next.offset),
        None => Ok(len),
    }
}

/// Decodes the partition at `start`. Returns the result and its cost.
fn decode(input: &mut Input, start: u64) -> Result<(Partition, u64)> {
    let len = input.front.len;
    let affordable = input.budget.left(len);
    if len - start < COUNT_BYTES {
        return Ok((Partition::Truncated, 0));
    }
    let tenants = input.u32_at(start)?;
    let (mut at, mut cost, mut ascends) = (start + COUNT_BYTES, COUNT_BYTES, true);
    let mut last = None::<Name>;
    let (mut whole, mut whole_end) = (0, at);
    for _ in 0..tenants {
        let left = affordable.saturating_sub(cost);
        let (decoded, spent) = input.decode(at, len, left)?;
        cost = cost.saturating_add(spent);
        let shape = match decoded {
            Decoded::Block(shape) => shape,
            Decoded::Unaffordable => return Ok((Partition::Unaffordable, cost)),
            Decoded::Beyond => {
                let beyond = Partition::Beyond {
                    tenants: whole,
                    end: whole_end,
                };
                return Ok((beyond, cost));
            }
        };
        if ascends {
            let name_at = at + BLOCK_HEADER_BYTES;
            let tenant = input.name_at(name_at, shape.tenant_len)?;
            cost = cost.saturating_add(shape.tenant_len.into());
            if let Some(last) = &last {
                ascends = last.compare(&*input.source, &tenant)? == Ordering::Less;
            }
            last = Some(tenant);
        }
        at += shape.len;
        if ascends {
            (whole, whole_end) = (whole + 1, at);
        }
    }
    let whole = Partition::Whole {
        tenants,
        end: at,
        ascends,
    };
    Ok((whole, cost))
}
