//! One thread that writes and does not wait for the disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use seglake::format::{Options, WriteOptions, Writer as _, active};
use seglake::source::{FileSource, open_regular};
use seglake::store::{Durability, NewRecord, SegmentLog};
use seglake::verbs::{SealOptions, seal};
use tempfile::TempDir;

use super::{ENDLESS, VALUE_BYTES, open};
use crate::compare::{Beside, Clock, Comparison};
use crate::messages::TYPE;

const RECORDS: usize = 150_000;
/// Fewer where each record is a call of the operating system.
const FLUSHED_RECORDS: usize = 20_000;
const BATCH_RECORDS: usize = 1_000;
const SEGMENTS: usize = 32;
const SEGMENT_BYTES: u64 = 8 << 20;
/// What a record has beside its type and value.
const FRAME_BYTES: usize = 16 + 1 + 4 + 8;
/// The records of all segments.
const ROLLED_RECORDS: usize =
    SEGMENTS * (SEGMENT_BYTES as usize / (FRAME_BYTES + TYPE.len() + VALUE_BYTES));
/// The shares of the plain writer's speed to reach.
const TARGET: f64 = 0.9;
const ROLLING_TARGET: f64 = 0.4;

const VALUE: &[u8] = &[0x5a; VALUE_BYTES];

pub(super) fn run(comparison: &mut Comparison) {
    for (name, beside, durability, records, append) in [
        (
            "one thread writes to a log, none",
            "the active writer",
            Durability::None,
            RECORDS,
            plain as fn(&mut active::Writer),
        ),
        (
            "one thread writes to a log, flush",
            "the active writer, flushed after each record",
            Durability::Flush,
            FLUSHED_RECORDS,
            flushed,
        ),
    ] {
        comparison.turns(
            name,
            Beside::Itself(beside),
            "M/s",
            TARGET,
            || (),
            || log(durability, records, write),
            || writer(records, append),
        );
    }
    comparison.turns(
        format!("one thread writes batches of {BATCH_RECORDS} to a log, none"),
        Beside::Itself("the active writer"),
        "M/s",
        TARGET,
        || (),
        || log(Durability::None, RECORDS / BATCH_RECORDS, write_batch) * BATCH_RECORDS as f64,
        || writer(RECORDS, plain),
    );
    let name = format!("one thread writes {SEGMENTS} segments that are sealed, none");
    comparison.turns(
        &name,
        Beside::Itself("the active writer, as many files"),
        "M/s",
        ROLLING_TARGET,
        || (),
        || rolled(false),
        || files(false, false),
    );
    comparison.turns(
        &name,
        Beside::Limit("the active writer, as many files, each synced"),
        "M/s",
        None,
        || (),
        || rolled(false),
        || files(true, false),
    );
    comparison.turns(
        format!("{name}, until all are sealed"),
        Beside::Limit("as many files, each synced and then sealed"),
        "M/s",
        None,
        || (),
        || rolled(true),
        || files(true, true),
    );
}

fn write(log: &SegmentLog) {
    log.write(TYPE, VALUE).unwrap();
}

fn write_batch(log: &SegmentLog) {
    let records = (0..BATCH_RECORDS).map(|_| NewRecord::new(TYPE, VALUE));
    log.write_batch(records).unwrap();
}

fn plain(writer: &mut active::Writer) {
    let uuid = writer.next_uuid().unwrap();
    writer.append(&uuid, TYPE, VALUE).unwrap();
}

fn flushed(writer: &mut active::Writer) {
    plain(writer);
    writer.flush().unwrap();
}

/// Millions of calls a second of this thread's time, of a log whose segment does not end. Opening and closing are not measured.
fn log(durability: Durability, calls: usize, write: fn(&SegmentLog)) -> f64 {
    let folder = TempDir::new().unwrap();
    let log = open(&folder.path().join("log"), durability, ENDLESS);
    let rate = rate(calls, || write(&log));
    log.close().unwrap();
    rate
}

fn writer(calls: usize, append: fn(&mut active::Writer)) -> f64 {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("segment.active");
    let mut writer = active::Writer::open(&path, &WriteOptions::default()).unwrap();
    let rate = rate(calls, || append(&mut writer));
    writer.close().unwrap();
    rate
}

fn rate(calls: usize, mut call: impl FnMut()) -> f64 {
    let begun = Clock::Processor.now();
    for _ in 0..calls {
        call();
    }
    millions(calls, (Clock::Processor.now() - begun).as_secs_f64())
}

fn millions(records: usize, seconds: f64) -> f64 {
    records as f64 / 1e6 / seconds
}

/// Millions of records a second, in wall time, until the last one is written, or until all segments are sealed.
fn rolled(is_sealed: bool) -> f64 {
    let folder = TempDir::new().unwrap();
    let log = open(&folder.path().join("log"), Durability::None, SEGMENT_BYTES);
    let begun = Instant::now();
    for _ in 0..ROLLED_RECORDS {
        write(&log);
    }
    log.roll().unwrap();
    if is_sealed {
        log.wait_sealed().unwrap();
    }
    let rate = millions(ROLLED_RECORDS, begun.elapsed().as_secs_f64());
    log.close().unwrap();
    rate
}

/// As many records in as many files.
fn files(is_synced: bool, is_sealed: bool) -> f64 {
    let folder = TempDir::new().unwrap();
    let begun = Instant::now();
    for number in 0..SEGMENTS {
        let path = folder.path().join(format!("{number}.active"));
        let mut writer = active::Writer::open(&path, &WriteOptions::default()).unwrap();
        for _ in 0..ROLLED_RECORDS / SEGMENTS {
            plain(&mut writer);
        }
        if is_synced {
            writer.sync().unwrap();
        }
        writer.close().unwrap();
        if is_sealed {
            seal_file(&path);
        }
    }
    millions(ROLLED_RECORDS, begun.elapsed().as_secs_f64())
}

fn seal_file(path: &Path) {
    let source = Arc::new(FileSource::new(open_regular(path).unwrap(), path).unwrap());
    let sealed = path.with_extension("sealed");
    let how = SealOptions::default();
    seal(source, &Options::default(), &sealed, &how, |_| Ok(())).unwrap();
    std::fs::remove_file(path).unwrap();
}
