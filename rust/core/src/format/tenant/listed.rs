//! The scan of version 2 by a sound table of contents: every byte is what the table makes of it (rule 22). It alone is read in parts.

use serde::{Deserialize, Serialize};

use super::block_search::{BlockSearch, Good, Places, Verdict};
use super::claims::{Claim, Claims, Origin};
use super::front::COUNT_BYTES;
use super::judge::Fault;
use super::part::{self, Progress};
use super::probe::tenant_of;
use super::reading::Reading;
use super::toc::Entry;
use crate::bug::OrBug;
use crate::engine::Advance;
use crate::engine::part::{check_share, exhausted, inseparable};
use crate::error::{Error, Result};
use crate::ledger::Cause;
use crate::limits::LIMITS;

/// The CRC-32 of the table of contents.
const CRC_BYTES: u64 = 4;
/// How many entries are passed over between two looks at whether to stop.
const POLL_ENTRIES: u64 = 1 << 12;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) search: BlockSearch,
    pub(super) claims: Claims,
    /// The part that this scan is of, and how far it is.
    pub(super) progress: Option<Progress>,
}

impl Listed {
    pub(super) fn advance(&mut self, on: &mut Reading) -> Result<Advance> {
        self.hop(on)?;
        if self.is_behind_part(on)? {
            return Ok(Advance::End);
        }
        let Some(entry) = on.peek()?.cloned() else {
            self.lay(on, on.input.front.len)?;
            self.end_part(on, on.place.table.place().0)?;
            return Ok(Advance::End);
        };
        let verdict = match on.place.is_limited {
            true => Verdict::Failed(Fault::Unsearched),
            false => {
                let (floor, places) = (self.claims.at(), Places::NamedAndBehind);
                self.search.find(on, &entry, floor, places)?
            }
        };
        if on.place.is_limited {
            if self.progress.is_some() {
                // Whether it is for the whole walk, other parts decide.
                return Err(exhausted(on.input.source.path()));
            }
            if !matches!(verdict, Verdict::Good(_)) {
                return self.give_up(on);
            }
        }
        match verdict {
            Verdict::Full => return Ok(Advance::Full),
            Verdict::Good(good) => self.keep(on, &entry, good)?,
            Verdict::Failed(fault) => self.fail(on, &entry, fault)?,
        }
        self.lay_certain(on, &entry)?;
        Ok(Advance::On)
    }

    /// Goes on behind the entry that came next. Gives the partition of the entry in front of it.
    fn pass(&mut self, on: &mut Reading) -> Option<u32> {
        let before = on.place.table.before;
        if let (Some((at, left)), Some(progress)) = (on.place.table.pass(), &mut self.progress) {
            progress.pass(at, left);
        }
        before
    }

    /// Takes in the good block of an entry.
    fn keep(&mut self, on: &mut Reading, entry: &Entry, good: Good) -> Result<()> {
        let before = self.pass(on);
        self.lay_tenants(on, entry, before, good.at)?;
        if !good.is_as_stated(&*on.input.source, entry)? {
            on.ranges.mark(entry.at, entry.end, Cause::IndexDisagrees)?;
        }
        self.claims.block(good.at, good.end());
        if let Some(progress) = &mut self.progress {
            progress.stands = (good.at, good.shape.len) == (entry.offset, entry.length);
        }
        self.search.keep(on, entry, good)
    }

    /// Takes in an entry that failed: its range, or the entry itself, is damaged.
    fn fail(&mut self, on: &mut Reading, entry: &Entry, fault: Fault) -> Result<()> {
        let before = self.pass(on);
        self.lay_tenants(on, entry, before, entry.offset)?;
        let (front, cause) = (&on.input.front, fault.cause());
        let end = entry.block_end().min(front.len);
        if front.in_bounds(entry.offset) && entry.offset < end {
            self.claims
                .failed(entry.offset, end, cause, entry.at, entry.end);
            return Ok(());
        }
        on.ranges.mark(entry.at, entry.end, cause)
    }

    /// The search ended. The bytes that are left become one range. If none are left, the entries not looked at are damage.
    fn give_up(&mut self, on: &mut Reading) -> Result<Advance> {
        let (at, left) = on.place.table.place();
        if !self.claims.give_up(at, left) {
            // What is called the end of the table of contents has its CRC-32 before it.
            let end = on.input.front.toc_end.or_bug("the end of a sound table")? - CRC_BYTES;
            on.ranges.mark(at, end, Cause::SearchLimit)?;
        }
        // Reading that goes on to find the first damage does not give up again.
        on.place.table.end();
        self.lay(on, on.input.front.len)?;
        Ok(Advance::End)
    }

    /// Lays what nothing behind this entry can change.
    fn lay_certain(&mut self, on: &mut Reading, entry: &Entry) -> Result<()> {
        let disorder = on.input.front.disorder;
        let in_order = disorder.is_none_or(|last| entry.at >= last);
        let is_crowded = self.claims.pending() > LIMITS.pending_blocks;
        let Some(next) = on
            .peek()?
            .map(|next| next.offset.saturating_sub(COUNT_BYTES))
        else {
            return Ok(());
        };
        match (in_order, is_crowded) {
            // Later searches start at `Claims::at`: a block in the bytes that are laid here is not found.
            (true, true) => self.lay(on, next),
            (true, false) => self.lay(on, next.min(on.place.end.unwrap_or(0))),
            (false, true) => {
                on.place.is_limited = true;
                Ok(())
            }
            (false, false) => Ok(()),
        }
    }

    /// Lays what is certain, and marks the entries that lost all of their ranges.
    fn lay(&mut self, on: &mut Reading, until: u64) -> Result<()> {
        let ranges = &mut on.ranges;
        let until = until.min(on.input.front.len);
        let clipped = self.claims.lay(until, |end, kind, cause, origin| {
            ranges.cover(end, kind, cause, origin);
        });
        clipped.iter().try_for_each(|claim| mark_lost(on, claim))
    }

    /// The number of tenants in front of a partition's first block, which stands at `first`.
    fn lay_tenants(
        &mut self,
        on: &mut Reading,
        entry: &Entry,
        before: Option<u32>,
        first: u64,
    ) -> Result<()> {
        let input = &mut on.input;
        let source = &*input.source;
        let tenants = on.place.table.partition_begins(source, entry, before)?;
        let (Some(tenants), true) = (tenants, first >= input.front.first_block()) else {
            return Ok(());
        };
        let at = first - COUNT_BYTES;
        let cause = match input.front.len.checked_sub(at) {
            None | Some(0) => return Ok(()),
            Some(..COUNT_BYTES) => Some(Cause::TruncatedHeader),
            Some(_) => {
                let found = match input.data.bytes(source, at).first_chunk() {
                    Some(bytes) => u32::from_be_bytes(*bytes),
                    None => input.u32_at(at)?,
                };
                (u64::from(found) != tenants).then_some(Cause::CountMismatch)
            }
        };
        self.claims.tenants(at, entry.at, tenants, cause);
        Ok(())
    }

    /// Whether all that is known of the data is laid, up to the end of the last good block.
    fn is_between(&self, on: &Reading) -> bool {
        self.claims.pending() == 0 && on.place.end == Some(on.ranges.at())
    }

    /// Goes on behind entries that are not wanted, of a part that is to be read no further than need be: up to the next one that is,
    /// or to the part's end, if the block in front of that stands. There the walk is as if it had begun.
    fn hop(&mut self, on: &mut Reading) -> Result<()> {
        let Some(progress) = self.progress.filter(|_| on.input.options.prune) else {
            return Ok(());
        };
        let is_between = self.is_between(on);
        let Some(first) = on.peek()?.cloned() else {
            return Ok(());
        };
        if !is_between || !progress.stands || first.at < progress.hopped {
            return Ok(());
        }
        let (last, hopped) = self.last_unwanted(on, &progress, &first)?;
        if let Some(progress) = &mut self.progress {
            // In front of that there is nothing to hop to.
            progress.hopped = hopped;
        }
        // A single one can as well be read as what it is.
        match last.filter(|(entry, _)| entry.at > first.at) {
            Some((entry, left)) => self.hop_to(on, first.at, &entry, left),
            None => Ok(()),
        }
    }

    /// The last of the entries from `first` on that are not wanted, with how many are left behind it, and up to where they were looked at.
    fn last_unwanted(
        &self,
        on: &Reading,
        progress: &Progress,
        first: &Entry,
    ) -> Result<(Option<(Entry, u64)>, u64)> {
        let (input, (at, left)) = (&on.input, on.place.table.place());
        let mut entries = input.entries(at, left);
        let (mut last, mut looked) = (None, first.end);
        while let Some(entry) = entries.next(&*input.source)? {
            if entries.left.is_multiple_of(POLL_ENTRIES) {
                input.options.poll()?;
            }
            looked = entry.at;
            if progress.is_behind(entry.at) || on.wants(entry.partition, &entry.tenant)? {
                break;
            }
            last = Some((entry, entries.left));
        }
        Ok((last, looked))
    }

    /// Goes on behind `entry`, if its block stands.
    fn hop_to(&mut self, on: &mut Reading, first: u64, entry: &Entry, left: u64) -> Result<()> {
        let Some(shape) = part::standing(&on.input, entry)? else {
            return Ok(());
        };
        let name = tenant_of(&*on.input.source, entry.offset, &shape)?;
        let end = entry.block_end();
        self.search.go_behind(on, end, (entry.partition, name));
        self.claims = Claims::new(end, on.input.front.len);
        on.ranges.leave_entry(first, entry.end)?;
        on.ranges.skip_to(end);
        on.place.table = on.input.table(entry.end, left, Some(entry.partition));
        if let Some(progress) = &mut self.progress {
            progress.pass(entry.at, left + 1);
            progress.stands = true;
        }
        Ok(())
    }

    /// Whether the part ends in front of the next entry: there the next one begins. Then its front does too.
    fn is_behind_part(&mut self, on: &mut Reading) -> Result<bool> {
        let Some(progress) = self.progress else {
            return Ok(false);
        };
        let next = on.peek()?.map(|entry| entry.at);
        let Some(next) = next.filter(|at| progress.is_behind(*at)) else {
            return Ok(false);
        };
        if progress.stands {
            if !self.is_between(on) {
                return Err(self.inseparable(on, "blocks in front of its end overlap"));
            }
            self.end_part(on, next)?;
            on.ranges.end_stretch(next);
            return Ok(true);
        }
        let Some((at, left)) = progress.passed else {
            return Ok(false);
        };
        if let Some(entry) = on.input.entries(at, left).next(&*on.input.source)?
            && part::standing(&on.input, &entry)?.is_some()
        {
            return Err(self.inseparable(
                on,
                &format!(
                    "the block at offset {} checks, but is not in order",
                    entry.offset
                ),
            ));
        }
        Ok(false)
    }

    /// At the end of a part, in front of the entry at `next`: refuses it if the whole walk may have ended a search in it or
    /// behind it.
    fn end_part(&self, on: &Reading, next: u64) -> Result<()> {
        let Some(Progress { start, .. }) = self.progress else {
            return Ok(());
        };
        let blocks = on.ranges.at().saturating_sub(start.1);
        let bytes = blocks.saturating_add(next.saturating_sub(start.0));
        let (path, budget) = (on.input.source.path(), on.input.budget);
        check_share(path, budget, bytes, on.input.front.len)
    }

    fn inseparable(&self, on: &Reading, why: &str) -> Error {
        inseparable(on.input.source.path(), why)
    }
}

/// Marks the entries of a claim of which nothing was left.
fn mark_lost(on: &mut Reading, claim: &Claim) -> Result<()> {
    let (Origin::Entry(toc_at), Some(cause)) = (claim.origin, claim.cause) else {
        return Ok(());
    };
    let mut entries = on.input.entries(toc_at, claim.entries);
    while let Some(entry) = entries.next(&*on.input.source)? {
        let end = entry.block_end().min(on.input.front.len);
        if !claim.has_left(entry.offset, end) {
            on.ranges.mark(entry.at, entry.end, cause)?;
        }
    }
    Ok(())
}
