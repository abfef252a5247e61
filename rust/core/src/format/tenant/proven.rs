//! What a walk through a whole file proved that has no table of contents to go by: which blocks and partitions count, so that later
//! reads of the open file need not find them again.

use std::sync::{Arc, OnceLock};

use super::block::Name;
use super::judge::KeptPartition;
use super::layout::TocEntry;
use crate::engine::Budget;
use crate::ledger::Span;
use crate::limits::LIMITS;

/// Every n-th of what comes one after the other; n doubles as they become many.
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

    /// The next one has come. It is kept if it is its turn and there is something to keep of it.
    pub(super) fn push(&mut self, next: impl FnOnce() -> Option<T>) {
        if self.kept.len() >= LIMITS.max_signposts {
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

    /// How many came behind the one that is kept at this place, in front of the next one that is, if every n-th was kept.
    pub(super) fn behind(&self, place: usize) -> u64 {
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

/// A block or partition that counts, and how the walk went on behind it.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) what: What,
    /// Where the next entry stands. Version 1: and how many are left from there on.
    pub(super) next: (u64, u64),
    /// Version 2: where entries end at the latest.
    pub(super) limit: u64,
    pub(super) budget: Budget,
}

#[derive(Debug)]
pub(super) enum What {
    /// Version 2: what an entry has to say of the block.
    Block(TocEntry, Name),
    /// Version 1: with where its entry stands, if the file was cut in it.
    Partition(KeptPartition, Option<u64>),
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

/// Takes down what a walk proves.
#[derive(Debug)]
pub(super) struct Proving {
    units: EveryNth<Unit>,
    /// Where that goes once the walk is at its end.
    proven: Arc<OnceLock<Arc<Proven>>>,
}

impl Proving {
    pub(super) fn new(proven: &Arc<OnceLock<Arc<Proven>>>) -> Self {
        Self {
            units: EveryNth::new(1),
            proven: proven.clone(),
        }
    }

    /// The next block or partition counts.
    pub(super) fn note(&mut self, unit: impl FnOnce() -> Unit) {
        self.units.push(|| {
            let mut unit = unit();
            if let What::Block(_, tenant) = &mut unit.what {
                *tenant = tenant.up_to(LIMITS.signpost_tenant_bytes);
            }
            Some(unit)
        });
    }

    /// The walk is at its end; `damage` is the first in the file.
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
            let behind = kept.iter().enumerate().map(|(place, at)| {
                let next = kept.get(place + 1).copied().unwrap_or(count);
                (some.behind(place), next - at - 1)
            });
            assert!(
                behind
                    .into_iter()
                    .all(|(behind, between)| behind == between)
            );
        }
    }
}
