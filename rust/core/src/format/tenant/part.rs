//! Parts of a segment: stretches of the table of contents, with their blocks.
//!
//! Only of a segment of version 2 with a sound table of contents, whose entries ascend and name blocks one behind the other. So
//! behind a block that counts where its entry says, nothing in front of it is still to be laid, and the next block is looked
//! for where it would be.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::VERSION_2;
use super::block::{BLOCK_HEADER_BYTES, Name, Shape};
use super::front::{COUNT_BYTES, Front};
use super::layout::Layout;
use super::probe::{Probe, block_crc};
use super::ranges::{Ranges, Stretch, front_is_damaged};
use super::toc::{Ahead, Entry, TOC_START};
use super::walk::{TenantScan, TenantWalk};
use crate::engine::Options;
use crate::engine::part::{self, another_file, check_share, exhausted, inseparable};
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::source::Source;

/// A part preferably begins behind a block that has at most this share of what is aimed at: it is checked again there.
const SMALL_SHARE: u64 = 8;

/// How many entries are passed over between two looks at whether to stop.
const POLL_ENTRIES: u64 = 1 << 12;

/// A stretch of entries. Entries are told by where they stand in the table, with how many are left from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Portion {
    /// The table's CRC-32, so that a part of another file is refused.
    crc: u32,
    /// The entry in front of it; `None` for the first part.
    before: Option<(u64, u64)>,
    /// Where its first entry stands.
    from: u64,
    /// Where the entry behind its last one would stand.
    until: u64,
}

/// How far the walk of a part is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    portion: Portion,
    /// The last entry that was passed.
    passed: Option<(u64, u64)>,
    /// Whether its block counts where it says.
    stands: bool,
    /// Where its entries and its blocks begin.
    start: (u64, u64),
    /// The most that was hashed in vain, or would have been.
    peak: u64,
    /// Entries in front of this have been looked at, whether they are wanted.
    #[serde(default)]
    hopped: u64,
}

impl Progress {
    const fn new(portion: Portion, start: (u64, u64)) -> Self {
        Self {
            portion,
            passed: portion.before,
            stands: true,
            start,
            peak: 0,
            hopped: 0,
        }
    }

    /// An entry was passed; whether its block stands is still to be said.
    pub(super) const fn pass(&mut self, at: u64, left: u64) {
        self.passed = Some((at, left));
        self.stands = false;
    }
}

/// Whether the front allows parts.
fn is_splittable(front: &Front) -> bool {
    front.version == VERSION_2
        && front.is_sound()
        && front.ascending
        && front.disorder.is_none()
        && !front_is_damaged(front)
}

/// A part that is being planned.
struct Plan {
    before: Option<(u64, u64)>,
    from: u64,
    until: u64,
    /// Where its blocks begin and end, and how much of the table it has.
    start: u64,
    end: u64,
}

impl Plan {
    fn new(before: Option<(u64, u64)>, entry: &Entry) -> Self {
        Self {
            before,
            from: entry.at,
            until: entry.at,
            start: entry.offset,
            end: entry.offset,
        }
    }

    fn bytes(&self) -> u64 {
        (self.end - self.start).saturating_add(self.until - self.from)
    }

    /// How many bytes it would have with this entry, too.
    fn bytes_with(&self, entry: &Entry) -> u64 {
        let blocks = entry.block_end().saturating_sub(self.start);
        blocks.saturating_add(entry.end - self.from)
    }
}

/// Splits a segment. Reads the table of contents.
pub(super) fn split(
    source: &Arc<dyn Source>,
    options: &Options,
    target: u64,
) -> Result<Vec<part::Portion>> {
    let front = Front::read(&**source, options)?;
    if !is_splittable(&front) {
        return Ok(Vec::new());
    }
    let table = front.toc_end.unwrap_or_default();
    let target = match table > LIMITS.short_toc_bytes {
        true => target.max(table.saturating_mul(SMALL_SHARE)),
        false => target,
    };
    let mut entries = front.begin(options);
    let (mut plans, mut last) = (Vec::<Plan>::new(), None::<(u64, u64, u64)>);
    while let Some(entry) = entries.next(&**source)? {
        if entry.block_end() > front.len || !front.in_bounds(entry.offset) {
            return Ok(Vec::new());
        }
        let is_full = plans.last().is_none_or(|plan| {
            let is_small = last.is_some_and(|(_, _, length)| length <= target / SMALL_SHARE);
            let enough = if is_small {
                target
            } else {
                target.saturating_mul(2)
            };
            plan.bytes_with(&entry) > enough
        });
        if is_full {
            let before = last.map(|(at, left, _)| (at, left));
            plans.push(Plan::new(before, &entry));
        }
        if let Some(plan) = plans.last_mut() {
            (plan.until, plan.end) = (entry.end, entry.block_end());
        }
        last = Some((entry.at, entries.left + 1, entry.length));
    }
    let portion = |plan: &Plan| {
        let bytes = plan.bytes();
        let portion = Portion {
            crc: front.stored_crc,
            before: plan.before,
            from: plan.from,
            until: plan.until,
        };
        part::Portion::new(bytes, portion)
    };
    Ok(plans.iter().map(portion).collect())
}

impl TenantScan {
    /// At the beginning of a part: behind the first of its entries, or the one in front of them, whose block stands.
    pub(super) fn in_part(
        source: Arc<dyn Source>,
        options: &Options,
        front: Arc<Front>,
        portion: Portion,
    ) -> Result<TenantWalk> {
        check_portion(&*source, &front, &portion)?;
        let stretch = |start| Stretch { start, end: None };
        let Some((at, left)) = portion.before else {
            let mut walk = Self::at(source, options, front, TOC_START, None);
            walk.ranges = Ranges::of_part(&walk.front, walk.front.end(), stretch(0));
            let start = (TOC_START, walk.front.end());
            walk.set_progress(Progress::new(portion, start));
            return Ok(TenantWalk::new(walk));
        };
        let mut entries = front.from(options, at, left);
        let mut probe = Probe::default();
        while let Some(entry) = entries
            .next(&*source)?
            .filter(|entry| entry.end < portion.until)
        {
            let Some(shape) = standing(&*source, options, &mut probe, &front, &entry)? else {
                continue;
            };
            let (next, left) = (entries.at, entries.left);
            let name_at = entry.offset + BLOCK_HEADER_BYTES;
            let name = Name::read(&*source, name_at, shape.tenant_len)?;
            let mut walk = Self::at(source, options, front, next, Some(left));
            let end = entry.block_end();
            walk.before = Some(entry.partition);
            walk.end = Some(end);
            walk.last = Some((entry.partition, name));
            walk.layout = Layout::new(end, walk.front.len);
            walk.ranges = Ranges::of_part(&walk.front, end, stretch(next));
            walk.set_progress(Progress::new(portion, (next, end)));
            return Ok(TenantWalk::new(walk));
        }
        // The part before goes on through all of it.
        let mut walk = Self::at(source, options, front, at, Some(0));
        walk.set_progress(Progress::new(portion, (at, at)));
        Ok(TenantWalk::resume(walk, true))
    }

    fn set_progress(&mut self, progress: Progress) {
        self.probe.budget = self.probe.budget.with_peak(progress.peak);
        self.portion = Some(progress);
    }

    /// Goes on behind entries that are not wanted, of a part that is to be read no further than need be: up to the next one that is,
    /// or to the part's end, if the block in front of that stands. There the walk is as if it had begun.
    pub(super) fn hop(&mut self) -> Result<()> {
        let Some(progress) = self.portion.filter(|_| self.options.prune) else {
            return Ok(());
        };
        let is_between = self.layout.pending() == 0 && self.end == Some(self.ranges.at());
        let Some(first) = self.peek()?.cloned() else {
            return Ok(());
        };
        if !is_between || !progress.stands || first.at < progress.hopped {
            return Ok(());
        }
        let left = self.entries.left + 1;
        let mut entries = self.front.from(&self.options, first.at, left);
        let (mut last, mut hopped) = (None, first.end);
        while let Some(entry) = entries.next(&*self.source)? {
            if entries.left.is_multiple_of(POLL_ENTRIES) {
                self.options.poll()?;
            }
            hopped = entry.at;
            if entry.at >= progress.portion.until || self.wants(entry.partition, &entry.tenant)? {
                break;
            }
            last = Some((entry, entries.at, entries.left));
        }
        if let Some(progress) = &mut self.portion {
            // In front of that there is nothing to hop to.
            progress.hopped = hopped;
        }
        // A single one can as well be read as what it is.
        let Some((entry, next, left)) = last.filter(|(entry, ..)| entry.at > first.at) else {
            return Ok(());
        };
        let mut probe = Probe::default();
        let standing = standing(
            &*self.source,
            &self.options,
            &mut probe,
            &self.front,
            &entry,
        )?;
        let Some(shape) = standing else {
            return Ok(());
        };
        let name_at = entry.offset + BLOCK_HEADER_BYTES;
        let end = entry.block_end();
        self.last = Some((
            entry.partition,
            Name::read(&*self.source, name_at, shape.tenant_len)?,
        ));
        self.before = Some(entry.partition);
        self.end = Some(end);
        self.tried.clear();
        self.layout = Layout::new(end, self.front.len);
        self.ranges.leave_entry(first.at, entry.end)?;
        self.ranges.skip_to(end);
        self.next = None;
        self.entries = self.front.from(&self.options, next, left);
        self.ahead = Ahead::new(self.front.from(&self.options, next, left));
        if let Some(progress) = &mut self.portion {
            progress.pass(entry.at, left + 1);
            progress.stands = true;
        }
        Ok(())
    }

    /// Goes on in a part.
    pub(super) fn resume_part(&mut self, progress: Option<Progress>) -> Result<()> {
        if let Some(progress) = progress {
            check_portion(&*self.source, &self.front, &progress.portion)?;
            self.set_progress(progress);
        }
        Ok(())
    }

    /// The block of the entry that was passed counts where the entry says, or somewhere else.
    pub(super) const fn note_standing(&mut self, stands: bool) {
        if let Some(progress) = &mut self.portion {
            progress.stands = stands;
        }
    }

    /// Whether the part ends in front of the next entry: there the next one begins. Then its front does too.
    pub(super) fn is_behind_part(&mut self) -> Result<bool> {
        let Some(progress) = self.portion else {
            return Ok(false);
        };
        let until = progress.portion.until;
        let Some(next) = self.peek()?.map(|entry| entry.at).filter(|at| *at >= until) else {
            return Ok(false);
        };
        if progress.stands {
            if self.layout.pending() > 0 || self.end != Some(self.ranges.at()) {
                return Err(self.inseparable("blocks in front of its end overlap"));
            }
            self.end_part(next)?;
            self.ranges.end_stretch(next);
            return Ok(true);
        }
        let Some((at, left)) = progress.passed else {
            return Ok(false);
        };
        let mut entries = self.front.from(&self.options, at, left);
        let probe = &mut Probe::default();
        if let Some(entry) = entries.next(&*self.source)?
            && standing(&*self.source, &self.options, probe, &self.front, &entry)?.is_some()
        {
            return Err(self.inseparable(&format!(
                "the block at offset {} checks, but is not in order",
                entry.offset
            )));
        }
        Ok(false)
    }

    /// The search budget is exhausted: in a part, whether it is for the whole walk, others decide.
    pub(super) fn exhaust_part(&self) -> Result<()> {
        match &self.portion {
            Some(_) => Err(exhausted(self.source.path())),
            None => Ok(()),
        }
    }

    /// At the end of a part, in front of the entry at `next`: refuses it if the whole walk may have ended a search in it or
    /// behind it.
    pub(super) fn end_part(&self, next: u64) -> Result<()> {
        let Some(Progress { start, .. }) = self.portion else {
            return Ok(());
        };
        let blocks = self.ranges.at().saturating_sub(start.1);
        let bytes = blocks.saturating_add(next.saturating_sub(start.0));
        check_share(self.source.path(), self.probe.budget, bytes, self.front.len)
    }

    /// How far the walk of a part is.
    pub(super) fn progress(&self) -> Option<Progress> {
        self.portion.map(|progress| Progress {
            peak: self.probe.budget.peak(),
            ..progress
        })
    }

    fn inseparable(&self, why: &str) -> Error {
        inseparable(self.source.path(), why)
    }
}

fn check_portion(source: &dyn Source, front: &Front, portion: &Portion) -> Result<()> {
    let is_here = is_splittable(front)
        && front.stored_crc == portion.crc
        && portion.until
            <= front
                .toc_end
                .unwrap_or_default()
                .saturating_sub(COUNT_BYTES)
        && portion.from < portion.until
        && portion
            .before
            .map_or(portion.from == TOC_START, |(at, _)| at < portion.from);
    match is_here {
        true => Ok(()),
        false => Err(another_file(source.path())),
    }
}

/// What the block of an entry is, if it checks where the entry says that it is, whatever is in front of it.
fn standing(
    source: &dyn Source,
    options: &Options,
    probe: &mut Probe,
    front: &Front,
    entry: &Entry,
) -> Result<Option<Shape>> {
    if !front.in_bounds(entry.offset) || entry.block_end() > front.len {
        return Ok(None);
    }
    let pieces = probe.hash(source, options, entry.offset, entry.length)?;
    if block_crc(entry.partition, &pieces.crc) != entry.crc {
        return Ok(None);
    }
    Ok(pieces.decoder.finish(entry.length).ok())
}
