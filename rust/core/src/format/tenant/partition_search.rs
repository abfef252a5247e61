//! Version 1: finds the partition that an entry of the table of contents means, by its structure alone (rule 24).

use std::cmp::Ordering;

use super::block::{BLOCK_HEADER_BYTES, Name};
use super::front::COUNT_BYTES;
use super::judge::{self, Fault, GoodPartition, Partition};
use super::probe::{Decoded, Input};
use super::reading::{Position, ScanState, SearchScope};
use super::toc::Entry;
use crate::error::Result;

/// The result for an entry.
pub(super) enum Verdict {
    /// The partition is at the entry's offset and has its length.
    Good(GoodPartition),
    /// The offset or the length differs.
    Disagrees(GoodPartition),
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
            Verdict::Good(_) | Verdict::Disagrees(_) => on.input.budget.take_back(before), // it was not in vain
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
                        return Ok(Verdict::Good(good(whole)));
                    }
                    Ok(whole) if whole.1 == next_offset(on, entry)? => {
                        return Ok(Verdict::Disagrees(good(whole)));
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
            return Ok(Verdict::Disagrees(good));
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
    let next = match on.place.table.entries.look_after(source, entry)? {
        Some(next) => Some(next),
        None => on.input.entries(entry.end, 1).next(source)?,
    };
    Ok(next.map_or(len, |next| next.offset))
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
