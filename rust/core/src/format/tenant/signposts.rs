//! Every n-th item of a sequence, in bounded memory: places in a table of contents, for look-ups.

use crate::limits::LIMITS;

/// Every n-th item of a sequence. n doubles as they become many.
#[derive(Debug)]
pub(super) struct EveryNth<T> {
    kept: Vec<T>,
    nth: u64,
    seen: u64,
}

impl<T> EveryNth<T> {
    pub(super) const fn new(nth: u64) -> Self {
        Self {
            kept: Vec::new(),
            nth,
            seen: 0,
        }
    }

    /// Adds the next item. It is kept if it is an n-th one and `next` returns a value.
    pub(super) fn push(&mut self, next: impl FnOnce() -> Option<T>) {
        let is_nth = self.seen.is_multiple_of(self.nth);
        if is_nth && self.kept.len() >= LIMITS.max_signposts {
            let mut is_kept = false;
            self.kept.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.nth = self.nth.saturating_mul(2);
        }
        if self.seen.is_multiple_of(self.nth) {
            self.kept.extend(next());
        }
        self.seen += 1;
    }

    pub(super) fn kept(&self) -> &[T] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nth_is_kept() {
        let most = LIMITS.max_signposts as u64;
        for (count, nth) in [
            (0, 1),
            (1, 1),
            (most, 1),
            (most + 1, 2),
            (2 * most, 2),
            (2 * most + 3, 4),
            (9 * most, 16),
        ] {
            let mut some = EveryNth::new(1);
            (0..count).for_each(|number| some.push(|| Some(number)));
            let kept: Vec<_> = (0..count).step_by(nth).collect();
            assert_eq!(some.kept(), kept);
            assert!(kept.len() <= LIMITS.max_signposts);
        }
    }
}
