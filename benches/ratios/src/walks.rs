//! Verifying segments of the other formats, beside what their checks alone would cost, where they have any: hashing the messages
//! of a sealed segment one by one, the CRC-32 of a tenant segment's bytes, one pass over the bytes of an oplog.
//!
//! (Chunked segments have a suite of their own.)

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use highway::{HighwayHash, HighwayHasher};
use seglake::format::{
    Format, Options, Start, Step, Value, WriteOptions, create, open, oplog, sealed, tenant,
};
use seglake::source::{BytesSource, Source};
use seglake::verbs::verify;

use crate::compare::{Comparison, Work};
use crate::messages::{Lengths, SEGMENT_BYTES, Segment, TYPE};

/// Messages of a tenant in a partition, and tenants of a partition.
const TENANT_MESSAGES: usize = 256;
const TENANTS: usize = 64;

pub(crate) fn run(comparison: &mut Comparison) {
    let folder = tempfile::tempdir().unwrap();
    for (name, lengths) in Lengths::ALL {
        let segment = Segment::active(lengths, SEGMENT_BYTES);
        let file = write(&sealed::FORMAT, folder.path(), &segment, sealed_fields);
        beside(
            comparison,
            "sealed",
            name,
            "highway, one by one",
            1.0,
            &file,
            || {
                one_by_one(&segment);
            },
        );
        let file = write(&tenant::FORMAT, folder.path(), &segment, tenant_fields);
        beside(
            comparison,
            "tenant",
            name,
            "crc32fast of its bytes",
            None,
            &file,
            || {
                black_box(crc32fast::hash(&file.bytes));
            },
        );
        let file = write(&oplog::FORMAT, folder.path(), &segment, oplog_fields);
        beside(
            comparison,
            "oplog",
            name,
            "one pass over its bytes",
            None,
            &file,
            || {
                black_box(file.bytes.iter().fold(0, |all, byte| all | byte));
            },
        );
    }
}

/// A segment of some format, in memory.
struct Written {
    format: &'static Format,
    bytes: Arc<[u8]>,
    records: u64,
}

/// The fields of message number `number`, which has this UUID and value in the active segment.
type Fields = fn(number: usize, uuid: Value<'_>, value: &[u8], write: &mut dyn FnMut(&[Value<'_>]));

fn sealed_fields(_: usize, uuid: Value<'_>, value: &[u8], write: &mut dyn FnMut(&[Value<'_>])) {
    write(&[uuid, Value::Null, Value::Text(TYPE), Value::Binary(value)]);
}

fn tenant_fields(number: usize, _: Value<'_>, value: &[u8], write: &mut dyn FnMut(&[Value<'_>])) {
    let block = number / TENANT_MESSAGES;
    let partition = i64::try_from(block / TENANTS).unwrap();
    let tenant = format!("tenant-{:02}", block % TENANTS);
    write(&[
        Value::Int64(partition),
        Value::Text(tenant.as_bytes()),
        Value::Null,
        Value::Binary(value),
    ]);
}

/// Of a writer that knows of two others.
fn oplog_fields(number: usize, _: Value<'_>, value: &[u8], write: &mut dyn FnMut(&[Value<'_>])) {
    let head = |byte| {
        Value::Struct(vec![
            Value::Binary(if byte == 0 { &[0; 32] } else { &[1; 32] }),
            Value::UInt64(number as u64),
        ])
    };
    write(&[
        Value::Null,
        Value::UInt64(1),
        Value::UInt64(1),
        Value::Null,
        Value::List(vec![head(0), head(1)]),
        Value::UInt64(0),
        Value::UInt64(1),
        Value::Binary(value),
        Value::Null,
    ]);
}

/// Writes the messages of an active segment in another format.
fn write(format: &'static Format, folder: &Path, segment: &Segment, fields: Fields) -> Written {
    let path = folder.join(format.name);
    let mut writer = create(format, &path, &WriteOptions::default()).unwrap();
    let mut walk = open(segment.source(), &Options::default(), Start::Beginning).unwrap();
    let mut records = 0;
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        for row in 0..rows.len() {
            fields(
                records,
                rows.field(row, 0),
                rows.value(row),
                &mut |fields| {
                    writer.write(fields).unwrap();
                },
            );
            records += 1;
        }
    }
    writer.close().unwrap();
    let bytes = fs::read(&path).unwrap().into();
    fs::remove_file(&path).unwrap();
    Written {
        format,
        bytes,
        records: records as u64,
    }
}

fn beside(
    comparison: &mut Comparison,
    format: &str,
    lengths: &str,
    reference: &str,
    target: impl Into<Option<f64>>,
    file: &Written,
    theirs: impl FnMut(),
) {
    let source: Arc<dyn Source> = Arc::new(BytesSource::new(file.bytes.clone()));
    let options = Options {
        format: Some(file.format),
        ..Options::default()
    };
    let name = format!("verify {format}, {lengths}");
    let work = Work::Bytes(file.bytes.len());
    let ours = || {
        let report = verify(source.clone(), &options, |_| Ok(())).unwrap();
        assert!(report.is_sound());
        assert_eq!(report.records, file.records);
    };
    comparison.run(name, reference, work, target, ours, theirs);
}

/// Hashes each message with the crate: UUID, then what stands in the data.
fn one_by_one(segment: &Segment) {
    for (start, len) in &segment.records {
        let (uuid, message) = segment.bytes[*start..*start + *len].split_at(16);
        let mut hasher = HighwayHasher::new(highway::Key([0; 4]));
        hasher.append(uuid);
        hasher.append(message);
        black_box(hasher.finalize64());
    }
}
