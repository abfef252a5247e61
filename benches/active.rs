//! Benches of the active format: verifying, Arrow batches and appending, each compared with its limit. They use
//! criterion, which compares each run with the last one: `make criterion`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

use std::hint::black_box;
use std::time::Duration;

// The messages of the ratios.
#[allow(dead_code, reason = "it serves the ratios too")]
#[path = "ratios/src/messages.rs"]
mod messages;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use seglake::checksum::{Key, hash};
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Options, WriteOptions, Writer as _, active};
use seglake::verbs::verify;
use uuid::Uuid;

use messages::{Lengths, Segment, TYPE};

/// Enough to be out of every cache but the last.
const SEGMENT_BYTES: usize = 16 << 20;

fn segments() -> Vec<(&'static str, Segment)> {
    Lengths::ALL
        .into_iter()
        .map(|(name, lengths)| (name, Segment::active(lengths, SEGMENT_BYTES)))
        .collect()
}

fn group<'a>(
    criterion: &'a mut Criterion,
    what: &str,
    (name, segment): &(&str, Segment),
) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(format!("{what} {name}"));
    group.throughput(Throughput::Bytes(segment.bytes.len() as u64));
    group
}

/// Walking and verifying, against only hashing the same messages one by one.
fn bench_verify(criterion: &mut Criterion, named: &(&str, Segment)) {
    let (mut group, segment) = (group(criterion, "verify", named), &named.1);
    let source = segment.source();
    group.bench_function("seglake", |bencher| {
        bencher.iter(|| {
            let report = verify(source.clone(), &Options::default(), |_| Ok(())).unwrap();
            assert_eq!(report.summary.records, segment.records.len() as u64);
        });
    });
    group.bench_function("one by one", |bencher| {
        bencher.iter(|| {
            let hashes = segment
                .records
                .iter()
                .map(|(start, len)| hash(&Key::DEFAULT, &segment.bytes[*start..*start + *len]));
            black_box(hashes.fold(0, |all, hash| all ^ hash))
        });
    });
    group.finish();
}

/// Verified records as Arrow batches of all columns, against copying the file's bytes.
fn bench_arrow(criterion: &mut Criterion, named: &(&str, Segment)) {
    let (mut group, segment) = (group(criterion, "arrow", named), &named.1);
    let source = segment.source();
    let selection =
        Selection::new(&active::FORMAT, &Options::default(), None, UuidType::Fixed).unwrap();
    group.bench_function("seglake", |bencher| {
        bencher.iter(|| {
            let batches = Batches::new(
                source.clone(),
                &Options::default(),
                selection.clone(),
                Limits::default(),
            )
            .unwrap();
            let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(rows, segment.records.len());
        });
    });
    group.bench_function("memcpy", |bencher| {
        bencher.iter(|| black_box(segment.bytes.as_slice().to_vec()))
    });
    group.finish();
}

/// Encoding and checksumming records into a buffer, against only copying them there.
fn bench_encode(criterion: &mut Criterion, named: &(&str, Segment)) {
    let (mut group, segment) = (group(criterion, "encode", named), &named.1);
    let mut out = Vec::with_capacity(segment.bytes.len());
    let value_start = 16 + 1 + TYPE.len() + 4;
    group.bench_function("seglake", |bencher| {
        bencher.iter(|| {
            out.clear();
            for (start, len) in &segment.records {
                let record = &segment.bytes[*start..*start + *len];
                let uuid = record[..16].try_into().unwrap();
                active::encode(&mut out, &Key::DEFAULT, uuid, TYPE, &record[value_start..])
                    .unwrap();
            }
            assert_eq!(out.len(), segment.bytes.len());
        });
    });
    group.bench_function("memcpy", |bencher| {
        bencher.iter(|| {
            out.clear();
            for (start, len) in &segment.records {
                out.extend_from_slice(&segment.bytes[*start..*start + *len + 8]);
            }
            black_box(out.len())
        });
    });
    group.finish();
}

/// Appending to a file, against writing the same bytes to one in the same pieces.
fn bench_append(criterion: &mut Criterion, named: &(&str, Segment)) {
    let (mut group, segment) = (group(criterion, "append", named), &named.1);
    let folder = tempfile::tempdir().unwrap();
    let value_start = 16 + 1 + TYPE.len() + 4;
    group.bench_function("seglake", |bencher| {
        bencher.iter(|| {
            let path = folder.path().join("appended.active");
            let _ = std::fs::remove_file(&path);
            let mut writer = active::Writer::open(&path, &WriteOptions::default()).unwrap();
            for (start, len) in &segment.records {
                let record = &segment.bytes[*start..*start + *len];
                let uuid = Uuid::from_slice(&record[..16]).unwrap();
                writer.append(&uuid, TYPE, &record[value_start..]).unwrap();
            }
            writer.close().unwrap();
        });
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| {
            let path = folder.path().join("written.active");
            let _ = std::fs::remove_file(&path);
            let mut file = std::fs::File::create(&path).unwrap();
            for piece in segment.bytes.chunks(1 << 20) {
                std::io::Write::write_all(&mut file, piece).unwrap();
            }
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for segment in &segments() {
        bench_verify(&mut criterion, segment);
        bench_arrow(&mut criterion, segment);
        bench_encode(&mut criterion, segment);
        bench_append(&mut criterion, segment);
    }
    criterion.final_summary();
}
