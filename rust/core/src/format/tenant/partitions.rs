//! The scan of version 1: its unit is the partition, whose blocks are then read in turn (rule 25). Finds the partition
//! that an entry of the table of contents means, by its structure alone (rule 24).

use std::cmp::Ordering;

use super::claims::Origin;
use super::front::COUNT_BYTES;
use super::judge::{self, Partition};
use super::layout::{BLOCK_HEADER_BYTES, Name, TocEntry};
use super::probe::{Checks, Decoded, Input};
use super::reading::{OpenPartition, Position, ScanState};
use super::toc::{Entry, V1_ENTRY_BYTES};
use crate::bug::OrBug;
use crate::error::Result;
use crate::ledger::{Cause, Kind, whole_kind};
use crate::walk::Advance;
use crate::walk::indexed::{Note, Ranges};

impl OpenPartition {
    /// Begins with the blocks of a good partition. `is_cut` says whether the file ends inside it (rule 25): then its
    /// entry counts the tenants that are whole.
    pub(super) fn begin(on: &mut ScanState, good: Entry, is_cut: bool) {
        let (at, end, left) = (good.offset + COUNT_BYTES, good.block_end(), good.messages);
        // If no byte is left of the missing tenants, their number must show the damage.
        let (kind, cause) = match is_cut && end == on.input.front.len {
            true => (Kind::Corrupt, Some(Cause::CountMismatch)),
            false => (Kind::Header, None),
        };
        on.ranges
            .cover(at, kind, cause, Origin::Tenants(left.into()));
        on.partition = Some(Self {
            partition: good.partition,
            at,
            left,
            end,
            cut: is_cut.then_some(good.at),
        });
        on.found.partitions.push(good);
    }

    /// Ends the open block, which was emitted up to `end`.
    pub(super) fn end_block(&mut self, ranges: &mut Ranges<Origin>, end: u64) {
        self.at = end;
        ranges.cover(end, Kind::Block, None, Origin::None);
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
            self.end_block(&mut on.ranges, self.end);
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
        let fields = TocEntry {
            partition: self.partition,
            tenant_len,
            messages,
            offset: at,
            ..TocEntry::default()
        };
        let block = Entry::new(at, fields, tenant);
        if on.commit_block(block, self.end, Checks::Unknown)? {
            return Ok(true);
        }
        let (decoded, _) = on.input.decode(at, self.end, u64::MAX)?;
        let Decoded::Block(shape) = decoded else {
            return Err(on.input.changed());
        };
        on.emitter.pass(at, at + shape.len);
        self.end_block(&mut on.ranges, at + shape.len);
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
    /// Advances by an entry.
    pub(super) fn advance(&mut self, on: &mut ScanState) -> Result<Advance> {
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
                self.commit(on, good, false)?;
            }
            Verdict::Cut(good, _) => self.commit(on, good, true)?,
            Verdict::Failed(cause) => self.fail(on, &entry, cause)?,
        }
        Ok(Advance::On)
    }

    /// Commits a good partition. One in which the file was cut is the last.
    fn commit(&mut self, on: &mut ScanState, good: Entry, is_cut: bool) -> Result<()> {
        self.close_gap(on, good.offset)?;
        let end = match is_cut {
            true => on.input.front.len,
            false => good.block_end(),
        };
        self.search.go_past(&mut on.place, end, &good);
        OpenPartition::begin(on, good, is_cut);
        Ok(())
    }

    /// Handles a failed entry: its cause becomes the cause of the gap that it is in, or it is marked itself.
    fn fail(&mut self, on: &mut ScanState, entry: &Entry, cause: Cause) -> Result<()> {
        let (start, end) = (entry.at, entry.end);
        self.gap.first.get_or_insert((cause, start));
        let outside = !on.input.front.in_bounds(entry.offset)
            || on.place.end.is_some_and(|end| entry.offset < end);
        if outside || !id_ascends(on, entry)? {
            on.mark(start, end, cause);
        } else {
            Note { start, end, cause }.add_to(&mut self.gap.inside);
        }
        Ok(())
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
    Good(Entry, bool),
    /// It is at the entry's offset, and the file ends inside it. These are the tenants that are whole.
    Cut(Entry, Cause),
    Failed(Cause),
}

/// Finds partitions, entry by entry. It keeps what it knows, because learning it again would be charged again.
#[derive(Clone, Debug, Default)]
pub(super) struct PartitionSearch {
    /// The offset after the last good partition, and what is there.
    seen: Option<(u64, Partition)>,
}

impl PartitionSearch {
    /// Continues after a good partition that ends at `end`.
    pub(super) fn go_past(&mut self, place: &mut Position, end: u64, good: &Entry) {
        self.seen = None;
        place.go_past(end, good.clone());
    }

    /// Finds the partition that an entry means: at its offset, or after the last good one.
    pub(super) fn find(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Verdict> {
        let before = on.input.budget;
        let verdict = self.find_anywhere(on, entry)?;
        match verdict {
            Verdict::Good(..) => on.input.budget.take_back(before), // it was not in vain
            Verdict::Failed(_) if on.place.is_limited => {
                return Ok(Verdict::Failed(Cause::SearchLimit));
            }
            Verdict::Failed(_) | Verdict::Cut(..) => {}
        }
        Ok(verdict)
    }

    fn find_anywhere(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Verdict> {
        let (front, good_end) = (on.input.front.clone(), end_of(&on.place));
        let placed = judge::partition_place(&front, entry, good_end, || id_ascends(on, entry))?;
        let (mut cut, at) = (None, entry.offset);
        let cause = match placed {
            Err(cause) => cause,
            Ok(()) => {
                let decoded = self.partition_at(on, at)?;
                match judge::partition(decoded) {
                    Ok((tenants, end)) if end == entry.block_end() => {
                        return Ok(Verdict::Good(found(entry, at, tenants, end), true));
                    }
                    Ok((tenants, end)) if end == next_offset(on, entry)? => {
                        return Ok(Verdict::Good(found(entry, at, tenants, end), false));
                    }
                    Ok(_) => Cause::IndexDisagrees,
                    Err(cause) => {
                        cut = Some(decoded).filter(|_| judge::is_cut(&front, entry));
                        cause
                    }
                }
            }
        };
        if let Some(good) = self.after_last(on, entry)? {
            return Ok(Verdict::Good(good, false));
        }
        Ok(match cut {
            Some(Partition::Beyond { tenants, end }) => {
                Verdict::Cut(found(entry, at, tenants, end), cause)
            }
            _ => Verdict::Failed(cause),
        })
    }

    /// The partition after the last good one, if an entry that failed at its own offset means that one.
    fn after_last(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Option<Entry>> {
        let at = end_of(&on.place);
        let tried = on.place.is_limited || entry.offset == at || !on.input.front.in_bounds(at);
        if tried || on.place.is_pruned || !id_ascends(on, entry)? {
            return Ok(None);
        }
        Ok(match judge::partition(self.partition_at(on, at)?) {
            Ok((tenants, end)) if end - at == entry.length => Some(found(entry, at, tenants, end)),
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

/// The entry that describes a partition, which is at `at` and ends at `end`. It counts tenants instead of messages.
fn found(entry: &Entry, at: u64, tenants: u32, end: u64) -> Entry {
    let fields = TocEntry {
        messages: tenants,
        offset: at,
        length: end - at,
        ..entry.fields
    };
    Entry {
        tenant: entry.tenant.clone(),
        fields,
        ..*entry
    }
}

/// Where the next partition may begin.
fn end_of(place: &Position) -> u64 {
    place.end.unwrap_or(0)
}

/// Whether the entry's ID is in order.
fn id_ascends(on: &mut ScanState, entry: &Entry) -> Result<bool> {
    if on.place.is_pruned {
        return Ok(true);
    }
    let last = on.place.last.as_ref().map(|last| last.partition);
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
