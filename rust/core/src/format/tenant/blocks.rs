//! Version 2: which block an entry of the table of contents means, proven by its CRC-32.

use std::cmp::Ordering;

use super::block::{BLOCK_HEADER_BYTES, Decoder, Name, Shape};
use super::front::COUNT_BYTES;
use super::give::{Checks, Open};
use super::layout::{self, Claim, Origin};
use super::probe::{Decoded, FAR_COST, NEAR_BYTES, Pieces, block_crc, tenant_of};
use super::toc::Entry;
use super::walk::{Kept, TenantScan};
use crate::engine::Advance;
use crate::error::Result;
use crate::ledger::{Cause, Kind};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;

/// The CRC-32 of the table of contents.
const CRC_BYTES: u64 = 4;

/// A block that counts.
pub(super) struct Good {
    pub(super) at: u64,
    pub(super) shape: Shape,
    pub(super) tenant: Name,
    pub(super) checks: Checks,
}

/// What an entry came to.
pub(super) enum Verdict {
    Good(Good),
    Failed(Cause),
    /// Finding out would take away the bytes of the rows that were found.
    Yield,
}

/// What stands at a place behind the last good block.
pub(super) struct Tried {
    at: u64,
    shape: Option<Shape>,
    crc: Option<crc32fast::Hasher>,
}

impl TenantScan {
    /// Whether a block of this length is checked in memory.
    pub(super) fn fits_window(&self, len: u64) -> bool {
        len <= LIMITS
            .whole_block_windows
            .saturating_mul(self.options.window_bytes as u64)
    }

    pub(super) fn advance_block(&mut self) -> Result<Advance> {
        self.hop()?;
        if self.is_behind_part()? {
            return Ok(Advance::End);
        }
        let Some(entry) = self.peek()?.cloned() else {
            self.end_of_blocks()?;
            self.end_part(self.entries.at)?;
            return Ok(Advance::End);
        };
        let verdict = if self.limited {
            Verdict::Failed(Cause::SearchLimit)
        } else {
            self.judge(&entry)?
        };
        if self.limited {
            self.exhaust_part()?;
        }
        if self.limited && self.front.is_sound() && !matches!(verdict, Verdict::Good(_)) {
            // The search ended. The bytes that are left become one range. If none are left, the entries not looked at are damage.
            if !self.layout.give_up(entry.at, self.entries.left + 1) {
                // What is called the end of the table of contents has its CRC-32 before it.
                let end = self.front.toc_end.map(|end| end - CRC_BYTES);
                self.ranges
                    .mark(entry.at, end.unwrap_or(entry.end), Cause::SearchLimit)?;
            }
            // Nobody who goes on, to find the first damage, gives up again.
            self.next = None;
            self.entries.left = 0;
            self.end_of_blocks()?;
            return Ok(Advance::End);
        }
        if matches!(verdict, Verdict::Yield) {
            return Ok(Advance::Full);
        }
        let before = self.before;
        self.pass();
        if !self.front.is_sound() {
            match verdict {
                Verdict::Good(good) => self.keep_unlisted(&entry, good)?,
                _ if self.limited => {
                    self.end_of_blocks()?;
                    return Ok(Advance::End);
                }
                _ => {}
            }
            return Ok(Advance::On);
        }
        match verdict {
            Verdict::Good(good) => {
                self.lay_tenants(&entry, before, good.at)?;
                if !self.agrees(&entry, &good)? {
                    self.ranges
                        .mark(entry.at, entry.end, Cause::IndexDisagrees)?;
                }
                self.layout.block(good.at, good.at + good.shape.len);
                self.note_standing((good.at, good.shape.len) == (entry.offset, entry.length));
                self.keep(&entry, good)?;
            }
            Verdict::Failed(cause) => {
                self.lay_tenants(&entry, before, entry.offset)?;
                let end = entry.block_end().min(self.front.len);
                if self.front.in_bounds(entry.offset) && entry.offset < end {
                    self.layout
                        .failed(entry.offset, end, cause, entry.at, entry.end);
                } else {
                    self.ranges.mark(entry.at, entry.end, cause)?;
                }
            }
            Verdict::Yield => {}
        }
        self.lay_certain(&entry)
    }

    /// Lays what nothing behind this entry can change.
    fn lay_certain(&mut self, entry: &Entry) -> Result<Advance> {
        let in_order = self.front.disorder.is_none_or(|last| entry.at >= last);
        let is_crowded = self.layout.pending() > LIMITS.pending_blocks;
        let next = self.peek()?.map(|next| next.offset);
        let before_next = next.map(|next| next.saturating_sub(COUNT_BYTES));
        match before_next.filter(|_| in_order) {
            Some(until) if is_crowded => {
                // Later searches start at `Layout::at`: a block in the bytes that are laid here is not found.
                self.lay(until)?;
            }
            Some(until) => self.lay(until.min(self.end.unwrap_or_default()))?,
            None if is_crowded && next.is_some() => {
                self.limited = true;
            }
            None => {}
        }
        Ok(Advance::On)
    }

    /// Lays what is certain, and marks the entries that lost all of their ranges.
    fn lay(&mut self, until: u64) -> Result<()> {
        let ranges = &mut self.ranges;
        let clipped = self.layout.lay(until.min(self.front.len), |piece| {
            ranges.cover(piece.end, piece.kind, piece.cause, piece.origin);
        });
        clipped.iter().try_for_each(|claim| self.mark_lost(claim))
    }

    fn mark_lost(&mut self, claim: &Claim) -> Result<()> {
        let (Origin::Entry(toc_at), Some(cause)) = (claim.origin, claim.cause) else {
            return Ok(());
        };
        let mut entries = self.front.from(&self.options, toc_at, claim.entries);
        while let Some(entry) = entries.next(&*self.source)? {
            let end = entry.block_end().min(self.front.len);
            if !claim.has_left(entry.offset, end) {
                self.ranges.mark(entry.at, entry.end, cause)?;
            }
        }
        Ok(())
    }

    /// The number of tenants in front of a partition's first block, which stands at `first`.
    fn lay_tenants(&mut self, entry: &Entry, before: Option<u32>, first: u64) -> Result<()> {
        let source = self.source.clone();
        let tenants =
            self.front
                .clone()
                .partition_begins(&*source, &mut self.ahead, entry, before)?;
        let (Some(tenants), true) = (tenants, first >= self.front.first_block()) else {
            return Ok(());
        };
        let at = first - COUNT_BYTES;
        let cause = match self.front.len.checked_sub(at) {
            None | Some(0) => return Ok(()),
            Some(..COUNT_BYTES) => Some(Cause::TruncatedHeader),
            Some(_) => {
                let found = match self.data.bytes(&*source, at).first_chunk() {
                    Some(bytes) => u32::from_be_bytes(*bytes),
                    None => self.probe.u32_at(&*source, at)?,
                };
                (u64::from(found) != tenants).then_some(Cause::CountMismatch)
            }
        };
        self.layout.tenants(at, entry.at, tenants, cause);
        Ok(())
    }

    /// Whether the entry says of the block what it is.
    pub(super) fn agrees(&self, entry: &Entry, good: &Good) -> Result<bool> {
        let stated = (entry.offset, entry.length, entry.messages);
        Ok(stated == (good.at, good.shape.len, good.shape.messages)
            && entry.tenant.compare(&*self.source, &good.tenant)? == Ordering::Equal)
    }

    /// Takes in a good block where the table of contents is not sound.
    fn keep_unlisted(&mut self, entry: &Entry, good: Good) -> Result<()> {
        match &self.last {
            None => {
                let broken = self.front.broken;
                self.ranges
                    .cover(good.at, Kind::Corrupt, broken, Origin::None);
            }
            Some((partition, _)) => {
                let gap = good.at.saturating_sub(self.ranges.at());
                let (kind, cause) = if gap == COUNT_BYTES && *partition != entry.partition {
                    (Kind::Header, None)
                } else {
                    (Kind::Corrupt, Some(Cause::Unreferenced))
                };
                self.ranges.cover(good.at, kind, cause, Origin::None);
            }
        }
        let end = good.at + good.shape.len;
        self.ranges.cover(end, Kind::Block, None, Origin::None);
        self.keep(entry, good)
    }

    /// Takes in a good block: the next ones stand behind it, and its messages are given out if they are wanted.
    pub(super) fn keep(&mut self, entry: &Entry, good: Good) -> Result<()> {
        let Good {
            at,
            shape,
            tenant,
            checks,
        } = good;
        self.note(|| Kept {
            position: at,
            partition: entry.partition,
            tenant: tenant.clone(),
            messages: shape.messages,
            checked: Some((shape.len, entry.crc)),
        });
        let wanted = !self.silent && self.wants(entry.partition, &tenant)?;
        if wanted && shape.messages > 0 {
            self.open = Some(Open {
                at,
                end: at + shape.len,
                partition: entry.partition,
                messages: shape.messages,
                tenant_len: shape.tenant_len,
                next: 0,
                position: at + BLOCK_HEADER_BYTES + u64::from(shape.tenant_len),
                crc: Some(entry.crc),
            });
            self.checks = checks;
            self.tenant = None;
        } else {
            self.skip_start(at, at + shape.len);
        }
        self.end = Some(at + shape.len);
        self.last = Some((entry.partition, tenant));
        self.tried.clear();
        Ok(())
    }

    /// What is behind the last good block.
    fn end_of_blocks(&mut self) -> Result<()> {
        let len = self.front.len;
        if self.front.is_sound() {
            return self.lay(len);
        }
        let (kind, cause) = if self.limited {
            (Kind::Corrupt, Some(Cause::SearchLimit))
        } else if self.ranges.at() == 0 {
            (layout::kind(self.front.broken, true), self.front.broken)
        } else {
            (Kind::Corrupt, Some(Cause::Unreferenced))
        };
        self.ranges.cover(len, kind, cause, Origin::None);
        Ok(())
    }

    /// Finds the block that an entry means: where it says, or behind the last good block. The cause is why it is not what the
    /// entry says.
    pub(super) fn judge(&mut self, entry: &Entry) -> Result<Verdict> {
        let laid = self.layout.at();
        let good_end = match &self.last {
            Some(_) => self.end.unwrap_or_default(),
            None => 0,
        };
        // A walk that begins within the file knows no good block at first, but has nothing in front of where it begins.
        let good_end = good_end.max(laid);
        let in_place = self.front.in_bounds(entry.offset) && entry.offset >= good_end;
        let cause = if !self.front.in_bounds(entry.offset) {
            Cause::OffsetOutOfBounds
        } else if !in_place {
            Cause::OutOfOrder
        } else if entry.block_end() > self.front.len {
            Cause::LengthOutOfBounds
        } else {
            match self.examine(entry)? {
                Verdict::Failed(cause) => cause,
                other => return Ok(other),
            }
        };
        // Decoded to its end: a block is of one length only, so the entry's is no other trial.
        let mut places = Vec::with_capacity(3);
        places.extend(in_place.then_some(entry.offset));
        if !self.direct {
            let behind = self
                .end
                .into_iter()
                .flat_map(|end| [end, end + COUNT_BYTES]);
            places.extend(behind.filter(|place| *place != entry.offset && *place >= laid));
        }
        for place in places {
            if self.limited || !self.front.in_bounds(place) {
                continue;
            }
            if let Some(good) = self.try_at(entry, place)? {
                return Ok(Verdict::Good(good));
            }
        }
        Ok(Verdict::Failed(if self.limited {
            Cause::SearchLimit
        } else {
            cause
        }))
    }

    /// Checks the very bytes that the entry names.
    fn examine(&mut self, entry: &Entry) -> Result<Verdict> {
        let (source, at, len) = (self.source.clone(), entry.offset, entry.length);
        let in_memory = self.fits_window(len);
        let bytes = saturating_usize(len);
        if in_memory && !self.messages.is_empty() && self.data.bytes(&*source, at).len() < bytes {
            return Ok(Verdict::Yield);
        }
        if !self.probe.budget.affords(len, self.front.len) {
            self.limited = true;
            return Ok(Verdict::Failed(Cause::SearchLimit));
        }
        // What is not near the block that was looked at before has to be fetched.
        let near = self.examined..=self.examined.saturating_add(NEAR_BYTES);
        let fetched = if near.contains(&at) { 0 } else { FAR_COST };
        self.examined = at.saturating_add(len);
        let (crc, decoder, checks) = if in_memory {
            let most = match self.direct {
                true => bytes,
                false => bytes.max(self.options.window_bytes),
            };
            self.data.load_wary(&*source, at, bytes, most)?;
            let block = self.data.bytes(&*source, at).get(..bytes);
            let block = block.unwrap_or_default();
            let mut crc = crc32fast::Hasher::new();
            crc.update(&entry.partition.to_be_bytes());
            crc.update(block);
            let mut decoder = Decoder::new();
            decoder.feed(block);
            (crc.finalize(), decoder, Checks::Whole)
        } else {
            let Pieces {
                crc,
                size,
                crcs,
                decoder,
            } = self.probe.hash(&*source, &self.options, at, len)?;
            let checks = Checks::pieces(size, crcs);
            (block_crc(entry.partition, &crc), decoder, checks)
        };
        let failed = if crc != entry.crc {
            Cause::ChecksumMismatch
        } else {
            match decoder.finish(len) {
                Err(cause) => cause,
                Ok(shape) => {
                    let tenant = self.name(at, &shape)?;
                    if self.ascends(entry.partition, &tenant)? {
                        return Ok(Verdict::Good(Good {
                            at,
                            shape,
                            tenant,
                            checks,
                        }));
                    }
                    Cause::OutOfOrder
                }
            }
        };
        self.probe.budget.spend(len.saturating_add(fetched));
        self.probe.budget.affords(0, self.front.len);
        Ok(Verdict::Failed(failed))
    }

    /// The tenant ID of the block at `at`, from the window where it is there.
    fn name(&self, at: u64, shape: &Shape) -> Result<Name> {
        let name_at = at + BLOCK_HEADER_BYTES;
        Name::new(name_at, shape.tenant_len, |len| {
            if let Some(bytes) = self.data.bytes(&*self.source, name_at).get(..len) {
                return Ok(bytes.into());
            }
            let mut bytes = vec![0; len];
            self.source.read_exact_at(name_at, &mut bytes)?;
            Ok(bytes.into())
        })
    }

    /// Whether (partition, tenant) is greater than the last good block's.
    fn ascends(&self, partition: u32, tenant: &Name) -> Result<bool> {
        let Some((last, last_tenant)) = self.last.as_ref().filter(|_| !self.direct) else {
            return Ok(true);
        };
        Ok(match partition.cmp(last) {
            Ordering::Equal => last_tenant.compare(&*self.source, tenant)? == Ordering::Less,
            order => order == Ordering::Greater,
        })
    }

    /// The block at `place`, if it decodes within the file and is the one whose CRC-32 the entry has.
    fn try_at(&mut self, entry: &Entry, place: u64) -> Result<Option<Good>> {
        let (source, before) = (self.source.clone(), self.probe.budget);
        let known = self.tried.iter().position(|tried| tried.at == place);
        let mut tried = match known {
            Some(known) => self.tried.swap_remove(known),
            None => Tried {
                at: place,
                shape: self.shape_at(place)?,
                crc: None,
            },
        };
        let Some(shape) = tried.shape else {
            self.remember(entry, tried);
            return Ok(None);
        };
        if place == entry.offset && shape.len == entry.length {
            self.remember(entry, tried);
            return Ok(None); // these very bytes were checked already
        }
        let crc = match tried.crc.take() {
            Some(crc) => crc,
            None if !self.probe.budget.affords(shape.len, self.front.len) => {
                self.limited = true;
                return Ok(None);
            }
            None => {
                let pieces = self.probe.hash(&*source, &self.options, place, shape.len)?;
                self.probe.budget.spend(shape.len);
                pieces.crc
            }
        };
        tried.crc = Some(crc.clone());
        self.remember(entry, tried);
        if block_crc(entry.partition, &crc) != entry.crc {
            return Ok(None);
        }
        let tenant = tenant_of(&*source, place, &shape)?;
        let compared = match &self.last {
            Some((partition, last)) if *partition == entry.partition => last.len.min(tenant.len),
            _ => 0,
        };
        // Entry after entry may name this block in vain.
        let cost = 2 * u64::from(compared);
        if !self.probe.budget.affords(cost, self.front.len) {
            self.limited = true;
            return Ok(None);
        }
        self.probe.budget.spend(cost);
        if !self.ascends(entry.partition, &tenant)? {
            return Ok(None);
        }
        self.probe.budget.take_back(before);
        Ok(Some(Good {
            at: place,
            shape,
            tenant,
            checks: Checks::Unknown,
        }))
    }

    /// Keeps what was learned of a place behind the last good block: the next entry is tried there too.
    fn remember(&mut self, entry: &Entry, tried: Tried) {
        let behind = self
            .end
            .is_some_and(|end| tried.at == end || tried.at == end + COUNT_BYTES);
        if behind || tried.at != entry.offset {
            self.tried.push(tried);
        }
    }

    /// What the block at `place` decodes to, if it ends within the file.
    fn shape_at(&mut self, place: u64) -> Result<Option<Shape>> {
        let source = self.source.clone();
        let affordable = self.probe.budget.left(self.front.len);
        let mut decoder = Decoder::new();
        // What an entry names was read just now.
        let held = self.data.bytes(&*source, place);
        decoder.feed(held.get(..LIMITS.buffered_block_bytes).unwrap_or(held));
        if decoder.is_done() {
            self.probe.budget.spend(decoder.offset());
            return Ok(Some(decoder.shape()));
        }
        let (decoded, cost) =
            self.probe
                .decode(&*source, &self.options, place, self.front.len, affordable)?;
        self.probe.budget.affords(cost, self.front.len);
        self.probe.budget.spend(cost);
        self.limited |= decoded == Decoded::Unaffordable;
        Ok(match decoded {
            Decoded::Block(shape) => Some(shape),
            Decoded::Beyond | Decoded::Unaffordable => None,
        })
    }
}
