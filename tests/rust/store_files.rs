//! The small files of a log's folder, and what else is found there.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::simulated::Simulated;
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::Options;
use seglake::store::{Durability, ListedLog, LogOptions, LogReader, SegmentLog, TailFrom};
use uuid::Uuid;

const SLOT_BYTES: usize = 64;
const SECOND_SLOT: usize = 4096;

fn open(folder: &Path) -> seglake::Result<SegmentLog> {
    SegmentLog::open(folder, LogOptions::default())
}

/// A log of two segments with one record each.
fn two_segments(folder: &Path) {
    let log = open(folder).unwrap();
    log.write(b"type", b"value 0").unwrap();
    log.roll().unwrap();
    log.write(b"type", b"value 1").unwrap();
    log.close().unwrap();
}

fn values(folder: &Path) -> Vec<Vec<u8>> {
    let records = LogReader::open(folder, Options::default())
        .unwrap()
        .records()
        .unwrap();
    records
        .map(|record| record.unwrap().value().to_vec())
        .collect()
}

#[test]
fn only_what_a_dead_writer_left_is_removed() {
    const RANDOM: &str = "0123456789abcdef";
    let folder = tempfile::tempdir().unwrap();
    two_segments(folder.path());
    let segments = LogReader::open(folder.path(), Options::default())
        .unwrap()
        .segments()
        .unwrap();
    let id = segments[0].id;
    let left = [
        format!(".{id}.sealed.{RANDOM}.tmp"),
        format!(".{id}.active.{RANDOM}.tmp"),
        format!("._{id}.end.{RANDOM}.tmp"),
        format!("._{id}.frozen.{RANDOM}.tmp"),
        format!("._{id}.7.quarantine.{RANDOM}.tmp"),
    ];
    let others = [
        "notes.tmp".to_owned(),
        format!(".{id}.tmp"),
        format!(".{id}.sealed.backup.tmp"),
        format!(".{id}.sealed.{RANDOM}.tmp.old"),
        format!("_{id}.sealed"),
        format!("_{id}.7.quarantine"),
    ];
    for name in left.iter().chain(&others) {
        fs::write(folder.path().join(name), name).unwrap();
    }
    drop(open(folder.path()).unwrap());
    for name in left {
        assert!(!folder.path().join(&name).exists(), "{name}");
    }
    for name in others {
        assert_eq!(
            fs::read(folder.path().join(&name)).unwrap(),
            name.as_bytes()
        );
    }
    assert_eq!(values(folder.path()).len(), 2);
}

/// A log of one segment with three records. Returns its mark.
fn three_records(folder: &Path) -> Vec<u8> {
    let log = open(folder).unwrap();
    for number in 0..3 {
        log.write(b"type", format!("value {number}").as_bytes())
            .unwrap();
    }
    log.close().unwrap();
    fs::read(folder.join("_mark")).unwrap()
}

#[test]
fn a_mark_of_any_length_is_read_as_far_as_it_goes() {
    let slots = [SLOT_BYTES, SECOND_SLOT + SLOT_BYTES];
    let lens = [
        0,
        1,
        63,
        64,
        65,
        4095,
        4096,
        4159,
        4160,
        8191,
        8192,
        100 << 20,
    ];
    for len in lens {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mark = three_records(folder);
        let path = folder.join("_mark");
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(len).unwrap();
        // A missing byte is read as zero, which the last byte of a checksum may be.
        let mut left = mark.clone();
        left.truncate(usize::try_from(len).unwrap());
        left.resize(mark.len(), 0);
        let whole = slots
            .into_iter()
            .filter(|&end| left[end - SLOT_BYTES..end] == mark[end - SLOT_BYTES..end]);
        // The offset of each whole slot's mark.
        let offset = |end: usize| u64::from_be_bytes(mark[end - 32..end - 24].try_into().unwrap());
        let synced = whole.map(offset).max().unwrap_or(0);
        let reader = LogReader::open(folder, Options::default()).unwrap();
        let found = reader.synced().unwrap().map_or(0, |synced| synced.offset);
        assert_eq!(found, synced, "{len}");
        // Records after it are kept.
        let log = open(folder).unwrap();
        log.write(b"type", b"value 3").unwrap();
        log.close().unwrap();
        assert_eq!(values(folder).len(), 4, "{len}");
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len() as u64, len.max(8192));
        for start in [0, SECOND_SLOT] {
            assert!(whole[start..].starts_with(b"SEGLMARK"), "{len}");
        }
    }
}

#[test]
fn a_mark_under_another_key_is_kept_where_there_is_no_segment() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let key = || LogOptions::default().key(Key::new(&[1; 32]));
    SegmentLog::open(folder, key()).unwrap().close().unwrap();
    let before = fs::read(folder.join("_mark")).unwrap();
    let refused = [
        open(folder).unwrap_err(),
        LogReader::open(folder, Options::default()).unwrap_err(),
    ];
    for error in refused {
        assert!(
            matches!(&error, Error::Damage(damage) if damage.wrong_key),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains("_mark") && text.contains("remove this file"),
            "{text}"
        );
    }
    assert_eq!(fs::read(folder.join("_mark")).unwrap(), before);
    let keys = Options::default().keys(vec![Key::new(&[1; 32])]);
    LogReader::open(folder, keys).unwrap();
    SegmentLog::open(folder, key()).unwrap();
    fs::remove_file(folder.join("_mark")).unwrap();
    open(folder).unwrap();
}

/// A loss of power before the first mark was synced may leave anything in its slot, but nothing in the other one.
#[test]
fn a_log_whose_first_mark_was_cut_short_is_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut mark = [0; 8192];
    mark[..SLOT_BYTES].fill(0xa5);
    fs::write(folder.path().join("_mark"), mark).unwrap();
    LogReader::open(folder.path(), Options::default()).unwrap();
    let log = open(folder.path()).unwrap();
    log.write(b"type", b"value 0").unwrap();
    assert_eq!(values(folder.path()).len(), 1);
}

#[test]
fn a_reader_looks_at_the_mark_once() {
    let disk = Simulated::new();
    let path = Path::new("/data/log");
    let log = SegmentLog::open(path, LogOptions::default().disk(disk.disk())).unwrap();
    log.write(b"type", b"value 0").unwrap();
    let before = disk.reads();
    let reader = LogReader::open(path, Options::default().disk(disk.disk())).unwrap();
    let opened = disk.reads();
    reader.segments().unwrap();
    assert_eq!(opened - before, disk.reads() - opened);
}

/// A look-up that finds nothing reads an active segment once, as one that finds the last record does.
#[test]
fn a_missing_record_is_looked_for_once() {
    for is_complete in [true, false] {
        let disk = Simulated::new();
        let path = Path::new("/data/log");
        let options = LogOptions::default().disk(disk.disk()).seal(false);
        let log = SegmentLog::open(path, options).unwrap();
        let last = (0..50).map(|_| log.write(b"type", [7; 4000]).unwrap());
        let last = last.last().unwrap();
        if is_complete {
            log.roll().unwrap();
            log.write(b"type", b"of the next segment").unwrap();
        }
        // Nothing else reads meanwhile.
        log.close().unwrap();
        drop(log);
        let options = Options::default().disk(disk.disk()).window_bytes(16 << 10);
        let reader = LogReader::open(path, options).unwrap();
        let missing = Uuid::from_u128(last.as_u128() - 1);
        let reads = [last, missing].map(|uuid| {
            let before = disk.reads();
            let found = reader.get(&uuid).unwrap();
            assert_eq!(found.is_some(), uuid == last);
            disk.reads() - before
        });
        assert_eq!(reads[0], reads[1], "{is_complete}");
        assert!(reads[0] > 10, "{reads:?}");
    }
}

/// Puts something at a path.
#[cfg(unix)]
type Put<'a> = &'a dyn Fn(&Path);

/// What is not a regular file under the name of one of the log's own files: it is never followed, and never waited for.
#[cfg(unix)]
#[test]
fn what_is_not_a_file_is_refused_by_name() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("a user's file");
    let ways: [(&str, Put<'_>); 5] = [
        ("a symbolic link, which is not followed", &|path| {
            fs::write(&target, b"precious").unwrap();
            symlink(&target, path).unwrap();
        }),
        ("a symbolic link, which is not followed", &|path| {
            symlink(elsewhere.path().join("nothing"), path).unwrap();
        }),
        ("a pipe, socket or device", &|path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        }),
        ("a pipe, socket or device", &|path| {
            drop(UnixListener::bind(path).unwrap());
        }),
        ("a folder", &|path| fs::create_dir(path).unwrap()),
    ];
    for (found, put) in ways {
        for name in ["_lock", "_mark"] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            two_segments(folder);
            fs::remove_file(folder.join(name)).unwrap();
            put(&folder.join(name));
            let mut refused = vec![open(folder).unwrap_err()];
            if name == "_mark" {
                refused.push(LogReader::open(folder, Options::default()).unwrap_err());
            }
            for error in refused {
                let text = error.to_string();
                assert!(text.contains(found) && text.contains(name), "{text}");
            }
        }
    }
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert!(!elsewhere.path().join("nothing").exists());
}

/// The lock is that of the folder, so that nothing hangs on the file.
#[cfg(unix)]
#[test]
fn a_lock_that_is_deleted_or_replaced_lets_nobody_in() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, path) = (folder.path(), folder.path().join("_lock"));
    let log = open(folder).unwrap();
    for content in [None, Some("process 1\n")] {
        fs::remove_file(&path).unwrap();
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let refused = open(folder).unwrap_err().to_string();
        assert!(refused.contains("another writer has it open"), "{refused}");
        log.write(b"type", b"value").unwrap();
        log.roll().unwrap();
        fs::write(&path, b"").unwrap();
    }
    log.close().unwrap();
    assert_eq!(values(folder).len(), 2);
    open(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_writer_whose_folder_was_replaced_stops() {
    let folder = tempfile::tempdir().unwrap();
    let [path, moved] = ["log", "moved"].map(|name| folder.path().join(name));
    let log = open(&path).unwrap();
    log.write(b"type", b"value 0").unwrap();
    fs::rename(&path, &moved).unwrap();
    let other = open(&path).unwrap();
    let error = log.roll().unwrap_err().to_string();
    assert!(error.contains("lock is lost"), "{error}");
    let error = log.write(b"type", b"value 1").unwrap_err().to_string();
    assert!(error.contains("lock is lost"), "{error}");
    assert!(log.close().is_err());
    // It wrote nothing into the other one.
    other.write(b"type", b"value 2").unwrap();
    other.close().unwrap();
    assert_eq!(values(&path), [b"value 2"]);
    assert_eq!(values(&moved), [b"value 0"]);
}

/// What was only taken into memory is not written any more once the lock is known to be lost.
#[test]
fn a_writer_whose_lock_was_replaced_writes_nothing_when_it_is_closed() {
    let disk = Simulated::new();
    disk.lock_no_folders();
    let options = LogOptions::default()
        .disk(disk.disk())
        .durability(Durability::None)
        .mark_interval(Duration::from_millis(20));
    let log = SegmentLog::open("/data/log", options).unwrap();
    log.write(b"type", b"value 0").unwrap();
    disk.disk().unlink(Path::new("/data/log/_lock")).unwrap();
    disk.put("/data/log/_lock", b"process 1\n");
    log.sync().unwrap(); // the mark is synced later: then it is noticed
    let written = |disk: &Simulated| {
        let mut files = disk.files().into_iter();
        files.find(|(path, _)| path.ends_with(".active")).unwrap().1
    };
    let before = written(&disk);
    while log.write(b"type", b"value 1").is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(log.close().is_err());
    drop(log);
    assert_eq!(written(&disk), before);
}

/// Where folders cannot be locked another writer gets in when the file is gone. The first one notices it.
#[test]
fn a_writer_whose_lock_was_replaced_stops_where_there_is_the_file_alone() {
    type Notices = fn(&SegmentLog) -> seglake::Result<()>;
    let ways: [(bool, Notices); 3] = [
        (true, |log| log.roll()),
        (true, |log| log.close()),
        (false, |log| log.write(b"type", b"value 1").map(drop)),
    ];
    for replaced in [false, true] {
        for (has_record, notices) in ways {
            let disk = Simulated::new();
            disk.lock_no_folders();
            let options = || LogOptions::default().disk(disk.disk());
            let path = Path::new("/data/log");
            let log = SegmentLog::open(path, options()).unwrap();
            if has_record {
                log.write(b"type", b"value 0").unwrap();
            }
            SegmentLog::open(path, options()).unwrap_err();
            disk.disk().unlink(Path::new("/data/log/_lock")).unwrap();
            if replaced {
                disk.put("/data/log/_lock", b"process 1\n");
            }
            let error = notices(&log).unwrap_err().to_string();
            assert!(error.contains("lock is lost"), "{error}");
            let error = log.write(b"type", b"value 2").unwrap_err().to_string();
            assert!(
                error.contains("lock is lost") || error.contains("closed"),
                "{error}"
            );
            drop(log);
            SegmentLog::open(path, options()).unwrap();
        }
    }
}

/// A log of as many segments as are not listed by one call of the system, with a record each.
fn many_segments(disk: &Simulated) -> SegmentLog {
    let options = LogOptions::default()
        .disk(disk.disk())
        .segment_bytes(1)
        .seal(false);
    let log = SegmentLog::open(Path::new("/data/log"), options).unwrap();
    for number in 0..40_u8 {
        log.write(b"type", [number]).unwrap();
    }
    log
}

/// A listing that overlaps with the renames and removals of sealing may miss both files of a segment.
#[test]
fn a_segment_that_a_listing_missed_is_found() {
    let disk = Simulated::new();
    many_segments(&disk).close().unwrap();
    for sequence in [1, 20, 39, 40] {
        let options = || Options::default().disk(disk.disk());
        let reader = LogReader::open("/data/log", options()).unwrap();
        disk.miss_once(&format!("{sequence:020}-"));
        assert_eq!(reader.records().unwrap().count(), 40, "{sequence}");
    }
}

/// A segment under the name of another would come twice, and that one not at all.
#[test]
fn a_segment_under_the_name_of_another_is_refused() {
    for is_sealed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let options = LogOptions::default().seal(is_sealed);
        let log = SegmentLog::open(&path, options).unwrap();
        for value in [b"value 0", b"value 1", b"value 2"] {
            log.write(b"type", value).unwrap();
            log.roll().unwrap();
        }
        log.close().unwrap();
        let reader = LogReader::open(&path, Options::default()).unwrap();
        let segments = reader.segments().unwrap();
        let [first, second] = [0, 1].map(|place: usize| segments[place].path.clone());
        let kept = fs::read(&first).unwrap();
        fs::copy(&second, &first).unwrap();
        let wanted = segments[0].id.first;
        let listed = ListedLog::read(&path, &Options::default()).unwrap();
        let errors = [
            reader.records().unwrap().find_map(Result::err).unwrap(),
            reader.get(&wanted).unwrap_err(),
            reader.tail(TailFrom::Start).unwrap().poll().unwrap_err(),
            listed.segments[0].open(&Options::default()).err().unwrap(),
        ];
        for error in errors {
            let error = error.to_string();
            assert!(error.contains(&wanted.to_string()), "{error}");
            assert!(error.contains("it is another segment"), "{error}");
        }
        // Damage is damage, also that of the first UUID.
        let mut damaged = kept.clone();
        damaged[3] ^= 1;
        fs::write(&first, &damaged).unwrap();
        let error = reader.records().unwrap().find_map(Result::err).unwrap();
        assert!(matches!(error, Error::Damage(_)), "{error}");
        let lenient = LogReader::open(&path, Options::default().strict(false)).unwrap();
        let read: Vec<_> = lenient.records().unwrap().map(Result::unwrap).collect();
        assert!(read.len() >= 2, "{}", read.len());
        fs::write(&first, &kept).unwrap();
        assert_eq!(values(&path).len(), 3);
    }
}
