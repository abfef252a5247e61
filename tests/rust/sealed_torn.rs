//! Sealed segments that were cut off in their trailer, entries that are not in order, and what finds out the key.

use crate::common::sealed::{Record, lenient, segment};
use crate::common::{scan, source, uuid};
use seglake::Error;
use seglake::checksum::{Key, hash};
use seglake::format::{Filter, Start, Step, open};
use seglake::ledger::{Cause, Kind};

fn record(tick: u64) -> Record {
    (uuid(tick), b"type".to_vec(), tick.to_be_bytes().repeat(3))
}

fn ticks(bytes: &[u8]) -> Vec<usize> {
    let (records, _) = scan(source(bytes), &lenient()).unwrap();
    let number = |value: &[u8]| u64::from_be_bytes(*value.first_chunk().unwrap());
    let ticks = records.iter().map(|record| number(&record.value));
    ticks.map(|tick| usize::try_from(tick).unwrap()).collect()
}

/// A torn tail is how the trailer begins that these very messages have; any other bytes are none.
#[test]
fn a_trailer_that_is_cut_off_is_a_torn_tail_if_it_is_the_right_one() {
    for count in 0..4_u64 {
        let records: Vec<_> = (1..=count).map(record).collect();
        let whole = segment(&Key::DEFAULT, &records, true);
        let data_end = segment(&Key::DEFAULT, &records, false).len();
        for cut in data_end + 1..whole.len() {
            let torn = |bytes: &[u8]| {
                let (found, ledger) = scan(source(bytes), &lenient()).unwrap();
                let is_tail = |kind| {
                    let last = ledger.iter().max_by_key(|span| span.end).unwrap();
                    (last.start, last.end, last.kind) == (data_end as u64, cut as u64, kind)
                };
                (found.len() as u64, is_tail(Kind::TornTail))
            };
            assert_eq!(torn(&whole[..cut]), (count, true), "{count}, {cut}");
            for place in data_end..cut {
                let mut bytes = whole[..cut].to_vec();
                bytes[place] ^= 1;
                assert!(!torn(&bytes).1, "{count}, {cut}, {place}");
            }
        }
    }
}

/// Without a trailer the order of UUIDs shows which entry is wrong: the earlier one, if the next would still
/// ascend without it.
#[test]
fn of_entries_out_of_order_without_a_trailer_those_count_that_ascend() {
    for (order, expected) in [
        (vec![1, 2, 2, 3], vec![1, 2, 3]),
        (vec![2, 3, 2], vec![2, 3]),
        (vec![2, 3, 2, 4], vec![2, 3, 4]),
        (vec![1, 5, 2, 3], vec![1, 2, 3]),
        (vec![2, 1, 3], vec![1, 3]),
        (vec![1, 1], vec![1]),
    ] {
        let records: Vec<_> = order.iter().map(|tick| record(*tick)).collect();
        let bytes = segment(&Key::DEFAULT, &records, false);
        assert_eq!(ticks(&bytes), expected, "{order:?}");
        let (found, _) = scan(source(&bytes), &lenient()).unwrap();
        // Of two with one UUID it is the first.
        let first = |tick: &usize| order.iter().position(|own| *own == *tick as u64).unwrap();
        let data = 24 * (records.len() + 1);
        let places = expected.iter().map(|tick| data + first(tick) * 33);
        let positions = found.iter().map(|record| record.position);
        assert!(positions.eq(places.map(|place| place as u64)), "{order:?}");
    }
}

/// The finding of a message that is too long states how many bytes it needs and how many there are.
#[test]
fn a_message_beyond_the_data_reports_its_length() {
    let records: Vec<_> = (1..4).map(record).collect();
    for trailer in [true, false] {
        let mut bytes = segment(&Key::DEFAULT, &records, trailer);
        let start = 24 * 4 + 2 * 33;
        bytes[start + 1 + 4 + 3] += 1;
        let strict = lenient().strict(true);
        let Err(Error::Damage(damage)) = scan(source(&bytes), &strict) else {
            panic!("damage is raised")
        };
        assert_eq!(
            (damage.offset, damage.cause),
            (start as u64, Cause::LengthOutOfBounds)
        );
        assert!(damage.finding.expected().starts_with("34 bytes, as"));
        assert_eq!(damage.finding.actual(), "33 bytes left in the data");
    }
}

#[test]
fn a_message_whose_lengths_lie_beyond_the_data_reports_theirs() {
    let records: Vec<_> = (1..4).map(record).collect();
    for trailer in [true, false] {
        let mut bytes = segment(&Key::DEFAULT, &records, trailer);
        bytes[24 * 4 + 2 * 33] = 200;
        let strict = lenient().strict(true);
        let Err(Error::Damage(damage)) = scan(source(&bytes), &strict) else {
            panic!("damage is raised")
        };
        assert_eq!(damage.cause, Cause::TruncatedHeader);
        let expected = damage.finding.expected();
        assert!(expected.starts_with("at least 205 bytes"), "{expected}");
        assert_eq!(damage.finding.actual(), "33 bytes left in the data");
    }
}

/// If key check and index hash are damaged, the key under which messages verify is the file's, whatever the
/// filter.
#[test]
fn of_several_keys_it_is_the_one_under_which_messages_count() {
    let keys = [1, 2, 3].map(|byte| Key::new(&[byte; 32]));
    let records: Vec<_> = (1..20).map(record).collect();
    for key in keys {
        let mut bytes = segment(&key, &records, true);
        let foot = bytes.len() - 32;
        assert_eq!(bytes[foot..foot + 8], hash(&key, &[]).to_be_bytes());
        bytes[foot] ^= 1;
        bytes[foot + 16] ^= 1;
        let wanted = Filter::default().among("type", vec![b"other".to_vec()]);
        // A record that is not emitted may be of any size.
        for (wanted, values, record_bytes, given) in [
            (Filter::default(), true, 100, 19),
            (Filter::default(), false, 10, 19),
            (wanted, true, 10, 0),
        ] {
            let options = lenient()
                .keys(keys.to_vec())
                .record_bytes(record_bytes)
                .filter(wanted)
                .values(values);
            let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
            let (mut rows, mut good) = (0, 0);
            while walk.step().unwrap() == Step::More {
                rows += walk.rows().len();
                let spans = walk.spans().iter();
                good += spans.filter(|span| span.kind == Kind::Record).count();
            }
            assert_eq!((rows, good), (given, 19));
        }
    }
}

/// No message is good. The file is under another key only if neither key check nor index hash matches under any
/// given key.
#[test]
fn key_check_or_index_hash_settle_the_key_where_no_message_is_good() {
    let [other, own] = [1, 2].map(|byte| Key::new(&[byte; 32]));
    let records: Vec<_> = (1..20).map(record).collect();
    let mut sound = segment(&own, &records, true);
    let data = 24 * 20;
    for number in 0..19 {
        sound[data + number * 33 + 20] ^= 1;
    }
    let foot = sound.len() - 32;
    for (keys, damaged, is_suspect) in [
        (vec![own], [false, false], false),
        (vec![own], [true, false], false),
        (vec![own], [false, true], false),
        (vec![own], [true, true], true),
        (vec![other, own], [false, false], false),
        (vec![other, own], [true, false], false),
        (vec![other, own], [false, true], false),
        (vec![other], [false, false], true),
    ] {
        let mut bytes = sound.clone();
        for (place, is_damaged) in [foot, foot + 16].into_iter().zip(damaged) {
            bytes[place] ^= u8::from(is_damaged);
        }
        let options = lenient().keys(keys);
        let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
        while walk.step().unwrap() == Step::More {
            assert!(walk.rows().is_empty());
        }
        let keys = options.keys.len();
        assert_eq!(walk.suspects_key(), is_suspect, "{keys} keys, {damaged:?}");
    }
}
