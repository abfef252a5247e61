//! Protecting a file again costs what was appended to it, and refuses whatever a pass through the whole file would.

use std::ops::Range;
use std::path::Path;

use crate::fault_samples::{options, write_value};
use crate::parity::{repaired, verified};
use crate::simulated::Simulated;
use seglake::Error;
use seglake::faults::{Disk as _, Opening};
use seglake::format::{Dialect, Format, IfExists, Options, active, chunked, create, oplog};
use seglake::ledger::Cause;
use seglake::parity::{self, Outcome, Parameters};
use seglake::verbs::{self, ProtectOptions, Protected, SidecarChange};

pub(crate) const FILE: &str = "/data/log";
/// The bytes of a band of [`small`] groups.
pub(crate) const BAND: u64 = 64 << 10;
/// Finding a record before the end of what is covered: 64 KiB, rounded, and a window to tell where zeros begin.
const NEAR: u64 = (128 << 10) + (1 << 20);
/// The beginnings of the sidecar's frames.
pub(crate) const HEADS: u64 = 400 << 10;

pub(crate) fn small() -> Parameters {
    Parameters::new(512, 16, 2, 8).unwrap()
}

/// Appends records of about a kilobyte, or with a value of this length.
pub(crate) fn append(disk: &Simulated, format: &'static Format, numbers: Range<u64>, len: usize) {
    let how = options(format)
        .if_exists(IfExists::Append)
        .disk(disk.disk());
    let mut writer = create(format, Path::new(FILE), &how).unwrap();
    for number in numbers {
        write_value(&mut *writer, format, number, &bytes(number, len)).unwrap();
    }
    writer.close().unwrap();
    disk.settle();
}

/// Random bytes that depend on a number.
pub(crate) fn bytes(number: u64, len: usize) -> Vec<u8> {
    let mut random = number * 2 + 1;
    let bytes = std::iter::repeat_with(|| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        random.to_be_bytes()[0]
    });
    bytes.take(len).collect()
}

pub(crate) fn begin(format: &'static Format, records: u64) -> Simulated {
    let disk = Simulated::new();
    append(&disk, format, 0..records, 1000);
    protect(&disk, format).unwrap();
    disk.take_read_bytes();
    disk
}

pub(crate) fn protect(disk: &Simulated, format: &'static Format) -> seglake::Result<Protected> {
    let options = Options::default().format(format).disk(disk.disk());
    let how = ProtectOptions::default().parameters(small());
    verbs::protect(Path::new(FILE), &options, &how, |_| Ok(()))
}

pub(crate) fn len(disk: &Simulated) -> u64 {
    disk.stat(Path::new(FILE), true).unwrap().len
}

pub(crate) fn flip(disk: &Simulated, at: u64) {
    let file = disk.open(Path::new(FILE), Opening::Write).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[byte[0] ^ 1], at).unwrap();
    disk.settle();
}

pub(crate) fn report(disk: &Simulated) -> parity::Report {
    let files = disk.files();
    verified(&files["log"], &files["log.par"], parity::Options::default())
}

#[test]
fn what_was_appended_is_read_and_not_the_whole_file() {
    for format in [&active::FORMAT, &chunked::FORMAT, &oplog::FORMAT] {
        let disk = begin(format, 12_000);
        let covered = len(&disk);
        append(&disk, format, 12_000..12_100, 1000);
        let appended = len(&disk) - covered;
        assert!(appended * 100 < covered, "{appended} of {covered}");
        disk.take_read_bytes();
        let done = protect(&disk, format).unwrap();
        let read = disk.take_read_bytes();
        assert_eq!(done.change, SidecarChange::Extended);
        assert_eq!((done.verified_from, done.covered), (covered, len(&disk)));
        let report = done.report.unwrap();
        assert!(report.is_sound());
        assert_eq!(report.summary.records, 100);
        // Verified and encoded, and the last band compared.
        let most = 2 * appended + 2 * BAND + NEAR + HEADS;
        assert!(most * 5 < covered);
        assert!(
            read <= most,
            "{}: {read} bytes, {most} at most",
            format.name
        );
        assert_eq!(self::report(&disk).outcome, Outcome::Sound);

        // Without anything new, the last band is compared.
        let done = protect(&disk, format).unwrap();
        let read = disk.take_read_bytes();
        assert_eq!(done.change, SidecarChange::Unchanged);
        assert_eq!(done.verified_from, len(&disk));
        assert!(read <= BAND + HEADS, "{}: {read} bytes", format.name);
    }
}

#[test]
fn a_record_that_is_far_back_is_found() {
    let disk = begin(&active::FORMAT, 3000);
    append(&disk, &active::FORMAT, 3000..3001, 300_000);
    protect(&disk, &active::FORMAT).unwrap();
    let covered = len(&disk);
    append(&disk, &active::FORMAT, 3001..3002, 1000);
    let done = protect(&disk, &active::FORMAT).unwrap();
    assert_eq!(done.verified_from, covered);
    assert_eq!(done.report.unwrap().summary.records, 1);
}

/// Messages of this dialect refer to earlier ones.
#[test]
fn a_draft_1_1_oplog_is_verified_whole() {
    let disk = begin(&oplog::FORMAT, 300);
    let protect = || {
        let options = Options::default().format(&oplog::FORMAT).disk(disk.disk());
        let options = options.dialect(Dialect::Draft11);
        let how = ProtectOptions::default()
            .parameters(small())
            .as_it_is(false);
        verbs::protect(Path::new(FILE), &options, &how, |_| Ok(()))
    };
    append(&disk, &oplog::FORMAT, 300..310, 1000);
    // What was written in another dialect has no messages of this one.
    assert!(matches!(protect(), Err(Error::Damage(damage)) if damage.offset < 1000));
}

/// The end of the file is gone, and something else is there: what is there is said.
#[test]
fn a_file_that_was_cut_and_filled_is_refused() {
    let disk = begin(&active::FORMAT, 100);
    let covered = len(&disk);
    let cut = disk.files()["log"][..50 * usize::try_from(covered).unwrap() / 100].to_vec();
    for (zeros, says) in [
        (0, "the end of the file after "),
        (100_000, ", and then 100000 bytes of unused space"),
    ] {
        let mut bytes = cut.clone();
        bytes.resize(cut.len() + zeros, 0);
        disk.unlink(Path::new(FILE)).unwrap();
        disk.put(FILE, &bytes);
        let error = protect(&disk, &active::FORMAT).unwrap_err().to_string();
        let expected = format!("expected at least the {covered} bytes that were covered, found ");
        assert!(error.contains(&expected) && error.contains(says), "{error}");
    }
}

fn refused(disk: &Simulated, format: &'static Format) -> seglake::error::Damage {
    let before = disk.files()["log.par"].clone();
    let error = protect(disk, format).unwrap_err();
    assert!(disk.files()["log.par"] == before);
    match error {
        Error::Damage(damage) => *damage,
        error => panic!("{error}"),
    }
}

#[test]
fn damage_to_what_was_appended_is_refused() {
    for format in [&active::FORMAT, &chunked::FORMAT] {
        let disk = begin(format, 1000);
        let covered = len(&disk);
        append(&disk, format, 1000..1100, 1000);
        for at in [covered + 3, covered + 40_000] {
            flip(&disk, at);
            let damage = refused(&disk, format);
            assert!(
                (at.saturating_sub(5000)..=at).contains(&damage.offset),
                "{}: {} for {at}",
                format.name,
                damage.offset
            );
            flip(&disk, at);
        }
        protect(&disk, format).unwrap();
    }
}

/// The length of the first message.
#[test]
fn an_appended_message_that_does_not_decode_is_refused() {
    let disk = begin(&oplog::FORMAT, 1000);
    let covered = len(&disk);
    append(&disk, &oplog::FORMAT, 1000..1100, 1000);
    flip(&disk, covered);
    assert_eq!(refused(&disk, &oplog::FORMAT).offset, covered);
}

/// A record that is older than the last one which is covered: sound by itself, and only what is before it tells.
#[test]
fn an_appended_record_that_does_not_ascend_is_refused() {
    let disk = begin(&active::FORMAT, 1000);
    let covered = len(&disk);
    let other = Simulated::new();
    append(&other, &active::FORMAT, 999..1000, 1000);
    let file = disk.open(Path::new(FILE), Opening::Write).unwrap();
    file.write_at(&other.files()["log"], covered).unwrap();
    disk.settle();
    let damage = refused(&disk, &active::FORMAT);
    assert_eq!((damage.offset, damage.cause), (covered, Cause::OutOfOrder));
}

/// What is covered and not read stays as detectable as it was, and can be repaired as before.
#[test]
fn damage_to_what_is_covered_is_not_laundered() {
    for format in [&active::FORMAT, &chunked::FORMAT, &oplog::FORMAT] {
        let disk = begin(format, 1000);
        let (covered, sound) = (len(&disk), disk.files()["log"].clone());
        let last = (covered - 1) / BAND * BAND;
        for at in [0, BAND + 7, last - 1, last, covered - 1] {
            append(&disk, format, 1000..1010, 1000);
            flip(&disk, at);
            // The last band would be encoded anew, and a record of it is where the walk begins.
            if at >= last {
                refused(&disk, format);
            } else if protect(&disk, format).is_ok() {
                let damaged = report(&disk);
                assert_eq!(damaged.outcome, Outcome::Repaired);
                let first = damaged.first_damage().unwrap();
                assert!((first.start..first.end).contains(&at));
            }
            flip(&disk, at);
            let files = disk.files();
            let (_, file, _) =
                repaired(&files["log"], &files["log.par"], parity::Options::default());
            assert!(file[..sound.len()] == sound);
            // The next round begins with a new sidecar and the same file.
            let file = disk.open(Path::new(FILE), Opening::Write).unwrap();
            file.set_len(covered).unwrap();
            disk.unlink(Path::new("/data/log.par")).unwrap();
            disk.settle();
            protect(&disk, format).unwrap();
        }
    }
}

/// A value that holds records, as a copy of another segment does: a walk that begins within it goes astray.
#[test]
fn records_within_a_value_are_not_taken_for_the_last_ones() {
    let disk = begin(&active::FORMAT, 300);
    let inner = Simulated::new();
    append(&inner, &active::FORMAT, 5000..5200, 1000);
    let value = inner.files()["log"].clone();
    let how = options(&active::FORMAT)
        .if_exists(IfExists::Append)
        .disk(disk.disk());
    let mut writer = create(&active::FORMAT, Path::new(FILE), &how).unwrap();
    write_value(&mut *writer, &active::FORMAT, 300, &value).unwrap();
    writer.close().unwrap();
    drop(writer);
    disk.settle();
    protect(&disk, &active::FORMAT).unwrap();
    let covered = len(&disk);
    append(&disk, &active::FORMAT, 301..310, 1000);
    let done = protect(&disk, &active::FORMAT).unwrap();
    assert!(done.report.unwrap().is_sound());
    assert_eq!(done.covered, len(&disk));
    assert!([0, covered].contains(&done.verified_from));
    assert_eq!(report(&disk).outcome, Outcome::Sound);
}

/// Where no record ends at what is covered, as in a file that was protected as one of no format, it is verified whole.
#[test]
fn a_file_that_was_covered_up_to_within_a_record_is_verified_whole() {
    let disk = Simulated::new();
    append(&disk, &active::FORMAT, 0..1000, 1000);
    let whole = disk.files()["log"].clone();
    let file = disk.open(Path::new(FILE), Opening::Write).unwrap();
    file.set_len(whole.len() as u64 - 500).unwrap();
    disk.settle();
    let how = ProtectOptions::default().parameters(small()).raw(true);
    let options = Options::default().disk(disk.disk());
    verbs::protect(Path::new(FILE), &options, &how, |_| Ok(())).unwrap();
    file.write_at(&whole[whole.len() - 500..], whole.len() as u64 - 500)
        .unwrap();
    disk.settle();
    let done = protect(&disk, &active::FORMAT).unwrap();
    assert_eq!((done.verified_from, done.covered), (0, whole.len() as u64));
}
