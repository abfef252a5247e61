//! The hot paths. What one takes to prepare is not counted.

use std::hint::black_box;
use std::path::Path as FilePath;
use std::sync::Arc;

use seglake::checksum::{Key, hash_many};
use seglake::columns::{Batches, Limits, Selection, UuidType};
use seglake::format::{Lookup, Options, RecordId, WriteOptions, active, chunked, lookup, sealed};
use seglake::source::{BytesSource, FileSource, Source, open_regular};
use seglake::verbs::verify;
use tempfile::TempDir;
use uuid::Uuid;

use crate::messages::{Lengths, Messages, Random, Segment, TYPE};

/// How many MiB of messages there are where nothing else is asked for: few, since valgrind is slow.
pub(crate) const MIB: usize = 4;
/// How many messages are looked up in a round.
const KEYS: usize = 2_000;
/// Where the value begins in a record: behind UUID, type length, type and value length.
const VALUE_START: usize = 16 + 1 + TYPE.len() + 4;

/// Kernels that valgrind can run; it knows no AVX-512.
const BOTH: &[&str] = &["avx2", "portable"];
const AVX2: &[&str] = &["avx2"];

/// A hot path.
pub(crate) struct Path {
    pub(crate) name: &'static str,
    /// What instructions are told by.
    pub(crate) unit: &'static str,
    /// The hash kernels that it is counted with.
    pub(crate) kernels: &'static [&'static str],
    /// Makes ready what runs on so many bytes of messages.
    pub(crate) prepare: fn(usize) -> Prepared,
}

/// What runs, and how many units of work one round has.
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

fn active(lengths: Lengths, bytes: usize) -> (Arc<dyn Source>, usize) {
    let segment = Segment::active(lengths, bytes);
    (segment.source(), segment.records.len())
}

/// Only hashing, of messages one behind the other.
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
            assert_eq!(report.records, records as u64);
        }),
    }
}

/// A small file by its name, as many a command begins: what it takes to find the format is in it.
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
            assert_eq!(report.records, 1_000);
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
            writer.close().unwrap();
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

/// A sealed file that is open for looking up, and IDs of some of its messages in no order.
fn opened(bytes: usize) -> (Box<dyn Lookup>, Vec<RecordId>) {
    let (source, _) = written(&sealed::FORMAT, "a.sealed", bytes);
    let segment = Segment::active(Lengths::Each(128), bytes);
    let mut random = Random::new(7);
    let ids = (0..KEYS).map(|_| {
        let (start, _) = segment.records[random.next() as usize % segment.records.len()];
        RecordId::Uuid(*segment.bytes[start..].first_chunk().unwrap())
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
