//! Oplogs: what is refused because messages would be renumbered, and what renumbering makes of what counts by numbers.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod recovery;

use std::fs;
use std::sync::Arc;

use recovery::{Bench, Case};
use seglake::Error;
use seglake::format::{Dialect, Options, Start, Step, Value, open, oplog};
use seglake::source::BytesSource;
use seglake::verbs::{Recovered, Recovery};

fn uint(value: u64) -> Vec<u8> {
    match value {
        0..=0xfc => vec![value.to_le_bytes()[0]],
        0xfd..=0xffff => [&[0xfd], &value.to_le_bytes()[..2]].concat(),
        _ => [&[0xfe], &value.to_le_bytes()[..4]].concat(),
    }
}

fn frame(content: &[u8]) -> Vec<u8> {
    [uint(content.len() as u64), content.to_vec()].concat()
}

/// What every message's value is: its number at first.
fn value(seq: u64) -> Vec<u8> {
    frame(format!("message {seq}").as_bytes())
}

/// The key that message `seq` declares.
fn key(seq: u64) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seq.to_le_bytes());
    key
}

/// A message of `draft-1.1` that declares one key and refers to the only key of each of these messages.
fn referring(seq: u64, checkpointer: u64, to: &[u64]) -> Vec<u8> {
    let mut message = [uint(1), uint(checkpointer)].concat();
    if checkpointer == 0 {
        message.extend([[7; 32].to_vec(), uint(seq)].concat());
    }
    message.extend(uint(to.len() as u64));
    for target in to {
        message.extend([uint(*target), uint(0), uint(70_000)].concat());
    }
    message.extend([uint(3), uint(9), value(seq), uint(1), key(seq).to_vec()].concat());
    message
}

/// The oplog of these messages, those `damaged` in a way that shows: their counts claim more than there is.
fn oplog(messages: &[Vec<u8>], damaged: &[usize]) -> (Vec<u8>, Vec<usize>) {
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

fn case(dialect: Dialect, bytes: Vec<u8>) -> Case {
    Case {
        name: dialect.as_str().to_owned(),
        bytes,
        options: Options {
            format: Some(&oplog::FORMAT),
            dialect,
            ..Options::default()
        },
    }
}

fn renumber(bench: &Bench) -> seglake::Result<Recovered> {
    let recovery = Recovery {
        renumber: true,
        ..Recovery::default()
    };
    bench.recover("new", &recovery)
}

/// The refusal to renumber, after which nothing is there.
fn refusal(dialect: Dialect, messages: &[Vec<u8>], damaged: &[usize]) -> String {
    let bench = Bench::new(&case(dialect, oplog(messages, damaged).0));
    let error = renumber(&bench).unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
    assert_eq!(bench.files(), ["old"]);
    error.to_string()
}

/// A message, by what it says of others: the values of the messages that it leads to.
#[derive(Debug, PartialEq, Eq)]
struct Linked {
    value: Vec<u8>,
    seq: i64,
    /// By each distance back: the value of the message there.
    back: Vec<Option<Vec<u8>>>,
    /// The clock's keys, and the values of the messages that declare them.
    clock: Vec<(Vec<u8>, Vec<u8>)>,
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
    let options = Options {
        strict: false,
        ..case.options.clone()
    };
    let source = Arc::new(BytesSource::new(bytes.to_vec()));
    let columns = oplog::FORMAT.columns(&options);
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
fn check_renumbered(dialect: Dialect, messages: &[Vec<u8>], damaged: &[usize]) -> Vec<Linked> {
    let (bytes, places) = oplog(messages, damaged);
    let case = case(dialect, bytes);
    let bench = Bench::new(&case);
    let refused = bench
        .recover("new", &Recovery::default())
        .unwrap_err()
        .to_string();
    let first = damaged[0];
    let named = format!("message {first} at offset {}", places[first]);
    assert!(
        refused.contains(&named) && refused.contains("--renumber"),
        "{refused}"
    );
    assert_eq!(bench.files(), ["old"]);
    let recovered = renumber(&bench).unwrap();
    assert_eq!(
        recovered.output.records,
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

/// 300 messages of `draft-1.1`: numbers around 0xfd, where one fewer takes two bytes fewer.
fn long_oplog() -> Vec<Vec<u8>> {
    (0..300)
        .map(|seq: u64| {
            let to = [seq, seq - seq % 10, seq.min(253), seq.min(254)];
            referring(seq, seq % 10, &to)
        })
        .collect()
}

#[test]
fn references_and_distances_lead_to_the_same_messages() {
    let mut messages = long_oplog();
    // Nothing leads to these; what leads past them is between 2 and 300 messages long.
    messages[299] = referring(299, 299, &[0, 252, 253, 254, 255, 299]);
    let after = check_renumbered(Dialect::Draft11, &messages, &[5, 17, 18 + 20]);
    assert_eq!(after.last().unwrap().back, [Some(b"message 0".to_vec())]);
    let keys: Vec<_> = after
        .last()
        .unwrap()
        .clock
        .iter()
        .map(|(key, _)| key.clone())
        .collect();
    assert_eq!(
        keys,
        [0, 252, 253, 254, 255, 299].map(|seq| key(seq).to_vec())
    );
}

#[test]
fn only_what_has_to_change_does() {
    let messages = long_oplog();
    let (bytes, places) = oplog(&messages, &[5]);
    let bench = Bench::new(&case(Dialect::Draft11, bytes.clone()));
    renumber(&bench).unwrap();
    let new = fs::read(bench.path("new")).unwrap();
    assert_eq!(
        new[..places[5]],
        bytes[..places[5]],
        "what is in front of the damage"
    );
    // Message 10 is a checkpoint and refers to itself and to none in front of the damage: three numbers, each a byte.
    let (old, at) = (
        &bytes[places[10]..places[11]],
        places[10] - (places[6] - places[5]),
    );
    let new = &new[at..at + old.len()];
    let differing = old.iter().zip(new).filter(|(old, new)| old != new);
    assert!(differing.clone().all(|(old, new)| (*old, *new) == (10, 9)));
    assert_eq!(differing.count(), 4);
}

#[test]
fn numbers_wider_than_they_need_be_are_written_as_short_as_they_can() {
    let mut messages: Vec<_> = (0..4).map(|seq| referring(seq, 0, &[seq])).collect();
    // The checkpointer, 3, in nine bytes.
    let mut wide = referring(4, 4, &[]);
    wide.splice(1..2, [0xff, 4, 0, 0, 0, 0, 0, 0, 0]);
    messages.push(wide);
    let after = check_renumbered(Dialect::Draft11, &messages, &[2]);
    assert_eq!(after[3].back, [Some(b"message 0".to_vec())]);
}

#[test]
fn what_cannot_be_resolved_is_refused_by_name() {
    let plain = |count: u64| {
        (0..count)
            .map(|seq| referring(seq, 0, &[seq]))
            .collect::<Vec<_>>()
    };
    let mut lost = plain(6);
    lost[4] = referring(4, 2, &[4]);
    let text = refusal(Dialect::Draft11, &lost, &[2]);
    assert!(
        text.contains("message 4 at offset") && text.contains("leads to message 2"),
        "{text}"
    );
    let mut outside = plain(6);
    outside[4] = referring(4, 7, &[4]);
    let text = refusal(Dialect::Draft11, &outside, &[2]);
    assert!(
        text.contains("message 4 at offset") && text.contains("in front of the first"),
        "{text}"
    );
    let mut dropped_key = plain(6);
    dropped_key[5] = referring(5, 0, &[2]);
    let text = refusal(Dialect::Draft11, &dropped_key, &[2]);
    assert!(
        text.contains("message 5 at offset") && text.contains("not there"),
        "{text}"
    );
    let mut forward = plain(6);
    forward[0] = referring(0, 0, &[3]);
    let text = refusal(Dialect::Draft11, &forward, &[2]);
    assert!(text.contains("message 0 at offset 0"), "{text}");
}

#[test]
fn what_stands_in_front_of_the_damage_may_lead_anywhere() {
    let mut messages: Vec<_> = (0..6).map(|seq| referring(seq, 0, &[seq])).collect();
    messages[1] = referring(1, 9, &[1]);
    let after = check_renumbered(Dialect::Draft11, &messages, &[3]);
    assert_eq!(after[1].back, [None]);
}

#[test]
fn damage_at_the_end_renumbers_nothing() {
    let messages = long_oplog();
    let (mut bytes, places) = oplog(&messages, &[299]);
    for _ in 0..2 {
        let bench = Bench::new(&case(Dialect::Draft11, bytes.clone()));
        let recovered = bench.recover("new", &Recovery::default()).unwrap();
        assert_eq!(recovered.output.records, 299);
        assert_eq!(fs::read(bench.path("new")).unwrap(), bytes[..places[299]]);
        bytes.truncate(places[299] + 7);
    }
}

/// A checkpointer of `autobase` version 2.
fn checkpointer(distance: u64) -> Vec<u8> {
    match distance {
        0 => [&[2], &[5; 64][..], &uint(9)].concat(),
        _ => [vec![1], uint(distance)].concat(),
    }
}

/// A message of version 2: batch, the distances of the views' checkpoints, and that of the digest.
fn version_2(seq: u64, batch: u64, views: [u64; 4], pointer: u64) -> Vec<u8> {
    let [system, encryption, first, second] = views.map(checkpointer);
    let checkpoint = [
        vec![7],
        system,
        encryption,
        vec![2],
        first,
        second,
        vec![0xaa, 0xbb],
    ]
    .concat();
    let digest = match pointer {
        0 => [&[2], &[6; 32][..]].concat(),
        _ => [vec![1], uint(pointer)].concat(),
    };
    let trace = [vec![1], uint(seq), vec![0, 1, 0, 1], uint(seq)].concat();
    [
        uint(2),
        [vec![1], [8; 32].to_vec(), uint(300)].concat(),
        uint(batch),
        value(seq),
        uint(1 | 2 | 8),
        frame(&checkpoint),
        frame(&digest),
        frame(&trace),
        b"later fields".to_vec(),
    ]
    .concat()
}

#[test]
fn every_distance_of_autobase_follows_within_its_frame() {
    let messages: Vec<_> = (0..300)
        .map(|seq: u64| {
            let back = |distance: u64| if distance > seq { 0 } else { distance };
            version_2(
                seq,
                1,
                [back(3), back(253), back(254), back(260)],
                back(256),
            )
        })
        .collect();
    // Nothing that is left leads to them.
    let mut kept = messages.clone();
    for (seq, message) in (0..).zip(&mut kept) {
        let leads_to = |lost: u64| {
            [3, 253, 254, 260, 256]
                .iter()
                .any(|distance| seq == lost + distance)
        };
        if leads_to(20) || leads_to(30) {
            *message = version_2(seq, 1, [0; 4], 0);
        }
    }
    let after = check_renumbered(Dialect::Autobase, &kept, &[20, 30]);
    let last = after.last().unwrap();
    assert_eq!(last.back.len(), 5);
    let text = refusal(Dialect::Autobase, &messages, &[20, 30]);
    assert!(
        text.contains("message 23 at offset") && text.contains("leads to message 20"),
        "{text}"
    );
}

/// A message of version 1 or 0, `back` giving what stands for a distance back.
fn older(seq: u64, back: impl Fn(u64) -> u64) -> Vec<u8> {
    let node = [uint(0), uint(1), value(seq)].concat();
    let view = |distance: u64| match back(distance) {
        0 => [&[0], &[5; 64][..], &uint(9)].concat(),
        distance => uint(distance),
    };
    let views = [uint(2), view(4), view(254)].concat();
    let or = |distance: u64, here: Vec<u8>| match back(distance) {
        0 => here,
        distance => uint(distance),
    };
    if seq % 2 == 1 {
        let digest = or(255, [&[0], &[6; 32][..]].concat());
        return [uint(1), uint(2), uint(1), views, digest, node].concat();
    }
    let signers = or(253, [uint(0), uint(0)].concat());
    let additional = or(6, [uint(0), uint(2), uint(seq)].concat());
    [uint(0), uint(1), signers, views, node, additional, uint(1)].concat()
}

#[test]
fn older_versions_of_autobase_follow_too() {
    const LOST: u64 = 40;
    let back = |seq: u64, distance: u64| match distance {
        _ if distance > seq || seq == LOST + distance => 0,
        distance => distance,
    };
    let messages: Vec<_> = (0..280)
        .map(|seq| older(seq, |distance| back(seq, distance)))
        .collect();
    check_renumbered(Dialect::Autobase, &messages, &[40]);
    // What the library drops when it reads has followed, too: the file is the one that these messages would have made.
    let bench = Bench::new(&case(Dialect::Autobase, oplog(&messages, &[40]).0));
    renumber(&bench).unwrap();
    let expected: Vec<_> = (0..280)
        .filter(|seq| *seq != LOST)
        .map(|seq| {
            older(seq, |distance| {
                let distance = back(seq, distance);
                let is_past = seq > LOST && distance > 0 && seq - distance < LOST;
                distance - u64::from(is_past)
            })
        })
        .collect();
    let new = fs::read(bench.path("new")).unwrap();
    assert!(new == oplog(&expected, &[]).0);
}

#[test]
fn a_batch_that_lost_a_message_is_refused() {
    let batches = |of: [u64; 8]| {
        let messages = (0..).zip(of);
        messages
            .map(|(seq, batch)| version_2(seq, batch, [0; 4], 0))
            .collect::<Vec<_>>()
    };
    let text = refusal(Dialect::Autobase, &batches([1, 3, 2, 1, 1, 1, 1, 1]), &[3]);
    assert!(
        text.contains("message 1 at offset") && text.contains("message 3"),
        "{text}"
    );
    let text = refusal(Dialect::Autobase, &batches([1, 3, 2, 1, 1, 1, 1, 1]), &[2]);
    assert!(text.contains("message 1 at offset"), "{text}");
    check_renumbered(Dialect::Autobase, &batches([1, 3, 2, 1, 1, 2, 1, 1]), &[4]);
    // Of what is behind a lost one, all are there that it says.
    check_renumbered(Dialect::Autobase, &batches([1, 3, 2, 1, 1, 1, 1, 1]), &[1]);
}
