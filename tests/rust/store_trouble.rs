//! Errors of the disk while a log is sealed, retained and recovered.

use std::path::Path;

use crate::simulated::{Call, Done, Simulated, Trouble};
use seglake::faults::Opening;
use seglake::store::{LogOptions, Retention, SegmentLog};

fn folder() -> &'static Path {
    Path::new("/data/log")
}

fn options(disk: &Simulated) -> LogOptions {
    LogOptions::default().disk(disk.disk())
}

fn open(options: LogOptions) -> SegmentLog {
    SegmentLog::open(folder(), options).unwrap()
}

/// The path of the only file with this extension, from the root.
fn only(disk: &Simulated, extension: &str) -> String {
    let mut paths: Vec<_> = disk.files().into_keys().collect();
    paths.retain(|path| path.ends_with(extension));
    let [path] = &paths[..] else {
        panic!("{paths:?}")
    };
    format!("/data/{path}")
}

/// Flips a bit of a file.
fn flip(disk: &Simulated, path: &str, at: u64) {
    let file = disk.disk().open(Path::new(path), Opening::Write).unwrap();
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, at).unwrap(), 1);
    file.write_at(&[byte[0] ^ 1], at).unwrap();
}

/// Two segments, of which the second one is damaged before it is to be sealed.
fn damaged_before_it_is_sealed(disk: &Simulated) -> SegmentLog {
    let log = open(options(disk).retention(Retention::default().bytes(1)));
    log.write(b"type", b"value 0").unwrap();
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    log.write(b"type", b"value 1").unwrap();
    log.sync().unwrap();
    flip(disk, &only(disk, ".active"), 30);
    log
}

#[test]
fn what_was_frozen_is_known_though_removing_others_fails() {
    let disk = Simulated::new();
    let log = damaged_before_it_is_sealed(&disk);
    let is_removed = |own: &Done| {
        own.call == Call::Unlink
            && own
                .path
                .to_str()
                .is_some_and(|own| own.ends_with(".sealed"))
    };
    disk.trouble_at(is_removed, 0, Trouble::Broken);
    log.roll().unwrap();
    let error = log.wait_sealed().unwrap_err().to_string();
    assert!(error.contains("cannot remove"), "{error}");
    assert_eq!(log.frozen().len(), 1);
    assert!(only(&disk, ".sealed").contains("00000000000000000001-"));
    // The next segment removes what was left.
    log.write(b"type", b"value 2").unwrap();
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    assert!(only(&disk, ".sealed").contains("00000000000000000003-"));
}

#[test]
fn old_segments_are_removed_though_sealing_fails() {
    let disk = Simulated::new();
    let log = open(options(&disk).retention(Retention::default().bytes(1)));
    log.write(b"type", b"value 0").unwrap();
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    log.write(b"type", b"value 1").unwrap();
    let is_named = |own: &Done| {
        own.call == Call::Rename
            && own
                .path
                .to_str()
                .is_some_and(|own| own.contains(".sealed."))
    };
    disk.trouble_at(is_named, 0, Trouble::Broken);
    log.roll().unwrap();
    let error = log.wait_sealed().unwrap_err().to_string();
    assert!(error.contains("new file in its place"), "{error}");
    let left: Vec<_> = disk
        .files()
        .into_keys()
        .filter(|own| own.ends_with(".sealed"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}
