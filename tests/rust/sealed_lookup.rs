//! Looking up messages of sealed segments: hits, misses, what proves them, and how little of the file that takes.
#![allow(clippy::cast_possible_truncation)]

use std::sync::Arc;

use crate::common::counting::Counting;
use crate::common::sealed::{Record, contents, damaged, lenient, segment};
use crate::common::{Plain, Windowed, collect, scan, source, uuid};
use proptest::prelude::*;
use seglake::Error;
use seglake::checksum::{Key, hash};
use seglake::format::{Filter, Hits, Lookup, Options, RecordId, Step, Value, lookup};
use seglake::ledger::Cause;
use seglake::source::Source;

fn strict() -> Options {
    lenient().strict(true)
}

fn plain(hits: &Hits) -> Vec<Option<Plain>> {
    let mut found = Vec::new();
    hits.each(|hit| {
        found.push(hit.map(|(rows, row)| {
            let (Value::Uuid(uuid), Value::Text(type_)) = (rows.field(row, 0), rows.field(row, 2))
            else {
                panic!("columns moved")
            };
            Plain {
                position: rows.position(row),
                uuid,
                type_: type_.to_vec(),
                value: rows.value(row).to_vec(),
            }
        }));
    });
    found
}

fn ids(uuids: &[[u8; 16]]) -> Vec<RecordId> {
    uuids.iter().copied().map(RecordId::from).collect()
}

fn get(
    source: Arc<dyn Source>,
    options: &Options,
    uuids: &[[u8; 16]],
) -> seglake::Result<Vec<Option<Plain>>> {
    Ok(plain(&lookup(source, options)?.get(&ids(uuids))?))
}

fn range(
    source: Arc<dyn Source>,
    options: &Options,
    wanted: &Filter,
) -> seglake::Result<Vec<Plain>> {
    let mut walk = lookup(source, options)?.range(wanted)?;
    let mut records = Vec::new();
    while walk.step()? == Step::More {
        collect(&*walk, &mut records);
    }
    Ok(records)
}

fn between(since: Option<[u8; 16]>, until: Option<[u8; 16]>) -> Filter {
    let mut filter = Filter::default();
    if let Some(since) = since {
        filter = filter.at_least("uuid", since);
    }
    if let Some(until) = until {
        filter = filter.below("uuid", until);
    }
    filter
}

/// The UUID directly after this one.
fn after(uuid: [u8; 16]) -> [u8; 16] {
    (u128::from_be_bytes(uuid) + 1).to_be_bytes()
}

fn many(count: u64, trailer: bool) -> (Vec<Record>, Vec<u8>) {
    let record = |number: u64| {
        let value = number.to_be_bytes().repeat(8);
        (uuid(number * number * 7), b"type".to_vec(), value)
    };
    let records: Vec<_> = (1..=count).map(record).collect();
    let bytes = segment(&Key::DEFAULT, &records, trailer);
    (records, bytes)
}

#[test]
fn every_record_is_found_in_any_order_also_twice_and_nothing_else() {
    for trailer in [true, false] {
        let (records, bytes) = many(300, trailer);
        let mut asked: Vec<_> = records.iter().rev().map(|record| record.0).collect();
        asked.extend(records.iter().map(|record| after(record.0)));
        asked.extend(records.iter().map(|record| record.0));
        asked.extend([[0; 16], [0xff; 16]]);
        for source in [source(&bytes), Arc::new(Windowed(bytes.clone()))] {
            let found = get(source, &strict(), &asked).unwrap();
            for (uuid, found) in asked.iter().zip(&found) {
                let expected = records.iter().find(|record| record.0 == *uuid).cloned();
                let found = found
                    .as_ref()
                    .map(|found| contents(std::slice::from_ref(found)).remove(0));
                assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn an_empty_segment_has_nothing() {
    for trailer in [true, false] {
        let bytes = segment(&Key::DEFAULT, &[], trailer);
        assert_eq!(get(source(&bytes), &strict(), &[uuid(1)]).unwrap(), [None]);
        assert_eq!(
            range(source(&bytes), &strict(), &between(Some(uuid(1)), None)).unwrap(),
            []
        );
    }
    assert!(get(source(b""), &strict(), &[uuid(1)]).is_err());
    assert_eq!(get(source(b""), &lenient(), &[uuid(1)]).unwrap(), [None]);
}

#[test]
fn other_identifiers_are_refused() {
    let (_, bytes) = many(3, true);
    let lookup = lookup(source(&bytes), &strict()).unwrap();
    assert!(matches!(
        lookup.get(&[RecordId::from(1)]),
        Err(Error::Usage(_))
    ));
    let wanted = Filter::default().at_least("offset", 0).below("offset", 1);
    assert!(matches!(lookup.range(&wanted), Err(Error::Usage(_))));
}

#[test]
fn a_hit_takes_a_handful_of_reads_around_its_entry_and_its_message() {
    let (records, bytes) = many(20_000, true);
    for table in [0, (16 << 20)] {
        let counting = Counting::new(bytes.clone());
        let options = strict().set("lookup_table_bytes", table);
        let lookup = lookup(counting.clone(), &options).unwrap();
        lookup.prepare().unwrap();
        counting.take();
        let (mut all_bytes, mut reads, mut count) = (0, 0, 0);
        for record in records.iter().step_by(97) {
            let hits = lookup.get(&ids(&[record.0])).unwrap();
            assert!(hits.places[0].is_some());
            let (bytes, own) = counting.take();
            // A block of the index for each look at worst, the message, its checksum.
            assert!(own <= 15 + 3 + 3, "{own} reads for one message");
            (all_bytes, reads, count) = (all_bytes + bytes, reads + own, count + 1);
        }
        let (all_bytes, reads) = (all_bytes / count, reads as f64 / count as f64);
        assert!(
            all_bytes < 3 * 3072 + 400,
            "{all_bytes} bytes for one message"
        );
        let most = if table == 0 { 5.0 } else { 3.5 };
        assert!(reads < most, "{reads} reads for one message on average");
    }
}

/// With a table the index is read once, in memory bounds, and the answers stay what they were.
#[test]
fn a_table_is_built_once_look_ups_have_paid_for_it() {
    let (records, bytes) = many(20_000, true);
    let all: Vec<_> = records.iter().map(|record| record.0).collect();
    for (table, is_made) in [((16 << 20), true), (1 << 10, true), (0, false)] {
        let counting = Counting::new(bytes.clone());
        let options = strict().set("lookup_table_bytes", table);
        let lookup = lookup(counting.clone(), &options).unwrap();
        let hits = lookup.get(&ids(&all[..1023])).unwrap();
        assert_eq!(plain(&hits).iter().flatten().count(), 1023);
        counting.take();
        assert!(lookup.get(&ids(&all[5..6])).unwrap().places[0].is_some());
        let (read, _) = counting.take();
        assert_eq!(read > 24 * 20_000, is_made, "{read} bytes read");
        let some: Vec<_> = all.iter().step_by(7).rev().copied().collect();
        let found = plain(&lookup.get(&ids(&some)).unwrap());
        for (uuid, found) in some.iter().zip(&found) {
            assert_eq!(found.as_ref().map(|found| found.uuid), Some(*uuid));
        }
        for part in some.chunks(100) {
            let behind: Vec<_> = part.iter().map(|uuid| after(*uuid)).collect();
            let places = lookup.get(&ids(&behind)).unwrap().places;
            assert!(places.iter().all(Option::is_none));
        }
    }
}

/// Messages in bursts of bursts: this many each, this many ticks apart, followed by a pause of two to the given
/// power.
fn bursts(sizes: &[(u16, u8, u8)]) -> Vec<Record> {
    let mut tick = 1;
    let mut records = Vec::new();
    for (size, apart, pause) in sizes {
        for _ in 0..*size {
            tick += u64::from(*apart);
            let mut own = uuid(tick);
            // Of one time many can be, which the rest of the UUID orders.
            own[10..].copy_from_slice(&(records.len() as u64).to_be_bytes()[2..]);
            records.push((own, b"t".to_vec(), vec![*apart; usize::from(*pause)]));
        }
        tick += 1 << pause;
    }
    records
}

/// In memory, messages are looked for in groups: of all sizes, among messages of all lengths.
#[test]
fn groups_of_any_size_find_messages_of_any_length() {
    let lengths = [0, 1, 50, 2000, 2047, 2048, 2049, 70_000];
    let record = |number: u64| {
        let len = lengths[usize::try_from(number).unwrap() % lengths.len()];
        (uuid(number * 1000), b"t".to_vec(), vec![number as u8; len])
    };
    let records: Vec<Record> = (1..=200).map(record).collect();
    for trailer in [true, false] {
        let bytes = segment(&Key::DEFAULT, &records, trailer);
        let lookup = lookup(source(&bytes), &strict()).unwrap();
        for (size, first) in [
            (1, 7),
            (2, 0),
            (31, 3),
            (32, 100),
            (33, 50),
            (64, 9),
            (200, 0),
        ] {
            let asked: Vec<_> = records[first..first + size].iter().collect();
            let uuids: Vec<_> = asked.iter().map(|record| record.0).collect();
            let found = plain(&lookup.get(&ids(&uuids)).unwrap());
            let found: Vec<_> = found.into_iter().flatten().collect();
            assert_eq!(contents(&found).iter().collect::<Vec<_>>(), asked);
        }
    }
}

#[test]
fn the_index_is_proven_once_and_before_the_first_miss() {
    let (records, bytes) = many(5000, true);
    let counting = Counting::new(bytes);
    let lookup = lookup(counting.clone(), &strict()).unwrap();
    counting.take();
    assert_eq!(
        lookup.get(&ids(&[after(records[77].0)])).unwrap().places,
        [None]
    );
    let (bytes, _) = counting.take();
    assert!(
        bytes >= 32 * 5000,
        "{bytes} bytes do not prove an index of 5000 entries"
    );
    for record in &records[..100] {
        assert_eq!(lookup.get(&ids(&[after(record.0)])).unwrap().places, [None]);
        let (bytes, _) = counting.take();
        assert!(bytes < 10_000, "{bytes} bytes read for one more miss");
    }
}

#[test]
fn a_range_reads_its_part_and_no_more() {
    let (records, bytes) = many(5000, true);
    let len = bytes.len() as u64;
    let counting = Counting::new(bytes);
    let options = strict().window_bytes(4096);
    let lookup = lookup(counting.clone(), &options).unwrap();
    let wanted = between(Some(records[3000].0), Some(records[3010].0));
    let read = |wanted: &Filter| {
        let mut walk = lookup.range(wanted).unwrap();
        let mut found = Vec::new();
        while walk.step().unwrap() == Step::More {
            collect(&*walk, &mut found);
        }
        contents(&found)
    };
    assert_eq!(read(&wanted), records[3000..3010]);
    counting.take();
    assert_eq!(read(&wanted), records[3000..3010]);
    let (bytes, _) = counting.take();
    assert!(
        bytes < 40_000 && bytes < len / 10,
        "{bytes} bytes read for ten messages"
    );
    assert_eq!(read(&between(Some(records[4990].0), None)), records[4990..]);
    let (bytes, _) = counting.take();
    assert!(
        bytes < 40_000,
        "{bytes} bytes read for ten messages at the end"
    );
    let time = seglake::uuid6::timestamp_micros(&records[4000].0);
    let by_time = Filter::default()
        .at_least("timestamp", time)
        .below("uuid", records[4002].0);
    assert_eq!(read(&by_time), records[4000..4002]);
}

#[test]
fn a_damaged_uuid_does_not_hide_the_others() {
    let (records, sound) = many(100, true);
    for entry in 0..100 {
        let mut bytes = sound.clone();
        // The highest byte of its time: a search that trusts it goes the wrong way.
        bytes[24 * entry] ^= 0x80;
        let asked: Vec<_> = records.iter().map(|record| record.0).collect();
        let found = get(source(&bytes), &lenient(), &asked).unwrap();
        for (number, found) in found.iter().enumerate() {
            assert_eq!(
                found.is_some(),
                number != entry,
                "entry {entry}, record {number}"
            );
        }
        // Strictly, what is proven is returned, and anything that cannot be proven is an error, never a miss.
        for (number, uuid) in asked.iter().enumerate() {
            match get(source(&bytes), &strict(), &[*uuid]) {
                Ok(found) => assert!(
                    found[0].is_some() && number != entry,
                    "entry {entry}, record {number}"
                ),
                Err(Error::Damage(damage)) => assert!(damage.offset > 0),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_damaged_message_is_an_error_or_missing_never_wrong() {
    let (records, mut bytes) = many(100, true);
    let position = 24 * 101 + 50 * 73;
    bytes[position + 30] ^= 1;
    let error = get(source(&bytes), &strict(), &[records[50].0]).unwrap_err();
    let Error::Damage(damage) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (damage.offset, damage.cause),
        (position as u64, Cause::ChecksumMismatch)
    );
    assert_eq!(
        get(source(&bytes), &lenient(), &[records[50].0]).unwrap(),
        [None]
    );
    let others = get(source(&bytes), &strict(), &[records[49].0, records[51].0]).unwrap();
    assert!(
        others.iter().all(Option::is_some),
        "damage elsewhere is not looked at"
    );
}

#[test]
fn a_message_found_after_the_one_before_is_found_by_look_ups_too() {
    let (records, mut bytes) = many(100, true);
    bytes[24 * 50 + 22] ^= 1;
    let found = get(source(&bytes), &lenient(), &[records[50].0]).unwrap();
    assert_eq!(contents(&[found[0].clone().unwrap()]), records[50..51]);
    let error = get(source(&bytes), &strict(), &[records[50].0]).unwrap_err();
    let Error::Damage(damage) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (damage.offset, damage.cause),
        (24 * 50, Cause::IndexDisagrees)
    );
}

#[test]
fn a_wrong_key_is_named() {
    let (records, bytes) = many(10, true);
    let other = strict().keys(vec![Key::new(&[1; 32])]);
    let error = get(source(&bytes), &other, &[records[5].0]).unwrap_err();
    let Error::Damage(damage) = error else {
        panic!("{error}")
    };
    assert!(damage.wrong_key && damage.cause == Cause::WrongKey);
    assert!(
        get(source(&bytes), &other, &[after(records[5].0)]).is_err(),
        "a miss under a wrong key is none"
    );
}

#[test]
fn values_that_are_too_large_are_refused_and_filtered_ones_are_not_read() {
    let records: Vec<Record> = vec![
        (uuid(1), b"t".to_vec(), vec![1; 100_000]),
        (uuid(2), b"t".to_vec(), vec![2]),
    ];
    let bytes = segment(&Key::DEFAULT, &records, false);
    let limited = strict().record_bytes(1000);
    assert!(matches!(
        get(source(&bytes), &limited, &[uuid(1)]),
        Err(Error::Limit { .. })
    ));
    assert!(get(source(&bytes), &limited, &[uuid(2)]).unwrap()[0].is_some());
    let counting = Counting::new(bytes);
    let lookup = lookup(counting.clone(), &strict().values(false)).unwrap();
    let hits = lookup.get(&ids(&[uuid(1)])).unwrap();
    assert_eq!(plain(&hits)[0].as_ref().unwrap().type_, b"t");
    assert!(counting.take().0 < 2000);
}

/// Without a trailer a message is good only as far as its neighbours confirm it. A look-up returns only what the
/// walk returns.
#[test]
fn a_reordered_index_does_not_mislead_look_ups() {
    let (records, sound) = many(10, false);
    let mut bytes = sound.clone();
    bytes[..24 * 10].rotate_left(24 * 5);
    let (walked, _) = scan(source(&bytes), &lenient()).unwrap();
    let asked: Vec<_> = records.iter().map(|record| record.0).collect();
    let found: Vec<_> = get(source(&bytes), &lenient(), &asked)
        .unwrap()
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(found, walked);
    assert!(walked.len() < 10);
}

/// A look-up in bytes, in windows or not, that builds its table at once or has none. Every order of few UUIDs,
/// some twice. Which entries are good depends on the others: without a trailer a look-up returns what a walk
/// returns. With one, a message that verifies after a smaller UUID needs no walk.
#[test]
fn any_order_of_a_few_entries_gives_what_a_walk_gives() {
    let asked = [1, 2, 3].map(uuid);
    for order in 0..3_usize.pow(4) {
        for (trailer, len) in [(true, 40), (true, 3000), (false, 40)] {
            let records: Vec<Record> = (0..4_u32)
                .map(|place| {
                    let uuid = asked[order / 3_usize.pow(place) % 3];
                    (uuid, b"type".to_vec(), vec![b'a' + place as u8; len])
                })
                .collect();
            let bytes = segment(&Key::DEFAULT, &records, trailer);
            let (walked, _) = scan(source(&bytes), &lenient()).unwrap();
            let given = |found: &Plain| walked.contains(found);
            let is_alone = |found: &Plain| {
                let is_it = |record: &Record| (record.0, &record.2) == (found.uuid, &found.value);
                let place = records.iter().position(is_it).unwrap();
                place == 0 || records[place - 1].0 < found.uuid
            };
            for how in [[false, false], [false, true], [true, false]] {
                let look_up = |uuids: &[[u8; 16]]| {
                    let lookup = dyn_lookup(&bytes, how, &lenient());
                    plain(&lookup.get(&ids(uuids)).unwrap())
                };
                let together = look_up(&asked);
                for (uuid, found) in asked.iter().zip(together) {
                    let expected = walked.iter().find(|record| record.uuid == *uuid);
                    for found in [found, look_up(&[*uuid]).remove(0)] {
                        let is_right = match &found {
                            Some(found) => given(found) || trailer && is_alone(found),
                            None => expected.is_none(),
                        };
                        assert!(is_right, "order {order}, {len}, {how:?}");
                    }
                }
            }
        }
    }
}

/// The last message's checksum matches, and its length covers the first checksum. The data ends before the
/// checksums.
#[test]
fn a_message_that_reaches_into_the_checksums_is_not_there() {
    let key = Key::DEFAULT;
    for count in 2..6_usize {
        let (records, mut bytes) = many(count as u64, true);
        let index = 24 * (count + 1);
        let checksums = bytes.len() - 32 - 8 * count;
        let last = 24 * (count - 1);
        let start = u64::from_be_bytes(*bytes[last + 16..].first_chunk().unwrap()) as usize;
        let value_len = start + 1 + "type".len() + 3;
        for longer in [1, 8] {
            bytes[value_len] = 64 + longer as u8;
            let hashed = [&records[count - 1].0, &bytes[start..checksums + longer]].concat();
            let at = checksums + 8 * (count - 1);
            bytes[at..at + 8].copy_from_slice(&hash(&key, &hashed).to_be_bytes());
            let indexed = [&bytes[..index], &bytes[checksums..at + 8]].concat();
            bytes[at + 24..at + 32].copy_from_slice(&hash(&key, &indexed).to_be_bytes());
            let uuids: Vec<_> = records.iter().map(|record| record.0).collect();
            for windowed in [false, true] {
                let of = |bytes: &Vec<u8>| -> Arc<dyn Source> {
                    if windowed {
                        Arc::new(Windowed(bytes.clone()))
                    } else {
                        source(bytes)
                    }
                };
                let (found, ledger) = scan(of(&bytes), &lenient()).unwrap();
                assert_eq!(found.len(), count - 1, "{longer}, {ledger:?}");
                let causes: Vec<_> = ledger.iter().filter_map(|span| span.cause).collect();
                assert!(causes.contains(&Cause::LengthOutOfBounds), "{causes:?}");
                let found = get(of(&bytes), &lenient(), &uuids).unwrap();
                let is_there: Vec<_> = found.iter().map(Option::is_some).collect();
                assert!(!is_there[count - 1] && is_there[..count - 1].iter().all(|is| *is));
            }
        }
    }
}

/// Without a trailer a message is confirmed by where the next entry's begins. The last one is confirmed only by
/// the end of the data.
#[test]
fn nothing_after_the_last_entry_confirms_its_message() {
    let (_, bytes) = many(3, false);
    let entry = |number: usize| {
        let mut entry = bytes[24 * number..24 * (number + 1)].to_vec();
        let offset = u64::from_be_bytes(*entry[16..].first_chunk().unwrap());
        entry[16..].copy_from_slice(&(offset - 24).to_be_bytes());
        entry
    };
    // The third message has no entry.
    let short = [entry(0), entry(1), vec![0; 24], bytes[24 * 4..].to_vec()].concat();
    let (found, ledger) = scan(source(&short), &lenient()).unwrap();
    assert_eq!(found.len(), 1, "{ledger:?}");
    let (found, _) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(found.len(), 3);
}

/// Without a trailer, an entry's offset leads into the message before it, to bytes that look like a message which
/// ends where the third begins. The scan finds the true one after the first, and so does a look-up.
#[test]
fn a_message_within_another_is_not_found_in_its_place() {
    let key = Key::DEFAULT;
    let with = |value: Vec<u8>| {
        let record = |tick, value| (uuid(tick), b"type".to_vec(), value);
        let records = [
            record(1, value),
            record(2, vec![2; 30]),
            record(3, vec![3; 30]),
        ];
        (
            segment(&key, &records, false),
            records.map(|record| record.2),
        )
    };
    let offset = |bytes: &[u8], number: usize| {
        u64::from_be_bytes(*bytes[24 * number + 16..].first_chunk().unwrap())
    };
    let (sound, _) = with(vec![1; 60]);
    // Within the first message's value: an empty type, and a value up to the third message.
    let within = offset(&sound, 0) + 9 + 10;
    let len = u32::try_from(offset(&sound, 2) - within - 5).unwrap();
    let nested = [&[1; 10][..], &[0], &len.to_be_bytes(), &[1; 45]].concat();
    let (mut bytes, values) = with(nested);
    bytes[24 + 16..48].copy_from_slice(&within.to_be_bytes());
    let asked = [1, 2, 3].map(uuid);
    let (walked, _) = scan(source(&bytes), &lenient()).unwrap();
    assert!(walked.iter().map(|record| &record.value).eq(&values));
    for how in [[false, false], [false, true], [true, false]] {
        for uuids in [&asked[..], &asked[1..2]] {
            let found = plain(
                &dyn_lookup(&bytes, how, &lenient())
                    .get(&ids(uuids))
                    .unwrap(),
            );
            for (uuid, found) in uuids.iter().zip(found) {
                let expected = walked.iter().find(|record| record.uuid == *uuid);
                assert_eq!(found.as_ref(), expected, "{how:?}");
            }
        }
    }
}

fn dyn_lookup(bytes: &[u8], [windowed, table]: [bool; 2], options: &Options) -> Box<dyn Lookup> {
    let source = if windowed {
        Arc::new(Windowed(bytes.to_vec()))
    } else {
        source(bytes)
    };
    let options = options
        .clone()
        .set("lookup_table_bytes", if table { 16 << 20 } else { 0 });
    let lookup = lookup(source, &options).unwrap();
    lookup.prepare().unwrap();
    lookup
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_table_of_bursts_finds_what_searching_all_finds(
        sizes in prop::collection::vec((0..700_u16, 0..4_u8, 0..48_u8), 1..8),
        allowed in prop_oneof![Just(16 << 20), 16..20_000_usize],
        windowed: bool,
    ) {
        let records = bursts(&sizes);
        let bytes = segment(&Key::DEFAULT, &records, true);
        let source = || if windowed { Arc::new(Windowed(bytes.clone())) } else { source(&bytes) };
        let own = lookup(source(), &strict().set("lookup_table_bytes", allowed)).unwrap();
        own.prepare().unwrap();
        let mut asked: Vec<_> = records.iter().map(|record| record.0).collect();
        let beside = |step: fn(u128) -> u128| asked.iter().map(move |uuid| step(u128::from_be_bytes(*uuid)).to_be_bytes());
        let others: Vec<_> = beside(|uuid| uuid + 1).chain(beside(|uuid| uuid - 1)).chain(beside(|uuid| uuid + (1 << 64))).collect();
        asked.extend(others);
        for some in asked.chunks(41) {
            let places = own.get(&ids(some)).unwrap().places;
            for (uuid, place) in some.iter().zip(places) {
                let is_there = records.binary_search_by_key(uuid, |record| record.0).is_ok();
                prop_assert_eq!(place.is_some(), is_there);
            }
        }
        // One by one, where more is asked for ahead.
        for uuid in asked.iter().step_by(97) {
            let is_there = records.binary_search_by_key(uuid, |record| record.0).is_ok();
            prop_assert_eq!(own.get(&ids(&[*uuid])).unwrap().places[0].is_some(), is_there);
        }
    }
}

proptest! {
    #[test]
    fn look_ups_agree_with_the_walk((records, bytes) in damaged(), how: [bool; 2], pick: prop::sample::Index) {
        let (walked, ledger) = scan(source(&bytes), &lenient()).unwrap();
        let is_sound = ledger.iter().all(|span| span.cause.is_none());
        let mut asked: Vec<_> = records.iter().map(|record| record.0).collect();
        asked.extend(walked.iter().map(|record| record.uuid));
        asked.extend(records.iter().map(|record| after(record.0)));
        // One at a time, so that what one needs to be proven does not help the next.
        for uuid in &asked {
            let expected = walked.iter().find(|record| record.uuid == *uuid);
            let found = plain(&dyn_lookup(&bytes, how, &lenient()).get(&ids(&[*uuid])).unwrap());
            prop_assert_eq!(found[0].as_ref(), expected);
            match dyn_lookup(&bytes, how, &strict()).get(&ids(&[*uuid])) {
                Ok(hits) => {
                    let found = plain(&hits);
                    prop_assert_eq!(found[0].as_ref(), expected);
                }
                Err(Error::Damage(_)) => prop_assert!(!is_sound),
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
        }
        let together = plain(&dyn_lookup(&bytes, how, &lenient()).get(&ids(&asked)).unwrap());
        for (uuid, found) in asked.iter().zip(&together) {
            prop_assert_eq!(found.as_ref(), walked.iter().find(|record| record.uuid == *uuid));
        }
        let bound = |index: usize| asked.get(index).copied();
        let (since, until) = (bound(pick.index(asked.len() + 1)), bound(pick.index(2 * asked.len() + 1)));
        for wanted in [between(since, until), between(None, until), between(since, None)] {
            let (expected, _) = scan(source(&bytes), &lenient().filter(wanted.clone())).unwrap();
            let source: Arc<dyn Source> = Arc::new(Windowed(bytes.clone()));
            prop_assert_eq!(range(source, &lenient().window_bytes(50), &wanted).unwrap(), expected);
        }
    }
}
