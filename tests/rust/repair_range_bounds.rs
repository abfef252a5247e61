//! Where a repair of a range begins and ends: what is next to it is not judged, reported or changed.

use std::path::Path;

use crate::protect_again::{BAND, FILE, append, begin, bytes, flip, len, small};
use crate::simulated::Simulated;
use seglake::Error;
use seglake::faults::{Disk as _, Opening};
use seglake::format::{Options, active};
use seglake::parity::{FileKind, Outcome};
use seglake::verbs::{self, Protection, Repaired, Repairing};

fn repair(disk: &Simulated, start: u64, end: u64) -> seglake::Result<Repaired> {
    let options = Options::default().format(&active::FORMAT).disk(disk.disk());
    let how = Repairing::default().range((start, end));
    verbs::repair(Path::new(FILE), &options, &how, |_| Ok(()))
}

fn judged(done: &Repaired) -> (u64, u64) {
    let file = &done.report.file;
    (file[0].start, file[file.len() - 1].end)
}

#[test]
fn the_bands_beside_a_range_are_not_judged() {
    let disk = begin(&active::FORMAT, 400);
    flip(&disk, 2 * BAND - 1);
    flip(&disk, 3 * BAND);
    let damaged = disk.files()["log"].clone();
    let done = repair(&disk, 2 * BAND, 3 * BAND).unwrap();
    assert_eq!(done.report.outcome, Outcome::Sound);
    assert_eq!(judged(&done), (2 * BAND, 3 * BAND));
    assert!(disk.files()["log"] == damaged);
    for (start, end) in [(2 * BAND - 1, 2 * BAND), (3 * BAND, 3 * BAND + 1)] {
        let done = repair(&disk, start, end).unwrap();
        assert_eq!((done.report.outcome, done.changed), (Outcome::Repaired, 1));
    }
}

/// Bytes that were appended since are not covered. Those of the range alone are in the report.
#[test]
fn bytes_in_no_band_are_reported_up_to_the_ends_of_a_range() {
    let disk = begin(&active::FORMAT, 100);
    let covered = len(&disk);
    append(&disk, &active::FORMAT, 100..200, 1000);
    let done = repair(&disk, 1000, 1001).unwrap();
    assert_eq!(judged(&done), (0, BAND));
    let done = repair(&disk, covered + 10, covered + 30).unwrap();
    let spans: Vec<_> = done
        .report
        .file
        .iter()
        .map(|span| (span.start, span.end, span.kind))
        .collect();
    assert_eq!(spans, [(covered + 10, covered + 30, FileKind::Uncovered)]);
}

/// Bytes of no frame are of no band, so they stay.
#[test]
fn what_is_of_no_frame_stays_in_the_sidecar() {
    let disk = begin(&active::FORMAT, 400);
    flip(&disk, BAND);
    let mut sidecar = disk.files()["log.par"].clone();
    sidecar.extend([7; 100]);
    let path = Path::new("/data/log.par");
    disk.unlink(path).unwrap();
    disk.put("/data/log.par", &sidecar);
    let done = repair(&disk, BAND, BAND + 1).unwrap();
    assert_eq!((done.report.outcome, done.changed), (Outcome::Repaired, 1));
    assert!(disk.files()["log.par"] == sidecar);
}

/// Where a file was cut off, a range from the end of what was covered has no byte of it.
#[test]
fn a_range_after_all_that_was_covered_restores_nothing() {
    let disk = Simulated::new();
    let sound = bytes(7, usize::try_from(3 * BAND + 500).unwrap());
    disk.put(FILE, &sound);
    let options = Options::default().disk(disk.disk());
    let how = Protection::default().raw(true).parameters(small());
    verbs::protect(Path::new(FILE), &options, &how, |_| Ok(())).unwrap();
    let file = disk.open(Path::new(FILE), Opening::Write).unwrap();
    file.set_len(3 * BAND + 100).unwrap();
    disk.settle();
    let end = 3 * BAND + 500;
    let how = Repairing::default().raw(true);
    let of_range = |start| how.clone().range((start, start + 10));
    let error = verbs::repair(Path::new(FILE), &options, &of_range(end), |_| Ok(())).unwrap_err();
    assert!(
        matches!(&error, Error::Usage(text) if text.contains("begins before the end of the file")),
        "{error}"
    );
    assert_eq!(len(&disk), 3 * BAND + 100);
    verbs::repair(Path::new(FILE), &options, &of_range(end - 1), |_| Ok(())).unwrap();
    assert!(disk.files()["log"] == sound);
}

/// Frames of other bands are not asked whether this is another file, as long as one of the range proves that it is not.
#[test]
fn bands_beside_a_range_are_not_read_to_tell_the_file_from_another_one() {
    let disk = Simulated::new();
    let sound = bytes(7, usize::try_from(100 * BAND).unwrap());
    disk.put(FILE, &sound);
    let options = Options::default().disk(disk.disk());
    let how = Protection::default().raw(true).parameters(small());
    verbs::protect(Path::new(FILE), &options, &how, |_| Ok(())).unwrap();
    let last = usize::try_from(99 * BAND).unwrap();
    let mut damaged = sound;
    damaged[..last].iter_mut().for_each(|byte| *byte ^= 1);
    damaged[last + 10] ^= 1;
    disk.unlink(Path::new(FILE)).unwrap();
    disk.put(FILE, &damaged);
    disk.take_read_bytes();
    let how = Repairing::default()
        .raw(true)
        .range((99 * BAND, 99 * BAND + 20));
    let done = verbs::repair(Path::new(FILE), &options, &how, |_| Ok(())).unwrap();
    assert_eq!(done.changed, 1);
    let read = disk.take_read_bytes();
    assert!(read < 20 * BAND, "{read}");
}
