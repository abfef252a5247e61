//! Version 2: finds the block that an entry of the table of contents means, proven by its CRC-32 (rule 22, (a) to
//! (d)).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map;

use super::front::COUNT_BYTES;
use super::judge;
use super::layout::{Name, Shape, TocEntry};
use super::probe::{Checks, Decoded, FAR_COST, NEAR_BYTES, block_crc};
use super::reading::ScanState;
use super::toc::Entry;
use crate::error::Result;
use crate::ledger::Cause;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// A good block, by the entry that describes it.
pub(super) struct Good {
    pub(super) entry: Entry,
    checks: Checks,
}

impl Good {
    /// The block at `at`, with the partition and CRC-32 of the entry that names it.
    fn new(at: u64, shape: Shape, tenant: Name, entry: &Entry, checks: Checks) -> Self {
        let fields = TocEntry {
            tenant_len: shape.tenant_len,
            messages: shape.messages,
            offset: at,
            length: shape.len,
            ..entry.fields
        };
        Self {
            entry: Entry {
                tenant,
                fields,
                ..*entry
            },
            checks,
        }
    }

    /// Whether the entry describes the block correctly.
    pub(super) fn is_as_stated(&self, source: &dyn Source, entry: &Entry) -> Result<bool> {
        Ok(self.is_in_place(entry)
            && entry.messages == self.entry.messages
            && entry.tenant.compare(source, &self.entry.tenant)? == Ordering::Equal)
    }

    /// Whether it is where the entry says.
    pub(super) fn is_in_place(&self, entry: &Entry) -> bool {
        (entry.offset, entry.length) == (self.entry.offset, self.entry.length)
    }
}

/// The result for an entry.
pub(super) enum Verdict {
    Good(Good),
    Failed(Cause),
    /// The search would move the window with the rows that were found.
    Full,
}

/// A place after the last good block: what it decodes to, and the CRC-32 of its bytes.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    shape: Option<Shape>,
    crc: Option<u32>,
}

/// Finds blocks, entry by entry. It keeps what it knows, because learning it again would be charged again.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockSearch {
    /// The end of the bytes that an entry named and that were verified last.
    examined: u64,
    /// What is known of the places after the last good block, by offset.
    candidates: BTreeMap<u64, Candidate>,
}

impl BlockSearch {
    /// Commits the good block of an entry: the search continues after it, and its messages are emitted if they
    /// match.
    pub(super) fn commit(&mut self, on: &mut ScanState, good: Good) -> Result<()> {
        let Good { entry, checks } = good;
        let (offset, end) = (entry.offset, entry.block_end());
        on.place.go_past(end, entry.clone());
        if !on.commit_block(entry, end, checks)? {
            on.emitter.pass(offset, end);
        }
        self.candidates.clear();
        Ok(())
    }

    /// Finds the block that an entry means, at or after `floor`: where the entry says (a, b), or also after the last good
    /// block (c, d). The cause says why the block is not as the entry says.
    pub(super) fn find(
        &mut self,
        on: &mut ScanState,
        entry: &Entry,
        floor: u64,
        is_sought_after_last: bool,
    ) -> Result<Verdict> {
        let good_end = on.place.good_end().max(floor);
        let cause = match judge::block_place(&on.input.front, entry, good_end) {
            Err(cause) => cause,
            Ok(()) => match self.examine(on, entry)? {
                Verdict::Failed(cause) => cause,
                other => return Ok(other),
            },
        };
        // It is decoded to its end. A block has only one length, so (b) is no other trial than (a).
        let in_place = entry.offset >= good_end;
        let after = on.place.end.map(|end| [end, end + COUNT_BYTES]);
        // Entry after entry is tried there.
        self.candidates
            .retain(|at, _| after.is_some_and(|after| after.contains(at)));
        let after = after.filter(|_| is_sought_after_last);
        let after = after
            .into_iter()
            .flatten()
            .filter(|place| *place != entry.offset && *place >= floor);
        for at in in_place.then_some(entry.offset).into_iter().chain(after) {
            if !on.place.is_limited
                && on.input.front.in_bounds(at)
                && let Some(good) = self.try_at(on, entry, at)?
            {
                return Ok(Verdict::Good(good));
            }
        }
        Ok(Verdict::Failed(match on.place.is_limited {
            true => Cause::SearchLimit,
            false => cause,
        }))
    }

    /// Verifies exactly the bytes that the entry names: (a).
    fn examine(&mut self, on: &mut ScanState, entry: &Entry) -> Result<Verdict> {
        let (at, len) = (entry.offset, entry.length);
        let in_memory = on.input.fits_window(len);
        let bytes = saturating_usize(len);
        if in_memory && on.is_held() && on.input.data.bytes(&*on.input.source, at).len() < bytes {
            return Ok(Verdict::Full);
        }
        if !on.affords(len) {
            return Ok(Verdict::Failed(Cause::SearchLimit));
        }
        // Bytes that are not near the last block that was looked at must be fetched.
        let near = self.examined..=self.examined.saturating_add(NEAR_BYTES);
        let fetched = if near.contains(&at) { 0 } else { FAR_COST };
        self.examined = at.saturating_add(len);
        if in_memory {
            let most = match on.place.is_pruned {
                true => bytes,
                false => bytes.max(on.input.options.window_bytes),
            };
            on.input
                .data
                .load_wary(&*on.input.source, at, bytes, most)?;
        }
        let (crc, decoder, checks) = on.input.check(entry.partition, at, len)?;
        let cause = match judge::block(entry, crc, &decoder) {
            Err(cause) => cause,
            Ok(shape) if !judge::block_proves(&on.input.front, entry, &shape) => {
                Cause::IndexDisagrees
            }
            Ok(shape) => {
                let tenant = on.input.name(at, &shape)?;
                let good = Good::new(at, shape, tenant, entry, checks);
                if ascends(on, &good.entry)? {
                    return Ok(Verdict::Good(good));
                }
                Cause::OutOfOrder
            }
        };
        on.input.budget.spend(len.saturating_add(fetched));
        on.input.affords(0);
        Ok(Verdict::Failed(cause))
    }

    /// The block at `at`, if it decodes within the file and has the entry's CRC-32: (b) to (d).
    fn try_at(&mut self, on: &mut ScanState, entry: &Entry, at: u64) -> Result<Option<Good>> {
        let before = on.input.budget;
        let Some((shape, crc)) = self.look_at(on, entry, at)? else {
            return Ok(None);
        };
        let bytes = crc32fast::Hasher::new_with_initial_len(crc, shape.len);
        if block_crc(entry.partition, &bytes) != entry.crc {
            return Ok(None);
        }
        let tenant = on.input.name(at, &shape)?;
        let compared = match &on.place.last {
            Some(last) if last.partition == entry.partition => last.tenant.len.min(tenant.len),
            _ => 0,
        };
        // Entry after entry may name this block in vain.
        let cost = 2 * u64::from(compared);
        if !on.affords(cost) {
            return Ok(None);
        }
        on.input.budget.spend(cost);
        let good = Good::new(at, shape, tenant, entry, Checks::Unknown);
        if !ascends(on, &good.entry)? {
            return Ok(None);
        }
        on.input.budget.take_back(before);
        Ok(Some(good))
    }

    /// Decodes and hashes the block at `at`, unless it is the one that the entry names. Both results are
    /// remembered.
    fn look_at(
        &mut self,
        on: &mut ScanState,
        entry: &Entry,
        at: u64,
    ) -> Result<Option<(Shape, u32)>> {
        let seen = match self.candidates.entry(at) {
            btree_map::Entry::Occupied(seen) => seen.into_mut(),
            btree_map::Entry::Vacant(place) => place.insert(Candidate {
                shape: shape_at(on, at)?,
                crc: None,
            }),
        };
        // The bytes that the entry names were verified already.
        let is_other = |shape: &Shape| at != entry.offset || shape.len != entry.length;
        let proves = |shape: &Shape| judge::block_proves(&on.input.front, entry, shape);
        let Some(shape) = seen.shape.filter(|shape| is_other(shape) && proves(shape)) else {
            return Ok(None);
        };
        let crc = match seen.crc {
            Some(crc) => crc,
            None if !on.affords(shape.len) => return Ok(None),
            None => {
                let hashed = on.input.hash(at, shape.len)?;
                on.input.budget.spend(shape.len);
                *seen.crc.insert(hashed.crc.finalize())
            }
        };
        Ok(Some((shape, crc)))
    }
}

/// Whether a block is in order after the last good one.
fn ascends(on: &ScanState, block: &Entry) -> Result<bool> {
    match &on.place.last {
        Some(last) => block.is_after(&*on.input.source, last),
        None => Ok(true),
    }
}

/// The shape of the block at `at`, if it ends within the file.
fn shape_at(on: &mut ScanState, at: u64) -> Result<Option<Shape>> {
    let affordable = on.input.budget.left(on.input.front.len);
    let (decoded, cost) = on.input.decode(at, on.input.front.len, affordable)?;
    on.input.affords(cost);
    on.input.budget.spend(cost);
    on.place.is_limited |= decoded == Decoded::Unaffordable;
    Ok(match decoded {
        Decoded::Block(shape) => Some(shape),
        Decoded::Beyond | Decoded::Unaffordable => None,
    })
}
