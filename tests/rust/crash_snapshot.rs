//! Losses of power while a snapshot of a log is made: it is there as a whole or not at all, and the log is as it was.

use std::path::Path;

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, seeds};
use crate::simulated::{Call, Done, Simulated};
use seglake::Error;
use seglake::format::Options;
use seglake::store::{LogOptions, LogReader, SegmentLog};

fn log() -> &'static Path {
    Path::new("/data/log")
}

fn taken() -> &'static Path {
    Path::new("/data/taken")
}

fn value(number: u64) -> Vec<u8> {
    format!("value {number} ").repeat(60).into_bytes()
}

/// A sealed segment, a complete one, and the newest, with two records each.
fn prepare(disk: &Simulated) {
    for seal in [true, false] {
        let options = LogOptions::default().seal(seal).disk(disk.disk());
        let log = SegmentLog::open(log(), options).unwrap();
        let numbers = if seal { 0..2 } else { 2..6 };
        for number in numbers {
            log.write(b"type", value(number)).unwrap();
            if number % 2 == 1 && number < 5 {
                log.roll().unwrap();
            }
        }
        log.close().unwrap();
    }
    disk.settle();
}

fn reader(disk: &Simulated, path: &Path) -> seglake::Result<LogReader> {
    LogReader::open(path, Options::default().disk(disk.disk()))
}

fn work(disk: &Simulated, _: &mut Acknowledged) -> seglake::Result<()> {
    reader(disk, log())?.snapshot(taken())
}

fn check(aftermath: Aftermath<'_>) -> Checked {
    let Aftermath {
        disk, acknowledged, ..
    } = aftermath;
    let said = |error: Error| error.to_string();
    let is_there = disk.files().keys().any(|name| name.starts_with("taken/"));
    if acknowledged.all && !is_there {
        return Err("there is no snapshot".to_owned());
    }
    for path in [log(), taken()] {
        if path == taken() && !is_there {
            continue;
        }
        let records = reader(&disk, path).map_err(said)?.records().map_err(said)?;
        let mut values = Vec::new();
        for record in records {
            values.push(record.map_err(said)?.value().to_vec());
        }
        if values != (0..6).map(value).collect::<Vec<_>>() {
            return Err(format!("{}: {} records", path.display(), values.len()));
        }
    }
    Ok(())
}

fn crashes(test: impl Fn(&Crashes<'_>)) {
    test(&Crashes {
        name: "a snapshot".to_owned(),
        prepare: &prepare,
        work: &work,
        check: &check,
    });
}

#[test]
fn a_snapshot_is_whole_or_not_there() {
    crashes(|crashes| crashes.crash(seeds(20)));
}

#[test]
fn a_snapshot_is_whole_or_not_there_after_errors() {
    crashes(|crashes| crashes.trouble(seeds(4)));
}

/// An end that is lost is unknown. Of the names within the folder, one sync of the last ones is enough for all.
fn is_needed(calls: &[Done], at: usize) -> bool {
    let path = calls[at].path.to_str().unwrap();
    let is_again = calls[at].call == Call::SyncFolder
        && calls[at + 1..]
            .iter()
            .any(|own| own.call == Call::SyncFolder && own.path == calls[at].path);
    !path.contains(".end") && !path.contains("_mark") && !is_again
}

#[test]
fn no_sync_can_be_left_out() {
    crashes(|crashes| {
        assert!(crashes.mutate(seeds(20), is_needed) > 4);
    });
}
