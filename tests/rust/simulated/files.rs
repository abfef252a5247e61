//! What a file holds, and what the disk may hold of it.

use std::sync::Arc;

use super::Random;

/// What a disk writes as one.
const SECTOR_BYTES: [usize; 2] = [512, 4096];
/// What the cache writes as one.
const PAGE_BYTES: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Content {
    /// What is read.
    now: Vec<u8>,
    /// What the disk was to hold at each moment since the last sync, which the first one is of. At least one.
    moments: Vec<Arc<Vec<u8>>>,
}

impl Default for Content {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Content {
    fn of(bytes: Vec<u8>) -> Self {
        Self {
            moments: vec![Arc::new(bytes.clone())],
            now: bytes,
        }
    }

    pub(super) fn now(&self) -> &[u8] {
        &self.now
    }

    pub(super) fn write(&mut self, start: usize, bytes: &[u8]) {
        let end = start + bytes.len();
        if self.now.len() < end {
            self.now.resize(end, 0);
        }
        self.now[start..end].copy_from_slice(bytes);
        // Pages that are clean are not written again, whatever the disk holds.
        let pages = start / PAGE_BYTES * PAGE_BYTES..end.next_multiple_of(PAGE_BYTES);
        self.note(pages.start..pages.end.min(self.now.len()));
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.now.resize(len, 0);
        self.note(0..0);
    }

    /// Notes another moment, at which these bytes became what is read.
    fn note(&mut self, dirty: std::ops::Range<usize>) {
        let mut next = self.moments.last().unwrap().to_vec();
        next.resize(self.now.len(), 0);
        next[dirty.clone()].copy_from_slice(&self.now[dirty]);
        self.moments.push(Arc::new(next));
    }

    /// A sync that goes right.
    pub(super) fn settle(&mut self) {
        self.moments.drain(..self.moments.len() - 1);
    }

    /// A sync that fails: the cache takes all pages for clean, whatever the disk holds.
    pub(super) fn lose(&mut self, random: &mut Random) {
        let mut held = self.survivor(50, random);
        held.resize(self.now.len(), 0);
        self.moments = vec![Arc::new(held)];
    }

    pub(super) fn after_power_loss(&self, kept: usize, random: &mut Random) -> Self {
        Self::of(self.survivor(kept, random))
    }

    /// What the disk may hold now. Of a hundred sectors and lengths about `kept` are the last ones.
    fn survivor(&self, kept: usize, random: &mut Random) -> Vec<u8> {
        let moments = &self.moments;
        let (first, last) = (&moments[0], &moments[moments.len() - 1]);
        let any = |random: &mut Random| match random.percent(kept) {
            true => last,
            // 0 of a hundred means that nothing survives, not even some of the moments between.
            false if kept == 0 || random.percent(50) => first,
            false => &moments[random.below(moments.len())],
        };
        let len = any(random).len();
        let mut held = vec![0; len];
        let sector_bytes = SECTOR_BYTES[random.below(2)];
        let is_harmed = random.percent(50);
        for start in (0..len).step_by(sector_bytes) {
            let range = start..len.min(start + sector_bytes);
            let byte = |of: &[u8], at: usize| of.get(at).copied().unwrap_or_default();
            let (one, other) = (any(random), any(random));
            let shorn = range.start + random.below(range.len());
            let harm = match random.below(10) {
                harm if is_harmed => harm,
                _ => 9,
            };
            for at in range {
                let is_written = moments.iter().any(|own| own.get(at) != first.get(at));
                held[at] = match harm {
                    0 if is_written => 0,
                    1 if is_written => random.next().to_le_bytes()[0],
                    2 if at >= shorn => byte(other, at),
                    _ => byte(one, at),
                };
            }
        }
        held
    }
}
