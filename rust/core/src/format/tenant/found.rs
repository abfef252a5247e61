//! What a step found: messages, and the blocks and partitions that were kept.

use super::block::Name;
use super::layout::TocEntry;
use super::probe::Input;
use super::rows::{Message, Tenant, TenantRows};
use crate::limits::LIMITS;

/// A partition of version 1 that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptPartition {
    pub(super) partition: u32,
    /// Where its number of tenants stands.
    pub(super) at: u64,
    /// How many tenants are good: fewer than it says where the file was cut inside it.
    pub(super) tenants: u32,
    /// Where the last of them ends.
    pub(super) end: u64,
}

/// A good block.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) tenant: Name,
    /// What an entry has to say of it. Version 1: without its length, and without a CRC-32.
    pub(super) entry: TocEntry,
}

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) messages: Vec<Message>,
    pub(super) tenants: Vec<Tenant>,
    kept: Vec<Kept>,
    /// How many bytes their tenant IDs take.
    kept_bytes: usize,
    kept_partitions: Vec<KeptPartition>,
    /// Damage was met: nothing is given out any more, and reading goes on only to find the first.
    pub(super) is_silent: bool,
}

impl Found {
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.tenants.clear();
        self.kept.clear();
        self.kept_bytes = 0;
        self.kept_partitions.clear();
    }

    /// The blocks that were kept.
    pub(super) fn kept(&self) -> &[Kept] {
        &self.kept
    }

    /// Version 1: the partitions that were kept, also those without tenants.
    pub(super) fn kept_partitions(&self) -> &[KeptPartition] {
        &self.kept_partitions
    }

    /// A good block was found.
    pub(super) fn keep(&mut self, kept: impl FnOnce() -> Kept) {
        if !self.is_silent {
            let kept = kept();
            self.kept_bytes += kept.tenant.bytes().map_or(0, |bytes| bytes.len());
            self.kept.push(kept);
        }
    }

    /// A good partition was found.
    pub(super) fn keep_partition(&mut self, kept: KeptPartition) {
        self.kept_partitions.push(kept);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.kept.is_empty()
    }

    /// Whether as many messages were found as a step gives.
    pub(super) fn is_full(&self, input: &Input) -> bool {
        let (Some(first), Some(last)) = (self.messages.first(), self.messages.last()) else {
            return false;
        };
        let bytes = last.position.saturating_sub(first.position);
        self.messages.len() >= LIMITS.tenant_step_rows || bytes >= input.options.window_bytes as u64
    }

    /// Whether what is there is enough for a step.
    pub(super) fn is_crowded(&self, input: &Input) -> bool {
        self.is_full(input) || self.kept_bytes >= input.options.window_bytes
    }

    pub(super) fn rows<'a>(&'a self, input: &'a Input) -> TenantRows<'a> {
        let base = self.messages.first().map_or(0, |first| first.position);
        let bytes = if input.options.values {
            input.data.bytes(&*input.source, base)
        } else {
            &[]
        };
        TenantRows {
            base,
            bytes,
            messages: &self.messages,
            tenants: &self.tenants,
        }
    }
}
