//! Where a search after damaged headers of a chunked segment continues, and how little of a large chunk is
//! buffered.

use std::sync::Arc;

use crate::common::chunked::{
    collect, content, frame, header, lenient, noise, push_chunk, push_records, scan, segment,
    stored_frame,
};
use crate::common::{Windowed, assert_covers, source};
use seglake::Error;
use seglake::format::{Eof, Filter, RecordId, Start, Step, lookup, open};
use seglake::ledger::{Cause, Kind, Span};

const ALIGNMENT: usize = 0x80;
const HEADER_BYTES: usize = 21;
const SHORT_BYTES: usize = 64 << 10;

/// A chunk of `len` bytes with one record, whose body contains an aligned segment of six records.
fn nesting(file: &mut Vec<u8>, start: i64, len: usize) {
    let inner = segment(2, 3, 100);
    let chunk = |front: usize, behind: usize| {
        let body = [noise(9, front), inner.clone(), noise(10, behind)].concat();
        stored_frame(&content(&[(0, body)]))
    };
    let behind = |front: usize| {
        let least = HEADER_BYTES + chunk(front, 1 << 10).len();
        (1 << 10) + len - least
    };
    let front = (200..200 + ALIGNMENT)
        .find(|front| {
            let payload = chunk(*front, behind(*front));
            let place = payload
                .windows(100)
                .position(|bytes| bytes == &inner[..100]);
            place.is_some_and(|place| (place + HEADER_BYTES).is_multiple_of(ALIGNMENT))
        })
        .unwrap();
    let payload = chunk(front, behind(front));
    assert_eq!(HEADER_BYTES + payload.len(), len);
    push_chunk(file, start, 1, &payload);
}

/// A damaged header's length is tried if little was decoded in vain, if little is to be decoded, or if what
/// follows is plausible. Then chunks nested in the payload are not taken for the log's own.
#[test]
fn a_damaged_headers_length_is_tried_if_it_is_short_or_plausible() {
    // 64 MiB of zeros in a few KiB, with a wrong checksum at their end, under a damaged header.
    let mut decoy = frame(&vec![0; 64 << 20]);
    *decoy.last_mut().unwrap() ^= 1;
    let mut much = segment(1, 1, 10);
    let at = much.len();
    push_chunk(&mut much, 1, 1, &decoy);
    much[at + 20] ^= 1;
    // The search after it ends at a header that verifies.
    push_records(&mut much, 1, &[(0, b"good")]);
    let little = segment(1, 1, 10);
    let good = |file: &mut Vec<u8>, start| push_records(file, start, &[(0, b"good")]);
    let followed = |by: &str, file: &mut Vec<u8>| match by {
        "two chunks" => {
            good(file, 1000);
            good(file, 1001);
        }
        "one chunk" => good(file, 1000),
        "one chunk and unused space" => {
            good(file, 1000);
            file.resize(file.len() + 1000, 0);
        }
        "unused space" => file.resize(file.len() + 1000, 0),
        "one chunk and noise" => {
            good(file, 1000);
            file.extend(noise(7, 500));
        }
        "noise" => file.extend(noise(7, 500)),
        _ => {}
    };
    for (front, len, by, is_tried) in [
        (&little, SHORT_BYTES + 1, "noise", true),
        (&much, SHORT_BYTES, "noise", true),
        (&much, SHORT_BYTES, "one chunk and noise", true),
        (&much, SHORT_BYTES + 1, "noise", false),
        (&much, SHORT_BYTES + 1, "one chunk and noise", false),
        (&much, SHORT_BYTES + 1, "one chunk", true),
        (&much, SHORT_BYTES + 1, "one chunk and unused space", true),
        (&much, SHORT_BYTES + 1, "two chunks", true),
        (&much, SHORT_BYTES + 1, "unused space", true),
        (&much, SHORT_BYTES + 1, "nothing", true),
    ] {
        let mut bytes = front.clone();
        let at = bytes.len();
        nesting(&mut bytes, 500, len);
        bytes[at + 20] ^= 1;
        followed(by, &mut bytes);
        let (records, ledger) = scan(Arc::new(Windowed(bytes.clone())), &lenient()).unwrap();
        assert_covers(&ledger, bytes.len());
        let within = at as u64..(at + len) as u64;
        let is_nested = records
            .iter()
            .any(|record| within.contains(&record.position));
        assert_eq!(is_nested, !is_tried, "{len}, {by}");
    }
}

/// A good chunk is found wherever it begins after damage that proves nothing.
#[test]
fn the_next_chunk_is_found_after_damage_of_any_length() {
    for len in [100, 8000, 8192, 8193, 20_000, 1 << 20, 3 << 20] {
        let mut bytes = segment(1, 3, 10);
        let at = bytes.len();
        push_chunk(&mut bytes, 3, 1, &noise(3, len));
        bytes[at + 20] ^= 1;
        push_records(&mut bytes, 4, &[(0, b"behind")]);
        for windowed in [false, true] {
            let source = if windowed {
                Arc::new(Windowed(bytes.clone()))
            } else {
                source(&bytes)
            };
            let (records, ledger) = scan(source, &lenient()).unwrap();
            assert_covers(&ledger, bytes.len());
            assert_eq!(records.len(), 4, "{len}");
        }
    }
}

/// Padding that is not all there is waited for: it is judged as one range.
#[test]
fn padding_is_judged_when_it_is_complete() {
    let whole = segment(2, 2, 100);
    let (_, spans) = scan(source(&whole), &lenient()).unwrap();
    let padding = spans
        .iter()
        .find(|span| span.kind == Kind::Padding)
        .unwrap();
    let [start, end] = [padding.start, padding.end].map(|at| usize::try_from(at).unwrap());
    let mut damaged = whole.clone();
    damaged[end - 1] = 1;
    for bytes in [&whole, &damaged] {
        let (all, complete) = scan(source(bytes), &lenient()).unwrap();
        let is_damaged = bytes == &damaged;
        let cause = is_damaged.then_some(Cause::NonzeroPadding);
        assert_eq!(complete[1].cause, cause);
        for cut in start..=end {
            let options = lenient().eof(Eof::Growing);
            let (mut records, mut ledger) = (Vec::new(), Vec::new());
            let mut walk = open(source(&bytes[..cut]), &options, Start::Beginning).unwrap();
            while walk.step().unwrap() == Step::More {
                collect(&*walk, &mut records);
                ledger.extend_from_slice(walk.spans());
            }
            if cut < end {
                assert_eq!(walk.offset(), start as u64, "{cut}");
            }
            let carry = walk.carry().unwrap();
            let mut walk = open(source(bytes), &lenient(), Start::Carry(&carry)).unwrap();
            while walk.step().unwrap() == Step::More {
                collect(&*walk, &mut records);
                ledger.extend_from_slice(walk.spans());
            }
            assert_eq!((&records, &ledger), (&all, &complete), "{cut}");
            assert_eq!(walk.offset(), bytes.len() as u64);
        }
    }
}

/// A chunk that verifies and is refused is damage at once. Nothing that may still be written after it changes
/// that.
#[test]
fn a_refused_chunk_at_the_end_of_a_growing_file_is_not_waited_for() {
    let payload = frame(&content(&[(0, b"value")]));
    let length = u32::try_from(payload.len()).unwrap();
    let mut bytes = segment(1, 3, 10);
    let at = bytes.len() as u64;
    bytes.extend(header(0x84, length, 3, 1));
    bytes.extend(payload);
    for strict in [false, true] {
        let options = lenient().eof(Eof::Growing).strict(strict);
        let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
        let mut ledger = Vec::new();
        let last = loop {
            match walk.step() {
                Ok(Step::More) => ledger.extend_from_slice(walk.spans()),
                last => break last,
            }
        };
        if strict {
            let Err(Error::Damage(damage)) = last else {
                panic!("{last:?}")
            };
            assert_eq!((damage.offset, damage.cause), (at, Cause::UnsupportedFlags));
        } else {
            assert!(matches!(last, Ok(Step::Wait)), "{last:?}");
            assert_eq!(walk.offset(), bytes.len() as u64);
        }
    }
}

/// A search that ends at an offset that is asked for ends there, also in a growing file. At the end of the file it
/// waits.
#[test]
fn a_range_of_a_growing_file_ends_after_its_last_record() {
    let bytes = segment(5, 10, 20);
    for prune in [false, true] {
        for (until, last) in [
            (15_u64, Step::Done),
            (40, Step::Done),
            (50, Step::Wait),
            (90, Step::Wait),
        ] {
            let options = lenient().eof(Eof::Growing).prune(prune).filter(
                Filter::default()
                    .at_least("offset", 12)
                    .below("offset", until),
            );
            let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
            let mut records = Vec::new();
            let end = loop {
                match walk.step().unwrap() {
                    Step::More => collect(&*walk, &mut records),
                    end => break end,
                }
            };
            let found = records.iter().map(|record| record.offset);
            assert!(
                found.eq(12..until.min(50).cast_signed()),
                "{prune}, {until}"
            );
            assert_eq!(end, last, "{prune}, {until}");
        }
    }
}

/// Damage at the end of the file is a torn tail only if an earlier header's checksum matches.
#[test]
fn a_range_says_of_damage_what_the_whole_scan_says() {
    for (chunks, kind) in [(0, Kind::Corrupt), (1, Kind::TornTail)] {
        let mut bytes = segment(chunks, 3, 10);
        let at = bytes.len();
        push_records(&mut bytes, 3 * chunks, &[(0, b"lost")]);
        bytes[at + 5] ^= 1;
        let damage = |spans: &[Span]| {
            let span = spans.iter().find(|span| span.is_damage()).unwrap();
            (span.start, span.kind, span.cause)
        };
        let whole = scan(source(&bytes), &lenient()).unwrap().1;
        let wanted = Filter::default()
            .at_least("offset", 3 * chunks.cast_unsigned())
            .below("offset", u64::MAX);
        let lookup = lookup(source(&bytes), &lenient()).unwrap();
        let mut walk = lookup.range(&wanted).unwrap();
        let mut spans = Vec::new();
        while walk.step().unwrap() == Step::More {
            spans.extend_from_slice(walk.spans());
        }
        let cause = Some(Cause::HeaderChecksumMismatch);
        assert_eq!(damage(&whole), (at as u64, kind, cause));
        assert_eq!(damage(&spans), damage(&whole));
    }
}

#[test]
fn a_look_up_by_offset_finds_what_the_options_do_not_want() {
    let bytes = segment(3, 3, 10);
    let options = lenient().filter(Filter::default().below("timestamp", 20));
    let lookup = lookup(source(&bytes), &options).unwrap();
    let ids = [1, 7].map(RecordId::from);
    let hits = lookup.get(&ids).unwrap();
    assert!(hits.places.iter().all(Option::is_some), "{:?}", hits.places);
}
