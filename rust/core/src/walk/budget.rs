//! The search budget (rule 34): it bounds the work of searching, also in hostile files.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::limits::LIMITS;

/// What the searches of one scan have spent so far: bytes hashed or decoded without success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Budget {
    spent: u64,
    /// What `spent` would have reached if all requested work had been without success.
    #[serde(skip)]
    peak: u64,
}

impl Budget {
    /// What one scan of a file of `len` bytes may spend.
    pub(crate) const fn total(len: u64) -> u64 {
        LIMITS
            .search_bytes
            .saturating_add(len.saturating_mul(LIMITS.search_bytes_per_byte))
    }

    /// The share of a part of `bytes` bytes: its proportion of what is left of this budget, which was spent before any part.
    ///
    /// As long as no part exceeds its share, the whole walk does not exceed its budget, so all of them end the same
    /// searches. A part that exceeded its share is refused: whether the whole walk would have gone on depends on the
    /// other parts.
    fn share(self, bytes: u64, len: u64) -> u64 {
        let left = self.left(len);
        let share = u128::from(left) * u128::from(bytes) / u128::from(len.max(1));
        u64::try_from(share).unwrap_or(left).min(left)
    }

    /// What would have been spent if all requested work had been without success.
    pub(crate) const fn peak(self) -> u64 {
        self.peak
    }

    /// Returns the [share](Self::share) of a part of `bytes` bytes in a file of `len` bytes, if the part may have
    /// exceeded it. `before` was spent before any part.
    pub(crate) fn exceeded_share(self, before: Self, bytes: u64, len: u64) -> Option<u64> {
        let share = before.share(bytes, len);
        let peak = self.peak.saturating_sub(before.spent);
        (self.spent > before.spent && peak > share).then_some(share)
    }

    /// What may still be spent in a file of `len` bytes.
    pub(crate) const fn left(self, len: u64) -> u64 {
        Self::total(len).saturating_sub(self.spent)
    }

    /// Whether more was spent than a file of `len` bytes allows. The last work is added after it was done.
    pub(crate) const fn is_exceeded(self, len: u64) -> bool {
        self.spent > Self::total(len)
    }

    /// Whether `bytes` may be spent in a file of `len` bytes. Raises the peak as if they were.
    pub(crate) const fn affords(&mut self, bytes: u64, len: u64) -> bool {
        let spent = self.spent.saturating_add(bytes);
        if spent > self.peak {
            self.peak = spent;
        }
        bytes <= self.left(len)
    }

    /// Spends `bytes` in a file of `len` bytes, if that much is left.
    pub(crate) const fn try_spend(&mut self, bytes: u64, len: u64) -> bool {
        let spent = self.spent.saturating_add(bytes);
        let is_left = spent <= Self::total(len);
        if is_left {
            self.spent = spent;
        }
        is_left
    }

    /// Adds work that was without success.
    pub(crate) const fn spend(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_add(bytes);
    }

    /// Takes back what was spent since `before`, because the work succeeded.
    pub(crate) const fn take_back(&mut self, before: Self) {
        self.spent = before.spent;
    }

    /// Whether a candidate of `bytes` bytes is tried only if plausible headers follow it: it is long, and much was
    /// spent already.
    pub(crate) const fn wants_plausible(self, bytes: u64) -> bool {
        self.spent >= LIMITS.generous_search_bytes && bytes > LIMITS.plausible_bytes
    }
}

/// Rule 34: whether the bytes from `at` on may follow a candidate: two plausible headers, unused space, or the end of the file.
///
/// `data_end` is the offset after the file's last nonzero byte. `end_of` looks at the header at an offset and gives the end of its
/// unit, or `None` if the header is not plausible.
pub(crate) fn follows_plausibly(
    mut at: u64,
    data_end: u64,
    mut end_of: impl FnMut(u64) -> Result<Option<u64>>,
) -> Result<bool> {
    for _ in 0..2 {
        if at >= data_end {
            return Ok(true);
        }
        match end_of(at)? {
            Some(end) => at = end,
            None => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_more_is_spent_than_there_is(len in 0..1_u64 << 60, wishes in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut budget = Budget::default();
            for bytes in wishes {
                let left = budget.left(len);
                prop_assert_eq!(budget.try_spend(bytes, len), bytes <= left);
                prop_assert_eq!(budget.left(len), if bytes <= left { left - bytes } else { left });
            }
        }

        #[test]
        fn the_shares_of_all_parts_are_no_more_than_the_whole(
            sizes in prop::collection::vec(0..1_u64 << 50, 1..20),
            spent in 0..1_u64 << 50,
        ) {
            let len = sizes.iter().sum();
            let mut before = Budget::default();
            before.spend(spent);
            let shares: u64 = sizes.iter().map(|bytes| before.share(*bytes, len)).sum();
            prop_assert!(shares <= before.left(len));
        }
    }

    #[test]
    fn long_candidates_have_to_be_plausible_once_much_was_spent() {
        let mut budget = Budget::default();
        budget.spend(LIMITS.generous_search_bytes - 1);
        assert!(!budget.wants_plausible(u64::MAX));
        budget.spend(1);
        assert!(budget.wants_plausible(LIMITS.plausible_bytes + 1));
        assert!(!budget.wants_plausible(LIMITS.plausible_bytes));
    }
}
