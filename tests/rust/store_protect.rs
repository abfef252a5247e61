//! The parity sidecars of a log's sealed segments: they come with sealing, stay true, and go with their segments.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use seglake::Error;
use seglake::format::Options;
use seglake::parity::Parameters;
use seglake::store::{LogOptions, LogReader, Retention, SegmentLog};
use seglake::verbs::{self, Protection, Repairing, SidecarChange};

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, is_needed, seeds};
use crate::simulated::{Done, Simulated};

fn options() -> LogOptions {
    LogOptions::default().protect(Parameters::DEFAULT)
}

/// Writes segments of three records each, the last of which is not sealed.
fn write(log: &SegmentLog, segments: u8) {
    for number in 0..segments {
        for part in 0..3 {
            log.write(b"type", &[number, part]).unwrap();
        }
        log.roll().unwrap();
    }
    log.write(b"type", b"last").unwrap();
}

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_str().unwrap().ends_with(suffix));
    paths.sort();
    paths
}

fn of(sealed: &Path) -> PathBuf {
    let mut name = sealed.as_os_str().to_owned();
    name.push(".par");
    name.into()
}

#[test]
fn each_sealed_segment_gets_a_sidecar_that_restores_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, options()).unwrap();
    write(&log, 3);
    log.close().unwrap();
    let sealed = files(&path, ".sealed");
    assert_eq!(sealed.len(), 3);
    for segment in sealed {
        let protected = verbs::protect(
            &segment,
            &Options::default(),
            &Protection::default(),
            |_| Ok(()),
        );
        assert_eq!(protected.unwrap().change, SidecarChange::Unchanged);
        let sound = fs::read(&segment).unwrap();
        let mut damaged = sound.clone();
        damaged[100] ^= 1;
        fs::write(&segment, damaged).unwrap();
        verbs::repair(&segment, &Options::default(), &Repairing::default(), |_| {
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read(&segment).unwrap(), sound);
    }
}

#[test]
fn a_log_that_had_none_gets_them_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    write(&log, 2);
    log.close().unwrap();
    assert_eq!(files(&path, ".par").len(), 0);
    let log = SegmentLog::open(&path, options()).unwrap();
    log.wait_sealed().unwrap();
    assert_eq!(files(&path, ".par").len(), 2);
    // One that is there stays as it is.
    let first = files(&path, ".par").remove(0);
    let before = fs::metadata(&first).unwrap().modified().unwrap();
    log.close().unwrap();
    SegmentLog::open(&path, options()).unwrap().close().unwrap();
    assert_eq!(fs::metadata(&first).unwrap().modified().unwrap(), before);
}

/// A sidecar of damage would make it look sound for ever.
#[test]
fn a_damaged_segment_gets_none_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, LogOptions::default()).unwrap();
    write(&log, 2);
    log.close().unwrap();
    let sealed = files(&path, ".sealed");
    let mut bytes = fs::read(&sealed[0]).unwrap();
    let last = bytes.len() / 2;
    bytes[last] ^= 1;
    fs::write(&sealed[0], bytes).unwrap();
    let log = SegmentLog::open(&path, options()).unwrap();
    match log.wait_sealed() {
        Err(Error::Damage(damage)) => assert_eq!(damage.path, Some(sealed[0].clone())),
        other => panic!("{other:?}"),
    }
    assert_eq!(files(&path, ".par"), [of(&sealed[1])]);
    log.write(b"type", b"goes on").unwrap();
    log.close().unwrap();
}

#[test]
fn sidecars_go_with_their_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, options()).unwrap();
    write(&log, 3);
    log.wait_sealed().unwrap();
    let oldest = files(&path, ".par").remove(0);
    let content = fs::read(&oldest).unwrap();
    assert_eq!(log.retain(&Retention::default().bytes(1)).unwrap().len(), 3);
    assert_eq!(files(&path, ".par").len(), 0);
    log.close().unwrap();
    // Where power was lost between the two, it goes when the log is opened. Others are not the log's.
    let other = path.join("notes.par");
    fs::write(&oldest, &content).unwrap();
    fs::write(&other, "mine").unwrap();
    SegmentLog::open(&path, options()).unwrap().close().unwrap();
    assert_eq!(files(&path, ".par"), [other]);
}

/// What it restores may be put back.
#[test]
fn the_sidecar_of_a_segment_that_is_missing_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, options()).unwrap();
    write(&log, 3);
    log.close().unwrap();
    let lost = files(&path, ".sealed").remove(1);
    fs::remove_file(&lost).unwrap();
    assert!(SegmentLog::open(&path, options()).is_err());
    assert!(of(&lost).exists());
}

#[test]
fn a_snapshot_takes_them_along() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("log"), folder.path().join("taken"));
    let log = SegmentLog::open(&path, options()).unwrap();
    write(&log, 2);
    log.wait_sealed().unwrap();
    fs::remove_file(&files(&path, ".par")[0]).unwrap();
    LogReader::open(&path).unwrap().snapshot(&taken).unwrap();
    let (own, its) = (files(&path, ".par"), files(&taken, ".par"));
    assert_eq!((own.len(), its.len()), (1, 1));
    assert_eq!(own[0].file_name(), its[0].file_name());
    assert_eq!(fs::read(&own[0]).unwrap(), fs::read(&its[0]).unwrap());
}

fn folder() -> &'static Path {
    Path::new("/data/log")
}

fn on(disk: &Simulated) -> LogOptions {
    options().disk(disk.disk())
}

/// Writes and seals two segments. The disk is left alone by one thread while the other uses it.
fn write_on(disk: &Simulated, acknowledged: &mut Acknowledged) -> seglake::Result<()> {
    let log = SegmentLog::open(folder(), on(disk))?;
    for number in 0..4 {
        log.write(b"type", &[number])?;
        acknowledged.records += 1;
        if number % 2 == 1 {
            log.roll()?;
            log.wait_sealed()?;
        }
    }
    log.close()
}

/// Tells whether a sealed segment has a sidecar, and refuses one that is not its own.
fn has_true_sidecar(disk: &Simulated, sealed: &str) -> Result<bool, String> {
    let files = disk.visible();
    let Some(sidecar) = files.get(&format!("{sealed}.par")) else {
        return Ok(false);
    };
    let own = crate::parity::verified(&files[sealed], sidecar, seglake::parity::Options::default());
    match own.outcome {
        seglake::parity::Outcome::Sound => Ok(true),
        _ => Err(format!("{sealed} has a sidecar of something else: {own:?}")),
    }
}

fn check(aftermath: &Aftermath<'_>, bare: &Cell<usize>) -> Checked {
    let disk = &aftermath.disk;
    let sealed = |disk: &Simulated| {
        let names = disk.visible().into_keys();
        let sealed = names.filter(|name| name.ends_with(".sealed"));
        sealed.collect::<Vec<_>>()
    };
    for name in sealed(disk) {
        let is_protected = has_true_sidecar(disk, &name)?;
        bare.set(bare.get() + usize::from(!is_protected));
    }
    let log = SegmentLog::open(folder(), on(disk));
    let closed = log.and_then(|log| log.wait_sealed().and_then(|()| log.close()));
    closed.map_err(|error| format!("it cannot be opened: {error}"))?;
    for name in sealed(disk) {
        if !has_true_sidecar(disk, &name)? {
            return Err(format!("{name} is not protected"));
        }
    }
    let reader = LogReader::with(folder(), Options::default().disk(disk.disk()));
    let found = reader.and_then(|log| Ok(log.records()?.count() as u64));
    match found {
        Ok(found) if found >= aftermath.acknowledged.records => Ok(()),
        found => Err(format!("{found:?} records are there")),
    }
}

#[test]
fn a_sidecar_is_true_or_made_anew_after_a_loss_of_power() {
    let bare = Cell::new(0);
    let crashes = Crashes {
        name: "a log that protects".to_owned(),
        prepare: &|_| {},
        work: &write_on,
        check: &|aftermath| check(&aftermath, &bare),
    };
    crashes.crash(seeds(2));
    crashes.trouble(seeds(1));
    assert!(bare.get() > 0);
    // Of the syncs that make a sidecar, each is missed where it is left out.
    let is_of_sidecar = |calls: &[Done], at: usize| {
        let path = calls[at].path.to_str().unwrap_or_default();
        is_needed(calls, at) && path.contains(".par")
    };
    assert!(crashes.mutate(seeds(12), is_of_sidecar) > 0);
}
