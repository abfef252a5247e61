//! Emits the messages of a verified block: from the window that it was verified in, or, if it is larger, piece by
//! piece. Each piece is verified again against its hash from the first pass.

use super::layout::{BLOCK_HEADER_BYTES, Name, TocEntry};
use super::probe::{Checks, Input, LOADED};
use super::rows::{MESSAGE_HEADER_BYTES, Message, StepFindings, Tenant};
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::record::{Scalar, Value};
use crate::saturating::saturating_usize;
use crate::source::{ReadAgain, Source};
use crate::spec::Filter;

/// Whether records of this partition can match.
pub(super) fn has_partition(filter: &Filter, partition: u32) -> bool {
    filter.is_met_by("partition", &Value::Int64(partition.into()))
}

/// Whether records of this partition and tenant match, as far as lists of them decide it. A long ID is compared in pieces, and only
/// with those of its length.
pub(super) fn has_tenant(
    filter: &Filter,
    source: &dyn Source,
    partition: u32,
    tenant: &Name,
) -> Result<bool> {
    if !has_partition(filter, partition) {
        return Ok(false);
    }
    if let Some(id) = tenant.bytes() {
        return Ok(filter.is_listed("tenant", &Value::Text(id)));
    }
    let Some(listed) = filter.those_among("tenant") else {
        return Ok(true);
    };
    for id in listed {
        if let Scalar::Text(id) = id
            && tenant.is(source, id)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A block whose messages are being emitted.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// The entry that describes the block. Version 1: without its length.
    pub(super) block: TocEntry,
    /// Where it ends. Version 1: the latest possible end.
    pub(super) end: u64,
    /// The index of the next message in the block, and the offset of its length field.
    pub(super) next: u32,
    pub(super) position: u64,
    /// Version 2: the block's CRC-32.
    pub(super) crc: Option<u32>,
}

/// Emits messages of good blocks, one block after the other.
#[derive(Debug, Default)]
pub(super) struct Emitter {
    pub(super) filter: Filter,
    /// Where the first message begins, if reading begins there.
    pub(super) from: Option<u64>,
    /// How many messages were emitted, and how many of them are skipped.
    pub(super) emitted: u64,
    pub(super) skip: u64,
    /// The block whose messages are being emitted.
    pub(super) open: Option<Open>,
    checks: Checks,
    /// The tenant ID of the open block. Loaded on first use.
    tenant: Option<Tenant>,
    /// The tenant is not among those of the step yet.
    is_fresh: bool,
}

impl Emitter {
    pub(super) fn new(filter: &Filter) -> Self {
        Self {
            filter: filter.clone(),
            ..Self::default()
        }
    }

    /// Begins to emit a block.
    pub(super) fn begin(&mut self, open: Open, checks: Checks) {
        self.open = Some(open);
        self.checks = checks;
        self.tenant = None;
    }

    /// Skips a block whose messages do not match. Reading can no longer begin in it.
    pub(super) fn pass(&mut self, start: u64, end: u64) {
        self.from = self.from.filter(|from| !(start..end).contains(from));
    }

    /// Emits messages of the open block, as many as a step has room for. Returns where the block ends if it is
    /// done, `None` if the step must end first.
    pub(super) fn emit(
        &mut self,
        mut open: Open,
        input: &mut Input,
        found: &mut StepFindings,
    ) -> Result<Option<u64>> {
        let is_done = self.emit_from(&mut open, input, found);
        let position = open.position;
        if !matches!(is_done, Ok(true)) {
            self.open = Some(open);
            return is_done.map(|_| None);
        }
        if let Some(from) = self.from.filter(|from| *from < position) {
            return Err(no_message(from));
        }
        if open.crc.is_some() && position != open.end {
            return Err(input.changed());
        }
        Ok(Some(position))
    }

    /// Whether the block was emitted to its end.
    fn emit_from(
        &mut self,
        open: &mut Open,
        input: &mut Input,
        found: &mut StepFindings,
    ) -> Result<bool> {
        while open.next < open.block.messages {
            if found.is_full(input) {
                return Ok(false);
            }
            let is_held = !found.messages.is_empty();
            if !self.ensure(open, input, is_held, open.position, MESSAGE_HEADER_BYTES)? {
                return Ok(false);
            }
            let bytes = input.data.bytes(&*input.source, open.position);
            let len = u32::from_be_bytes(*bytes.first_chunk().or_bug(LOADED)?);
            let end = open.position + MESSAGE_HEADER_BYTES + u64::from(len);
            if end > open.end {
                return Err(input.changed());
            }
            if !self.begins_before(open.position)? && !self.emit_message(open, input, found, len)? {
                return Ok(false);
            }
            open.next += 1;
            open.position = end;
        }
        Ok(true)
    }

    /// Whether the message at `position` is before the first that was asked for.
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

    /// Adds a message to the step. `false` if the step must end first.
    fn emit_message(
        &mut self,
        open: &Open,
        input: &mut Input,
        found: &mut StepFindings,
        len: u32,
    ) -> Result<bool> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        let is_held = !found.messages.is_empty();
        if input.options.values {
            let needed = u64::from(len).saturating_add(open.block.tenant_len.into());
            if needed > input.options.record_bytes {
                return match is_held {
                    true => Ok(false),
                    false => Err(Error::record_too_large(
                        input.source.path(),
                        format!("the message at offset {}", open.position),
                        needed,
                        input.options.record_bytes,
                    )),
                };
            }
        }
        if !self.load_tenant(open, input, is_held)? {
            return Ok(false);
        }
        let whole = MESSAGE_HEADER_BYTES + u64::from(len);
        if input.options.values && !self.ensure(open, input, is_held, open.position, whole)? {
            return Ok(false);
        }
        let tenant = self.tenant.as_ref().or_bug("the tenant that was loaded")?;
        if self.is_fresh || !is_held {
            found.tenants.push(tenant.clone());
            self.is_fresh = false;
        }
        found.messages.push(Message {
            position: open.position,
            len,
            index: open.next,
            tenant: found.tenants.len() - 1,
        });
        self.emitted += 1;
        Ok(true)
    }

    /// Loads the open block's tenant ID. `false` if the step must end first.
    fn load_tenant(&mut self, open: &Open, input: &mut Input, is_held: bool) -> Result<bool> {
        if self.tenant.is_some() {
            return Ok(true);
        }
        let (at, len) = (
            open.block.offset + BLOCK_HEADER_BYTES,
            u64::from(open.block.tenant_len),
        );
        let id = if !input.options.values && len > LIMITS.unwanted_bytes {
            None
        } else {
            if !self.ensure(open, input, is_held, at, len)? {
                return Ok(false);
            }
            let bytes = input.data.bytes(&*input.source, at);
            let id = bytes.get(..saturating_usize(len));
            Some(id.or_bug(LOADED)?.into())
        };
        self.tenant = Some(Tenant::new(open.block.partition, id));
        self.is_fresh = true;
        Ok(true)
    }

    /// Makes sure that `len` bytes of the open block at `at` are in the window and verified. `false` if the window
    /// must not move.
    #[inline(always)]
    fn ensure(
        &mut self,
        open: &Open,
        input: &mut Input,
        is_held: bool,
        at: u64,
        len: u64,
    ) -> Result<bool> {
        let right = match &self.checks {
            Checks::Verified { right, .. } => *right,
            // Bytes of version 1 have no checksum, and need no verification.
            Checks::Unknown if open.crc.is_none() => (open.block.offset, open.end),
            Checks::Unknown => (0, 0),
        };
        if right.0 <= at && at.saturating_add(len) <= right.1 {
            let buffered = input.data.bytes(&*input.source, at).len();
            if buffered as u64 >= len {
                return Ok(true);
            }
        }
        if !is_held {
            self.load(open, input, at, len)?;
        }
        Ok(!is_held)
    }

    /// Loads and verifies `len` bytes of the open block at `at`.
    #[inline(never)]
    fn load(&mut self, open: &Open, input: &mut Input, at: u64, len: u64) -> Result<()> {
        if let (Checks::Unknown, Some(stored)) = (&self.checks, open.crc) {
            self.checks = check_again(open, stored, input)?;
        }
        let end = at.saturating_add(len);
        if end > open.end {
            return Err(input.changed());
        }
        let Checks::Verified { size, crcs, right } = &mut self.checks else {
            let (bytes, rest) = (saturating_usize(len), saturating_usize(open.end - at));
            let want = input.options.window_bytes.min(rest).max(bytes);
            return input.data.load(&*input.source, at, bytes, want);
        };
        if right.0 <= at && end <= right.1 {
            return Ok(());
        }
        let first = (at - open.block.offset) / *size;
        let start = open.block.offset + first * *size;
        let pieces = (end - start).div_ceil(*size);
        let end = start.saturating_add(pieces * *size).min(open.end);
        let bytes = saturating_usize(end - start);
        let again = ReadAgain::new(&*input.source);
        input.data.load(&again, start, bytes, bytes)?;
        let loaded = input.data.bytes(&*input.source, start).get(..bytes);
        let found = loaded.or_bug(LOADED)?.chunks(saturating_usize(*size));
        let crcs = crcs.iter().skip(saturating_usize(first));
        let crcs = crcs.take(saturating_usize(pieces)).copied();
        if !found.map(crc32fast::hash).eq(crcs) {
            return Err(input.changed());
        }
        *right = (start, end);
        Ok(())
    }
}

/// Verifies a block again, because it was verified by another walk, or not at its entry's offset.
fn check_again(open: &Open, stored: u32, input: &mut Input) -> Result<Checks> {
    let len = open.end.saturating_sub(open.block.offset);
    if input.fits_window(len) {
        let bytes = saturating_usize(len);
        let want = bytes.max(input.options.window_bytes);
        input
            .data
            .load(&*input.source, open.block.offset, bytes, want)?;
    }
    let (crc, _, checks) = input.check(open.block.partition, open.block.offset, len)?;
    match crc == stored {
        true => Ok(checks),
        false => Err(input.changed()),
    }
}

/// The error for a start at which no message begins.
pub(super) fn no_message(offset: u64) -> Error {
    Error::Usage(format!(
        "no message begins at offset {offset}: start at the position of a record"
    ))
}
