//! Finding a place among sorted UUIDs: by where its time would stand if times were spread evenly, and by halving where they are
//! not.

use super::UUID_BYTES;
use crate::error::Result;

/// The number of UUIDs smaller than `wanted` among `count` that ascend, `uuid` giving the one at a place.
///
/// Evenly spread ones take a handful of looks. However they are spread, guessing ends after log2(`count`) guesses, so that
/// there are never more than two and that again for halving. If they do not ascend, the answer is some place, found as
/// fast.
pub(super) fn lower_bound(
    count: u64,
    wanted: &[u8; UUID_BYTES],
    mut uuid: impl FnMut(u64) -> Result<[u8; UUID_BYTES]>,
) -> Result<u64> {
    let Some(last) = count.checked_sub(1) else {
        return Ok(0);
    };
    let (first_uuid, last_uuid) = (uuid(0)?, uuid(last)?);
    if *wanted <= first_uuid {
        return Ok(0);
    }
    if *wanted > last_uuid {
        return Ok(count);
    }
    let target = time(wanted);
    let mut bracket = Bracket {
        low: 1,
        high: last,
        below: time(&first_uuid),
        above: time(&last_uuid),
    };
    let mut guesses_left = count.ilog2();
    // Guesses that, two in a row, did not halve the bracket are followed by one halving.
    let mut size_before = [u64::MAX; 2];
    let mut lean = Lean::None;
    while bracket.low < bracket.high {
        let size = bracket.high - bracket.low;
        let is_stuck = size > size_before[0] / 2;
        let place = if guesses_left == 0 || is_stuck {
            size_before = [u64::MAX; 2];
            bracket.low + size / 2
        } else {
            guesses_left -= 1;
            size_before = [size_before[1], size];
            bracket.guess(target, lean)
        };
        let found = uuid(place)?;
        if found < *wanted {
            bracket.low = place + 1;
            bracket.below = time(&found);
            lean = Lean::Up;
        } else {
            bracket.high = place;
            bracket.above = time(&found);
            lean = Lean::Down;
        }
        if bracket.high - bracket.low < size / 4 {
            lean = Lean::None; // both ends are near now
        }
    }
    Ok(bracket.low)
}

/// Which way to aim beside the best guess. Guesses fall on one side of what is wanted, so that the other end of the bracket stays
/// where it is: aiming a little too far brings it along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lean {
    None,
    Up,
    Down,
}

/// What is wanted stands at `low` or behind it, and not behind `high`.
struct Bracket {
    low: u64,
    high: u64,
    /// The time in front of `low`.
    below: u64,
    /// The time at `high`.
    above: u64,
}

impl Bracket {
    /// A place from `low` on and below `high`.
    fn guess(&self, target: u64, lean: Lean) -> u64 {
        let Self {
            low,
            high,
            below,
            above,
        } = *self;
        let size = high - low;
        let (Some(whole), Some(part)) = (above.checked_sub(below), target.checked_sub(below))
        else {
            return low + size / 2;
        };
        if whole == 0 {
            return low + size / 2;
        }
        // Less than the size of the bracket, times a part of a whole.
        let part = u128::from(size) * u128::from(part.min(whole)) / u128::from(whole);
        let aim = low + u64::try_from(part).unwrap_or(size);
        let aim = match lean {
            Lean::None => aim,
            Lean::Up => aim.saturating_add(size.isqrt()),
            Lean::Down => aim.saturating_sub(size.isqrt()),
        };
        aim.clamp(low, high - 1)
    }
}

/// The first half of a UUID: its time, and the version in between, which is the same everywhere.
fn time(uuid: &[u8; UUID_BYTES]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *uuid;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// UUIDs of these times, their second halves distinct and ascending.
    fn uuids(times: impl IntoIterator<Item = u64>) -> Vec<[u8; UUID_BYTES]> {
        let uuid = |(number, time): (usize, u64)| {
            let mut uuid = [0; UUID_BYTES];
            uuid[..8].copy_from_slice(&time.to_be_bytes());
            uuid[8..].copy_from_slice(&(2 * number as u64 + 1).to_be_bytes());
            uuid
        };
        times.into_iter().enumerate().map(uuid).collect()
    }

    /// Looks for every UUID, and for one just below and above it. Gives the most probes that took, and how many on average.
    fn probes(uuids: &[[u8; UUID_BYTES]]) -> (u64, u64) {
        let (mut most, mut all, mut searches) = (0, 0, 0);
        for step in 0..uuids.len().min(2000) {
            let place = step * uuids.len() / uuids.len().min(2000);
            for (delta, behind) in [(0_u128, 0), (1, 1)] {
                let number = u128::from_be_bytes(uuids[place]) + delta;
                let mut count = 0;
                let found = lower_bound(uuids.len() as u64, &number.to_be_bytes(), |place| {
                    count += 1;
                    Ok(uuids[usize::try_from(place).unwrap()])
                });
                assert_eq!(found.unwrap(), place as u64 + behind);
                (most, all, searches) = (most.max(count), all + count, searches + 1);
            }
        }
        (most, all / searches)
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
    fn evenly_spread_times_take_a_handful_of_probes() {
        let regular = uuids((0..1 << 18).map(|number| 0x1ee0_0000_0000_6000 + number * 1000));
        assert!(probes(&regular).1 <= 5, "{:?}", probes(&regular));
        let mut times: Vec<_> = scattered().take(1 << 18).collect();
        times.sort_unstable();
        let (most, average) = probes(&uuids(times));
        assert!(average <= 10, "{most} at most, {average} on average");
    }

    #[test]
    fn no_spread_takes_more_than_twice_the_probes_of_halving() {
        let count = 1_u64 << 16;
        let mut bursts: Vec<_> = scattered()
            .take(64)
            .flat_map(|start| (0..1024).map(move |at| start / 2 + at))
            .collect();
        bursts.sort_unstable();
        let spreads: [Vec<u64>; 5] = [
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
            bursts,
        ];
        for times in spreads {
            let uuids = uuids(times);
            let (most, average) = probes(&uuids);
            let halving = u64::from(uuids.len().ilog2());
            assert!(
                most <= 2 * halving + 3,
                "{most} at most, {average} on average"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn the_place_is_where_halving_finds_it(mut times: Vec<u64>, wanted: u64) {
            times.sort_unstable();
            let uuids = uuids(times);
            let mut target = [0; UUID_BYTES];
            target[..8].copy_from_slice(&wanted.to_be_bytes());
            let found = lower_bound(uuids.len() as u64, &target, |place| Ok(uuids[usize::try_from(place).unwrap()]));
            let expected = uuids.partition_point(|uuid| *uuid < target) as u64;
            proptest::prop_assert_eq!(found.unwrap(), expected);
        }

        #[test]
        fn what_does_not_ascend_ends_all_the_same(times: Vec<u64>, wanted: u64) {
            let uuids = uuids(times);
            let mut target = [0; UUID_BYTES];
            target[..8].copy_from_slice(&wanted.to_be_bytes());
            let mut count = 0;
            let found = lower_bound(uuids.len() as u64, &target, |place| {
                count += 1;
                Ok(uuids[usize::try_from(place).unwrap()])
            });
            proptest::prop_assert!(found.unwrap() <= uuids.len() as u64);
            proptest::prop_assert!(count <= 2 * u64::from((uuids.len() + 1).ilog2()) + 3);
        }
    }
}
