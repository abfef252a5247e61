//! What the tests of oplogs need: messages, files of them, and reading a file whole.

use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use seglake::format::{
    self, Column, ColumnKind, Dialect, Options, Rows, Start, Step, Value, Walk, WriteOptions, open,
    oplog,
};
use seglake::ledger::Span;
use seglake::source::{BytesSource, Source};
use serde_json::{Value as Json, json};

/// Options that add damage to the ledger and continue.
pub(crate) fn lenient(dialect: Dialect) -> Options {
    Options::default()
        .format(&oplog::FORMAT)
        .strict(false)
        .dialect(dialect)
}

pub(crate) fn source(bytes: &[u8]) -> Arc<dyn Source> {
    Arc::new(BytesSource::new(bytes.to_vec()))
}

fn shown(value: &Value<'_>, kind: ColumnKind) -> Json {
    match (value, kind) {
        (Value::Null, _) => Json::Null,
        (Value::Int64(number), ColumnKind::Int64) => (*number).into(),
        (Value::UInt64(number), ColumnKind::UInt64) => (*number).into(),
        (Value::Boolean(truth), ColumnKind::Boolean) => (*truth).into(),
        (Value::Binary(bytes), ColumnKind::Binary) => hex::encode(bytes).into(),
        (Value::List(items), ColumnKind::List(kind)) => {
            items.iter().map(|item| shown(item, *kind)).collect()
        }
        (Value::Struct(values), ColumnKind::Struct(fields)) => object(values, fields),
        other => panic!("a value of another kind: {other:?}"),
    }
}

fn object(values: &[Value<'_>], columns: &[Column]) -> Json {
    assert_eq!(values.len(), columns.len());
    let named = values.iter().zip(columns);
    let fields = named.map(|(own, column)| (column.name.to_owned(), shown(own, column.kind)));
    Json::Object(fields.collect())
}

/// All columns of a message, as the writer takes them.
pub(crate) fn fields(rows: &dyn Rows, row: usize, dialect: Dialect) -> Vec<Value<'_>> {
    let columns = oplog::FORMAT.columns(dialect);
    (0..columns.len())
        .map(|column| rows.field(row, column))
        .collect()
}

/// All columns of a message, by name.
pub(crate) fn named(rows: &dyn Rows, row: usize, dialect: Dialect) -> Json {
    let columns = oplog::FORMAT.columns(dialect);
    object(&fields(rows, row, dialect), columns)
}

/// Appends the messages of a walk's last step: position, columns, cause.
pub(crate) fn collect(walk: &dyn Walk, dialect: Dialect, records: &mut Vec<Json>) {
    let rows = walk.rows();
    for row in 0..rows.len() {
        let cause = rows.cause(row).map(|cause| cause.as_str());
        records.push(json!([
            rows.position(row),
            named(&*rows, row, dialect),
            cause
        ]));
    }
}

/// All messages and the whole ledger.
pub(crate) fn scan(
    source: Arc<dyn Source>,
    options: &Options,
) -> seglake::Result<(Vec<Json>, Vec<Span>)> {
    let mut walk = open(source, options, Start::Beginning)?;
    let (mut records, mut ledger) = (Vec::new(), Vec::new());
    while walk.step()? == Step::More {
        collect(&*walk, options.dialect, &mut records);
        ledger.extend_from_slice(walk.spans());
    }
    Ok((records, ledger))
}

/// What a buffer's length is in a file.
pub(crate) fn uint(value: u64) -> Vec<u8> {
    match value {
        0..=0xfc => vec![u8::try_from(value).unwrap()],
        0xfd..=0xffff => [&[0xfd], &u16::try_from(value).unwrap().to_le_bytes()[..]].concat(),
        _ => [&[0xff], &value.to_le_bytes()[..]].concat(),
    }
}

/// A message in its buffer.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    [uint(message.len() as u64), message.to_vec()].concat()
}

/// A message as plain values, for any dialect: each takes what it has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plain {
    pub(crate) version: u64,
    pub(crate) checkpointer: u64,
    pub(crate) length: u64,
    /// Keys are few, so that they are used again.
    pub(crate) clock: Vec<(u8, u64)>,
    pub(crate) abi: u64,
    pub(crate) batch: u64,
    pub(crate) value: Vec<u8>,
    pub(crate) keys: Vec<u8>,
    pub(crate) user: Option<Vec<(u64, bool)>>,
    pub(crate) digest: Option<(u64, bool)>,
    pub(crate) trace: Option<Vec<u64>>,
    pub(crate) optimistic: bool,
    pub(crate) later_flags: u64,
    pub(crate) extra: Vec<u8>,
}

/// The key of this number.
pub(crate) const fn key(number: u8) -> &'static [u8] {
    const KEYS: [[u8; 32]; 256] = {
        let mut keys = [[0xc0; 32]; 256];
        let mut number = 0;
        while number < 256 {
            #[allow(clippy::cast_possible_truncation)]
            {
                keys[number][0] = number as u8;
            }
            number += 1;
        }
        keys
    };
    &KEYS[number as usize]
}

const SIGNATURE: &[u8] = &[0x51; 64];

impl Plain {
    pub(crate) fn fields(&self, dialect: Dialect) -> Vec<Value<'_>> {
        if dialect == Dialect::Autobase {
            return self.autobase();
        }
        let references = dialect == Dialect::Draft11;
        let checkpoint = if self.checkpointer == 0 {
            Value::Struct(vec![Value::Binary(key(200)), Value::UInt64(self.length)])
        } else {
            Value::Null
        };
        let keys = self.keys.iter().map(|number| Value::Binary(key(*number)));
        vec![
            Value::Null,
            Value::UInt64(self.version),
            Value::UInt64(self.checkpointer),
            checkpoint,
            self.clock(if references { 2 } else { 0 }),
            Value::UInt64(self.abi),
            Value::UInt64(self.batch),
            Value::Binary(&self.value),
            if references {
                Value::List(keys.collect())
            } else {
                Value::Null
            },
        ]
    }

    fn clock(&self, nulls: usize) -> Value<'_> {
        let entry = |(number, length): &(u8, u64)| {
            let mut entry = vec![Value::Binary(key(*number)), Value::UInt64(*length)];
            entry.resize(2 + nulls, Value::Null);
            Value::Struct(entry)
        };
        Value::List(self.clock.iter().map(entry).collect())
    }

    fn autobase(&self) -> Vec<Value<'_>> {
        let view = |(checkpointer, signed): (u64, bool)| {
            let checkpoint = if signed {
                [Value::Binary(SIGNATURE), Value::UInt64(self.length)]
            } else {
                [Value::Null, Value::Null]
            };
            Value::Struct([vec![Value::UInt64(checkpointer)], checkpoint.to_vec()].concat())
        };
        let checkpoint = self.user.as_ref().map_or(Value::Null, |user| {
            let system = user
                .first()
                .map_or(Value::Null, |_| view((self.checkpointer, true)));
            let user = user.iter().copied().map(view).collect();
            Value::Struct(vec![system, Value::Null, Value::List(user)])
        });
        let digest = self.digest.map_or(Value::Null, |(pointer, keyed)| {
            let key = if keyed {
                Value::Binary(key(7))
            } else {
                Value::Null
            };
            Value::Struct(vec![Value::UInt64(pointer), key])
        });
        let trace = self.trace.as_ref().map_or(Value::Null, |blocks| {
            let uints = || Value::List(blocks.iter().copied().map(Value::UInt64).collect());
            let view = Value::Struct(vec![Value::UInt64(self.abi), uints()]);
            Value::Struct(vec![
                uints(),
                Value::List(Vec::new()),
                Value::List(vec![view]),
            ])
        });
        let flags = self.later_flags << 4
            | u64::from(self.user.is_some())
            | u64::from(self.digest.is_some()) << 1
            | u64::from(self.optimistic) << 2
            | u64::from(self.trace.is_some()) << 3;
        vec![
            Value::Null,
            Value::UInt64(2),
            Value::Null,
            checkpoint,
            self.clock(0),
            Value::Null,
            Value::UInt64(self.batch),
            optional(&self.value),
            Value::Null,
            Value::Null,
            Value::Boolean(self.optimistic),
            digest,
            trace,
            optional(&self.extra),
            Value::UInt64(flags),
        ]
    }

    /// What a reader makes of it, but for `seq` and what `draft-1.1` adds to the clock and the keys.
    pub(crate) fn shown(&self, dialect: Dialect) -> Json {
        object(&self.fields(dialect), oplog::FORMAT.columns(dialect))
    }
}

/// In `autobase` no bytes are none.
const fn optional(bytes: &[u8]) -> Value<'_> {
    match bytes {
        [] => Value::Null,
        bytes => Value::Binary(bytes),
    }
}

fn uints() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4u64,
        Just(0xfc),
        Just(0xfd),
        Just(0x1_0000),
        any::<u64>()
    ]
}

pub(crate) fn messages() -> impl Strategy<Value = Vec<Plain>> {
    let system = (uints(), uints(), uints(), uints(), uints());
    let node = (
        prop::collection::vec((0u8..12, uints()), 0..5),
        prop::collection::vec(any::<u8>(), 0..300),
        prop::collection::vec(0u8..14, 0..4),
    );
    let frames = (
        prop::option::of(prop::collection::vec((uints(), any::<bool>()), 0..3)),
        prop::option::of((uints(), any::<bool>())),
        prop::option::of(prop::collection::vec(uints(), 0..5)),
        any::<bool>(),
        0..3u64,
        prop::collection::vec(any::<u8>(), 0..4),
    );
    let message = (system, node, frames).prop_map(|(system, node, frames)| Plain {
        version: system.0,
        checkpointer: system.1,
        length: system.2,
        abi: system.3,
        batch: system.4,
        clock: node.0,
        value: node.1,
        keys: node.2,
        user: frames.0,
        digest: frames.1,
        trace: frames.2,
        optimistic: frames.3,
        later_flags: frames.4,
        extra: frames.5,
    });
    prop::collection::vec(message, 0..25)
}

pub(crate) fn dialects() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL)
}

/// A file of these messages.
pub(crate) fn file(dialect: Dialect, messages: &[Plain]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.oplog");
    let options = WriteOptions::default().dialect(dialect);
    let mut writer = format::create(&oplog::FORMAT, &path, &options).unwrap();
    for message in messages {
        writer.write(&message.fields(dialect)).unwrap();
    }
    writer.close().unwrap();
    fs::read(&path).unwrap()
}

/// A file of messages of many shapes, together about `len` bytes.
pub(crate) fn varied(dialect: Dialect, len: usize) -> Vec<u8> {
    let messages = (0..).map(|seq| Plain {
        version: 1,
        checkpointer: seq % 5,
        length: seq,
        clock: (0..seq % 4)
            .map(|entry| (u8::try_from((seq + entry * 7) % 40).unwrap(), seq))
            .collect(),
        abi: seq % 2,
        batch: 1 + seq % 3,
        value: (0..seq * 37 % 90)
            .map(|byte| u8::try_from(byte).unwrap())
            .collect(),
        user: (seq % 6 == 0).then(|| vec![(seq % 2, true)]),
        digest: (seq % 3 == 0).then_some((seq % 2, seq % 2 == 0)),
        trace: (seq % 4 == 1).then(|| vec![seq; 3]),
        ..Plain::default()
    });
    let least = match dialect {
        Dialect::Draft => 110,
        Dialect::Draft11 => 70,
        Dialect::Autobase => 160,
        other => panic!("how short are messages of {other:?}?"),
    };
    file(dialect, &messages.take(len / least).collect::<Vec<_>>())
}
