//! Writing chunked segments and their indexes: appended records are read back, and existing damage never gets
//! worse.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::chunked::{
    Record, header, lenient, noise, push_chunk, push_records, scan, segment, strict_error,
};
use crate::common::{assert_covers, source};
use proptest::prelude::*;
use seglake::Error;
use seglake::format::chunked::{Writer, build_index};
use seglake::format::{self, IfExists, RecordId, Value, WriteOptions, Writer as _, chunked};
use seglake::ledger::{Cause, Kind};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.chunks");
    (folder, path)
}

fn append() -> WriteOptions {
    WriteOptions::default().if_exists(IfExists::Append)
}

/// The records of a sound segment. Asserts that its index is the one its chunks imply.
fn records(path: &Path) -> Vec<Record> {
    let bytes = fs::read(path).unwrap();
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_covers(&ledger, bytes.len());
    assert!(ledger.iter().all(|span| !span.is_damage()), "{ledger:?}");
    assert_index(path);
    records
}

fn assert_index(path: &Path) {
    let mut index = Vec::new();
    build_index(source(&fs::read(path).unwrap()), &lenient(), |item| {
        index.extend_from_slice(&item.encode());
        Ok(())
    })
    .unwrap();
    assert!(fs::read(path.with_extension("index")).unwrap() == index);
}

fn chunk_sizes(records: &[Record]) -> Vec<usize> {
    let same = |one: &Record, other: &Record| one.position == other.position;
    records.chunk_by(same).map(<[_]>::len).collect()
}

proptest! {
    #[test]
    fn records_round_trip(
        sessions in prop::collection::vec(prop::collection::vec(
            (prop::option::of(0u8..5), any::<i64>(), prop::collection::vec(any::<u8>(), 0..120)), 0..30), 1..4),
        chunk_bytes in 1u64..800,
        chunk_records in 1u32..12,
        level in prop::sample::select(vec![-5, 1, 3, 19]),
    ) {
        let (_folder, path) = folder();
        let options = append().set("chunk_bytes", chunk_bytes).set("chunk_records", chunk_records).set("level", level);
        let (mut expected, mut next) = (Vec::new(), 0);
        for session in sessions {
            let mut writer = format::create(&chunked::FORMAT, &path, &options).unwrap();
            prop_assert_eq!(writer.found().unwrap().records, expected.len() as u64);
            for (gap, timestamp, value) in session {
                let offset = next + i64::from(gap.unwrap_or(0));
                let given = gap.map_or(Value::Null, |_| Value::Int64(offset));
                let id = writer.write(&[given, Value::Timestamp(timestamp), Value::Binary(&value)]).unwrap();
                prop_assert_eq!(&id, &Some(RecordId::from(offset)));
                prop_assert_eq!(writer.last(), id);
                expected.push((offset, timestamp, value));
                next = offset + 1;
            }
            writer.close().unwrap();
        }
        let found = records(&path);
        let sizes = chunk_sizes(&found);
        prop_assert!(sizes.iter().all(|size| *size <= chunk_records as usize));
        let found: Vec<_> = found.into_iter().map(|own| (own.offset, own.timestamp, own.value)).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn chunks_are_closed_by_bytes_by_records_and_by_flush() {
    let (_folder, path) = folder();
    let options = append().set("chunk_bytes", 1000).set("chunk_records", 7);
    let mut writer = Writer::open(&path, &options).unwrap();
    for _ in 0..7 + 7 + 3 {
        writer.append(None, None, b"small").unwrap();
    }
    writer.flush().unwrap();
    writer.append(None, None, &[0; 600]).unwrap();
    writer.append(None, None, &[0; 600]).unwrap();
    writer.append(None, None, b"small").unwrap();
    writer.append(None, None, &[0; 5000]).unwrap();
    writer.append(Some(30), Some(-5), b"behind a gap").unwrap();
    writer.append(Some(40), None, b"behind another").unwrap();
    drop(writer);
    let records = records(&path);
    assert_eq!(
        chunk_sizes(&records),
        [7, 7, 3, 2, 1, 1, 1, 1],
        "dropping flushes"
    );
    assert_eq!(records[21].timestamp, -5);
    assert!(records[0].timestamp > 1_700_000_000_000_000, "now");
}

#[test]
fn what_cannot_be_written_is_refused_and_changes_nothing() {
    let (_folder, path) = folder();
    let mut writer = Writer::open(&path, &WriteOptions::default()).unwrap();
    writer.append(Some(5), Some(0), b"five").unwrap();
    // Zeros from the system, never touched: a length is refused before anything is copied.
    let too_long = vec![0; 0xfeff_0000 - 11];
    for (refused, word) in [
        (writer.append(Some(5), None, b""), "6 or greater"),
        (writer.append(Some(-1), None, b""), "-1"),
        (writer.append(None, None, &too_long), "4278124533"),
    ] {
        assert!(
            matches!(&refused, Err(Error::Usage(message)) if message.contains(word)),
            "{refused:?}"
        );
    }
    let writer: &mut dyn format::Writer = &mut writer;
    assert!(matches!(
        writer.write(&[Value::Null, Value::Null, Value::Null]),
        Err(Error::Usage(_))
    ));
    writer
        .write(&[
            Value::Int64(i64::MAX),
            Value::Null,
            Value::Binary(b"the last"),
        ])
        .unwrap();
    assert!(matches!(
        writer.write(&[Value::Null, Value::Null, Value::Binary(b"")]),
        Err(Error::Usage(_))
    ));
    writer.close().unwrap();
    writer.close().unwrap();
    assert!(matches!(
        writer.write(&[Value::Null, Value::Null, Value::Binary(b"")]),
        Err(Error::Usage(_))
    ));
    assert_eq!(records(&path).len(), 2);

    for options in [
        append().set("chunk_bytes", 0),
        append().set("chunk_bytes", u64::MAX),
        append().set("chunk_records", 0),
        append().set("level", 23),
    ] {
        assert!(matches!(
            Writer::open(&path, &options),
            Err(Error::Usage(_))
        ));
    }
    let own = path.with_extension("index");
    assert!(
        matches!(Writer::open(&own, &append()), Err(Error::Usage(_))),
        "its own index"
    );
}

#[test]
fn existing_files_are_errors_unless_they_are_appended_to() {
    let (_folder, path) = folder();
    fs::write(&path, segment(1, 3, 10)).unwrap();
    let refused = Writer::open(&path, &WriteOptions::default());
    assert!(matches!(refused, Err(Error::Io { .. })));
    fs::remove_file(&path).unwrap();
    // A file that happens to be called like the index is left alone.
    let index = path.with_extension("index");
    fs::write(&index, b"somebody else's file, with some text").unwrap();
    assert!(matches!(
        Writer::open(&path, &WriteOptions::default()),
        Err(Error::Io { .. })
    ));
    assert!(!path.exists());
    fs::write(&path, segment(1, 3, 10)).unwrap();
    assert!(matches!(
        Writer::open(&path, &append()),
        Err(Error::Io { .. })
    ));
    assert!(fs::read(&index).unwrap().starts_with(b"somebody"));
    let without = append().set("index", false);
    Writer::open(&path, &without)
        .unwrap()
        .append(None, None, b"")
        .unwrap();
    assert!(fs::read(&index).unwrap().starts_with(b"somebody"));
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
fn an_index_is_mended_when_its_segment_is_appended_to() {
    let sound = segment(40, 3, 10);
    let (_folder, path) = folder();
    let index = path.with_extension("index");
    fs::write(&path, &sound).unwrap();
    Writer::open(&path, &append()).unwrap();
    let right = fs::read(&index).unwrap();
    assert_eq!(right.len(), 40 * 20, "missing");
    let spoil = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut spoilt = right.clone();
        change(&mut spoilt);
        spoilt
    };
    for spoilt in [
        spoil(&|index| index.truncate(130)),
        spoil(&|index| index.truncate(7)),
        spoil(&|index| index[105] ^= 1),
        spoil(&|index| index.extend_from_slice(&[0; 47])),
        spoil(&|index| index.extend(index.clone())),
        spoil(&|index| {
            index.drain(20..60);
        }),
        spoil(&|index| index.fill(0)),
        Vec::new(),
    ] {
        fs::write(&path, &sound).unwrap();
        fs::write(&index, &spoilt).unwrap();
        let mut writer = Writer::open(&path, &append()).unwrap();
        assert_index(&path);
        writer.append(None, None, b"one more").unwrap();
        writer.sync().unwrap();
        assert_eq!(records(&path).len(), 121);
    }
}

#[test]
fn a_torn_tail_is_reported_and_cut_off_only_when_asked() {
    let sound = segment(3, 3, 100);
    let (_, ledger) = scan(source(&sound), &lenient()).unwrap();
    let last = ledger
        .iter()
        .rfind(|span| span.kind == Kind::Chunk)
        .unwrap();
    let start = usize::try_from(last.start).unwrap();
    let zero = append().set("zero_torn_tail", true);
    for (len, unused) in [
        (start + 5, 0),
        (start + 60, 0),
        (start + 5, 1000),
        (start + 60, 1000),
    ] {
        let (_folder, path) = folder();
        let mut bytes = sound[..len].to_vec();
        bytes.resize(len + unused, 0);
        fs::write(&path, &bytes).unwrap();
        let Err(Error::Damage(damage)) = Writer::open(&path, &append()) else {
            panic!("torn")
        };
        assert_eq!(damage.offset, last.start);
        assert_eq!(fs::read(&path).unwrap(), bytes, "only reported");
        assert!(!path.with_extension("index").exists());

        let mut writer = Writer::open(&path, &zero).unwrap();
        assert!(!writer.found().unwrap().damage.is_empty());
        assert!(
            writer
                .found()
                .unwrap()
                .damage
                .iter()
                .all(|span| span.kind == Kind::TornTail)
        );
        assert_eq!(records(&path).len(), 6);
        assert_eq!(writer.append(None, None, b"again").unwrap(), 6);
        drop(writer);
        assert_eq!(records(&path).len(), 7);
    }
    // Padding that is not zero is no chunk.
    let (_folder, path) = folder();
    let mut bytes = sound.clone();
    *bytes.last_mut().unwrap() = 1;
    fs::write(&path, &bytes).unwrap();
    let Err(Error::Damage(damage)) = Writer::open(&path, &zero) else {
        panic!("torn")
    };
    assert_eq!(
        (damage.offset, damage.cause),
        (last.end, Cause::NonzeroPadding)
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// A chunk whose payload is damaged, or that is not where it was, is not one that was being written.
#[test]
fn only_a_chunk_that_was_not_written_to_its_end_is_cut_off() {
    let zero = append().set("zero_torn_tail", true);
    let (one, many) = (segment(1, 30, 50), segment(20, 3, 100));
    let flipped = |sound: &[u8], at: usize| {
        let mut bytes = sound.to_vec();
        bytes[at] ^= 4;
        bytes
    };
    let shifted = [&many[..200], &many[203..]].concat();
    let text = b"my only copy\n".repeat(20);
    for bytes in [
        flipped(&one, 40),
        flipped(&many, many.len() - 100),
        shifted,
        text[..12].to_vec(),
        text,
    ] {
        let (_folder, path) = folder();
        fs::write(&path, &bytes).unwrap();
        let refused = Writer::open(&path, &zero).map(drop);
        assert!(matches!(refused, Err(Error::Damage(_))), "{refused:?}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    // The first chunk, as far as it was written.
    for len in [5, 60] {
        let (folder, path) = folder();
        fs::write(&path, &one[..len]).unwrap();
        Writer::open(&path, &zero).unwrap();
        assert!(fs::read(&path).unwrap().is_empty());
        let kept = folder.path().join("log.chunks.0.quarantine");
        assert_eq!(fs::read(kept).unwrap(), one[..len]);
    }
}

/// An index that has more items than the segment has chunks may be all that is known of what is missing.
#[test]
fn what_is_taken_from_an_index_is_kept() {
    let (folder, path) = folder();
    let mut writer = Writer::open(&path, &append().set("chunk_records", 3)).unwrap();
    for _ in 0..12 {
        writer.append(None, None, &[7; 200]).unwrap();
    }
    drop(writer);
    let (log, index) = (fs::read(&path).unwrap(), path.with_extension("index"));
    let items = fs::read(&index).unwrap();
    let (_, ledger) = scan(source(&log), &lenient()).unwrap();
    let mut chunks = ledger.iter().filter(|span| span.kind == Kind::Chunk);
    let third = usize::try_from(chunks.nth(2).unwrap().start).unwrap();
    fs::write(&path, &log[..third]).unwrap();
    let kept = folder.path().join("log.index.40.quarantine");
    let writer = Writer::open(&path, &append()).unwrap();
    assert_eq!(format::Writer::quarantined(&writer), [&kept]);
    drop(writer);
    assert_eq!(fs::read(&index).unwrap(), items[..40]);
    assert_eq!(fs::read(kept).unwrap(), items[40..]);
    let writer = Writer::open(&path, &append()).unwrap();
    assert!(format::Writer::quarantined(&writer).is_empty());
}

#[test]
fn padding_that_is_missing_is_written_with_the_next_chunk() {
    let sound = segment(2, 3, 50);
    let (_, ledger) = scan(source(&sound), &lenient()).unwrap();
    let end = usize::try_from(ledger[2].end).unwrap();
    for (len, unused) in [(end, 0), (end + 3, 0), (end, 3), (sound.len(), 500)] {
        let (_folder, path) = folder();
        let mut bytes = sound[..len].to_vec();
        bytes.resize(len + unused, 0);
        fs::write(&path, &bytes).unwrap();
        let mut writer = Writer::open(&path, &append()).unwrap();
        let position = format::Writer::position(&writer).unwrap();
        assert_eq!(position, sound.len() as u64);
        writer.append(None, None, b"more").unwrap();
        drop(writer);
        let records = records(&path);
        assert_eq!((records.len(), records[6].position), (7, position));
    }
}

#[test]
fn damage_at_the_end_other_than_a_torn_tail_is_never_overwritten() {
    let sound = segment(2, 3, 50);
    let zero = append().set("zero_torn_tail", true);
    let mut duplicate = sound.clone();
    duplicate.extend_from_slice(&sound[..sound.len() / 2]);
    let mut flags = sound.clone();
    flags.extend(header(1, 0, 9, 0));
    // It looks torn, but a verified record follows.
    let mut both = sound.clone();
    push_chunk(&mut both, 6, 1, b"no frame");
    let torn_at = sound.len() as u64;
    both.extend(header(1, 0, 9, 0));
    let mut nothing = noise(1, 500);
    nothing[0] = 0;
    for (bytes, cause, offset) in [
        (duplicate, Cause::OutOfOrder, torn_at),
        (flags, Cause::UnsupportedFlags, torn_at),
        (both.clone(), Cause::PayloadInvalid, torn_at),
        (nothing, Cause::HeaderChecksumMismatch, 0),
    ] {
        let (_folder, path) = folder();
        fs::write(&path, &bytes).unwrap();
        let Err(Error::Damage(damage)) = Writer::open(&path, &zero) else {
            panic!("{cause}")
        };
        assert_eq!((damage.cause, damage.offset), (cause, offset));
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert!(!path.with_extension("index").exists());
    }
    let (_folder, path) = folder();
    fs::write(&path, &both).unwrap();
    let Err(Error::Damage(damage)) = Writer::open(&path, &append()) else {
        panic!("both")
    };
    assert_eq!(
        damage.offset, torn_at,
        "the first, where none is to be cut off"
    );
}

#[test]
fn damage_followed_by_good_chunks_does_not_prevent_appending() {
    let (_folder, path) = folder();
    let mut bytes = segment(3, 3, 50);
    bytes[40] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut writer = Writer::open(&path, &append()).unwrap();
    assert!(!writer.found().unwrap().is_sound());
    assert_eq!(writer.append(None, None, b"more").unwrap(), 9);
    drop(writer);
    assert_index(&path);
    let bytes = fs::read(&path).unwrap();
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!((records.len(), ledger[0].kind), (7, Kind::Corrupt));
    assert_eq!(strict_error(source(&bytes), &lenient()).unwrap().offset, 0);
}

#[test]
fn chunks_without_records_have_no_item() {
    let (_folder, path) = folder();
    let mut bytes = segment(1, 3, 10);
    push_records::<&[u8]>(&mut bytes, 3, &[]);
    push_records(&mut bytes, 3, &[(0, b"three")]);
    fs::write(&path, &bytes).unwrap();
    let writer = Writer::open(&path, &append()).unwrap();
    assert_eq!(format::Writer::last(&writer), Some(RecordId::from(3)));
    drop(writer);
    assert_eq!(records(&path).len(), 4);
    assert_eq!(
        fs::metadata(path.with_extension("index")).unwrap().len(),
        40
    );
}
