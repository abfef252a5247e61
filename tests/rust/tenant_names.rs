//! Tenant IDs that are too long to keep in memory: compared in the file, piece by piece.

use std::sync::Arc;

use crate::common::chunked::noise;
use crate::common::counting::Counting;
use crate::common::{Windowed, source};
use crate::tenant_segments::{encode, lenient, scan, strict_error};
use seglake::format::{Filter, RecordId, Start, Step, Value, lookup, open};
use seglake::ledger::Cause;
use seglake::source::Source;

const PIECE_BYTES: usize = 64 << 10;

/// IDs that differ in one of the pieces or in how long they are, in ascending order.
fn names() -> Vec<Vec<u8>> {
    let base = noise(1, 3 * PIECE_BYTES);
    let mut names = vec![b"short".to_vec()];
    for len in [
        PIECE_BYTES,
        PIECE_BYTES + 1,
        2 * PIECE_BYTES,
        2 * PIECE_BYTES + 9,
    ] {
        names.push(base[..len].to_vec());
        for place in [0, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES, len - 1] {
            if place < len {
                let mut name = base[..len].to_vec();
                name[place] ^= 1;
                names.push(name);
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

fn sources(bytes: &[u8]) -> [Arc<dyn Source>; 2] {
    [source(bytes), Arc::new(Windowed(bytes.to_vec()))]
}

#[test]
fn long_names_are_in_order() {
    let messages: Vec<_> = names()
        .into_iter()
        .map(|name| (7, name, b"value".to_vec()))
        .collect();
    for version in [1, 2] {
        let segment = encode(version, &messages);
        for source in sources(&segment.bytes) {
            assert!(strict_error(source.clone()).is_none());
            let (records, _) = scan(source, &lenient()).unwrap();
            assert!(records == segment.messages);
        }
    }
}

/// In version 1 the order alone shows that blocks changed places, or that there are two of one tenant.
#[test]
fn long_names_out_of_order_are_damage() {
    let names = names();
    for pair in names
        .windows(2)
        .filter(|pair| pair[0].len() == pair[1].len())
    {
        let messages = [&pair[0], &pair[1]].map(|name| (7, name.clone(), b"value".to_vec()));
        let segment = encode(1, &messages);
        let [first, second] = [0, 1].map(|place| {
            let end = usize::try_from(segment.messages[place].position).unwrap();
            end - pair[0].len()..end
        });
        for (in_front, behind) in [(&pair[1], &pair[0]), (&pair[0], &pair[0])] {
            let mut bytes = segment.bytes.clone();
            bytes[first.clone()].copy_from_slice(in_front);
            bytes[second.clone()].copy_from_slice(behind);
            for source in sources(&bytes) {
                let damage = strict_error(source).map(|damage| damage.cause);
                assert_eq!(
                    damage,
                    Some(Cause::OutOfOrder),
                    "of {} bytes",
                    pair[0].len()
                );
            }
        }
    }
}

/// A long ID is found by all of its bytes.
#[test]
fn long_names_are_filtered_and_looked_up() {
    let names = names();
    let messages: Vec<_> = (0_u8..)
        .zip(&names)
        .map(|(number, name)| (7, name.clone(), vec![number; 3]))
        .collect();
    for version in [1, 2] {
        let segment = encode(version, &messages);
        for (place, name) in names.iter().enumerate() {
            // The one before it is absent.
            let less: Vec<_> = [&messages[..place], &messages[place + 1..]].concat();
            let without = encode(version, &less);
            let wanted = Filter::default().among("tenant", vec![name.clone()]);
            let options = lenient().filter(wanted);
            for [with, without] in sources(&segment.bytes)
                .into_iter()
                .zip(sources(&without.bytes))
                .map(<[_; 2]>::from)
            {
                let (records, _) = scan(with.clone(), &options).unwrap();
                assert!(records == [segment.messages[place].clone()]);
                let (records, _) = scan(without.clone(), &options).unwrap();
                assert!(records.is_empty());
                let id = RecordId::new([7.into(), name.clone().into(), 0.into()]);
                for (source, expected) in [(with, true), (without, false)] {
                    let hits = lookup(source, &lenient()).unwrap();
                    let hits = hits.get(std::slice::from_ref(&id)).unwrap();
                    assert_eq!(hits.places[0].is_some(), expected);
                }
            }
        }
    }
}

#[test]
fn without_values_a_name_longer_than_32_mib_is_null() {
    let name = noise(3, (32 << 20) + 1);
    let segment = encode(2, &[(7, name.clone(), b"value".to_vec())]);
    for values in [true, false] {
        let options = lenient().values(values).strict(true);
        let mut walk = open(source(&segment.bytes), &options, Start::Beginning).unwrap();
        let mut seen = 0;
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            for row in 0..rows.len() {
                let expected = if values {
                    Value::Text(&name)
                } else {
                    Value::Null
                };
                assert!(rows.field(row, 1) == expected, "with values: {values}");
                seen += 1;
            }
        }
        assert_eq!(seen, 1);
    }
}

/// Its length in the table says that it is another one: nothing of it is read to compare it.
#[test]
fn a_name_of_another_length_is_not_read_by_a_filter() {
    let len = 10 * PIECE_BYTES;
    let messages = [b"a".to_vec(), noise(1, len)].map(|name| (7, name, b"value".to_vec()));
    let segment = encode(2, &messages);
    let counting = Counting::new(segment.bytes);
    let filter = Filter::default().among("tenant", ["a"]);
    let options = lenient().prune(true).filter(filter);
    let (records, _) = scan(counting.clone(), &options).unwrap();
    assert_eq!(records, segment.messages[..1]);
    // The table, which has the name, is read for its checksum.
    let (read, _) = counting.take();
    assert!(read < len as u64 * 3 / 2, "{read}");
}
