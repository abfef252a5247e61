//! The log: what is written is read, also after rolls, seals, crashes and damage.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seglake::checksum::Key;
use seglake::error::LogFault;
use seglake::format::{Filter, Options, Value};
use seglake::store::{
    Durability, LogOptions, LogReader, NewRecord, Recovery, Retention, SegmentKind, SegmentLog,
    TailFrom,
};
use seglake::{Error, Record};
use uuid::Uuid;

const MARK_SLOTS: [usize; 2] = [0, 4096];

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }

    fn open(&self, options: LogOptions) -> SegmentLog {
        SegmentLog::open(self.log(), options).unwrap()
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.log()).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|own| own == extension));
        paths.sort();
        paths
    }

    fn values(&self) -> Vec<Vec<u8>> {
        values(
            LogReader::open(self.log(), Options::default())
                .unwrap()
                .records()
                .unwrap(),
        )
    }

    /// Makes the mark one of nothing, as after a loss of its file.
    fn lose_mark(&self) {
        fs::remove_file(self.log().join("_mark")).unwrap();
    }
}

fn values(records: impl Iterator<Item = seglake::Result<Record>>) -> Vec<Vec<u8>> {
    records
        .map(|record| record.unwrap().value().to_vec())
        .collect()
}

fn uuid_of(record: &Record) -> Uuid {
    match record.field("uuid") {
        Some(Value::Uuid(uuid)) => Uuid::from_bytes(uuid),
        other => panic!("{other:?}"),
    }
}

fn value(number: usize) -> Vec<u8> {
    format!("value {number}").into_bytes()
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    numbers.map(value).collect()
}

fn write(log: &SegmentLog, numbers: std::ops::Range<usize>) -> Vec<Uuid> {
    numbers
        .map(|number| log.write(b"type", value(number)).unwrap())
        .collect()
}

fn quick() -> LogOptions {
    LogOptions::default().durability(Durability::None)
}

/// Copies a log as a crash leaves it: with what is in the files now.
fn crashed(from: &Path) -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.log()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.log().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

#[test]
fn many_records_are_found_as_each_alone() {
    let folder = Folder::new();
    let log = folder.open(quick());
    let mut asked = vec![Uuid::nil(), Uuid::max()];
    for segment in 0..3 {
        asked.extend(write(&log, segment * 5..segment * 5 + 5));
        log.roll().unwrap();
    }
    log.sync().unwrap();
    let ours = asked.len();
    // In no order, and some twice.
    let asked: Vec<_> = (0..2 * ours).map(|at| asked[at * 7 % ours]).collect();
    let reader = LogReader::open(folder.log(), Options::default()).unwrap();
    let values = |found: Vec<Option<seglake::Record>>| -> Vec<_> {
        let value = |record: &seglake::Record| record.value().to_vec();
        found.iter().map(|own| own.as_ref().map(value)).collect()
    };
    let alone = asked.iter().map(|uuid| reader.get(uuid).unwrap()).collect();
    let many = values(reader.get_many(&asked).unwrap());
    assert_eq!(many, values(alone));
    assert_eq!(many.iter().flatten().count(), 2 * 15);
    assert!(reader.get_many(&[]).unwrap().is_empty());
}

#[test]
fn what_is_written_is_read_and_found() {
    for durability in Durability::ALL {
        let folder = Folder::new();
        let log = folder.open(LogOptions::default().durability(*durability));
        let uuids = write(&log, 0..5);
        assert!(uuids.is_sorted_by(|a, b| a < b));
        log.sync().unwrap();
        assert_eq!(folder.values(), numbered(0..5));
        let reader = LogReader::open(folder.log(), Options::default()).unwrap();
        for (number, uuid) in uuids.iter().enumerate() {
            let record = reader.get(uuid).unwrap().unwrap();
            assert_eq!(record.value(), value(number));
        }
        assert!(reader.get(&Uuid::nil()).unwrap().is_none());
        log.close().unwrap();
        log.close().unwrap();
        assert!(log.write(b"", b"").is_err());
        let log = folder.open(LogOptions::default().durability(*durability));
        assert_eq!(log.recovered(), []);
        write(&log, 5..7);
        drop(log);
        assert_eq!(folder.values(), numbered(0..7));
        assert_eq!(folder.files("active").len(), 1);
    }
}

#[test]
fn segments_roll_and_are_sealed_and_read_as_one() {
    let folder = Folder::new();
    let log = folder.open(quick().segment_bytes(1000));
    let uuids = write(&log, 0..100);
    log.sync().unwrap();
    log.wait_sealed().unwrap();
    assert_eq!(folder.values(), numbered(0..100));
    assert_eq!(folder.files("active").len(), 1);
    assert!(folder.files("sealed").len() > 3);
    let reader = LogReader::open(folder.log(), Options::default()).unwrap();
    for (number, uuid) in uuids.iter().enumerate() {
        assert_eq!(reader.get(uuid).unwrap().unwrap().value(), value(number));
    }
    for (from, to) in [(0, 100), (10, 11), (33, 77), (98, 100)] {
        let filter = Filter::default().at_least("uuid", uuids[from].into_bytes());
        let filter = match uuids.get(to) {
            Some(end) => filter.below("uuid", end.into_bytes()),
            None => filter,
        };
        assert_eq!(values(reader.range(&filter).unwrap()), numbered(from..to));
    }
    drop(log);
    let log = folder.open(quick().segment_bytes(1000));
    write(&log, 100..101);
    log.close().unwrap();
    assert_eq!(folder.values(), numbered(0..101));
}

#[test]
fn readers_see_what_is_synced() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default().durability(Durability::Flush));
    write(&log, 0..3);
    assert_eq!(folder.values(), numbered(0..0));
    log.sync().unwrap();
    write(&log, 3..4);
    assert_eq!(folder.values(), numbered(0..3));
    log.roll().unwrap();
    assert_eq!(folder.values(), numbered(0..4));
}

#[test]
fn many_threads_write_at_once() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default().segment_bytes(4000));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..50 {
                    let value = format!("{thread} {number}");
                    let uuid = log.write(b"", value.as_bytes()).unwrap();
                    // It is on the disk, and so are those before it.
                    let reader = LogReader::open(log.path(), Options::default()).unwrap();
                    assert_eq!(
                        reader.get(&uuid).unwrap().unwrap().value(),
                        value.as_bytes()
                    );
                }
            });
        }
    });
    log.close().unwrap();
    let reader = LogReader::open(folder.log(), Options::default()).unwrap();
    let records: Vec<_> = reader.records().unwrap().map(Result::unwrap).collect();
    assert_eq!(records.len(), 400);
    assert!(records.is_sorted_by(|a, b| uuid_of(a) < uuid_of(b)));
    for thread in 0..8 {
        let prefix = format!("{thread} ");
        let own = records
            .iter()
            .filter(|own| own.value().starts_with(prefix.as_bytes()));
        let expected = (0..50).map(|number| format!("{thread} {number}"));
        assert!(
            own.map(|own| String::from_utf8_lossy(own.value()).into_owned())
                .eq(expected)
        );
    }
}

#[test]
fn a_tail_gives_each_record_once_across_rolls_and_seals() {
    let folder = Folder::new();
    let log = folder.open(quick().segment_bytes(500));
    let done = AtomicBool::new(false);
    const RECORDS: usize = 3000;
    std::thread::scope(|scope| {
        let reader = LogReader::open(folder.log(), Options::default()).unwrap();
        let tails: Vec<_> = (0..2)
            .map(|_| {
                let mut tail = reader.tail(TailFrom::Start).unwrap();
                let done = &done;
                scope.spawn(move || {
                    let mut found = Vec::new();
                    loop {
                        let ended = done.load(Ordering::Acquire);
                        match tail.next_within(Duration::from_millis(20)).unwrap() {
                            Some(record) => found.push(record.value().to_vec()),
                            None if ended => return found,
                            None => {}
                        }
                    }
                })
            })
            .collect();
        for number in 0..RECORDS {
            log.write(b"t", value(number)).unwrap();
            if number % 7 == 0 {
                log.sync().unwrap();
            }
        }
        log.close().unwrap();
        done.store(true, Ordering::Release);
        for tail in tails {
            assert_eq!(tail.join().unwrap(), numbered(0..RECORDS));
        }
    });
}

#[test]
fn a_tail_begins_where_it_is_told() {
    let folder = Folder::new();
    let log = folder.open(quick().segment_bytes(300));
    let uuids = write(&log, 0..40);
    log.sync().unwrap();
    let reader = LogReader::open(folder.log(), Options::default()).unwrap();
    for place in [0, 1, 13, 38, 39] {
        let mut tail = reader.tail(TailFrom::After(uuids[place])).unwrap();
        let mut found = Vec::new();
        while let Some(record) = tail.poll().unwrap() {
            found.push(record.value().to_vec());
        }
        assert_eq!(found, numbered(place + 1..40));
        assert_eq!(tail.last(), Some(uuids[39]));
    }
    let mut now = reader.tail(TailFrom::Now).unwrap();
    assert!(now.poll().unwrap().is_none());
    write(&log, 40..41);
    assert!(now.poll().unwrap().is_none());
    log.sync().unwrap();
    assert_eq!(now.poll().unwrap().unwrap().value(), value(40));
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    let mut now = reader.tail(TailFrom::Now).unwrap();
    assert!(now.poll().unwrap().is_none());
    write(&log, 41..42);
    log.sync().unwrap();
    assert_eq!(now.poll().unwrap().unwrap().value(), value(41));
}

#[test]
fn one_writer_keeps_another_out_and_is_named() {
    let folder = Folder::new();
    let log = folder.open(quick());
    let refused = SegmentLog::open(folder.log(), quick()).unwrap_err();
    let process = format!("process {}", std::process::id());
    assert!(refused.to_string().contains(&process), "{refused}");
    drop(log);
    folder.open(quick());
}

#[test]
fn a_folder_of_other_files_is_not_a_log() {
    let folder = tempfile::tempdir().unwrap();
    for hidden in [".gitkeep", "_lock"] {
        fs::write(folder.path().join(hidden), "").unwrap();
    }
    assert_eq!(
        LogReader::open(&folder, Options::default())
            .unwrap()
            .records()
            .unwrap()
            .count(),
        0
    );
    fs::write(folder.path().join("notes.txt"), "").unwrap();
    for opened in [
        LogReader::open(&folder, Options::default()).map(drop),
        SegmentLog::open(&folder, LogOptions::default()).map(drop),
    ] {
        let refused = opened.unwrap_err();
        assert!(matches!(refused, Error::Format { .. }), "{refused}");
        assert!(
            refused.to_string().contains("with other files"),
            "{refused}"
        );
    }
    assert!(!folder.path().join("_mark").exists());
    // In a log they disturb nobody.
    fs::remove_file(folder.path().join("notes.txt")).unwrap();
    let log = SegmentLog::open(&folder, LogOptions::default()).unwrap();
    fs::write(folder.path().join("notes.txt"), "").unwrap();
    assert_eq!(
        LogReader::open(&folder, Options::default())
            .unwrap()
            .records()
            .unwrap()
            .count(),
        0
    );
    log.close().unwrap();
    drop(log);
    SegmentLog::open(&folder, LogOptions::default()).unwrap();
}

#[test]
fn a_torn_tail_is_removed_and_kept_aside() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default());
    write(&log, 0..3);
    log.close().unwrap();
    let [active] = &folder.files("active")[..] else {
        panic!()
    };
    let end = {
        let mark = LogReader::open(folder.log(), Options::default())
            .unwrap()
            .synced()
            .unwrap();
        usize::try_from(mark.unwrap().offset).unwrap()
    };
    let mut bytes = fs::read(active).unwrap();
    // A record that was being written: its header, and a part of its value.
    let torn = bytes[..40].to_vec();
    bytes[end..end + 20].copy_from_slice(&torn[..20]);
    bytes[end] = 0x7f;
    fs::write(active, &bytes).unwrap();
    let log = folder.open(LogOptions::default());
    let [Recovery::TornTail { offset, .. }, ..] = log.recovered() else {
        panic!("{:?}", log.recovered())
    };
    assert_eq!(*offset, end as u64);
    let [quarantine] = &folder.files("quarantine")[..] else {
        panic!()
    };
    assert!(
        fs::read(quarantine)
            .unwrap()
            .starts_with(&bytes[end..end + 20])
    );
    write(&log, 3..5);
    log.close().unwrap();
    assert_eq!(folder.values(), numbered(0..5));
    assert_eq!(folder.files("active").len(), 1);
}

#[test]
fn valid_records_after_the_mark_are_kept() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default().durability(Durability::Flush));
    write(&log, 0..3);
    log.sync().unwrap();
    write(&log, 3..6);
    let after = crashed(&folder.log());
    drop(log);
    let log = after.open(LogOptions::default());
    assert!(
        matches!(log.recovered(), [Recovery::Rewritten { .. }]),
        "{:?}",
        log.recovered()
    );
    assert_eq!(after.values(), numbered(0..6));
    drop(log);
    after.lose_mark();
    assert_eq!(after.values(), numbered(0..0));
    let log = after.open(LogOptions::default());
    assert_eq!(after.values(), numbered(0..6));
    write(&log, 6..7);
    assert_eq!(after.values(), numbered(0..7));
}

/// Flips a byte of the record of this number in the only active segment.
fn damage(folder: &Folder, number: usize) {
    let [active] = &folder.files("active")[..] else {
        panic!()
    };
    let mut bytes = fs::read(active).unwrap();
    let value = value(number);
    let place = bytes
        .windows(value.len())
        .position(|own| own == value)
        .unwrap();
    bytes[place] ^= 1;
    fs::write(active, bytes).unwrap();
}

#[test]
fn damage_in_front_of_the_mark_freezes_the_segment() {
    for damaged in 0..6 {
        let folder = Folder::new();
        let log = folder.open(LogOptions::default());
        write(&log, 0..6);
        log.close().unwrap();
        damage(&folder, damaged);
        let log = folder.open(LogOptions::default());
        assert!(
            matches!(log.recovered(), [Recovery::Frozen { .. }]),
            "{:?}",
            log.recovered()
        );
        write(&log, 6..8);
        log.close().unwrap();
        assert_eq!(folder.files("active").len(), 2);
        let strict = LogReader::open(folder.log(), Options::default()).unwrap();
        let mut records = strict.records().unwrap();
        for number in 0..damaged {
            assert_eq!(records.next().unwrap().unwrap().value(), value(number));
        }
        assert!(matches!(records.next(), Some(Err(Error::Damage(_)))));
        assert!(records.next().is_none());
        let lenient = LogReader::open(folder.log(), Options::default().strict(false)).unwrap();
        let mut expected = numbered(0..8);
        expected.remove(damaged);
        assert_eq!(values(lenient.records().unwrap()), expected);
        // It stays so.
        let log = folder.open(LogOptions::default());
        assert_eq!(log.recovered(), []);
        log.wait_sealed().unwrap();
        assert_eq!(folder.files("active").len(), 2);
    }
}

#[test]
fn records_missing_in_front_of_the_mark_are_an_error() {
    let cut_off = |bytes: &mut Vec<u8>, end: usize| bytes.truncate(end);
    let zeroed = |bytes: &mut Vec<u8>, end: usize| bytes[end..].fill(0);
    let ways: [fn(&mut Vec<u8>, usize); 2] = [cut_off, zeroed];
    for change in ways {
        let folder = Folder::new();
        let log = folder.open(LogOptions::default());
        write(&log, 0..4);
        log.close().unwrap();
        let [active] = &folder.files("active")[..] else {
            panic!()
        };
        let mut bytes = fs::read(active).unwrap();
        let value = value(2);
        let place = bytes
            .windows(value.len())
            .position(|own| own == value)
            .unwrap();
        change(&mut bytes, place + value.len() + 8); // behind the checksum of the third record
        fs::write(active, bytes).unwrap();
        let read = |folder: &Folder| -> Vec<_> {
            LogReader::open(folder.log(), Options::default())
                .unwrap()
                .records()
                .unwrap()
                .collect()
        };
        let before = read(&folder);
        assert!(
            matches!(before.last(), Some(Err(Error::Damage(_)))),
            "{before:?}"
        );
        let log = folder.open(LogOptions::default());
        assert!(
            matches!(log.recovered(), [Recovery::Frozen { .. }]),
            "{:?}",
            log.recovered()
        );
        write(&log, 4..5);
        let after = read(&folder);
        assert!(
            matches!(after.last(), Some(Err(Error::Damage(_)))),
            "{after:?}"
        );
    }
}

#[test]
fn nothing_is_cut_where_something_valid_follows() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default().durability(Durability::Flush));
    write(&log, 0..2);
    log.sync().unwrap();
    write(&log, 2..5);
    let after = crashed(&folder.log());
    drop(log);
    damage(&after, 3);
    let log = after.open(LogOptions::default());
    assert!(
        matches!(log.recovered(), [Recovery::Frozen { .. }]),
        "{:?}",
        log.recovered()
    );
    write(&log, 5..6);
    // Nobody was told of the record that is damaged, so that reading strictly passes over it.
    let expected: Vec<_> = [0, 1, 2, 4, 5].map(value).into();
    assert_eq!(after.values(), expected);
}

#[test]
fn another_key_changes_nothing() {
    let folder = Folder::new();
    let (key, other) = (Key::new(&[1; 32]), Key::new(&[2; 32]));
    let log = folder.open(LogOptions::default().key(key));
    write(&log, 0..3);
    log.close().unwrap();
    let before = crashed(&folder.log());
    for wrong in [other, Key::DEFAULT] {
        let refused = SegmentLog::open(folder.log(), LogOptions::default().key(wrong)).unwrap_err();
        assert!(
            matches!(&refused, Error::Damage(damage) if damage.wrong_key),
            "{refused}"
        );
    }
    for entry in fs::read_dir(before.log()).unwrap() {
        let path = entry.unwrap().path();
        let now = fs::read(folder.log().join(path.file_name().unwrap())).unwrap();
        if !path.ends_with("_lock") {
            assert_eq!(fs::read(&path).unwrap(), now, "{}", path.display());
        }
    }
    let log = folder.open(LogOptions::default().key(key));
    write(&log, 3..4);
    let reader = LogReader::open(folder.log(), Options::default().keys(vec![key])).unwrap();
    assert_eq!(values(reader.records().unwrap()), numbered(0..4));
}

/// Flips a byte of both slots, so that neither has a mark under any key.
fn damage_mark(folder: &Folder, at: usize) {
    let path = folder.log().join("_mark");
    let mut bytes = fs::read(&path).unwrap();
    for slot in MARK_SLOTS {
        bytes[slot + at] ^= 1;
    }
    fs::write(&path, bytes).unwrap();
}

/// Cuts the only active file off within its first record.
fn tear_first_record(folder: &Folder) {
    let [active] = &folder.files("active")[..] else {
        panic!()
    };
    let bytes = fs::read(active).unwrap();
    fs::write(active, &bytes[..30]).unwrap();
}

/// Nothing tells which key it was: the error says what is damaged, and that this may be the wrong key only where that may be.
#[test]
fn a_damaged_mark_and_a_torn_record_are_not_taken_for_another_key() {
    for (at, is_suspected) in [(0, false), (60, true)] {
        let folder = Folder::new();
        let log = folder.open(LogOptions::default());
        write(&log, 0..1);
        log.close().unwrap();
        damage_mark(&folder, at);
        tear_first_record(&folder);
        let before = fs::read(&folder.files("active")[0]).unwrap();
        let refused = [
            SegmentLog::open(folder.log(), LogOptions::default()).unwrap_err(),
            LogReader::open(folder.log(), Options::default()).unwrap_err(),
        ];
        for error in refused {
            assert!(
                matches!(&error, Error::Damage(damage) if damage.wrong_key == is_suspected),
                "{at}: {error}"
            );
            let text = error.to_string();
            assert!(text.contains("move it and _mark elsewhere"), "{text}");
        }
        assert_eq!(fs::read(&folder.files("active")[0]).unwrap(), before);
        // As it says.
        fs::remove_file(&folder.files("active")[0]).unwrap();
        folder.lose_mark();
        write(&folder.open(LogOptions::default()), 0..1);
    }
}

/// Records of other segments tell that the key is the log's.
#[test]
fn other_segments_tell_the_key_where_the_mark_is_damaged() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default());
    write(&log, 0..2);
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    write(&log, 2..3);
    log.close().unwrap();
    damage_mark(&folder, 0);
    tear_first_record(&folder);
    assert_eq!(folder.values(), numbered(0..2));
    let log = folder.open(LogOptions::default());
    assert!(
        matches!(log.recovered(), [Recovery::TornTail { .. }]),
        "{:?}",
        log.recovered()
    );
    write(&log, 2..3);
    log.close().unwrap();
    assert_eq!(folder.values(), numbered(0..3));
    assert_eq!(folder.files("quarantine").len(), 1);
    // The first one may be the damaged one.
    let folder = Folder::new();
    let log = folder.open(LogOptions::default());
    write(&log, 0..2);
    log.roll().unwrap();
    write(&log, 2..3);
    log.close().unwrap();
    damage_mark(&folder, 60);
    let sealed = &folder.files("sealed")[0];
    let mut bytes = fs::read(sealed).unwrap();
    let first = bytes.windows(5).position(|own| own == b"value").unwrap();
    bytes[first] ^= 1;
    fs::write(sealed, bytes).unwrap();
    LogReader::open(folder.log(), Options::default()).unwrap();
}

/// A UUID of so many seconds after 2024-01-01.
fn at_second(seconds: u64) -> Uuid {
    let micros = 1_000_000 * (1_704_067_200 + seconds.cast_signed());
    let mut bytes = seglake::uuid6::lower_bound(micros).unwrap();
    bytes[8] |= 0x80;
    Uuid::from_bytes(bytes)
}

#[test]
fn a_segment_ends_when_its_records_are_of_that_age() {
    let folder = Folder::new();
    let options = || LogOptions::default().segment_age(Duration::from_secs(30 * 60));
    let log = folder.open(options());
    let write_at = |log: &SegmentLog, minute: u64| {
        log.write_as(Some(at_second(60 * minute)), b"type", b"")
            .unwrap();
        LogReader::open(folder.log(), Options::default())
            .unwrap()
            .segments()
            .unwrap()
            .len()
    };
    let minutes = [0, 10, 29, 30, 59, 61, 600, 601];
    let segments = minutes.map(|minute| write_at(&log, minute));
    assert_eq!(segments, [1, 1, 1, 2, 2, 3, 4, 4]);
    // Also where the log was opened again in between.
    log.close().unwrap();
    let log = folder.open(options());
    assert_eq!(write_at(&log, 629), 4);
    assert_eq!(write_at(&log, 630), 5);
    log.close().unwrap();
    // A record without a UUID is one of now.
    let log = folder.open(options());
    log.write(b"type", b"").unwrap();
    assert_eq!(
        LogReader::open(folder.log(), Options::default())
            .unwrap()
            .segments()
            .unwrap()
            .len(),
        6
    );
}

#[test]
fn a_first_record_that_is_torn_leaves_no_segment() {
    let folder = Folder::new();
    let log = folder.open(quick().segment_bytes(1000));
    write(&log, 0..2);
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    write(&log, 2..3);
    log.sync().unwrap();
    drop(log);
    let [active] = &folder.files("active")[..] else {
        panic!()
    };
    let mut bytes = fs::read(active).unwrap();
    bytes.truncate(30);
    fs::write(active, bytes).unwrap();
    // As if nothing of it had been synced.
    folder.lose_mark();
    let log = folder.open(quick());
    assert!(folder.files("active").is_empty());
    write(&log, 2..4);
    log.close().unwrap();
    assert_eq!(folder.values(), numbered(0..4));
    assert!(
        folder.files("active")[0]
            .to_string_lossy()
            .contains("00000000000000000002-")
    );
}

#[test]
fn a_segment_that_is_there_twice_is_read_once() {
    let folder = Folder::new();
    let log = folder.open(quick().seal(false));
    write(&log, 0..3);
    log.roll().unwrap();
    write(&log, 3..4);
    log.close().unwrap();
    drop(log);
    let active = folder.files("active")[0].clone();
    let bytes = fs::read(&active).unwrap();
    let log = folder.open(quick());
    log.wait_sealed().unwrap();
    drop(log);
    let sealed = folder.files("sealed")[0].clone();
    for damaged in [false, true] {
        fs::write(&active, &bytes).unwrap();
        if damaged {
            let mut bytes = fs::read(&sealed).unwrap();
            bytes[70] ^= 1;
            fs::write(&sealed, bytes).unwrap();
        } else {
            assert_eq!(folder.values(), numbered(0..4));
        }
        drop(folder.open(quick()));
        assert_eq!(folder.values(), numbered(0..4));
        assert!(!active.exists());
    }
}

#[test]
fn missing_segments_are_named() {
    let folder = Folder::new();
    let log = folder.open(quick().segment_bytes(300));
    write(&log, 0..40);
    log.close().unwrap();
    let sealed = folder.files("sealed");
    let moved = folder.0.path().join("moved");
    for (place, message) in [
        (1, "segment 2"),
        (0, ""),
        (sealed.len() - 1, "a segment is missing"),
    ] {
        fs::rename(&sealed[place], &moved).unwrap();
        let opened = LogReader::open(folder.log(), Options::default());
        if place == 0 {
            opened.unwrap(); // as retention leaves it
        } else {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            let error = SegmentLog::open(folder.log(), quick())
                .unwrap_err()
                .to_string();
            assert!(error.contains(message), "{error}");
        }
        fs::rename(&moved, &sealed[place]).unwrap();
    }
    let active = folder.files("active");
    fs::rename(&active[0], &moved).unwrap();
    let error = LogReader::open(folder.log(), Options::default()).unwrap_err();
    let fault = LogFault::MissingSegment;
    assert!(matches!(error, Error::Log { fault: found, .. } if found == fault));
    let error = error.to_string();
    assert!(error.contains("newest segments are missing"), "{error}");
    assert!(error.ends_with(fault.next()), "{error}");
    let error = SegmentLog::open(folder.log(), quick())
        .unwrap_err()
        .to_string();
    assert!(error.contains("newest segments are missing"), "{error}");
}

#[test]
fn retention_removes_the_oldest_sealed_segments() {
    let folder = Folder::new();
    let log = folder.open(
        quick()
            .segment_bytes(1000)
            .retention(Retention::default().bytes(5000)),
    );
    let uuids = write(&log, 0..500);
    log.close().unwrap();
    let sizes: u64 = folder
        .files("sealed")
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert!(sizes <= 5000 && sizes > 3000, "{sizes}");
    let values = folder.values();
    assert_eq!(values, numbered(500 - values.len()..500));
    let reader = LogReader::open(folder.log(), Options::default()).unwrap();
    assert!(reader.get(&uuids[0]).unwrap().is_none());
    let log = folder.open(quick());
    let removed = log
        .retain(&Retention::default().age(Duration::ZERO))
        .unwrap();
    assert!(!removed.is_empty());
    assert!(folder.files("sealed").is_empty());
    assert_eq!(folder.files("active").len(), 1);
    // Records after that one are gone.
    let gone = reader.tail(TailFrom::After(uuids[0])).unwrap_err();
    assert!(matches!(gone, Error::SegmentGone { .. }), "{gone}");
}

/// Records may have any time that a UUID can have.
#[test]
fn records_before_1970_are_old() {
    let folder = Folder::new();
    let log = folder.open(quick());
    for micros in [-3_000_000, -2_000_000, -1_000_000] {
        let uuid = seglake::uuid6::Generator::default().at(micros).unwrap();
        log.write_as(Some(uuid), b"type", b"value").unwrap();
        log.roll().unwrap();
    }
    log.wait_sealed().unwrap();
    let century = Duration::from_secs(100 * 366 * 86_400);
    let removed = log.retain(&Retention::default().age(century)).unwrap();
    assert!(removed.is_empty());
    let removed = log
        .retain(&Retention::default().age(Duration::ZERO))
        .unwrap();
    assert_eq!(removed.len(), 2);
}

/// The marks of a log whose mark was lost are counted from the beginning again.
#[test]
fn a_tail_goes_on_after_the_mark_was_lost() {
    for later in 1..8 {
        let folder = Folder::new();
        let log = folder.open(quick().durability(Durability::Fsync));
        write(&log, 0..3);
        log.close().unwrap();
        let reader = LogReader::open(folder.log(), Options::default()).unwrap();
        let mut tail = reader.tail(TailFrom::Start).unwrap();
        assert_eq!(std::iter::from_fn(|| tail.poll().unwrap()).count(), 3);
        folder.lose_mark();
        let log = folder.open(quick().durability(Durability::Fsync));
        write(&log, 3..3 + later);
        assert_eq!(std::iter::from_fn(|| tail.poll().unwrap()).count(), later);
    }
}

#[test]
fn a_tail_whose_segment_is_removed_says_so() {
    let folder = Folder::new();
    let log = folder.open(quick());
    for number in 0..4 {
        write(&log, number..number + 1);
        log.roll().unwrap();
    }
    log.wait_sealed().unwrap();
    write(&log, 4..5);
    log.sync().unwrap();
    let reader = LogReader::open(folder.log(), Options::default()).unwrap();
    let mut tail = reader.tail(TailFrom::Start).unwrap();
    assert!(tail.poll().unwrap().is_some());
    log.retain(&Retention::default().age(Duration::ZERO))
        .unwrap();
    log.write(b"", b"").unwrap();
    log.sync().unwrap();
    let gone = tail.poll().unwrap_err();
    assert!(
        matches!(gone, Error::SegmentGone { sequence: 2, .. }),
        "{gone}"
    );
}

#[test]
fn what_cannot_be_written_is_refused_and_begins_nothing() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default());
    assert!(log.write([b'a'; 256], b"").is_err());
    let v4 = Uuid::from_u128(0x1234_5678_1234_4234_8234_1234_5678_1234);
    assert!(log.write_as(Some(v4), b"", b"").is_err());
    assert!(folder.files("active").is_empty());
    let first = log.write(b"", b"").unwrap();
    let error = log.write_as(Some(first), b"", b"").unwrap_err();
    assert!(error.to_string().contains("does not ascend"), "{error}");
    assert!(
        SegmentLog::open(
            folder.0.path().join("x"),
            LogOptions::default().segment_bytes(0)
        )
        .is_err()
    );
    assert!(LogReader::open(folder.0.path().join("y"), Options::default()).is_err());
}

#[test]
fn what_is_refused_ends_no_segment() {
    let folder = Folder::new();
    let limits = LogOptions::default()
        .segment_bytes(100)
        .segment_age(Duration::from_secs(5));
    let log = folder.open(limits);
    let first = at_second(10);
    log.write_as(Some(first), b"", [0; 60]).unwrap();
    let later = at_second(20);
    let v4 = Uuid::from_u128(0x1eeb_0000_1234_4234_8234_1234_5678_1234);
    assert!(log.write([b'a'; 256], b"").is_err());
    assert!(log.write_as(Some(later), [b'a'; 256], b"").is_err());
    assert!(log.write_as(Some(v4), b"", b"").is_err());
    assert!(log.write_as(Some(first), b"", [0; 60]).is_err());
    assert_eq!(
        log.write_batch([NewRecord::new(&[b'a'; 256], b"")]).ok(),
        None
    );
    log.wait_sealed().unwrap();
    assert_eq!(folder.files("sealed").len(), 0);
    log.write_as(Some(later), b"", b"").unwrap();
    log.wait_sealed().unwrap();
    assert_eq!(folder.files("sealed").len(), 1);
}

#[test]
fn marks_lie_in_two_slots() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default());
    write(&log, 0..3);
    log.close().unwrap();
    let bytes = fs::read(folder.log().join("_mark")).unwrap();
    for slot in MARK_SLOTS {
        assert!(bytes[slot..].starts_with(b"SEGLMARK"));
    }
    let reader = LogReader::open(folder.log(), Options::default()).unwrap();
    let [segment] = &reader.segments().unwrap()[..] else {
        panic!()
    };
    assert_eq!(
        (segment.id.sequence, segment.kind),
        (1, SegmentKind::Active)
    );
}

#[test]
fn a_sealed_file_that_lacks_records_does_not_replace_the_active_one() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default());
    write(&log, 0..5);
    // Somebody seals the segment that is being written.
    let active = folder.files("active")[0].clone();
    let sealed = active.with_extension("sealed");
    let file = seglake::source::open_regular(&active).unwrap();
    let source = seglake::source::FileSource::new(file, &active).unwrap();
    seglake::verbs::seal(
        std::sync::Arc::new(source),
        &Options::default(),
        &sealed,
        &seglake::verbs::SealOptions::default(),
        |_| Ok(()),
    )
    .unwrap();
    write(&log, 5..9);
    assert_eq!(folder.values(), numbered(0..9));
    log.close().unwrap();
    assert_eq!(folder.values(), numbered(0..9));
    let log = folder.open(LogOptions::default());
    assert!(active.exists() && !sealed.exists());
    write(&log, 9..10);
    assert_eq!(folder.values(), numbered(0..10));
}

#[test]
fn a_complete_segment_that_lost_records_is_not_sealed() {
    for records in [0, 3] {
        let folder = Folder::new();
        let log = folder.open(LogOptions::default().seal(false));
        write(&log, 0..6);
        log.close().unwrap();
        let active = folder.files("active")[0].clone();
        let bytes = fs::read(&active).unwrap();
        let place = (0..records).map(value).fold(0, |_, value| {
            let at = bytes.windows(value.len()).position(|own| own == value);
            at.unwrap() + value.len() + 8
        });
        // As if a crash had come after the roll, before the mark moved on.
        let next = "00000000000000000002-ffffffff-ffff-6fff-bfff-ffffffffffff.active";
        fs::write(folder.log().join(next), b"").unwrap();
        fs::write(&active, &bytes[..place]).unwrap();
        let log = folder.open(LogOptions::default());
        log.wait_sealed().unwrap();
        assert_eq!(folder.files("frozen").len(), 1, "{records}");
        assert!(active.exists());
        drop(log);
        let reader = LogReader::open(folder.log(), Options::default()).unwrap();
        let read: Vec<_> = reader.records().unwrap().collect();
        assert!(
            matches!(read.last(), Some(Err(Error::Damage(_)))),
            "{read:?}"
        );
    }
}

#[test]
fn a_reader_under_another_key_is_refused() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default().key(Key::new(&[1; 32])));
    write(&log, 0..3);
    for rolls in [false, true] {
        if rolls {
            log.roll().unwrap();
            log.wait_sealed().unwrap();
        }
        let refused = LogReader::open(folder.log(), Options::default()).unwrap_err();
        assert!(
            matches!(&refused, Error::Damage(damage) if damage.wrong_key),
            "{refused}"
        );
    }
}

#[test]
fn a_damaged_mark_under_the_right_key_is_one_of_nothing() {
    let folder = Folder::new();
    let log = folder.open(LogOptions::default());
    write(&log, 0..3);
    log.close().unwrap();
    damage_mark(&folder, 60);
    assert_eq!(folder.values(), numbered(0..0));
    let log = folder.open(LogOptions::default());
    write(&log, 3..4);
    assert_eq!(folder.values(), numbered(0..4));
}

#[test]
fn a_tail_reads_on_where_it_failed() {
    let folder = Folder::new();
    let log = folder.open(quick());
    for number in 0..3 {
        write(&log, number..number + 1);
        log.roll().unwrap();
    }
    log.wait_sealed().unwrap();
    let mut tail = LogReader::open(folder.log(), Options::default())
        .unwrap()
        .tail(TailFrom::Start)
        .unwrap();
    assert_eq!(tail.poll().unwrap().unwrap().value(), value(0));
    let second = folder.files("sealed")[1].clone();
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, b"not a segment").unwrap();
    assert!(tail.poll().is_err());
    fs::write(&second, bytes).unwrap();
    let mut found = Vec::new();
    while let Some(record) = tail.poll().unwrap() {
        found.push(record.value().to_vec());
    }
    assert_eq!(found, numbered(1..3));
}

#[test]
fn a_tail_reads_what_it_has_open_when_that_is_removed() {
    let folder = Folder::new();
    let log = folder.open(quick());
    write(&log, 0..1);
    log.sync().unwrap();
    let mut tail = LogReader::open(folder.log(), Options::default())
        .unwrap()
        .tail(TailFrom::Start)
        .unwrap();
    assert_eq!(tail.poll().unwrap().unwrap().value(), value(0));
    write(&log, 1..2);
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    write(&log, 2..3);
    log.sync().unwrap();
    log.retain(&Retention::default().age(Duration::ZERO))
        .unwrap();
    for number in 1..3 {
        assert_eq!(tail.poll().unwrap().unwrap().value(), value(number));
    }
}

#[test]
fn closing_beside_writers_acknowledges_only_what_is_there() {
    for _ in 0..20 {
        let folder = Folder::new();
        let log = folder.open(LogOptions::default());
        let acknowledged = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut written = Vec::new();
                        while let Ok(uuid) = log.write(b"", b"value") {
                            written.push(uuid);
                        }
                        written
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(5));
            log.close().unwrap();
            let writers = writers.into_iter().flat_map(|own| own.join().unwrap());
            writers.collect::<std::collections::BTreeSet<_>>()
        });
        let reader = LogReader::open(folder.log(), Options::default()).unwrap();
        let found = reader
            .records()
            .unwrap()
            .map(|record| uuid_of(&record.unwrap()));
        let found: std::collections::BTreeSet<_> = found.collect();
        assert!(acknowledged.is_subset(&found));
    }
}

/// Nobody else begins, seals or removes segments. What others put beside them goes with them.
#[cfg(unix)]
#[test]
fn retention_lists_the_folder_once() {
    use seglake::faults::{Operation, inject};
    let folder = Folder::new();
    let log = folder.open(LogOptions::default().segment_bytes(300));
    let retain = |bytes| {
        let retention = Retention::default().bytes(bytes);
        let (removed, operations) = inject(None, || log.retain(&retention).unwrap());
        (removed.len(), operations)
    };
    for number in 0..4 {
        write(&log, number * 10..number * 10 + 10);
        log.wait_sealed().unwrap();
        let (removed, operations) = retain(u64::MAX);
        let opens = operations.iter().filter(|own| **own == Operation::Open);
        // The mark, and the folder.
        assert_eq!(
            (removed, opens.count()),
            (0, if number == 0 { 2 } else { 1 })
        );
    }
    let segments = LogReader::open(folder.log(), Options::default())
        .unwrap()
        .segments()
        .unwrap();
    let beside = |suffix| format!("{}.{suffix}", segments[0].path.display());
    fs::write(beside("par"), b"another's").unwrap();
    fs::write(beside("damaged"), b"another's").unwrap();
    assert_eq!(retain(0).0, segments.len() - 1);
    let left = fs::read_dir(folder.log()).unwrap().count();
    assert_eq!(left, 3); // the newest segment, the mark and the lock
}

/// The folder is listed again only if something changed: what was begun, sealed or removed is seen.
#[cfg(unix)]
#[test]
fn a_look_up_lists_the_folder_once() {
    use seglake::faults::{Operation, inject};
    let folder = Folder::new();
    let log = folder.open(LogOptions::default().segment_bytes(300));
    let mut uuids = write(&log, 0..20);
    log.wait_sealed().unwrap();
    let reader = LogReader::open(folder.log(), Options::default()).unwrap();
    let opened = |uuid: &Uuid| {
        let (found, operations) = inject(None, || reader.get(uuid).unwrap());
        let opens = operations.iter().filter(|own| **own == Operation::Open);
        (found.map(|record| uuid_of(&record)), opens.count())
    };
    let first = opened(&uuids[0]);
    let again = opened(&uuids[0]);
    assert_eq!((first.0, again.0), (Some(uuids[0]), Some(uuids[0])));
    assert!(again.1 < first.1, "{first:?} {again:?}");
    for number in 20..40 {
        uuids.extend(write(&log, number..number + 1));
        for uuid in &uuids {
            assert_eq!(opened(uuid).0, Some(*uuid));
        }
    }
    log.wait_sealed().unwrap();
    for uuid in &uuids {
        assert_eq!(opened(uuid).0, Some(*uuid));
    }
    let removed = log
        .retain(&Retention::default().age(Duration::ZERO))
        .unwrap();
    assert!(!removed.is_empty());
    assert_eq!(opened(&uuids[0]).0, None);
    log.close().unwrap();
}
