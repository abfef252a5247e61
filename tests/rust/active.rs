//! The active format under fire: round trips, every truncation, every flipped bit, hostile lengths, carries, limits.

use std::sync::Arc;

use crate::common::counting::Counting;
use crate::common::{
    Plain, Windowed, assert_covers, bits, collect, lenient, scan, segment, source, strict_error,
    uuid,
};
use proptest::prelude::*;
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Eof, Filter, Options, RecordId, Start, Step, active, lookup, open};
use seglake::ledger::{Cause, Kind};
use seglake::source::{BytesSource, Source};

type Message = (Vec<u8>, Vec<u8>);

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let message = (
        prop::collection::vec(any::<u8>(), 0..20),
        prop::collection::vec(any::<u8>(), 0..300),
    );
    prop::collection::vec(message, 0..40)
}

fn contents(records: &[Plain]) -> Vec<Message> {
    records
        .iter()
        .map(|record| (record.type_.clone(), record.value.clone()))
        .collect()
}

proptest! {
    #[test]
    fn records_round_trip(messages in messages(), key: [u8; 32], unused in 0usize..100) {
        let key = Key::new(&key);
        let mut bytes = segment(&key, &messages);
        let used = bytes.len() as u64;
        bytes.resize(bytes.len() + unused, 0);
        let (records, ledger) = scan(source(&bytes), &lenient().keys(vec![key]).strict(true)).unwrap();
        prop_assert_eq!(contents(&records), messages);
        assert_covers(&ledger, bytes.len());
        let rest = ledger.iter().find(|span| span.kind == Kind::Unused).map(|span| (span.start, span.end));
        prop_assert_eq!(rest, (unused > 0).then_some((used, bytes.len() as u64)));
    }

    #[test]
    fn whatever_the_bytes_windows_agree_and_the_ledger_covers(
        messages in messages(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1usize..40), 0..6),
        window_bytes in 1usize..3000,
    ) {
        let mut bytes = segment(&Key::DEFAULT, &messages);
        for (at, byte, len) in damage {
            if !bytes.is_empty() {
                let start = at.index(bytes.len());
                let end = bytes.len().min(start + len);
                bytes[start..end].fill(byte);
            }
        }
        let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_covers(&ledger, bytes.len());
        for record in &records {
            prop_assert!(messages.contains(&(record.type_.clone(), record.value.clone())), "an invented record");
        }
        let windowed = scan(Arc::new(Windowed(bytes.clone())), &lenient().window_bytes(window_bytes)).unwrap();
        prop_assert_eq!(&windowed.0, &records);
        prop_assert_eq!(&windowed.1, &ledger);
        let first = ledger.iter().find(|span| span.is_damage()).map(|span| (span.start, span.cause));
        let raised = strict_error(source(&bytes), &lenient()).map(|damage| (damage.offset, Some(damage.cause)));
        prop_assert_eq!(raised, first);
    }

    #[test]
    fn a_carry_goes_on_where_it_was_taken(messages in messages(), flip: prop::sample::Index, stop in 0usize..20) {
        let mut bytes = segment(&Key::DEFAULT, &messages);
        if !bytes.is_empty() {
            let at = flip.index(bytes.len());
            bytes[at] ^= 0x10;
        }
        let whole = scan(source(&bytes), &lenient()).unwrap();
        // Small windows make many steps.
        let options = lenient().window_bytes(64);
        let (mut records, mut ledger) = (Vec::new(), Vec::new());
        let mut walk = open(Arc::new(Windowed(bytes.clone())), &options, Start::Beginning).unwrap();
        let mut steps = 0;
        loop {
            if steps == stop {
                let carry = walk.carry().unwrap();
                walk = open(Arc::new(Windowed(bytes.clone())), &options, Start::Carry(&carry)).unwrap();
            }
            steps += 1;
            if walk.step().unwrap() != Step::More {
                break;
            }
            collect(&*walk, &mut records);
            ledger.extend_from_slice(walk.spans());
        }
        prop_assert_eq!((records, ledger), whole);
    }
}

/// Records of many sizes, together about `len` bytes.
fn varied(len: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends, mut tick) = (Vec::new(), vec![0], 0x1000);
    while bytes.len() < len {
        tick += 1;
        let value: Vec<u8> = (0..tick * 37 % 400)
            .map(|byte| u8::try_from(byte % 251).unwrap())
            .collect();
        active::encode(
            &mut bytes,
            &Key::DEFAULT,
            &uuid(tick),
            b"order.created",
            &value,
        )
        .unwrap();
        ends.push(bytes.len());
    }
    (bytes, ends)
}

#[test]
fn every_truncation_gives_exactly_the_records_that_fit_before_it() {
    let (bytes, ends) = varied(16 << 10);
    let (all, _) = scan(source(&bytes), &lenient()).unwrap();
    for len in 0..=bytes.len() {
        let (records, ledger) = scan(source(&bytes[..len]), &lenient()).unwrap();
        let whole = ends.iter().filter(|end| **end <= len).count() - 1;
        assert_eq!(records, all[..whole], "cut to {len} bytes");
        assert_covers(&ledger, len);
        let damaged = ledger.iter().any(|span| span.is_damage());
        assert_eq!(
            damaged,
            !ends.contains(&len),
            "cut to {len} bytes: {:?}",
            ledger.last()
        );
    }
}

/// 131,072 scans of 16 KiB: some seconds.
#[test]
fn every_flipped_bit_costs_at_most_its_own_record() {
    let (mut bytes, ends) = varied(16 << 10);
    let (all, _) = scan(source(&bytes), &lenient()).unwrap();
    for bit in bits(bytes.len()) {
        let at = bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        let hit = ends.partition_point(|end| *end <= at) - 1;
        let mut walk = open(
            Arc::new(BytesSource::new(bytes.as_slice().to_vec())),
            &lenient(),
            Start::Beginning,
        )
        .unwrap();
        let mut records = Vec::with_capacity(all.len());
        while walk.step().unwrap() == Step::More {
            collect(&*walk, &mut records);
        }
        let expected = all
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != hit)
            .map(|(_, record)| record);
        assert!(records.iter().eq(expected), "bit {bit}, record {hit}");
        bytes[at] ^= 1 << (bit % 8);
    }
}

#[test]
fn several_keys_settle_on_the_first_that_verifies() {
    let (first, second) = (Key::new(&[1; 32]), Key::new(&[2; 32]));
    let messages = [("a", "1"), ("b", "2"), ("c", "3")];
    let mut bytes = segment(&second, &messages);
    let options = lenient().keys(vec![first, second]);
    assert_eq!(scan(source(&bytes), &options).unwrap().0.len(), 3);
    bytes[22] ^= 1; // the first value
    let (records, ledger) = scan(source(&bytes), &options).unwrap();
    assert_eq!(
        (records.len(), ledger[0].cause),
        (2, Some(Cause::ChecksumMismatch))
    );
    assert!(!strict_error(source(&bytes), &options).unwrap().wrong_key);
    assert!(
        strict_error(source(&bytes), &lenient().keys(vec![first, Key::DEFAULT]))
            .unwrap()
            .wrong_key
    );
}

#[test]
fn a_wrong_key_is_distinguished_from_an_unfinished_write() {
    let other = Key::new(&[1; 32]);
    let suspects = |bytes: &[u8]| strict_error(source(bytes), &lenient()).unwrap().wrong_key;
    let many = segment(&other, &[("type", "value"); 10]);
    assert!(suspects(&many));
    assert!(
        suspects(&many[..many.len() - 3]),
        "a torn tail behind many records"
    );
    // The first write into a preallocated file, cut off: its checksum is still zero.
    let mut torn = segment(&Key::DEFAULT, &[("type", "value")]);
    let len = torn.len();
    torn[len - 12..].fill(0);
    torn.resize(4096, 0);
    assert!(!suspects(&torn));
    let mut random = vec![0xa5; 100];
    random[..16].copy_from_slice(&uuid(1));
    assert!(!suspects(&random));
}

#[test]
fn a_wrong_key_stays_suspected_in_walks_that_go_on() {
    let mut bytes = segment(&Key::new(&[1; 32]), &[("type", "value"); 10]);
    bytes.resize(bytes.len() + 100, 0);
    let source = source(&bytes);
    let mut walk = open(source.clone(), &lenient(), Start::Beginning).unwrap();
    let mut steps = 0;
    while walk.step().unwrap() == Step::More {
        assert!(walk.suspects_key());
        let carry = walk.carry().unwrap();
        walk = open(source.clone(), &lenient(), Start::Carry(&carry)).unwrap();
        steps += 1;
    }
    assert!(steps > 1, "a walk that went on");
    assert!(walk.suspects_key());
}

/// After eight well-formed records without a verified checksum the key is probably wrong, whatever ends the file.
#[test]
fn eight_records_show_a_wrong_key() {
    let other = Key::new(&[1; 32]);
    let suspects = |bytes: &[u8]| strict_error(source(bytes), &lenient()).unwrap().wrong_key;
    for (records, expected) in [(7, false), (8, true), (9, true)] {
        let sound = segment(&other, &vec![("type", "value"); records]);
        let one = sound.len() / records;
        let next = segment(&other, &vec![("type", "value"); records + 1]).split_off(sound.len());
        let with = |end: &[u8]| [&sound, end].concat();
        // A record that is cut off, one without a checksum, one whose UUID is of another version or does not ascend.
        assert_eq!(suspects(&with(&next[..one - 3])), expected, "{records}");
        let mut unwritten = with(&next[..one - 8]);
        unwritten.resize(unwritten.len() + 8, 0);
        assert_eq!(suspects(&unwritten), expected, "{records}");
        let mut foreign = with(&next);
        foreign[sound.len() + 6] = 0x70;
        assert_eq!(suspects(&foreign), expected, "{records}");
        assert_eq!(suspects(&with(&sound[..one])), expected, "{records}");
        let last = &sound[sound.len() - one..];
        assert_eq!(suspects(&with(last)), expected, "{records}");
        assert!(suspects(&sound), "{records}: to the end of the file");
    }
}

/// A look-up ends at the first greater UUID, so it does not meet damage after that.
#[test]
fn a_miss_ends_after_the_next_uuid() {
    let mut bytes = Vec::new();
    for tick in [1000, 1002, 1004, 1006] {
        active::encode(&mut bytes, &Key::DEFAULT, &uuid(tick), b"t", b"value").unwrap();
    }
    let one = bytes.len() / 4;
    bytes[3 * one - 1] ^= 1;
    let options = lenient().strict(true);
    let get = |ticks: &[u64]| {
        let ids: Vec<_> = ticks
            .iter()
            .map(|tick| RecordId::from(uuid(*tick)))
            .collect();
        let hits = lookup(source(&bytes), &options)?.get(&ids)?;
        seglake::Result::Ok(hits.places.iter().map(Option::is_some).collect::<Vec<_>>())
    };
    assert_eq!(get(&[999]).unwrap(), [false]);
    assert_eq!(get(&[1001]).unwrap(), [false]);
    assert_eq!(
        get(&[1001, 1000, 1001, 1002]).unwrap(),
        [false, true, false, true]
    );
    assert!(matches!(get(&[1003]), Err(Error::Damage(_))));
    assert!(matches!(get(&[1001, 1003]), Err(Error::Damage(_))));
}

/// After 32 MiB hashed in vain, a long record is tried only if the bytes after it are plausible. The end of the file is plausible.
#[test]
fn a_long_record_at_the_very_end_is_found_after_much_hashing_in_vain() {
    let long = vec![0x55; 100_000];
    let mut bytes = segment(&Key::DEFAULT, &[("a", "1")]);
    let mut decoys = Vec::new();
    // Adjacent headers whose records reach over the next ones. No checksum matches.
    let body = vec![0x11; 900_000];
    active::encode(&mut decoys, &Key::DEFAULT, &uuid(5000), b"", &body).unwrap();
    let header = decoys[..40].to_vec();
    decoys[30] ^= 1;
    for place in 1..45 {
        decoys[place * 64..place * 64 + 40].copy_from_slice(&header);
    }
    bytes.extend_from_slice(&decoys);
    bytes.extend(vec![0x11; 64 * 45]); // so that the last of them fits
    let start = bytes.len();
    active::encode(&mut bytes, &Key::DEFAULT, &uuid(6000), b"t", &long).unwrap();
    assert_ne!(bytes.last(), Some(&0));
    for unused in [0, 1, 500] {
        let mut bytes = bytes.clone();
        bytes.resize(bytes.len() + unused, 0);
        let (records, _) = scan(source(&bytes), &lenient()).unwrap();
        let positions: Vec<_> = records.iter().map(|record| record.position).collect();
        assert_eq!(positions, [0, start as u64], "{unused}");
    }
}

#[test]
fn lookups_hit_only_verified_records() {
    let mut bytes = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let found = |bytes: &[u8], tick, strict| {
        let options = lenient().strict(strict);
        let hits = lookup(source(bytes), &options)?.get(&[RecordId::from(uuid(tick))])?;
        let mut value = None;
        hits.each(|found| value = found.map(|(rows, row)| rows.value(row).to_vec()));
        seglake::Result::Ok(value)
    };
    assert_eq!(found(&bytes, 1001, true).unwrap(), Some(b"2".to_vec()));
    assert_eq!(found(&bytes, 999, true).unwrap(), None);
    assert_eq!(found(&bytes, 1003, true).unwrap(), None);
    bytes[40] ^= 1; // the second record
    assert_eq!(found(&bytes, 1001, false).unwrap(), None);
    assert!(matches!(found(&bytes, 1001, true), Err(Error::Damage(_))));
    assert_eq!(
        found(&bytes, 1000, true).unwrap(),
        Some(b"1".to_vec()),
        "damage behind a hit is not looked at"
    );
}

#[test]
fn bounds_are_half_open_and_end_the_reading() {
    let bytes = segment(&Key::DEFAULT, &[("", "0"), ("", "1"), ("", "2"), ("", "3")]);
    let wanted = Filter::default()
        .at_least("uuid", uuid(1001))
        .below("uuid", uuid(1003));
    let (records, ledger) = scan(source(&bytes), &lenient().filter(wanted)).unwrap();
    assert_eq!(
        contents(&records),
        [(vec![], b"1".to_vec()), (vec![], b"2".to_vec())]
    );
    assert_eq!(ledger.len(), 3, "the record at the bound is not read");
}

#[test]
fn a_growing_file_is_waited_for() {
    let bytes = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2")]);
    let options = lenient().eof(Eof::Growing).strict(true);
    for (cut, preallocated) in [(40, 0), (40, 500), (31, 0), (31, 500), (0, 500), (0, 0)] {
        let mut partial = bytes[..cut].to_vec();
        partial.resize(cut + preallocated, 0);
        let mut walk = open(source(&partial), &options, Start::Beginning).unwrap();
        let mut records = Vec::new();
        let last = loop {
            match walk.step().unwrap() {
                Step::More => collect(&*walk, &mut records),
                last => break last,
            }
        };
        assert_eq!(last, Step::Wait, "{cut} bytes");
        let carry = walk.carry().unwrap();
        let mut walk = open(source(&bytes), &options, Start::Carry(&carry)).unwrap();
        while walk.step().unwrap() == Step::More {
            collect(&*walk, &mut records);
        }
        assert_eq!(
            contents(&records),
            [
                (b"a".to_vec(), b"1".to_vec()),
                (b"b".to_vec(), b"2".to_vec())
            ],
            "{cut} bytes"
        );
    }
    let mut damaged = bytes.clone();
    damaged[24] ^= 1;
    let mut walk = open(source(&damaged), &options, Start::Beginning).unwrap();
    assert!(
        matches!(walk.step(), Err(Error::Damage(_))),
        "damage with a good record behind it is no unfinished write"
    );
}

#[test]
fn a_sound_file_is_read_once() {
    let (bytes, _) = varied(300 << 10);
    let counting = Counting::new(bytes.clone());
    scan(counting.clone(), &lenient().window_bytes(10_000)).unwrap();
    assert_eq!(counting.take().0, bytes.len() as u64);
}

#[test]
fn records_larger_than_a_window_are_checked_in_pieces() {
    let large = vec![0x5a; 9 << 20];
    let mut bytes = segment(
        &Key::DEFAULT,
        &[
            ("small", b"1".as_slice()),
            ("large", &large),
            ("small", b"2"),
        ],
    );
    let sizes = |options: &Options| {
        scan(Arc::new(Windowed(bytes.clone())), options).map(|(records, _)| {
            records
                .iter()
                .map(|record| record.value.len())
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(sizes(&lenient()).unwrap(), [1, large.len(), 1]);
    assert_eq!(sizes(&lenient().values(false)).unwrap().len(), 3);
    let limited = sizes(&lenient().record_bytes(1 << 20));
    assert!(
        matches!(
            limited,
            Err(Error::Limit {
                option: "record_bytes",
                ..
            })
        ),
        "{limited:?}"
    );
    bytes[5 << 20] ^= 1;
    let (records, ledger) = scan(Arc::new(Windowed(bytes.clone())), &lenient()).unwrap();
    assert_eq!(
        (records.len(), ledger[1].cause),
        (2, Some(Cause::ChecksumMismatch))
    );
}

#[test]
fn an_interrupt_ends_the_reading() {
    let (bytes, _) = varied(1 << 10);
    let interrupt = Some(seglake::format::Interrupt::new(|| true));
    assert!(matches!(
        scan(source(&bytes), &lenient().interrupt(interrupt)),
        Err(Error::Interrupted)
    ));
}

#[test]
fn a_start_that_fits_no_file_is_refused() {
    let bytes = segment(&Key::DEFAULT, &[("a", "1")]);
    for start in [
        Start::Offset(bytes.len() as u64 + 1),
        Start::Carry(&seglake::format::Carry("{}".to_owned())),
    ] {
        assert!(matches!(
            open(source(&bytes), &lenient(), start),
            Err(Error::Usage(_))
        ));
    }
    assert!(matches!(
        open(source(&bytes), &lenient().keys(vec![]), Start::Beginning),
        Err(Error::Usage(_))
    ));
    assert!(matches!(
        open(source(b"neither"), &Options::default(), Start::Beginning),
        Err(Error::Format { .. })
    ));
}

/// Every other record claims, falsely, to reach to the end of a file of some MiB, so that looking at each costs all of it: what
/// is hashed in vain must stay within the budget, and the search must say where it gave up.
#[test]
fn hostile_lengths_stay_within_the_search_budget() {
    let (mut bytes, len, mut tick) = (Vec::new(), 1usize << 20, 1000);
    while bytes.len() < len {
        tick += 2;
        active::encode(&mut bytes, &Key::DEFAULT, &uuid(tick), b"", b"").unwrap();
        let claimed = u32::try_from(len.saturating_sub(bytes.len()))
            .unwrap()
            .saturating_sub(100);
        bytes.extend_from_slice(&uuid(tick + 1));
        bytes.push(0);
        bytes.extend_from_slice(&claimed.to_be_bytes());
        bytes.extend_from_slice(&[0xee; 8]);
    }
    let counting = Counting::new(bytes);
    let (records, ledger) = scan(counting.clone(), &lenient()).unwrap();
    assert_covers(&ledger, usize::try_from(counting.len()).unwrap());
    assert_eq!(ledger.last().unwrap().cause, Some(Cause::SearchLimit));
    assert!(records.len() > 100, "{} records", records.len());
    let budget = (256 << 20) + 2 * counting.len();
    let read = counting.take().0;
    assert!(
        read <= budget * 5 / 4,
        "{read} bytes read for a budget of {budget}"
    );
}
