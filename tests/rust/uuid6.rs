//! UUIDs of version 6 at their bounds: the last tick, an overflow of the clock sequence, a clock that stops or
//! steps back.

use std::time::{SystemTime, UNIX_EPOCH};

use seglake::uuid6::{Generator, is_v6, lower_bound, timestamp_micros};

/// 100 ns ticks from 1582-10-15 to 1970-01-01 UTC, and the greatest 60-bit number of ticks.
const EPOCH_TICKS: i128 = 0x01b2_1dd2_1381_4000;
const MAX_TICKS: i128 = (1 << 60) - 1;
/// The number of UUIDs in one tick.
const PER_TICK: usize = 1 << 14;

/// The last whole microsecond whose ticks fit into 60 bits, since 1970-01-01.
fn last_micros() -> i64 {
    i64::try_from((MAX_TICKS - EPOCH_TICKS) / 10).unwrap()
}

/// The ticks of a UUID, from its fields as in RFC 9562.
fn ticks(uuid: &[u8; 16]) -> u64 {
    let high = u32::from_be_bytes(*uuid.first_chunk().unwrap());
    let mid = u16::from_be_bytes([uuid[4], uuid[5]]);
    let low = u16::from_be_bytes([uuid[6], uuid[7]]) & 0x0fff;
    u64::from(high) << 28 | u64::from(mid) << 12 | u64::from(low)
}

fn sequence(uuid: &[u8; 16]) -> u16 {
    u16::from_be_bytes([uuid[8], uuid[9]]) & 0x3fff
}

/// A UUID of this many ticks.
fn of(ticks: u64) -> [u8; 16] {
    let mut uuid = [0xbf; 16];
    uuid[..8].copy_from_slice(&(ticks >> 12 << 16 | 0x6000 | ticks & 0x0fff).to_be_bytes());
    uuid
}

/// All UUIDs that a generator makes of one time, one after the other.
fn all_at(generator: &Generator, micros: i64) -> Vec<[u8; 16]> {
    let made = std::iter::from_fn(|| generator.at(micros).map(uuid::Uuid::into_bytes));
    made.collect()
}

#[test]
fn one_microsecond_has_ten_ticks_of_16384_uuids() {
    let generator = Generator::default();
    let micros = 1_357_034_400_000_000;
    let uuids = all_at(&generator, micros);
    assert_eq!(uuids.len(), 10 * PER_TICK);
    let first = u64::try_from(i128::from(micros) * 10 + EPOCH_TICKS).unwrap();
    for (place, uuid) in uuids.iter().enumerate() {
        assert!(is_v6(uuid));
        assert_eq!(ticks(uuid), first + (place / PER_TICK) as u64, "{place}");
        assert_eq!(usize::from(sequence(uuid)), place % PER_TICK, "{place}");
        assert_eq!(timestamp_micros(uuid), micros);
    }
    assert!(uuids.is_sorted_by(|a, b| a < b));
    assert_eq!(generator.at(micros), None, "and still none");
    // Another time begins anew, and so does the same one after it.
    let next = generator.at(micros + 1).unwrap().into_bytes();
    assert_eq!((ticks(&next), sequence(&next)), (first + 10, 0));
    let again = generator.at(micros).unwrap().into_bytes();
    assert_eq!(again, uuids[0]);
}

#[test]
fn the_last_microsecond_has_the_ticks_that_are_left() {
    let last = last_micros();
    assert_eq!((MAX_TICKS - EPOCH_TICKS) % 10, 5);
    let uuids = all_at(&Generator::default(), last);
    assert_eq!(uuids.len(), 6 * PER_TICK);
    assert_eq!(i128::from(ticks(uuids.last().unwrap())), MAX_TICKS);
    assert_eq!(Generator::default().at(last + 1), None);
    assert_eq!(Generator::default().at(i64::MAX), None);
    assert_eq!(
        lower_bound(last).map(|bound| timestamp_micros(&bound)),
        Some(last)
    );
    assert_eq!(lower_bound(last + 1), None);
}

#[test]
fn the_first_times() {
    let first = i64::try_from(-EPOCH_TICKS / 10).unwrap();
    for before in [i64::MIN, first - 1, first] {
        assert_eq!(Generator::default().at(before), None);
        assert_eq!(lower_bound(before).map(|bound| ticks(&bound)), Some(0));
    }
    let uuid = Generator::default().at(first + 1).unwrap().into_bytes();
    assert_eq!(ticks(&uuid), 10);
    assert_eq!(lower_bound(first + 1).map(|bound| ticks(&bound)), Some(10));
}

#[test]
fn a_node_is_not_a_hardware_address() {
    let mut nodes = Vec::new();
    for _ in 0..64 {
        let generator = Generator::default();
        for uuid in [generator.now(), generator.at(0).unwrap()] {
            let node: [u8; 6] = *uuid.as_bytes().last_chunk().unwrap();
            // The multicast bit: the least of the first byte.
            assert_eq!(node[0] & 1, 1);
            nodes.push(node);
        }
        let [.., before, last] = nodes.as_slice() else {
            panic!("two were pushed")
        };
        assert_eq!(before, last, "one generator has one node");
    }
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes.len(), 64, "they are random");
    // All bits but that one are.
    let [mut any, mut all] = [[0; 6], [0xff; 6]];
    for node in &nodes {
        for (place, byte) in node.iter().enumerate() {
            any[place] |= byte;
            all[place] &= byte;
        }
    }
    assert_eq!((any, all), ([0xff; 6], [1, 0, 0, 0, 0, 0]));
}

#[test]
fn the_present_is_that_of_the_clock() {
    let micros = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_micros()).unwrap()
    };
    let generator = Generator::default();
    let hour = 3_600_000_000;
    for uuid in [
        generator.now(),
        Generator::default().after(&of(0)).unwrap(),
        Generator::default().after(&[0; 16]).unwrap(),
    ] {
        assert!(is_v6(uuid.as_bytes()));
        assert!(timestamp_micros(uuid.as_bytes()).abs_diff(micros()) < hour);
    }
    let uuids: Vec<_> = (0..10_000).map(|_| generator.now()).collect();
    assert!(uuids.is_sorted_by(|a, b| a < b));
}

#[test]
fn after_a_later_uuid_it_is_one_tick_on() {
    let max = u64::try_from(MAX_TICKS).unwrap();
    let far = max - 5;
    let generator = Generator::default();
    let next = generator.after(&of(far)).unwrap().into_bytes();
    assert_eq!(ticks(&next), far + 1);
    assert!(next > of(far));
    // Its own last one is included.
    let later = generator.now().into_bytes();
    assert_eq!(ticks(&later), far + 2);
    assert_eq!(
        ticks(generator.after(&of(far)).unwrap().as_bytes()),
        far + 3
    );
    assert_eq!(sequence(&next), sequence(&later));
    let last = Generator::default().after(&of(max - 1)).unwrap();
    assert_eq!(ticks(last.as_bytes()), max);
    assert_eq!(Generator::default().after(&of(max)), None);
}
