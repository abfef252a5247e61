//! The tenant format under fire: round trips, every truncation, every flipped bit, hostile tables, carries, limits.

use std::path::Path;
use std::sync::Arc;

use crate::common::counting::Counting;
use crate::common::{Windowed, assert_covers, bits, source};
use crate::tenant_segments::{
    Message, Segment, collect, encode, lenient, messages, scan, strict_error, varied,
};
use proptest::prelude::*;
use seglake::Error;
use seglake::format::{FORMATS, Filter, Options, Start, Step, by_name, detect, open, tenant};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::{BytesSource, Source};
use seglake::verbs::{Ledger, verify};

/// A ledger in file order.
fn ledger(bytes: &[u8]) -> Vec<Span> {
    let ledger = Ledger::new(source(bytes), &lenient()).unwrap();
    ledger.map(Result::unwrap).collect()
}

/// The properties that must be true of any bytes.
fn assert_sane(bytes: &[u8]) -> (Vec<Message>, Vec<Span>) {
    let (records, mut spans) = scan(source(bytes), &lenient()).unwrap();
    spans.sort_by_key(|span| (span.start, span.end));
    if bytes.is_empty() {
        return (records, spans);
    }
    assert_covers(&spans, bytes.len());
    for pair in spans.windows(2) {
        let alike = (pair[0].kind, pair[0].cause) == (pair[1].kind, pair[1].cause);
        assert!(!alike || pair[0].kind == Kind::Block, "{pair:?} are one");
    }
    let first = spans.iter().find(|span| span.is_damage());
    let raised = strict_error(source(bytes));
    assert_eq!(
        raised.map(|damage| (damage.offset, Some(damage.cause))),
        first.map(|span| (span.start, span.cause)),
        "{spans:?}"
    );
    (records, spans)
}

#[test]
fn the_golden_blocks_are_kept() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/tenant");
    let mut seen = 0;
    for entry in std::fs::read_dir(vectors).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let expected: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let bytes = std::fs::read(path.with_extension("bin")).unwrap();
        for window_bytes in [7, 100, 1 << 20] {
            let options = lenient().window_bytes(window_bytes);
            let blocks = tenant::blocks(Arc::new(Windowed(bytes.clone())), &options).unwrap();
            let blocks: serde_json::Value = blocks
                .iter()
                .map(|block| {
                    let tenant = match block.tenant.len() {
                        ..=96 => hex::encode(&block.tenant).into(),
                        _ => {
                            use sha2::Digest;
                            serde_json::json!({
                                "sha256": hex::encode(sha2::Sha256::digest(&block.tenant)),
                                "length": block.tenant.len(),
                            })
                        }
                    };
                    serde_json::json!({
                        "position": block.position,
                        "partition": block.partition,
                        "tenant": tenant,
                        "messages": block.messages,
                    })
                })
                .collect();
            assert_eq!(blocks, expected["blocks"], "{}", path.display());
        }
        assert_sane(&bytes);
        seen += 1;
    }
    assert!(seen > 60, "{seen} golden files");
}

proptest! {
    #[test]
    fn messages_round_trip(messages in messages(), version in 1u16..3) {
        let segment = encode(version, &messages);
        let options = lenient().strict(true);
        let (records, spans) = scan(source(&segment.bytes), &options).unwrap();
        prop_assert_eq!(&records, &segment.messages);
        prop_assert!(spans.iter().all(|span| !span.is_damage()));
        prop_assert_eq!(ledger(&segment.bytes), assert_sane(&segment.bytes).1);
    }

    #[test]
    fn whatever_the_bytes_windows_agree_and_the_ledger_covers(
        messages in messages(),
        version in 1u16..3,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1usize..40), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        window_bytes in 1usize..600,
    ) {
        let segment = encode(version, &messages);
        let mut bytes = segment.bytes;
        for (at, byte, len) in damage {
            let start = at.index(bytes.len());
            let end = bytes.len().min(start + len);
            bytes[start..end].fill(byte);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let (records, spans) = assert_sane(&bytes);
        if version == 2 {
            for record in &records {
                let known = |other: &Message| other.same_message(record);
                prop_assert!(segment.messages.iter().any(known), "an invented message {record:?}");
            }
        }
        let options = lenient().window_bytes(window_bytes);
        let windowed = Arc::new(Windowed(bytes.clone()));
        let (again, mut ranges) = scan(windowed.clone(), &options).unwrap();
        ranges.sort_by_key(|span| (span.start, span.end));
        prop_assert_eq!(&again, &records);
        prop_assert_eq!(&ranges, &spans);
        let report = verify(windowed, &options, |_| Ok(())).unwrap();
        prop_assert_eq!((report.summary.records, report.summary.bytes), (records.len() as u64, bytes.len() as u64));
        prop_assert_eq!(&Ledger::new(source(&bytes), &lenient()).unwrap().map(Result::unwrap).collect::<Vec<_>>(), &spans);
    }

    #[test]
    fn a_walk_can_begin_at_any_message(messages in messages(), version in 1u16..3, window_bytes in 1usize..100) {
        let segment = encode(version, &messages);
        let whole = ledger(&segment.bytes);
        let options = lenient().window_bytes(window_bytes).strict(true);
        let windowed: Arc<dyn Source> = Arc::new(Windowed(segment.bytes.clone()));
        for (place, message) in segment.messages.iter().enumerate() {
            let mut walk = open(windowed.clone(), &options, Start::Offset(message.position)).unwrap();
            let (mut records, mut spans) = (Vec::new(), Vec::new());
            while walk.step().unwrap() == Step::More {
                collect(&*walk, &mut records);
                spans.extend_from_slice(walk.spans());
            }
            prop_assert_eq!(&records, &segment.messages[place..]);
            let from = whole.iter().filter(|span| span.end > message.position);
            prop_assert!(spans.iter().eq(from), "{:?} from {}", spans, message.position);
        }
    }
}

#[test]
fn a_start_at_which_no_message_begins_is_refused() {
    let segment = varied(2, 2 << 10);
    let starts = |offset| -> seglake::Result<()> {
        let mut walk = open(source(&segment.bytes), &lenient(), Start::Offset(offset))?;
        while walk.step()? == Step::More {}
        Ok(())
    };
    assert!(starts(segment.messages[3].position).is_ok());
    for offset in [
        0,
        segment.messages[3].position + 1,
        segment.bytes.len() as u64,
        u64::MAX,
    ] {
        let started = starts(offset);
        assert!(matches!(started, Err(Error::Usage(_))), "{offset}");
    }
    let carry = seglake::format::Carry("{}".to_owned());
    let started = open(source(&segment.bytes), &lenient(), Start::Carry(&carry));
    assert!(matches!(started, Err(Error::Usage(_))));
}

#[test]
fn every_truncation_keeps_the_blocks_that_are_whole() {
    for version in [1, 2] {
        let segment = varied(version, 4 << 10);
        for len in 0..segment.bytes.len() {
            let (records, spans) = assert_sane(&segment.bytes[..len]);
            assert!(spans.iter().any(Span::is_damage), "cut to {len} bytes");
            let whole = segment
                .messages
                .iter()
                .filter(|message| message.block_end <= len as u64);
            if len as u64 > segment.toc_end {
                assert!(
                    records.iter().eq(whole),
                    "version {version} cut to {len} bytes"
                );
            } else {
                assert_eq!(records, [], "version {version} cut to {len} bytes");
            }
        }
    }
}

/// Some 50,000 scans, and strict ones of every seventh, which several threads share.
#[test]
fn every_flipped_bit_costs_at_most_one_block() {
    let segment = varied(2, 4 << 10);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for first in 0..threads {
            let segment = &segment;
            scope.spawn(move || {
                let mut bytes = segment.bytes.clone();
                for bit in bits(bytes.len()).skip(first).step_by(threads) {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    costs_at_most_one_block(segment, &bytes, bit);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            });
        }
    });
}

/// Reads the segment with this bit flipped.
fn costs_at_most_one_block(segment: &Segment, bytes: &[u8], bit: usize) {
    let (records, spans) = scan(source(bytes), &lenient()).unwrap();
    let damage = spans.iter().filter(|span| span.is_damage()).count();
    assert!(damage > 0, "bit {bit} shows nowhere");
    if bit.is_multiple_of(7) {
        assert_sane(bytes);
    }
    let mut missing = segment.messages.iter();
    let mut lost = std::collections::BTreeSet::new();
    for record in &records {
        // Records that are read are those that were written, in order.
        let skipped = missing.as_slice().iter().position(|next| next == record);
        let skipped = skipped.unwrap_or_else(|| panic!("bit {bit}: {record:?}"));
        lost.extend(
            missing.as_slice()[..skipped]
                .iter()
                .map(|own| own.block_end),
        );
        missing.nth(skipped);
    }
    lost.extend(missing.map(|own| own.block_end));
    assert!(lost.len() <= 1, "bit {bit} costs {lost:?}");
}

#[test]
fn of_entries_that_fail_together_only_the_last_is_a_torn_tail() {
    let bytes = include_bytes!("../../fuzz/corpus/tenant/failed_entries_joined");
    let missing = Some(Cause::LengthOutOfBounds);
    let ledger = ledger(bytes);
    let ranges = ledger.iter().map(|span| (span.start, span.end, span.kind));
    let ranges: Vec<_> = ranges.skip(ledger.len() - 2).collect();
    assert_eq!(
        ranges,
        [(1679, 1818, Kind::Corrupt), (1818, 1931, Kind::TornTail)]
    );
    assert!(
        ledger[ledger.len() - 2..]
            .iter()
            .all(|span| span.cause == missing)
    );
}

#[test]
fn every_flipped_bit_of_version_1_is_survived() {
    let segment = varied(1, 4 << 10);
    let mut bytes = segment.bytes.clone();
    for bit in bits(bytes.len()) {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_sane(&bytes);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_sound_file_is_read_once() {
    let segment = varied(2, 300 << 10);
    for (values, window_bytes) in [(true, 64 << 10), (false, 64 << 10), (false, 1 << 20)] {
        let counting = Counting::new(segment.bytes.clone());
        let options = lenient().window_bytes(window_bytes).values(values);
        scan(counting.clone(), &options).unwrap();
        let (read, len) = (counting.take().0, segment.bytes.len() as u64);
        // The front's numbers, and those of tenants at a window's end, are read by themselves.
        assert!(read <= len + 256, "{read} bytes read of {len}");
    }
}

#[test]
fn filtered_partitions_and_tenants_are_emitted_and_the_ledger_is_of_all() {
    for version in [1, 2] {
        let segment = varied(version, 8 << 10);
        let (_, all) = scan(source(&segment.bytes), &lenient()).unwrap();
        let tenant = segment.messages[5].tenant.clone();
        let wanted = Filter::default()
            .among("partition", vec![0, 7])
            .among("tenant", vec![tenant.clone(), b"none".to_vec()]);
        let options = lenient().filter(wanted).window_bytes(100);
        let (records, spans) = scan(Arc::new(Windowed(segment.bytes.clone())), &options).unwrap();
        let expected = segment
            .messages
            .iter()
            .filter(|message| [0, 7].contains(&message.partition) && message.tenant == tenant);
        assert!(records.iter().eq(expected) && !records.is_empty());
        assert_eq!(spans, all);
    }
}

#[test]
fn only_segments_are_taken_for_segments() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    for format in FORMATS {
        let mut seen = 0;
        for entry in std::fs::read_dir(vectors.join(format.name)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "bin") {
                continue;
            }
            let expected: serde_json::Value =
                serde_json::from_slice(&std::fs::read(path.with_extension("json")).unwrap())
                    .unwrap();
            if !expected["strict_error"].is_null() {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let detection = detect(&BytesSource::new(&bytes), &Options::default()).unwrap();
            let is_tenant = format.name == "tenant";
            let detected = detection.format == Some(&tenant::FORMAT);
            assert_eq!(detected, is_tenant, "{}: {detection:?}", path.display());
            if is_tenant {
                assert_eq!(detection.certain, bytes[5] == 2, "{}", path.display());
            }
            seen += 1;
        }
        assert!(seen >= 5, "{format:?}: {seen} sound files");
    }
    assert_eq!(by_name("tenant").unwrap(), &tenant::FORMAT);
}

/// Claims of far more than there is cost neither time nor memory.
#[test]
fn hostile_claims_are_bounded_by_the_bytes_that_are_there() {
    let segment = varied(2, 4 << 10);
    for (at, len) in segment.numbers() {
        for byte in [0xff, 0x7f, 0x80, 0x00] {
            let mut bytes = segment.bytes.clone();
            bytes[at..at + len].fill(byte);
            assert_sane(&bytes);
            segment.seal(&mut bytes);
            assert_sane(&bytes);
        }
    }
}

#[test]
fn a_segment_is_a_value() {
    // The fixture itself: what it says of its numbers is what the reader finds.
    let segment: Segment = varied(2, 4 << 10);
    let blocks = tenant::blocks(source(&segment.bytes), &lenient()).unwrap();
    let messages: u64 = blocks.iter().map(|block| u64::from(block.messages)).sum();
    assert_eq!(messages, segment.messages.len() as u64);
}

/// A segment whose table is damaged in several places, and what is left of it.
fn of_damaged_tables() -> Vec<(Vec<u8>, Vec<Message>)> {
    let segment = varied(2, 8 << 10);
    let toc = 10..usize::try_from(segment.toc_end).unwrap() - 4;
    let mut damaged: Vec<Vec<u8>> = (0..40)
        .map(|first| {
            let mut bytes = segment.bytes.clone();
            for at in toc.clone().skip(7 * first).step_by(97 + first) {
                bytes[at] ^= 0x10;
            }
            bytes
        })
        .collect();
    let mut zeroed = segment.bytes.clone();
    zeroed[60..200].fill(0);
    damaged.push(zeroed);
    damaged
        .into_iter()
        .map(|bytes| {
            let left = assert_sane(&bytes).0;
            (bytes, left)
        })
        .collect()
}

/// Asserts that reading from each of some messages gives the rest. Returns how many there were.
fn assert_begins_within(bytes: &[u8], left: &[Message], step: usize) -> usize {
    let places = (0..left.len()).step_by(step);
    for number in places.clone() {
        let start = Start::Offset(left[number].position);
        for options in [lenient(), Options::default()] {
            let mut walk = open(source(bytes), &options, start).unwrap();
            let mut records = Vec::new();
            let is_cut = loop {
                match walk.step() {
                    Ok(Step::More) => collect(&*walk, &mut records),
                    Ok(_) => break false,
                    // Strict reading ends at the damage after it.
                    Err(Error::Damage(_)) if options.strict => break true,
                    Err(error) => panic!("from {start:?}: {error}"),
                }
            };
            let expected = &left[number..];
            let len = if is_cut {
                records.len()
            } else {
                expected.len()
            };
            assert_eq!(records, expected[..len], "from {start:?}");
            assert!(!records.is_empty(), "from {start:?}");
        }
    }
    places.len()
}

#[test]
fn reading_begins_at_any_message_after_a_damaged_table() {
    let mut begun = 0;
    for (bytes, left) in of_damaged_tables() {
        begun += assert_begins_within(&bytes, &left, 5);
    }
    assert!(begun > 100, "{begun} starts");
}

/// The table of contents is sound, but blocks are not where it says.
#[test]
fn reading_begins_at_any_message_of_blocks_that_have_moved() {
    for version in [1, 2] {
        let segment = varied(version, 8 << 10);
        let (table, len) = (
            usize::try_from(segment.toc_end).unwrap(),
            segment.bytes.len(),
        );
        let mut moved = 0;
        for at in (table..len - 4).step_by(211) {
            for bytes in [
                [&segment.bytes[..at], &segment.bytes[at + 4..]].concat(),
                [&segment.bytes[..at], &[0; 64][..], &segment.bytes[at..]].concat(),
                [
                    &segment.bytes[..at],
                    &segment.bytes[..300],
                    &segment.bytes[at..],
                ]
                .concat(),
            ] {
                let (left, _) = assert_sane(&bytes);
                moved += assert_begins_within(&bytes, &left, 7);
            }
        }
        assert!(moved > 500, "version {version}: {moved} starts");
    }
}
