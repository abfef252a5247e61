//! Verifying one file, and reading batches of it, by two threads, for each format whose files can be divided. It is
//! compared with two threads that read a file of half the size each, so that they share nothing, and with one thread.
//! The clock is wall time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{
    Format, Options, Value, WriteOptions, Writer, chunked, create, sealed, tenant,
};
use seglake::source::{FileSource, open_regular};
use seglake::verbs::verify_parallel;

use crate::compare::{Beside, Clock, Comparison, Work};
use crate::logs;
use crate::messages::{Lengths, Segment, TYPE};

/// How many bytes of records a file has.
const FILE_BYTES: usize = 256 << 20;
/// The share of two files by two threads to reach.
const TARGET: f64 = 0.85;

pub(crate) fn run(comparison: &mut Comparison) {
    comparison.clock(Clock::Wall);
    let folder = tempfile::tempdir().unwrap();
    for format in [&sealed::FORMAT, &tenant::FORMAT] {
        let fill = |writer: &mut dyn Writer, bytes| {
            write_records(writer, &Segment::active(Lengths::Each(128), bytes));
        };
        Files::new(folder.path(), format, fill).compare(comparison);
    }
    let fill = |writer: &mut dyn Writer, bytes| {
        for (timestamp, body) in logs::lines(120, bytes).iter() {
            let fields = [
                Value::Null,
                Value::Timestamp(timestamp),
                Value::Binary(body),
            ];
            writer.write(&fields).unwrap();
        }
    };
    Files::new(folder.path(), &chunked::FORMAT, fill).compare(comparison);
    comparison.clock(Clock::Processor);
}

/// Files of one format.
struct Files {
    format: &'static Format,
    whole: PathBuf,
    /// Two files of half the size.
    halves: [PathBuf; 2],
}

impl Files {
    /// `fill` writes this many bytes of records.
    fn new(folder: &Path, format: &'static Format, fill: impl Fn(&mut dyn Writer, usize)) -> Self {
        let file = |name: &str, bytes| {
            let path = folder.join(format!("{name}.{}", format.extension));
            let mut writer = create(format, &path, &WriteOptions::default()).unwrap();
            fill(&mut *writer, bytes);
            writer.close().unwrap();
            path
        };
        Self {
            format,
            whole: file("whole", FILE_BYTES),
            halves: ["one", "two"].map(|name| file(name, FILE_BYTES / 2)),
        }
    }

    fn compare(&self, comparison: &mut Comparison) {
        self.compare_each(comparison, "verify", verify);
        let batches = |path: &Path, threads| batches(self.format, path, threads);
        self.compare_each(comparison, "Arrow batches of", batches);
    }

    fn compare_each(
        &self,
        comparison: &mut Comparison,
        verb: &str,
        read: impl Fn(&Path, usize) + Sync,
    ) {
        let name = format!("{verb} a {} file, two threads", self.format.name);
        let work = Work::Bytes(FILE_BYTES);
        comparison.run(
            &name,
            Beside::Limit("two threads, half the records each"),
            work,
            TARGET,
            || read(&self.whole, 2),
            || {
                std::thread::scope(|scope| {
                    for half in &self.halves {
                        scope.spawn(|| read(half, 1));
                    }
                });
            },
        );
        comparison.run(
            &name,
            Beside::Itself("one thread"),
            work,
            None,
            || read(&self.whole, 2),
            || read(&self.whole, 1),
        );
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in [&self.whole].into_iter().chain(&self.halves) {
            // A failure is ignored: the folder is removed later.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn source(path: &Path) -> Arc<FileSource> {
    Arc::new(FileSource::new(open_regular(path).unwrap(), path).unwrap())
}

fn verify(path: &Path, threads: usize) {
    let report = verify_parallel(source(path), &Options::default(), threads, |_| Ok(()));
    assert!(report.unwrap().is_sound());
}

fn batches(format: &'static Format, path: &Path, threads: usize) {
    let options = Options::default();
    let selection = Selection::new(format, &options, None, UuidType::Fixed).unwrap();
    let batches = Batches::threaded(
        source(path),
        &options,
        selection,
        Limits::default(),
        threads,
    );
    let rows: usize = batches
        .unwrap()
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    assert!(rows > 0);
}

/// Writes the records of an active segment to a file of another format, in 64 partitions if it has them.
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
