//! Messages whose checksums are not computed yet.

use crate::checksum::{Key, hash_many};

/// So many messages are hashed at once, at most: what [`hash_many`] sorts by length together.
const MAX_MESSAGES: usize = 512;
/// They are hashed as soon as they have this many bytes: while a core's own cache still holds them.
const MAX_BYTES: usize = 512 << 10;

/// Which messages of a buffer are still to be hashed. Many at a time are hashed far faster than one by one.
#[derive(Debug, Default)]
pub(in crate::format) struct Unhashed {
    /// Offset and length within the buffer.
    extents: Vec<(usize, usize)>,
    bytes: usize,
    hashes: Vec<u64>,
}

impl Unhashed {
    /// Adds the message that stands at `extent` (offset, length) in the buffer.
    pub(in crate::format) fn push(&mut self, extent: (usize, usize)) {
        self.bytes += extent.1;
        self.extents.push(extent);
    }

    /// Whether it is time to hash.
    pub(in crate::format) const fn is_full(&self) -> bool {
        self.extents.len() >= MAX_MESSAGES || self.bytes >= MAX_BYTES
    }

    /// Hashes them all, and gives (offset, length) and checksum of each. None are left.
    pub(in crate::format) fn settle<'a>(
        &'a mut self,
        key: &Key,
        buffer: &[u8],
    ) -> impl Iterator<Item = ((usize, usize), u64)> + use<'a> {
        hash_many(key, buffer, &self.extents, &mut self.hashes);
        self.bytes = 0;
        self.extents.drain(..).zip(self.hashes.drain(..))
    }
}
