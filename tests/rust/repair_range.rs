//! Repairing where the damage is known to be: only the bands of that range are judged and change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use crate::fault_samples::{options, write_value};
use crate::parity::{extended, protected, repaired};
use crate::parity_damage::{damage, file, set};
use crate::protect_again::{
    BAND, FILE, HEADS, append, begin, bytes, flip, len, protect, report, small,
};
use crate::simulated::{Simulated, Trouble};
use seglake::Error;
use seglake::faults::{Disk as _, Opening};
use seglake::format::{Format, IfExists, Options, active, chunked, create, oplog, sealed, tenant};
use seglake::ledger::{Kind, Span};
use seglake::parity::{self, FileKind, Outcome, Report};
use seglake::source::BytesSource;
use seglake::verbs::{self, Ledger, Protection, Repaired, Repairing};

const SIDECAR: &str = "/data/log.par";
/// What a walk reads at once.
const WINDOW: u64 = 2 << 20;

fn repair(disk: &Simulated, format: &'static Format, how: &Repairing) -> seglake::Result<Repaired> {
    let options = Options::default().format(format).disk(disk.disk());
    verbs::repair(Path::new(FILE), &options, how, |_| Ok(()))
}

fn within(start: u64, end: u64) -> Repairing {
    Repairing::default().range((start, end))
}

fn content(disk: &Simulated) -> Vec<u8> {
    disk.files()["log"].clone()
}

#[test]
fn only_bands_with_bytes_of_the_range_are_judged() {
    for format in [&active::FORMAT, &chunked::FORMAT, &oplog::FORMAT] {
        let disk = begin(format, 14_000);
        let sound = content(&disk);
        let at = len(&disk) / 2 / BAND * BAND + 1000;
        (at..at + 3000).step_by(100).for_each(|at| flip(&disk, at));
        disk.take_read_bytes();
        let done = repair(&disk, format, &within(at, at + 3000)).unwrap();
        let read = disk.take_read_bytes();
        assert!(content(&disk) == sound, "{}", format.name);
        assert_eq!(done.report.outcome, Outcome::Repaired);
        // Judged, kept, and read back; and the heads of all frames, three times.
        let mut most = 8 * BAND + WINDOW + 3 * HEADS;
        assert!(most * 2 < len(&disk));
        if format.name == "active" {
            most += at; // where records are is known from those before them
        }
        assert!(most < len(&disk));
        assert!(
            read <= most,
            "{}: {read} bytes, {most} at most",
            format.name
        );
        let ledger: Vec<_> = done
            .report
            .file
            .iter()
            .map(|span| (span.start, span.end))
            .collect();
        let band = at / BAND * BAND;
        assert_eq!(
            (ledger[0].0, ledger[ledger.len() - 1].1),
            (band, band + BAND)
        );
        assert_eq!(done.report.sidecar.len(), 1);
    }
}

/// A file that is written whole, protected. One record has another value with this byte.
fn whole(format: &'static Format, records: u64, changed: u8) -> Simulated {
    let disk = Simulated::new();
    let how = options(format).disk(disk.disk());
    let mut writer = create(format, Path::new(FILE), &how).unwrap();
    for number in 0..records {
        let mut value = bytes(number, 1000);
        if number == records / 2 {
            value[500] ^= changed;
        }
        write_value(&mut *writer, format, number, &value).unwrap();
    }
    writer.close().unwrap();
    drop(writer);
    disk.settle();
    protect(&disk, format).unwrap();
    disk.take_read_bytes();
    disk
}

/// A file of these formats says where its records are: no other ones are read.
#[test]
fn a_file_with_an_index_is_not_read_whole() {
    for format in [&sealed::FORMAT, &tenant::FORMAT] {
        let disk = whole(format, 14_000, 0);
        let sound = content(&disk);
        let at = len(&disk) / 2;
        (at..at + 3000).step_by(100).for_each(|at| flip(&disk, at));
        disk.take_read_bytes();
        repair(&disk, format, &within(at, at + 3000)).unwrap();
        let read = disk.take_read_bytes();
        assert!(content(&disk) == sound, "{}", format.name);
        // The bands as above; the index, checksums or table of contents, a few times; the parts that have the bytes.
        let most = 8 * BAND + 3 * HEADS + 6 * 32 * 14_000 + 4 * (1 << 20);
        assert!(most < len(&disk), "{most} of {}", len(&disk));
        assert!(
            read <= most,
            "{}: {read} bytes, {most} at most",
            format.name
        );
    }
}

#[test]
fn records_of_a_file_with_an_index_stay() {
    for format in [&sealed::FORMAT, &tenant::FORMAT] {
        let (disk, other) = (whole(format, 3000, 0), whole(format, 3000, 1));
        let (old, new) = (content(&disk), content(&other));
        let at = (0..new.len()).filter(|at| old[*at] != new[*at]);
        let at = at.min_by_key(|at| at.abs_diff(new.len() / 2)).unwrap() as u64;
        disk.unlink(Path::new(FILE)).unwrap();
        disk.put(FILE, &new);
        let error = repair(&disk, format, &within(at, at + 1)).unwrap_err();
        assert!(
            matches!(&error, Error::Usage(text) if text.contains("its own checksum proves")),
            "{error}"
        );
        assert!(content(&disk) == new);
    }
}

#[test]
fn what_is_elsewhere_stays_and_is_not_told() {
    let disk = begin(&active::FORMAT, 1000);
    let sound = content(&disk);
    flip(&disk, 1000);
    flip(&disk, 3 * BAND + 1000);
    let damaged = content(&disk);
    let done = repair(&disk, &active::FORMAT, &within(3 * BAND, 4 * BAND)).unwrap();
    assert_eq!(done.changed, 1);
    assert_eq!(content(&disk)[..1001], damaged[..1001]);
    assert_eq!(content(&disk)[1001..], sound[1001..]);
    assert_eq!(report(&disk).outcome, Outcome::Repaired);
    let none = repair(&disk, &active::FORMAT, &within(2 * BAND, 2 * BAND + 1)).unwrap();
    assert_eq!((none.report.outcome, none.undo), (Outcome::Sound, None));
    verbs::undo_repair(
        Path::new(FILE),
        &Options::default().disk(disk.disk()),
        &Repairing::default(),
    )
    .unwrap();
    assert!(content(&disk) == damaged);
    repair(&disk, &active::FORMAT, &Repairing::default()).unwrap();
    assert!(content(&disk) == sound);
}

/// Appends a record of this value.
fn append_value(disk: &Simulated, format: &'static Format, number: u64, value: &[u8]) {
    let how = options(format)
        .if_exists(IfExists::Append)
        .disk(disk.disk());
    let mut writer = create(format, Path::new(FILE), &how).unwrap();
    write_value(&mut *writer, format, number, value).unwrap();
    writer.close().unwrap();
    drop(writer);
    disk.settle();
}

/// A file with a record of this value, which depends on a byte, protected with one byte, and then with another one: a repair where they
/// differ is refused. Gives the place of that byte, too.
fn refused_of_another_state(value: impl Fn(u8) -> Vec<u8>) -> (Simulated, u64) {
    let write = |changed: u8| {
        let disk = begin(&active::FORMAT, 300);
        append_value(&disk, &active::FORMAT, 500, &value(changed));
        append(&disk, &active::FORMAT, 900..1000, 1000);
        disk
    };
    let (disk, other) = (write(1), write(2));
    protect(&disk, &active::FORMAT).unwrap();
    let (old, new) = (content(&disk), content(&other));
    let at = (0..new.len()).find(|at| old[*at] != new[*at]).unwrap() as u64;
    disk.unlink(Path::new(FILE)).unwrap();
    disk.put(FILE, &new);
    let error = repair(&disk, &active::FORMAT, &within(at, at + 1)).unwrap_err();
    assert!(
        matches!(&error, Error::Usage(text) if text.contains("its own checksum proves")),
        "{error}"
    );
    assert!(content(&disk) == new);
    (disk, at)
}

/// The file has another sound record than when it was covered. It may be longer than what is looked at first.
#[test]
fn records_that_their_own_checksums_prove_stay() {
    for long in [1000, 300_000] {
        let (disk, at) = refused_of_another_state(|changed| {
            let mut value = vec![7; long];
            value[long - 100] = changed;
            value
        });
        let new = content(&disk);
        repair(&disk, &active::FORMAT, &within(at, at + 1).force(true)).unwrap();
        assert!(content(&disk) != new);
    }
}

/// The value of a record has records of its own: those near a change may be of such a value.
#[test]
fn a_record_with_records_in_its_value_stays() {
    let inner = content(&begin(&active::FORMAT, 600));
    assert!(inner.len() > 300 << 10);
    refused_of_another_state(|changed| {
        let mut value = inner.clone();
        value.extend([9; 3000]);
        value.push(changed);
        value.extend([9; 100]);
        value
    });
}

/// The change would repair a record in the value of one, and damage that: its checksum is elsewhere.
#[test]
fn a_record_with_a_damaged_record_in_its_value_stays() {
    let inner = content(&begin(&active::FORMAT, 600));
    refused_of_another_state(|changed| {
        let mut value = inner.clone();
        value[300_500] ^= changed - 1;
        value
    });
}

/// A bit that decompressing ignores: the records are those of before, and nothing speaks against repairing it.
#[test]
fn a_chunk_with_other_bytes_of_the_same_records_is_repaired() {
    for how in [Repairing::default(), within(0, 100)] {
        let disk = begin(&chunked::FORMAT, 300);
        let sound = content(&disk);
        let file = disk.open(Path::new(FILE), Opening::Write).unwrap();
        // Of the frame's descriptor, after the chunk's header and the magic number: RFC 8878, 3.1.1.1.1.3.
        file.write_at(&[sound[25] ^ 0x10], 25).unwrap();
        disk.settle();
        let done = repair(&disk, &chunked::FORMAT, &how).unwrap();
        assert_eq!((done.changed, done.report.outcome), (1, Outcome::Repaired));
        assert!(content(&disk) == sound);
    }
}

/// A file that ends with a band of two blocks, protected, cut off in the band before. Gives what it was, and where that last band begins.
fn cut_before_the_last_band(missing: u64) -> (Simulated, Vec<u8>, u64) {
    let disk = Simulated::new();
    let sound = bytes(7, usize::try_from(3 * BAND + 500).unwrap());
    disk.put(FILE, &sound);
    let how = Protection::default().raw(true).parameters(small());
    let options = Options::default().disk(disk.disk());
    verbs::protect(Path::new(FILE), &options, &how, |_| Ok(())).unwrap();
    let file = disk.open(Path::new(FILE), Opening::Write).unwrap();
    file.set_len(3 * BAND - missing).unwrap();
    disk.settle();
    (disk, sound, 3 * BAND)
}

/// Nothing is restored after a hole.
#[test]
fn what_is_missing_before_a_range_is_restored_with_it() {
    let (disk, sound, last) = cut_before_the_last_band(5000);
    let options = Options::default().disk(disk.disk());
    let how = within(last + 10, last + 20).raw(true);
    let apart = how.clone().to(PathBuf::from("/data/new"));
    let done = verbs::repair(Path::new(FILE), &options, &apart, |_| Ok(())).unwrap();
    assert!(disk.files()["new"] == sound);
    assert_eq!(done.report.file[0].start, last - BAND);
    let done = verbs::repair(Path::new(FILE), &options, &how, |_| Ok(())).unwrap();
    assert!(content(&disk) == sound);
    assert_eq!(done.changed, 5500);
}

/// What cannot be restored of it is zeros (rule 18), and reported as lost.
#[test]
fn what_is_lost_before_a_range_is_reported() {
    let (disk, sound, last) = cut_before_the_last_band(20_000);
    let options = Options::default().disk(disk.disk());
    let how = within(last + 10, last + 20).raw(true);
    let done = verbs::repair(Path::new(FILE), &options, &how, |_| Ok(())).unwrap();
    assert!(done.is_lossy());
    let lost = &done.report.lost;
    assert_eq!(
        (lost[0].start, lost[lost.len() - 1].end),
        (last - 20_480, last)
    );
    let restored = usize::try_from(last).unwrap();
    assert!(content(&disk)[restored..] == sound[restored..]);
    assert_eq!(report(&disk).outcome, Outcome::Lost);
}

#[test]
fn a_range_without_bytes_is_refused() {
    let disk = begin(&active::FORMAT, 100);
    let end = len(&disk);
    for (range, says) in [
        (
            (5, 5),
            "expected a range that ends after it begins, found 5 to 5",
        ),
        ((7, 3), "found 7 to 3"),
        ((end, end + 1), "begins before the end of the file"),
    ] {
        let how = Repairing::default().range(range);
        let error = repair(&disk, &active::FORMAT, &how)
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
    repair(&disk, &active::FORMAT, &within(end - 1, u64::MAX)).unwrap();
}

/// What a repair that was interrupted has changed may be in other bands.
#[test]
fn an_interrupted_repair_is_completed_whole() {
    let disk = begin(&active::FORMAT, 1000);
    let sound = content(&disk);
    flip(&disk, 1000);
    flip(&disk, 3 * BAND + 1000);
    let calls = disk.copy();
    let before = calls.count();
    repair(&calls, &active::FORMAT, &Repairing::default()).unwrap();
    let all = calls.count() - before;
    let mut interrupted = 0;
    for call in 0..all {
        let disk = disk.copy();
        disk.trouble_at(|_| true, call, Trouble::Broken);
        if repair(&disk, &active::FORMAT, &Repairing::default()).is_ok() {
            continue;
        }
        let done = repair(&disk, &active::FORMAT, &within(1000, 1001)).unwrap();
        if done.continued {
            interrupted += 1;
            assert!(content(&disk) == sound);
        }
    }
    assert!(interrupted > 2);
}

/// Whether a sound record has bytes that a repair of a range changes, by all records of the file.
fn changes_a_record(
    format: &'static Format,
    damaged: &[u8],
    sidecar: &[u8],
    range: (u64, u64),
) -> bool {
    let judging = parity::Options::default().range(range);
    let (_, new, _) = repaired(damaged, sidecar, judging);
    let is_changed = |span: &Span| {
        let span = usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap();
        damaged[span.clone()] != new[span]
    };
    let options = Options::default().format(format);
    let is_unit = |span: &Span| matches!(span.kind, Kind::Record | Kind::Chunk | Kind::Block);
    let ledger = Ledger::new(Arc::new(BytesSource::new(damaged.to_vec())), &options).unwrap();
    let spans = ledger.map(Result::unwrap);
    spans
        .filter(|span| span.cause.is_none() && is_unit(span))
        .any(|span| is_changed(&span))
}

/// What is read near changes tells of records with changed bytes what all of the file does.
#[test]
fn records_near_changes_are_those_of_the_whole_file() {
    let (mut refused, mut done) = (0, 0);
    for format in [
        &active::FORMAT,
        &chunked::FORMAT,
        &sealed::FORMAT,
        &tenant::FORMAT,
    ] {
        let of_state = |changed| match format.is_appended_to() {
            false => whole(format, 3000, changed),
            true => {
                let disk = begin(format, 1500);
                let mut value = bytes(1500, 1000);
                value[500] ^= changed;
                append_value(&disk, format, 1500, &value);
                append(&disk, format, 1501..3000, 1000);
                disk.unlink(Path::new(SIDECAR)).unwrap();
                protect(&disk, format).unwrap();
                disk
            }
        };
        let disk = of_state(0);
        let (sound, other) = (content(&disk), content(&of_state(8)));
        let sidecar = disk.files()["log.par"].clone();
        for seed in 0..40u64 {
            let mut random = bytes(seed, 64).into_iter().map(u64::from);
            let mut below = |end: usize| {
                let drawn = random.by_ref().take(4).fold(0, |sum, own| sum << 8 | own);
                usize::try_from(drawn).unwrap() % end
            };
            let mut damaged = sound.clone();
            let at = below(sound.len() - 5000);
            match seed % 4 {
                // A record of another state, alone or beside damage.
                0 | 1 => {
                    let len = other.len().min(sound.len());
                    damaged[..len].copy_from_slice(&other[..len]);
                }
                2 => damaged[at..at + 3000].fill(0),
                _ => damaged[at] ^= 1,
            }
            if seed % 4 == 1 {
                let at = below(sound.len());
                damaged[at] ^= 1;
            }
            let differs = |at: &usize| damaged[*at] != sound[*at];
            let Some(first) = (0..sound.len()).filter(differs).nth(below(3)) else {
                continue;
            };
            let first = u64::try_from(first).unwrap();
            let disk = disk.copy();
            disk.unlink(Path::new(FILE)).unwrap();
            disk.put(FILE, &damaged);
            let result = repair(&disk, format, &within(first, first + 1));
            let is_refused = matches!(&result, Err(Error::Usage(text)) if text.contains("its own checksum proves"));
            let expected = changes_a_record(format, &damaged, &sidecar, (first, first + 1));
            assert_eq!(is_refused, expected, "{} {seed}: {result:?}", format.name);
            refused += usize::from(is_refused);
            done += usize::from(result.is_ok());
        }
    }
    assert!(refused > 20 && done > 40, "{refused} {done}");
}

proptest! {
    /// The bands of the range are as after a repair of all, and nothing else changes.
    #[test]
    fn bands_are_repaired_as_when_all_are(
        file in file(),
        set in set(),
        to_file in proptest::collection::vec(damage(), 0..5),
        to_sidecar in proptest::collection::vec(damage(), 0..3),
        ends in proptest::collection::vec(1u64..5000, 0..3),
        range in (0u64..5000, 1u64..800),
    ) {
        let length = u64::try_from(file.len()).unwrap();
        let mut ends: Vec<_> = ends.into_iter().map(|end| end.min(length)).collect();
        ends.push(length);
        ends.sort_unstable();
        let mut sidecar = protected(&file, ends[0], set);
        for end in &ends[1..] {
            sidecar = extended(&file, *end, &sidecar).unwrap();
        }
        let mut damaged = file.clone();
        to_file.iter().for_each(|damage| damage.apply(&mut damaged));
        to_sidecar.iter().for_each(|damage| damage.apply(&mut sidecar));

        let (all, whole, whole_sidecar) = repaired(&damaged, &sidecar, parity::Options::default());
        let range = (range.0, range.0 + range.1);
        let options = parity::Options::default().range(range);
        let (own, new, new_sidecar) = repaired(&damaged, &sidecar, options);
        prop_assert_eq!(own.refused, all.refused);
        if own.refused.is_some() {
            return Ok(());
        }
        let mut looked_at = BTreeSet::new();
        for span in &own.file {
            for at in span.start..span.end {
                let same = all.file.iter().find(|span| (span.start..span.end).contains(&at)).unwrap();
                prop_assert_eq!((span.kind, span.cause), (same.kind, same.cause));
                let at = usize::try_from(at).unwrap();
                if span.kind == FileKind::Repaired {
                    prop_assert_eq!(new[at], whole[at]);
                    looked_at.insert(at);
                }
            }
        }
        for (at, byte) in new.iter().enumerate().filter(|(at, _)| !looked_at.contains(at)) {
            prop_assert_eq!(*byte, damaged.get(at).copied().unwrap_or(0));
        }
        // How far the file was covered is not known if it was cut, and the sidecar as well.
        let has = |report: &Report, at| report.file.iter().any(|span| (span.start..span.end).contains(&at));
        for at in range.0..range.1 {
            prop_assert_eq!(has(&own, at), has(&all, at), "{}", at);
        }
        prop_assert!(own.sidecar.iter().all(|span| all.sidecar.contains(span)));
        if all.outcome == Outcome::Repaired {
            let (_, then, then_sidecar) = repaired(&new, &new_sidecar, parity::Options::default());
            prop_assert_eq!((then, then_sidecar), (whole, whole_sidecar));
        }
    }
}
