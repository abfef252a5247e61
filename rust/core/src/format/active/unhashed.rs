//! Records of a buffer whose checksums are not computed yet.

use crate::checksum::{Key, hash_many};
use crate::limits::LIMITS;

/// Which records of a buffer are still to be hashed. Hashing many together is much faster than one by one.
#[derive(Debug, Default)]
pub(in crate::format) struct Unhashed {
    /// Offset and length within the buffer.
    extents: Vec<(usize, usize)>,
    bytes: usize,
    hashes: Vec<u64>,
}

impl Unhashed {
    /// Adds the record at `extent` (offset, length) in the buffer.
    pub(in crate::format) fn push(&mut self, extent: (usize, usize)) {
        self.bytes += extent.1;
        self.extents.push(extent);
    }

    /// Whether enough records wait to be hashed together.
    pub(in crate::format) const fn is_full(&self) -> bool {
        self.extents.len() >= LIMITS.unhashed_messages || self.bytes >= LIMITS.unhashed_bytes
    }

    /// Hashes all of them. Returns (offset, length) and checksum of each, and leaves none.
    pub(in crate::format) fn hash_all<'a>(
        &'a mut self,
        key: &Key,
        buffer: &[u8],
    ) -> impl Iterator<Item = ((usize, usize), u64)> + use<'a> {
        hash_many(key, buffer, &self.extents, &mut self.hashes);
        self.bytes = 0;
        self.extents.drain(..).zip(self.hashes.drain(..))
    }
}
