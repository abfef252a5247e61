//! Oplogs of `draft-1.1`: what is refused because messages would be renumbered, and how renumbering changes
//! numbers that refer to messages.

use std::fs;

use crate::recovery::Bench;
use crate::renumbering::{case, check_renumbered, oplog, refusal, renumber, uint, value};
use seglake::format::Dialect;
use seglake::verbs::RecoverOptions;

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
    // Nothing refers to these. References past them span between 2 and 300 messages.
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
    // Message 10 is a checkpoint and refers to itself and to none before the damage: three numbers of one byte
    // each.
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
        text.contains("message 4 at offset") && text.contains("before the first"),
        "{text}"
    );
    let mut dropped_key = plain(6);
    dropped_key[5] = referring(5, 0, &[2]);
    let text = refusal(Dialect::Draft11, &dropped_key, &[2]);
    assert!(
        text.contains("message 5 at offset") && text.contains("a key that is missing"),
        "{text}"
    );
    let mut forward = plain(6);
    forward[0] = referring(0, 0, &[3]);
    let text = refusal(Dialect::Draft11, &forward, &[2]);
    assert!(text.contains("message 0 at offset 0"), "{text}");
}

#[test]
fn messages_before_the_damage_may_refer_anywhere() {
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
        let recovered = bench.recover("new", &RecoverOptions::default()).unwrap();
        assert_eq!(recovered.output.summary.records, 299);
        assert_eq!(fs::read(bench.path("new")).unwrap(), bytes[..places[299]]);
        bytes.truncate(places[299] + 7);
    }
}
