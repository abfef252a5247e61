//! The hot paths. Their preparation is not counted.

use std::hint::black_box;
use std::path::Path as FilePath;
use std::sync::Arc;

use seglake::checksum::{Key, hash_many};
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{
    Filter, Format, Lookup, Options, RecordId, Start, Step, WriteOptions, active, chunked, lookup,
    open, oplog, resolve, sealed, split, tenant,
};
use seglake::source::{BytesSource, FileSource, Source, open_regular};
use seglake::verbs::verify;
use tempfile::TempDir;
use uuid::Uuid;

use crate::messages::{Lengths, Messages, Random, Segment, TYPE};
use crate::segments::{self, Fields, oplog_fields, sealed_fields, tenant_fields};

/// The default amount of messages in MiB: small, because valgrind is slow.
pub(crate) const MIB: usize = 4;
/// How many messages are looked up in a round.
const KEYS: usize = 2_000;
/// The offset of the value in a record: after UUID, type length, type and value length.
const VALUE_START: usize = 16 + 1 + TYPE.len() + 4;

/// Kernels that valgrind can run; it does not support AVX-512.
const BOTH: &[&str] = &["avx2", "portable"];
const AVX2: &[&str] = &["avx2"];

/// A hot path.
pub(crate) struct Path {
    pub(crate) name: &'static str,
    /// The unit that instructions are divided by.
    pub(crate) unit: &'static str,
    /// The hash kernels that it is counted with.
    pub(crate) kernels: &'static [&'static str],
    /// Prepares a path for this many bytes of messages.
    pub(crate) prepare: fn(usize) -> Prepared,
}

/// What runs, and how many units one round has.
pub(crate) struct Prepared {
    pub(crate) units: usize,
    pub(crate) round: Box<dyn FnMut()>,
}

const fn path(
    name: &'static str,
    unit: &'static str,
    kernels: &'static [&'static str],
    prepare: fn(usize) -> Prepared,
) -> Path {
    Path {
        name,
        unit,
        kernels,
        prepare,
    }
}

pub(crate) const PATHS: &[Path] = &[
    path("hash many, 128 B", "message", BOTH, |bytes| {
        hashing(Lengths::Each(128), bytes)
    }),
    path("hash many, mixed", "message", BOTH, |bytes| {
        hashing(Lengths::Lognormal(1.0), bytes)
    }),
    path("hash many, 64 KiB", "message", BOTH, |bytes| {
        hashing(Lengths::Each(64 << 10), bytes)
    }),
    path("verify active, 128 B", "record", BOTH, |bytes| {
        verifying(active(Lengths::Each(128), bytes))
    }),
    path("verify active, mixed", "record", BOTH, |bytes| {
        verifying(active(Lengths::Lognormal(1.0), bytes))
    }),
    path(
        "verify active, 1,000 records of 8 B",
        "file",
        AVX2,
        small_file,
    ),
    path("verify sealed, 128 B", "record", AVX2, |bytes| {
        verifying(written(&sealed::FORMAT, "a.sealed", bytes))
    }),
    path("verify chunked, 128 B", "record", AVX2, |bytes| {
        verifying(written(&chunked::FORMAT, "a.chunked", bytes))
    }),
    path(
        "verify sealed without trailer, 128 B",
        "record",
        AVX2,
        |bytes| {
            let options = WriteOptions::default().set("trailer", false);
            verifying(segment(&sealed::FORMAT, &options, sealed_fields, bytes))
        },
    ),
    path("verify tenant 1, 128 B", "record", AVX2, |bytes| {
        let options = WriteOptions::default().set("version", 1);
        verifying(segment(&tenant::FORMAT, &options, tenant_fields, bytes))
    }),
    path("verify tenant 2, 128 B", "record", AVX2, |bytes| {
        verifying(tenant_segment(bytes))
    }),
    path("verify oplog, 128 B", "record", AVX2, |bytes| {
        verifying(oplog_segment(bytes))
    }),
    path(
        "read active in windows of 16 KiB",
        "record",
        AVX2,
        |bytes| in_windows(active(Lengths::Each(128), bytes)),
    ),
    path(
        "read tenant 2 in windows of 16 KiB",
        "record",
        AVX2,
        |bytes| in_windows(tenant_segment(bytes)),
    ),
    path(
        "read chunked in windows of 16 KiB",
        "record",
        AVX2,
        |bytes| in_windows(written(&chunked::FORMAT, "a.chunked", bytes)),
    ),
    path("read oplog in windows of 16 KiB", "record", AVX2, |bytes| {
        in_windows(oplog_segment(bytes))
    }),
    path("sealed in parts", "record", AVX2, |bytes| {
        in_parts(written(&sealed::FORMAT, "a.sealed", bytes))
    }),
    path("tenant 2 in parts", "record", AVX2, |bytes| {
        in_parts(tenant_segment(bytes))
    }),
    path("chunked in parts", "record", AVX2, |bytes| {
        in_parts(written(&chunked::FORMAT, "a.chunked", bytes))
    }),
    path("sealed pruned by time", "record", AVX2, |bytes| {
        let (source, records) = written(&sealed::FORMAT, "a.sealed", bytes);
        let times = times(&source);
        let wanted = Filter::default()
            .at_least("timestamp", times[records / 4])
            .below("timestamp", times[records / 2]);
        pruned(source, wanted)
    }),
    path("tenant 2 pruned by tenant", "record", AVX2, |bytes| {
        let wanted = Filter::default().among("tenant", vec![b"tenant-03".to_vec()]);
        pruned(tenant_segment(bytes).0, wanted)
    }),
    path("chunked pruned by offset", "record", AVX2, |bytes| {
        let (source, records) = written(&chunked::FORMAT, "a.chunked", bytes);
        let records = records as u64;
        let wanted = Filter::default()
            .at_least("offset", records / 4)
            .below("offset", records / 2);
        pruned(source, wanted)
    }),
    path("Arrow, 128 B", "record", AVX2, |bytes| {
        batches(Lengths::Each(128), bytes)
    }),
    path("Arrow, mixed", "record", AVX2, |bytes| {
        batches(Lengths::Lognormal(1.0), bytes)
    }),
    path("sealed get", "key", AVX2, getting),
    path("sealed get_many", "key", AVX2, getting_many),
    path("encode active, 128 B", "record", AVX2, encoding),
    path("append active, 128 B", "record", AVX2, |bytes| {
        writing(&active::FORMAT, "a.active", bytes)
    }),
    path("write chunked, 128 B", "record", AVX2, |bytes| {
        writing(&chunked::FORMAT, "a.chunked", bytes)
    }),
];

/// A file with the messages of an active segment, as a writer with these options makes it.
fn segment(
    format: &'static Format,
    options: &WriteOptions,
    fields: Fields,
    bytes: usize,
) -> (Arc<dyn Source>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let messages = Segment::active(Lengths::Each(128), bytes);
    let written = segments::write(format, options, folder.path(), &messages, fields);
    (
        Arc::new(BytesSource::new(written.bytes)),
        messages.records.len(),
    )
}

fn tenant_segment(bytes: usize) -> (Arc<dyn Source>, usize) {
    let options = WriteOptions::default();
    segment(&tenant::FORMAT, &options, tenant_fields, bytes)
}

fn oplog_segment(bytes: usize) -> (Arc<dyn Source>, usize) {
    let options = WriteOptions::default();
    segment(&oplog::FORMAT, &options, oplog_fields, bytes)
}

/// The options for a source, with its format, which is detected once.
fn options(source: &Arc<dyn Source>) -> Options {
    let format = resolve(&**source, &Options::default()).unwrap();
    Options::default().format(format)
}

/// Reads all records. Returns their number.
fn count(source: &Arc<dyn Source>, options: &Options, start: Start<'_>) -> usize {
    let mut walk = open(source.clone(), options, start).unwrap();
    let mut records = 0;
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        records += rows.len();
        black_box(rows.len().checked_sub(1).map(|last| rows.value(last).len()));
    }
    records
}

/// A source whose bytes are copied into windows.
struct Windowed(Arc<dyn Source>);

impl Source for Windowed {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn path(&self) -> Option<&FilePath> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
}

fn in_windows((source, records): (Arc<dyn Source>, usize)) -> Prepared {
    let options = options(&source).window_bytes(16 << 10);
    let source: Arc<dyn Source> = Arc::new(Windowed(source));
    Prepared {
        units: records,
        round: Box::new(move || {
            assert_eq!(count(&source, &options, Start::Beginning), records);
        }),
    }
}

/// Eight parts, planned anew each time.
fn in_parts((source, records): (Arc<dyn Source>, usize)) -> Prepared {
    let options = options(&source);
    Prepared {
        units: records,
        round: Box::new(move || {
            let parts = split(source.clone(), &options, source.len() / 8).unwrap();
            assert!(parts.len() > 1);
            let count = |part| count(&source, &options, Start::Part(part));
            assert_eq!(parts.iter().map(count).sum::<usize>(), records);
        }),
    }
}

/// The matching records, read pruned.
fn pruned(source: Arc<dyn Source>, wanted: Filter) -> Prepared {
    let options = options(&source).filter(wanted).prune(true);
    let records = count(&source, &options, Start::Beginning);
    assert!(records > 0);
    Prepared {
        units: records,
        round: Box::new(move || {
            assert_eq!(count(&source, &options, Start::Beginning), records);
        }),
    }
}

/// The times of all records, in microseconds.
fn times(source: &Arc<dyn Source>) -> Vec<i64> {
    let mut walk = open(source.clone(), &options(source), Start::Beginning).unwrap();
    let mut times = Vec::new();
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        times.extend((0..rows.len()).filter_map(|row| rows.timestamp(row)));
    }
    times
}

fn active(lengths: Lengths, bytes: usize) -> (Arc<dyn Source>, usize) {
    let segment = Segment::active(lengths, bytes);
    (segment.source(), segment.records.len())
}

/// Only hashing, of adjacent messages.
fn hashing(lengths: Lengths, bytes: usize) -> Prepared {
    let segment = Segment::active(lengths, bytes);
    let mut hashes = Vec::new();
    Prepared {
        units: segment.records.len(),
        round: Box::new(move || {
            for group in segment.records.chunks(512) {
                hash_many(&Key::DEFAULT, &segment.bytes, group, &mut hashes);
                black_box(&hashes);
            }
        }),
    }
}

fn verifying((source, records): (Arc<dyn Source>, usize)) -> Prepared {
    Prepared {
        units: records,
        round: Box::new(move || {
            let report = verify(source.clone(), &Options::default(), |_| Ok(())).unwrap();
            assert_eq!(report.summary.records, records as u64);
        }),
    }
}

/// A small file by its name, as in many commands. Detecting its format is included.
fn small_file(_: usize) -> Prepared {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.active");
    let mut messages = Messages::new(Lengths::Each(8));
    let mut bytes = Vec::new();
    (0..1_000).for_each(|_| messages.encode(&mut bytes, b"t"));
    std::fs::write(&path, bytes).unwrap();
    Prepared {
        units: 1,
        round: Box::new(move || {
            let _ = &folder;
            let source = FileSource::new(open_regular(&path).unwrap(), &path).unwrap();
            let report = verify(Arc::new(source), &Options::default(), |_| Ok(())).unwrap();
            assert_eq!(report.summary.records, 1_000);
        }),
    }
}

fn batches(lengths: Lengths, bytes: usize) -> Prepared {
    let (source, records) = active(lengths, bytes);
    let options = Options::default();
    let selection = Selection::new(&active::FORMAT, &options, None, UuidType::Fixed).unwrap();
    Prepared {
        units: records,
        round: Box::new(move || {
            let batches = Batches::new(
                source.clone(),
                &options,
                selection.clone(),
                Limits::default(),
            )
            .unwrap();
            let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(rows, records);
        }),
    }
}

/// A file of another format with the messages of an active segment.
fn written(format: &seglake::format::Format, name: &str, bytes: usize) -> (Arc<dyn Source>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let segment = Segment::active(Lengths::Each(128), bytes);
    write(format, &segment, &path);
    let bytes = std::fs::read(&path).unwrap();
    (Arc::new(BytesSource::new(bytes)), segment.records.len())
}

fn write(format: &seglake::format::Format, segment: &Segment, path: &FilePath) {
    let options = WriteOptions::default();
    match format.name {
        "active" => {
            let mut writer = active::Writer::open(path, &options).unwrap();
            for (uuid, value) in messages(segment) {
                writer
                    .append(&Uuid::from_bytes(*uuid), TYPE, value)
                    .unwrap();
            }
            seglake::format::Writer::close(&mut writer).unwrap();
        }
        "sealed" => {
            let mut writer = sealed::Writer::create(path, &options).unwrap();
            for (uuid, value) in messages(segment) {
                writer
                    .append(&Uuid::from_bytes(*uuid), TYPE, value)
                    .unwrap();
            }
            seglake::format::Writer::close(&mut writer).unwrap();
        }
        _ => {
            let mut writer = chunked::Writer::open(path, &options).unwrap();
            for (offset, (_, value)) in (0..).zip(messages(segment)) {
                writer.append(Some(offset), Some(offset), value).unwrap();
            }
            seglake::format::Writer::close(&mut writer).unwrap();
        }
    }
}

/// The UUIDs and values of a segment.
fn messages(segment: &Segment) -> impl Iterator<Item = (&[u8; 16], &[u8])> {
    segment.records.iter().map(|(start, len)| {
        let record = &segment.bytes[*start..*start + *len];
        (record.first_chunk().unwrap(), &record[VALUE_START..])
    })
}

/// A sealed file that is open for look-ups, and IDs of some of its messages in random order.
fn opened(bytes: usize) -> (Box<dyn Lookup>, Vec<RecordId>) {
    let (source, _) = written(&sealed::FORMAT, "a.sealed", bytes);
    let segment = Segment::active(Lengths::Each(128), bytes);
    let mut random = Random::new(7);
    let ids = (0..KEYS).map(|_| {
        let (start, _) = segment.records[random.next() as usize % segment.records.len()];
        RecordId::from(*segment.bytes[start..].first_chunk().unwrap())
    });
    let ids = ids.collect();
    (lookup(source, &Options::default()).unwrap(), ids)
}

fn getting(bytes: usize) -> Prepared {
    let (lookup, ids) = opened(bytes);
    Prepared {
        units: ids.len(),
        round: Box::new(move || {
            for id in &ids {
                let hits = lookup.get(std::slice::from_ref(id)).unwrap();
                assert!(hits.places[0].is_some());
            }
        }),
    }
}

fn getting_many(bytes: usize) -> Prepared {
    let (lookup, ids) = opened(bytes);
    Prepared {
        units: ids.len(),
        round: Box::new(move || {
            let hits = lookup.get(&ids).unwrap();
            assert!(hits.places.iter().all(Option::is_some));
        }),
    }
}

/// Framing and hashing into a buffer.
fn encoding(bytes: usize) -> Prepared {
    let segment = Segment::active(Lengths::Each(128), bytes);
    let mut out = Vec::with_capacity(segment.bytes.len());
    Prepared {
        units: segment.records.len(),
        round: Box::new(move || {
            out.clear();
            for (uuid, value) in messages(&segment) {
                active::encode(&mut out, &Key::DEFAULT, uuid, TYPE, value).unwrap();
            }
            assert_eq!(out.len(), segment.bytes.len());
        }),
    }
}

fn writing(format: &'static seglake::format::Format, name: &'static str, bytes: usize) -> Prepared {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let segment = Segment::active(Lengths::Each(128), bytes);
    let mut round = 0_u32;
    Prepared {
        units: segment.records.len(),
        round: Box::new(move || {
            round += 1;
            write(
                format,
                &segment,
                &folder.path().join(format!("{round}.{name}")),
            );
        }),
    }
}
