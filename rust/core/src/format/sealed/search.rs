//! Finds a position among sorted UUIDs: guesses by time, as if times were evenly spread, and halves where they are
//! not.

use std::cmp::Ordering;
use std::ops::Range;

use super::layout::{ENTRY_BYTES, UUID_BYTES};
use crate::cursor::fields;
use crate::saturating::saturating_usize;
use crate::uuid6;

/// How many more looks a search may take than halving would.
const SPARE_LOOKS: u32 = 3;
/// This few positions are read at once: they are adjacent in memory.
const FEW: u64 = 12;
/// This many bad guesses in a row end the guessing.
const MAX_MISSES: u32 = 2;

/// A search for the first of some ascending UUIDs that is at least the target one. It says where it wants to look,
/// and the caller says which UUID is there, so that many searches can take turns.
///
/// Evenly spread times take a handful of looks. Any other spread takes at most [`SPARE_LOOKS`] more than halving:
/// a guess is made only while halving could still make up for it. If UUIDs do not ascend, the answer is some
/// position, found as fast.
#[derive(Clone, Debug)]
pub(super) struct Search {
    target: [u8; UUID_BYTES],
    /// The answer is at least `low` and at most `high`.
    low: u64,
    high: u64,
    /// A time not later than any from `low` on, and one not earlier than any before `high`.
    below: u64,
    above: u64,
    looks_left: u32,
    /// Consecutive guesses that should have narrowed the search, and did not.
    misses: u32,
    next: Look,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    place: u64,
    /// Whether it is a guess near the answer, not just the middle.
    is_guess: bool,
}

/// How many looks halving takes among this many positions.
const fn halvings(places: u64) -> u32 {
    u64::BITS - places.leading_zeros()
}

impl Search {
    /// A search among the UUIDs with these numbers, whose times are within `times`. The answer is one of the
    /// numbers, or the end if all are smaller.
    pub(super) fn new(target: [u8; UUID_BYTES], among: Range<u64>, times: Range<u64>) -> Self {
        let mut search = Self {
            target,
            low: among.start,
            high: among.end.max(among.start),
            below: times.start,
            above: times.end,
            looks_left: 0,
            misses: 0,
            next: Look {
                place: among.start,
                is_guess: false,
            },
        };
        search.looks_left = halvings(search.high - search.low) + SPARE_LOOKS;
        search.choose();
        search
    }

    /// The UUID that is searched for.
    pub(super) const fn target(&self) -> &[u8; UUID_BYTES] {
        &self.target
    }

    /// Where to look next. `None` once the answer is known.
    pub(super) const fn place(&self) -> Option<u64> {
        if self.low < self.high {
            Some(self.next.place)
        } else {
            None
        }
    }

    /// The answer, once it is known.
    pub(super) const fn answer(&self) -> u64 {
        self.low
    }

    /// Finishes a search with few positions left. `entries` are all entries. Compares all of them at once, so that
    /// no look waits for another. `false` if more than a few are left.
    pub(super) fn finish(&mut self, entries: &[[u8; ENTRY_BYTES]]) -> bool {
        let size = self.high - self.low;
        let place = |at| saturating_usize(at);
        let few = entries.get(place(self.low)..place(self.high));
        let Some(few) = few.filter(|_| size <= FEW) else {
            return false;
        };
        let target = u128::from_be_bytes(self.target);
        let is_smaller = |entry: &[u8; ENTRY_BYTES]| {
            let (uuid, _): ([u8; UUID_BYTES], u64) = fields(entry);
            u64::from(u128::from_be_bytes(uuid) < target)
        };
        self.low += few.iter().map(is_smaller).sum::<u64>();
        self.high = self.low;
        true
    }

    /// The first and last of the positions left, if they are few.
    pub(super) const fn few(&self) -> Option<[u64; 2]> {
        let size = self.high - self.low;
        if size > 0 && size <= FEW {
            Some([self.low, self.high - 1])
        } else {
            None
        }
    }

    /// Continues with the UUID at the position where it target to look.
    pub(super) fn saw(&mut self, uuid: &[u8; UUID_BYTES]) {
        let Look { place, is_guess } = self.next;
        let size = self.high - self.low;
        let time = uuid6::ticks(uuid);
        if !is_guess && self.misses >= MAX_MISSES && self.is_halfway(time) {
            self.misses = 0; // evenly spread here
        }
        match u128::from_be_bytes(*uuid).cmp(&u128::from_be_bytes(self.target)) {
            Ordering::Less => (self.low, self.below) = (place + 1, time),
            Ordering::Greater => (self.high, self.above) = (place, time),
            Ordering::Equal => (self.low, self.high) = (place, place),
        }
        if is_guess {
            let is_miss = self.high - self.low > size / 4;
            self.misses = if is_miss { self.misses + 1 } else { 0 };
        }
        self.looks_left = self.looks_left.saturating_sub(1);
        self.choose();
    }

    /// Whether the middle has about the time in the middle.
    fn is_halfway(&self, time: u64) -> bool {
        let whole = self.above.saturating_sub(self.below);
        let part = time.saturating_sub(self.below);
        part.abs_diff(whole / 2) <= whole / 16
    }

    fn choose(&mut self) {
        let size = self.high - self.low;
        let can_guess = size > FEW && self.misses < MAX_MISSES && self.looks_left > halvings(size);
        let guess = if can_guess { self.guess(size) } else { None };
        self.next = guess.unwrap_or(Look {
            place: self.low + size / 2,
            is_guess: false,
        });
    }

    /// Where the target time would be, and a little beyond, seen from the nearer end. Errors grow with the
    /// distance, and an answer between that end and the guess leaves few positions.
    fn guess(&self, size: u64) -> Option<Look> {
        let whole = self.above.checked_sub(self.below)?;
        let part = uuid6::ticks(&self.target)
            .checked_sub(self.below)?
            .min(whole);
        // 32 bits of both are precise enough.
        let spare = u64::BITS
            .saturating_sub(whole.leading_zeros())
            .saturating_sub(u32::BITS);
        let aim = size
            .checked_mul(part >> spare)?
            .checked_div(whole >> spare)?
            .min(size);
        let from_low = aim <= size / 2;
        let distance = if from_low { aim } else { size - aim };
        // From far away the guess is as near as it can be, and leaves many positions. The next guess is made from
        // nearby.
        let is_far = distance > size / 8;
        let beyond = match is_far {
            true => 0,
            false => (1 << (halvings(distance).div_ceil(2))) << (2 * self.misses),
        };
        let aim = if from_low {
            aim.saturating_add(beyond)
        } else {
            aim.saturating_sub(beyond)
        };
        Some(Look {
            place: self.low + aim.min(size - 1),
            is_guess: !is_far,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// UUIDs of these times, with distinct, ascending second halves.
    fn uuids(times: impl IntoIterator<Item = u64>) -> Vec<[u8; UUID_BYTES]> {
        let uuid = |(number, time): (usize, u64)| {
            let mut uuid = [0; UUID_BYTES];
            uuid[..8].copy_from_slice(&time.to_be_bytes());
            uuid[8..].copy_from_slice(&(2 * number as u64 + 1).to_be_bytes());
            uuid
        };
        times.into_iter().enumerate().map(uuid).collect()
    }

    /// Searches for one UUID. Returns its position and the number of looks.
    fn look_for(uuids: &[[u8; UUID_BYTES]], target: [u8; UUID_BYTES]) -> (u64, u32) {
        let time = |uuid: Option<&[u8; UUID_BYTES]>| uuid.map_or(0, uuid6::ticks);
        let times = time(uuids.first())..time(uuids.last());
        let mut search = Search::new(target, 0..uuids.len() as u64, times);
        let mut looks = 0;
        while let Some(place) = search.place() {
            search.saw(&uuids[usize::try_from(place).unwrap()]);
            looks += 1;
        }
        (search.answer(), looks)
    }

    /// Searches for many of the UUIDs, and for the ones just above them. Returns the most looks, and the average.
    fn looks(uuids: &[[u8; UUID_BYTES]]) -> (u32, f64) {
        let (mut most, mut all, mut searches) = (0, 0, 0);
        for step in 0..uuids.len().min(2000) {
            let place = step * uuids.len() / uuids.len().min(2000);
            for (delta, after) in [(0_u128, 0), (1, 1)] {
                let target = u128::from_be_bytes(uuids[place]) + delta;
                let (found, count) = look_for(uuids, target.to_be_bytes());
                assert_eq!(found, place as u64 + after);
                (most, all, searches) = (most.max(count), all + count, searches + 1);
            }
        }
        (most, f64::from(all) / f64::from(searches))
    }

    /// A fixed sequence without a pattern.
    fn scattered() -> impl Iterator<Item = u64> {
        std::iter::successors(Some(1_u64), |number| {
            Some(
                number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            )
        })
    }

    #[test]
    fn evenly_spread_times_take_a_handful_of_looks() {
        let regular =
            uuids((0..1 << 18).map(|number| 0x1ee0_0000_0000_0000 + number * (1000 << 16)));
        let (most, average) = looks(&regular);
        assert!(average <= 4.0, "{most} at most, {average} on average");
        let mut times: Vec<_> = scattered().take(1 << 18).collect();
        times.sort_unstable();
        let (most, average) = looks(&uuids(times));
        assert!(average <= 7.0, "{most} at most, {average} on average");
    }

    #[test]
    fn no_spread_takes_more_looks_than_halving_and_a_few() {
        let count = 1_u64 << 16;
        let mut bursts: Vec<_> = scattered()
            .take(64)
            .flat_map(|start| (0..1024).map(move |at| start / 2 + at))
            .collect();
        bursts.sort_unstable();
        let spreads: [Vec<u64>; 6] = [
            std::iter::repeat_n(7, 1 << 16).collect(),
            (0..count)
                .map(|number| 1_u64 << (number * 63 / count))
                .collect(),
            (0..count)
                .map(|number| u64::MAX - (1_u64 << (63 - number * 63 / count)))
                .collect(),
            (0..count)
                .map(|number| {
                    if number + 1 == count {
                        u64::MAX
                    } else {
                        number
                    }
                })
                .collect(),
            scattered()
                .take(1 << 16)
                .map(|time| time >> (time % 64))
                .collect(),
            bursts,
        ];
        for mut times in spreads {
            times.sort_unstable();
            let uuids = uuids(times);
            let (most, average) = looks(&uuids);
            assert!(
                most <= halvings(count) + SPARE_LOOKS,
                "{most} at most, {average} on average"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn the_place_is_where_halving_finds_it(mut times: Vec<u64>, target: u64) {
            times.sort_unstable();
            let uuids = uuids(times);
            let mut uuid = [0; UUID_BYTES];
            uuid[..8].copy_from_slice(&target.to_be_bytes());
            let expected = uuids.partition_point(|each| *each < uuid) as u64;
            proptest::prop_assert_eq!(look_for(&uuids, uuid).0, expected);
        }

        #[test]
        fn what_does_not_ascend_ends_as_fast(times: Vec<u64>, target: u64) {
            let uuids = uuids(times);
            let mut uuid = [0; UUID_BYTES];
            uuid[..8].copy_from_slice(&target.to_be_bytes());
            let (found, count) = look_for(&uuids, uuid);
            proptest::prop_assert!(found <= uuids.len() as u64);
            proptest::prop_assert!(count <= halvings(uuids.len() as u64) + SPARE_LOOKS);
        }
    }
}
