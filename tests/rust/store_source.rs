//! A log as files to read one by one: each listed segment gives the records of its moment, whatever becomes of its file.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use seglake::checksum::Key;
use seglake::format::{Options, Start, Step, Value, Walk};
use seglake::ledger::{Kind, Span};
use seglake::store::{
    ListedLog, ListedSegment, LogOptions, OpenedSegment, SegmentKind, SegmentLog, is_log_name,
};
use seglake::{Error, Result};

fn log(path: &Path) -> SegmentLog {
    SegmentLog::open(path, LogOptions::default()).unwrap()
}

fn write(log: &SegmentLog, numbers: std::ops::Range<usize>) {
    for number in numbers {
        log.write(b"type", number.to_string().as_bytes()).unwrap();
    }
}

fn listed(path: &Path) -> ListedLog {
    ListedLog::read(path, &Options::default()).unwrap()
}

fn walk(segment: &ListedSegment, strict: bool) -> Result<(Vec<usize>, Vec<Span>)> {
    let OpenedSegment {
        source,
        format,
        filter,
        ..
    } = segment.open(&Options::default())?;
    let options = Options::default()
        .format(format)
        .filter(filter)
        .strict(strict);
    let mut walk: Box<dyn Walk> =
        seglake::format::open(Arc::clone(&source), &options, Start::Beginning)?;
    let (mut numbers, mut spans) = (Vec::new(), Vec::new());
    while walk.step()? == Step::More {
        let rows = walk.rows();
        for row in 0..rows.len() {
            let Value::Binary(value) = rows.field(row, 3) else {
                panic!("a value is bytes");
            };
            numbers.push(String::from_utf8_lossy(value).parse().unwrap());
        }
        drop(rows);
        spans.extend_from_slice(walk.spans());
    }
    Ok((numbers, spans))
}

fn numbers(segment: &ListedSegment) -> Vec<usize> {
    walk(segment, true).unwrap().0
}

fn active(path: &Path) -> PathBuf {
    let paths = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut active = paths.filter(|path| path.extension().is_some_and(|own| own == "active"));
    active.next().unwrap()
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_segment_that_is_sealed_later_gives_what_was_listed() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path());
    write(&log, 0..5);
    let before = listed(folder.path());
    write(&log, 5..9);
    let [segment] = before.segments.as_slice() else {
        panic!("one segment");
    };
    assert_eq!(segment.kind, SegmentKind::Active);
    assert_eq!(before.synced.unwrap().offset, segment.nbytes);
    assert_eq!(numbers(segment), [0, 1, 2, 3, 4]);
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    assert_eq!(
        segment.open(&Options::default()).unwrap().format.name,
        "sealed"
    );
    assert_eq!(numbers(segment), [0, 1, 2, 3, 4]);
    let after = listed(folder.path());
    assert_eq!(numbers(&after.segments[0]), (0..9).collect::<Vec<_>>());
    assert!(is_log_name("_mark") && !is_log_name("_lock"));
}

#[test]
fn an_active_segment_is_read_up_to_the_mark_and_what_is_missing_of_that_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path());
    write(&log, 0..5);
    let [segment] = listed(folder.path()).segments.try_into().unwrap();
    let (_, spans) = walk(&segment, true).unwrap();
    let [.., last] = spans.as_slice() else {
        panic!("a walk covers the file");
    };
    assert_eq!(last.end, segment.nbytes);
    let start = last.start.max(segment.nbytes - 10);
    // Zeros in front of the mark are no unused space, and neither is the end of the file.
    overwrite(&active(folder.path()), start, &[0; 10]);
    for _ in 0..2 {
        assert!(matches!(walk(&segment, true), Err(Error::Damage(_))));
        let (kept, spans) = walk(&segment, false).unwrap();
        assert_eq!(kept, [0, 1, 2, 3]);
        let last = spans.last().unwrap();
        assert_eq!((last.end, last.kind), (segment.nbytes, Kind::Corrupt));
        assert!(last.cause.is_some());
        let file = OpenOptions::new()
            .write(true)
            .open(active(folder.path()))
            .unwrap();
        file.set_len(start).unwrap();
    }
    let file = OpenOptions::new()
        .write(true)
        .open(active(folder.path()))
        .unwrap();
    file.set_len(0).unwrap();
    let Err(Error::Damage(damage)) = walk(&segment, true) else {
        panic!("no record is there");
    };
    assert_eq!(damage.offset, 0);
    assert!(damage.to_string().contains("as the synced mark says"));
    let (kept, spans) = walk(&segment, false).unwrap();
    assert!(kept.is_empty());
    assert_eq!((spans[0].start, spans[0].end), (0, segment.nbytes));
}

#[test]
fn after_what_was_synced_of_a_frozen_segment_nothing_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let writer = log(folder.path());
    write(&writer, 0..5);
    writer.close().unwrap();
    let mark = fs::read(folder.path().join("_mark")).unwrap();
    let synced = listed(folder.path()).segments[0].nbytes;
    let writer = log(folder.path());
    write(&writer, 5..10);
    writer.close().unwrap();
    fs::write(folder.path().join("_mark"), mark).unwrap();
    let file = active(folder.path());
    overwrite(&file, synced + 30, b"\xff\xff");
    write(&log(folder.path()), 10..12);
    let listed = listed(folder.path());
    let [segment, _] = listed.segments.as_slice() else {
        panic!("writing goes on in a new segment");
    };
    assert!(segment.is_frozen);
    assert_eq!(segment.bound.unwrap().offset, synced);
    for strict in [true, false] {
        let (kept, spans) = walk(segment, strict).unwrap();
        assert_eq!(kept, [0, 1, 2, 3, 4, 6, 7, 8, 9]);
        assert!(spans.iter().all(|span| span.cause.is_none()));
        let unproven = spans.iter().filter(|span| span.kind == Kind::Unproven);
        assert_eq!(
            unproven.map(|span| span.start).collect::<Vec<_>>(),
            [synced]
        );
        assert!(spans.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
    overwrite(&file, 30, b"\xff\xff");
    assert!(matches!(walk(segment, true), Err(Error::Damage(_))));
    let (kept, spans) = walk(segment, false).unwrap();
    assert_eq!(kept, [1, 2, 3, 4, 6, 7, 8, 9]);
    assert_eq!(spans.iter().filter(|span| span.is_damage()).count(), 1);
}

#[test]
fn the_key_is_the_first_that_is_the_logs() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::new(&[1; 32]);
    let options = LogOptions::default().key(key);
    write(&SegmentLog::open(folder.path(), options).unwrap(), 0..3);
    let read = |keys: Vec<Key>| ListedLog::read(folder.path(), &Options::default().keys(keys));
    let both = read(vec![Key::DEFAULT, key]).unwrap();
    assert!(both.synced.is_some());
    assert_eq!(both, read(vec![key]).unwrap());
    let Err(Error::Damage(damage)) = read(vec![Key::DEFAULT]) else {
        panic!("a wrong key is refused");
    };
    assert!(damage.wrong_key);
    assert!(matches!(read(Vec::new()), Err(Error::Usage(_))));
}

#[test]
fn a_removed_segment_says_so_and_one_without_synced_records_needs_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path());
    write(&log, 0..3);
    log.roll().unwrap();
    write(&log, 3..6);
    log.wait_sealed().unwrap();
    let before = listed(folder.path());
    log.retain(&seglake::store::Retention::default().bytes(Some(0)))
        .unwrap();
    let Err(Error::SegmentGone { sequence, .. }) = before.segments[0].open(&Options::default())
    else {
        panic!("it was removed");
    };
    assert_eq!(sequence, 1);
    log.close().unwrap();
    fs::remove_file(folder.path().join("_mark")).unwrap();
    let unproven = listed(folder.path());
    let [segment] = unproven.segments.as_slice() else {
        panic!("one segment is left");
    };
    assert_eq!((segment.nbytes, segment.is_open), (0, true));
    fs::remove_file(active(folder.path())).unwrap();
    assert!(numbers(segment).is_empty());
}

#[test]
fn a_complete_segment_has_to_reach_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let log = SegmentLog::open(folder.path(), LogOptions::default().seal(false)).unwrap();
    write(&log, 0..3);
    log.roll().unwrap();
    write(&log, 3..4);
    log.close().unwrap();
    let first = &listed(folder.path()).segments[0];
    assert_eq!(numbers(first), [0, 1, 2]);
    let bytes = fs::read(first.path()).unwrap();
    let record = bytes.len() / 3;
    for content in [
        bytes[..2 * record].to_vec(),
        [&bytes[..2 * record], &vec![0; record][..]].concat(),
    ] {
        fs::write(first.path(), content).unwrap();
        let cut = &listed(folder.path()).segments[0];
        assert!(matches!(walk(cut, true), Err(Error::Damage(_))));
        let (found, spans) = walk(cut, false).unwrap();
        assert_eq!(found, [0, 1]);
        let damaged: Vec<_> = spans.iter().filter(|span| span.is_damage()).collect();
        assert_eq!(damaged.len(), 1);
        assert_eq!(damaged[0].start, 2 * record as u64);
    }
}
