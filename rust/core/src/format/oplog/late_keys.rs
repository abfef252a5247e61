//! Keys that do not fit in memory: spilled to temporary files, and found by a short list of signposts.

use super::layout::compact::{KEY_BYTES, Key};
use crate::cursor::fields;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::output::Spool;
use crate::saturating::saturating_usize;

/// A sequence number and the index of the first key, each a `u64`.
pub(super) const OWNER_BYTES: usize = 16;

/// The keys after the ones in memory.
#[derive(Debug)]
pub(super) struct LateKeys {
    /// How many keys come before these.
    first: u64,
    owners: Spool,
    keys: Spool,
    /// The sequence number of every [`Limits::late_key_stride`](crate::limits::Limits::late_key_stride)th owner.
    signposts: Vec<u64>,
}

/// A message with keys, and the index of its first key.
fn owner(bytes: &[u8; OWNER_BYTES]) -> (u64, u64) {
    fields(bytes)
}

impl LateKeys {
    /// An empty list that begins after `first` other keys.
    pub(super) fn new(first: u64) -> Self {
        Self {
            first,
            owners: Spool::aside(),
            keys: Spool::aside(),
            signposts: Vec::new(),
        }
    }

    /// The index after the last key.
    const fn end(&self) -> u64 {
        self.first + self.keys.len() / KEY_BYTES
    }

    /// Begins the keys of the next message.
    pub(super) fn begin(&mut self, seq: u64) -> Result<()> {
        let count = self.owners.len() / OWNER_BYTES as u64;
        if count.is_multiple_of(LIMITS.late_key_stride) {
            self.signposts.push(seq);
        }
        let place = self.end();
        let out = self.owners.buffer();
        out.extend_from_slice(&seq.to_be_bytes());
        out.extend_from_slice(&place.to_be_bytes());
        self.owners.flush_if_full()
    }

    /// Adds keys of the last message that was begun, concatenated.
    pub(super) fn extend(&mut self, keys: &[u8]) -> Result<()> {
        self.keys.buffer().extend_from_slice(keys);
        self.keys.flush_if_full()
    }

    /// The indices of a message's keys: the first, and the end.
    pub(super) fn find(&self, seq: u64) -> Result<Option<(u64, u64)>> {
        let after = self.signposts.partition_point(|signpost| *signpost <= seq);
        let Some(block) = after.checked_sub(1) else {
            return Ok(None);
        };
        let block_bytes = LIMITS.late_key_stride * OWNER_BYTES as u64;
        // One more owner says where the last one's keys end.
        let most = saturating_usize(block_bytes) + OWNER_BYTES;
        let mut bytes = Vec::with_capacity(most);
        let at = (block as u64).saturating_mul(block_bytes);
        self.owners.read(at, most, &mut bytes)?;
        let owners = bytes.as_chunks::<OWNER_BYTES>().0;
        let place = owners.partition_point(|own| owner(own).0 < seq);
        let own = owners.get(place).map(owner).filter(|own| own.0 == seq);
        let next = owners.get(place + 1).map(owner);
        Ok(own.map(|own| (own.1, next.map_or(self.end(), |next| next.1))))
    }

    /// The key with this index.
    pub(super) fn key(&self, place: u64) -> Result<Option<Key>> {
        let at = place.saturating_sub(self.first).saturating_mul(KEY_BYTES);
        let mut bytes = Vec::with_capacity(size_of::<Key>());
        self.keys.read(at, size_of::<Key>(), &mut bytes)?;
        Ok(bytes.first_chunk().copied())
    }

    /// Appends all owners and keys to the ones before them.
    pub(super) fn append_to(&self, owners: &mut Vec<(u64, u64)>, keys: &mut Vec<u8>) -> Result<()> {
        let mut bytes = Vec::new();
        self.owners.read(0, usize::MAX, &mut bytes)?;
        owners.extend(bytes.as_chunks().0.iter().map(owner));
        self.keys.read(0, usize::MAX, &mut bytes)?;
        keys.extend_from_slice(&bytes);
        Ok(())
    }
}
