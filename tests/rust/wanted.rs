//! Records of the types, times and sizes that are asked for: the same ones as a scan of all has.

use std::sync::Arc;

use crate::common::{self, Plain, Windowed, scan, sealed, source, uuid};
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Filter, Options, Start, Step, active, open};

/// Types that begin alike, an empty one, the longest there is, and some that no record has.
fn types() -> Vec<Vec<u8>> {
    vec![
        b"order".to_vec(),
        b"order.created".to_vec(),
        Vec::new(),
        vec![b't'; 255],
        b"order.deleted".to_vec(),
        vec![b't'; 254],
    ]
}

/// Records of the first four types, values of many lengths: of several hash groups, and longer than small windows.
fn records() -> Vec<sealed::Record> {
    let types = types();
    let of = |number: u64| {
        let place = usize::try_from(number * number % 7 % 4).unwrap();
        let len = usize::try_from(number * 37 % 500).unwrap();
        (uuid(1000 + number), types[place].clone(), vec![b'v'; len])
    };
    (0..700).map(of).collect()
}

fn active_segment(records: &[sealed::Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (uuid, type_, value) in records {
        active::encode(&mut bytes, &Key::DEFAULT, uuid, type_, value).unwrap();
    }
    bytes
}

/// Scans for every choice of types, and compares with a scan for all.
fn assert_chosen(bytes: &[u8], options: &Options) {
    let (all, ledger) = scan(source(bytes), options).unwrap();
    let types = types();
    for choice in 0..1_usize << types.len() {
        let mut chosen: Vec<_> = (0..types.len())
            .filter(|place| choice >> place & 1 == 1)
            .map(|place| types[place].clone())
            .collect();
        let expected: Vec<Plain> = all
            .iter()
            .filter(|record| chosen.contains(&record.type_))
            .cloned()
            .collect();
        chosen.reverse();
        let wanted = Filter::default().among("type", chosen);
        for window_bytes in [300, 4096, 1 << 20] {
            let options = options
                .clone()
                .filter(wanted.clone())
                .window_bytes(window_bytes);
            let windowed = Arc::new(Windowed(bytes.to_vec()));
            let (records, spans) = scan(windowed, &options).unwrap();
            assert!(records == expected, "{:?}, {window_bytes}", options.filter);
            // What contradicts itself is not read.
            if choice > 0 {
                assert_eq!(spans, ledger, "{:?}, {window_bytes}", options.filter);
            }
        }
    }
}

#[test]
fn active_records() {
    let mut bytes = active_segment(&records());
    assert_chosen(&bytes, &common::lenient());
    let len = bytes.len();
    for place in [len / 9, len / 2, len - 3] {
        bytes[place] ^= 1;
    }
    assert_chosen(&bytes, &common::lenient());
}

#[test]
fn sealed_records() {
    let records = records();
    let mut bytes = sealed::segment(&Key::DEFAULT, &records, true);
    assert_chosen(&bytes, &sealed::lenient());
    let data = 24 * (records.len() + 1);
    let len = bytes.len() - data;
    for place in [data + len / 9, data + len / 2] {
        bytes[place] ^= 1;
    }
    assert_chosen(&bytes, &sealed::lenient());
}

/// A record that is too long to be read before it is verified is emitted only if its type matches, and read for
/// that.
#[test]
fn a_large_active_record() {
    let large = vec![b'v'; 9 << 20];
    let record = |tick, type_: &[u8], value: &[u8]| (uuid(tick), type_.to_vec(), value.to_vec());
    let bytes = active_segment(&[
        record(1, b"order", b"short"),
        record(2, b"order.created", &large),
        record(3, b"order", b"short"),
    ]);
    for (type_, expected) in [("order", vec![1, 3]), ("order.created", vec![2])] {
        let options = common::lenient()
            .window_bytes(1 << 16)
            .filter(Filter::default().among("type", [type_]));
        let counting = common::counting::Counting::new(bytes.clone());
        let (records, ledger) = scan(counting.clone(), &options).unwrap();
        let found: Vec<_> = records.iter().map(|record| record.uuid).collect();
        assert_eq!(
            found,
            expected.iter().map(|tick| uuid(*tick)).collect::<Vec<_>>()
        );
        common::assert_covers(&ledger, bytes.len());
        // Once to verify it, once more to emit it.
        let (read, _) = counting.take();
        let times = if type_ == "order" { 1 } else { 2 };
        let len = bytes.len() as u64;
        assert_eq!((read + len / 2) / len, times, "{read} bytes of {len}");
    }
}

/// Bounds by UUID and by time, anywhere in a segment of several hash groups.
#[test]
fn records_between_bounds() {
    let records = records();
    let active = active_segment(&records);
    let sealed = sealed::segment(&Key::DEFAULT, &records, true);
    let plain = sealed::segment(&Key::DEFAULT, &records, false);
    for (bytes, options) in [
        (&active, common::lenient()),
        (&sealed, sealed::lenient()),
        (&plain, sealed::lenient()),
    ] {
        let (all, _) = scan(source(bytes), &options).unwrap();
        assert_eq!(all.len(), records.len());
        for (since, until) in [
            (0, 1),
            (0, 350),
            (1, 350),
            (349, 351),
            (350, 700),
            (350, 701),
            (699, 700),
            (699, 900),
            (700, 900),
            (3, 3),
        ] {
            let bound = |number| uuid(1000 + number as u64);
            let from = Filter::default().at_least("uuid", bound(since));
            let to = Filter::default().below("uuid", bound(until));
            let between = from.clone().below("uuid", bound(until));
            for (wanted, range) in [(from, since..700), (to, 0..until), (between, since..until)] {
                let expected = &all[range.start.min(700)..range.end.min(700)];
                for window_bytes in [300, 1 << 20] {
                    let options = options
                        .clone()
                        .filter(wanted.clone())
                        .window_bytes(window_bytes);
                    let windowed = Arc::new(Windowed(bytes.clone()));
                    let (records, _) = scan(windowed, &options).unwrap();
                    assert!(records == expected, "{range:?}, {window_bytes}");
                }
            }
        }
    }
}

/// A record is refused if it is too large to emit, whatever is around it. The records before it come first.
#[test]
fn a_record_that_is_too_large_for_the_reader() {
    let record = |tick: u64, len| (uuid(tick), b"type".to_vec(), vec![b'v'; len]);
    let records: Vec<_> = (0..40)
        .map(|tick| record(tick, if tick == 30 { 100 } else { 10 }))
        .collect();
    // UUID, lengths and checksum; in a sealed segment UUID and checksum are elsewhere.
    for (bytes, options, total) in [
        (active_segment(&records), common::lenient(), 29 + 104),
        (
            sealed::segment(&Key::DEFAULT, &records, true),
            sealed::lenient(),
            5 + 104,
        ),
        (
            sealed::segment(&Key::DEFAULT, &records, false),
            sealed::lenient(),
            5 + 104,
        ),
    ] {
        for window_bytes in [300, 1 << 20] {
            for (record_bytes, values, is_refused) in [
                (total - 1, true, true),
                (total, true, false),
                (total + 1, true, false),
                (total - 1, false, false),
            ] {
                let options = options
                    .clone()
                    .record_bytes(record_bytes)
                    .values(values)
                    .window_bytes(window_bytes);
                let windowed = Arc::new(Windowed(bytes.clone()));
                let mut walk = open(windowed, &options, Start::Beginning).unwrap();
                let mut records = Vec::new();
                let last = loop {
                    match walk.step() {
                        Ok(Step::More) => common::collect(&*walk, &mut records),
                        last => break last,
                    }
                };
                match last {
                    Err(Error::Limit { needed, limit, .. }) => {
                        assert!(is_refused, "{record_bytes}");
                        assert_eq!((needed, limit), (total, record_bytes));
                        assert_eq!(records.len(), 30);
                    }
                    Ok(Step::Done) => assert!(!is_refused && records.len() == 40),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}
