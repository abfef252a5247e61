//! Sealed segments that were cut off in their trailer, entries that are not in order, and what finds out the key.

use crate::common::sealed::{Record, lenient, segment};
use crate::common::{scan, source, uuid};
use seglake::Error;
use seglake::checksum::{Key, hash};
use seglake::format::{Filter, RecordId, Start, Step, lookup, open};
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

/// A trailer that is cut off is found if one of its fields is whole and right, or a byte of a right checksum is left.
#[test]
fn a_trailer_that_is_cut_off_is_a_torn_tail() {
    for count in 0..4_u64 {
        let records: Vec<_> = (1..=count).map(record).collect();
        let whole = segment(&Key::DEFAULT, &records, true);
        let data_end = segment(&Key::DEFAULT, &records, false).len();
        for cut in data_end + 1..whole.len() {
            let (found, ledger) = scan(source(&whole[..cut]), &lenient()).unwrap();
            let last = ledger.iter().max_by_key(|span| span.end).unwrap();
            // Without records only the key check can be right.
            let expected = match count == 0 && cut < data_end + 8 {
                true => (Kind::Corrupt, Cause::Unreferenced),
                false => (Kind::TornTail, Cause::TruncatedTrailer),
            };
            assert_eq!(found.len() as u64, count, "{cut}");
            assert_eq!((last.start, last.end), (data_end as u64, cut as u64));
            assert_eq!((last.kind, last.cause), (expected.0, Some(expected.1)));
        }
    }
}

/// Changes that cut off the end of a file, or add to it.
fn other_ends(sound: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let cut = |bytes: usize| sound[..sound.len() - bytes].to_vec();
    let with = |bytes: &[u8]| [sound, bytes].concat();
    let other: Vec<_> = (7..9).map(record).collect();
    vec![
        ("nothing", cut(0)),
        ("1 byte cut off", cut(1)),
        ("8 bytes cut off", cut(8)),
        ("30 bytes cut off", cut(30)),
        ("a newline", with(b"\n")),
        ("16 bytes", with(b"appended by hand")),
        ("zeros", with(&vec![0; 4096 - sound.len()])),
        ("the same file", with(sound)),
        ("another file", with(&segment(&Key::DEFAULT, &other, true))),
    ]
}

/// Every single bit, with each of these ends: no record is wrong, none is lost whose own bytes are sound, and look-ups
/// agree with the walk.
#[test]
fn no_end_of_a_file_switches_its_checksums_off() {
    let values = [&b"v"[..], b"va", b"val"];
    let records: Vec<Record> = (1..)
        .zip(values)
        .map(|(tick, value)| (uuid(tick), b"t".to_vec(), value.to_vec()))
        .collect();
    let sound = segment(&Key::DEFAULT, &records, true);
    let (original, _) = scan(source(&sound), &lenient()).unwrap();
    let ids: Vec<_> = records.iter().map(|own| RecordId::from(own.0)).collect();
    let checksums = sound.len() - 32 - 8 * records.len();
    let is_own = |number: usize, place: usize| {
        let position = usize::try_from(original[number].position).unwrap();
        let end = position + 6 + records[number].2.len();
        let checksum = checksums + 8 * number;
        [
            24 * number..24 * number + 16,
            position..end,
            checksum..checksum + 8,
        ]
        .iter()
        .any(|own| own.contains(&place))
    };
    for (end, bytes) in other_ends(&sound) {
        let flips = (0..8 * sound.len().min(bytes.len())).map(Some);
        for flip in flips.chain([None]) {
            let mut bytes = bytes.clone();
            if let Some(bit) = flip {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let file = source(&bytes);
            let (found, _) = scan(file.clone(), &lenient()).unwrap();
            assert!(
                found.iter().all(|record| original.contains(record)),
                "{end}, {flip:?}"
            );
            let hits = lookup(file.clone(), &lenient()).unwrap().get(&ids).unwrap();
            let are_found = original.iter().map(|record| found.contains(record));
            let are_hit = hits.places.iter().map(Option::is_some);
            assert!(are_hit.eq(are_found), "{end}, {flip:?}");
            for (number, record) in original.iter().enumerate() {
                let is_sound = flip.is_none_or(|bit| !is_own(number, bit / 8));
                let is_lost = is_sound && !found.contains(record);
                assert!(!is_lost, "{end}, {flip:?}, record {number}");
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
