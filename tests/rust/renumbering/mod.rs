//! What the tests of renumbering need: oplogs made by hand, and what their messages say of each other.

use std::fs;
use std::sync::Arc;

use seglake::Error;
use seglake::format::{Dialect, Options, Start, Step, Value, open, oplog};
use seglake::source::BytesSource;
use seglake::verbs::{RecoverOptions, Recovered};

use crate::recovery::{Bench, Case};

pub(crate) fn uint(value: u64) -> Vec<u8> {
    match value {
        0..=0xfc => vec![value.to_le_bytes()[0]],
        0xfd..=0xffff => [&[0xfd], &value.to_le_bytes()[..2]].concat(),
        _ => [&[0xfe], &value.to_le_bytes()[..4]].concat(),
    }
}

pub(crate) fn frame(content: &[u8]) -> Vec<u8> {
    [uint(content.len() as u64), content.to_vec()].concat()
}

/// What every message's value is: its number at first.
pub(crate) fn value(seq: u64) -> Vec<u8> {
    frame(format!("message {seq}").as_bytes())
}

/// The oplog of these messages. The `damaged` ones have counts that claim more than there is.
pub(crate) fn oplog(messages: &[Vec<u8>], damaged: &[usize]) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for (seq, message) in messages.iter().enumerate() {
        places.push(bytes.len());
        let mut message = message.clone();
        if damaged.contains(&seq) {
            message.fill(0xfe);
        }
        bytes.extend(frame(&message));
    }
    (bytes, places)
}

pub(crate) fn case(dialect: Dialect, bytes: Vec<u8>) -> Case {
    Case {
        name: dialect.as_str().to_owned(),
        bytes,
        options: Options::default().format(&oplog::FORMAT).dialect(dialect),
    }
}

pub(crate) fn renumber(bench: &Bench) -> seglake::Result<Recovered> {
    let recovery = RecoverOptions::default().renumber(true);
    bench.recover("new", &recovery)
}

/// The refusal to renumber. Asserts that nothing is written.
pub(crate) fn refusal(dialect: Dialect, messages: &[Vec<u8>], damaged: &[usize]) -> String {
    let bench = Bench::new(&case(dialect, oplog(messages, damaged).0));
    let error = renumber(&bench).unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
    assert_eq!(bench.files(), ["old"]);
    error.to_string()
}

/// A message, by what it says of others: the values of the messages that it leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Linked {
    value: Vec<u8>,
    seq: i64,
    /// By each distance back: the value of the message there.
    pub(crate) back: Vec<Option<Vec<u8>>>,
    /// The clock's keys, and the values of the messages that declare them.
    pub(crate) clock: Vec<(Vec<u8>, Vec<u8>)>,
    batch: u64,
}

/// All numbers of messages back in a value: those of fields called so, by their places in the structures of `autobase`.
fn distances(value: &Value<'_>, out: &mut Vec<u64>) {
    match value {
        Value::UInt64(distance) if *distance > 0 => out.push(*distance),
        Value::Struct(fields) => match fields.as_slice() {
            // A checkpointer, signature and length; or a pointer and a key.
            [Value::UInt64(distance), ..] if *distance > 0 => out.push(*distance),
            [Value::UInt64(_), ..] => {}
            views => views.iter().for_each(|view| distances(view, out)),
        },
        Value::List(items) => items.iter().for_each(|item| distances(item, out)),
        _ => {}
    }
}

/// What all good messages of an oplog say, those that are lost having their numbers.
fn linked(case: &Case, bytes: &[u8]) -> Vec<Linked> {
    let options = case.options.clone().strict(false);
    let source = Arc::new(BytesSource::new(bytes.to_vec()));
    let columns = oplog::FORMAT.columns(options.dialect);
    let place = |name| {
        columns
            .iter()
            .position(|column| column.name == name)
            .unwrap()
    };
    let mut walk = open(source, &options, Start::Beginning).unwrap();
    let mut found: Vec<(Linked, Vec<u64>, Vec<u64>)> = Vec::new();
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        for row in 0..rows.len() {
            let field = |name| rows.field(row, place(name));
            let Value::Int64(seq) = field("seq") else {
                panic!()
            };
            let mut back = Vec::new();
            if case.options.dialect == Dialect::Autobase {
                distances(&field("checkpoint"), &mut back);
                distances(&field("digest"), &mut back);
            } else {
                distances(&field("checkpointer"), &mut back);
            }
            let (mut keys, mut declaring) = (Vec::new(), Vec::new());
            if let Value::List(entries) = field("clock") {
                for entry in entries {
                    if let Value::Struct(fields) = entry
                        && let [Value::Binary(key), _, Value::UInt64(seq), _] = fields.as_slice()
                    {
                        keys.push((key.to_vec(), Vec::new()));
                        declaring.push(*seq);
                    }
                }
            }
            let Value::UInt64(batch) = field("batch") else {
                panic!()
            };
            let value = rows.value(row).to_vec();
            found.push((
                Linked {
                    value,
                    seq,
                    back: Vec::new(),
                    clock: keys,
                    batch,
                },
                back,
                declaring,
            ));
        }
    }
    let value_of = |seq: i64| {
        let message = found.iter().find(|(own, ..)| own.seq == seq);
        message.map(|(own, ..)| own.value.clone())
    };
    let back: Vec<Vec<_>> = found
        .iter()
        .map(|(own, back, _)| {
            back.iter()
                .map(|distance| value_of(own.seq - i64::try_from(*distance).unwrap()))
                .collect()
        })
        .collect();
    let declaring: Vec<Vec<_>> = found
        .iter()
        .map(|(.., declaring)| {
            declaring
                .iter()
                .map(|seq| value_of(i64::try_from(*seq).unwrap()).unwrap())
                .collect()
        })
        .collect();
    let linked = found.into_iter().zip(back).zip(declaring);
    linked
        .map(|(((own, ..), back), declaring)| Linked {
            back,
            clock: own
                .clock
                .into_iter()
                .zip(declaring)
                .map(|((key, _), value)| (key, value))
                .collect(),
            ..own
        })
        .collect()
}

/// Recovers an oplog by renumbering, and sees that all that is left says what it did.
pub(crate) fn check_renumbered(
    dialect: Dialect,
    messages: &[Vec<u8>],
    damaged: &[usize],
) -> Vec<Linked> {
    let (bytes, places) = oplog(messages, damaged);
    let case = case(dialect, bytes);
    let bench = Bench::new(&case);
    let refused = bench
        .recover("new", &RecoverOptions::default())
        .unwrap_err()
        .to_string();
    let first = damaged[0];
    let named = format!("message {first} at offset {}", places[first]);
    assert!(
        refused.contains(&named) && refused.contains("`renumber`"),
        "{refused}"
    );
    assert_eq!(bench.files(), ["old"]);
    let recovered = renumber(&bench).unwrap();
    assert_eq!(
        recovered.output.summary.records,
        (messages.len() - damaged.len()) as u64
    );
    let new = fs::read(bench.path("new")).unwrap();
    let (before, after) = (linked(&case, &case.bytes), linked(&case, &new));
    assert_eq!(before.len(), after.len());
    for (seq, (before, after)) in (0..).zip(before.into_iter().zip(&after)) {
        assert_eq!(Linked { seq, ..before }, *after);
    }
    bench.undo("new", "undone").unwrap();
    assert_eq!(fs::read(bench.path("undone")).unwrap(), case.bytes);
    after
}
