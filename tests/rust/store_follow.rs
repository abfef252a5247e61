//! Followers of a log where segments of it are removed, damaged or replaced: an error that says which, or past damage what comes after.

use std::fs;
use std::path::{Path, PathBuf};

use seglake::format::Options;
use seglake::store::{LogOptions, LogReader, Retention, SegmentLog, Tail, TailFrom};
use seglake::verbs::{self, ProtectOptions, RepairOptions};
use seglake::{Error, Result};

fn open(path: &Path) -> SegmentLog {
    SegmentLog::open(path, LogOptions::default().seal(false)).unwrap()
}

fn write(log: &SegmentLog, numbers: std::ops::Range<usize>) {
    for number in numbers {
        log.write(b"type", number.to_string().as_bytes()).unwrap();
    }
}

/// A log whose segments have two records each, but for the last, which has one.
fn three(path: &Path) -> SegmentLog {
    let log = open(path);
    for first in [0, 2] {
        write(&log, first..first + 2);
        log.roll().unwrap();
    }
    write(&log, 4..5);
    log
}

fn segments(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|own| own == "active"));
    paths.sort();
    paths
}

fn follow(path: &Path, strict: bool) -> Tail {
    let options = Options::default().strict(strict);
    let reader = LogReader::open(path, options).unwrap();
    reader.tail(TailFrom::Start).unwrap()
}

/// The records that are there now.
fn take(tail: &mut Tail) -> Result<Vec<usize>> {
    let mut numbers = Vec::new();
    while let Some(record) = tail.poll()? {
        numbers.push(String::from_utf8_lossy(record.value()).parse().unwrap());
    }
    Ok(numbers)
}

fn skipped(tail: &mut Tail) -> Vec<String> {
    let skipped = tail.take_skipped().into_iter();
    skipped.map(|own| own.to_string()).collect()
}

/// A repair puts another file in its place, to which the next writer appends.
#[test]
fn a_segment_that_was_repaired_is_followed_in_its_new_file() {
    for strict in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = open(&path);
        write(&log, 0..2);
        let mut tail = follow(&path, strict);
        assert_eq!(take(&mut tail).unwrap(), [0, 1]);
        log.close().unwrap();
        let active = segments(&path).remove(0);
        let (options, how) = (Options::default(), ProtectOptions::default());
        verbs::protect(&active, &options, &how, |_| Ok(())).unwrap();
        let mut bytes = fs::read(&active).unwrap();
        bytes[25] ^= 1;
        fs::write(&active, bytes).unwrap();
        let how = RepairOptions::default().force(true);
        verbs::repair(&active, &options, &how, |_| Ok(())).unwrap();
        let log = open(&path);
        write(&log, 2..4);
        assert_eq!(take(&mut tail).unwrap(), [2, 3]);
        assert_eq!(skipped(&mut tail), [""; 0]);
        write(&log, 4..5);
        assert_eq!(take(&mut tail).unwrap(), [4]);
        log.close().unwrap();
    }
}

#[test]
fn damage_is_passed_over_by_those_who_want_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = three(&path);
    let damaged = segments(&path).remove(0);
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[20] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let mut strict = follow(&path, true);
    for _ in 0..2 {
        assert!(matches!(strict.poll(), Err(Error::Damage(_))));
    }
    let mut tail = follow(&path, false);
    assert_eq!(take(&mut tail).unwrap(), [1, 2, 3, 4]);
    let told = skipped(&mut tail);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with(damaged.to_str().unwrap()), "{told:?}");
    assert!(
        told[0].contains("checksum_mismatch from offset 0"),
        "{told:?}"
    );
    write(&log, 5..6);
    assert_eq!(take(&mut tail).unwrap(), [5]);
    assert_eq!(skipped(&mut tail), [""; 0]);
}

#[test]
fn a_segment_that_is_missing_or_another_is_named_or_passed_over() {
    for is_missing in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = three(&path);
        let files = segments(&path);
        let mut begun = [true, false].map(|strict| follow(&path, strict));
        let begun_with = begun.each_mut().map(|tail| tail.poll().unwrap().is_some());
        assert_eq!(begun_with, [true; 2]);
        match is_missing {
            true => fs::remove_file(&files[1]).unwrap(),
            false => fs::copy(&files[0], &files[1]).map(drop).unwrap(),
        }
        let [mut strict, mut tail] = begun;
        assert_eq!(take(&mut tail).unwrap(), [1, 4]);
        let told = skipped(&mut tail);
        assert_eq!(told.len(), 1);
        let words = if is_missing {
            "segment 2 is missing"
        } else {
            "another segment"
        };
        assert!(told[0].contains(words), "{told:?}");
        for _ in 0..2 {
            let refused = loop {
                match strict.poll() {
                    Ok(record) => assert!(record.is_some()),
                    Err(error) => break error,
                }
            };
            let words = if is_missing {
                "expected segment 2"
            } else {
                "another segment"
            };
            assert!(refused.to_string().contains(words), "{refused}");
        }
        // Likewise those who read all of it.
        let reader = LogReader::open(&path, Options::default().strict(false)).unwrap();
        assert_eq!(reader.records().unwrap().count(), 3);
        let told = reader.take_skipped();
        assert_eq!(told.len(), 1);
        assert!(told[0].reason.contains(words), "{told:?}");
        assert_eq!(reader.take_skipped(), []);
        drop(log);
        // And of a log of which the mark is left.
        segments(&path)
            .iter()
            .for_each(|file| fs::remove_file(file).unwrap());
        assert_eq!(reader.records().unwrap().count(), 0);
        assert_eq!(reader.take_skipped()[0].reason, "segment 3 is missing");
    }
}

#[test]
fn what_retention_removed_is_an_error_or_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    write(&log, 0..2);
    let [mut strict, mut tail] = [true, false].map(|strict| follow(&path, strict));
    for number in 2..4 {
        log.roll().unwrap();
        write(&log, number..number + 1);
    }
    log.wait_sealed().unwrap();
    let removed = log.retain(&Retention::default().bytes(0)).unwrap();
    assert_eq!(removed.len(), 2);
    for _ in 0..2 {
        let gone = take(&mut strict);
        assert!(matches!(gone, Err(Error::SegmentGone { sequence: 1, .. })));
    }
    assert_eq!(take(&mut tail).unwrap(), [3]);
    let told = skipped(&mut tail);
    assert!(told[0].contains("segments 1 to 2 are missing"), "{told:?}");
}

#[test]
fn another_log_under_the_path_is_noticed() {
    for is_moved in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        three(&path).close().unwrap();
        let [mut strict, mut tail] = [true, false].map(|strict| follow(&path, strict));
        assert_eq!(take(&mut strict).unwrap().len(), 5);
        assert_eq!(take(&mut tail).unwrap().len(), 5);
        match is_moved {
            true => fs::rename(&path, folder.path().join("before")).unwrap(),
            // The folder stays, and gets other files.
            false => {
                for entry in fs::read_dir(&path).unwrap() {
                    fs::remove_file(entry.unwrap().path()).unwrap();
                }
            }
        }
        let log = open(&path);
        write(&log, 5..7);
        for _ in 0..2 {
            let replaced = take(&mut strict);
            assert!(
                matches!(replaced, Err(Error::Replaced { .. })),
                "{is_moved}"
            );
        }
        assert_eq!(take(&mut tail).unwrap(), [5, 6], "{is_moved}");
        assert!(skipped(&mut tail)[0].contains("was replaced"));
        write(&log, 7..8);
        assert_eq!(take(&mut tail).unwrap(), [7]);
    }
}
