//! The chunked format under fire: every truncation, every flipped bit, hostile headers and frames, large chunks, carries.

use std::sync::Arc;

use crate::common::chunked::{
    Record, assert_kinds, collect, content, finish, frame, header, lenient, noise, push_chunk,
    push_records, scan, segment, stored_frame, strict_error, value,
};
use crate::common::counting::Counting;
use crate::common::{Windowed, assert_covers, bits, source};
use proptest::prelude::*;
use seglake::Error;
use seglake::format::{Carry, Eof, Filter, Scalar, Start, Step, open};
use seglake::ledger::{Cause, Kind, Span};

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

proptest! {
    #[test]
    fn whatever_the_bytes_windows_agree_and_the_ledger_covers(
        chunks in chunks(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1usize..300), 0..5),
        unused in 0usize..400,
        window_bytes in 1usize..3000,
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
            &lenient().window_bytes(window_bytes),
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
                walk = open(source.clone(), &lenient(), Start::Carry(&walk.carry().unwrap())).unwrap();
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
    let bytes = segment(21, 3, 200);
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
        // First bytes that are zero read as unused space.
        let begins = |start| {
            bytes[usize::try_from(start).unwrap()..len]
                .iter()
                .any(|byte| *byte != 0)
        };
        let damaged = cut.is_some_and(|span| begins(span.start));
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
    let mut meaningless = 0;
    for bit in bits(bytes.len()) {
        let at = bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        let hit = spans.iter().find(|span| span.end > at as u64).unwrap();
        let (records, ledger) = scan(source(&bytes), &lenient()).unwrap();
        if records == all && ledger == spans {
            // Some bits of a zstd frame's header have no effect.
            assert_eq!(at as u64, hit.start + 21 + 4, "bit {bit}");
            meaningless += 1;
            bytes[at] ^= 1 << (bit % 8);
            continue;
        }
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
            let options = lenient().window_bytes(100 + bit % 999);
            let windowed = scan(Arc::new(Windowed(bytes.clone())), &options).unwrap();
            assert_eq!(windowed, (records, ledger));
        }
        bytes[at] ^= 1 << (bit % 8);
    }
    assert!(meaningless <= 21, "{meaningless} of 21 frames");
}

#[test]
fn a_sound_file_is_read_once() {
    let bytes = segment(40, 100, 90);
    let counting = Counting::new(bytes.clone());
    for window_bytes in [100, 10_000, 1 << 20] {
        scan(counting.clone(), &lenient().window_bytes(window_bytes)).unwrap();
        assert_eq!(
            counting.take().0,
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
fn records_are_filtered_by_time_and_message_offset() {
    let bytes = segment(5, 4, 10);
    let offsets = |wanted| {
        let options = lenient().filter(wanted);
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
    let time = |since: Option<i64>, until: Option<i64>| {
        let mut filter = Filter::default();
        if let Some(since) = since {
            filter = filter.at_least("timestamp", since);
        }
        if let Some(until) = until {
            filter = filter.below("timestamp", until);
        }
        filter
    };
    assert_eq!(offsets(time(Some(50), Some(71))).0, [5, 6, 7]);
    assert_eq!(offsets(time(Some(51), Some(70))).0, [6]);
    assert_eq!(offsets(time(None, Some(i64::MIN))).0.len(), 0);
    let [near, far] = [i128::from(i64::MIN) - 1, i128::from(i64::MAX) + 1].map(Scalar::Integer);
    let from = |least: &Scalar| Filter::default().at_least("timestamp", least.clone());
    let to = |end: &Scalar| Filter::default().below("timestamp", end.clone());
    assert_eq!(offsets(from(&near)).0, offsets(Filter::default()).0);
    assert_eq!(offsets(to(&far)).0, offsets(Filter::default()).0);
    assert_eq!(offsets(from(&far)).0.len() + offsets(to(&near)).0.len(), 0);
    assert_eq!(offsets(time(Some(i64::MIN), None)).0.len(), 20);
    let between = |range: std::ops::Range<u64>| {
        Filter::default()
            .at_least("offset", range.start)
            .below("offset", range.end)
    };
    assert_eq!(
        offsets(between(3..6)),
        (vec![3, 4, 5], 2),
        "what is behind is not read"
    );
    assert_eq!(offsets(between(0..1)).0, [0]);
    assert_eq!(offsets(between(6..6)).0.len(), 0);
    let uuid = Filter::default().at_least("uuid", [0; 16]);
    let refused = open(source(&bytes), &lenient().filter(uuid), Start::Beginning);
    assert!(matches!(refused, Err(Error::Usage(_))));
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
        if cause == Cause::UnsupportedFlags {
            let told = "flags 0x84, with bits [2, 7] set";
            assert_eq!(raised.finding.actual(), told);
        }
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
    let inner = segment(2, 3, 100);
    let outer = |fill: usize| {
        let mut body = noise(9, fill);
        body.extend_from_slice(&inner);
        stored_frame(&content(&[(0, body)]))
    };
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
    // The payload is damaged and the header is not, so the header is used.
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

/// More damaged ranges than fit in memory. Only the chunk after them decides their kind.
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

#[test]
fn a_growing_file_is_waited_for() {
    let bytes = segment(3, 2, 100);
    let (all, spans) = scan(source(&bytes), &lenient()).unwrap();
    let options = lenient().eof(Eof::Growing).strict(true);
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
            let mut walk = open(
                source(&bytes),
                &options,
                Start::Carry(&walk.carry().unwrap()),
            )
            .unwrap();
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
    let interrupt = Some(seglake::format::Interrupt::new(|| true));
    let interrupted = scan(source(&bytes), &lenient().interrupt(interrupt));
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
