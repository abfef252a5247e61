//! Reads only the matching ones of the blocks and partitions that an earlier walk proved. After each remembered
//! one, it also reads through the ones that are not remembered.

use std::ops::Range;
use std::sync::Arc;

use super::block::Name;
use super::claims::Origin;
use super::course::Course;
use super::partitions::{Part, Partitions};
use super::proven::{Proven, Unit, What};
use super::reading::Reading;
use super::toc::{Entry, V2_ENTRY_BYTES};
use super::unlisted::Unlisted;
use crate::bug::OrBug;
use crate::engine::Advance;
use crate::error::{Bug, Result};
use crate::ledger::Span;

/// How many units are skipped between two polls of the interrupt.
const POLL_UNITS: usize = 1 << 12;

/// Leads a scan from unit to unit. The scan's own course stays after the last unit that was read.
#[derive(Debug)]
pub(super) struct Remembered {
    proven: Arc<Proven>,
    /// The indices of the units that are not passed yet.
    units: Range<usize>,
    /// How many units after the last one that was passed are not remembered, and must be read.
    left: u64,
    /// The first damage in the file, until it is reported.
    damage: Option<Span>,
}

impl Remembered {
    /// Goes to the units with these indices.
    pub(super) fn new(proven: Arc<Proven>, units: Range<usize>) -> Self {
        Self {
            damage: proven.damage,
            proven,
            units,
            left: 0,
        }
    }

    /// Advances by a unit. Sets `part` to the partition whose blocks come next.
    pub(super) fn advance(
        &mut self,
        on: &mut Reading,
        course: &mut Course,
        part: &mut Option<Part>,
    ) -> Result<Advance> {
        if self.left > 0 {
            return self.read_on(on, course, part);
        }
        if self
            .damage
            .is_some_and(|damage| damage.start < on.input.front.end())
        {
            self.tell(on, u64::MAX);
            let data = on.ranges.at().max(on.input.front.end());
            on.ranges.skip_to(data);
        }
        while let Some(place) = self.units.clone().next() {
            if place.is_multiple_of(POLL_UNITS) {
                on.input.options.poll()?;
            }
            let proven = self.proven.clone();
            let unit = proven
                .units
                .kept()
                .get(place)
                .or_bug("a unit that is remembered")?;
            let after = match self.matches_after(on, place, unit) {
                true => proven.units.after(place),
                false => 0,
            };
            let matches = matches(on, unit)?;
            if matches || after > 0 {
                self.tell(on, unit.start());
                match matches {
                    true if !take(on, unit, course, part)? => return Ok(Advance::Full),
                    true => {}
                    false => pass(on, unit, course),
                }
                self.left = after;
                self.units.start += 1;
                return Ok(Advance::On);
            }
            self.units.start += 1;
        }
        self.tell(on, u64::MAX);
        Ok(Advance::End)
    }

    /// Advances to a unit that is not remembered.
    fn read_on(
        &mut self,
        on: &mut Reading,
        course: &mut Course,
        part: &mut Option<Part>,
    ) -> Result<Advance> {
        let before = on.place.good_end();
        let advance = match course {
            Course::Unlisted(own) => own.advance(on)?,
            Course::Partitions(own) => own.advance(on, part)?,
            _ => return Err(Bug::error("a course that can be remembered", None)),
        };
        self.left -= u64::from(on.place.good_end() != before);
        match advance {
            Advance::End => Err(on.input.changed()),
            advance => Ok(advance),
        }
    }

    /// Whether the units after this one that are not remembered can match.
    fn matches_after(&self, on: &Reading, place: usize, unit: &Unit) -> bool {
        let last = match self.proven.units.kept().get(place + 1) {
            Some(next) => next.partition(),
            None => u32::MAX,
        };
        on.emitter.filter.has_any_partition(unit.partition(), last)
    }

    /// Reports where the file's first damage is, if that is before `until` and was not read. A missing message may
    /// be in the damage, so each read must report it.
    fn tell(&mut self, on: &mut Reading, until: u64) {
        let Some(damage) = self.damage.filter(|damage| damage.start < until) else {
            return;
        };
        self.damage = None;
        let is_of_front = damage.start < on.input.front.end();
        if is_of_front || damage.start >= on.ranges.at() {
            on.ranges.skip_to(damage.start);
            on.ranges
                .cover(damage.end, damage.kind, damage.cause, Origin::None);
        }
    }
}

/// Whether anything of this block or partition can match.
fn matches(on: &Reading, unit: &Unit) -> Result<bool> {
    match &unit.what {
        What::Block(block, tenant) => on.matches(block.partition, tenant),
        What::Partition(partition, _) => Ok(on.emitter.filter.has_partition(partition.partition)),
    }
}

/// Commits a unit. `false` if the step must end first.
fn take(
    on: &mut Reading,
    unit: &Unit,
    course: &mut Course,
    part: &mut Option<Part>,
) -> Result<bool> {
    match &unit.what {
        What::Block(block, tenant) => {
            let before = on.input.budget;
            on.input.budget = unit.budget;
            let at = unit.next.0 - V2_ENTRY_BYTES - u64::from(block.tenant_len);
            let mut own = Unlisted::resuming(unit.next.0, unit.limit);
            if !own.take(on, &Entry::new(at, block, tenant.clone()))? {
                on.input.budget = before;
                return Ok(false);
            }
            *course = Course::Unlisted(own);
        }
        What::Partition(good, cut) => {
            skip_entry(on, unit);
            on.ranges.skip_to(good.at);
            let mut own = Partitions::default();
            *part = Some(match cut {
                Some(toc_at) => own.commit_cut(on, *toc_at, *good)?,
                None => own.commit(on, *good)?,
            });
            *course = Course::Partitions(own);
        }
    }
    Ok(true)
}

/// Continues after a unit that is not read.
fn pass(on: &mut Reading, unit: &Unit, course: &mut Course) {
    let (end, last) = match &unit.what {
        What::Block(block, tenant) => {
            on.input.budget = unit.budget;
            *course = Course::Unlisted(Unlisted::resuming(unit.next.0, unit.limit));
            (
                block.offset + block.length,
                (block.partition, tenant.clone()),
            )
        }
        What::Partition(good, cut) => {
            skip_entry(on, unit);
            *course = Course::Partitions(Partitions::default());
            let end = match cut {
                Some(_) => on.input.front.len,
                None => good.end,
            };
            (end, (good.partition, Name::empty()))
        }
    };
    on.ranges.skip_to(end);
    on.place.go_past(end, last);
}

/// Version 1: continues in the table of contents after the entry of a partition.
fn skip_entry(on: &mut Reading, unit: &Unit) {
    on.place.table.go_to(unit.next, unit.partition());
    on.input.budget = unit.budget;
}
