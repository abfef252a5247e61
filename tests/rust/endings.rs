//! A flipped bit, and a file that lost its last byte or has something after its end: no record is made up, and only what is
//! damaged is lost.

use std::collections::HashSet;

use crate::common::assert_covers;
use crate::diagnoses::{Sound, active, chunked, sealed, tenant};
use crate::messages;
use crate::recovery::read;
use seglake::format::{Dialect, oplog};

/// What becomes of a file's end: its name, how many bytes are left of the file, and what follows them.
fn endings(sound: &Sound, other: &Sound) -> [(&'static str, usize, Vec<u8>); 7] {
    let len = sound.bytes.len();
    [
        ("nothing", len, Vec::new()),
        ("the last byte is missing", len - 1, Vec::new()),
        (
            "zeros to a page",
            len,
            vec![0; len.next_multiple_of(4096) - len],
        ),
        ("a newline", len, b"\n".to_vec()),
        ("16 bytes", len, (1..=16).collect()),
        ("the same file", len, sound.bytes.clone()),
        ("another file", len, other.bytes.clone()),
    ]
}

/// That with every ending, and any bit flipped besides, no record is returned that is in neither file, and all of this file's are,
/// except one unit of `records` records for each of the two faults.
fn costs_one_unit_each(sound: &Sound, other: &Sound, records: usize) {
    let options = sound.options();
    let written = read(&sound.bytes, &options).records;
    let others = read(&other.bytes, &options).records;
    let known: HashSet<_> = written.iter().chain(&others).collect();
    for (ending, left, after) in endings(sound, other) {
        let whole = [&sound.bytes[..left], &after].concat();
        for bit in (0..8 * left).map(Some).chain([None]) {
            let mut bytes = whole.clone();
            if let Some(bit) = bit {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let name = || format!("{}, {ending}, bit {bit:?}", sound.format.name);
            let found = read(&bytes, &options);
            assert_covers(&found.ledger, bytes.len());
            let returned: HashSet<_> = found.records.iter().collect();
            assert!(returned.is_subset(&known), "{}", name());
            let lost = written.iter().filter(|own| !returned.contains(own));
            let faults = usize::from(bit.is_some()) + usize::from(left < sound.bytes.len());
            assert!(lost.count() <= faults * records, "{}", name());
        }
    }
}

#[test]
fn of_active_segments() {
    costs_one_unit_each(&active(3, 5, 0), &active(5, 7, 0), 1);
    costs_one_unit_each(&active(2, 5, 40), &active(4, 5, 40), 1);
}

#[test]
fn of_sealed_segments() {
    costs_one_unit_each(&sealed(1, 5, true), &sealed(3, 5, true), 1);
    costs_one_unit_each(&sealed(3, 5, true), &sealed(5, 5, true), 1);
}

#[test]
fn of_tenant_segments() {
    costs_one_unit_each(&tenant(2, 4, 5), &tenant(2, 6, 5), 1);
}

#[test]
fn of_chunked_segments() {
    costs_one_unit_each(&chunked(3, 5), &chunked(5, 5), 2);
}

/// Nothing proves a record here, so only the ending is tried: it costs the last record at most.
#[test]
fn of_files_without_checksums() {
    let messages = |len| Sound {
        format: &oplog::FORMAT,
        bytes: messages::varied(Dialect::Draft, len),
    };
    for (sound, other, proves_its_end) in [
        (sealed(3, 5, false), sealed(5, 5, false), false),
        (tenant(1, 4, 5), tenant(1, 6, 5), true),
        (messages(600), messages(800), true),
    ] {
        let options = sound.options();
        let written = read(&sound.bytes, &options).records;
        assert!(written.len() > 2);
        for (ending, left, after) in endings(&sound, &other) {
            let bytes = [&sound.bytes[..left], &after].concat();
            let found = read(&bytes, &options);
            assert_covers(&found.ledger, bytes.len());
            let is_whole = left == sound.bytes.len() && (proves_its_end || after.is_empty());
            let kept = &written[..written.len() - usize::from(!is_whole)];
            assert!(
                found.records.starts_with(kept),
                "{}, {ending}",
                sound.format.name
            );
        }
    }
}
