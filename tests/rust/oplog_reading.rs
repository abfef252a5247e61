//! Ways of reading oplogs: by number, from a position or a carry, while they grow, strictly, without a name of the format.

use crate::messages;
use std::sync::Arc;

use crate::common::Windowed;
use crate::messages::{Plain, collect, file, framed, lenient, scan, source, varied};
use seglake::Error;
use seglake::format::{
    Dialect, Eof, Options, RecordId, RecordSet, Start, Step, detect, lookup, open, oplog,
};
use seglake::ledger::Cause;
use serde_json::Value as Json;

/// Messages of `draft` with these values.
fn plain(values: &[&[u8]]) -> Vec<u8> {
    let messages = values.iter().map(|value| Plain {
        checkpointer: 1,
        value: value.to_vec(),
        ..Plain::default()
    });
    file(Dialect::Draft, &messages.collect::<Vec<_>>())
}

fn values(records: &[Json]) -> Vec<&str> {
    let values = records.iter().map(|record| record[1]["value"].as_str());
    values.map(Option::unwrap).collect()
}

#[test]
fn messages_are_found_by_their_number() {
    let mut bytes = varied(Dialect::Draft11, 4 << 10);
    let (all, ledger) = scan(source(&bytes), &lenient(Dialect::Draft11)).unwrap();
    let found = |bytes: &[u8], ids: &[u64], strict| {
        let options = lenient(Dialect::Draft11).strict(strict).window_bytes(300);
        let ids: Vec<_> = ids.iter().copied().map(RecordId::from).collect();
        let hits = lookup(Arc::new(Windowed(bytes.to_vec())), &options)?.get(&ids)?;
        let mut found = Vec::new();
        hits.each(|hit| {
            found.push(hit.map(|(rows, row)| messages::named(rows, row, Dialect::Draft11)))
        });
        seglake::Result::Ok(found)
    };
    let last = all.len() as u64 - 1;
    let hits = found(&bytes, &[7, last, 0, 7, last + 1, u64::MAX], true).unwrap();
    let expected = [7, last, 0, 7].map(|seq| Some(all[usize::try_from(seq).unwrap()][1].clone()));
    assert_eq!(hits[..4], expected);
    assert_eq!(hits[4..], [None, None]);
    let hit = usize::try_from(ledger[5].start).unwrap();
    bytes[hit + 1] = 0xff; // the version of message 5
    assert!(matches!(found(&bytes, &[7], true), Err(Error::Damage(_))));
    let hits = found(&bytes, &[5, 7], false).unwrap();
    assert_eq!(hits[0], None);
    assert_eq!(
        hits[1].as_ref().unwrap()["seq"],
        7,
        "numbers are as if 5 were there"
    );
    let by_uuid = lookup(source(&bytes), &lenient(Dialect::Draft11)).unwrap();
    let refused = by_uuid.get(&[RecordId::from([0; 16])]);
    assert!(matches!(refused, Err(Error::Usage(_))));
}

#[test]
fn reading_on_from_a_position_knows_number_and_keys() {
    let bytes = varied(Dialect::Draft11, 4 << 10);
    let options = lenient(Dialect::Draft11).window_bytes(200).strict(true);
    let (all, ledger) = scan(source(&bytes), &options).unwrap();
    for seq in [0, 1, 9, all.len() - 1] {
        let start = ledger[seq].start;
        let mut walk = open(
            Arc::new(Windowed(bytes.clone())),
            &options,
            Start::Offset(start),
        )
        .unwrap();
        let (mut records, mut spans) = (Vec::new(), Vec::new());
        while walk.step().unwrap() == Step::More {
            collect(&*walk, Dialect::Draft11, &mut records);
            spans.extend_from_slice(walk.spans());
        }
        assert_eq!(
            (records.as_slice(), &spans[..]),
            (&all[seq..], &ledger[seq..])
        );
    }
    let len = bytes.len() as u64;
    for offset in [1, ledger[3].start + 1, len + 1, u64::MAX] {
        let refused = open(source(&bytes), &options, Start::Offset(offset));
        assert!(matches!(refused, Err(Error::Usage(_))), "{offset}");
    }
}

#[test]
fn what_is_before_the_start_is_neither_raised_nor_too_large() {
    let front = plain(&[b"one", &[b'2'; 100]]);
    let bad = framed(b"\0\x01\0\0\0\xfd\xff\xff");
    let bytes = [front.clone(), bad.clone(), plain(&[b"three", b"four"])].concat();
    let options = lenient(Dialect::Draft).strict(true).record_bytes(50);
    let start = (front.len() + bad.len()) as u64;
    let mut walk = open(source(&bytes), &options, Start::Offset(start)).unwrap();
    let mut records = Vec::new();
    while walk.step().unwrap() == Step::More {
        collect(&*walk, Dialect::Draft, &mut records);
    }
    assert_eq!(values(&records), ["7468726565", "666f7572"]);
    let whole = scan(source(&bytes), &options);
    assert!(matches!(whole, Err(Error::Limit { .. })), "{whole:?}");
}

#[test]
fn a_carry_that_fits_no_file_is_refused() {
    let state = |at: u64, keys: &str| {
        let own = format!(r#"{{"seq":0,"chain_end":0,"keys":{keys}}}"#);
        let json = format!(r#"{{"at":{at},"budget":0,"pending":null,"own":{own}}}"#);
        let carry = seglake::format::Carry(json);
        open(source(&[]), &lenient(Dialect::Draft), Start::Carry(&carry)).map(drop)
    };
    state(0, r#"{"owners":[],"keys":""}"#).unwrap();
    for refused in [
        state(1, r#"{"owners":[],"keys":""}"#),
        state(0, r#"{"owners":[[0,1]],"keys":""}"#),
        state(0, "null"),
    ] {
        assert!(matches!(refused, Err(Error::Usage(_))));
    }
}

#[test]
fn a_growing_file_is_waited_for() {
    let bytes = plain(&[b"one", b"two", b"three"]);
    let growing = |strict| lenient(Dialect::Draft).eof(Eof::Growing).strict(strict);
    let read = |bytes: &[u8], start: Start<'_>, strict| {
        let mut walk = open(source(bytes), &growing(strict), start)?;
        let (mut records, mut ledger) = (Vec::new(), Vec::new());
        loop {
            match walk.step()? {
                Step::More => {
                    collect(&*walk, Dialect::Draft, &mut records);
                    ledger.extend_from_slice(walk.spans());
                }
                last => return seglake::Result::Ok((records, ledger, last, walk.carry().unwrap())),
            }
        }
    };
    let whole = scan(source(&bytes), &lenient(Dialect::Draft)).unwrap();
    for cut in 0..=bytes.len() {
        let (mut records, mut ledger, last, carry) =
            read(&bytes[..cut], Start::Beginning, true).unwrap();
        assert_eq!(last, Step::Wait, "{cut} bytes");
        let (more, spans, last, _) = read(&bytes, Start::Carry(&carry), true).unwrap();
        assert_eq!(last, Step::Wait);
        records.extend(more);
        ledger.extend(spans);
        assert_eq!((records, ledger), whole, "{cut} bytes");
    }
    // A corrupt message is reported only after the framing after it has proven itself.
    let mut damaged = bytes.clone();
    damaged[6] += 1; // the length of "one"
    let complete = scan(source(&damaged), &lenient(Dialect::Draft)).unwrap();
    assert_eq!(values(&complete.0), ["74776f", "7468726565"]);
    for cut in 0..=bytes.len() {
        let (mut records, mut ledger, _, carry) =
            read(&damaged[..cut], Start::Beginning, false).unwrap();
        let (more, spans, ..) = read(&damaged, Start::Carry(&carry), false).unwrap();
        records.extend(more);
        ledger.extend(spans);
        assert_eq!((records, ledger), complete, "{cut} bytes");
        let proven = cut == 20 || cut == bytes.len();
        let strict = read(&damaged[..cut], Start::Beginning, true);
        assert_eq!(matches!(strict, Err(Error::Damage(_))), proven, "{cut}");
    }
}

#[test]
fn a_failed_walk_fails_again() {
    let mut bytes = plain(&[b"one", b"two", b"three"]);
    bytes[16] = 9;
    let options = lenient(Dialect::Draft).strict(true);
    let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
    assert_eq!(walk.step().unwrap(), Step::More);
    assert_eq!(walk.rows().len(), 1, "what is good in front of damage");
    for _ in 0..2 {
        let Err(Error::Damage(damage)) = walk.step() else {
            panic!("no damage")
        };
        assert_eq!(
            (damage.offset, damage.cause),
            (10, Cause::LengthOutOfBounds)
        );
        let message = damage.to_string();
        assert!(message.contains("9 bytes for value"), "{message}");
    }
}

#[test]
fn only_what_decodes_is_taken_for_an_oplog() {
    let likely = |bytes: &[u8], dialect| {
        let options = lenient(dialect).format(None).dialect(dialect);
        let found = detect(&*source(bytes), &options).unwrap();
        let is_oplog = found.format == Some(&oplog::FORMAT);
        assert!(!is_oplog || !found.certain, "nothing proves an oplog");
        is_oplog
    };
    for dialect in Dialect::ALL {
        let bytes = varied(*dialect, 4 << 10);
        for other in Dialect::ALL {
            assert_eq!(likely(&bytes, *other), dialect == other, "{dialect:?}");
        }
        let (_, ledger) = scan(source(&bytes), &lenient(*dialect)).unwrap();
        let first = usize::try_from(ledger[0].end).unwrap();
        assert!(likely(&bytes[..first], *dialect), "one message");
        assert!(!likely(&bytes[..first - 1], *dialect), "cut off");
        assert!(!likely(&[], *dialect) && !likely(&[0; 100], *dialect));
    }
    let large = plain(&[b"small", &[7; 1 << 20], b"small"]);
    assert!(likely(&large, Dialect::Draft));
    let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    for folder in ["active", "sealed", "tenant", "chunked"] {
        for entry in std::fs::read_dir(vectors.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            for dialect in Dialect::ALL {
                assert!(
                    !likely(&bytes, *dialect),
                    "{} as {dialect:?}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn a_message_alone_is_what_it_is_in_a_file() {
    for dialect in Dialect::ALL {
        let bytes = varied(*dialect, 2 << 10);
        let (records, ledger) = scan(source(&bytes), &lenient(*dialect)).unwrap();
        for (record, span) in records.iter().zip(&ledger) {
            let buffer = &bytes[usize::try_from(span.start).unwrap()..];
            let buffer = &buffer[..usize::try_from(span.len()).unwrap()];
            let message = &buffer[if buffer[0] == 0xfd { 3 } else { 1 }..];
            let seq = record[1]["seq"].as_u64();
            let single = oplog::decode_message(message, *dialect, seq).unwrap();
            let own = messages::named(&*single.rows(), 0, *dialect);
            let mut expected = record[1].clone();
            if *dialect == Dialect::Draft11 {
                let dangles = |entry: &Json| entry["seq"].as_u64() != seq;
                let others = expected["clock"].as_array().unwrap().iter().any(dangles);
                assert_eq!(single.rows().cause(0).is_some(), others);
                for entry in expected["clock"].as_array_mut().unwrap() {
                    if dangles(entry) {
                        entry["key"] = Json::Null;
                    }
                }
            }
            assert_eq!(own, expected);
        }
    }
}

/// Messages before a refused one are emitted first. The refused one is reported with its own size.
#[test]
fn a_refused_message_comes_after_the_good_ones() {
    let small: &[u8] = &[b's'; 10];
    let large: &[u8] = &[b'l'; 100];
    let bytes = plain(&[small, small, small, large, small]);
    let (_, spans) = scan(source(&bytes), &lenient(Dialect::Draft)).unwrap();
    let total = spans[3].end - spans[3].start;
    let key = [3; 32];
    let declares = [&b"\0\x01\0\0\0\x01A\x01"[..], &key].concat();
    // It refers to the tenth key of a message that has one.
    let dangling = b"\0\x01\x01\x01\x09\x01\0\0\x01A\0";
    let references = [framed(&declares), framed(&declares), framed(dangling)].concat();
    let steps = |bytes: &[u8], options: &Options| {
        let mut walk = open(source(bytes), options, Start::Beginning).unwrap();
        let mut records = Vec::new();
        loop {
            match walk.step() {
                Ok(Step::More) => collect(&*walk, options.dialect, &mut records),
                last => return (records.len(), last, walk.offset()),
            }
        }
    };
    for record_bytes in [total - 1, total, total + 1] {
        let options = lenient(Dialect::Draft).record_bytes(record_bytes);
        match steps(&bytes, &options) {
            (given, Err(Error::Limit { needed, limit, .. }), _) => {
                assert_eq!((given, needed, limit), (3, total, total - 1));
            }
            (given, last, offset) => {
                assert!(record_bytes >= total && matches!(last, Ok(Step::Done)));
                assert_eq!((given, offset), (5, bytes.len() as u64));
            }
        }
    }
    let strict = lenient(Dialect::Draft11).strict(true);
    let (given, last, _) = steps(&references, &strict);
    assert_eq!(given, 2, "{last:?}");
    let Err(Error::Damage(damage)) = last else {
        panic!("{last:?}")
    };
    assert_eq!(damage.cause, Cause::DanglingReference);
    let (given, last, _) = steps(&references, &lenient(Dialect::Draft11));
    assert!(given == 3 && matches!(last, Ok(Step::Done)));
}
