//! A repair of a range reads the records near its changes alone: these are all that the changes may have bytes of.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::fault_samples::{options, write_value};
use crate::protect_again::{FILE, append, begin, bytes, small};
use crate::simulated::Simulated;
use seglake::Error;
use seglake::faults::Disk as _;
use seglake::format::{Format, Options, active, chunked, create, sealed, tenant};
use seglake::ledger::{Kind, Span};
use seglake::source::BytesSource;
use seglake::verbs::{self, Ledger, Protection, Repaired, Repairing};

/// These are read in parts.
const WITH_PARTS: [&Format; 2] = [&sealed::FORMAT, &tenant::FORMAT];

/// The state of a file whose records have values of so many bytes, each with this byte in it.
fn state(format: &'static Format, records: u64, len: usize, changed: u8) -> Vec<u8> {
    let disk = Simulated::new();
    let how = options(format).disk(disk.disk());
    let mut writer = create(format, Path::new(FILE), &how).unwrap();
    for number in 0..records {
        let mut value = bytes(number, len);
        value[500] ^= changed;
        // Five numbers are of one tenant.
        write_value(&mut *writer, format, 5 * number, &value).unwrap();
    }
    writer.close().unwrap();
    drop(writer);
    disk.files()["log"].clone()
}

fn units(format: &'static Format, file: &[u8]) -> Vec<Span> {
    let options = Options::default().format(format);
    let source = Arc::new(BytesSource::new(file.to_vec()));
    let spans = Ledger::new(source, &options).unwrap().map(Result::unwrap);
    let is_unit = |span: &Span| matches!(span.kind, Kind::Record | Kind::Chunk | Kind::Block);
    let mut units: Vec<_> = spans.filter(is_unit).collect();
    units.sort_by_key(|span| span.start);
    units
}

/// A disk with the sidecar of these bytes, whatever they are.
fn protected(bytes: &[u8]) -> Simulated {
    let disk = Simulated::new();
    disk.put(FILE, bytes);
    let how = Protection::default().raw(true).parameters(small());
    let options = Options::default().disk(disk.disk());
    verbs::protect(Path::new(FILE), &options, &how, |_| Ok(())).unwrap();
    disk.settle();
    disk
}

/// Repairs a range of another state of the protected file.
fn repair(
    disk: &Simulated,
    format: &'static Format,
    file: &[u8],
    range: (u64, u64),
) -> seglake::Result<Repaired> {
    let disk = disk.copy();
    disk.unlink(Path::new(FILE)).unwrap();
    disk.put(FILE, file);
    let options = Options::default().format(format).disk(disk.disk());
    let options = options.window_bytes(4 << 10);
    let how = Repairing::default().range(range);
    verbs::repair(Path::new(FILE), &options, &how, |_| Ok(()))
}

fn is_refused(result: &seglake::Result<Repaired>) -> bool {
    matches!(result, Err(Error::Usage(text)) if text.contains("its own checksum proves"))
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

/// A part begins after the first record that is sound where the index has it. If the last one of the part before is damaged, the first
/// one of the part is of the part before.
#[test]
fn a_record_after_a_damaged_one_stays() {
    for format in WITH_PARTS {
        let (old, new) = (state(format, 40, 100_000, 0), state(format, 40, 100_000, 1));
        let (disk, units) = (protected(&old), units(format, &new));
        assert_eq!((units.len(), old.len()), (40, new.len()));
        for (before, own) in units.iter().zip(&units[1..]) {
            let mut file = new.clone();
            file[at(before.start) + 1000] ^= 1;
            let changed = (at(own.start)..at(own.end)).find(|at| old[*at] != new[*at]);
            let changed = changed.unwrap() as u64;
            let result = repair(&disk, format, &file, (changed, changed + 1));
            assert!(is_refused(&result), "{}: {own:?}: {result:?}", format.name);
        }
    }
}

/// A part that has no sound record says nothing of where the one after it begins. That other parts have sound ones changes nothing.
#[test]
fn a_record_after_a_damaged_part_stays() {
    for format in WITH_PARTS {
        let len = 2_200_000;
        let (old, new) = (state(format, 7, len, 0), state(format, 7, len, 1));
        let (disk, units) = (protected(&old), units(format, &new));
        assert_eq!(units.len(), 7);
        let changed = |unit: &Span| (at(unit.start)..at(unit.end)).find(|at| old[*at] != new[*at]);
        for own in 3..5 {
            let (damaged, after) = (units[own - 1].end - 1000, changed(&units[own + 1]).unwrap());
            let mut file = new.clone();
            for at in [at(units[own - 2].start) + 100_000, at(damaged), after] {
                file[at] ^= 2;
            }
            let result = repair(&disk, format, &file, (damaged, after as u64 + 1));
            assert!(is_refused(&result), "{}: {own}: {result:?}", format.name);
        }
    }
}

/// The last byte that would change is the first one of a record, at which a part or a step of a walk may begin.
#[test]
fn a_record_of_which_the_first_byte_would_change_stays() {
    for format in WITH_PARTS {
        let sound = state(format, 40, 60_000, 0);
        let units = units(format, &sound);
        for own in 14..20 {
            let mut old = sound.clone();
            old[at(units[own].start)] ^= 1;
            let mut file = sound.clone();
            let damaged = units[own - 1].start - 100;
            file[at(damaged)] ^= 1;
            let range = (damaged, units[own].start + 1);
            let result = repair(&protected(&old), format, &file, range);
            assert!(is_refused(&result), "{}: {own}: {result:?}", format.name);
        }
    }
    for format in [&active::FORMAT, &chunked::FORMAT] {
        let disk = begin(format, 90);
        append(&disk, format, 90..100, 1000);
        let sound = disk.files()["log"].clone();
        let units = units(format, &sound);
        for own in &units[units.len() - 15..units.len() - 5] {
            let mut old = sound.clone();
            old[at(own.start)] ^= 1;
            let range = (own.start, own.start + 1);
            let result = repair(&protected(&old), format, &sound, range);
            assert!(is_refused(&result), "{}: {own:?}: {result:?}", format.name);
        }
    }
}

/// Only the last part changes, and it has no sound record. That others are tells that the file is the one that was protected.
#[test]
fn a_file_that_was_modified_is_repaired_if_a_record_elsewhere_is_sound() {
    for format in WITH_PARTS {
        let sound = state(format, 4, 2_200_000, 0);
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("log");
        fs::write(&path, &sound).unwrap();
        let options = Options::default().format(format);
        let how = Protection::default().raw(true).parameters(small());
        verbs::protect(&path, &options, &how, |_| Ok(())).unwrap();
        let mut damaged = sound.clone();
        let place = at(units(format, &sound)[3].start) + 300_000;
        damaged[place] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let file = fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(100))
            .unwrap();
        drop(file);
        let how = Repairing::default().range((place as u64, place as u64 + 1));
        let done = verbs::repair(&path, &options, &how, |_| Ok(()));
        assert!(done.is_ok(), "{}: {done:?}", format.name);
        assert!(fs::read(&path).unwrap() == sound);
    }
}
