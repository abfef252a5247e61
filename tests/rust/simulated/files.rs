//! What a file holds, and what the disk may hold of it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::Arc;

use super::Random;

/// What a disk writes as one.
const SECTOR_BYTES: [usize; 2] = [512, 4096];
/// What the cache writes as one.
const PAGE_BYTES: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Content {
    /// What is read.
    now: Arc<Vec<u8>>,
    /// What the disk was to hold at each moment since the last sync, which the first one is of. At least one.
    moments: Vec<Arc<Vec<u8>>>,
}

impl Default for Content {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

/// The bytes of a range, as far as there are some.
fn part(of: &[u8], start: usize, end: usize) -> &[u8] {
    &of[start.min(of.len())..end.min(of.len())]
}

/// Whether two ranges hold the same, where zeros follow each.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let common = one.len().min(other.len());
    let rest = one[common..].iter().chain(&other[common..]);
    one[..common] == other[..common] && rest.copied().all(|byte| byte == 0)
}

impl Content {
    fn of(bytes: Vec<u8>) -> Self {
        let now = Arc::new(bytes);
        Self {
            moments: vec![now.clone()],
            now,
        }
    }

    pub(super) fn now(&self) -> &[u8] {
        &self.now
    }

    pub(super) fn write(&mut self, start: usize, bytes: &[u8]) {
        let end = start + bytes.len();
        let now = Arc::make_mut(&mut self.now);
        if now.len() < end {
            now.resize(end, 0);
        }
        now[start..end].copy_from_slice(bytes);
        // Pages that are clean are not written again, whatever the disk holds.
        let pages = start / PAGE_BYTES * PAGE_BYTES..end.next_multiple_of(PAGE_BYTES);
        self.note(pages.start..pages.end.min(self.now.len()));
    }

    pub(super) fn set_len(&mut self, len: usize) {
        Arc::make_mut(&mut self.now).resize(len, 0);
        self.note(0..0);
    }

    /// Notes another moment, at which these bytes became what is read.
    fn note(&mut self, dirty: Range<usize>) {
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
        let mut held = self.survivor(50, random).0;
        held.resize(self.now.len(), 0);
        self.moments = vec![Arc::new(held)];
    }

    /// The content that survives, and a number that tells it from others: of garbage it only says where it is.
    pub(super) fn after_power_loss(&self, kept: usize, random: &mut Random) -> (Self, u64) {
        if let [only] = &self.moments[..] {
            let own = Self {
                now: only.clone(),
                moments: vec![only.clone()],
            };
            return (own, 0);
        }
        let (held, garbage) = self.survivor(kept, random);
        let mut hasher = DefaultHasher::new();
        let mut at = 0;
        for range in &garbage {
            held[at..range.start].hash(&mut hasher);
            range.hash(&mut hasher);
            at = range.end;
        }
        held[at..].hash(&mut hasher);
        (Self::of(held), hasher.finish())
    }

    /// What the disk may hold now, and the sectors in which that is garbage. Of a hundred sectors and lengths about `kept` are the
    /// last ones.
    fn survivor(&self, kept: usize, random: &mut Random) -> (Vec<u8>, Vec<Range<usize>>) {
        let moments = &self.moments;
        let (first, last) = (&moments[0], &moments[moments.len() - 1]);
        let any = |random: &mut Random| match random.percent(kept) {
            true => last,
            // 0 of a hundred means that nothing survives, not even some of the moments between.
            false if kept == 0 || random.percent(50) => first,
            false => &moments[random.below(moments.len())],
        };
        let len = any(random).len();
        let mut held = part(first, 0, len).to_vec();
        held.resize(len, 0);
        let mut garbage = Vec::new();
        let sector_bytes = SECTOR_BYTES[random.below(2)];
        let is_harmed = random.percent(50);
        for start in (0..len).step_by(sector_bytes) {
            let range = start..len.min(start + sector_bytes);
            let sector = part(first, range.start, range.end);
            let same = |own: &Arc<Vec<u8>>| is_same(part(own, range.start, range.end), sector);
            if moments[1..].iter().all(same) {
                continue;
            }
            let byte = |of: &[u8], at: usize| of.get(at).copied().unwrap_or_default();
            let (one, other) = (any(random), any(random));
            let shorn = range.start + random.below(range.len());
            let harm = match random.below(10) {
                harm if is_harmed => harm,
                _ => 9,
            };
            if harm == 1 {
                garbage.push(range.clone());
            }
            let bytes = held[range.clone()].iter_mut().zip(range);
            for (held, at) in bytes {
                // Bytes that were not written keep their value.
                let is_written = || moments.iter().any(|own| byte(own, at) != byte(first, at));
                *held = match harm {
                    0 if is_written() => 0,
                    1 if is_written() => random.next().to_le_bytes()[0],
                    2 if at >= shorn => byte(other, at),
                    _ => byte(one, at),
                };
            }
        }
        (held, garbage)
    }
}
