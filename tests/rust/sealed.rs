//! The sealed format under fire: round trips, every truncation, every flipped bit, several keys, bounds, carries, detection.

use std::sync::Arc;

use crate::common::sealed::{
    Record, contents, damaged, first_damage, lenient, records, scan_sorted, segment, varied,
};
use crate::common::{
    Plain, Windowed, assert_covers, bits, collect, scan, source, strict_error, uuid,
};
use proptest::prelude::*;
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Checked, FORMATS, Filter, Options, Start, Step, detect, open, sealed};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::BytesSource;

/// That a ledger covers the file, but for the empty range of an empty file.
fn assert_ledger(ledger: &[Span], len: usize) {
    if len == 0 {
        let cause = Some(Cause::TruncatedHeader);
        let kind = Kind::TornTail;
        assert_eq!(ledger, [Span::new(0, 0, kind, cause)]);
    } else {
        assert_covers(ledger, len);
    }
}

proptest! {
    #[test]
    fn records_round_trip(records in records(), key: [u8; 32], trailer: bool, window_bytes in 1_usize..2000) {
        let key = Key::new(&key);
        let bytes = segment(&key, &records, trailer);
        let options = lenient().keys(vec![key]).strict(true).window_bytes(window_bytes);
        let (read, ledger) = scan_sorted(Arc::new(Windowed(bytes.clone())), &options).unwrap();
        prop_assert_eq!(contents(&read), records);
        assert_covers(&ledger, bytes.len());
        prop_assert_eq!(ledger.iter().filter(|span| span.kind == Kind::Trailer).count(), usize::from(trailer));
    }

    #[test]
    fn whatever_the_bytes_windows_agree_and_the_ledger_covers(
        (records, bytes) in damaged(),
        window_bytes in 1_usize..3000,
        checked: bool,
    ) {
        let (read, ledger) = scan_sorted(source(&bytes), &lenient()).unwrap();
        assert_ledger(&ledger, bytes.len());
        let by_checksum = open(source(&bytes), &lenient(), Start::Beginning).unwrap().checked() == Checked::Checksum;
        for record in contents(&read) {
            prop_assert!(!by_checksum || records.contains(&record), "an invented record");
        }
        let windowed = scan_sorted(Arc::new(Windowed(bytes.clone())), &lenient().window_bytes(window_bytes)).unwrap();
        prop_assert_eq!(&windowed.0, &read);
        prop_assert_eq!(&windowed.1, &ledger);
        let without_values = scan_sorted(Arc::new(Windowed(bytes.clone())), &lenient().window_bytes(window_bytes).values(false)).unwrap();
        prop_assert_eq!(&without_values.1, &ledger);
        let strict = if checked { source(&bytes) } else { Arc::new(Windowed(bytes.clone())) };
        let raised = strict_error(strict, &lenient()).map(|damage| (damage.offset, damage.cause));
        prop_assert_eq!(raised, first_damage(&ledger));
    }

    #[test]
    fn an_offset_starts_at_the_record_that_begins_there((_, bytes) in damaged()) {
        let (records, _) = scan(source(&bytes), &lenient()).unwrap();
        for (place, record) in records.iter().enumerate() {
            let mut walk = open(source(&bytes), &lenient(), Start::Offset(record.position)).unwrap();
            let mut rest = Vec::new();
            while walk.step().unwrap() == Step::More {
                collect(&*walk, &mut rest);
            }
            prop_assert_eq!(&rest, &records[place..]);
        }
    }

    #[test]
    fn any_bytes_at_all_are_accounted_for(bytes in prop::collection::vec(any::<u8>(), 0..300), zeros in 0_usize..100) {
        let mut bytes = bytes;
        bytes.splice(bytes.len() / 2..bytes.len() / 2, vec![0; zeros]);
        let (_, ledger) = scan_sorted(source(&bytes), &lenient()).unwrap();
        assert_ledger(&ledger, bytes.len());
        let raised = strict_error(source(&bytes), &lenient()).map(|damage| (damage.offset, damage.cause));
        prop_assert_eq!(raised, first_damage(&ledger));
    }
}

/// Which of `all` are in `read`, which has no others and has them in order.
fn kept(all: &[Plain], read: &[Plain], context: &str) -> usize {
    let mut rest = all.iter();
    for record in read {
        assert!(
            rest.any(|own| own == record),
            "{context}: an invented record"
        );
    }
    read.len()
}

#[test]
fn every_truncation_keeps_what_is_whole() {
    for trailer in [true, false] {
        let bytes = varied(16 << 10, trailer);
        let (all, _) = scan(source(&bytes), &lenient()).unwrap();
        let index_end = usize::try_from(all[0].position).unwrap();
        let ends: Vec<_> = all.iter().map(|record| record.end()).collect();
        for len in 0..bytes.len() {
            let (records, ledger) = scan_sorted(source(&bytes[..len]), &lenient()).unwrap();
            assert_ledger(&ledger, len);
            let context = format!("cut to {len} bytes");
            let kept = kept(&all, &records, &context);
            if len < index_end {
                assert_eq!(kept, 0, "{context}");
            } else {
                let whole = ends.iter().filter(|end| **end <= len).count();
                assert_eq!(kept, whole, "{context}");
            }
            // A file cut exactly before its trailer cannot be distinguished from one written without.
            let is_sound = first_damage(&ledger).is_none();
            assert_eq!(is_sound, trailer && Some(&len) == ends.last(), "{context}");
            if len % 13 == 0 {
                let raised = strict_error(source(&bytes[..len]), &lenient());
                let raised = raised.map(|damage| (damage.offset, damage.cause));
                assert_eq!(raised, first_damage(&ledger), "{context}");
            }
        }
    }
}

/// 65,536 scans of 8 KiB.
#[test]
fn every_flipped_bit_costs_at_most_its_own_record() {
    let mut bytes = varied(8 << 10, true);
    let (all, _) = scan(source(&bytes), &lenient()).unwrap();
    for bit in bits(bytes.len()) {
        let at = bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        let (records, ledger) = scan_sorted(source(&bytes), &lenient()).unwrap();
        let context = format!("bit {bit}");
        assert!(kept(&all, &records, &context) + 1 >= all.len(), "{context}");
        assert_covers(&ledger, bytes.len());
        let first = first_damage(&ledger);
        assert!(first.is_some(), "{context}: no damage");
        if bit % 7 == 0 {
            let raised = strict_error(source(&bytes), &lenient()).unwrap();
            assert_eq!(Some((raised.offset, raised.cause)), first, "{context}");
        }
        bytes[at] ^= 1 << (bit % 8);
    }
}

/// Without checksums, what a flipped bit costs depends on where it is: never more than its neighbours, unless it hits entry 0's
/// offset or UUID, which say where the index ends, or makes a UUID that is far too great but in order.
#[test]
fn every_flipped_bit_without_a_trailer_is_accounted_for() {
    let mut bytes = varied(8 << 10, false);
    let (all, _) = scan(source(&bytes), &lenient()).unwrap();
    let uuids: Vec<_> = all.iter().map(|record| record.uuid).collect();
    for bit in bits(bytes.len()) {
        let at = bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        let (records, ledger) = scan_sorted(source(&bytes), &lenient()).unwrap();
        assert_covers(&ledger, bytes.len());
        let context = format!("bit {bit}");
        let unknown = records
            .iter()
            .filter(|record| !uuids.contains(&record.uuid));
        assert!(unknown.count() <= 1, "{context}");
        assert!(
            records.len() + 2 >= all.len(),
            "{context}: {} records",
            records.len()
        );
        if bit % 7 == 0 {
            let raised = strict_error(source(&bytes), &lenient());
            let raised = raised.map(|damage| (damage.offset, damage.cause));
            assert_eq!(raised, first_damage(&ledger), "{context}");
        }
        bytes[at] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_strict_walk_emits_good_messages_first_and_fails_again_the_same_way() {
    let records: Vec<Record> = (0..200)
        .map(|tick| (uuid(tick), b"t".to_vec(), vec![7; 100]))
        .collect();
    let mut bytes = segment(&Key::DEFAULT, &records, true);
    let position = 24 * 201 + 106 * 150;
    bytes[position + 20] ^= 1;
    let options = lenient().strict(true).window_bytes(1000);
    for source in [source(&bytes), Arc::new(Windowed(bytes.clone()))] {
        let mut walk = open(source, &options, Start::Beginning).unwrap();
        let mut given = Vec::new();
        let mut raised = Vec::new();
        while raised.len() < 3 {
            match walk.step() {
                Ok(Step::More) => collect(&*walk, &mut given),
                Err(Error::Damage(damage)) => raised.push((damage.offset, damage.cause)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(given.len(), 150);
        assert_eq!(raised, [(position as u64, Cause::ChecksumMismatch); 3]);
    }
}

#[test]
fn several_keys_settle_on_the_one_of_the_file() {
    let (first, second) = (Key::new(&[1; 32]), Key::new(&[2; 32]));
    let records: Vec<Record> = (0..5)
        .map(|tick| (uuid(tick), vec![], vec![3; 20]))
        .collect();
    let mut bytes = segment(&second, &records, true);
    let options = lenient().keys(vec![first, second]);
    let read = |bytes: &[u8], options: &Options| scan(source(bytes), options).unwrap().0.len();
    assert_eq!(read(&bytes, &options), 5);
    // The key check is damaged, so the index hash decides. If that is damaged too, the messages do.
    let len = bytes.len();
    bytes[len - 32] ^= 1;
    assert_eq!(read(&bytes, &options), 5);
    bytes[len - 16] ^= 1;
    assert_eq!(read(&bytes, &options), 5);
    let wrong = lenient().keys(vec![first, Key::DEFAULT]);
    assert_eq!(read(&bytes, &wrong), 0);
    assert!(strict_error(source(&bytes), &wrong).unwrap().wrong_key);
    assert!(matches!(
        scan(source(&bytes), &lenient().keys(vec![])),
        Err(Error::Usage(_))
    ));
    // The beginning of a trailer is found under the key that it is of.
    let torn = &segment(&second, &records, true)[..len - 40];
    let (records, ledger) = scan_sorted(source(torn), &options).unwrap();
    assert_eq!(
        (records.len(), ledger.last().unwrap().cause),
        (5, Some(Cause::TruncatedTrailer))
    );
}

#[test]
fn bounds_are_half_open_and_end_the_reading() {
    let records: Vec<Record> = (0..5)
        .map(|tick| (uuid(tick), vec![], vec![3; 20]))
        .collect();
    let bytes = segment(&Key::DEFAULT, &records, true);
    let wanted = Filter::default()
        .at_least("uuid", uuid(1))
        .below("uuid", uuid(3));
    let (read, ledger) = scan_sorted(source(&bytes), &lenient().filter(wanted)).unwrap();
    assert_eq!(contents(&read), records[1..3]);
    let kinds: Vec<_> = ledger.iter().map(|span| span.kind).collect();
    assert_eq!(
        kinds,
        [Kind::Header, Kind::Record, Kind::Record, Kind::Record],
        "what is behind the bound is not read"
    );
}

#[test]
fn a_start_that_fits_no_file_is_refused() {
    let bytes = varied(1 << 10, true);
    for start in [
        Start::Offset(0),
        Start::Offset(bytes.len() as u64),
        Start::Offset(u64::MAX),
        Start::Carry(&seglake::format::Carry("{}".to_owned())),
    ] {
        let opened = open(source(&bytes), &lenient(), start);
        assert!(matches!(opened, Err(Error::Usage(_))), "{start:?}");
    }
}

/// A message that is not where its entry says is found by walking the file up to it, also where reading is strict or filtered.
#[test]
fn a_start_at_a_message_that_moved_is_found_and_any_other_is_refused() {
    let records: Vec<Record> = (0..5)
        .map(|tick| (uuid(tick), b"t".to_vec(), vec![3; 20]))
        .collect();
    let mut bytes = segment(&Key::DEFAULT, &records, true);
    bytes[24 + 23] += 1;
    let position = 24 * 6 + 26;
    let wanted = Filter::default().among("type", vec![b"other".to_vec()]);
    for wanted in [Filter::default(), wanted] {
        let options = lenient().strict(true).filter(wanted);
        open(source(&bytes), &options, Start::Offset(position)).unwrap();
        let refused = open(source(&bytes), &options, Start::Offset(position + 2));
        assert!(matches!(refused, Err(Error::Usage(_))));
    }
}

#[test]
fn sound_files_of_other_formats_are_not_claimed() {
    let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let (mut own, mut others) = (0, 0);
    for folder in ["active", "sealed", "tenant", "chunked", "oplog"] {
        for entry in std::fs::read_dir(vectors.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let expected: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let bytes = std::fs::read(path.with_extension("bin")).unwrap();
            let mut options = lenient().format(None);
            if let Some(key) = expected["options"]["key"].as_str() {
                options.keys = vec![Key::new(&hex::decode(key).unwrap().try_into().unwrap())];
            }
            let detection = detect(&BytesSource::new(bytes.clone()), &options).unwrap();
            let is_sealed = detection
                .format
                .is_some_and(|format| format.name == "sealed");
            let is_sound = expected["strict_error"].is_null();
            if folder != "sealed" {
                assert!(!is_sealed, "{}: {}", path.display(), detection.reason);
                others += 1;
            } else if is_sound && bytes.len() > 24 {
                // One message without a trailer could also be an active record and unused space.
                assert!(is_sealed, "{}: {}", path.display(), detection.reason);
                let trailer = expected["encode"]["trailer"].as_bool();
                assert!(
                    trailer.is_none_or(|trailer| trailer == detection.certain),
                    "{}",
                    path.display()
                );
                own += 1;
            }
        }
    }
    assert!(own > 5 && others > 100 && FORMATS.len() > 1);
}

#[test]
fn a_file_under_another_key_is_still_recognised() {
    let bytes = varied(1 << 10, true);
    let detection = detect(&BytesSource::new(bytes.clone()), &lenient().format(None)).unwrap();
    assert!(
        detection.certain && detection.format == Some(&sealed::FORMAT),
        "{}",
        detection.reason
    );
    let other = lenient().format(None).keys(vec![Key::new(&[9; 32])]);
    let detection = detect(&BytesSource::new(bytes), &other).unwrap();
    assert!(
        !detection.certain && detection.format == Some(&sealed::FORMAT),
        "{}",
        detection.reason
    );
}
