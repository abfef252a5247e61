//! A snapshot of a log is a log of its own, also if it is made beside a writer.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use seglake::Error;
use seglake::format::Options;
use seglake::store::{LogOptions, LogReader, Retention, SegmentKind, SegmentLog};

fn value(number: usize) -> Vec<u8> {
    format!("value {number}").into_bytes()
}

fn values(folder: &Path) -> Vec<Vec<u8>> {
    let records = LogReader::open(folder, Options::default())
        .unwrap()
        .records()
        .unwrap();
    records
        .map(|record| record.unwrap().value().to_vec())
        .collect()
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    numbers.map(value).collect()
}

fn write(log: &SegmentLog, numbers: std::ops::Range<usize>) {
    for number in numbers {
        log.write(b"type", value(number)).unwrap();
    }
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into())
        .collect();
    names.sort();
    names
}

fn snapshot(log: &Path, to: &Path) {
    LogReader::open(log, Options::default())
        .unwrap()
        .snapshot(to)
        .unwrap();
}

#[test]
fn a_snapshot_is_a_log_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("log"), folder.path().join("taken"));
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    write(&log, 0..3);
    log.roll().unwrap();
    write(&log, 3..5);
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    write(&log, 5..7);
    snapshot(&path, &taken);
    write(&log, 7..9);
    assert_eq!(values(&taken), numbered(0..7));
    assert_eq!(names(folder.path()).len(), 2); // nothing temporary

    // Each goes on by itself.
    let other = SegmentLog::open(&taken, LogOptions::default()).unwrap();
    assert_eq!(other.recovered(), []);
    write(&other, 100..102);
    other.roll().unwrap();
    other.wait_sealed().unwrap();
    other.close().unwrap();
    let expected = [numbered(0..7), numbered(100..102)].concat();
    assert_eq!(values(&taken), expected);
    let retention = Retention::default().bytes(0);
    log.roll().unwrap();
    write(&log, 9..10);
    log.wait_sealed().unwrap();
    assert_eq!(log.retain(&retention).unwrap().len(), 3);
    assert_eq!(values(&taken), expected);
    assert_eq!(values(&path), numbered(9..10));
    log.close().unwrap();
}

#[cfg(unix)]
#[test]
fn sealed_segments_are_linked_and_the_newest_is_copied() {
    use std::os::unix::fs::MetadataExt;

    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("log"), folder.path().join("taken"));
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    write(&log, 0..3);
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    write(&log, 3..4);
    snapshot(&path, &taken);
    for segment in LogReader::open(&taken, Options::default())
        .unwrap()
        .segments()
        .unwrap()
    {
        let own = fs::metadata(&segment.path).unwrap();
        let its = fs::metadata(path.join(segment.path.file_name().unwrap())).unwrap();
        let is_linked = own.ino() == its.ino();
        assert_eq!(is_linked, segment.kind == SegmentKind::Sealed);
        if !is_linked {
            assert!(own.len() < its.len()); // without the zeros ahead
        }
    }
}

/// A link of a link would be broken where the snapshot is elsewhere, and no copy where it is not.
#[cfg(unix)]
#[test]
fn a_sealed_segment_that_is_a_link_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("log"), folder.path().join("taken"));
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    write(&log, 0..3);
    log.roll().unwrap();
    log.close().unwrap();
    let [segment] = &LogReader::open(&path, Options::default())
        .unwrap()
        .segments()
        .unwrap()[..]
    else {
        panic!()
    };
    fs::rename(&segment.path, folder.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", &segment.path).unwrap();
    assert_eq!(values(&path), numbered(0..3));
    snapshot(&path, &taken);
    fs::remove_file(folder.path().join("elsewhere")).unwrap();
    assert_eq!(values(&taken), numbered(0..3));
}

/// Nobody writes to such a pipe, so that opening it would wait for ever.
#[cfg(unix)]
#[test]
fn a_pipe_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, LogOptions::default().seal(false)).unwrap();
    write(&log, 0..3);
    log.roll().unwrap();
    write(&log, 3..5);
    log.close().unwrap();
    let segments = LogReader::open(&path, Options::default())
        .unwrap()
        .segments()
        .unwrap();
    let name = segments[0].path.file_stem().unwrap().to_str().unwrap();
    for name in [
        format!("{name}.active"),
        format!("_{name}.frozen"),
        format!("_{name}.end"),
    ] {
        let (pipe, kept) = (path.join(name), folder.path().join("kept"));
        let is_there = fs::rename(&pipe, &kept).is_ok();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let reader = LogReader::open(&path, Options::default()).unwrap();
        let refused = reader.snapshot(folder.path().join("taken")).unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.contains("not a regular file") || refused.contains("found a pipe"),
            "{refused}"
        );
        fs::remove_file(&pipe).unwrap();
        if is_there {
            fs::rename(&kept, &pipe).unwrap();
        }
    }
}

#[test]
fn complete_and_frozen_segments_are_taken_along() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("log"), folder.path().join("taken"));
    let log = SegmentLog::open(&path, LogOptions::default().seal(false)).unwrap();
    write(&log, 0..4);
    log.roll().unwrap();
    write(&log, 4..5);
    log.close().unwrap();
    snapshot(&path, &taken);
    assert_eq!(values(&taken), numbered(0..5));
    assert_eq!(names(&path).len(), names(&taken).len() + 1); // `_lock`
    fs::remove_dir_all(&taken).unwrap();

    // Damaged, so that sealing freezes it.
    let first = LogReader::open(&path, Options::default())
        .unwrap()
        .segments()
        .unwrap()[0]
        .clone();
    let mut bytes = fs::read(&first.path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&first.path, &bytes).unwrap();
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    log.wait_sealed().unwrap();
    snapshot(&path, &taken);
    let segments = LogReader::open(&taken, Options::default())
        .unwrap()
        .segments()
        .unwrap();
    assert!(segments[0].is_frozen && !segments[1].is_frozen);
    let mut records = LogReader::open(&taken, Options::default())
        .unwrap()
        .records()
        .unwrap();
    let found: Vec<_> = records.by_ref().take(3).map(Result::unwrap).collect();
    assert_eq!(found[2].value(), value(2));
    assert!(matches!(records.next(), Some(Err(Error::Damage(_)))));
}

/// As after a loss of power between the end of a segment and the sync of the mark.
#[test]
fn a_snapshot_up_to_a_mark_that_lags_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("log"), folder.path().join("taken"));
    let log = SegmentLog::open(&path, LogOptions::default().seal(false)).unwrap();
    write(&log, 0..1);
    let mark = fs::read(path.join("_mark")).unwrap();
    write(&log, 1..3);
    log.roll().unwrap();
    log.close().unwrap();
    fs::write(path.join("_mark"), mark).unwrap();
    snapshot(&path, &taken);
    assert_eq!(values(&taken), numbered(0..1));
    let log = SegmentLog::open(&taken, LogOptions::default()).unwrap();
    assert_eq!(log.recovered(), []);
    write(&log, 1..2);
    assert_eq!(values(&taken), numbered(0..2));
}

#[test]
fn nothing_is_overwritten_and_nothing_half_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    let empty = folder.path().join("empty");
    snapshot(&path, &empty);
    assert_eq!(values(&empty), numbered(0..0));
    write(&log, 0..2);
    let reader = LogReader::open(&path, Options::default()).unwrap();
    let taken = reader.snapshot(&empty).unwrap_err();
    assert!(
        matches!(&taken, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists),
        "{taken}"
    );
    assert_eq!(values(&empty), numbered(0..0));
    log.close().unwrap();

    // A mark that is lost.
    fs::remove_file(path.join("_mark")).unwrap();
    let to = folder.path().join("taken");
    let lost = LogReader::open(&path, Options::default())
        .unwrap()
        .snapshot(&to)
        .unwrap_err();
    assert!(
        matches!(&lost, Error::Format { message, .. } if message.contains("mark")),
        "{lost}"
    );
    let missing = reader.snapshot(folder.path().join("no/folder/here"));
    assert!(matches!(missing, Err(Error::Io { .. })));
    assert_eq!(names(folder.path()).len(), 2);
}

/// Tells a thread to end when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn snapshots_are_made_beside_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let options = LogOptions::default()
        .segment_bytes(400)
        .retention(Retention::default().bytes(1000));
    let log = SegmentLog::open(&path, options).unwrap();
    write(&log, 0..1);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                write(&log, number..number + 1);
            }
        });
        // Also if an assertion fails: the scope waits for the writer.
        let _ends = Ends(&is_done);
        for round in 0..30 {
            let before = LogReader::open(&path, Options::default())
                .unwrap()
                .synced()
                .unwrap()
                .unwrap()
                .uuid;
            let to = folder.path().join(format!("taken {round}"));
            snapshot(&path, &to);
            let found = values(&to);
            let number = |value: &Vec<u8>| String::from_utf8_lossy(value)[6..].parse().unwrap();
            let first: usize = number(&found[0]);
            assert_eq!(found, numbered(first..first + found.len()), "{round}");
            let after = LogReader::open(&to, Options::default())
                .unwrap()
                .synced()
                .unwrap()
                .unwrap()
                .uuid;
            assert!(after >= before);
            SegmentLog::open(&to, LogOptions::default()).unwrap();
        }
    });
    log.close().unwrap();
    assert_eq!(names(folder.path()).len(), 31);
}

/// Else readers of the folder would find each record twice.
#[test]
fn a_snapshot_inside_its_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    write(&log, 0..3);
    fs::create_dir(path.join("below")).unwrap();
    let before = names(&path);
    let reader = LogReader::open(&path, Options::default()).unwrap();
    for inside in ["taken", "below/taken", "below/../taken"] {
        let refused = reader.snapshot(path.join(inside)).unwrap_err();
        assert!(matches!(refused, Error::Usage(_)), "{refused}");
    }
    assert_eq!(names(&path), before);
    reader.snapshot(path.join("../taken")).unwrap();
}
