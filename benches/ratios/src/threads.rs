//! Verifying one file, and batches of it, by two threads, beside one, by the time that passes: of each format whose files have
//! parts.
//!
//! In front of that, what two threads gain on this machine at all: where each works in its own cache, and where both copy to and
//! from the memory that they share.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use seglake::checksum::{Key, hash_many};
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{
    Format, Options, Value, WriteOptions, Writer, chunked, create, sealed, tenant,
};
use seglake::source::{FileSource, open_regular};
use seglake::verbs::verify_parallel;

use crate::compare::{Clock, Comparison, Work};
use crate::logs;
use crate::messages::{Lengths, Segment, TYPE};

/// How many bytes of records a file has.
const FILE_BYTES: usize = 256 << 20;
/// What fits into a core's own cache, with room to spare.
const NEAR_BYTES: usize = 256 << 10;
/// As much as a batch has by default.
const FAR_BYTES: usize = 8 << 20;
/// What each thread works through where there is no file.
const CONTROL_BYTES: usize = 256 << 20;
/// The ratio to reach.
const TARGET: f64 = 1.8;

pub(crate) fn run(comparison: &mut Comparison) {
    comparison.clock(Clock::Wall);
    limits(comparison);
    let folder = tempfile::tempdir().unwrap();
    let segment = Segment::active(Lengths::Each(128), FILE_BYTES);
    for format in [&sealed::FORMAT, &tenant::FORMAT] {
        file(comparison, folder.path(), format, FILE_BYTES, |writer| {
            write_records(writer, &segment);
        });
    }
    let lines = logs::lines(120, FILE_BYTES);
    file(
        comparison,
        folder.path(),
        &chunked::FORMAT,
        FILE_BYTES,
        |writer| {
            for (timestamp, body) in lines.iter() {
                let fields = [
                    Value::Null,
                    Value::Timestamp(timestamp),
                    Value::Binary(body),
                ];
                writer.write(&fields).unwrap();
            }
        },
    );
    comparison.clock(Clock::Processor);
}

/// What two threads gain where nothing holds them up but the machine.
fn limits(comparison: &mut Comparison) {
    let near = Segment::active(Lengths::Each(128), NEAR_BYTES);
    let hash = || {
        let mut hashes = Vec::new();
        for _ in 0..CONTROL_BYTES / NEAR_BYTES {
            hash_many(&Key::DEFAULT, &near.bytes, &near.records, &mut hashes);
            black_box(&hashes);
        }
    };
    let copy = || {
        let (from, mut to) = (vec![1_u8; FAR_BYTES], vec![2_u8; FAR_BYTES]);
        for _ in 0..CONTROL_BYTES / FAR_BYTES {
            to.copy_from_slice(black_box(&from));
            black_box(&to);
        }
    };
    let mut control = |name: &str, work: &(dyn Fn() + Sync)| {
        let each = |threads| {
            std::thread::scope(|scope| {
                (0..threads).for_each(|_| drop(scope.spawn(work)));
            });
        };
        comparison.run_each(
            format!("{name}, two threads"),
            "one thread",
            [2, 1].map(|threads| Work::Bytes(threads * CONTROL_BYTES)),
            None,
            || each(2),
            || each(1),
        );
    };
    control("hashing 128 B in the second cache", &hash);
    control("copying 8 MiB to 8 MiB", &copy);
}

/// A file of this format, which `fill` writes.
fn file(
    comparison: &mut Comparison,
    folder: &Path,
    format: &'static Format,
    bytes: usize,
    fill: impl FnOnce(&mut dyn Writer),
) {
    let path = folder.join(format!("threads.{}", format.extension));
    let mut writer = create(format, &path, &WriteOptions::default()).unwrap();
    fill(&mut *writer);
    writer.close().unwrap();
    let source = || Arc::new(FileSource::new(open_regular(&path).unwrap(), &path).unwrap());
    let check = |threads| {
        let report = verify_parallel(source(), &Options::default(), threads, |_| Ok(()));
        assert!(report.unwrap().is_sound());
    };
    comparison.run(
        format!("verifying a {} file, two threads", format.name),
        "one thread",
        Work::Bytes(bytes),
        None,
        || check(2),
        || check(1),
    );
    let read = |threads| {
        let options = Options::default();
        let selection = Selection::new(format, &options, None, UuidType::Fixed).unwrap();
        let batches = Batches::threaded(source(), &options, selection, Limits::default(), threads);
        let rows: usize = batches
            .unwrap()
            .map(|batch| batch.unwrap().num_rows())
            .sum();
        assert!(rows > 0);
    };
    comparison.run(
        format!("batches of a {} file, two threads", format.name),
        "one thread",
        Work::Bytes(bytes),
        TARGET,
        || read(2),
        || read(1),
    );
    std::fs::remove_file(&path).unwrap();
}

/// Writes the records of an active segment to a file of another format: of 64 partitions, where it has any.
fn write_records(writer: &mut dyn Writer, segment: &Segment) {
    let columns = writer.columns();
    let count = segment.records.len();
    for (place, (start, len)) in segment.records.iter().enumerate() {
        let record = &segment.bytes[*start..*start + *len];
        let body = &record[16 + 1 + TYPE.len() + 4..];
        let fields: Vec<Value<'_>> = columns
            .iter()
            .map(|column| match column.name {
                "uuid" => Value::Uuid(*record.first_chunk().unwrap()),
                "type" => Value::Text(TYPE),
                "value" => Value::Binary(body),
                "partition" => Value::Int64(i64::try_from(place * 64 / count).unwrap()),
                "tenant" => Value::Text(b"tenant"),
                _ => Value::Null,
            })
            .collect();
        writer.write(&fields).unwrap();
    }
}
