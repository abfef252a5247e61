//! Reading on in files that are written whole, and in segments that were sealed since.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Growth, Options, Position, identity};
use seglake::ledger::Kind;
use seglake::source::Source;

use crate::common::counting::Counting;
use crate::common::{self, Windowed, sealed, segment, uuid};
use crate::growth::{after, grown, read, refusal};
use crate::tenant_segments;

fn any_format() -> Options {
    Options::default().strict(false)
}

/// An active segment, where each record ends, and the same sealed.
fn both(values: &[Vec<u8>], trailer: bool) -> (Vec<u8>, Vec<usize>, Vec<u8>) {
    let messages: Vec<_> = values.iter().map(|value| ("type", value)).collect();
    let active = segment(&Key::DEFAULT, &messages);
    let mut end = 0;
    let ends = values.iter().map(|value| {
        end += 29 + 4 + value.len();
        end
    });
    let records = (1000..).zip(values);
    let records = records.map(|(tick, value)| (uuid(tick), b"type".to_vec(), value.clone()));
    let records: Vec<_> = records.collect();
    let whole = sealed::segment(&Key::DEFAULT, &records, trailer);
    (active, ends.collect(), whole)
}

/// Records without their positions.
fn contents(rows: &[String]) -> Vec<&str> {
    let without = |row: &String| row.find(' ').unwrap() + 1;
    rows.iter().map(|row| &row[without(row)..]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// An active segment that is sealed at any time goes on by UUID.
    #[test]
    fn a_segment_that_is_sealed_meanwhile_gives_each_record_once(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..12),
        cuts in prop::collection::vec(any::<Index>(), 0..4),
        trailer in any::<bool>(),
    ) {
        let (active, _, whole) = both(&values, trailer);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(active.len() + 1)).collect();
        cuts.sort_unstable();
        let (mut position, mut rows) = (None, Vec::new());
        for cut in cuts {
            let growth = grown(&active[..cut], &common::lenient(), position.as_ref());
            rows.extend(read(&growth).unwrap().0);
            position = growth.position();
        }
        let options = any_format().format(&seglake::format::sealed::FORMAT);
        let growth = grown(&whole, &options, position.as_ref());
        prop_assert_eq!(growth.format().name, "sealed");
        rows.extend(read(&growth).unwrap().0);
        let all = read(&grown(&active, &common::lenient(), None)).unwrap().0;
        prop_assert_eq!(contents(&rows), contents(&all));
        let position = growth.position().unwrap();
        prop_assert_eq!(position.offset(), whole.len() as u64);
        let source: Arc<dyn Source> = Arc::new(Windowed(active));
        prop_assert_eq!(position.identity().cloned(), identity(&source, &common::lenient()).unwrap());
        let nothing = read(&grown(&whole, &options, Some(&position))).unwrap();
        prop_assert_eq!(nothing, (vec![], vec![]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// A sealed segment that is written anew with more records goes on by UUID, whether it has checksums or not.
    #[test]
    fn a_segment_that_is_sealed_anew_with_more_gives_each_record_once(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 2..12),
        counts in prop::collection::vec((any::<Index>(), any::<bool>()), 0..4),
        trailer in any::<bool>(),
    ) {
        let mut counts: Vec<_> = counts
            .iter()
            .map(|(count, trailer)| (1 + count.index(values.len() - 1), *trailer))
            .collect();
        counts.sort_unstable();
        counts.dedup_by_key(|(count, _)| *count);
        counts.push((values.len(), trailer));
        let (mut position, mut rows): (Option<Position>, _) = (None, Vec::new());
        for (count, trailer) in counts {
            let whole = both(&values[..count], trailer).2;
            let growth = grown(&whole, &of_sealed(), position.as_ref());
            rows.extend(read(&growth).unwrap().0);
            let now = growth.position().unwrap();
            if position.is_none() {
                let first = grown(&whole, &of_sealed(), None);
                prop_assert_eq!(first.position_after_all().unwrap(), Some(now.clone()));
            }
            position = Some(Position::from_json(&now.to_json()).unwrap());
            prop_assert_eq!(position.as_ref(), Some(&now));
            let nothing = read(&grown(&whole, &of_sealed(), position.as_ref())).unwrap();
            prop_assert_eq!(nothing, (vec![], vec![]));
        }
        let all = read(&grown(&both(&values, true).0, &common::lenient(), None)).unwrap().0;
        prop_assert_eq!(contents(&rows), contents(&all));
    }

    /// A sealed segment that was read while it was copied.
    #[test]
    fn a_segment_that_was_cut_off_goes_on_when_it_is_complete(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..12),
        cut in any::<Index>(),
        trailer in any::<bool>(),
    ) {
        let (active, _, whole) = both(&values, trailer);
        let cut = 24 + cut.index(whole.len() - 24);
        let growth = grown(&whole[..cut], &of_sealed(), None);
        let (mut rows, _) = read(&growth).unwrap();
        let position = Position::from_json(&growth.position().unwrap().to_json()).unwrap();
        let growth = grown(&whole, &of_sealed(), Some(&position));
        rows.extend(read(&growth).unwrap().0);
        let all = read(&grown(&active, &common::lenient(), None)).unwrap().0;
        prop_assert_eq!(contents(&rows), contents(&all));
    }
}

fn of_sealed() -> Options {
    any_format().format(&seglake::format::sealed::FORMAT)
}

/// It has to have the last record that was read, with as many in front of it.
#[test]
fn a_segment_that_is_sealed_anew_with_other_records_is_refused() {
    let nine = values(9, 30);
    for trailer in [true, false] {
        let (_, _, whole) = both(&nine[..6], trailer);
        let position = after(&whole, &of_sealed());
        let refused = |values: &[Vec<u8>]| {
            let (_, _, whole) = both(values, trailer);
            refusal(&whole, &of_sealed(), &position).is_some()
        };
        assert!(!refused(&nine));
        assert!(refused(&nine[..5]));
        let mut other = nine.clone();
        other[5][0] ^= 1;
        assert!(refused(&other), "another last record");
        other[5][0] ^= 1;
        other[0][0] ^= 1;
        assert!(refused(&other), "another first record");
        let without = [&nine[..3], &nine[4..]].concat();
        assert!(refused(&without), "the UUIDs of later records are others");
        // A position of a version before that.
        let mut json: serde_json::Value = serde_json::from_str(&position.to_json()).unwrap();
        json.as_object_mut().unwrap().remove("end").unwrap();
        let old = Position::from_json(&json.to_string()).unwrap();
        let (_, _, more) = both(&nine, trailer);
        assert!(refusal(&more, &of_sealed(), &old).is_some());
        assert_eq!(refusal(&whole, &of_sealed(), &old), None);
    }
    // One more record in front of the last one.
    let records: Vec<_> = (1000..)
        .zip(&nine)
        .map(|(tick, value)| (uuid(tick), b"type".to_vec(), value.clone()))
        .collect();
    let sealed = |records: &[_]| sealed::segment(&Key::DEFAULT, records, true);
    let without = sealed(&[&records[..3], &records[4..6]].concat());
    let position = after(&without, &of_sealed());
    assert!(refusal(&sealed(&records), &of_sealed(), &position).is_some());
}

fn values(count: u8, len: usize) -> Vec<Vec<u8>> {
    (0..count).map(|own| vec![own; len]).collect()
}

/// The format is told again when the first record is not where it was.
#[test]
fn a_segment_that_was_sealed_is_recognised() {
    let (active, ends, whole) = both(&values(9, 30), true);
    let position = after(&active[..ends[4]], &common::lenient());
    let growth = grown(&whole, &any_format(), Some(&position));
    assert_eq!(read(&growth).unwrap().0.len(), 4);
    let (_, _, other) = both(&values(8, 31), true);
    let text = refusal(&other, &any_format(), &position).unwrap().1;
    assert!(text.contains("found the sealed segment segment:"), "{text}");
}

/// What is after a position in a sealed segment is found by its index.
#[test]
fn little_of_a_sealed_segment_is_read_again() {
    let (active, ends, whole) = both(&values(200, 100_000), true);
    let position = after(&active[..ends[197]], &common::lenient());
    let counting = Counting::new(whole);
    let growth = Growth::since(counting.clone(), &any_format(), Some(&position)).unwrap();
    assert_eq!(read(&growth).unwrap().0.len(), 2);
    let (bytes, _) = counting.take();
    assert!(bytes < 2_000_000, "{bytes} of 20 million bytes");
}

/// A segment of a log that was listed when it was active, and opened when it was sealed, is read up to what was listed.
#[test]
fn a_sealed_segment_is_read_up_to_what_was_listed() {
    let (active, ends, whole) = both(&values(9, 30), true);
    let position = after(&active[..ends[2]], &common::lenient());
    let last = uuid(1005);
    let filter = seglake::format::Filter::default().at_most("uuid", last);
    let listed = any_format().filter(filter);
    let growth = grown(&whole, &listed, Some(&position));
    let growth = growth.up_to(Some(uuid::Uuid::from_bytes(last)));
    assert_eq!(read(&growth).unwrap().0.len(), 3);
    let position = growth.position().unwrap();
    let position = Position::from_json(&position.to_json()).unwrap();
    assert_eq!(position.uuid(), Some(uuid::Uuid::from_bytes(last)));
    let rest = grown(&whole, &any_format(), Some(&position));
    assert_eq!(read(&rest).unwrap().0.len(), 3);
}

#[test]
fn complete_files_are_read_once() {
    let (_, _, whole) = both(&values(9, 30), true);
    let messages = [
        (1, b"acme".to_vec(), b"value".to_vec()),
        (2, b"acme".to_vec(), b"other".to_vec()),
    ];
    let tenants = [1, 2].map(|version| tenant_segments::encode(version, &messages).bytes);
    for bytes in [&whole, &tenants[0], &tenants[1]] {
        let growth = grown(bytes, &any_format(), None);
        let (rows, spans) = read(&growth).unwrap();
        assert!(!rows.is_empty());
        assert_eq!(
            spans.iter().map(|span| span.len()).sum::<u64>(),
            bytes.len() as u64
        );
        assert_eq!(growth.pending_bytes(), Some(0));
        let position = Position::from_json(&growth.position().unwrap().to_json()).unwrap();
        assert_eq!(position.offset(), bytes.len() as u64);
        assert!(position.identity().is_some());
        let counting = Counting::new(bytes.clone());
        let growth = Growth::since(counting.clone(), &any_format(), Some(&position)).unwrap();
        assert_eq!(read(&growth).unwrap(), (vec![], vec![]));
        assert!(counting.take().1 <= 2, "the first unit and the end");
        assert_eq!(growth.position(), Some(position.clone()));
        // Longer, shorter, and another end.
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(refusal(&longer, &any_format(), &position).is_some());
        assert!(refusal(&bytes[..bytes.len() - 1], &any_format(), &position).is_some());
        let mut other = bytes.clone();
        *other.last_mut().unwrap() ^= 1;
        assert!(refusal(&other, &any_format(), &position).is_some());
    }
}

/// The position after a complete file is found without reading it, and is that of a walk.
#[test]
fn the_position_after_all_of_a_complete_file() {
    let (active, ends, whole) = both(&values(200, 100_000), true);
    let messages: Vec<_> = (0..200_u32)
        .map(|tenant| {
            (
                tenant % 8,
                tenant.to_le_bytes().to_vec(),
                vec![7_u8; 50_000],
            )
        })
        .collect();
    let tenants = [1, 2].map(|version| tenant_segments::encode(version, &messages).bytes);
    for bytes in [&whole, &tenants[0], &tenants[1]] {
        let counting = Counting::new(bytes.clone());
        let growth = Growth::since(counting.clone(), &any_format(), None).unwrap();
        counting.take();
        let position = growth.position_after_all().unwrap().unwrap();
        let (read_bytes, _) = counting.take();
        assert!(read_bytes < 1_000_000, "{read_bytes} of {}", bytes.len());
        read(&growth).unwrap();
        assert_eq!(growth.position(), Some(position.clone()));
        let nothing = grown(bytes, &any_format(), Some(&position));
        assert_eq!(nothing.position_after_all().unwrap(), None);
    }
    let none = [
        grown(&active, &common::lenient(), None),
        grown(
            &whole,
            &any_format(),
            Some(&after(&active[..ends[2]], &common::lenient())),
        ),
        grown(&whole, &any_format().keys(vec![Key::new(&[7; 32])]), None),
    ];
    for growth in none {
        assert_eq!(growth.position_after_all().unwrap(), None, "{growth:?}");
    }
}

/// A torn sealed segment is damaged: it is complete.
#[test]
fn a_complete_file_that_is_torn_is_damaged() {
    let (_, _, whole) = both(&values(9, 30), true);
    let options = any_format().format(&seglake::format::sealed::FORMAT);
    let growth = grown(&whole[..whole.len() - 20], &options, None);
    let (_, spans) = read(&growth).unwrap();
    assert!(spans.iter().any(|span| span.kind == Kind::TornTail));
    let strict = options.strict(true);
    let growth = grown(&whole[..whole.len() - 20], &strict, None);
    assert!(matches!(read(&growth), Err(Error::Damage(_))));
}
