//! Oplogs of `autobase`: the distances of every version follow when messages are renumbered, and what cannot follow is refused.

use std::fs;

use crate::recovery::Bench;
use crate::renumbering::{case, check_renumbered, frame, oplog, refusal, renumber, uint, value};
use seglake::format::Dialect;

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
    // No number that is left refers to them.
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

/// A message of version 1 or 0. `back` returns the bytes of a distance back.
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
    // Everything after a lost message that it refers to is there.
    check_renumbered(Dialect::Autobase, &batches([1, 3, 2, 1, 1, 1, 1, 1]), &[1]);
}
