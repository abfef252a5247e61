//! Where a search after damage finds the next record of an active segment, and which candidates it tries.

use std::sync::Arc;

use crate::common::{Windowed, assert_covers, lenient, scan, segment, source, uuid};
use seglake::checksum::Key;
use seglake::format::{Options, active};
use seglake::ledger::Cause;

const GENEROUS_BYTES: usize = 32 << 20;
const SHORT_BYTES: usize = 64 << 10;
/// UUID, type length, value length and checksum.
const FRAME_BYTES: usize = 29;

fn record(tick: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    active::encode(&mut bytes, &Key::DEFAULT, &uuid(tick), b"", value).unwrap();
    bytes
}

/// A record whose checksum is wrong.
fn damaged(tick: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = record(tick, value);
    *bytes.last_mut().unwrap() ^= 1;
    bytes
}

fn positions(bytes: &[u8], options: &Options) -> Vec<u64> {
    let (records, ledger) = scan(Arc::new(Windowed(bytes.to_vec())), options).unwrap();
    assert_covers(&ledger, bytes.len());
    let (in_memory, same) = scan(source(bytes), options).unwrap();
    assert!(in_memory == records && same == ledger);
    records.iter().map(|record| record.position).collect()
}

/// A damaged record whose own lengths lead to a good one hides what looks like a record in its value, wherever windows end.
#[test]
fn bytes_in_a_damaged_value_are_not_a_record() {
    let inner = record(5000, b"not a record of this segment");
    let mut value = vec![b'v'; 300];
    value.extend_from_slice(&inner);
    let front = record(1, b"front");
    let hiding = damaged(2, &value);
    let last = record(3, &[b'l'; 40]);
    let bytes = [front.as_slice(), &hiding, &last].concat();
    let expected = [0, (front.len() + hiding.len()) as u64];
    for window_bytes in (1..700).chain([1 << 20]) {
        let options = lenient().window_bytes(window_bytes);
        assert_eq!(positions(&bytes, &options), expected, "{window_bytes}");
    }
}

/// One record, then this many adjacent headers of long records, none of which verifies. Trying them all costs more
/// than may be spent on any candidate.
fn much_in_vain(decoys: usize, body: usize) -> Vec<u8> {
    let mut bytes = record(1, b"front");
    let long = damaged(5000, &vec![0x11; body]);
    let start = bytes.len();
    bytes.extend_from_slice(&long);
    for place in 1..decoys {
        let at = start + place * 64;
        bytes[at..at + 40].copy_from_slice(&long[..40]);
    }
    bytes.extend(vec![0x11; 64 * decoys]); // so that the last of them fits
    bytes
}

/// What may follow a record, and whether it makes a long one plausible.
fn followers() -> Vec<(&'static str, Vec<u8>, bool)> {
    let next = damaged(7000, b"next");
    let longest = {
        let mut bytes = Vec::new();
        let type_ = [b't'; 255];
        active::encode(&mut bytes, &Key::DEFAULT, &uuid(7000), &type_, b"").unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    };
    let mut other_version = next.clone();
    other_version[6] = 0x70;
    let noise = vec![0x11; 300];
    let two = [next.as_slice(), &damaged(7001, b"second")].concat();
    vec![
        ("the end", Vec::new(), true),
        ("unused space", vec![0; 300], true),
        ("one record", next.clone(), true),
        ("two records", two.clone(), true),
        ("a record with a long type", longest.clone(), true),
        (
            "two with long types",
            [longest.as_slice(), &longest].concat(),
            true,
        ),
        (
            "a record and unused space",
            [next.as_slice(), &[0; 9]].concat(),
            true,
        ),
        (
            "two records and noise",
            [two.as_slice(), &noise].concat(),
            true,
        ),
        ("noise", noise.clone(), false),
        ("a byte", vec![1], false),
        (
            "one record and noise",
            [next.as_slice(), &noise].concat(),
            false,
        ),
        ("a record cut short", next[..next.len() - 1].to_vec(), false),
        ("a record of another version", other_version.clone(), false),
        (
            "another version as the second",
            [next.as_slice(), &other_version].concat(),
            false,
        ),
        (
            "two records, the second cut short",
            two[..two.len() - 1].to_vec(),
            false,
        ),
    ]
}

/// Once much was hashed in vain, a long candidate is tried only where what follows it is plausible.
#[test]
fn a_long_candidate_is_tried_after_much_in_vain_if_what_follows_is_plausible() {
    let front = much_in_vain(2 + GENEROUS_BYTES / 900_000, 900_000);
    // Where the candidate ends within the stretches of 4 KiB that looks read: at the beginning of one, near its end.
    for within in [0, 4000] {
        let value_len = 100_000 + (4096 - (front.len() + FRAME_BYTES + 100_000) % 4096) + within;
        let long = record(6000, &vec![0x55; value_len]);
        assert_eq!((front.len() + long.len()) % 4096, within);
        for (name, behind, is_plausible) in followers() {
            let bytes = [front.as_slice(), &long, &behind].concat();
            let mut expected = vec![0];
            expected.extend(is_plausible.then_some(front.len() as u64));
            let (records, _) = scan(Arc::new(Windowed(bytes)), &lenient()).unwrap();
            let found: Vec<_> = records.iter().map(|record| record.position).collect();
            assert_eq!(found, expected, "{name}, {within}");
        }
    }
}

/// A candidate of 64 KiB is always tried, and every one as long as little was hashed in vain.
#[test]
fn short_candidates_and_the_first_ones_are_always_tried() {
    let noise = vec![0x11; 300];
    let much = much_in_vain(2 + GENEROUS_BYTES / 900_000, 900_000);
    let little = much_in_vain(3, 900_000);
    for (front, total, is_tried) in [
        (&much, SHORT_BYTES, true),
        (&much, SHORT_BYTES + 1, false),
        (&little, SHORT_BYTES, true),
        (&little, SHORT_BYTES + 1, true),
    ] {
        let candidate = record(6000, &vec![0x55; total - FRAME_BYTES]);
        let bytes = [front.as_slice(), &candidate, &noise].concat();
        let mut expected = vec![0];
        expected.extend(is_tried.then_some(front.len() as u64));
        assert_eq!(positions(&bytes, &lenient()), expected, "{total}");
    }
}

/// Candidates that nothing confirms cost next to nothing, however many there are and however much they claim.
#[test]
fn implausible_candidates_do_not_use_up_the_budget() {
    let mut bytes = much_in_vain(700, 900_000);
    let last = bytes.len() as u64;
    bytes.extend_from_slice(&record(6000, b"found"));
    bytes.extend(vec![0x11; 300]);
    assert_eq!(positions(&bytes, &lenient()), [0, last]);
}

/// A header that claims more than the file has is not a candidate, even if it is one byte more.
#[test]
fn a_candidate_that_reaches_beyond_the_file_is_passed_over() {
    let front = segment(&Key::DEFAULT, &[("type", "value")]);
    let mut whole = front.clone();
    whole.extend_from_slice(&damaged(2, &[b'v'; 500]));
    let at = whole.len();
    whole.extend_from_slice(&record(6000, &[b'v'; 500]));
    for cut in [1, 2, 8, 9, 100, 400] {
        // The damaged record's length leads nowhere.
        let mut bytes = whole[..whole.len() - cut].to_vec();
        bytes[front.len() + 17] ^= 0x40;
        let (records, ledger) = scan(Arc::new(Windowed(bytes.clone())), &lenient()).unwrap();
        assert_eq!(records.len(), 1, "{cut}");
        assert_covers(&ledger, bytes.len());
        assert_eq!(ledger[1].cause, Some(Cause::LengthOutOfBounds), "{cut}");
    }
    whole[front.len() + 17] ^= 0x40;
    assert_eq!(positions(&whole, &lenient()), [0, at as u64]);
}
