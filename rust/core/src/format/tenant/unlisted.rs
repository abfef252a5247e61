//! The scan of version 2 without a sound table of contents: an entry is proven by the block that it names (rule
//! 23).

use std::cmp::Ordering;

use super::block_search::{BlockSearch, Good, Verdict};
use super::claims::Origin;
use super::front::COUNT_BYTES;
use super::layout::{BLOCK_HEADER_BYTES, TocEntry};
use super::probe::{FAR_COST, Input, MOST_TENANT_BYTES};
use super::reading::ScanState;
use super::toc::{Entry, TOC_START, V2_ENTRY_BYTES};
use crate::error::Result;
use crate::ledger::{Cause, Kind};
use crate::walk::indexed::kind;
use crate::walk::{Advance, Budget};

/// What the budget charges for trying a length or a place, in bytes.
const TRIAL_COST: u64 = 16;
/// What the budget charges for a look at the place that an entry names.
const LOOK_COST: u64 = FAR_COST;
/// How many lengths or places are tried between two polls of the interrupt.
const POLL_TRIALS: u64 = 1 << 12;

/// How the entry at a place is searched for.
#[derive(Clone, Copy, Debug)]
enum Trial {
    /// As it is there: (i).
    Stated,
    /// With a tenant ID of this length instead, or of a greater one: (ii).
    Lengths(u32),
    /// As it is at this later place, or at one after it: (iii).
    Later(u64),
    /// There is none. Reading continues where it ends, if it fits.
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct Unlisted {
    search: BlockSearch,
    /// The place in the table at which an entry is searched for, and how.
    at: u64,
    trial: Trial,
    /// The latest end of entries, except for the first one.
    limit: u64,
    /// (iii) found no later place up to here, as long as no other block is good.
    searched_in_vain: bool,
}

impl Unlisted {
    /// At the beginning of a table that ends at `toc_end`, if it fits in a file of `len` bytes.
    pub(super) fn new(toc_end: Option<u64>, len: u64) -> Self {
        Self {
            search: BlockSearch::default(),
            at: TOC_START,
            trial: Trial::Stated,
            limit: match toc_end {
                Some(end) => end - COUNT_BYTES,
                None => len,
            },
            searched_in_vain: false,
        }
    }

    pub(super) fn advance(&mut self, on: &mut ScanState) -> Result<Advance> {
        on.input.options.poll()?;
        if on.place.is_limited {
            end(on);
            return Ok(Advance::End);
        }
        let found = match self.trial {
            Trial::Stated => self.try_stated(on)?,
            Trial::Lengths(from) => self.try_lengths(on, from)?,
            Trial::Later(from) => self.try_later(on, from)?,
            Trial::Nothing => {
                if self.pass(on)? {
                    return Ok(Advance::On);
                }
                end(on);
                return Ok(Advance::End);
            }
        };
        Ok(found.unwrap_or(Advance::On))
    }

    /// Tries the entry as it is at this place, by (a) to (d).
    fn try_stated(&mut self, on: &mut ScanState) -> Result<Option<Advance>> {
        let limit = self.own_limit(&on.input);
        let stated = on.input.entry_at(self.at, None, limit)?;
        let Some(fields) = stated else {
            self.trial = Trial::Lengths(0);
            return Ok(None);
        };
        let entry = entry_of(&mut on.input, self.at, fields)?;
        let found = self.find(on, &entry, true)?;
        if found.is_none() {
            // If its tenant ID is right, only the block is damaged.
            let is_right = has_length(on, &fields)? && has_tenant(on, &entry)?;
            self.trial = match is_right {
                true => self.after(on),
                false => Trial::Lengths(0),
            };
        }
        Ok(found)
    }

    /// Tries the entry at this place with tenant IDs of other lengths, from this one on, by (a) and (b).
    fn try_lengths(&mut self, on: &mut ScanState, from: u32) -> Result<Option<Advance>> {
        let limit = self.own_limit(&on.input);
        for length in from..=MOST_TENANT_BYTES {
            poll(on, length.into())?;
            let before = on.input.budget;
            let fields = on.input.entry_at(self.at, Some(length), limit)?;
            let Some(fields) = fields.filter(|_| spend(on, TRIAL_COST)) else {
                break;
            };
            let found = self.try_fields(on, self.at, fields, Trial::Lengths(length), before)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.trial = self.after(on);
        Ok(None)
    }

    /// Tries the entries as they are at the places from this one on, by (a) and (b).
    fn try_later(&mut self, on: &mut ScanState, from: u64) -> Result<Option<Advance>> {
        for at in from..self.limit {
            poll(on, at)?;
            let before = on.input.budget;
            if self.limit - at < V2_ENTRY_BYTES || !spend(on, TRIAL_COST) {
                break;
            }
            if on.input.entry_tenant_len(at)? > MOST_TENANT_BYTES {
                continue;
            }
            let Some(fields) = on.input.entry_at(at, None, self.limit)? else {
                continue;
            };
            let found = self.try_fields(on, at, fields, Trial::Later(at), before)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.searched_in_vain = true;
        self.trial = Trial::Nothing;
        Ok(None)
    }

    /// Tries the entry at `at` with these fields, by (a) and (b). The search goes on with this `trial`, before which the
    /// budget was `before`, if the step ends first.
    fn try_fields(
        &mut self,
        on: &mut ScanState,
        at: u64,
        fields: TocEntry,
        trial: Trial,
        before: Budget,
    ) -> Result<Option<Advance>> {
        if fields.offset < on.place.good_end() || !has_length(on, &fields)? {
            return Ok(None);
        }
        let entry = entry_of(&mut on.input, at, fields)?;
        if matches!(trial, Trial::Later(_)) && !has_tenant(on, &entry)? {
            return Ok(None);
        }
        self.trial = trial;
        let found = self.find(on, &entry, false)?;
        if found == Some(Advance::Full) {
            on.input.budget.take_back(before);
        }
        Ok(found)
    }

    /// How entries after this place are searched for, if at all.
    fn after(&self, on: &ScanState) -> Trial {
        let is_lost = on.input.front.toc_end.is_none() && on.place.last.is_none();
        if self.searched_in_vain || is_lost {
            return Trial::Nothing;
        }
        Trial::Later(self.at + 1)
    }

    /// Continues where the entry at this place ends, in which nothing was found. `false` if it does not fit.
    fn pass(&mut self, on: &mut ScanState) -> Result<bool> {
        let Some(fields) = on.input.entry_at(self.at, None, self.limit)? else {
            return Ok(false);
        };
        self.at += V2_ENTRY_BYTES + u64::from(fields.tenant_len);
        self.trial = Trial::Stated;
        let is_unbounded = on.input.front.toc_end.is_none() && on.place.last.is_none();
        if is_unbounded && fields.offset >= self.at {
            self.limit = self.limit.min(fields.offset);
        }
        Ok(true)
    }

    /// The latest end of the entry at this place. The first one is tried whatever the table says.
    fn own_limit(&self, input: &Input) -> u64 {
        match self.at {
            TOC_START => input.front.len,
            _ => self.limit,
        }
    }

    /// Commits the good block that an entry names. `None` if there is none.
    fn find(
        &mut self,
        on: &mut ScanState,
        entry: &Entry,
        is_sought_after_last: bool,
    ) -> Result<Option<Advance>> {
        Ok(
            match self.search.find(on, entry, 0, is_sought_after_last)? {
                Verdict::Good(good) => {
                    self.commit_block(on, entry, good)?;
                    Some(Advance::On)
                }
                Verdict::Failed(_) => None,
                Verdict::Full => Some(Advance::Full),
            },
        )
    }

    /// Commits a good block, and continues after the entry that it proves.
    fn commit_block(&mut self, on: &mut ScanState, entry: &Entry, good: Good) -> Result<()> {
        let (at, block_end) = (good.entry.offset, good.entry.block_end());
        let (kind, cause) = match &on.place.last {
            None => {
                self.limit = at;
                (Kind::Corrupt, on.input.front.broken)
            }
            Some(last) => {
                let gap = at.saturating_sub(on.ranges.at());
                if gap == COUNT_BYTES && last.partition != entry.partition {
                    (Kind::Header, None)
                } else {
                    (Kind::Corrupt, Some(Cause::Unreferenced))
                }
            }
        };
        self.at = entry.end;
        self.trial = Trial::Stated;
        self.searched_in_vain = false;
        self.search.commit(on, good)?;
        on.ranges.cover(at, kind, cause, Origin::None);
        on.ranges.cover(block_end, Kind::Block, None, Origin::None);
        Ok(())
    }
}

/// The entry at `at` with these fields.
fn entry_of(input: &mut Input, at: u64, fields: TocEntry) -> Result<Entry> {
    let tenant = input.entry_name(at, fields.tenant_len)?;
    Ok(Entry::new(at, fields, tenant))
}

/// Whether at the entry's offset there can be a block whose tenant ID is as long as the entry's.
fn has_length(on: &mut ScanState, fields: &TocEntry) -> Result<bool> {
    let (front, len) = (&on.input.front, u64::from(fields.tenant_len));
    let end = fields.offset.checked_add(BLOCK_HEADER_BYTES + len);
    let is_within = front.in_bounds(fields.offset) && end.is_some_and(|end| end <= front.len);
    Ok(is_within
        && spend(on, LOOK_COST)
        && on.input.u32_at(fields.offset + 4)? == fields.tenant_len)
}

/// Whether the tenant ID there, of that length, equals the entry's.
fn has_tenant(on: &mut ScanState, entry: &Entry) -> Result<bool> {
    let found_at = entry.offset + BLOCK_HEADER_BYTES;
    let found = on.input.name_at(found_at, entry.tenant.len)?;
    Ok(entry.tenant.compare(&*on.input.source, &found)? == Ordering::Equal)
}

/// Charges this many bytes. `false` if they are not left: then the search ends.
fn spend(on: &mut ScanState, bytes: u64) -> bool {
    let affords = on.affords(bytes);
    on.input.budget.spend(bytes);
    affords
}

fn poll(on: &ScanState, trial: u64) -> Result<()> {
    match trial.is_multiple_of(POLL_TRIALS) {
        true => on.input.options.poll(),
        false => Ok(()),
    }
}

/// Ends the data after the last good block.
fn end(on: &mut ScanState) {
    let broken = on.input.front.broken;
    let (kind, cause) = if on.place.is_limited {
        (Kind::Corrupt, Some(Cause::SearchLimit))
    } else if on.ranges.at() == 0 {
        (kind(broken, true), broken)
    } else {
        (Kind::Corrupt, Some(Cause::Unreferenced))
    };
    on.ranges
        .cover(on.input.front.len, kind, cause, Origin::None);
}
