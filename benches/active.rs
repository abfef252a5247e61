//! The active format: verifying, Arrow batches and appending, each beside what bounds it. `make bench` prints the ratios.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use seglake::checksum::{Key, hash};
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Options, WriteOptions, active};
use seglake::source::{BytesSource, Source};
use seglake::verbs::verify;
use uuid::{Timestamp, Uuid};

/// Enough to be out of every cache but the last.
const SEGMENT_BYTES: usize = 16 << 20;

/// Pseudo-random numbers (xorshift64*), the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A length from a lognormal distribution of median 120 and sigma 1: the sum of twelve uniform numbers is close to normal.
    fn lognormal(&mut self) -> usize {
        let uniform = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        let normal: f64 = (0..12).map(|_| uniform(self.next())).sum::<f64>() - 6.0;
        (120.0 * normal.exp()) as usize
    }
}

struct Segment {
    name: &'static str,
    bytes: Arc<Vec<u8>>,
    /// Where each record begins, and how many bytes of it are hashed.
    records: Vec<(usize, usize)>,
}

/// A source that shares its bytes with what it is compared with.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn segments() -> Vec<Segment> {
    let mut random = Random(42);
    let mut segment = |name, value_len: &mut dyn FnMut(&mut Random) -> usize| {
        let (mut bytes, mut records, mut tick) = (Vec::new(), Vec::new(), 0x01ee_0000_0000_0000);
        while bytes.len() < SEGMENT_BYTES {
            tick += random.next() % 100_000 + 1;
            let uuid = Uuid::new_v6(Timestamp::from_gregorian_time(tick, 7), &[1, 2, 3, 4, 5, 6]);
            let value: Vec<u8> = (0..value_len(&mut random))
                .map(|_| random.next() as u8)
                .collect();
            let start = bytes.len();
            active::encode(
                &mut bytes,
                &Key::DEFAULT,
                uuid.as_bytes(),
                b"order.created",
                &value,
            )
            .unwrap();
            records.push((start, bytes.len() - 8 - start));
        }
        Segment {
            name,
            bytes: Arc::new(bytes),
            records,
        }
    };
    vec![
        segment("128 B", &mut |_| 128),
        segment("1 KiB", &mut |_| 1 << 10),
        segment("64 KiB", &mut |_| 64 << 10),
        segment("mixed", &mut Random::lognormal),
    ]
}

fn group<'a>(
    criterion: &'a mut Criterion,
    what: &str,
    segment: &Segment,
) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(format!("{what} {}", segment.name));
    group.throughput(Throughput::Bytes(segment.bytes.len() as u64));
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    group
}

/// Walking and verifying, against only hashing the same messages one by one.
fn bench_verify(criterion: &mut Criterion, segment: &Segment) {
    let mut group = group(criterion, "verify", segment);
    let source: Arc<dyn Source> = Arc::new(BytesSource::new(Shared(segment.bytes.clone())));
    group.bench_function("seglake", |bencher| {
        bencher.iter(|| {
            let report = verify(source.clone(), &Options::default(), |_| Ok(())).unwrap();
            assert_eq!(report.records, segment.records.len() as u64);
        });
    });
    group.bench_function("highway", |bencher| {
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
fn bench_arrow(criterion: &mut Criterion, segment: &Segment) {
    let mut group = group(criterion, "arrow", segment);
    let source: Arc<dyn Source> = Arc::new(BytesSource::new(Shared(segment.bytes.clone())));
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
fn bench_encode(criterion: &mut Criterion, segment: &Segment) {
    let mut group = group(criterion, "encode", segment);
    let mut out = Vec::with_capacity(segment.bytes.len());
    let value_start = 16 + 1 + 13 + 4;
    group.bench_function("seglake", |bencher| {
        bencher.iter(|| {
            out.clear();
            for (start, len) in &segment.records {
                let record = &segment.bytes[*start..*start + *len];
                let uuid = record[..16].try_into().unwrap();
                active::encode(
                    &mut out,
                    &Key::DEFAULT,
                    uuid,
                    b"order.created",
                    &record[value_start..],
                )
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
fn bench_append(criterion: &mut Criterion, segment: &Segment) {
    let mut group = group(criterion, "append", segment);
    let folder = tempfile::tempdir().unwrap();
    let value_start = 16 + 1 + 13 + 4;
    group.bench_function("seglake", |bencher| {
        bencher.iter(|| {
            let path = folder.path().join("appended.active");
            let _ = std::fs::remove_file(&path);
            let mut writer = active::Writer::open(&path, &WriteOptions::default()).unwrap();
            for (start, len) in &segment.records {
                let record = &segment.bytes[*start..*start + *len];
                let uuid = Uuid::from_slice(&record[..16]).unwrap();
                writer
                    .append(&uuid, b"order.created", &record[value_start..])
                    .unwrap();
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
    let mut criterion = Criterion::default().configure_from_args();
    for segment in &segments() {
        bench_verify(&mut criterion, segment);
        bench_arrow(&mut criterion, segment);
        bench_encode(&mut criterion, segment);
        bench_append(&mut criterion, segment);
    }
    criterion.final_summary();
}
