//! The writer of oplogs: appended messages are read back, keys are declared once, and existing damage never gets
//! worse.

use crate::messages;
use std::fs;
use std::path::{Path, PathBuf};

use crate::messages::{Plain, fields, file, key, lenient, scan, source};
use proptest::prelude::*;
use seglake::Error;
use seglake::format::oplog::Writer;
use seglake::format::{
    Dialect, IfExists, RecordId, Start, Step, Value, WriteOptions, Writer as _, open,
};
use seglake::ledger::{Cause, Kind};
use serde_json::{Value as Json, json};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.oplog");
    (folder, path)
}

fn append(dialect: Dialect) -> WriteOptions {
    WriteOptions::default()
        .if_exists(IfExists::Append)
        .dialect(dialect)
}

fn message(clock: &[u8], keys: &[u8]) -> Plain {
    Plain {
        checkpointer: 1,
        clock: clock.iter().map(|number| (*number, 9)).collect(),
        keys: keys.to_vec(),
        ..Plain::default()
    }
}

/// Of each message where its clock's keys are, and the numbers of the keys that it declares.
fn references(path: &Path) -> Vec<Json> {
    let bytes = fs::read(path).unwrap();
    let (records, ledger) = scan(source(&bytes), &lenient(Dialect::Draft11)).unwrap();
    assert!(ledger.iter().all(|span| !span.is_damage()), "{ledger:?}");
    let number = |key: &Json| u8::from_str_radix(&key.as_str().unwrap()[..2], 16).unwrap();
    let of = |record: &Json| {
        let clock = record[1]["clock"].as_array().unwrap().iter();
        let clock: Vec<_> = clock
            .map(|entry| json!([number(&entry["key"]), entry["seq"], entry["offset"]]))
            .collect();
        let keys = record[1]["keys"].as_array().unwrap().iter();
        json!([clock, keys.map(number).collect::<Vec<_>>()])
    };
    records.iter().map(of).collect()
}

#[test]
fn keys_are_declared_by_the_first_message_that_uses_them() {
    let (_folder, path) = folder();
    let mut writer = Writer::open(&path, &append(Dialect::Draft11)).unwrap();
    let first = [
        message(&[5, 4, 5], &[9, 4, 9, 8]),
        message(&[4, 6], &[5, 6, 7]),
    ];
    let expected = [
        json!([[[5, 0, 0], [4, 0, 1], [5, 0, 0]], [5, 4, 9, 8]]),
        json!([[[4, 0, 1], [6, 1, 0]], [6, 7]]),
        json!([[[9, 0, 2], [7, 1, 1], [1, 2, 0]], [1]]),
    ];
    for message in &first {
        writer.write(&message.fields(Dialect::Draft11)).unwrap();
    }
    drop(writer);
    assert_eq!(references(&path), expected[..2]);
    // A later writer knows the keys of the file.
    let mut writer = Writer::open(&path, &append(Dialect::Draft11)).unwrap();
    assert_eq!(writer.last(), Some(RecordId::from(1)));
    assert_eq!(writer.found().unwrap().records, 2);
    let third = message(&[9, 7, 1], &[]);
    let id = writer.write(&third.fields(Dialect::Draft11)).unwrap();
    assert_eq!(id, Some(RecordId::from(2)));
    let position = writer.position();
    writer.close().unwrap();
    assert_eq!(position, Some(fs::metadata(&path).unwrap().len()));
    assert_eq!(references(&path), expected);
}

#[test]
fn a_key_that_was_declared_twice_is_used_where_it_was_declared_first() {
    let (_folder, path) = folder();
    let own = file(Dialect::Draft11, &[message(&[5], &[])]);
    fs::write(&path, [&own[..], &own].concat()).unwrap();
    let mut writer = Writer::open(&path, &append(Dialect::Draft11)).unwrap();
    writer
        .write(&message(&[5], &[5]).fields(Dialect::Draft11))
        .unwrap();
    writer.close().unwrap();
    assert_eq!(references(&path)[2], json!([[[5, 0, 0]], []]));
}

#[test]
fn what_is_refused_changes_nothing() {
    let (_folder, path) = folder();
    let mut writer = Writer::open(&path, &append(Dialect::Draft11)).unwrap();
    writer
        .write(&message(&[5], &[]).fields(Dialect::Draft11))
        .unwrap();
    let position = writer.position();
    let entry = |key: Value<'static>, reference: [u64; 2]| {
        let [seq, offset] = reference.map(Value::UInt64);
        Value::List(vec![Value::Struct(vec![
            key,
            Value::UInt64(1),
            seq,
            offset,
        ])])
    };
    let known = Value::Binary(key(5));
    for (column, value, expected) in [
        (
            0,
            Value::Int64(0),
            "seq is 0, and the next message in the file is 1",
        ),
        (
            0,
            Value::Int64(2),
            "seq is 2, and the next message in the file is 1",
        ),
        (
            4,
            entry(known.clone(), [0, 1]),
            "its key will be at (0, 0): leave both out",
        ),
        (
            4,
            entry(Value::Binary(key(6)), [0, 0]),
            "its key will be at (1, 0)",
        ),
        // A reference that leads nowhere is never written, nor one that would lead somewhere by chance.
        (
            4,
            entry(Value::Null, [7, 0]),
            "refers to key 0 of message 7",
        ),
        (
            4,
            entry(Value::Null, [0, 0]),
            "a reference that leads nowhere cannot be written",
        ),
        (7, Value::Null, "value is missing"),
    ] {
        let template = message(&[6], &[]);
        let mut fields = template.fields(Dialect::Draft11);
        fields[column] = value;
        match writer.write(&fields) {
            Err(Error::Usage(text)) => assert!(text.contains(expected), "{text}"),
            other => panic!("{expected}: {other:?}"),
        }
        assert_eq!(writer.position(), position);
    }
    let right = message(&[], &[]);
    let mut fields = right.fields(Dialect::Draft11);
    fields[0] = Value::Int64(1);
    fields[4] = entry(known, [0, 0]);
    writer.write(&fields).unwrap();
    writer.close().unwrap();
    let expected = [json!([[[5, 0, 0]], [5]]), json!([[[5, 0, 0]], []])];
    assert_eq!(
        references(&path),
        expected,
        "a refused message declares no key"
    );
}

#[test]
fn copying_a_dangling_reference_is_refused() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/autobase");
    let bytes = fs::read(vectors.join("dangling.oplog")).unwrap();
    let (_folder, path) = folder();
    let mut writer = Writer::open(&path, &append(Dialect::Draft11)).unwrap();
    let mut walk = open(source(&bytes), &lenient(Dialect::Draft11), Start::Beginning).unwrap();
    assert_eq!(walk.step().unwrap(), Step::More);
    let rows = walk.rows();
    for row in 0..3 {
        writer
            .write(&fields(&*rows, row, Dialect::Draft11))
            .unwrap();
    }
    let refused = writer
        .write(&fields(&*rows, 3, Dialect::Draft11))
        .unwrap_err();
    assert!(
        refused.to_string().contains("key 7 of message 2"),
        "{refused}"
    );
    writer.close().unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes[..209]);
}

#[test]
fn a_torn_tail_is_reported_and_cut_off_only_when_asked() {
    let whole = file(Dialect::Draft, &[message(&[1], &[]), message(&[2], &[])]);
    let first = whole.len() / 2;
    for len in first + 1..whole.len() {
        let (_folder, path) = folder();
        fs::write(&path, &whole[..len]).unwrap();
        let Err(Error::Damage(damage)) = Writer::open(&path, &append(Dialect::Draft)) else {
            panic!("torn")
        };
        assert_eq!(
            (damage.offset, damage.cause),
            (first as u64, Cause::LengthOutOfBounds)
        );
        assert_eq!(fs::read(&path).unwrap(), whole[..len], "only reported");
        let options = append(Dialect::Draft).set("zero_torn_tail", true);
        let mut writer = Writer::open(&path, &options).unwrap();
        assert_eq!(writer.found().unwrap().damage[0].kind, Kind::TornTail);
        assert_eq!(fs::read(&path).unwrap(), whole[..first]);
        let id = writer
            .write(&message(&[2], &[]).fields(Dialect::Draft))
            .unwrap();
        assert_eq!(id, Some(RecordId::from(1)));
        writer.close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn other_damage_at_the_end_is_never_cut_off() {
    let mut bytes = file(Dialect::Draft, &[message(&[1], &[]), message(&[2], &[])]);
    let second = bytes.len() / 2;
    bytes[second + 3] = 0x22; // the clock's count
    for (bytes, dialect, offset) in [
        (bytes.clone(), Dialect::Draft, second),
        ([&bytes[..second], &[0; 9]].concat(), Dialect::Draft, second),
        // Another dialect than the file has.
        (bytes[..second].to_vec(), Dialect::Draft11, 0),
    ] {
        let (_folder, path) = folder();
        fs::write(&path, &bytes).unwrap();
        let options = append(dialect).set("zero_torn_tail", true);
        let Err(Error::Damage(damage)) = Writer::open(&path, &options) else {
            panic!("damage at {offset}")
        };
        assert_eq!(damage.offset, offset as u64);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn only_a_message_that_was_not_written_to_its_end_is_cut_off() {
    let long = |value: usize| Plain {
        value: vec![7; value],
        ..message(&[1], &[])
    };
    let sound = file(Dialect::Draft, &[long(50), long(50), long(50)]);
    let second = sound.len() / 3;
    // A length that leads beyond the end, though the message ends before it.
    let mut flipped = sound.clone();
    flipped.splice(second..=second, [0xfd, 0xff, 0x0f]);
    let options = append(Dialect::Draft).set("zero_torn_tail", true);
    for bytes in [
        flipped,
        [&sound[..], b"hello\n"].concat(),
        [&b"\xff\xfe"[..], &b"t\0e\0x\0t\0".repeat(200)].concat(),
        b"\xfd7zXZ\0\0\0".to_vec(),
        b"zip".to_vec(),
    ] {
        let (_folder, path) = folder();
        fs::write(&path, &bytes).unwrap();
        let refused = Writer::open(&path, &options).map(drop);
        assert!(matches!(refused, Err(Error::Damage(_))), "{refused:?}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    // The first message, of which all fields are there up to its value.
    let (folder, path) = folder();
    fs::write(&path, &sound[..second - 5]).unwrap();
    Writer::open(&path, &options).unwrap();
    assert!(fs::read(&path).unwrap().is_empty());
    let kept = folder.path().join("messages.oplog.0.quarantine");
    assert_eq!(fs::read(kept).unwrap(), sound[..second - 5]);
}

#[test]
fn damage_further_up_does_not_hinder_appending() {
    let (_folder, path) = folder();
    let messages = [message(&[1], &[]), message(&[2], &[]), message(&[3], &[])];
    let mut bytes = file(Dialect::Draft11, &messages);
    let second = bytes.len() / 3;
    bytes[second + 3] = 0x22;
    fs::write(&path, &bytes).unwrap();
    let mut writer = Writer::open(&path, &append(Dialect::Draft11)).unwrap();
    assert!(!writer.found().unwrap().is_sound());
    // The damaged message has its number, and its key has to be declared anew.
    writer
        .write(&message(&[2, 3], &[]).fields(Dialect::Draft11))
        .unwrap();
    writer.close().unwrap();
    let (records, _) = scan(
        source(&fs::read(&path).unwrap()),
        &lenient(Dialect::Draft11),
    )
    .unwrap();
    let last = &records[2][1];
    assert_eq!(last["seq"], 3);
    assert_eq!(
        (&last["clock"][0]["seq"], &last["clock"][1]["seq"]),
        (&json!(3), &json!(2))
    );
}

#[test]
fn an_existing_file_is_an_error_unless_it_is_appended_to() {
    let (_folder, path) = folder();
    fs::write(&path, file(Dialect::Draft, &[message(&[], &[])])).unwrap();
    let refused = Writer::open(&path, &WriteOptions::default());
    assert!(matches!(refused, Err(Error::Io { .. })));
    assert_eq!(fs::read(&path).unwrap().len(), 7);
}

proptest! {
    /// Whatever is read is written as the same bytes, at once or with the file opened again in between.
    #[test]
    fn what_the_writer_wrote_it_writes_again(
        messages in messages::messages(),
        dialect in messages::dialects(),
        stop in 0usize..25,
    ) {
        let bytes = file(dialect, &messages);
        let (_folder, path) = folder();
        let mut writer = Writer::open(&path, &append(dialect)).unwrap();
        let mut walk = open(source(&bytes), &lenient(dialect), Start::Beginning).unwrap();
        let mut written = 0;
        while walk.step().unwrap() == Step::More {
            let rows = walk.rows();
            for row in 0..rows.len() {
                if written == stop {
                    writer.close().unwrap();
                    drop(writer);
                    writer = Writer::open(&path, &append(dialect)).unwrap();
                }
                writer.write(&fields(&*rows, row, dialect)).unwrap();
                written += 1;
            }
        }
        prop_assert_eq!(writer.position(), Some(bytes.len() as u64));
        writer.close().unwrap();
        prop_assert!(fs::read(&path).unwrap() == bytes);
    }
}
