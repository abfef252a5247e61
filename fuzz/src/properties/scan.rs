//! Reads a whole file as values that can be compared.

use std::path::Path;
use std::sync::Arc;

use seglake::Error;
use seglake::format::{
    Dialect, Format, Options, Rows, Start, Step, Value, Walk, active, open, oplog,
};
use seglake::ledger::{Cause, Kind, RecordRun, Span};
use seglake::source::{BytesSource, Source};

use super::readings;

/// A value that owns its memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Plain {
    Null,
    Uuid([u8; 16]),
    Timestamp(i64),
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Int64(i64),
    UInt64(u64),
    Boolean(bool),
    List(Vec<Self>),
    Struct(Vec<Self>),
}

impl Plain {
    pub(super) fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Uuid(uuid) => Self::Uuid(*uuid),
            Value::Timestamp(micros) => Self::Timestamp(*micros),
            Value::Text(bytes) => Self::Text(bytes.to_vec()),
            Value::Binary(bytes) => Self::Binary(bytes.to_vec()),
            Value::Int64(number) => Self::Int64(*number),
            Value::UInt64(number) => Self::UInt64(*number),
            Value::Boolean(truth) => Self::Boolean(*truth),
            Value::List(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Struct(values) => Self::Struct(values.iter().map(Self::of).collect()),
            other => panic!("a value of another kind: {other:?}"),
        }
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Uuid(uuid) => Value::Uuid(*uuid),
            Self::Timestamp(micros) => Value::Timestamp(*micros),
            Self::Text(bytes) => Value::Text(bytes),
            Self::Binary(bytes) => Value::Binary(bytes),
            Self::Int64(number) => Value::Int64(*number),
            Self::UInt64(number) => Value::UInt64(*number),
            Self::Boolean(truth) => Value::Boolean(*truth),
            Self::List(items) => Value::List(items.iter().map(Self::value).collect()),
            Self::Struct(values) => Value::Struct(values.iter().map(Self::value).collect()),
        }
    }
}

/// A record and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) position: u64,
    pub(super) cause: Option<Cause>,
    pub(super) fields: Vec<Plain>,
}

impl Record {
    pub(super) fn of(rows: &dyn Rows, row: usize, options: &Options) -> Self {
        let columns = options.format.unwrap().columns(options.dialect).len();
        Self {
            position: rows.position(row),
            cause: rows.cause(row),
            fields: (0..columns)
                .map(|column| Plain::of(&rows.field(row, column)))
                .collect(),
        }
    }
}

impl Record {
    /// The record without its place, as a writer takes it: a message of an oplog without the fields that depend on its
    /// place and that of its keys.
    pub(super) fn content(&self, options: &Options) -> Vec<Plain> {
        let mut fields = self.fields.clone();
        if *options.format.unwrap() == *oplog::FORMAT {
            fields[0] = Plain::Null;
            if let (Dialect::Draft11, Plain::List(clock)) = (options.dialect, &mut fields[4]) {
                for entry in clock {
                    let Plain::Struct(parts) = entry else {
                        panic!("columns moved: {entry:?}")
                    };
                    parts[2..].fill(Plain::Null);
                }
            }
        }
        fields
    }

    /// The bytes of an active record. The checksum of a sealed message covers the same bytes.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let [
            Plain::Uuid(uuid),
            _,
            Plain::Text(kind),
            Plain::Binary(value),
        ] = self.fields.as_slice()
        else {
            panic!("columns moved: {self:?}")
        };
        let mut encoded = Vec::new();
        active::encode(&mut encoded, &Default::default(), uuid, kind, value).unwrap();
        encoded
    }
}

/// How reading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Wait,
    Damage {
        offset: u64,
        cause: Cause,
        wrong_key: bool,
    },
    /// At a limit of the reader, as text.
    Limit(String),
}

impl End {
    /// The end of a step that failed. Bytes in memory give no other errors.
    pub(super) fn of(error: Error) -> Self {
        match error {
            Error::Damage(damage) => {
                assert_eq!(damage.finding.cause(), damage.cause, "{damage}");
                assert!(!damage.to_string().is_empty());
                Self::Damage {
                    offset: damage.offset,
                    cause: damage.cause,
                    wrong_key: damage.wrong_key,
                }
            }
            Error::Limit { .. } => Self::Limit(error.to_string()),
            other => panic!("neither damage nor a limit: {other}"),
        }
    }
}

/// Records and ranges, in the order of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) records: Vec<Record>,
    pub(super) spans: Vec<Span>,
    pub(super) end: End,
}

impl Scan {
    /// An empty scan.
    pub(super) const fn new() -> Self {
        Self {
            records: Vec::new(),
            spans: Vec::new(),
            end: End::Done,
        }
    }

    /// Scans a whole file.
    pub(super) fn of(bytes: &[u8], options: &Options) -> Self {
        let mut scan = Self::new();
        scan.finish(&mut *begin(whole(bytes), options), options);
        scan
    }

    /// Scans a whole source.
    pub(super) fn of_source(source: &Arc<dyn Source>, options: &Options) -> Self {
        let mut scan = Self::new();
        scan.finish(&mut *begin(source.clone(), options), options);
        scan
    }

    /// Appends the walk's last step.
    pub(super) fn add(&mut self, walk: &dyn Walk, options: &Options) {
        let rows = walk.rows();
        let records = (0..rows.len()).map(|row| Record::of(&*rows, row, options));
        self.records.extend(records);
        let before = self.spans.len();
        self.spans.extend_from_slice(walk.spans());
        if let Some(run) = walk.record_run() {
            assert_is_run(&run, &self.spans[before..]);
        }
    }

    /// Appends the rest of a walk.
    pub(super) fn finish(&mut self, walk: &mut dyn Walk, options: &Options) {
        self.end = loop {
            match walk.step() {
                Ok(Step::More) => self.add(walk, options),
                Ok(Step::Done) => break End::Done,
                Ok(Step::Wait) => break End::Wait,
                Ok(step) => panic!("another step: {step:?}"),
                Err(error) => break End::of(error),
            }
        };
    }

    /// Panics if this scan differs from `expected`, with the first difference.
    pub(super) fn assert_is(&self, expected: &Self, how: &str) {
        let of = |scan: &Self, place: usize| {
            let record = scan.records.get(place).cloned();
            (record, scan.spans.get(place).copied())
        };
        let len = |scan: &Self| scan.records.len().max(scan.spans.len());
        for place in 0..len(self).max(len(expected)) {
            assert_eq!(
                of(self, place),
                of(expected, place),
                "number {place}, {how}"
            );
        }
        assert_eq!(self.end, expected.end, "{how}");
    }

    /// Whether the search budget was exhausted. Where that happens depends on how the file is read (strictly or not,
    /// and in which windows), because the work without success differs.
    pub(super) fn is_limited(&self) -> bool {
        is_limited(&self.spans, &self.end)
    }

    /// The ranges in file order.
    pub(super) fn ledger(&self) -> Vec<Span> {
        let mut spans = self.spans.clone();
        spans.sort_by_key(|span| (span.start, span.end));
        spans
    }
}

/// Checks that a run of records is the same as the ranges.
fn assert_is_run(run: &RecordRun, spans: &[Span]) {
    assert_eq!(run.records, spans.len() as u64);
    let mut at = run.start;
    for span in spans {
        assert_eq!(
            (span.start, span.kind, span.cause),
            (at, Kind::Record, None)
        );
        at = span.end;
    }
    assert_eq!(at, run.end);
}

/// The ways to read a format that reach the end of these bytes, and their scans.
pub(super) fn ended(
    format: &'static Format,
    bytes: &[u8],
) -> impl Iterator<Item = (Options, Scan)> {
    let scans = readings(format).into_iter().map(|options| {
        let scan = Scan::of(bytes, &options);
        (options, scan)
    });
    scans.filter(|(_, scan)| scan.end == End::Done)
}

/// Opens a walk, which never fails for bytes in memory.
pub(super) fn begin(source: Arc<dyn Source>, options: &Options) -> Box<dyn Walk> {
    match open(source, options, Start::Beginning) {
        Ok(walk) => walk,
        Err(error) => panic!("cannot begin: {error}"),
    }
}

/// All bytes in one window.
pub(super) fn whole(bytes: &[u8]) -> Arc<dyn Source> {
    Arc::new(BytesSource::new(bytes.to_vec()))
}

/// Bytes that are read in windows.
pub(super) fn windowed(bytes: &[u8]) -> Arc<dyn Source> {
    Arc::new(Windowed(bytes.to_vec()))
}

struct Windowed(Vec<u8>);

impl Source for Windowed {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        let start = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
        Ok(())
    }
}

/// Whether the search budget was exhausted in a reading with these ranges and this end.
pub(super) fn is_limited(spans: &[Span], end: &End) -> bool {
    let limit = Cause::SearchLimit;
    spans.iter().any(|span| span.cause == Some(limit))
        || matches!(end, End::Damage { cause, .. } if *cause == limit)
}
