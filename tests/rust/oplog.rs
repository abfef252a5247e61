//! The oplog format under fire: round trips, every truncation, every flipped bit, carries, and a plain model of the rules.

use crate::messages;
use std::sync::Arc;

use crate::common::{Windowed, assert_covers, bits};
use crate::messages::{collect, dialects, file, framed, lenient, scan, source, varied};
use proptest::prelude::*;
use seglake::Error;
use seglake::format::{Dialect, Options, Start, Step, open, oplog};
use seglake::ledger::{Cause, Kind, Span};
use serde_json::{Value as Json, json};

/// The ledger as the rules have it, without regard for speed: each message decoded alone, each chain of lengths walked anew.
fn model(bytes: &[u8], dialect: Dialect) -> Vec<(u64, u64, Kind, Option<Cause>)> {
    let decodes = |message: &[u8]| match oplog::decode_message(message, dialect, None) {
        Ok(_) => None,
        Err(Error::Damage(damage)) => Some(damage.cause),
        Err(other) => panic!("{other}"),
    };
    let buffer = |at: usize| -> Result<&[u8], Cause> {
        let first = *bytes.get(at).ok_or(Cause::TruncatedHeader)?;
        let width = match first {
            0xfd => 2,
            0xfe => 4,
            0xff => 8,
            _ => 0,
        };
        let number = bytes
            .get(at + 1..at + 1 + width)
            .ok_or(Cause::TruncatedHeader)?;
        let len = match width {
            0 => first.into(),
            _ => number
                .iter()
                .rev()
                .fold(0u64, |len, byte| len << 8 | u64::from(*byte)),
        };
        let rest = &bytes[at + 1 + width..];
        rest.get(..usize::try_from(len).unwrap())
            .ok_or(Cause::LengthOutOfBounds)
    };
    let end = |message: &[u8]| message.as_ptr_range().end as usize - bytes.as_ptr() as usize;
    let leads_to_the_end = |mut at: usize| {
        while at < bytes.len() {
            match buffer(at) {
                Ok([]) | Err(_) => return false,
                Ok(message) => at = end(message),
            }
        }
        true
    };
    let (mut ledger, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (to, kind, cause) = match buffer(at).map(|message| (message, decodes(message))) {
            Err(cause) => (bytes.len(), Kind::TornTail, Some(cause)),
            Ok((message, None)) => (end(message), Kind::Record, None),
            Ok((message, cause)) => {
                let next = end(message);
                let next_decodes = buffer(next).is_ok_and(|next| decodes(next).is_none());
                let goes_on = !message.is_empty() && next_decodes && leads_to_the_end(next);
                (
                    if goes_on { next } else { bytes.len() },
                    Kind::Corrupt,
                    cause,
                )
            }
        };
        ledger.push((at as u64, to as u64, kind, cause));
        at = to;
    }
    ledger
}

/// The same of a walk's ledger, where a reference that leads nowhere is damage too.
fn undangled(ledger: &[Span]) -> Vec<(u64, u64, Kind, Option<Cause>)> {
    let dangling = Some(Cause::DanglingReference);
    ledger
        .iter()
        .map(|span| {
            let cause = span.cause.filter(|_| span.cause != dangling);
            (span.start, span.end, span.kind, cause)
        })
        .collect()
}

fn strict_error(bytes: &[u8], options: &Options) -> Option<(u64, Option<Cause>)> {
    let strict = options.clone().strict(true);
    match scan(source(bytes), &strict) {
        Ok(_) => None,
        Err(Error::Damage(damage)) => Some((damage.offset, Some(damage.cause))),
        Err(other) => panic!("not damage: {other}"),
    }
}

fn first_damage(ledger: &[Span]) -> Option<(u64, Option<Cause>)> {
    ledger
        .iter()
        .find(|span| span.is_damage())
        .map(|span| (span.start, span.cause))
}

proptest! {
    #[test]
    fn messages_round_trip(messages in messages::messages(), dialect in dialects()) {
        let bytes = file(dialect, &messages);
        let strict = lenient(dialect).strict(true);
        let (records, ledger) = scan(source(&bytes), &strict).unwrap();
        assert_covers(&ledger, bytes.len());
        prop_assert_eq!(records.len(), messages.len());
        for (seq, (record, message)) in records.iter().zip(&messages).enumerate() {
            let (mut fields, mut expected) = (record[1].clone(), message.shown(dialect));
            prop_assert_eq!(&fields["seq"], seq);
            expected["seq"] = json!(seq);
            // Where a key was declared is another matter than which it is.
            if dialect == Dialect::Draft11 {
                for entry in fields["clock"].as_array_mut().unwrap().iter_mut() {
                    entry["seq"] = Json::Null;
                    entry["offset"] = Json::Null;
                }
                expected["keys"] = fields["keys"].clone();
            }
            prop_assert_eq!(fields, expected);
        }
    }

    #[test]
    fn whatever_the_bytes_the_rules_hold(
        messages in messages::messages(),
        dialect in dialects(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1usize..20), 0..5),
        window_bytes in 1usize..3000,
    ) {
        let mut bytes = file(dialect, &messages);
        for (at, byte, len) in damage {
            if !bytes.is_empty() {
                let start = at.index(bytes.len());
                let end = bytes.len().min(start + len);
                bytes[start..end].fill(byte);
            }
        }
        let options = lenient(dialect);
        let (records, ledger) = scan(source(&bytes), &options).unwrap();
        assert_covers(&ledger, bytes.len());
        prop_assert_eq!(undangled(&ledger), model(&bytes, dialect));
        let positions: Vec<_> = records.iter().map(|record| record[0].as_u64().unwrap()).collect();
        let kept: Vec<_> = ledger.iter().filter(|span| span.kind == Kind::Record).map(|span| span.start).collect();
        prop_assert_eq!(positions, kept);
        let windowed = options.clone().window_bytes(window_bytes);
        prop_assert_eq!(&scan(Arc::new(Windowed(bytes.clone())), &windowed).unwrap(), &(records, ledger.clone()));
        prop_assert_eq!(strict_error(&bytes, &options), first_damage(&ledger));
    }

    #[test]
    fn a_carry_goes_on_where_it_was_taken(
        messages in messages::messages(),
        dialect in dialects(),
        flip: prop::sample::Index,
        stop in 0usize..20,
    ) {
        let mut bytes = file(dialect, &messages);
        if !bytes.is_empty() {
            let at = flip.index(bytes.len());
            bytes[at] ^= 0x10;
        }
        let whole = scan(source(&bytes), &lenient(dialect)).unwrap();
        // Small windows make many steps.
        let options = lenient(dialect).window_bytes(64);
        let begin = |start: Start<'_>| open(Arc::new(Windowed(bytes.clone())), &options, start).unwrap();
        let (mut records, mut ledger) = (Vec::new(), Vec::new());
        let mut walk = begin(Start::Beginning);
        for step in 0.. {
            if step == stop {
                let carry = walk.carry().unwrap();
                walk = begin(Start::Carry(&carry));
            }
            if walk.step().unwrap() != Step::More {
                break;
            }
            collect(&*walk, dialect, &mut records);
            ledger.extend_from_slice(walk.spans());
        }
        prop_assert_eq!((records, ledger), whole);
    }
}

/// Where messages are, and the ledger: cheaper than all of their fields.
fn positions(bytes: &[u8], options: &Options) -> (Vec<u64>, Vec<Span>) {
    let mut walk = open(source(bytes), options, Start::Beginning).unwrap();
    let (mut positions, mut ledger) = (Vec::new(), Vec::new());
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        positions.extend((0..rows.len()).map(|row| rows.position(row)));
        ledger.extend_from_slice(walk.spans());
    }
    (positions, ledger)
}

/// A file to be damaged in every way: the dialect with the most rules has the longest.
fn target(dialect: Dialect) -> Vec<u8> {
    let len = if dialect == Dialect::Draft11 { 8 } else { 4 };
    let bytes = varied(dialect, len << 10);
    assert!(bytes.len() > len * 800, "{} bytes", bytes.len());
    bytes
}

#[test]
fn every_truncation_gives_exactly_the_messages_that_fit_before_it() {
    for dialect in Dialect::ALL {
        let bytes = target(*dialect);
        let options = lenient(*dialect);
        let (all, ledger) = scan(source(&bytes), &options).unwrap();
        assert!(ledger.iter().all(|span| !span.is_damage()));
        for len in 0..=bytes.len() {
            let (kept, cut) = positions(&bytes[..len], &options);
            let whole = ledger.partition_point(|span| span.end <= len as u64);
            let expected = ledger[..whole].iter().map(|span| span.start);
            assert!(kept.into_iter().eq(expected), "cut to {len} bytes");
            assert_covers(&cut, len);
            let torn = cut.get(whole).map(|span| span.kind);
            let inside = ledger.iter().all(|span| span.end != len as u64) && len > 0;
            assert_eq!(torn, inside.then_some(Kind::TornTail), "{len} bytes");
            if len % 97 == 0 {
                let (records, _) = scan(source(&bytes[..len]), &options).unwrap();
                assert!(records == all[..whole], "{dialect:?} cut to {len} bytes");
                assert_eq!(strict_error(&bytes[..len], &options), first_damage(&cut));
            }
        }
    }
}

/// 65,536 scans of 8 KiB, and as many of 4 KiB.
#[test]
fn every_flipped_bit_leaves_the_messages_before_it() {
    for dialect in Dialect::ALL {
        let mut bytes = target(*dialect);
        let options = lenient(*dialect);
        let (all, _) = positions(&bytes, &options);
        for bit in bits(bytes.len()) {
            let at = bit / 8;
            bytes[at] ^= 1 << (bit % 8);
            let (kept, ledger) = positions(&bytes, &options);
            assert_covers(&ledger, bytes.len());
            let in_front = all.partition_point(|position| *position <= at as u64) - 1;
            assert!(kept.starts_with(&all[..in_front]), "{dialect:?}, bit {bit}");
            if bit % 97 == 0 {
                assert_eq!(undangled(&ledger), model(&bytes, *dialect), "bit {bit}");
                assert_eq!(strict_error(&bytes, &options), first_damage(&ledger));
                let windowed = options.clone().window_bytes(100);
                let windows = scan(Arc::new(Windowed(bytes.clone())), &windowed).unwrap();
                assert_eq!(scan(source(&bytes), &options).unwrap(), windows);
            }
            bytes[at] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn two_adjacent_corrupt_messages_end_the_reading_also_after_a_proven_chain() {
    let good = framed(b"\0\x01\0\0\0\x01A");
    let bad = framed(b"\0\x01\0\0\0\x02A");
    let alternating = [&good[..], &bad, &good, &bad, &good].concat();
    let (records, ledger) = scan(source(&alternating), &lenient(Dialect::Draft)).unwrap();
    assert_eq!((records.len(), ledger.len()), (3, 5));
    let seqs: Vec<_> = records.iter().map(|record| &record[1]["seq"]).collect();
    assert_eq!(seqs, [0, 2, 4], "a corrupt message counts");
    let bytes = [alternating, bad.clone(), bad, good].concat();
    let (records, ledger) = scan(source(&bytes), &lenient(Dialect::Draft)).unwrap();
    assert_eq!((records.len(), ledger.len()), (3, 6));
}
