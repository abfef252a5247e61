//! The small files of a log's folder, and what else is found there.

use std::fs;
use std::path::Path;

use seglake::store::{LogOptions, LogReader, SegmentLog};

fn open(folder: &Path) -> seglake::Result<SegmentLog> {
    SegmentLog::open(folder, LogOptions::default())
}

/// A log of two segments with one record each.
fn two_segments(folder: &Path) {
    let log = open(folder).unwrap();
    log.write(b"type", b"value 0").unwrap();
    log.roll().unwrap();
    log.write(b"type", b"value 1").unwrap();
    log.close().unwrap();
}

fn values(folder: &Path) -> Vec<Vec<u8>> {
    let records = LogReader::open(folder).unwrap().records().unwrap();
    records
        .map(|record| record.unwrap().value().to_vec())
        .collect()
}

#[test]
fn only_what_a_dead_writer_left_is_removed() {
    const RANDOM: &str = "0123456789abcdef";
    let folder = tempfile::tempdir().unwrap();
    two_segments(folder.path());
    let segments = LogReader::open(folder.path()).unwrap().segments().unwrap();
    let id = segments[0].id;
    let left = [
        format!(".{id}.sealed.{RANDOM}.tmp"),
        format!("._{id}.end.{RANDOM}.tmp"),
        format!("._{id}.frozen.{RANDOM}.tmp"),
        format!("._{id}.7.quarantine.{RANDOM}.tmp"),
    ];
    let others = [
        "notes.tmp".to_owned(),
        format!(".{id}.tmp"),
        format!(".{id}.sealed.backup.tmp"),
        format!(".{id}.active.{RANDOM}.tmp"),
        format!(".{id}.sealed.{RANDOM}.tmp.old"),
        format!("_{id}.sealed"),
        format!("_{id}.7.quarantine"),
    ];
    for name in left.iter().chain(&others) {
        fs::write(folder.path().join(name), name).unwrap();
    }
    drop(open(folder.path()).unwrap());
    for name in left {
        assert!(!folder.path().join(&name).exists(), "{name}");
    }
    for name in others {
        assert_eq!(
            fs::read(folder.path().join(&name)).unwrap(),
            name.as_bytes()
        );
    }
    assert_eq!(values(folder.path()).len(), 2);
}
