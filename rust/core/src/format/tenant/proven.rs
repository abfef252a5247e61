//! What a walk through a whole file proved, if its table of contents does not lead to the blocks: the good blocks
//! and partitions. Later reads of the open file then need not find them again.

use std::sync::{Arc, OnceLock};

use super::block::Name;
use super::judge::GoodPartition;
use super::layout::TocEntry;
use crate::engine::Budget;
use crate::ledger::Span;
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

    /// How many items came between the kept one at this index and the next, if every n-th was kept.
    pub(super) fn after(&self, place: usize) -> u64 {
        let at = (place as u64).saturating_mul(self.nth);
        let left = self.seen.saturating_sub(at).min(self.nth);
        left.saturating_sub(1)
    }
}

/// What a walk proved of a file.
#[derive(Debug)]
pub(super) struct Proven {
    /// They ascend by partition and tenant, and in the file.
    pub(super) units: EveryNth<Unit>,
    /// The first damaged range of the file.
    pub(super) damage: Option<Span>,
}

/// A good block or partition, and the state of the walk after it.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) what: What,
    /// Where the next entry is. Version 1: and how many are left from there on.
    pub(super) next: (u64, u64),
    /// Version 2: the latest end of entries.
    pub(super) limit: u64,
    pub(super) budget: Budget,
}

#[derive(Debug)]
pub(super) enum What {
    /// Version 2: the entry that describes the block.
    Block(TocEntry, Name),
    /// Version 1: with the offset of its entry, if the file was cut inside the partition.
    Partition(GoodPartition, Option<u64>),
}

impl Unit {
    pub(super) const fn partition(&self) -> u32 {
        match &self.what {
            What::Block(block, _) => block.partition,
            What::Partition(partition, _) => partition.partition,
        }
    }

    /// Where it begins.
    pub(super) const fn start(&self) -> u64 {
        match &self.what {
            What::Block(block, _) => block.offset,
            What::Partition(partition, _) => partition.at,
        }
    }
}

/// Records what a walk proves.
#[derive(Debug)]
pub(super) struct Proving {
    units: EveryNth<Unit>,
    /// Receives the result at the end of the walk.
    proven: Arc<OnceLock<Arc<Proven>>>,
}

impl Proving {
    pub(super) fn new(proven: &Arc<OnceLock<Arc<Proven>>>) -> Self {
        Self {
            units: EveryNth::new(1),
            proven: proven.clone(),
        }
    }

    /// Adds the next good block or partition.
    pub(super) fn note(&mut self, unit: impl FnOnce() -> Unit) {
        self.units.push(|| {
            let mut unit = unit();
            if let What::Block(_, tenant) = &mut unit.what {
                *tenant = tenant.up_to(LIMITS.signpost_tenant_bytes);
            }
            Some(unit)
        });
    }

    /// Ends the walk. `damage` is the first in the file.
    pub(super) fn end(self, damage: Option<Span>) {
        let units = self.units;
        self.proven
            .get_or_init(|| Arc::new(Proven { units, damage }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nth_is_kept_and_how_many_are_between_is_known() {
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
            let after = kept.iter().enumerate().map(|(place, at)| {
                let next = kept.get(place + 1).copied().unwrap_or(count);
                (some.after(place), next - at - 1)
            });
            assert!(after.into_iter().all(|(after, between)| after == between));
        }
    }
}
