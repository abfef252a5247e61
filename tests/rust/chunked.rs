//! The chunked format under fire: every truncation, every flipped bit, hostile headers and frames, large chunks, carries.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::chunked::{
    Counting, Record, collect, content, finish, frame, header, lenient, noise, push_chunk,
    push_records, scan, segment, strict_error, value,
};
use common::{Windowed, assert_covers, source};
use proptest::prelude::*;
use seglake::Error;
use seglake::format::{Bound, Carry, Eof, Options, Start, Step, Wanted, open};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::Source;
use seglake::verbs::verify;

type Message = (i64, Vec<u8>);

/// Chunks: a gap in front, and records.
fn chunks() -> impl Strategy<Value = Vec<(u8, Vec<Message>)>> {
    let message = (any::<i64>(), prop::collection::vec(any::<u8>(), 0..200));
    prop::collection::vec((any::<u8>(), prop::collection::vec(message, 0..8)), 0..8)
}

fn file(chunks: &[(u8, Vec<Message>)]) -> Vec<u8> {
    let (mut bytes, mut next) = (Vec::new(), 0);
    for (gap, messages) in chunks {
        next += i64::from(*gap);
        push_records(&mut bytes, next, messages);
        next += i64::try_from(messages.len()).unwrap();
    }
    bytes
}

fn messages(records: &[Record]) -> Vec<Message> {
    let message = |record: &Record| (record.timestamp, record.value.clone());
    records.iter().map(message).collect()
}

/// That no range is called a torn tail that has a chunk behind it, and none corrupt for being in front of a chunk that is
/// not there.
fn assert_kinds(ledger: &[Span]) {
    let last_chunk = ledger.iter().rposition(|span| span.kind == Kind::Chunk);
    let refused = [
        Cause::OutOfOrder,
        Cause::UnsupportedFlags,
        Cause::OffsetOutOfBounds,
        Cause::SearchLimit,
    ];
    let unfinished = [Cause::TruncatedHeader, Cause::LengthOutOfBounds];
    for (place, span) in ledger.iter().enumerate() {
        let Some(cause) = span.cause else { continue };
        let followed = last_chunk.is_some_and(|last| place < last);
        if followed || refused.contains(&cause) {
            assert_eq!(span.kind, Kind::Corrupt, "{ledger:?}");
        } else if last_chunk.is_some() || unfinished.contains(&cause) {
            assert_eq!(span.kind, Kind::TornTail, "{ledger:?}");
        }
    }
}

proptest! {
    #[test]
    fn whatever_the_bytes_windows_agree_and_the_ledger_covers(
        chunks in chunks(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1usize..300), 0..5),
        unused in 0usize..400,
        window_bytes in 1usize..3000,
        max_chunk_bytes in 0u64..500,
    ) {
        let mut bytes = file(&chunks);
        let sound = bytes.len();
        bytes.resize(sound + unused, 0);
        for (at, byte, len) in &damage {
            if !bytes.is_empty() {
                let start = at.index(bytes.len());
                let end = bytes.len().min(start + len);
                bytes[start..end].fill(*byte);
            }
        }
        let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_covers(&ledger, bytes.len());
        assert_kinds(&ledger);
        let all: Vec<_> = chunks.iter().flat_map(|(_, messages)| messages.clone()).collect();
        if damage.is_empty() {
            prop_assert_eq!(messages(&records), all);
            prop_assert!(ledger.iter().all(|span| !span.is_damage()), "{:?}", ledger);
        } else {
            for message in messages(&records) {
                prop_assert!(all.contains(&message), "an invented record");
            }
        }
        let windowed = scan(
            Arc::new(Windowed(bytes.clone())),
            &Options { window_bytes, max_chunk_bytes, ..lenient() },
        ).unwrap();
        prop_assert_eq!(&windowed.0, &records);
        prop_assert_eq!(&windowed.1, &ledger);
        let first = ledger.iter().find(|span| span.is_damage()).map(|span| (span.start, span.cause));
        let raised = strict_error(source(&bytes), &lenient()).map(|damage| (damage.offset, Some(damage.cause)));
        prop_assert_eq!(raised, first);
    }

    #[test]
    fn a_carry_goes_on_where_it_was_taken(
        chunks in chunks(),
        flips in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        stop in 0usize..20,
    ) {
        let mut bytes = file(&chunks);
        for flip in flips {
            if !bytes.is_empty() {
                let at = flip.index(bytes.len());
                bytes[at] ^= 0x10;
            }
        }
        let whole = scan(source(&bytes), &lenient()).unwrap();
        let (mut records, mut ledger) = (Vec::new(), Vec::new());
        let source = Arc::new(Windowed(bytes.clone()));
        let mut walk = open(source.clone(), &lenient(), Start::Beginning).unwrap();
        let mut steps = 0;
        loop {
            if steps >= stop {
                walk = open(source.clone(), &lenient(), Start::Carry(&walk.carry())).unwrap();
            }
            steps += 1;
            if walk.step().unwrap() != Step::More {
                break;
            }
            collect(&*walk, &mut records);
            ledger.extend_from_slice(walk.spans());
        }
        prop_assert_eq!((records, ledger), whole);
    }
}

/// A file of about 16 KiB, and where each chunk's record, payload and padding end.
fn sixteen_kib() -> (Vec<u8>, Vec<Record>, Vec<Span>) {
    let bytes = segment(24, 3, 200);
    assert!(
        (15 << 10..18 << 10).contains(&bytes.len()),
        "{}",
        bytes.len()
    );
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    (bytes, records, ledger)
}

#[test]
fn every_truncation_gives_exactly_the_chunks_that_fit_before_it() {
    let (bytes, all, spans) = sixteen_kib();
    let chunks: Vec<_> = spans
        .iter()
        .filter(|span| span.kind == Kind::Chunk)
        .collect();
    for len in 0..=bytes.len() {
        let (records, ledger) = scan(source(&bytes[..len]), &lenient()).unwrap();
        let whole = chunks.iter().filter(|span| span.end <= len as u64).count();
        assert_eq!(records, all[..whole * 3], "cut to {len} bytes");
        assert_covers(&ledger, len);
        assert_kinds(&ledger);
        let cut = chunks
            .iter()
            .find(|span| span.start < len as u64 && (len as u64) < span.end);
        // A first byte that is zero reads as unused space.
        let damaged = cut.is_some_and(|span| len as u64 > span.start + 1);
        assert_eq!(
            ledger.iter().any(Span::is_damage),
            damaged,
            "cut to {len} bytes: {:?}",
            ledger.last()
        );
    }
}

/// 130,000 scans of 16 KiB: some seconds.
#[test]
fn every_flipped_bit_costs_at_most_its_own_chunk() {
    let (mut bytes, all, spans) = sixteen_kib();
    for bit in 0..bytes.len() * 8 {
        let at = bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        let hit = spans.iter().find(|span| span.end > at as u64).unwrap();
        let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
        let lost = |record: &&Record| hit.kind == Kind::Chunk && record.position == hit.start;
        assert!(
            records.iter().eq(all.iter().filter(|record| !lost(record))),
            "bit {bit}"
        );
        assert!(
            ledger
                .iter()
                .any(|span| span.is_damage() && (span.start..span.end).contains(&(at as u64)))
        );
        if bit % 64 == 0 {
            let first = ledger.iter().find(|span| span.is_damage()).unwrap();
            let raised = strict_error(source(&bytes), &lenient()).unwrap();
            assert_eq!(
                (raised.offset, Some(raised.cause)),
                (first.start, first.cause)
            );
            let options = Options {
                window_bytes: 100 + bit % 999,
                ..lenient()
            };
            let windowed = scan(Arc::new(Windowed(bytes.clone())), &options).unwrap();
            assert_eq!(windowed, (records, ledger));
        }
        bytes[at] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_sound_file_is_read_once() {
    let bytes = segment(40, 100, 90);
    let counting = Counting::new(bytes.clone());
    for window_bytes in [100, 10_000, 1 << 20] {
        scan(
            counting.clone(),
            &Options {
                window_bytes,
                ..lenient()
            },
        )
        .unwrap();
        assert_eq!(
            counting.take(),
            bytes.len() as u64,
            "windows of {window_bytes}"
        );
    }
}

#[test]
fn a_walk_can_begin_at_any_chunk() {
    let bytes = segment(5, 4, 50);
    let (all, ledger) = scan(source(&bytes), &lenient()).unwrap();
    for span in ledger.iter().filter(|span| span.kind == Kind::Chunk) {
        let walk = open(source(&bytes), &lenient(), Start::Offset(span.start)).unwrap();
        let (records, rest) = finish(walk).unwrap();
        let expected = all.iter().filter(|record| record.position >= span.start);
        assert!(records.iter().eq(expected));
        assert!(
            rest.iter()
                .eq(ledger.iter().filter(|own| own.start >= span.start))
        );
    }
    for start in [
        Start::Offset(1),
        Start::Offset(bytes.len() as u64 + 0x80),
        Start::Carry(&Carry("{}".to_owned())),
    ] {
        let refused = open(source(&bytes), &lenient(), start);
        assert!(matches!(refused, Err(Error::Usage(_))));
    }
}

#[test]
fn records_are_wanted_by_time_and_message_offset() {
    let bytes = segment(5, 4, 10);
    let offsets = |wanted| {
        let options = Options {
            wanted,
            ..lenient()
        };
        let (records, ledger) = scan(source(&bytes), &options).unwrap();
        let chunks = ledger
            .iter()
            .filter(|span| span.kind == Kind::Chunk)
            .count();
        (
            records
                .iter()
                .map(|record| record.offset)
                .collect::<Vec<_>>(),
            chunks,
        )
    };
    let time = |since: Option<i64>, until: Option<i64>| Wanted {
        since: since.map(Bound::Micros),
        until: until.map(Bound::Micros),
        ..Wanted::default()
    };
    assert_eq!(offsets(time(Some(50), Some(71))).0, [5, 6, 7]);
    assert_eq!(offsets(time(Some(51), Some(70))).0, [6]);
    assert_eq!(offsets(time(None, Some(i64::MIN))).0.len(), 0);
    assert_eq!(offsets(time(Some(i64::MIN), None)).0.len(), 20);
    let between = |range| Wanted {
        offsets: Some(range),
        ..Wanted::default()
    };
    assert_eq!(
        offsets(between(3..6)),
        (vec![3, 4, 5], 2),
        "what is behind is not read"
    );
    assert_eq!(offsets(between(-9..1)).0, [0]);
    assert_eq!(offsets(between(6..3)).0.len(), 0);
    let uuid = Wanted {
        since: Some(Bound::Uuid([0; 16])),
        ..Wanted::default()
    };
    let refused = open(
        source(&bytes),
        &Options {
            wanted: uuid,
            ..lenient()
        },
        Start::Beginning,
    );
    assert!(matches!(refused, Err(Error::Usage(_))));
}

/// A chunk of records of many sizes, with small ones around it.
fn large() -> (Vec<u8>, Vec<Record>) {
    let sizes = [0, 1, 100_000, 5000, 4096, 300_000, 0, 12, 700_000, 4084];
    let own: Vec<_> = (0..)
        .zip(sizes)
        .map(|(at, size)| (at, noise(size as u64, size)))
        .collect();
    let mut bytes = segment(1, 3, 10);
    push_records(&mut bytes, 3, &own);
    push_records(&mut bytes, 13, &[(7, b"behind")]);
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(
        (records.len(), ledger.iter().any(Span::is_damage)),
        (14, false)
    );
    (bytes, records)
}

#[test]
fn a_chunk_too_large_to_keep_is_given_out_in_a_second_pass() {
    let (bytes, all) = large();
    for (max_chunk_bytes, window_bytes) in [
        (0, 1 << 20),
        (5000, 1000),
        (200_000, 1 << 20),
        (1 << 20, 4096),
    ] {
        let options = Options {
            max_chunk_bytes,
            window_bytes,
            ..lenient()
        };
        let (records, _) = scan(Arc::new(Windowed(bytes.clone())), &options).unwrap();
        assert!(records == all, "of at most {max_chunk_bytes} bytes");
        let without = Options {
            values: false,
            ..options.clone()
        };
        let (records, _) = scan(source(&bytes), &without).unwrap();
        assert_eq!(records.len(), all.len());
        let wanted = Wanted {
            offsets: Some(5..12),
            ..Wanted::default()
        };
        let (records, _) = scan(
            source(&bytes),
            &Options {
                wanted,
                ..options.clone()
            },
        )
        .unwrap();
        assert!(records == all[5..12]);
        // A carry from within the chunk.
        let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
        let mut records = Vec::new();
        while walk.step().unwrap() == Step::More {
            collect(&*walk, &mut records);
            walk = open(source(&bytes), &options, Start::Carry(&walk.carry())).unwrap();
        }
        assert!(records == all);
    }
    // Its last byte is of the content checksum: no record may come out before that was looked at.
    let (_, ledger) = scan(source(&bytes), &lenient()).unwrap();
    let mut damaged = bytes.clone();
    damaged[usize::try_from(ledger[2].end).unwrap() - 1] ^= 1;
    let options = Options {
        max_chunk_bytes: 5000,
        ..lenient()
    };
    let (records, ledger) = scan(source(&damaged), &options).unwrap();
    assert_eq!(records.len(), 4);
    assert_eq!(ledger[2].cause, Some(Cause::PayloadInvalid));
}

/// A file that becomes another one of the same length.
struct Turning {
    before: Vec<u8>,
    after: Vec<u8>,
    turned: AtomicBool,
}

impl Source for Turning {
    fn len(&self) -> u64 {
        self.before.len() as u64
    }

    fn path(&self) -> Option<&std::path::Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        let turned = self.turned.load(Ordering::Relaxed);
        let bytes = if turned { &self.after } else { &self.before };
        let start = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
        // The first pass ends with the payload's last bytes.
        self.turned
            .fetch_or(start + buffer.len() == bytes.len(), Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_chunk_that_changes_between_the_passes_is_noticed() {
    let chunk = |byte| {
        let mut body = noise(1, 100_000);
        body[60_000] = byte;
        let mut bytes = Vec::new();
        push_records(
            &mut bytes,
            0,
            &[(0, noise(2, 10_000)), (0, body), (0, noise(3, 10_000))],
        );
        bytes
    };
    let options = Options {
        max_chunk_bytes: 20_000,
        window_bytes: 1000,
        ..lenient()
    };
    let turning = |after| Turning {
        before: chunk(1),
        after,
        turned: AtomicBool::new(false),
    };
    let same = scan(Arc::new(turning(chunk(1))), &options).unwrap();
    assert_eq!(same.0.len(), 3);
    let mut walk = open(Arc::new(turning(chunk(2))), &options, Start::Beginning).unwrap();
    let mut records = Vec::new();
    let error = loop {
        match walk.step() {
            Ok(Step::More) => collect(&*walk, &mut records),
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&error, Error::Io { .. }) && error.to_string().contains("changed"),
        "{error}"
    );
    assert!(records.len() < 2 && records.iter().all(|record| same.0.contains(record)));
}

#[test]
fn a_readers_limits_are_no_damage() {
    let (bytes, _) = large();
    let limited = |options: &Options| match scan(source(&bytes), options) {
        Err(Error::Limit {
            option,
            needed,
            limit,
            ..
        }) => {
            assert!(needed > limit);
            option
        }
        other => panic!("{other:?}"),
    };
    let options = Options {
        limit_chunk_bytes: 1_000_000,
        ..lenient()
    };
    assert_eq!(limited(&options), "limit_chunk_bytes");
    assert_eq!(
        limited(&Options {
            max_chunk_bytes: 5000,
            strict: true,
            ..options.clone()
        }),
        "limit_chunk_bytes"
    );
    let verified = verify(source(&bytes), &options, |_| Ok(()));
    assert!(matches!(verified, Err(Error::Limit { .. })));
    for max_chunk_bytes in [5000, 64 << 20] {
        let options = Options {
            max_record_bytes: 300_012,
            max_chunk_bytes,
            ..lenient()
        };
        assert_eq!(limited(&options), "max_record_bytes");
        let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
        let mut records = Vec::new();
        while walk.step().is_ok() {
            collect(&*walk, &mut records);
        }
        assert_eq!(records.len(), 11, "the records in front of it");
        assert!(matches!(walk.step(), Err(Error::Limit { .. })));
        assert!(
            verify(source(&bytes), &options, |_| Ok(()))
                .unwrap()
                .is_sound()
        );
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let mut bytes = Vec::new();
    let zeros = vec![0; 96 << 20];
    push_records(&mut bytes, 0, &[(0, &zeros)]);
    assert!(bytes.len() < 64 << 10);
    let limited = Options {
        limit_chunk_bytes: 8 << 20,
        ..lenient()
    };
    assert!(matches!(
        scan(source(&bytes), &limited),
        Err(Error::Limit { .. })
    ));
    assert!(matches!(
        verify(source(&bytes), &limited, |_| Ok(())),
        Err(Error::Limit { .. })
    ));
    // More content than its records account for is found without decompressing it all.
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, 0, 1, &frame(&vec![0; 96 << 20]));
    let (_, ledger) = scan(source(&bytes), &limited).unwrap();
    assert_eq!(ledger[0].cause, Some(Cause::PayloadInvalid));
}

/// What is wrong with a payload, according to the error that strict reading raises.
fn reason(payload: &[u8], records: u32) -> String {
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, 0, records, payload);
    push_records(&mut bytes, 10, &[(0, b"good")]);
    for window_bytes in [10, 1 << 20] {
        let options = Options {
            window_bytes,
            ..lenient()
        };
        let (records, ledger) = scan(Arc::new(Windowed(bytes.clone())), &options).unwrap();
        assert_eq!(
            (records.len(), ledger[0].cause),
            (1, Some(Cause::PayloadInvalid))
        );
        assert_eq!(ledger[0].end, 21 + payload.len() as u64);
    }
    let raised = strict_error(source(&bytes), &lenient()).unwrap();
    assert!(raised.finding.expected().contains("one zstd frame"));
    raised.finding.actual()
}

#[test]
fn payloads_that_are_not_exactly_one_good_frame_are_told_apart() {
    let one = content(&[(1, b"value")]);
    let good = frame(&one);
    let with = |change: fn(&mut Vec<u8>)| {
        let mut payload = good.clone();
        change(&mut payload);
        reason(&payload, 1)
    };
    assert!(with(|payload| payload.truncate(payload.len() - 1)).contains("cut off"));
    assert!(with(|payload| payload.truncate(4)).contains("cut off in its header"));
    assert!(with(Vec::clear).contains("no zstd frame"));
    assert!(with(|payload| payload[0] ^= 1).contains("no zstd frame"));
    assert!(with(|payload| payload.push(0)).contains("1 bytes behind it"));
    assert!(with(|payload| payload.extend(payload.clone())).contains("behind it"));
    assert!(with(|payload| *payload.last_mut().unwrap() ^= 1).contains("checksum"));
    assert!(with(|payload| payload[4] &= !4).contains("without content checksum"));
    assert!(reason(&[0x5a, 0x2a, 0x4d, 0x18, 0, 0, 0, 0], 0).contains("skippable"));
    assert!(reason(&good, 2).contains("content of 1 records"));
    assert!(reason(&good, 0).contains("goes on behind"));
    assert!(reason(&frame(&one[..16]), 1).contains("inside record 1"));
    assert!(reason(&frame(&one[..5]), 1).contains("inside record 1"));
    // Frame headers: magic, descriptor (4: content checksum, 1: dictionary ID of one byte), window.
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let head = |rest: &[u8]| reason(&[&magic, rest, &[0; 16]].concat(), 1);
    assert!(head(&[5, 0x58, 7]).contains("dictionary 7"));
    assert!(
        head(&[4, (17 << 3) + 1]).contains("150994944"),
        "one step above 128 MiB"
    );
    assert!(!head(&[4, 17 << 3]).contains("window"), "128 MiB");
    assert!(
        head(&[0xe4, 1, 0, 0, 8, 0, 0, 0, 0]).contains("window of 134217729"),
        "a single segment"
    );
    assert!(
        !head(&[5, 0x58, 0]).contains("dictionary"),
        "dictionary 0 is none"
    );
}

#[test]
fn a_frame_with_the_largest_window_is_read() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, &content(&[(1, b"value")])).unwrap();
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, 0, 1, &encoder.finish().unwrap());
    let (records, _) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(messages(&records), [(1, b"value".to_vec())]);
}

#[test]
fn headers_that_check_and_cannot_be_are_refused() {
    let payload = frame(&content(&[(1, b"value")]));
    let length = u32::try_from(payload.len()).unwrap();
    for (head, cause) in [
        (header(0x84, length, 3, 1), Cause::UnsupportedFlags),
        (header(0, length, -1, 1), Cause::OffsetOutOfBounds),
        (header(0, length, i64::MAX, 2), Cause::OffsetOutOfBounds),
        (header(0, length, 2, 1), Cause::OutOfOrder),
    ] {
        let mut bytes = segment(1, 3, 10);
        bytes.extend([head, payload.clone()].concat());
        let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_eq!(records.len(), 3);
        let last = ledger.last().unwrap();
        assert_eq!((last.kind, last.cause), (Kind::Corrupt, Some(cause)));
        let raised = strict_error(source(&bytes), &lenient()).unwrap();
        assert!(!raised.finding.expected().is_empty() && !raised.finding.actual().is_empty());
    }
    let mut bytes = Vec::new();
    push_records(
        &mut bytes,
        i64::MAX,
        &[(i64::MIN, b"the last one there is")],
    );
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(
        (records[0].offset, records[0].timestamp),
        (i64::MAX, i64::MIN)
    );
    assert_eq!(ledger[0].kind, Kind::Chunk);
}

#[test]
fn chunks_within_a_payload_are_not_the_logs_own() {
    // A body that is a segment, at an aligned offset of the file, stored as it is.
    let mut encoder = zstd::bulk::Compressor::new(-7).unwrap();
    encoder.include_checksum(true).unwrap();
    let inner = segment(2, 3, 100);
    let outer = |fill: usize| {
        let mut body = noise(9, fill);
        body.extend_from_slice(&inner);
        encoder.compress(&content(&[(0, body)])).unwrap()
    };
    let mut outer = outer;
    let fill = (0..0x80)
        .find(|fill| {
            let payload = outer(100 + fill);
            let place = payload
                .windows(100)
                .position(|bytes| bytes == &inner[..100]);
            place.is_some_and(|place| (place + 21) % 0x80 == 0)
        })
        .unwrap();
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, 50, 1, &outer(100 + fill));
    push_records(&mut bytes, 60, &[(0, b"behind")]);
    bytes[3] ^= 0; // as it is
    let (records, _) = scan(source(&bytes), &lenient()).unwrap();
    assert_eq!(records.len(), 2);
    // The header is damaged, its length is not: the frame proves itself.
    let mut damaged = bytes.clone();
    damaged[7] ^= 1;
    let (records, ledger) = scan(source(&damaged), &lenient()).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(
        (ledger.len(), ledger[0].cause),
        (3, Some(Cause::HeaderChecksumMismatch))
    );
    // The payload is damaged, the header is not: it is believed.
    let mut damaged = bytes.clone();
    damaged[60] ^= 1;
    let (records, ledger) = scan(source(&damaged), &lenient()).unwrap();
    assert_eq!(
        (records.len(), ledger[0].cause),
        (1, Some(Cause::PayloadInvalid))
    );
    // Both are damaged: what can be found is found.
    let mut damaged = bytes;
    damaged[7] ^= 1;
    damaged[60] ^= 1;
    let (records, _) = scan(source(&damaged), &lenient()).unwrap();
    assert_eq!(records.len(), 7);
}

/// More damaged ranges than anyone would keep in memory, whose kind only the chunk behind them decides.
#[test]
fn the_fate_of_much_damage_is_decided_by_what_follows_it() {
    let mut bytes = segment(1, 3, 10);
    for _ in 0..3000 {
        push_chunk(&mut bytes, 3, 1, b"no frame");
    }
    let torn = bytes.clone();
    push_records(&mut bytes, 3, &[(0, b"good")]);
    for (bytes, kind) in [(bytes, Kind::Corrupt), (torn, Kind::TornTail)] {
        let (_, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_covers(&ledger, bytes.len());
        let damage: Vec<_> = ledger.iter().filter(|span| span.is_damage()).collect();
        assert_eq!(damage.len(), 3000);
        assert!(damage.iter().all(|span| span.kind == kind));
    }
}

/// Damaged headers that claim, falsely, frames of much content, so that looking at each costs much: what is decompressed in
/// vain stays within the budget, and the search says where it gave up.
#[test]
fn hostile_lengths_stay_within_the_search_budget() {
    // 64 MiB of zeros in a few KiB, with a wrong checksum at their end.
    let mut payload = frame(&vec![0; 64 << 20]);
    *payload.last_mut().unwrap() ^= 1;
    let mut bytes = Vec::new();
    for chunk in 0..8 {
        push_records(&mut bytes, chunk, &[(0, b"good")]);
        let at = bytes.len();
        push_chunk(&mut bytes, chunk, 1, &payload);
        bytes[at + 20] ^= 1; // the head crc
    }
    push_records(&mut bytes, 8, &[(0, b"good")]);
    let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
    assert_covers(&ledger, bytes.len());
    assert_kinds(&ledger);
    let last = ledger.last().unwrap();
    assert_eq!(last.cause, Some(Cause::SearchLimit));
    assert_eq!(records.len(), 5, "four frames of 64 MiB are tried whole");
    // Longer than 64 KiB, they are plausible candidates only where two headers follow.
    let tried = |behind: &[u8]| {
        let mut bytes = Vec::new();
        for chunk in 0..8 {
            push_records(&mut bytes, chunk, &[(0, b"good")]);
            let at = bytes.len();
            let payload = [payload.as_slice(), &noise(5, 65 << 10)].concat();
            push_chunk(&mut bytes, chunk, 1, &payload);
            bytes[at + 20] ^= 1;
            bytes.extend_from_slice(behind);
        }
        push_records(&mut bytes, 8, &[(0, b"good")]);
        let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_covers(&ledger, bytes.len());
        (records.len(), ledger.last().unwrap().cause)
    };
    assert_eq!(
        tried(&noise(6, 0x80)),
        (9, None),
        "implausible ones are passed over"
    );
}

#[test]
fn claims_of_everything_cost_nothing() {
    for (length, start, records) in [
        (u32::MAX, 0, u32::MAX),
        (u32::MAX, i64::MAX, 0),
        (0, 0, u32::MAX),
        (9, i64::MIN, u32::MAX),
    ] {
        let mut bytes = header(0, length, start, records);
        bytes.resize(4096, 0);
        let (found, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_eq!(found.len(), 0);
        assert_covers(&ledger, bytes.len());
        assert!(ledger[0].is_damage());
        bytes[20] ^= 1;
        let (_, ledger) = scan(source(&bytes), &lenient()).unwrap();
        assert_eq!(ledger[0].kind, Kind::Corrupt, "nothing checks");
    }
    // A record that claims 4 GiB, and a frame that claims 2^64-1 bytes.
    let mut lying = content(&[(0, b"value")]);
    lying[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(reason(&frame(&lying), 1).contains("inside record 1"));
    let claims = [
        &[0x28, 0xb5, 0x2f, 0xfd, 0xc4, 0x58][..],
        &[0xff; 8],
        &[1, 0, 0],
        &[0; 4],
    ]
    .concat();
    assert!(reason(&claims, 0).contains("does not decode"));
}

#[test]
fn a_growing_file_is_waited_for() {
    let bytes = segment(3, 2, 100);
    let (all, spans) = scan(source(&bytes), &lenient()).unwrap();
    let options = Options {
        eof: Eof::Growing,
        strict: true,
        ..lenient()
    };
    for len in (0..bytes.len()).step_by(7) {
        for unused in [0, 300] {
            let mut partial = bytes[..len].to_vec();
            partial.resize(len + unused, 0);
            let mut walk = open(source(&partial), &options, Start::Beginning).unwrap();
            let mut records = Vec::new();
            let last = loop {
                match walk.step().unwrap() {
                    Step::More => collect(&*walk, &mut records),
                    last => break last,
                }
            };
            assert_eq!(last, Step::Wait, "{len} bytes");
            let whole = spans
                .iter()
                .filter(|span| span.kind == Kind::Chunk && span.end <= len as u64);
            assert_eq!(records.len(), whole.count() * 2, "{len} bytes");
            let mut walk = open(source(&bytes), &options, Start::Carry(&walk.carry())).unwrap();
            while walk.step().unwrap() == Step::More {
                collect(&*walk, &mut records);
            }
            assert_eq!(records, all, "{len} bytes");
        }
    }
    let mut damaged = bytes;
    damaged[30] ^= 1;
    let mut walk = open(source(&damaged), &options, Start::Beginning).unwrap();
    assert!(
        matches!(walk.step(), Err(Error::Damage(_))),
        "damage with a good chunk behind it is no unfinished write"
    );
}

#[test]
fn an_interrupt_ends_the_reading() {
    let bytes = segment(1, 3, 10);
    let interrupt = Some(seglake::format::Interrupt(Arc::new(|| true)));
    let interrupted = scan(
        source(&bytes),
        &Options {
            interrupt,
            ..lenient()
        },
    );
    assert!(matches!(interrupted, Err(Error::Interrupted)));
}

#[test]
fn many_records_come_in_steps() {
    let messages: Vec<_> = (0..100_000).map(|at| (at, [])).collect();
    let mut bytes = Vec::new();
    push_records(&mut bytes, 0, &messages);
    let mut walk = open(source(&bytes), &lenient(), Start::Beginning).unwrap();
    let mut records = Vec::new();
    while walk.step().unwrap() == Step::More {
        assert!(walk.rows().len() <= 16 << 10);
        collect(&*walk, &mut records);
    }
    let times: Vec<_> = records.iter().map(|record| record.timestamp).collect();
    assert_eq!(times, (0..100_000).collect::<Vec<_>>());
    assert_eq!(value(1, 0), records[1].value);
}
