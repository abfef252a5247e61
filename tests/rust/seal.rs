//! Writing sealed segments, and making them of active ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::sealed::{Record, contents, lenient, records, segment};
use crate::common::{Windowed, scan, source, uuid};
use proptest::prelude::*;
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::sealed::{self, Writer};
use seglake::format::{IfExists, Interrupt, Options, Value, WriteOptions, Writer as _, active};
use seglake::ledger::Cause;
use seglake::source::BytesSource;
use seglake::verbs::{SealOptions, seal};
use uuid::Uuid;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("segment.sealed");
    (folder, path)
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    entries.map(name).collect()
}

fn write(writer: &mut Writer, (uuid, type_, value): &Record) -> seglake::Result<()> {
    writer.append(&Uuid::from_bytes(*uuid), type_, value)
}

/// An active segment of these records.
fn active_segment(key: &Key, records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (uuid, type_, value) in records {
        active::encode(&mut bytes, key, uuid, type_, value).unwrap();
    }
    bytes
}

fn active_options(key: &Key) -> Options {
    Options::default().format(&active::FORMAT).keys(vec![*key])
}

fn some() -> Vec<Record> {
    (0..50)
        .map(|tick| (uuid(tick), b"order.created".to_vec(), vec![0x42; 20]))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_laid_out_canonically(records in records(), key: [u8; 32], trailer: bool) {
        let (_folder, path) = folder();
        let key = Key::new(&key);
        let mut writer = Writer::create(&path, &WriteOptions::default().key(key).set("trailer", trailer)).unwrap();
        for record in &records {
            write(&mut writer, record).unwrap();
        }
        writer.close().unwrap();
        prop_assert!(fs::read(&path).unwrap() == segment(&key, &records, trailer));
    }

    #[test]
    fn sealing_keeps_every_record_and_its_checksum(records in records(), key: [u8; 32], trailer: bool) {
        let (_folder, path) = folder();
        let key = Key::new(&key);
        let mut bytes = active_segment(&key, &records);
        bytes.resize(bytes.len() + 1000, 0);
        let options = active_options(&key).window_bytes(100);
        let sealing = SealOptions::default().trailer(trailer);
        let report = seal(Arc::new(Windowed(bytes)), &options, &path, &sealing, |_| Ok(())).unwrap();
        prop_assert_eq!(report.summary.records, records.len() as u64);
        prop_assert!(report.is_sound());
        prop_assert!(fs::read(&path).unwrap() == segment(&key, &records, trailer));
    }
}

#[test]
fn many_megabytes_are_put_aside_and_found_again() {
    let (_folder, path) = folder();
    // More messages than are hashed together, more bytes than are buffered.
    let records: Vec<Record> = (0..1500)
        .map(|tick| {
            let len = if tick % 5 == 0 { 10_000 } else { 20 };
            (uuid(tick), vec![], vec![0x42; len])
        })
        .collect();
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    for (number, record) in records.iter().enumerate() {
        write(&mut writer, record).unwrap();
        if number == 700 {
            writer.flush().unwrap();
        }
    }
    writer.flush().unwrap();
    writer.sync().unwrap();
    writer.close().unwrap();
    assert!(fs::read(&path).unwrap() == segment(&Key::DEFAULT, &records, true));
}

#[test]
fn what_a_segment_cannot_hold_is_refused_and_nothing_of_it_is_written() {
    let (_folder, path) = folder();
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    let first = (uuid(5), b"t".to_vec(), b"v".to_vec());
    write(&mut writer, &first).unwrap();
    let refused = |writer: &mut Writer, record: &Record, what: &str| {
        let error = write(writer, record).unwrap_err();
        assert!(
            matches!(&error, Error::Usage(message) if message.contains(what)),
            "{error}"
        );
    };
    refused(&mut writer, &(uuid(5), vec![], vec![]), "sorted by uuid");
    refused(&mut writer, &(uuid(4), vec![], vec![]), "sorted by uuid");
    refused(&mut writer, &([7; 16], vec![], vec![]), "version 6");
    refused(&mut writer, &(uuid(6), vec![0; 256], vec![]), "at most 255");
    let micros = seglake::uuid6::timestamp_micros(&uuid(6));
    for fields in [
        [
            Value::Uuid(uuid(6)),
            Value::Timestamp(micros + 1),
            Value::Text(b""),
            Value::Binary(b""),
        ],
        // The UUID that this time makes is not after the last one.
        [
            Value::Null,
            Value::Timestamp(seglake::uuid6::timestamp_micros(&uuid(5)) - 1),
            Value::Text(b""),
            Value::Binary(b""),
        ],
        [Value::Null, Value::Null, Value::Null, Value::Binary(b"")],
        [Value::Null, Value::Null, Value::Text(b""), Value::Null],
    ] {
        assert!(
            matches!(writer.write(&fields), Err(Error::Usage(_))),
            "{fields:?}"
        );
    }
    writer.close().unwrap();
    writer.close().unwrap();
    refused(&mut writer, &(uuid(9), vec![], vec![]), "closed");
    assert!(fs::read(&path).unwrap() == segment(&Key::DEFAULT, &[first], true));
}

#[test]
fn uuids_are_made_where_none_are_given() {
    let (_folder, path) = folder();
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    assert!(writer.last().is_none());
    for _ in 0..100 {
        let fields = [
            Value::Null,
            Value::Null,
            Value::Text(b"t"),
            Value::Binary(b"v"),
        ];
        let id = writer.write(&fields).unwrap();
        assert_eq!(id, writer.last());
    }
    writer.close().unwrap();
    let strict = lenient().strict(true);
    assert_eq!(
        scan(source(&fs::read(&path).unwrap()), &strict)
            .unwrap()
            .0
            .len(),
        100
    );
}

#[test]
fn an_unfinished_file_is_never_seen() {
    let (_folder, path) = folder();
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    write(&mut writer, &some()[0]).unwrap();
    assert!(!path.exists());
    drop(writer);
    assert_eq!(names(&path), [""; 0]);
    let mut writer = Writer::create(&path, &WriteOptions::default()).unwrap();
    writer.abandon().unwrap();
    assert!(writer.close().is_err());
    drop(writer);
    assert_eq!(names(&path), [""; 0]);
}

#[test]
fn an_existing_file_is_replaced_only_if_asked() {
    let (_folder, path) = folder();
    fs::write(&path, "precious").unwrap();
    assert!(matches!(
        Writer::create(&path, &WriteOptions::default()),
        Err(Error::Io { .. })
    ));
    let bytes = active_segment(&Key::DEFAULT, &some());
    let sealed = seal(
        source(&bytes),
        &active_options(&Key::DEFAULT),
        &path,
        &SealOptions::default(),
        |_| Ok(()),
    );
    assert!(matches!(sealed, Err(Error::Io { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let overwrite = SealOptions::default().if_exists(IfExists::Overwrite);
    seal(
        source(&bytes),
        &active_options(&Key::DEFAULT),
        &path,
        &overwrite,
        |_| Ok(()),
    )
    .unwrap();
    assert!(fs::read(&path).unwrap() == segment(&Key::DEFAULT, &some(), true));
    assert_eq!(names(&path), ["segment.sealed"]);
    // It appears while the writer is at work.
    let other = path.with_file_name("other.sealed");
    let mut writer = Writer::create(&other, &WriteOptions::default()).unwrap();
    fs::write(&other, "precious").unwrap();
    assert!(matches!(writer.close(), Err(Error::Io { .. })));
    assert_eq!(fs::read(&other).unwrap(), b"precious");
    fs::remove_file(&other).unwrap();
    writer.close().unwrap();
    assert!(
        fs::read(&other).unwrap() == segment(&Key::DEFAULT, &[], true),
        "closing again goes on"
    );
}

#[cfg(unix)]
#[test]
fn no_link_is_followed() {
    use std::os::unix::fs::symlink;
    let (folder, path) = folder();
    let target = folder.path().join("target");
    fs::write(&target, "precious").unwrap();
    symlink(&target, &path).unwrap();
    let bytes = active_segment(&Key::DEFAULT, &some());
    let overwrite = SealOptions::default().if_exists(IfExists::Overwrite);
    seal(
        source(&bytes),
        &active_options(&Key::DEFAULT),
        &path,
        &overwrite,
        |_| Ok(()),
    )
    .unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    let metadata = fs::symlink_metadata(&path).unwrap();
    assert!(metadata.is_file());
}

#[test]
fn a_damaged_source_is_refused_or_sealed_without_the_damage() {
    let records = some();
    let sound = active_segment(&Key::DEFAULT, &records);
    let len = sound.len() / records.len();
    let flip = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        bytes
    };
    let swapped = {
        let mut bytes = sound.clone();
        bytes[10 * len..12 * len].rotate_left(len);
        bytes
    };
    for (bytes, cause, kept) in [
        (flip(7 * len + 40), Cause::ChecksumMismatch, 49),
        (swapped, Cause::OutOfOrder, 49),
        (
            sound[..sound.len() - 3].to_vec(),
            Cause::LengthOutOfBounds,
            49,
        ),
    ] {
        let (_folder, path) = folder();
        let options = active_options(&Key::DEFAULT);
        let error = seal(
            source(&bytes),
            &options,
            &path,
            &SealOptions::default(),
            |_| Ok(()),
        )
        .unwrap_err();
        assert!(
            matches!(&error, Error::Damage(damage) if damage.cause == cause),
            "{error}"
        );
        assert_eq!(names(&path), [""; 0]);
        let options = options.strict(false);
        let report = seal(
            source(&bytes),
            &options,
            &path,
            &SealOptions::default(),
            |_| Ok(()),
        )
        .unwrap();
        assert_eq!(
            (report.summary.records, report.summary.damage[0].cause),
            (kept, Some(cause))
        );
        let strict = lenient().strict(true);
        let (sealed, _) = scan(source(&fs::read(&path).unwrap()), &strict).unwrap();
        assert_eq!(sealed.len() as u64, kept);
        assert!(
            contents(&sealed)
                .iter()
                .all(|record| records.contains(record))
        );
    }
}

#[test]
fn a_wrong_key_is_refused_always_and_the_right_one_of_several_is_kept() {
    let (key, other) = (Key::new(&[1; 32]), Key::new(&[2; 32]));
    let bytes = active_segment(&key, &some());
    for strict in [true, false] {
        let (_folder, path) = folder();
        let options = active_options(&other).strict(strict);
        let error = seal(
            source(&bytes),
            &options,
            &path,
            &SealOptions::default(),
            |_| Ok(()),
        )
        .unwrap_err();
        assert!(
            matches!(&error, Error::Damage(damage) if damage.wrong_key),
            "{error}"
        );
        assert_eq!(names(&path), [""; 0]);
        let options = active_options(&key).strict(strict).keys(vec![other, key]);
        seal(
            source(&bytes),
            &options,
            &path,
            &SealOptions::default(),
            |_| Ok(()),
        )
        .unwrap();
        assert!(fs::read(&path).unwrap() == segment(&key, &some(), true));
    }
}

#[test]
fn only_active_segments_are_sealed() {
    let (_folder, path) = folder();
    let bytes = segment(&Key::DEFAULT, &some(), true);
    let options = Options::default().format(&sealed::FORMAT);
    let error = seal(
        source(&bytes),
        &options,
        &path,
        &SealOptions::default(),
        |_| Ok(()),
    )
    .unwrap_err();
    assert!(matches!(error, Error::Usage(_)));
    assert_eq!(names(&path), [""; 0]);
}

#[test]
fn sealing_can_be_stopped() {
    let (_folder, path) = folder();
    let bytes = active_segment(&Key::DEFAULT, &some());
    let source = || Arc::new(BytesSource::new(bytes.clone()));
    let options = active_options(&Key::DEFAULT);
    let stopped = seal(source(), &options, &path, &SealOptions::default(), |_| {
        Err(Error::Interrupted)
    });
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let interrupt = Some(Interrupt::new(|| true));
    let stopped = seal(
        source(),
        &options.interrupt(interrupt),
        &path,
        &SealOptions::default(),
        |_| Ok(()),
    );
    assert!(matches!(stopped, Err(Error::Interrupted)));
    assert_eq!(names(&path), [""; 0]);
}
