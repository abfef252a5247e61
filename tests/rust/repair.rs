//! A repaired file takes the place of the damaged one, which stays as it is under another name.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::fault_samples::{all_or_nothing_replacing, options, write_value};
use crate::parity::verified;
use crate::protect_again::{FILE, append, begin, flip, protect, report};
use crate::simulated::{Call, Simulated, Trouble};
use seglake::Error;
use seglake::faults::{Disk as _, Opening};
use seglake::format::{Format, IfExists, Options, active, chunked, create, sealed, tenant};
use seglake::parity::{self, Outcome};
use seglake::verbs::{self, ProtectOptions, RepairOptions, Repaired};

const DAMAGED: &str = "/data/log.damaged";

fn repair(
    disk: &Simulated,
    format: &'static Format,
    how: &RepairOptions,
) -> seglake::Result<Repaired> {
    let options = Options::default().format(format).disk(disk.disk());
    verbs::repair(Path::new(FILE), &options, how, |_| Ok(()))
}

fn content(disk: &Simulated) -> Vec<u8> {
    disk.files()["log"].clone()
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    format!("{}{suffix}", path.display()).into()
}

/// A file of these bytes that is protected, and damaged since.
fn damaged(folder: &Path) -> (PathBuf, Vec<u8>, Vec<u8>) {
    let path = folder.join("file");
    let sound: Vec<u8> = (0..60_000u32).map(|at| (at * 31 % 251) as u8).collect();
    fs::write(&path, &sound).unwrap();
    let how = ProtectOptions::default().raw(true);
    verbs::protect(&path, &Options::default(), &how, |_| Ok(())).unwrap();
    let mut bytes = sound.clone();
    bytes[40_000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    (path, sound, bytes)
}

fn raw() -> RepairOptions {
    RepairOptions::default().raw(true).force(true)
}

fn repaired(path: &Path) -> seglake::Result<Repaired> {
    verbs::repair(path, &Options::default(), &raw(), |_| Ok(()))
}

#[test]
fn other_names_of_the_file_keep_the_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, sound, bytes) = damaged(folder.path());
    let other = folder.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    let done = repaired(&path).unwrap();
    let kept = suffixed(&path, ".damaged");
    assert_eq!(
        (done.damaged.as_ref(), done.damaged_sidecar),
        (Some(&kept), None)
    );
    assert!(fs::read(&path).unwrap() == sound);
    assert!(fs::read(&other).unwrap() == bytes && fs::read(&kept).unwrap() == bytes);
    // To undo it.
    fs::rename(&kept, &path).unwrap();
    assert!(fs::read(&path).unwrap() == bytes);
    assert_eq!(repaired(&path).unwrap().changed, 1);
}

#[cfg(unix)]
#[test]
fn the_file_keeps_its_permissions_and_its_time() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    for mode in [0o640, 0o755, 0o600] {
        let folder = tempfile::tempdir().unwrap();
        let (path, _, _) = damaged(folder.path());
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let of = |path: &Path| {
            let own = fs::metadata(path).unwrap();
            (own.mode(), own.uid(), own.gid(), own.modified().unwrap())
        };
        let before = of(&path);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let done = repaired(&path).unwrap();
        assert_eq!((of(&path), of(&done.damaged.unwrap())), (before, before));
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_one_and_what_is_kept_is_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, sound, bytes) = damaged(folder.path());
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let done = repaired(&link).unwrap();
    let kept = suffixed(&path.canonicalize().unwrap(), ".damaged");
    assert_eq!(
        (done.path, done.damaged),
        (link.clone(), Some(kept.clone()))
    );
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read(&link).unwrap() == sound && fs::read(kept).unwrap() == bytes);
    assert_eq!(fs::read_dir(links.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_changes_meanwhile_is_not_replaced() {
    let append: fn(&Path) = |path| {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"more").unwrap();
    };
    let replace: fn(&Path) = |path| {
        let other = suffixed(path, ".new");
        fs::write(&other, b"other").unwrap();
        fs::rename(&other, path).unwrap();
    };
    for (change, expected) in [(append, "changed meanwhile"), (replace, "replaced")] {
        let folder = tempfile::tempdir().unwrap();
        let (path, ..) = damaged(folder.path());
        let mut after = None;
        let done = verbs::repair(&path, &Options::default(), &raw(), |_| {
            if after.is_none() {
                change(&path);
                after = Some(fs::read(&path).unwrap());
            }
            Ok(())
        });
        let error = done.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(fs::read(&path).unwrap() == after.unwrap());
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "{expected}"
        );
    }
}

/// The lock is on the old file. A writer that opens the file afterwards opens the new one.
#[test]
fn a_file_that_a_writer_has_open_is_not_replaced() {
    let disk = begin(&active::FORMAT, 300);
    let sound = content(&disk);
    flip(&disk, 1000);
    let damaged = content(&disk);
    let held = disk.open(Path::new(FILE), Opening::Write).unwrap();
    held.lock().unwrap(); // as writers do
    let error = repair(&disk, &active::FORMAT, &RepairOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::ResourceBusy));
    assert!(content(&disk) == damaged && disk.files().len() == 2);
    drop(held);
    repair(&disk, &active::FORMAT, &RepairOptions::default()).unwrap();
    append(&disk, &active::FORMAT, 300..301, 1000);
    assert!(content(&disk).len() > sound.len() && disk.files()["log.damaged"] == damaged);
}

#[test]
fn whatever_fails_the_damaged_file_stays() {
    // Made once, so that the sidecar is the same each time.
    let made = tempfile::tempdir().unwrap();
    damaged(made.path());
    let prepare = |folder: &Path| {
        for name in ["file", "file.par"] {
            fs::copy(made.path().join(name), folder.join(name)).unwrap();
        }
    };
    all_or_nothing_replacing("repair", prepare, |folder| {
        repaired(&folder.join("file")).map(drop)
    });
}

fn is_taken(result: seglake::Result<Repaired>) -> bool {
    let named = format!("{DAMAGED}: the damaged file would get this name");
    matches!(result, Err(Error::Usage(text)) if text.starts_with(&named))
}

#[test]
fn what_an_earlier_repair_kept_is_not_replaced() {
    let disk = begin(&active::FORMAT, 300);
    let sound = content(&disk);
    flip(&disk, 1000);
    let first = content(&disk);
    repair(&disk, &active::FORMAT, &RepairOptions::default()).unwrap();
    flip(&disk, 2000);
    let second = content(&disk);
    let before = disk.count();
    assert!(is_taken(repair(
        &disk,
        &active::FORMAT,
        &RepairOptions::default()
    )));
    assert!(disk.files()["log.damaged"] == first && content(&disk) == second);
    let made = disk.calls()[before..]
        .iter()
        .find(|own| own.call == Call::Create)
        .cloned();
    assert!(made.is_none(), "{made:?}");
    disk.unlink(Path::new(DAMAGED)).unwrap();
    repair(&disk, &active::FORMAT, &RepairOptions::default()).unwrap();
    assert!(disk.files()["log.damaged"] == second && content(&disk) == sound);
    // It is in nobody's way where nothing changes, or only the sidecar.
    let done = repair(&disk, &active::FORMAT, &RepairOptions::default()).unwrap();
    assert_eq!((done.report.outcome, done.damaged), (Outcome::Sound, None));
    let sidecar = disk
        .open(Path::new("/data/log.par"), Opening::Write)
        .unwrap();
    sidecar.write_at(b"?", 3000).unwrap();
    drop(sidecar);
    let done = repair(&disk, &active::FORMAT, &RepairOptions::default()).unwrap();
    let kept = Some(PathBuf::from("/data/log.par.damaged"));
    assert_eq!((done.damaged, done.damaged_sidecar), (None, kept));
    assert_eq!(report(&disk).outcome, Outcome::Sound);
}

#[test]
fn a_full_disk_is_told_and_nothing_changes() {
    let disk = begin(&active::FORMAT, 300);
    flip(&disk, 1000);
    let before = disk.visible();
    // The new bytes are spooled, then the copy is written.
    disk.trouble_at(
        |own| own.call == Call::Write && own.path != Path::new(""),
        0,
        Trouble::Full,
    );
    let error = repair(&disk, &active::FORMAT, &RepairOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("needs as much space as the damaged one"),
        "{error}"
    );
    assert!(disk.visible() == before && disk.files() == before);
    disk.make_room();
    repair(&disk, &active::FORMAT, &RepairOptions::default()).unwrap();
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

fn is_refused(disk: &Simulated, format: &'static Format) -> bool {
    let before = disk.files();
    let error = repair(disk, format, &RepairOptions::default()).unwrap_err();
    assert!(disk.files() == before);
    matches!(&error, Error::Usage(text) if text.contains("its own checksum proves"))
}

/// The file has another sound record than when it was covered. Its value may have records of its own.
#[test]
fn records_that_their_own_checksums_prove_stay() {
    let inner = content(&begin(&active::FORMAT, 600));
    for value in [vec![7; 1000], vec![7; 300_000], inner] {
        let write = |changed: u8| {
            let disk = begin(&active::FORMAT, 300);
            let mut value = value.clone();
            let at = value.len() - 500;
            value[at] ^= changed;
            append_value(&disk, &active::FORMAT, 500, &value);
            append(&disk, &active::FORMAT, 900..1000, 1000);
            disk
        };
        let (disk, other) = (write(0), write(1));
        protect(&disk, &active::FORMAT).unwrap();
        let new = content(&other);
        disk.unlink(Path::new(FILE)).unwrap();
        disk.put(FILE, &new);
        assert!(is_refused(&disk, &active::FORMAT));
        repair(
            &disk,
            &active::FORMAT,
            &RepairOptions::default().force(true),
        )
        .unwrap();
        assert!(content(&disk) != new);
    }
}

#[test]
fn records_of_a_file_with_an_index_stay() {
    for format in [&sealed::FORMAT, &tenant::FORMAT] {
        let whole = |changed: u8| {
            let disk = Simulated::new();
            let how = options(format).disk(disk.disk());
            let mut writer = create(format, Path::new(FILE), &how).unwrap();
            for number in 0..3000 {
                let value = [if number == 1500 { changed } else { 7 }; 100];
                write_value(&mut *writer, format, number, &value).unwrap();
            }
            writer.close().unwrap();
            drop(writer);
            disk.settle();
            protect(&disk, format).unwrap();
            disk
        };
        let (disk, other) = (whole(7), whole(8));
        disk.unlink(Path::new(FILE)).unwrap();
        disk.put(FILE, &content(&other));
        assert!(is_refused(&disk, format), "{}", format.name);
    }
}

/// A bit that decompressing ignores: the records are those of before, and nothing speaks against repairing it.
#[test]
fn a_chunk_with_other_bytes_of_the_same_records_is_repaired() {
    let disk = begin(&chunked::FORMAT, 300);
    let sound = content(&disk);
    let file = disk.open(Path::new(FILE), Opening::Write).unwrap();
    // Of the frame's descriptor, after the chunk's header and the magic number: RFC 8878, 3.1.1.1.1.3.
    file.write_at(&[sound[25] ^ 0x10], 25).unwrap();
    drop(file);
    disk.settle();
    let done = repair(&disk, &chunked::FORMAT, &RepairOptions::default()).unwrap();
    assert_eq!((done.changed, done.report.outcome), (1, Outcome::Repaired));
    assert!(content(&disk) == sound);
    let files = disk.files();
    let report = verified(&files["log"], &files["log.par"], parity::Options::default());
    assert_eq!(report.outcome, Outcome::Sound);
}
