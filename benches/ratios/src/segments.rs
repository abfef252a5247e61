//! Segments of every format with the messages of an active one.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use seglake::format::{Format, Options, Start, Step, Value, WriteOptions, create, open};
use seglake::source::{BytesSource, Source};
use seglake::verbs::verify;

use crate::messages::{Segment, TYPE};

/// Messages of a tenant in a partition, and tenants of a partition.
const TENANT_MESSAGES: usize = 256;
const TENANTS: usize = 64;

/// A segment of some format, in memory.
pub(crate) struct Written {
    format: &'static Format,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) records: u64,
}

impl Written {
    pub(crate) fn verify(&self) {
        let source: Arc<dyn Source> = Arc::new(BytesSource::new(self.bytes.clone()));
        let options = Options::default().format(self.format);
        let report = verify(source, &options, |_| Ok(())).unwrap();
        assert!(report.is_sound());
        assert_eq!(report.summary.records, self.records);
    }
}

/// The fields of message number `number`, which has this UUID and value in the active segment.
pub(crate) type Fields =
    fn(number: usize, uuid: Value<'_>, value: &[u8], write: &mut dyn FnMut(&[Value<'_>]));

pub(crate) fn sealed_fields(
    _: usize,
    uuid: Value<'_>,
    value: &[u8],
    write: &mut dyn FnMut(&[Value<'_>]),
) {
    write(&[uuid, Value::Null, Value::Text(TYPE), Value::Binary(value)]);
}

pub(crate) fn tenant_fields(
    number: usize,
    _: Value<'_>,
    value: &[u8],
    write: &mut dyn FnMut(&[Value<'_>]),
) {
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

/// The fields as of a writer that knows two others.
pub(crate) fn oplog_fields(
    number: usize,
    _: Value<'_>,
    value: &[u8],
    write: &mut dyn FnMut(&[Value<'_>]),
) {
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
pub(crate) fn write(
    format: &'static Format,
    options: &WriteOptions,
    folder: &Path,
    segment: &Segment,
    fields: Fields,
) -> Written {
    let path = folder.join(format.name);
    let mut writer = create(format, &path, options).unwrap();
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
