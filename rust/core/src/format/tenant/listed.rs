//! The scans of a sound table of contents. That of version 2 decides about every byte (rule 22), and it alone is read in
//! parts. The other one reads only blocks or partitions that match, each entry by itself. It ends at one that is not
//! where its entry says, because only a scan through the whole file may find that.

use super::VERSION_1;
use super::block_search::{BlockSearch, Good, Verdict};
use super::claims::{Claim, Claims, Origin};
use super::emit::{has_partition, has_tenant};
use super::front::COUNT_BYTES;
use super::part::{self, Progress};
use super::partitions::{self, PartitionSearch};
use super::reading::{OpenPartition, ScanState};
use super::toc::Entry;
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::ledger::{Cause, Kind};
use crate::limits::LIMITS;
use crate::walk::part::{check_share, exhausted, inseparable};
use crate::walk::{Advance, Budget};

/// The CRC-32 of the table of contents.
const CRC_BYTES: u64 = 4;

#[derive(Debug)]
pub(super) struct Listed {
    pub(super) search: BlockSearch,
    pub(super) claims: Claims,
}

impl Listed {
    pub(super) fn advance(&mut self, on: &mut ScanState) -> Result<Advance> {
        if self.is_past_part(on)? {
            return Ok(Advance::End);
        }
        let Some(entry) = on.peek()?.cloned() else {
            self.commit(on, on.input.front.len)?;
            self.end_part(on, on.place.table.place().0)?;
            return Ok(Advance::End);
        };
        let verdict = match on.place.is_limited {
            true => Verdict::Failed(Cause::SearchLimit),
            false => {
                let floor = self.claims.at();
                self.search.find(on, &entry, floor, true)?
            }
        };
        if on.place.is_limited {
            if on.part.is_some() {
                // Other parts decide whether the whole walk's budget is exhausted.
                return Err(exhausted(on.input.source.path()));
            }
            if !matches!(verdict, Verdict::Good(_)) {
                return self.end_search(on);
            }
        }
        match verdict {
            Verdict::Full => return Ok(Advance::Full),
            Verdict::Good(good) => self.commit_block(on, &entry, good)?,
            Verdict::Failed(cause) => self.fail(on, &entry, cause)?,
        }
        self.commit_certain(on, &entry)?;
        Ok(Advance::On)
    }

    /// Advances past the current entry, whose block is at `first`.
    fn pass(&mut self, on: &mut ScanState, entry: &Entry, first: u64) -> Result<()> {
        self.claim_tenants(on, entry, first)?;
        let passed = on.place.table.pass();
        if let (Some(_), Some(part)) = (passed, &mut on.part) {
            (part.passed, part.in_place) = (passed, false);
        }
        Ok(())
    }

    /// Commits the good block of an entry.
    fn commit_block(&mut self, on: &mut ScanState, entry: &Entry, good: Good) -> Result<()> {
        self.pass(on, entry, good.entry.offset)?;
        if !good.is_as_stated(&*on.input.source, entry)? {
            on.mark(entry.at, entry.end, Cause::IndexDisagrees);
        }
        self.claims.block(good.entry.offset, good.entry.block_end());
        if let Some(part) = &mut on.part {
            part.in_place = good.is_in_place(entry);
        }
        self.search.commit(on, good)
    }

    /// Handles a failed entry: its range, or the entry itself, is damaged.
    fn fail(&mut self, on: &mut ScanState, entry: &Entry, cause: Cause) -> Result<()> {
        self.pass(on, entry, entry.offset)?;
        let front = &on.input.front;
        let end = entry.block_end().min(front.len);
        if front.in_bounds(entry.offset) && entry.offset < end {
            self.claims
                .failed(entry.offset, end, cause, entry.at, entry.end);
            return Ok(());
        }
        on.mark(entry.at, entry.end, cause);
        Ok(())
    }

    /// Ends the search. The bytes that are left become one range. If none are left, the remaining entries are
    /// marked.
    fn end_search(&mut self, on: &mut ScanState) -> Result<Advance> {
        let (at, left) = on.place.table.place();
        if !self.claims.end_search(at, left) {
            // The end of the table of contents includes its CRC-32.
            let end = on.input.front.toc_end.or_bug("the end of a sound table")? - CRC_BYTES;
            on.mark(at, end, Cause::SearchLimit);
        }
        // A walk that continues to find the first damage must not end its search again.
        on.place.table.end();
        self.commit(on, on.input.front.len)?;
        Ok(Advance::End)
    }

    /// Commits what no later entry can change.
    fn commit_certain(&mut self, on: &mut ScanState, entry: &Entry) -> Result<()> {
        let disorder = on.input.front.disorder;
        let in_order = disorder.is_none_or(|last| entry.at >= last);
        let is_crowded = self.claims.pending() > LIMITS.pending_blocks;
        let Some(next) = on
            .peek()?
            .map(|next| next.offset.saturating_sub(COUNT_BYTES))
        else {
            return Ok(());
        };
        if !in_order {
            on.place.is_limited |= is_crowded;
            return Ok(());
        }
        let last_end = on.place.end.or_bug("where the last block ends")?;
        // Later searches start at `Claims::at`, so a block in the bytes committed here is never found.
        let until = if is_crowded { next } else { next.min(last_end) };
        self.commit(on, until)
    }

    /// Commits what is certain, and marks the entries that lost all of their ranges.
    fn commit(&mut self, on: &mut ScanState, until: u64) -> Result<()> {
        let until = until.min(on.input.front.len);
        let clipped = self.claims.commit(until, &mut on.ranges);
        clipped.iter().try_for_each(|claim| mark_lost(on, claim))
    }

    /// Adds the number of tenants before a partition's first block, which is at `first`.
    fn claim_tenants(&mut self, on: &mut ScanState, entry: &Entry, first: u64) -> Result<()> {
        let input = &mut on.input;
        let table = &mut on.place.table;
        let tenants = table.partition_begins(&*input.source, entry)?;
        let (Some(tenants), true) = (tenants, first >= input.front.first_block()) else {
            return Ok(());
        };
        let at = first - COUNT_BYTES;
        let cause = match input.front.len.checked_sub(at) {
            None | Some(0) => return Ok(()),
            Some(..COUNT_BYTES) => Some(Cause::TruncatedHeader),
            Some(_) => {
                let found = u64::from(input.u32_at(at)?);
                (found != tenants).then_some(Cause::CountMismatch)
            }
        };
        self.claims.tenants(at, entry.at, tenants, cause);
        Ok(())
    }

    /// Whether everything known of the data is committed, up to the end of the last good block.
    fn is_between(&self, on: &ScanState) -> bool {
        self.claims.pending() == 0 && on.place.end == Some(on.ranges.at())
    }

    /// Whether the part ends before the next entry, where the next part begins. Its front ends there too.
    fn is_past_part(&mut self, on: &mut ScanState) -> Result<bool> {
        let Some(progress) = on.part else {
            return Ok(false);
        };
        let next = on.peek()?.map(|entry| entry.at);
        let Some(next) = next.filter(|at| progress.is_past(*at)) else {
            return Ok(false);
        };
        if progress.in_place {
            if !self.is_between(on) {
                return Err(self.inseparable(on, "blocks before its end overlap"));
            }
            self.end_part(on, next)?;
            on.ranges.end_part(next);
            return Ok(true);
        }
        let Some((at, left)) = progress.passed else {
            return Ok(false);
        };
        if let Some(entry) = on.input.entries(at, left).next(&*on.input.source)?
            && part::good_in_place(&on.input, &entry)?.is_some()
        {
            return Err(self.inseparable(
                on,
                &format!(
                    "the block at offset {} is verified, but out of order",
                    entry.offset
                ),
            ));
        }
        Ok(false)
    }

    /// Ends a part before the entry at `next`. Refuses it if the whole walk may have ended a search in it or after
    /// it.
    fn end_part(&self, on: &ScanState, next: u64) -> Result<()> {
        let Some(Progress { start, .. }) = on.part else {
            return Ok(());
        };
        let blocks = on.ranges.at().saturating_sub(start.1);
        let bytes = blocks.saturating_add(next.saturating_sub(start.0));
        let (path, budgets) = (on.input.source.path(), (Budget::default(), on.input.budget));
        check_share(path, budgets, bytes, on.input.front.len)
    }

    fn inseparable(&self, on: &ScanState, why: &str) -> Error {
        inseparable(on.input.source.path(), why)
    }
}

/// Marks the entries of a claim that received nothing.
fn mark_lost(on: &mut ScanState, claim: &Claim) -> Result<()> {
    let (Origin::Entry(toc_at), Some(cause)) = (claim.origin, claim.cause) else {
        return Ok(());
    };
    let mut entries = on.input.entries(toc_at, claim.entries);
    while let Some(entry) = entries.next(&*on.input.source)? {
        let end = entry.block_end().min(on.input.front.len);
        if !claim.has_left(entry.offset, end) {
            on.mark(entry.at, entry.end, cause);
        }
    }
    Ok(())
}

/// Reads only blocks (version 1: partitions) that match, each entry by itself.
#[derive(Debug, Default)]
pub(super) struct Pruned {
    blocks: BlockSearch,
    partitions: PartitionSearch,
}

/// The outcome of an advance, or why it found nothing.
type Pruning<T> = std::result::Result<Advance, T>;
/// The entry that names nothing there, and why.
type Missed = (Entry, Cause);

impl Pruned {
    /// Advances by an entry.
    pub(super) fn advance(&mut self, on: &mut ScanState) -> Result<Pruning<Missed>> {
        let source = &*on.input.source;
        let next = on.place.table.entries.peek(source)?;
        let is_past = |entry: &&Entry| on.part.is_some_and(|part| part.is_past(entry.at));
        let Some(entry) = next.filter(|entry| !is_past(entry)) else {
            if let Some(entry) = next {
                on.ranges.end_part(entry.at);
            }
            return end(on);
        };
        let filter = &on.emitter.filter;
        let matches = match on.input.front.version {
            VERSION_1 => has_partition(filter, entry.partition),
            _ => has_tenant(filter, source, entry.partition, &entry.tenant)?,
        };
        if !matches {
            on.ranges.leave_entry(entry.at, entry.end);
            let passed = on.place.table.pass();
            if let Some(part) = &mut on.part {
                part.passed = passed;
            }
            return Ok(Ok(Advance::On));
        }
        let entry = entry.clone();
        let found = match on.input.front.version {
            VERSION_1 => self.find_partition(on, &entry)?,
            _ => self.find_block(on, &entry)?,
        };
        if let (Ok(_), Some(part)) = (found, &mut on.part) {
            part.passed = None; // what matches is verified anyway
        }
        Ok(found.or_else(|cause| miss(on, entry, cause)))
    }

    /// Commits the block that an entry of version 2 names.
    fn find_block(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Pruning<Cause>> {
        let floor = on.input.front.end();
        let good = match self.blocks.find(on, entry, floor, false)? {
            Verdict::Full => return Ok(Ok(Advance::Full)),
            Verdict::Failed(cause) => return Ok(Err(cause)),
            Verdict::Good(good) => good,
        };
        if !good.is_as_stated(&*on.input.source, entry)? {
            return Ok(Err(Cause::IndexDisagrees));
        }
        on.place.table.pass();
        on.ranges.skip_to(entry.offset);
        let end = entry.block_end();
        on.ranges.cover(end, Kind::Block, None, Origin::None);
        self.blocks.commit(on, good)?;
        Ok(Ok(Advance::On))
    }

    /// Begins with the partition that an entry of version 1 names.
    fn find_partition(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Pruning<Cause>> {
        let good = match self.partitions.find(on, entry)? {
            partitions::Verdict::Good(good, true) => good,
            partitions::Verdict::Good(_, false) => return Ok(Err(Cause::IndexDisagrees)),
            partitions::Verdict::Cut(_, cause) | partitions::Verdict::Failed(cause) => {
                return Ok(Err(cause));
            }
        };
        on.place.table.pass();
        on.ranges.skip_to(entry.offset);
        let end = entry.block_end();
        self.partitions.go_past(&mut on.place, end, &good);
        OpenPartition::begin(on, good, false);
        Ok(Ok(Advance::On))
    }
}

/// Ends after the last entry. Of a part the block of that must be good in place, since the next part begins there.
fn end(on: &mut ScanState) -> Result<Pruning<Missed>> {
    if let Some((at, left)) = on.part.and_then(|part| part.passed)
        && let Some(entry) = on.input.entries(at, left).next(&*on.input.source)?
        && part::good_in_place(&on.input, &entry)?.is_none()
    {
        return Ok(miss(on, entry, Cause::IndexDisagrees));
    }
    Ok(Ok(Advance::End))
}

/// Good messages are emitted before a miss.
fn miss(on: &mut ScanState, entry: Entry, cause: Cause) -> Pruning<Missed> {
    on.ranges.flush();
    match on.is_held() || !on.ranges.spans.is_empty() {
        true => Ok(Advance::Full),
        false => Err((entry, cause)),
    }
}
