//! Oplogs with many keys: references to them resolve.

use std::fs;
use std::sync::Arc;

use crate::common::Windowed;
use crate::messages::{Plain, framed, lenient, scan, source, uint};
use seglake::Error;
use seglake::format::oplog::Writer;
use seglake::format::{Dialect, IfExists, Start, Step, Value, WriteOptions, Writer as _, open};
use seglake::source::Source;

const CLOCK: usize = 4;
const MESSAGES: u64 = 6;
const KEYS: u64 = 50;

fn key(message: u64, place: u64) -> Vec<u8> {
    [message, place, !message, !place]
        .map(u64::to_be_bytes)
        .concat()
}

/// A message that refers to these keys, each a message's number and an index in it, and declares this many.
fn message(number: u64, references: &[(u64, u64)], keys: u64) -> Vec<u8> {
    let mut bytes = b"\0\x01".to_vec();
    bytes.extend(uint(references.len() as u64));
    for (message, place) in references {
        bytes.extend([uint(*message), uint(*place), uint(7)].concat());
    }
    bytes.extend_from_slice(b"\0\0\x01v");
    bytes.extend(uint(keys));
    bytes.extend((0..keys).flat_map(|place| key(number, place)));
    framed(&bytes)
}

/// What the later messages refer to.
fn references(number: u64) -> Vec<(u64, u64)> {
    let earlier = [0, number * 7 % MESSAGES, MESSAGES - 1];
    let mut references = earlier
        .map(|message| (message, number * 13 % KEYS))
        .to_vec();
    references.push((number, 0));
    references
}

#[test]
fn references_to_any_of_many_keys_are_resolved() {
    let all = MESSAGES + 50;
    let mut bytes: Vec<u8> = (0..MESSAGES)
        .flat_map(|number| message(number, &[], KEYS))
        .collect();
    bytes.extend((MESSAGES..all).flat_map(|number| message(number, &references(number), 1)));
    // Here a key that is not there.
    bytes.extend(message(all, &[(3, KEYS - 1), (3, KEYS), (all, 1)], 1));
    for source in [
        Arc::new(Windowed(bytes.clone())) as Arc<dyn Source>,
        source(&bytes),
    ] {
        let options = lenient(Dialect::Draft11).window_bytes(1 << 16);
        let mut walk = open(source, &options, Start::Beginning).unwrap();
        let mut number = 0;
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            for row in 0..rows.len() {
                let Value::List(entries) = rows.field(row, CLOCK) else {
                    panic!("columns moved")
                };
                let found: Vec<_> = entries
                    .iter()
                    .map(|entry| match entry {
                        Value::Struct(fields) => match &fields[0] {
                            Value::Binary(key) => Some(key.to_vec()),
                            _ => None,
                        },
                        other => panic!("{other:?}"),
                    })
                    .collect();
                let expected: Vec<_> = match number {
                    ..MESSAGES => Vec::new(),
                    number if number < all => references(number)
                        .into_iter()
                        .map(|(message, place)| Some(key(message, place)))
                        .collect(),
                    _ => vec![Some(key(3, KEYS - 1)), None, None],
                };
                assert!(found == expected, "message {number}");
                number += 1;
            }
        }
        assert_eq!(number, all + 1);
    }
}

#[test]
fn more_keys_than_a_reader_keeps_are_refused_by_writers_and_readers() {
    // They leave 832 bytes of 16 MiB, and a message with one key takes 48.
    let full: Vec<u8> = (0..524)
        .flat_map(|number| message(number, &[], 1000))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.oplog");
    fs::write(&path, full).unwrap();
    let options = WriteOptions::default().if_exists(IfExists::Append);
    let mut writer = Writer::open(&path, &options.dialect(Dialect::Draft11)).unwrap();
    let with_key = |number: u8| Plain {
        checkpointer: 1,
        keys: vec![number],
        ..Plain::default()
    };
    for number in 0..17 {
        let plain = with_key(number);
        writer.append(&plain.fields(Dialect::Draft11)).unwrap();
    }
    let refused = writer.append(&with_key(17).fields(Dialect::Draft11));
    let is_told = |error: &Error| error.to_string().contains("found more at message 541");
    assert!(matches!(&refused, Err(error @ Error::Usage(_)) if is_told(error)));
    writer.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let options = lenient(Dialect::Draft11);
    assert_eq!(scan(source(&bytes), &options).unwrap().0.len(), 541);
    // As another program wrote it.
    bytes.extend(message(541, &[], 1));
    let refused = scan(source(&bytes), &options);
    assert!(matches!(&refused, Err(error @ Error::Usage(_)) if is_told(error)));
}
