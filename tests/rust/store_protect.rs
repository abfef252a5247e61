//! The parity sidecars of a log's sealed segments: they come with sealing, stay true, and go with their segments.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use seglake::Error;
use seglake::format::Options;
use seglake::parity::Parameters;
use seglake::store::{LogOptions, LogReader, Recovery, Retention, SegmentLog};
use seglake::verbs::{self, ProtectOptions, RepairOptions, SidecarChange};

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, is_needed, seeds};
use crate::simulated::{Done, Simulated};

fn options() -> LogOptions {
    LogOptions::default().protect(Parameters::DEFAULT)
}

/// Writes segments of three records each, the last of which is not sealed.
fn write(log: &SegmentLog, segments: u8) {
    for number in 0..segments {
        for part in 0..3 {
            log.write(b"type", [number, part]).unwrap();
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
            &ProtectOptions::default(),
            |_| Ok(()),
        );
        assert_eq!(protected.unwrap().change, SidecarChange::Unchanged);
        let sound = fs::read(&segment).unwrap();
        let mut damaged = sound.clone();
        damaged[100] ^= 1;
        fs::write(&segment, damaged).unwrap();
        verbs::repair(
            &segment,
            &Options::default(),
            &RepairOptions::default(),
            |_| Ok(()),
        )
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
    // Where power was lost between the two, that of the active file goes when the log is opened. What is kept of a segment that is gone
    // may be all that is left of it. Others are not the log's.
    let other = path.join("notes.par");
    fs::write(&oldest, &content).unwrap();
    fs::write(&other, "mine").unwrap();
    SegmentLog::open(&path, options()).unwrap().close().unwrap();
    assert_eq!(files(&path, ".par"), [other]);
}

/// Damages a file and its sidecar, and repairs them. Gives the names of what was kept.
fn repaired(file: &Path) -> [PathBuf; 2] {
    for (path, at) in [(file, 20), (&*of(file), 60)] {
        let mut bytes = fs::read(path).unwrap();
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    let how = RepairOptions::default().force(true);
    let done = verbs::repair(file, &Options::default(), &how, |_| Ok(())).unwrap();
    [done.damaged.unwrap(), done.damaged_sidecar.unwrap()]
}

/// What repairs kept goes with its segment, and so does that of an active file that is sealed.
#[test]
fn what_repairs_kept_goes_with_its_segment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, options().seal(false)).unwrap();
    write(&log, 3);
    log.close().unwrap();
    let active = &files(&path, ".active")[0];
    protect(active);
    let of_active = repaired(active);
    let log = SegmentLog::open(&path, options()).unwrap();
    log.wait_sealed().unwrap();
    assert!(of_active.iter().all(|own| !own.exists()));
    let sealed = files(&path, ".sealed");
    let (first, second) = (repaired(&sealed[0]), repaired(&sealed[1]));
    let [gone, stays] = [0, 1].map(|at: usize| {
        let stem = sealed[at].file_stem().unwrap().to_str().unwrap();
        path.join(format!("_{stem}.84-1.quarantine"))
    });
    for own in [&gone, &stays] {
        fs::write(own, "kept").unwrap();
    }
    let bytes = fs::metadata(&sealed[2]).unwrap().len() + fs::metadata(&sealed[1]).unwrap().len();
    assert_eq!(
        log.retain(&Retention::default().bytes(bytes))
            .unwrap()
            .len(),
        1
    );
    assert!(first.iter().all(|own| !own.exists()));
    assert!(second.iter().all(|own| own.exists()));
    assert_eq!((gone.exists(), stays.exists()), (false, true));
    log.close().unwrap();
    // What is kept of a segment that is gone may be all that is left of it, so opening the log does not remove it.
    let other = path.join("notes.damaged");
    for own in [
        &first[0],
        &first[1],
        &of_active[0],
        &of_active[1],
        &gone,
        &other,
    ] {
        fs::write(own, "kept").unwrap();
    }
    SegmentLog::open(&path, options()).unwrap().close().unwrap();
    // Nor what recovery put aside: its segment may have been moved away.
    assert!(
        first
            .iter()
            .chain(&of_active)
            .chain(&second)
            .chain([&other, &stays, &gone])
            .all(|own| own.exists())
    );
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
    LogReader::open(&path, Options::default())
        .unwrap()
        .snapshot(&taken)
        .unwrap();
    let (own, its) = (files(&path, ".par"), files(&taken, ".par"));
    assert_eq!((own.len(), its.len()), (1, 1));
    assert_eq!(own[0].file_name(), its[0].file_name());
    assert_eq!(fs::read(&own[0]).unwrap(), fs::read(&its[0]).unwrap());
}

/// A sealed segment is one file under two names. What is repaired is the log's alone.
#[test]
fn a_snapshot_keeps_its_bytes_when_the_segment_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("log"), folder.path().join("taken"));
    let log = SegmentLog::open(&path, options()).unwrap();
    write(&log, 2);
    log.wait_sealed().unwrap();
    let records = || {
        LogReader::open(&path, Options::default())
            .unwrap()
            .records()
            .unwrap()
            .count()
    };
    let before = records();
    LogReader::open(&path, Options::default())
        .unwrap()
        .snapshot(&taken)
        .unwrap();
    let sealed = files(&path, ".sealed").remove(0);
    let others = [sealed.clone(), of(&sealed)].map(|own| taken.join(own.file_name().unwrap()));
    let sound = fs::read(&sealed).unwrap();
    let kept = repaired(&sealed);
    assert_eq!(fs::read(&sealed).unwrap(), sound);
    for (kept, other) in kept.iter().zip(&others) {
        assert_eq!(fs::read(kept).unwrap(), fs::read(other).unwrap());
    }
    assert_ne!(fs::read(&others[0]).unwrap(), sound);
    assert_eq!(records(), before);
    log.close().unwrap();
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
        log.write(b"type", [number])?;
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
    has_acknowledged(disk, aftermath)
}

/// Whether a reader finds as many records as were acknowledged.
fn has_acknowledged(disk: &Simulated, aftermath: &Aftermath<'_>) -> Result<(), String> {
    let reader = LogReader::open(folder(), Options::default().disk(disk.disk()));
    let found = reader.and_then(|log| Ok(log.records()?.count() as u64));
    match found {
        Ok(found) if found >= aftermath.acknowledged.records => Ok(()),
        found => Err(format!("{found:?} records are there")),
    }
}

/// What is done with a log that protects, and the number of its sidecars that are gone afterwards.
fn crashes(each: impl FnOnce(&Crashes<'_>, &Cell<usize>)) {
    let bare = Cell::new(0);
    let crashes = Crashes {
        name: "a log that protects".to_owned(),
        prepare: &|_| {},
        work: &write_on,
        check: &|aftermath| check(&aftermath, &bare),
    };
    each(&crashes, &bare);
}

#[test]
fn a_sidecar_is_true_or_made_anew_after_a_loss_of_power() {
    crashes(|crashes, bare| {
        crashes.crash(seeds(2));
        crashes.trouble(seeds(1));
        assert!(bare.get() > 0);
    });
}

#[test]
#[ignore = "make test-more runs it"]
fn no_sync_of_a_sidecar_can_be_left_out() {
    let is_of_sidecar = |calls: &[Done], at: usize| {
        let path = calls[at].path.to_str().unwrap_or_default();
        is_needed(calls, at) && path.contains(".par")
    };
    crashes(|crashes, _| assert!(crashes.mutate(seeds(12), is_of_sidecar) > 0));
}

/// Protects a file by hand.
fn protect(file: &Path) {
    let how = ProtectOptions::default();
    verbs::protect(file, &Options::default(), &how, |_| Ok(())).unwrap();
}

fn synced_offset(path: &Path) -> u64 {
    LogReader::open(path, Options::default())
        .unwrap()
        .synced()
        .unwrap()
        .unwrap()
        .offset
}

/// What was covered was on the disk, also where the mark is lost: it is no torn tail.
#[test]
fn what_the_sidecar_covers_is_never_cut() {
    for is_cut in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = SegmentLog::open(&path, options()).unwrap();
        log.write(b"type", [1; 300_000]).unwrap(); // several blocks, of which some are as they were covered
        log.write(b"type", b"second").unwrap();
        log.close().unwrap();
        let active = files(&path, ".active").remove(0);
        protect(&active);
        let sound = fs::read(&active).unwrap();
        let records = synced_offset(&path);
        fs::remove_file(path.join("_mark")).unwrap();
        let mut damaged = sound.clone();
        let at = usize::try_from(records).unwrap();
        match is_cut {
            true => damaged[at - 39..].fill(0), // the whole second record
            false => damaged[at - 1] ^= 1,
        }
        fs::write(&active, &damaged).unwrap();
        let log = SegmentLog::open(&path, options()).unwrap();
        assert!(
            matches!(log.recovered(), [Recovery::Frozen { .. }]),
            "{is_cut}: {:?}",
            log.recovered()
        );
        log.write(b"type", b"third").unwrap();
        log.close().unwrap();
        assert_eq!(fs::read(&active).unwrap(), damaged);
        let repairing = RepairOptions::default();
        verbs::repair(&active, &Options::default(), &repairing, |_| Ok(())).unwrap();
        assert_eq!(fs::read(&active).unwrap(), sound);
        let records = LogReader::open(&path, Options::default())
            .unwrap()
            .records()
            .unwrap();
        assert_eq!(records.map(Result::unwrap).count(), 3);
    }
}

#[test]
fn retention_and_opening_remove_sidecars_of_active_segments_that_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = SegmentLog::open(&path, options().seal(false)).unwrap();
    write(&log, 2);
    log.close().unwrap();
    files(&path, ".active").iter().for_each(|own| protect(own));
    let active = files(&path, ".active.par");
    assert_eq!(active.len(), 3);
    let kept = fs::read(&active[0]).unwrap();
    // A snapshot goes without that of the segment that is being written, which may cover more of it by then.
    let taken = folder.path().join("taken");
    LogReader::open(&path, Options::default())
        .unwrap()
        .snapshot(&taken)
        .unwrap();
    assert_eq!(files(&taken, ".active.par").len(), 2);
    let log = SegmentLog::open(&path, options()).unwrap();
    log.wait_sealed().unwrap();
    log.close().unwrap();
    assert_eq!(files(&path, ".active.par"), [active[2].clone()]);
    // As after a loss of power.
    fs::write(&active[0], kept).unwrap();
    SegmentLog::open(&path, options()).unwrap().close().unwrap();
    assert_eq!(files(&path, ".active.par"), [active[2].clone()]);
}
