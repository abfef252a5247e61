//! UUID version 6 (RFC 9562). Comparing their bytes compares their times.
//!
//! The time is a count of 100 ns ticks since 1582-10-15 UTC, 60 bits of it, most significant first.
//!
//! ```
//! use seglake::uuid6::{Generator, timestamp_micros};
//!
//! let uuids = Generator::default();
//! let (first, second) = (uuids.now(), uuids.now());
//! assert!(first < second);
//! assert!(timestamp_micros(first.as_bytes()) <= timestamp_micros(second.as_bytes()));
//! ```

use std::sync::Mutex;
use std::time::Duration;

use uuid::Uuid;

use crate::sync::{self, Unpoisoned as _};

/// 100 ns ticks from 1582-10-15 to 1970-01-01 UTC.
const UNIX_EPOCH_TICKS: u64 = 0x01b2_1dd2_1381_4000;
const MAX_TICKS: u64 = (1 << 60) - 1;
const CLOCK_SEQUENCE_BITS: u32 = 14;
const NODE_BITS: u32 = 48;
/// Variant 10, in the second half.
const VARIANT: u64 = 1 << 63;
const TICKS_PER_MICROSECOND: u64 = 10;

/// Whether the 16 bytes, in network byte order, are a UUID of version 6, variant 10.
#[doc(hidden)] // public for the Python extension: the crate uuid has it
#[must_use]
pub const fn is_v6(uuid: &[u8; 16]) -> bool {
    uuid[6] >> 4 == 6 && uuid[8] >> 6 == 0b10
}

/// The first half as a number, with the most significant byte first. It ascends with the UUID.
#[must_use]
pub(crate) const fn first_half(uuid: &[u8; 16]) -> u64 {
    // Taken from one number, which is one load. The compiler does not merge loads of single bytes here.
    (u128::from_be_bytes(*uuid) >> 64) as u64
}

/// The time of a version-6 UUID in microseconds since 1970-01-01 UTC: its ticks divided by ten, rounded down.
#[must_use]
pub const fn timestamp_micros(uuid: &[u8; 16]) -> i64 {
    // The epoch is a whole number of microseconds, so each term can be rounded by itself. 60 bits of ticks do not
    // overflow.
    const UNIX_EPOCH_MICROS: u64 = UNIX_EPOCH_TICKS / TICKS_PER_MICROSECOND;
    const { assert!(UNIX_EPOCH_TICKS.is_multiple_of(TICKS_PER_MICROSECOND)) };
    (ticks(uuid) / TICKS_PER_MICROSECOND).cast_signed() - UNIX_EPOCH_MICROS.cast_signed()
}

/// Its time in 100 ns since 1582-10-15 UTC, whatever its version is.
pub(crate) const fn ticks(uuid: &[u8; 16]) -> u64 {
    let head = first_half(uuid);
    head >> 16 << 12 | head & 0x0fff
}

/// The least 16 bytes of a version-6 UUID whose time is `micros` (microseconds since 1970-01-01 UTC) or later. It is a
/// bound for comparisons, not a UUID to use. Times before 1582-10-15 give the least bound; times after the last that 60
/// bits can store give `None`.
#[must_use]
pub fn lower_bound(micros: i64) -> Option<[u8; 16]> {
    let ticks = gregorian(micros)?;
    let mut bound = [0; 16];
    bound[..8].copy_from_slice(&head(ticks).to_be_bytes());
    Some(bound)
}

/// Ticks since 1582 for microseconds since 1970; 0 for earlier times.
fn gregorian(micros: i64) -> Option<u64> {
    let ticks =
        i128::from(micros) * i128::from(TICKS_PER_MICROSECOND) + i128::from(UNIX_EPOCH_TICKS);
    u64::try_from(ticks.max(0))
        .ok()
        .filter(|ticks| *ticks <= MAX_TICKS)
}

/// Generates ascending version-6 UUIDs, also within one tick and when the clock steps back: then the time is one tick
/// after the last. Clock sequence and node are random, and the node is marked as no hardware address (RFC 9562, 6.10).
#[derive(Debug)]
pub struct Generator {
    /// Ticks of the last UUID.
    last: Mutex<u64>,
    /// The last argument of [`at`](Self::at), and how many UUIDs it has given for that time.
    given: Mutex<(i64, u64)>,
    /// The second half of UUIDs: variant, clock sequence and node.
    tail: u64,
}

impl Default for Generator {
    fn default() -> Self {
        let [a, b, c, d, e, f, .., y, z] = sync::random().into_bytes();
        // The multicast bit marks an address that is not a hardware address.
        let node = u64::from_be_bytes([0, 0, a | 1, b, c, d, e, f]);
        let clock_sequence = u64::from(u16::from_be_bytes([y, z]));
        Self {
            last: Mutex::new(0),
            given: Mutex::new((i64::MIN, 0)),
            tail: tail(clock_sequence, node),
        }
    }
}

impl Generator {
    /// The next UUID with the present time.
    #[must_use]
    pub fn now(&self) -> Uuid {
        self.at_or_behind(present())
    }

    /// The next UUID with the present time, or one tick after `last` if that is later. `None` if no version-6 UUID has
    /// a later time than `last`.
    #[doc(hidden)] // public for tests
    #[must_use]
    pub fn after(&self, last: &[u8; 16]) -> Option<Uuid> {
        let floor = ticks(last) + 1;
        (floor <= MAX_TICKS).then(|| self.at_or_behind(present().max(floor)))
    }

    /// As [`now`](Self::now) and [`after`](Self::after), for a caller that has the generator to itself: it need not lock.
    pub(crate) fn next_alone(&mut self, last: Option<&[u8; 16]>) -> Option<Uuid> {
        let floor = last.map_or(0, |last| ticks(last) + 1);
        let last = self.last.get_mut().unpoisoned();
        *last = following(*last, present().max(floor));
        (floor <= MAX_TICKS).then(|| of(*last, self.tail))
    }

    /// A UUID with the time `micros` (microseconds since 1970-01-01 UTC), greater than those of earlier calls with the
    /// same time. `None` if 60 bits of ticks since 1582-10-15 UTC cannot store it, or after 163,840 successive calls
    /// with one time.
    #[must_use]
    pub fn at(&self, micros: i64) -> Option<Uuid> {
        let ticks = gregorian(micros).filter(|ticks| *ticks > 0)?;
        let mut given = self.given.lock().unpoisoned();
        let count = if given.0 == micros { given.1 + 1 } else { 0 };
        let tick_of_ten = count >> CLOCK_SEQUENCE_BITS;
        if tick_of_ten >= 10 || ticks + tick_of_ten > MAX_TICKS {
            return None;
        }
        *given = (micros, count);
        Some(of(ticks + tick_of_ten, tail(count, self.tail)))
    }

    fn at_or_behind(&self, ticks: u64) -> Uuid {
        let mut last = self.last.lock().unpoisoned();
        *last = following(*last, ticks);
        of(*last, self.tail)
    }
}

/// The time from one count of ticks to another; none to an earlier one.
pub(crate) const fn between(from: u64, to: u64) -> Duration {
    Duration::from_micros(to.saturating_sub(from) / TICKS_PER_MICROSECOND)
}

/// How far a UUID is ahead of the clock; `None` by less than a second, which clocks differ by.
pub(crate) fn ahead(uuid: &[u8; 16]) -> Option<Duration> {
    let ahead = between(present(), ticks(uuid));
    (ahead >= Duration::from_secs(1)).then_some(ahead)
}

/// These ticks, or those after the last ones.
fn following(last: u64, ticks: u64) -> u64 {
    ticks.max(last + 1).min(MAX_TICKS)
}

/// The first half of a UUID: ticks and version.
const fn head(ticks: u64) -> u64 {
    ticks >> 12 << 16 | 0x6000 | ticks & 0x0fff
}

/// The second half of a UUID: the lowest bits of a clock sequence, and those of a node.
const fn tail(clock_sequence: u64, node: u64) -> u64 {
    let clock_sequence = clock_sequence & ((1 << CLOCK_SEQUENCE_BITS) - 1);
    VARIANT | clock_sequence << NODE_BITS | node & ((1 << NODE_BITS) - 1)
}

/// Made in two registers: a UUID that is stored byte by byte keeps whoever copies it waiting until the bytes leave the store buffer.
#[inline]
const fn of(ticks: u64, tail: u64) -> Uuid {
    Uuid::from_u64_pair(head(ticks), tail)
}

/// The present time as ticks since 1582-10-15 UTC. A clock before 1970 gives 1970.
pub(crate) fn present() -> u64 {
    // In parts: nanoseconds as one number would need a division of 128 bits.
    let now = sync::since_epoch();
    let seconds = now.as_secs().saturating_mul(10_000_000);
    seconds
        .saturating_add(u64::from(now.subsec_nanos() / 100))
        .saturating_add(UNIX_EPOCH_TICKS)
        .min(MAX_TICKS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use uuid::Timestamp;

    use super::*;

    #[test]
    fn ascends_within_a_tick_and_when_the_clock_steps_back() {
        let generator = Generator::default();
        let now = present();
        let uuids: Vec<_> = [now, now, now - 1_000_000, now]
            .map(|ticks| generator.at_or_behind(ticks))
            .into();
        assert!(uuids.is_sorted_by(|a, b| a < b), "{uuids:?}");
        assert!(uuids.iter().all(|uuid| is_v6(uuid.as_bytes())));
        let far = Uuid::new_v6(
            Timestamp::from_gregorian_time(now + 50_000_000, 7),
            &[0xff; 6],
        );
        assert!(
            generator
                .after(far.as_bytes())
                .is_some_and(|next| next > far)
        );
        assert_eq!(generator.after(&[0xff; 16]), None);
    }

    #[test]
    fn one_that_is_used_alone_ascends_as_well() {
        let mut generator = Generator::default();
        let first = generator.next_alone(None).unwrap();
        let second = generator.next_alone(None).unwrap();
        let far = Uuid::new_v6(
            Timestamp::from_gregorian_time(present() + 50_000_000, 7),
            &[0xff; 6],
        );
        let third = generator.next_alone(Some(far.as_bytes())).unwrap();
        assert!(first < second && second < far && far < third);
        assert!(generator.now() > third);
        assert_eq!(generator.next_alone(Some(&[0xff; 16])), None);
    }

    #[test]
    fn bounds_are_the_least_of_their_time() {
        let bound = lower_bound(-1).unwrap();
        assert_eq!(timestamp_micros(&bound), -1);
        assert_eq!(lower_bound(i64::MIN), lower_bound(-12_219_292_800_000_000));
        assert_eq!(lower_bound(i64::MAX), None);
        assert_eq!(Generator::default().at(i64::MIN), None);
    }

    #[test]
    fn one_time_gives_ascending_uuids_of_that_time() {
        let generator = Generator::default();
        let uuids: Vec<_> = (0..40_000)
            .map_while(|_| generator.at(1_357_034_400_000_000))
            .collect();
        assert_eq!(uuids.len(), 40_000);
        assert!(uuids.is_sorted_by(|a, b| a < b));
        assert!(
            uuids
                .iter()
                .all(|uuid| timestamp_micros(uuid.as_bytes()) == 1_357_034_400_000_000)
        );
    }

    proptest::proptest! {
        #[test]
        fn fields_are_laid_out_as_by_the_uuid_crate(ticks in 0..=MAX_TICKS, sequence: u16, node: [u8; 6]) {
            let expected = Uuid::new_v6(Timestamp::from_gregorian_time(ticks, sequence), &node);
            let [a, b, c, d, e, f] = node;
            let node = u64::from_be_bytes([0xff, 0xff, a, b, c, d, e, f]);
            proptest::prop_assert_eq!(of(ticks, tail(sequence.into(), node)), expected);
        }

        #[test]
        fn version_and_variant_are_those_of_the_uuid_crate(uuid: [u8; 16]) {
            let near = [uuid[6] & 0x0f | 0x60, uuid[8] & 0x3f | 0x80];
            for (version, variant) in [
                (uuid[6], uuid[8]),
                (near[0], uuid[8]),
                (uuid[6], near[1]),
                (near[0], near[1]),
            ] {
                let mut uuid = uuid;
                (uuid[6], uuid[8]) = (version, variant);
                let other = Uuid::from_bytes(uuid);
                let expected = other.get_version_num() == 6 && other.get_variant() == uuid::Variant::RFC4122;
                proptest::prop_assert_eq!(is_v6(&uuid), expected);
            }
        }

        #[test]
        fn times_are_those_of_the_uuid_crate(ticks in 0..=MAX_TICKS, sequence: u16, node: [u8; 6]) {
            let uuid = Uuid::new_v6(Timestamp::from_gregorian_time(ticks, sequence), &node);
            let micros = timestamp_micros(uuid.as_bytes());
            proptest::prop_assert_eq!(super::ticks(uuid.as_bytes()), ticks);
            proptest::prop_assert_eq!(uuid.get_timestamp().unwrap().to_gregorian().0, ticks);
            proptest::prop_assert!(lower_bound(micros).unwrap() <= *uuid.as_bytes());
            proptest::prop_assert!(lower_bound(micros + 1).is_none_or(|bound| bound > *uuid.as_bytes()));
        }
    }
}
