//! Version 1: which partition an entry of the table of contents means, by its structure alone.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::block::{BLOCK_HEADER_BYTES, Name};
use super::front::COUNT_BYTES;
use super::give::{Checks, Open};
use super::layout::{self, Origin};
use super::probe::Decoded;
use super::toc::{Entry, V1_ENTRY_BYTES};
use super::walk::{Kept, KeptPartition, TenantScan};
use crate::engine::Advance;
use crate::error::Result;
use crate::ledger::{Cause, Kind, whole_kind};
use crate::ledger::{Note, Notes};

/// A partition whose blocks are being gone through.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) partition: u32,
    /// Where the next block begins, and how many there are from there on.
    pub(super) at: u64,
    left: u32,
    /// Where the last of them ends.
    pub(super) end: u64,
    /// Its entry, if the file was cut inside the partition.
    cut: Option<u64>,
}

/// The failed entries behind the last good partition.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Gap {
    /// Why the first of them failed, and where it stands in the table.
    first: Option<(Cause, u64)>,
    /// Those whose offset may be in the gap, which only its end shows: stretches of the table in bytes.
    inside: Notes,
    /// The greatest of their offsets.
    farthest: u64,
}

/// What stands where a partition might begin.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// It decodes: this many tenants, up to this offset; whether they ascend.
    Whole {
        tenants: u32,
        end: u64,
        ascends: bool,
    },
    /// The file ends inside the number of tenants.
    Truncated,
    /// It reaches beyond the file: this many tenants are whole and ascend, up to this offset.
    Beyond { tenants: u32, end: u64 },
    /// The budget did not suffice.
    Unaffordable,
}

/// What stands behind the last good partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tried {
    at: u64,
    shape: Shape,
}

/// What an entry came to.
pub(super) enum Verdict {
    /// The partition stands at `at`; the entry says so, or it does not.
    Good {
        at: u64,
        tenants: u32,
        end: u64,
        agrees: bool,
    },
    /// It stands where the entry says, and the file ends inside it.
    Cut { tenants: u32, end: u64 },
    /// Why, and whether it is because of its ID.
    Failed(Cause, bool),
}

impl TenantScan {
    pub(super) fn advance_partition(&mut self) -> Result<Advance> {
        let Some(entry) = self.peek()?.cloned() else {
            self.end_gap(self.front.len)?;
            return Ok(Advance::End);
        };
        if self.limited {
            // The entries that are left are not looked at.
            let (cause, end) = (Cause::SearchLimit, self.front.toc_end);
            self.gap.first.get_or_insert((cause, entry.at));
            self.ranges
                .mark(entry.at, end.unwrap_or(entry.end), cause)?;
            self.end_gap(self.front.len)?;
            return Ok(Advance::End);
        }
        let verdict = self.judge_partition(&entry)?;
        self.pass();
        match verdict {
            Verdict::Good {
                at,
                tenants,
                end,
                agrees,
            } => {
                self.end_gap(at)?;
                if !agrees {
                    self.ranges
                        .mark(entry.at, entry.end, Cause::IndexDisagrees)?;
                }
                let header = at + COUNT_BYTES;
                self.ranges.cover(header, Kind::Header, None, Origin::None);
                self.begin_part(&entry, at, tenants, end, None)?;
            }
            Verdict::Cut { tenants, end } => {
                let (at, len) = (entry.offset, self.front.len);
                self.end_gap(at)?;
                // Where nothing is left of the tenants that are missing, their number has to show it.
                let (kind, cause) = match end == len {
                    true => (Kind::Corrupt, Some(Cause::CountMismatch)),
                    false => (Kind::Header, None),
                };
                let header = at + COUNT_BYTES;
                self.ranges
                    .cover(header, kind, cause, Origin::Tenants(tenants.into()));
                self.begin_part(&entry, at, tenants, end, Some(entry.at))?;
                self.end = Some(len);
            }
            Verdict::Failed(cause, by_id) => self.fail_partition(&entry, cause, by_id)?,
        }
        Ok(Advance::On)
    }

    pub(super) fn begin_part(
        &mut self,
        entry: &Entry,
        at: u64,
        tenants: u32,
        end: u64,
        cut: Option<u64>,
    ) -> Result<()> {
        self.part = Some(Part {
            partition: entry.partition,
            at: at + COUNT_BYTES,
            left: tenants,
            end,
            cut,
        });
        self.end = Some(end);
        self.kept_partitions.push(KeptPartition {
            partition: entry.partition,
            at,
            tenants,
            end,
        });
        let none = Name::new(0, 0, |_| Ok(std::sync::Arc::default()))?;
        self.last = Some((entry.partition, none));
        self.tried_partition = None;
        Ok(())
    }

    /// Goes on to the next block of the partition.
    pub(super) fn next_block(&mut self) -> Result<Advance> {
        let Some(mut part) = self.part.take() else {
            return Ok(Advance::On);
        };
        let source = self.source.clone();
        if part.left == 0 {
            if part.at != part.end {
                return Err(self.changed());
            }
            if let Some(toc_at) = part.cut {
                let (len, cause) = (self.front.len, Cause::LengthOutOfBounds);
                let kind = whole_kind(cause, true);
                self.ranges
                    .cover(len, kind, Some(cause), Origin::Entry(toc_at));
            }
            return Ok(Advance::On);
        }
        if self.silent {
            // The blocks are sound: where each ends does not matter any more.
            self.ranges.cover(part.end, Kind::Block, None, Origin::None);
            (part.left, part.at) = (0, part.end);
            self.part = Some(part);
            return Ok(Advance::On);
        }
        let at = part.at;
        if part.end.saturating_sub(at) < BLOCK_HEADER_BYTES {
            return Err(self.changed());
        }
        let messages = self.probe.u32_at(&*source, at)?;
        let tenant_len = self.probe.u32_at(&*source, at + 4)?;
        let position = at + BLOCK_HEADER_BYTES + u64::from(tenant_len);
        if position > part.end {
            return Err(self.changed());
        }
        let tenant = self
            .probe
            .name_at(&*source, at + BLOCK_HEADER_BYTES, tenant_len)?;
        self.note(|| Kept {
            position: at,
            partition: part.partition,
            tenant: tenant.clone(),
            messages,
            checked: None,
        });
        part.left -= 1;
        if self.wants(part.partition, &tenant)? && messages > 0 {
            self.open = Some(Open {
                at,
                end: part.end,
                partition: part.partition,
                messages,
                tenant_len,
                next: 0,
                position,
                crc: None,
            });
            self.checks = Checks::Unknown;
            self.tenant = None;
            self.part = Some(part);
            return Ok(Advance::On);
        }
        let (decoded, _) = self
            .probe
            .decode(&*source, &self.options, at, part.end, u64::MAX)?;
        let Decoded::Block(shape) = decoded else {
            return Err(self.changed());
        };
        part.at = at + shape.len;
        self.skip_start(at, part.at);
        self.ranges.cover(part.at, Kind::Block, None, Origin::None);
        self.part = Some(part);
        Ok(Advance::On)
    }

    /// A failed entry: it colours the gap that it is in, or is marked itself.
    fn fail_partition(&mut self, entry: &Entry, cause: Cause, by_id: bool) -> Result<()> {
        self.gap.first.get_or_insert((cause, entry.at));
        let good_end = self.end.unwrap_or_default();
        let outside = !self.front.in_bounds(entry.offset) || entry.offset < good_end;
        if by_id || outside {
            return self.ranges.mark(entry.at, entry.end, cause);
        }
        self.gap.farthest = self.gap.farthest.max(entry.offset);
        self.gap.inside.push(Note {
            start: entry.at,
            end: entry.end,
            cause,
        })
    }

    /// The bytes from the last good partition to `end`, where the next one begins.
    fn end_gap(&mut self, end: u64) -> Result<()> {
        let gap = std::mem::take(&mut self.gap);
        let at_end = end == self.front.len;
        let (cause, origin) = match gap.first {
            Some((cause, toc_at)) => (cause, Origin::Entry(toc_at)),
            None => (Cause::Unreferenced, Origin::None),
        };
        let kind = layout::kind(Some(cause), at_end);
        if end >= self.front.first_block() {
            self.ranges.cover(end, kind, Some(cause), origin);
        }
        if gap.farthest < end {
            return Ok(());
        }
        for note in gap.inside.iter() {
            let note = note?;
            let count = (note.end - note.start) / V1_ENTRY_BYTES;
            let mut entries = self.front.from(&self.options, note.start, count);
            while let Some(entry) = entries.next(&*self.source)? {
                if entry.offset >= end {
                    self.ranges.mark(entry.at, entry.end, note.cause)?;
                }
            }
        }
        Ok(())
    }

    /// Finds the partition that an entry means: where it says, or behind the last good one.
    pub(super) fn judge_partition(&mut self, entry: &Entry) -> Result<Verdict> {
        let before = self.probe.budget;
        let verdict = self.find_partition(entry)?;
        if matches!(verdict, Verdict::Good { .. }) {
            self.probe.budget.take_back(before); // not in vain
        } else if self.limited && !matches!(verdict, Verdict::Cut { .. }) {
            return Ok(Verdict::Failed(Cause::SearchLimit, false));
        }
        Ok(verdict)
    }

    fn find_partition(&mut self, entry: &Entry) -> Result<Verdict> {
        let len = self.front.len;
        let good_end = self.end.unwrap_or_default();
        if !self.front.in_bounds(entry.offset) {
            return self.behind_last(entry, Cause::OffsetOutOfBounds, good_end);
        }
        if !self.id_ascends(entry)? {
            return Ok(Verdict::Failed(Cause::OutOfOrder, true));
        }
        if entry.offset < good_end {
            return self.behind_last(entry, Cause::OutOfOrder, good_end);
        }
        let (cause, cut) = match self.partition_at(entry.offset, good_end)? {
            Shape::Unaffordable => (Cause::SearchLimit, None),
            Shape::Truncated => (Cause::TruncatedHeader, None),
            Shape::Beyond { tenants, end } => (Cause::LengthOutOfBounds, Some((tenants, end))),
            Shape::Whole { ascends: false, .. } => (Cause::OutOfOrder, None),
            Shape::Whole { tenants, end, .. } => {
                let agrees = end == entry.block_end();
                if agrees || end == self.next_offset(entry)? {
                    return Ok(Verdict::Good {
                        at: entry.offset,
                        tenants,
                        end,
                        agrees,
                    });
                }
                (Cause::IndexDisagrees, None)
            }
        };
        let verdict = self.behind_last(entry, cause, good_end)?;
        let Some((tenants, end)) = cut.filter(|_| matches!(verdict, Verdict::Failed(..))) else {
            return Ok(verdict);
        };
        let is_last = self.front.last_within == Some(entry.at);
        if entry.block_end() > len && is_last {
            return Ok(Verdict::Cut { tenants, end });
        }
        Ok(verdict)
    }

    /// The trial behind the last good partition, of an entry that failed for `cause` at its own offset.
    fn behind_last(&mut self, entry: &Entry, cause: Cause, good_end: u64) -> Result<Verdict> {
        let failed = Ok(Verdict::Failed(cause, false));
        let tried = self.limited || entry.offset == good_end || !self.front.in_bounds(good_end);
        if tried || self.direct {
            return failed;
        }
        if !self.id_ascends(entry)? {
            return failed;
        }
        match self.partition_at(good_end, good_end)? {
            Shape::Whole {
                tenants,
                end,
                ascends: true,
            } if end - good_end == entry.length => Ok(Verdict::Good {
                at: good_end,
                tenants,
                end,
                agrees: false,
            }),
            _ => failed,
        }
    }

    /// Whether the entry's ID is greater than the last good partition's, and not in the way of the next entry's.
    fn id_ascends(&mut self, entry: &Entry) -> Result<bool> {
        if self.direct {
            return Ok(true);
        }
        let last = self.last.as_ref().map(|(partition, _)| *partition);
        if last.is_some_and(|last| entry.partition <= last) {
            return Ok(false);
        }
        let source = self.source.clone();
        self.ahead.go_behind(&*source, entry)?;
        while let Some(next) = self.ahead.next(&*source)? {
            if !self.front.in_bounds(next.offset) {
                self.ahead.pass(); // no evidence
                continue;
            }
            let between =
                next.partition < entry.partition && last.is_none_or(|last| next.partition > last);
            return Ok(!between);
        }
        Ok(true)
    }

    /// The offset that the next entry states; behind the last, the end of the file.
    fn next_offset(&mut self, entry: &Entry) -> Result<u64> {
        let len = self.front.len;
        if self.front.toc_end == Some(entry.end) {
            return Ok(len);
        }
        let next = if self.entries.at == entry.end && self.entries.left > 0 {
            self.entries.look(&*self.source)?
        } else {
            let mut entries = self.front.from(&self.options, entry.end, 1);
            entries.next(&*self.source)?
        };
        Ok(next.map_or(len, |next| next.offset))
    }

    /// What the partition at `at` decodes to.
    fn partition_at(&mut self, at: u64, good_end: u64) -> Result<Shape> {
        if let Some(tried) = self.tried_partition.filter(|tried| tried.at == at) {
            return Ok(tried.shape);
        }
        let (shape, cost) = self.decode_partition(at)?;
        self.probe.budget.spend(cost);
        self.limited |= matches!(shape, Shape::Unaffordable);
        if at == good_end {
            self.tried_partition = Some(Tried { at, shape });
        }
        Ok(shape)
    }

    /// Decodes the partition at `at`. Gives what it is, and what that cost.
    fn decode_partition(&mut self, start: u64) -> Result<(Shape, u64)> {
        let (source, len) = (self.source.clone(), self.front.len);
        let affordable = self.probe.budget.left(self.front.len);
        if len - start < COUNT_BYTES {
            return Ok((Shape::Truncated, 0));
        }
        let tenants = self.probe.u32_at(&*source, start)?;
        let (mut at, mut cost, mut ascends) = (start + COUNT_BYTES, COUNT_BYTES, true);
        let mut last = None::<Name>;
        let (mut whole, mut whole_end) = (0, at);
        for _ in 0..tenants {
            let left = affordable.saturating_sub(cost);
            let (decoded, spent) = self.probe.decode(&*source, &self.options, at, len, left)?;
            cost = cost.saturating_add(spent);
            let shape = match decoded {
                Decoded::Block(shape) => shape,
                Decoded::Unaffordable => return Ok((Shape::Unaffordable, cost)),
                Decoded::Beyond => {
                    let beyond = Shape::Beyond {
                        tenants: whole,
                        end: whole_end,
                    };
                    return Ok((beyond, cost));
                }
            };
            if ascends {
                let name_at = at + BLOCK_HEADER_BYTES;
                let tenant = self.probe.name_at(&*source, name_at, shape.tenant_len)?;
                cost = cost.saturating_add(shape.tenant_len.into());
                if let Some(last) = &last {
                    ascends = last.compare(&*source, &tenant)? == Ordering::Less;
                }
                last = Some(tenant);
            }
            at += shape.len;
            if ascends {
                (whole, whole_end) = (whole + 1, at);
            }
        }
        let whole = Shape::Whole {
            tenants,
            end: at,
            ascends,
        };
        Ok((whole, cost))
    }
}
