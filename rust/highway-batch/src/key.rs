//! The key of a hash.

use std::fmt;

use highway::{HighwayHash, HighwayHasher};

/// A 32-byte HighwayHash key. `Debug` does not show the bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Key([u64; 4]);

impl Key {
    /// A key of 32 zero bytes.
    pub const ZERO: Self = Self([0; 4]);

    /// A key from its 32 bytes: four little-endian 64-bit words, as HighwayHash defines.
    #[must_use]
    pub fn new(bytes: &[u8; 32]) -> Self {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Self(words)
    }

    /// The four words, in the order of the lanes.
    #[must_use]
    pub const fn words(&self) -> [u64; 4] {
        self.0
    }

    /// As [`Self::words`], in memory.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) const fn lanes(&self) -> &[u64; 4] {
        &self.0
    }

    /// A key from its four words, in the order of the lanes.
    #[must_use]
    pub const fn from_words(words: [u64; 4]) -> Self {
        Self(words)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// HighwayHash-64, by the crate `highway`, of a message in two pieces, the first of which may be empty. Used where no kernel fits.
pub(crate) fn by_crate(key: &Key, head: &[u8], rest: &[u8]) -> u64 {
    let mut hasher = HighwayHasher::new(highway::Key(key.0));
    // Appending nothing takes 34 instructions.
    if head.is_empty() {
        return hasher.hash64(rest);
    }
    hasher.append(head);
    hasher.append(rest);
    hasher.finalize64()
}
