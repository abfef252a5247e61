//! Making and extending sidecars of files: what is covered, and what is refused.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::common::uuid;
use crate::fault_samples::sample;
use crate::parity::{repaired, verified};
use seglake::Error;
use seglake::format::{FORMATS, IfExists, Options, WriteOptions, Writer as _, active};
use seglake::ledger::Cause;
use seglake::parity::{self, Outcome, Parameters};
use seglake::verbs::{self, ProtectOptions, Protected, SidecarChange};

/// Appends records to an active segment.
fn append(path: &Path, numbers: std::ops::Range<u64>) {
    let options = WriteOptions::default().if_exists(IfExists::Append);
    let mut writer = active::Writer::open(path, &options).unwrap();
    for number in numbers {
        let value = format!("value {number}");
        let uuid = uuid::Uuid::from_bytes(uuid(number));
        writer.append(&uuid, b"type", value.as_bytes()).unwrap();
    }
    writer.close().unwrap();
}

fn segment(folder: &Path) -> PathBuf {
    let path = folder.join("log.active");
    append(&path, 0..20);
    path
}

fn protect(path: &Path, protection: ProtectOptions) -> seglake::Result<Protected> {
    verbs::protect(path, &Options::default(), &protection, |_| Ok(()))
}

fn plain() -> ProtectOptions {
    ProtectOptions::default()
}

fn sidecar(path: &Path) -> PathBuf {
    path.with_extension("active.par")
}

fn outcome(path: &Path) -> Outcome {
    let (file, sidecar) = (fs::read(path).unwrap(), fs::read(sidecar(path)).unwrap());
    verified(&file, &sidecar, parity::Options::default()).outcome
}

fn add(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn every_format_is_covered_and_repaired() {
    for &format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        sample(&path, format, 30);
        let options = Options::default().format(format);
        let done = verbs::protect(&path, &options, &plain(), |_| Ok(())).unwrap();
        assert_eq!((done.change, done.healed), (SidecarChange::Created, false));
        assert!(
            done.report.is_some_and(|report| report.is_sound()),
            "{format:?}"
        );
        let file = fs::read(&path).unwrap();
        let sidecar = fs::read(folder.path().join("file.par")).unwrap();
        assert_eq!(done.sidecar_bytes, sidecar.len() as u64);
        let covered = usize::try_from(done.covered).unwrap();
        assert!(covered > 0 && covered <= file.len());
        for at in [0, covered / 2, covered - 1] {
            let mut damaged = file.clone();
            damaged[at] ^= 0x55;
            assert_eq!(
                repaired(&damaged, &sidecar, parity::Options::default()).1,
                file
            );
        }
    }
}

#[test]
fn unused_space_and_a_torn_tail_are_not_covered() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment(folder.path());
    let len = fs::metadata(&path).unwrap().len();
    add(&path, &[0; 500]);
    assert_eq!(protect(&path, plain()).unwrap().covered, len);
    fs::remove_file(sidecar(&path)).unwrap();
    flip(&path, usize::try_from(len).unwrap() + 10);
    let done = protect(&path, plain()).unwrap();
    assert_eq!((done.covered, done.size), (len, len + 500));
    // All of a file without a format is covered.
    let done = protect(&path, plain().as_it_is(true).raw(true)).unwrap();
    assert_eq!(
        (done.covered, done.change),
        (len + 500, SidecarChange::Created)
    );
    assert!(done.report.is_none());
}

#[test]
fn what_was_appended_is_covered_when_it_is_protected_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment(folder.path());
    protect(&path, plain()).unwrap();
    let before = fs::read(sidecar(&path)).unwrap();
    assert_eq!(
        protect(&path, plain()).unwrap().change,
        SidecarChange::Unchanged
    );
    assert!(fs::read(sidecar(&path)).unwrap() == before);
    append(&path, 20..25);
    let done = protect(&path, plain()).unwrap();
    assert_eq!(done.change, SidecarChange::Extended);
    assert_eq!(done.covered, fs::metadata(&path).unwrap().len());
    assert!(fs::read(sidecar(&path)).unwrap().starts_with(&before));
    assert_eq!(outcome(&path), Outcome::Sound);
}

#[test]
fn a_lazy_sidecar_waits_until_a_sixteenth_is_not_covered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, vec![7; 1600]).unwrap();
    let lazily = || protect(&path, plain().raw(true).lazy(true)).unwrap();
    assert_eq!(lazily().covered, 1600);
    add(&path, &[8; 99]);
    let done = lazily();
    assert_eq!(
        (done.covered, done.change),
        (1600, SidecarChange::Unchanged)
    );
    add(&path, &[8; 1]);
    let done = lazily();
    assert_eq!((done.covered, done.change), (1700, SidecarChange::Extended));
    // A band that is complete does not wait.
    let parameters = Parameters::new(64, 16, 2, 1).unwrap();
    let protection = || plain().raw(true).lazy(true);
    fs::write(&path, vec![7; 1000]).unwrap();
    protect(&path, protection().as_it_is(true).parameters(parameters)).unwrap();
    add(&path, &[8; 24]);
    assert_eq!(protect(&path, protection()).unwrap().covered, 1024);
}

#[test]
fn a_damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment(folder.path());
    let sound = fs::read(&path).unwrap();
    flip(&path, 100);
    let Err(Error::Damage(damage)) = protect(&path, plain()) else {
        panic!("a damaged file is protected")
    };
    assert_eq!(
        (damage.cause, damage.wrong_key),
        (Cause::ChecksumMismatch, false)
    );
    assert!(!sidecar(&path).exists());
    // As it is, it is covered all the same.
    let done = protect(&path, plain().as_it_is(true)).unwrap();
    assert!(!done.report.unwrap().is_sound());
    assert_eq!(outcome(&path), Outcome::Sound);
    // Under another key all of it is damaged, and nothing is covered.
    fs::write(&path, sound).unwrap();
    fs::remove_file(sidecar(&path)).unwrap();
    let key = seglake::checksum::Key::new(&[9; 32]);
    let options = Options::default().keys(vec![key]);
    let error = verbs::protect(&path, &options, &plain(), |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::Damage(damage) if damage.wrong_key));
}

#[test]
fn a_file_that_differs_from_what_was_covered_is_not_covered_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.active");
    let raw = || plain().raw(true);
    let content: Vec<u8> = (0..900u16).map(|at| at.to_le_bytes()[0] | 1).collect();
    let parameters = Parameters::new(64, 2, 1, 1).unwrap();
    let begin = |change: fn(&mut Vec<u8>)| {
        fs::write(&path, &content).unwrap();
        protect(&path, raw().as_it_is(true).parameters(parameters)).unwrap();
        let mut sidecar = fs::read(sidecar(&path)).unwrap();
        change(&mut sidecar);
        fs::write(self::sidecar(&path), sidecar).unwrap();
    };
    let refused = |start: u64, cause: Cause| {
        let before = fs::read(sidecar(&path)).unwrap();
        let error = protect(&path, raw()).unwrap_err();
        let text = error.to_string();
        let Error::Damage(damage) = error else {
            panic!("{text}")
        };
        assert_eq!(
            (damage.offset, damage.cause, damage.path.as_deref()),
            (start, cause, Some(&*path))
        );
        assert!(text.contains("seglake repair"), "{text}");
        assert!(fs::read(sidecar(&path)).unwrap() == before);
    };
    // A block of the last band.
    begin(|_| {});
    flip(&path, 899);
    add(&path, b"more");
    refused(896, Cause::ChecksumMismatch);
    // The end.
    begin(|_| {});
    fs::write(&path, &content[..800]).unwrap();
    refused(800, Cause::LengthOutOfBounds);
    // Any block, if the sidecar is damaged.
    begin(|sidecar| sidecar.truncate(sidecar.len() - 1));
    flip(&path, 10);
    refused(0, Cause::ChecksumMismatch);
    // What a frame that is gone covered.
    begin(|sidecar| sidecar.truncate(208));
    refused(128, Cause::Unreferenced);
}

#[test]
fn a_damaged_sidecar_is_healed_if_the_file_is_proven() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.active");
    fs::write(&path, vec![3; 5000]).unwrap();
    protect(&path, plain().raw(true)).unwrap();
    let sound = fs::read(sidecar(&path)).unwrap();
    fs::write(
        sidecar(&path),
        [b"bytes of no frame", &sound[..sound.len() - 20]].concat(),
    )
    .unwrap();
    let done = protect(&path, plain().raw(true)).unwrap();
    assert_eq!((done.change, done.healed), (SidecarChange::Unchanged, true));
    assert!(fs::read(sidecar(&path)).unwrap() == sound);
}

#[test]
fn what_is_no_sidecar_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment(folder.path());
    fs::write(sidecar(&path), b"something else").unwrap();
    let error = protect(&path, plain()).unwrap_err();
    assert!(
        matches!(&error, Error::Format { path: Some(own), .. } if *own == sidecar(&path)),
        "{error}"
    );
    assert!(fs::read(sidecar(&path)).unwrap() == b"something else");
    // An empty one is.
    fs::write(sidecar(&path), b"").unwrap();
    assert_eq!(
        protect(&path, plain()).unwrap().change,
        SidecarChange::Created
    );
}

#[test]
fn wrong_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment(folder.path());
    let usage = |path: &Path, protection: ProtectOptions, said: &str| {
        let error = protect(path, protection).unwrap_err();
        assert!(
            matches!(&error, Error::Usage(text) if text.contains(said)),
            "{error}"
        );
    };
    usage(&path, plain().sidecar(path.clone()), "name another file");
    protect(&path, plain()).unwrap();
    let other = "128+4".parse::<Parameters>().unwrap();
    usage(&path, plain().parameters(other), "has the profile 128+8");
    protect(&path, plain().parameters(Parameters::DEFAULT)).unwrap();
    protect(&path, plain().parameters(other).as_it_is(true)).unwrap();
    // A file of no format needs to be told to be one.
    let raw = folder.path().join("notes");
    fs::write(&raw, b"some text").unwrap();
    let error = protect(&raw, plain()).unwrap_err();
    assert!(
        matches!(&error, Error::Format { next: Some(next), .. } if next.contains("raw")),
        "{error}"
    );
    protect(&raw, plain().raw(true)).unwrap();
    // A file that is not there.
    let error = protect(&folder.path().join("none"), plain()).unwrap_err();
    assert!(
        matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    );
    assert!(!folder.path().join("none.par").exists());
}

#[cfg(unix)]
#[test]
fn one_writer_of_a_sidecar_keeps_another_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment(folder.path());
    protect(&path, plain()).unwrap();
    let other = OpenOptions::new().write(true).open(sidecar(&path)).unwrap();
    other.lock().unwrap();
    let error = protect(&path, plain()).unwrap_err();
    assert!(
        matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::ResourceBusy)
    );
    drop(other);
    protect(&path, plain()).unwrap();
}

#[test]
fn a_sidecar_may_be_elsewhere_and_work_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = segment(folder.path());
    let elsewhere = folder.path().join("elsewhere");
    let done = protect(&path, plain().sidecar(elsewhere.clone())).unwrap();
    assert_eq!(done.sidecar, elsewhere);
    assert!(elsewhere.exists() && !sidecar(&path).exists());
    let mut told = Vec::new();
    verbs::protect(&path, &Options::default(), &plain(), |done| {
        told.push(done);
        Ok(())
    })
    .unwrap();
    assert!(told.is_sorted());
    assert_eq!(told.last(), Some(&fs::metadata(&path).unwrap().len()));
    fs::remove_file(sidecar(&path)).unwrap();
    let error = verbs::protect(&path, &Options::default(), &plain(), |_| {
        Err(Error::Interrupted)
    });
    assert!(matches!(error, Err(Error::Interrupted)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// A bit that flips after the file was verified does not become what the sidecar restores.
#[test]
fn what_is_covered_are_the_bytes_that_were_verified() {
    for &format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        sample(&path, format, 30);
        let (sound, mut is_first) = (fs::read(&path).unwrap(), true);
        let options = Options::default().format(format);
        let done = verbs::protect(&path, &options, &plain(), |_| {
            if std::mem::take(&mut is_first) {
                flip(&path, sound.len() / 2);
            }
            Ok(())
        });
        done.unwrap();
        let sidecar = fs::read(folder.path().join("file.par")).unwrap();
        let damaged = fs::read(&path).unwrap();
        assert_ne!(damaged, sound);
        let restored = repaired(&damaged, &sidecar, parity::Options::default()).1;
        assert!(restored == sound, "{format:?}");
    }
    // More than is kept in memory.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.active");
    append(&path, 0..20_000);
    for is_extended in [false, true] {
        let len = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
        let mut is_first = true;
        let done = verbs::protect(&path, &Options::default(), &plain(), |_| {
            if std::mem::take(&mut is_first) {
                flip(&path, len - 300_000);
            }
            Ok(())
        });
        let refused = done.unwrap_err().to_string();
        assert!(
            refused.contains("its bytes changed between two reads"),
            "{refused}"
        );
        flip(&path, len - 300_000);
        assert_eq!(sidecar(&path).exists(), is_extended);
        protect(&path, plain()).unwrap();
        if !is_extended {
            append(&path, 20_000..40_000);
        }
    }
}
