//! Choices that bytes determine.

/// Numbers that look random and follow from a seed (xorshift64*).
pub struct Draw(u64);

impl Draw {
    /// Seeded with a number.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Seeded with an input: the same bytes always make the same choices.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::new(u64::from(crc32fast::hash(bytes)))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        let drawn = self.any() >> 16;
        usize::try_from(drawn.checked_rem(end).unwrap_or_default()).unwrap_or_default()
    }

    /// One of `these`.
    ///
    /// # Panics
    /// If there is none.
    pub fn of_these<'a, T>(&mut self, these: &'a [T]) -> &'a T {
        &these[self.below(these.len())]
    }
}
