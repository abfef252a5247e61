//! Giving out the messages of a block that has been checked: from the window that it was checked in, or, where it is larger,
//! piece by piece, each of which is checked once more against what it was when the whole was.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::block::{BLOCK_HEADER_BYTES, Name};
use super::probe::block_crc;
use super::rows::{MESSAGE_HEADER_BYTES, Message, Tenant};
use super::start::no_message;
use super::walk::TenantScan;
use crate::engine::{Advance, Wanted};
use crate::error::{Error, Result};
use crate::ledger::Kind;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;

/// Which records are wanted, in sets.
#[derive(Debug)]
pub(super) struct Chosen {
    partitions: Option<HashSet<u32>>,
    tenants: Option<HashSet<Vec<u8>>>,
}

impl Chosen {
    pub(super) fn of(wanted: &Wanted) -> Self {
        let partitions = wanted.partitions.as_ref();
        let tenants = wanted.tenants.as_ref();
        Self {
            partitions: partitions.map(|ids| ids.iter().copied().collect()),
            tenants: tenants.map(|ids| ids.iter().cloned().collect()),
        }
    }

    /// Whether records of this partition can be wanted.
    pub(super) fn has_partition(&self, partition: u32) -> bool {
        let partitions = self.partitions.as_ref();
        partitions.is_none_or(|partitions| partitions.contains(&partition))
    }
}

/// A block whose messages are being given out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Open {
    /// Where the block begins.
    pub(super) at: u64,
    /// Where it ends; version 1: at the latest.
    pub(super) end: u64,
    pub(super) partition: u32,
    pub(super) messages: u32,
    pub(super) tenant_len: u32,
    /// The place of the next message within the block, and where its length stands.
    pub(super) next: u32,
    pub(super) position: u64,
    /// Version 2: the CRC-32 that the block has.
    pub(super) crc: Option<u32>,
}

/// How far the bytes of the open block are known to be those that were checked.
#[derive(Debug)]
pub(super) enum Checks {
    /// Not at all: they are checked before the first is given out.
    Unknown,
    /// All of them, in the window.
    Whole,
    /// Piece by piece: the length of each but the last, their CRC-32s, and the stretch that is in the window and right.
    Pieces {
        size: u64,
        crcs: Vec<u32>,
        right: (u64, u64),
    },
}

impl Checks {
    pub(super) const fn pieces(size: u64, crcs: Vec<u32>) -> Self {
        Self::Pieces {
            size,
            crcs,
            right: (0, 0),
        }
    }
}

impl TenantScan {
    /// Whether records of this partition and tenant are wanted.
    pub(super) fn wants(&self, partition: u32, tenant: &Name) -> Result<bool> {
        let wanted = &self.wanted;
        if !wanted.has_partition(partition) {
            return Ok(false);
        }
        match (&wanted.tenants, tenant.bytes()) {
            (None, _) => Ok(true),
            (Some(tenants), Some(own)) => Ok(tenants.contains(&**own)),
            (Some(tenants), None) => {
                for wanted in tenants {
                    if tenant.is(&*self.source, wanted)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Forgets where to begin, if that is in a block whose messages are not wanted.
    pub(super) fn skip_start(&mut self, start: u64, end: u64) {
        self.from = self.from.filter(|from| !(start..end).contains(from));
    }

    /// Gives messages of the open block, as many as a step has room for.
    pub(super) fn give(&mut self) -> Result<Advance> {
        let Some(mut open) = self.open.take() else {
            return Ok(Advance::On);
        };
        let given = self.give_from(&mut open);
        let done = matches!(given, Ok(Advance::End));
        if !done {
            self.open = Some(open);
            return given;
        }
        if let Some(from) = self.from.filter(|from| *from < open.position) {
            return Err(no_message(from));
        }
        match self.part.as_mut() {
            Some(part) => {
                part.at = open.position;
                self.ranges.cover(
                    open.position,
                    Kind::Block,
                    None,
                    super::layout::Origin::None,
                );
            }
            None if open.position != open.end => return Err(self.changed()),
            None => {}
        }
        Ok(Advance::On)
    }

    /// [`Advance::End`] where the block has been given out to its end.
    fn give_from(&mut self, open: &mut Open) -> Result<Advance> {
        while open.next < open.messages {
            if self.is_full() {
                return Ok(Advance::Full);
            }
            if !self.ensure(open, open.position, MESSAGE_HEADER_BYTES)? {
                return Ok(Advance::Full);
            }
            let bytes = self.data.bytes(&*self.source, open.position);
            let len = bytes.first_chunk().copied().map_or(0, u32::from_be_bytes);
            let end = open.position + MESSAGE_HEADER_BYTES + u64::from(len);
            if end > open.end {
                return Err(self.changed());
            }
            if !self.begins_before(open.position)? && !self.give_message(open, len)? {
                return Ok(Advance::Full);
            }
            open.next += 1;
            open.position = end;
        }
        Ok(Advance::End)
    }

    /// Whether the message at `position` is in front of the first that is wanted.
    fn begins_before(&mut self, position: u64) -> Result<bool> {
        match self.from {
            Some(from) if position < from => Ok(true),
            Some(from) if position > from => Err(no_message(from)),
            _ => {
                self.from = None;
                Ok(false)
            }
        }
    }

    /// Adds a message to the step's; `false` where the step has to end first.
    fn give_message(&mut self, open: &Open, len: u32) -> Result<bool> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        if self.options.values {
            let needed = u64::from(len).saturating_add(open.tenant_len.into());
            if needed > self.options.max_record_bytes {
                return if self.messages.is_empty() {
                    Err(self.too_large(open.position, needed))
                } else {
                    Ok(false)
                };
            }
        }
        if !self.load_tenant(open)? {
            return Ok(false);
        }
        let whole = MESSAGE_HEADER_BYTES + u64::from(len);
        if self.options.values && !self.ensure(open, open.position, whole)? {
            return Ok(false);
        }
        let Some(tenant) = &self.tenant else {
            return Ok(false);
        };
        if self.fresh_tenant || self.messages.is_empty() {
            self.tenants.push(tenant.clone());
            self.fresh_tenant = false;
        }
        self.messages.push(Message {
            position: open.position,
            len,
            index: open.next,
            tenant: self.tenants.len() - 1,
        });
        self.given += 1;
        Ok(true)
    }

    /// Makes the open block's tenant ID available; `false` where the step has to end first.
    fn load_tenant(&mut self, open: &Open) -> Result<bool> {
        if self.tenant.is_some() {
            return Ok(true);
        }
        let (at, len) = (open.at + BLOCK_HEADER_BYTES, u64::from(open.tenant_len));
        let id = if !self.options.values && len > LIMITS.unwanted_bytes {
            None
        } else {
            if !self.ensure(open, at, len)? {
                return Ok(false);
            }
            let len = saturating_usize(len);
            let bytes = self.data.bytes(&*self.source, at).get(..len);
            Some(bytes.unwrap_or_default().into())
        };
        self.tenant = Some(Tenant::new(open.partition, id));
        self.fresh_tenant = true;
        Ok(true)
    }

    fn too_large(&self, position: u64, needed: u64) -> Error {
        Error::record_too_large(
            self.source.path(),
            format!("the message at offset {position}"),
            needed,
            self.options.max_record_bytes,
        )
    }

    /// Makes sure that `len` bytes of the open block at `at` are in the window, and are those that were checked. `false` where
    /// that would take away the bytes of the step's messages.
    fn ensure(&mut self, open: &Open, at: u64, len: u64) -> Result<bool> {
        if matches!(self.checks, Checks::Unknown) && open.crc.is_some() {
            if !self.messages.is_empty() {
                return Ok(false);
            }
            self.check_again(open)?;
        }
        if at.saturating_add(len) > open.end {
            return Err(self.changed());
        }
        let (start, end) = match &self.checks {
            Checks::Pieces { size, .. } => {
                let size = (*size).max(1);
                let first = (at - open.at) / size;
                let behind = (at - open.at + len).div_ceil(size).max(first + 1);
                let start = open.at + first * size;
                (start, (open.at + behind * size).min(open.end))
            }
            _ => (at, at + len),
        };
        let bytes = saturating_usize(end - start);
        let held = self.data.bytes(&*self.source, start).len() >= bytes;
        let right = match &self.checks {
            Checks::Pieces { right, .. } => right.0 <= start && end <= right.1,
            _ => true,
        };
        if held && right {
            return Ok(true);
        }
        if !self.messages.is_empty() {
            return Ok(false);
        }
        let want = match &self.checks {
            // Its bytes went with a window that another block needed.
            Checks::Whole => return Err(self.changed()),
            Checks::Pieces { .. } => bytes,
            Checks::Unknown => {
                let rest = saturating_usize(open.end - at);
                self.options.window_bytes.min(rest).max(bytes)
            }
        };
        self.data.load(&*self.source, start, bytes, want)?;
        self.check_pieces(open, start, end)?;
        Ok(true)
    }

    /// Checks the block once more: it was checked by another walk, or elsewhere than where its entry says.
    fn check_again(&mut self, open: &Open) -> Result<()> {
        let Some(stored) = open.crc else {
            return Ok(());
        };
        let (source, len) = (self.source.clone(), open.end.saturating_sub(open.at));
        let (crc, checks) = if self.fits_window(len) {
            let bytes = saturating_usize(len);
            let want = bytes.max(self.options.window_bytes);
            self.data.load(&*source, open.at, bytes, want)?;
            let block = self.data.bytes(&*source, open.at).get(..bytes);
            let mut crc = crc32fast::Hasher::new();
            crc.update(block.unwrap_or_default());
            (crc, Checks::Whole)
        } else {
            let pieces = self.probe.hash(&*source, &self.options, open.at, len)?;
            (pieces.crc, Checks::pieces(pieces.size, pieces.crcs))
        };
        if block_crc(open.partition, &crc) != stored {
            return Err(self.changed());
        }
        self.checks = checks;
        Ok(())
    }

    /// Checks the pieces from `start` to `end`, which are in the window, as far as they are not known to be right.
    fn check_pieces(&mut self, open: &Open, start: u64, end: u64) -> Result<()> {
        let Checks::Pieces { size, crcs, right } = &mut self.checks else {
            return Ok(());
        };
        let size = (*size).max(1);
        let mut at = if (right.0..=right.1).contains(&start) {
            right.1
        } else {
            start
        };
        let mut is_right = true;
        while at < end {
            let piece_end = (at + size).min(open.end);
            let len = saturating_usize(piece_end - at);
            let bytes = self.data.bytes(&*self.source, at).get(..len);
            let stored = usize::try_from((at - open.at) / size)
                .ok()
                .and_then(|piece| crcs.get(piece));
            is_right &= stored.copied() == bytes.map(crc32fast::hash);
            at = piece_end;
        }
        *right = (start, end.max(at));
        if is_right {
            Ok(())
        } else {
            Err(self.changed())
        }
    }
}
