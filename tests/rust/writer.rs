//! The writer: appended records are read back, and damage in an existing file never gets worse.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Plain, assert_covers, lenient, scan, segment, source, uuid};
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::active::{self, Writer, encode};
use seglake::format::{self, IfExists, RecordId, Scalar, Value, WriteOptions, Writer as _, sealed};
use seglake::ledger::{Cause, Kind};
use uuid::Uuid;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("segment.active");
    (folder, path)
}

fn append() -> WriteOptions {
    WriteOptions::default().if_exists(IfExists::Append)
}

fn records(path: &Path) -> Vec<Plain> {
    let bytes = fs::read(path).unwrap();
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_covers(&ledger, bytes.len());
    assert!(ledger.iter().all(|span| !span.is_damage()), "{ledger:?}");
    records
}

fn uuid_at(tick: u64) -> Uuid {
    Uuid::from_bytes(uuid(tick))
}

#[test]
fn what_is_appended_is_read() {
    let (_folder, path) = folder();
    let mut writer = Writer::open(&path, &WriteOptions::default()).unwrap();
    let mut uuids = Vec::new();
    for value in 0..1000 {
        let uuid = writer.next_uuid().unwrap();
        writer
            .append(&uuid, b"type", format!("value {value}").as_bytes())
            .unwrap();
        uuids.push(uuid.into_bytes());
    }
    writer.sync().unwrap();
    assert_eq!(
        records(&path)
            .iter()
            .map(|record| record.uuid)
            .collect::<Vec<_>>(),
        uuids
    );
    assert_eq!(writer.position(), fs::metadata(&path).unwrap().len());
    writer.close().unwrap();

    let mut writer = Writer::open(&path, &append()).unwrap();
    assert_eq!(
        writer.last_uuid().map(Uuid::into_bytes),
        uuids.last().copied()
    );
    assert_eq!(writer.found().unwrap().records, 1000);
    let uuid = writer.next_uuid().unwrap();
    writer.append(&uuid, b"", b"one more").unwrap();
    drop(writer);
    assert_eq!(records(&path).len(), 1001, "dropping flushes");
}

#[test]
fn nothing_reaches_the_file_without_its_checksum() {
    let (_folder, path) = folder();
    let key = Key::new(&[7; 32]);
    let options = append().key(key);
    let mut writer = Writer::open(&path, &options).unwrap();
    let (mut expected, mut seen) = (Vec::new(), 0);
    // More records than are hashed together, more bytes than are buffered, and both in turns.
    let lengths = [0, 1, 31, 120, 700, 9_000, 0, 40].into_iter().cycle();
    for (number, len) in (0..4_000_usize).zip(lengths) {
        let large = number % 1_300 == 1_299;
        let value = vec![0x5a; if large { 700_000 } else { len }];
        let uuid = uuid_at(number as u64 + 1);
        writer.append(&uuid, b"type", &value).unwrap();
        encode(&mut expected, &key, uuid.as_bytes(), b"type", &value).unwrap();
        match number {
            517 | 2_900 => writer.flush().unwrap(),
            1_100 => writer.sync().unwrap(),
            _ => {}
        }
        let written = fs::metadata(&path).unwrap().len();
        if written != seen {
            seen = written;
            assert!(expected.starts_with(&fs::read(&path).unwrap()), "{number}");
        }
    }
    assert!(seen < expected.len() as u64);
    drop(writer);
    assert!(fs::read(&path).unwrap() == expected, "dropping flushes");
}

#[test]
fn a_preallocated_file_keeps_its_length() {
    let (_folder, path) = folder();
    let options = append().set("preallocate", 3 << 20);
    for round in 0..3u64 {
        let mut writer = Writer::open(&path, &options).unwrap();
        writer.append(&uuid_at(1000 + round), b"t", b"v").unwrap();
        writer.close().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 3 << 20);
        assert_eq!(records(&path).len() as u64, round + 1);
    }
}

#[test]
fn what_cannot_be_written_is_refused_and_changes_nothing() {
    let (_folder, path) = folder();
    let mut writer = Writer::open(&path, &WriteOptions::default()).unwrap();
    writer.append(&uuid_at(1000), b"t", b"v").unwrap();
    let position = writer.position();
    // Zeros from the system, never touched: a length is refused before anything is copied.
    let too_long = vec![0; 1 << 32];
    let refused = [
        writer.append(&uuid_at(1000), b"t", b"v"),
        writer.append(&uuid_at(999), b"t", b"v"),
        writer.append(&Uuid::new_v4(), b"t", b"v"),
        writer.append(&uuid_at(1001), &[b'x'; 256], b"v"),
        writer.append(&uuid_at(1001), b"t", &too_long),
    ];
    for result in refused {
        assert!(matches!(result, Err(Error::Usage(_))), "{result:?}");
    }
    assert_eq!(writer.position(), position);
    writer.append(&uuid_at(1001), &[b'x'; 255], b"v").unwrap();
    writer.close().unwrap();
    assert_eq!(records(&path).len(), 2);
}

/// What a record lacks, or what contradicts itself, is refused by its name.
#[test]
fn fields_that_do_not_fit_are_refused_by_name() {
    let (folder, _) = folder();
    let own = uuid_at(1000);
    let micros = seglake::uuid6::timestamp_micros(own.as_bytes());
    let (uuid, none) = (Value::Uuid(own.into_bytes()), Value::Null);
    let (type_, value) = (Value::Text(b"t"), Value::Binary(b"v"));
    for format in [&active::FORMAT, &sealed::FORMAT] {
        let path = folder.path().join(format.name);
        let mut writer = format::create(format, &path, &WriteOptions::default()).unwrap();
        let mut refused = |fields: [&Value<'static>; 4], why: &str| {
            let error = writer.write(&fields.map(Clone::clone)).unwrap_err();
            assert!(matches!(error, Error::Usage(_)), "{error}");
            assert!(error.to_string().contains(why), "{error}");
        };
        refused([&uuid, &none, &type_, &none], "value is missing");
        refused([&uuid, &none, &none, &value], "type is missing");
        let time = Value::Timestamp(micros);
        let never = Value::Timestamp(i64::MIN);
        refused([&none, &never, &type_, &value], "gives no UUID");
        let other = Value::Timestamp(micros + 1);
        refused([&uuid, &other, &type_, &value], "is not that of the UUID");
        assert!(writer.last().is_none());
        let id = writer.write(&[uuid.clone(), time, type_.clone(), value.clone()]);
        assert_eq!(id.unwrap(), Some(RecordId::from(own.into_bytes())));
        assert_eq!(writer.last(), Some(RecordId::from(own.into_bytes())));
        // A timestamp alone makes a UUID of that time, which ascends as any other.
        let mut write = |micros| {
            let time = Value::Timestamp(micros);
            writer.write(&[none.clone(), time, type_.clone(), value.clone()])
        };
        for later in [1, 1, 2] {
            let id = write(micros + later).unwrap().unwrap();
            let [Scalar::Uuid(uuid)] = id.values() else {
                panic!("{id:?}");
            };
            assert_eq!(seglake::uuid6::timestamp_micros(uuid), micros + later);
        }
        let early = write(micros + 1).unwrap_err().to_string();
        assert!(early.contains("does not ascend"), "{early}");
        writer.close().unwrap();
    }
}

#[test]
fn an_existing_file_is_an_error_unless_it_is_appended_to() {
    let (_folder, path) = folder();
    fs::write(&path, segment(&Key::DEFAULT, &[("a", "1")])).unwrap();
    assert!(matches!(
        Writer::open(&path, &WriteOptions::default()),
        Err(Error::Io { .. })
    ));
    assert_eq!(records(&path).len(), 1);
}

#[cfg(unix)]
#[test]
fn two_writers_keep_each_other_out() {
    let (_folder, path) = folder();
    let first = Writer::open(&path, &append()).unwrap();
    let second = Writer::open(&path, &append())
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(second.contains("another writer"), "{second}");
    drop(first);
    Writer::open(&path, &append()).unwrap();
}

#[test]
fn a_torn_tail_is_reported_and_zeroed_only_when_asked() {
    for preallocated in [0, 4096] {
        let (_folder, path) = folder();
        let mut bytes = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2")]);
        bytes.truncate(40);
        let len = bytes.len().max(preallocated);
        bytes.resize(len, 0);
        fs::write(&path, &bytes).unwrap();
        let Err(Error::Damage(damage)) = Writer::open(&path, &append()) else {
            panic!("torn")
        };
        assert_eq!(damage.offset, 31);
        assert_eq!(fs::read(&path).unwrap(), bytes, "only reported");

        let mut writer = Writer::open(&path, &append().set("zero_torn_tail", true)).unwrap();
        assert_eq!(writer.found().unwrap().damage[0].kind, Kind::TornTail);
        assert_eq!(
            fs::metadata(&path).unwrap().len(),
            bytes.len() as u64,
            "never truncated"
        );
        assert_eq!(records(&path).len(), 1);
        writer.append(&uuid_at(2000), b"c", b"3").unwrap();
        writer.close().unwrap();
        assert_eq!(records(&path).len(), 2);
    }
}

#[test]
fn other_damage_at_the_end_and_a_wrong_key_are_never_written_over() {
    let key = Key::new(&[3; 32]);
    let two = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2")]);
    let mut duplicated = two.clone();
    duplicated.extend_from_slice(&two[31..]);
    for (bytes, key, cause) in [
        (duplicated, Key::DEFAULT, Cause::OutOfOrder),
        (two, key, Cause::ChecksumMismatch),
    ] {
        let (_folder, path) = folder();
        fs::write(&path, &bytes).unwrap();
        let Err(Error::Damage(damage)) =
            Writer::open(&path, &append().key(key).set("zero_torn_tail", true))
        else {
            panic!("{cause}");
        };
        assert_eq!(
            (damage.cause, damage.wrong_key),
            (cause, key != Key::DEFAULT)
        );
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_torn_tail_that_contains_a_record_is_never_overwritten() {
    let sound = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2"), ("c", "3")]);
    // The second record claims to end where the third does, so its body is not searched.
    let mut bytes = sound.clone();
    bytes[31 + 18 + 3] += 31;
    let (records_left, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!((records_left.len(), ledger[1].kind), (1, Kind::TornTail));
    for zero_torn_tail in [true, false] {
        let (_folder, path) = folder();
        fs::write(&path, &bytes).unwrap();
        let options = append().set("zero_torn_tail", zero_torn_tail);
        let Err(Error::Damage(damage)) = Writer::open(&path, &options) else {
            panic!("a record would be lost")
        };
        assert_eq!((damage.offset, damage.cause), (31, Cause::ChecksumMismatch));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

/// The bytes of a segment that ends in other damage than one record that was not written to its end, and of other files.
fn not_torn() -> Vec<Vec<u8>> {
    let many: Vec<_> = (0..20).map(|_| ("a", "line\nline\n")).collect();
    let sound = segment(&Key::DEFAULT, &many);
    let swapped: Vec<u8> = sound
        .as_chunks::<4>()
        .0
        .iter()
        .flat_map(|four| four.iter().rev().copied())
        .collect();
    let crlf: Vec<u8> = sound
        .iter()
        .flat_map(|byte| match byte {
            b'\n' => vec![b'\r', b'\n'],
            other => vec![*other],
        })
        .collect();
    let mut flipped = sound.clone();
    let last = flipped.len() - 12;
    flipped[last] ^= 4;
    // The first length reaches beyond the end by that.
    let mut shifted = crlf.clone();
    shifted[18] = b'\n';
    vec![
        swapped,
        crlf,
        shifted,
        flipped,
        [&sound[..], b"hello\n"].concat(),
        [&sound[..], &[0xf3; 500]].concat(),
        b"my only copy\n".repeat(100),
        b"hello".to_vec(),
        [&b"\x89PNG\r\n\x1a\n"[..], &[0xf3; 900]].concat(),
        [&b"PAR1"[..], &[0xf3; 900]].concat(),
        [&b"\x1f\x8b\x08"[..], &[0xf3; 900]].concat(),
    ]
}

#[test]
fn only_a_record_that_was_not_written_to_its_end_is_removed() {
    let options = append().set("zero_torn_tail", true);
    for bytes in not_torn() {
        let (folder, path) = folder();
        fs::write(&path, &bytes).unwrap();
        let refused = Writer::open(&path, &options).map(drop);
        assert!(matches!(refused, Err(Error::Damage(_))), "{refused:?}");
        let refused = format::create(&active::FORMAT, &path, &options).map(drop);
        assert!(refused.is_err());
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

/// The error says what a file probably is in which nothing is sound.
#[test]
fn what_is_not_a_segment_is_named() {
    let (_folder, path) = folder();
    for (bytes, what) in [
        (b"my only copy\n".repeat(100), "text"),
        ([&b"PAR1"[..], &[0xf3; 900]].concat(), "Parquet"),
    ] {
        fs::write(&path, &bytes).unwrap();
        let options = append().set("zero_torn_tail", true);
        let refused = format::create(&active::FORMAT, &path, &options).map(drop);
        let Err(Error::Format { message, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(message.contains(what), "{message}");
    }
}

/// It is kept beside the file, under a new name each time, and is there before the file changes.
#[test]
fn what_is_removed_is_kept() {
    let sound = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2")]);
    let (folder, path) = folder();
    let options = append().set("zero_torn_tail", true);
    for (len, name) in [
        (40, "segment.active.31.quarantine"),
        (61, "segment.active.31-1.quarantine"),
        (9, "segment.active.0.quarantine"),
    ] {
        fs::write(&path, &sound[..len]).unwrap();
        let writer = Writer::open(&path, &options).unwrap();
        let start = if len > 31 { 31 } else { 0 };
        let kept = folder.path().join(name);
        assert_eq!(format::Writer::quarantined(&writer), [&kept]);
        assert_eq!(fs::read(kept).unwrap(), sound[start..len]);
    }
    // The first record of a preallocated file, too.
    for len in [9, 17, 23] {
        let (folder, path) = self::folder();
        let mut torn = sound[..len].to_vec();
        torn.resize(4096, 0);
        fs::write(&path, &torn).unwrap();
        let mut writer = Writer::open(&path, &options).unwrap();
        let kept = fs::read(folder.path().join("segment.active.0.quarantine")).unwrap();
        assert_eq!(kept, torn[..kept.len()]);
        assert!(kept.len() >= len);
        writer.append(&uuid_at(2000), b"c", b"3").unwrap();
        writer.close().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 4096);
        let (records, ledger) = scan(source(&fs::read(&path).unwrap()), &lenient()).unwrap();
        assert_eq!((records.len(), ledger[1].kind), (1, Kind::Unused));
    }
    // Not a whole one under another key, whose checksum ends in a zero.
    let ends_in_zero =
        |number: &u32| segment(&Key::new(&[7; 32]), &[("a", &number.to_string())]).ends_with(&[0]);
    let number = (0..).find(ends_in_zero).unwrap().to_string();
    let mut whole = segment(&Key::new(&[7; 32]), &[("a", &number)]);
    whole.resize(4096, 0);
    let other = folder.path().join("other.active");
    fs::write(&other, &whole).unwrap();
    let refused = Writer::open(&other, &options).map(drop);
    assert!(matches!(refused, Err(Error::Damage(_))), "{refused:?}");
    assert_eq!(fs::read(&other).unwrap(), whole);
    // Where it cannot be kept, nothing changes.
    let long = folder.path().join("n".repeat(250));
    fs::write(&long, &sound[..40]).unwrap();
    let refused = Writer::open(&long, &options).map(drop);
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    assert_eq!(fs::read(&long).unwrap(), sound[..40]);
}

#[cfg(unix)]
#[test]
fn what_is_not_a_file_is_refused_when_it_is_opened() {
    let (folder, path) = folder();
    fs::create_dir(&path).unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let overwrite = WriteOptions::default().if_exists(IfExists::Overwrite);
    for target in [&path, &pipe, &link] {
        for (format, options) in [
            (&active::FORMAT, append()),
            (&sealed::FORMAT, overwrite.clone()),
            (&format::tenant::FORMAT, overwrite.clone()),
        ] {
            let refused = format::create(format, target, &options).map(drop);
            assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
        }
    }
}

#[test]
fn damage_followed_by_good_records_does_not_prevent_appending() {
    let (_folder, path) = folder();
    let mut bytes = segment(&Key::DEFAULT, &[("a", "1"), ("b", "2")]);
    bytes[22] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut writer = Writer::open(&path, &append()).unwrap();
    assert!(!writer.found().unwrap().is_sound());
    writer.append(&uuid_at(2000), b"c", b"3").unwrap();
    writer.close().unwrap();
    let (records, ledger) = scan(source(&fs::read(&path).unwrap()), &lenient()).unwrap();
    assert_eq!((records.len(), ledger[0].kind), (2, Kind::Corrupt));
}
