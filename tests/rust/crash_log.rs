//! Losses of power while a log is written, rolled, sealed and recovered: afterwards every acknowledged record is there, none that
//! was refused or never written, and all in their order.

use std::cell::Cell;
use std::path::Path;

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, seeds};
use crate::simulated::{Call, Done, Simulated, Trouble};
use seglake::Error;
use seglake::faults::Opening;
use seglake::format::Options;
use seglake::store::{Durability, LogOptions, LogReader, SegmentLog, TailFrom};

const RECORDS: u64 = 12;

fn folder() -> &'static Path {
    Path::new("/data/log")
}

/// Of several sizes, so that records end in, at and beyond sectors.
fn value(number: u64) -> Vec<u8> {
    let repeated = [1, 30, 4, 70, 7][usize::try_from(number % 5).unwrap()];
    format!("value {number} ").repeat(repeated).into_bytes()
}

fn open(disk: &Simulated) -> seglake::Result<SegmentLog> {
    let options = LogOptions::default().segment_bytes(2500).disk(disk.disk());
    SegmentLog::open(folder(), options)
}

/// Writes records, and seals segments as they end. The disk is left alone by one thread while the other uses it, so that its calls
/// come in one order.
fn write(
    disk: &Simulated,
    numbers: std::ops::Range<u64>,
    acknowledged: &mut Acknowledged,
) -> seglake::Result<()> {
    let log = open(disk)?;
    log.wait_sealed()?;
    for number in numbers {
        if number % 4 == 3 {
            log.roll()?;
            log.wait_sealed()?;
        }
        log.write(b"type", value(number))?;
        acknowledged.records = number + 1;
    }
    log.close()
}

fn reader(disk: &Simulated) -> seglake::Result<LogReader> {
    LogReader::open(folder(), Options::default().disk(disk.disk()))
}

/// The numbers of the records that a reader finds.
fn found(disk: &Simulated) -> Result<Vec<u64>, String> {
    let said = |error: Error| error.to_string();
    let mut numbers = Vec::new();
    for record in reader(disk).map_err(said)?.records().map_err(said)? {
        let record = record.map_err(said)?;
        let own = numbers.last().map_or(0, |last| last + 1);
        let number = (own..own + 2 * RECORDS).find(|number| value(*number) == record.value());
        numbers.push(number.ok_or_else(|| {
            format!(
                "a record that was not written, or is out of order: {:?}",
                record.value()
            )
        })?);
    }
    Ok(numbers)
}

fn check(aftermath: Aftermath<'_>) -> Checked {
    let Aftermath {
        disk,
        acknowledged,
        mut random,
        ..
    } = aftermath;
    let synced = acknowledged.records;
    // A reader sees a part of it before a writer has put it in order, and nothing that is not there later.
    let seen = match found(&disk) {
        Ok(seen) => seen,
        Err(_) if synced == 0 && !disk.files().keys().any(|name| name.starts_with("log/")) => {
            Vec::new()
        }
        Err(failure) => return Err(format!("it cannot be read: {failure}")),
    };
    if seen.iter().any(|number| *number > synced) {
        return Err(format!(
            "a reader sees {seen:?} where {synced} were acknowledged"
        ));
    }
    // Power is lost again while a writer puts it in order and writes on.
    let crashing = disk.copy();
    crashing.trouble(random.below(40), Trouble::Crash);
    let mut meanwhile = Acknowledged::default();
    let _ = write(&crashing, 100..104, &mut meanwhile);
    let again = crashing.after_power_loss(random.next());
    for (disk, later) in [(again, meanwhile.records), (disk, 0)] {
        let mut own = Acknowledged::default();
        write(&disk, 200..202, &mut own)
            .map_err(|error| format!("it cannot be opened: {error}"))?;
        let numbers = all(&disk)?;
        let expected = (0..synced).chain((100..104).filter(|number| *number < later));
        if let Some(lost) = expected
            .into_iter()
            .find(|number| !numbers.contains(number))
        {
            return Err(format!("record {lost} is not there: {numbers:?} are"));
        }
        if !numbers.ends_with(&[200, 201]) {
            return Err(format!("what was written last is not there: {numbers:?}"));
        }
        if let Some(lost) = seen.iter().find(|number| !numbers.contains(number)) {
            return Err(format!("record {lost} was seen, and is gone"));
        }
    }
    Ok(())
}

/// The numbers of all records, also as a tail gives them.
fn all(disk: &Simulated) -> Result<Vec<u64>, String> {
    let said = |error: Error| error.to_string();
    let number = |value_: &[u8]| {
        let text = String::from_utf8_lossy(value_);
        let number = text.split(' ').nth(1).and_then(|own| own.parse().ok());
        number
            .filter(|own| value(*own) == value_)
            .ok_or_else(|| format!("not written: {text}"))
    };
    let log = reader(disk).map_err(said)?;
    let mut numbers = Vec::new();
    for record in log.records().map_err(said)? {
        numbers.push(number(record.map_err(said)?.value())?);
    }
    if !numbers.is_sorted_by(|a, b| a < b) {
        return Err(format!("out of order, or twice: {numbers:?}"));
    }
    let mut tail = log.tail(TailFrom::Start).map_err(said)?;
    let mut followed = Vec::new();
    while let Some(record) = tail.poll().map_err(said)? {
        followed.push(number(record.value())?);
    }
    if followed != numbers {
        return Err(format!("a tail gives {followed:?}, a reader {numbers:?}"));
    }
    Ok(numbers)
}

fn crashes(test: impl Fn(&Crashes<'_>)) {
    let prepare = |_: &Simulated| {};
    let work =
        |disk: &Simulated, acknowledged: &mut Acknowledged| write(disk, 0..RECORDS, acknowledged);
    test(&Crashes {
        name: "a log".to_owned(),
        prepare: &prepare,
        work: &work,
        check: &check,
    });
}

#[test]
fn acknowledged_records_stay() {
    crashes(|crashes| crashes.crash(seeds(4)));
}

#[test]
fn acknowledged_records_stay_after_errors() {
    crashes(|crashes| crashes.trouble(seeds(4)));
}

fn is_of(own: &Done, part: &str) -> bool {
    own.path.to_str().is_some_and(|own| own.contains(part))
}

/// Whether a call is one of those that write down where a segment ends.
fn is_of_end(calls: &[Done], at: usize) -> bool {
    is_of(&calls[at], ".end") || calls[at].call == Call::SyncFolder && is_of(&calls[at - 1], ".end")
}

/// The mark and the end of a segment are lower bounds: where they are lost, nothing else is. What hangs on their syncs is looked at
/// below.
fn is_needed(calls: &[Done], at: usize) -> bool {
    let is_bound = is_of(&calls[at], "_mark") || is_of_end(calls, at);
    // Where a name is synced once more before anything hangs on it, one of two is enough.
    let is_twice = calls[at].call == Call::SyncFolder
        && calls[at + 1..]
            .iter()
            .take(7)
            .any(|own| own.call == Call::SyncFolder);
    !is_bound && !is_twice
}

#[test]
#[ignore = "make test-more runs it, and make crash"]
fn no_sync_can_be_left_out() {
    crashes(|crashes| {
        assert!(crashes.mutate(seeds(6), is_needed) > 10);
    });
}

/// How many records the first segment has where none is sealed.
const FIRST: u64 = 5;
/// UUID, two lengths, checksum, and the type.
const FRAME_BYTES: usize = 16 + 1 + 4 + 8 + 4;

fn unsealed(disk: &Simulated) -> LogOptions {
    let options = LogOptions::default().segment_bytes(100_000).seal(false);
    options.disk(disk.disk())
}

/// Where so many records end.
fn end_of(records: u64) -> usize {
    (0..records)
        .map(|number| FRAME_BYTES + value(number).len())
        .sum()
}

/// Writes two segments, and seals none.
fn write_unsealed(disk: &Simulated, acknowledged: &mut Acknowledged) -> seglake::Result<()> {
    let log = SegmentLog::open(folder(), unsealed(disk))?;
    for number in 0..FIRST + 2 {
        if number == FIRST {
            log.roll()?;
        }
        log.write(b"type", value(number))?;
        acknowledged.records = number + 1;
    }
    log.close()
}

/// The path of the active segment of this number, from the root.
fn active(disk: &Simulated, sequence: u64) -> Option<String> {
    let files = disk.files();
    let is_own = |own: &&String| {
        own.starts_with(&format!("log/{sequence:020}-")) && own.ends_with(".active")
    };
    files.keys().find(is_own).map(|own| format!("/data/{own}"))
}

/// Cuts the last record off, which ends the file at the end of another one.
fn cut(disk: &Simulated, path: &str, records: u64) -> Checked {
    let file = disk.disk().open(Path::new(path), Opening::Write).unwrap();
    file.set_len(end_of(records - 1) as u64).unwrap();
    match found(disk) {
        Err(error) if error.contains("length_out_of_bounds") => Ok(()),
        other => Err(format!(
            "nobody notices that a record is cut off: {other:?}"
        )),
    }
}

/// Where there is a next segment, of whatever content, the end of the one before is known. The zeros ahead of its records, which are
/// dropped without a sync, may come back: then they are unused space to readers, and to sealing.
#[test]
fn a_segment_ends_before_the_next_one_begins() {
    let longer = Cell::new(0);
    let check = |aftermath: Aftermath<'_>| {
        let disk = aftermath.disk;
        let Some(first) = active(&disk, 2).and(active(&disk, 1)) else {
            return Ok(());
        };
        let len = disk.files()[first.trim_start_matches("/data/")].len();
        longer.set(longer.get() + usize::from(len > end_of(FIRST)));
        let sealing = disk.copy();
        let log = SegmentLog::open(folder(), unsealed(&sealing).seal(true));
        let sealed = log.and_then(|log| log.wait_sealed().and_then(|()| log.close()));
        sealed.map_err(|error| format!("it cannot be sealed: {error}"))?;
        if active(&sealing, 1).is_some() {
            return Err("it is not sealed".to_owned());
        }
        let seen = found(&sealing)?;
        if !seen.starts_with(&(0..FIRST).collect::<Vec<_>>()) {
            return Err(format!("sealed it has {seen:?}"));
        }
        cut(&disk, &first, FIRST)
    };
    let crashes = Crashes {
        name: "a log that is not sealed".to_owned(),
        prepare: &|_| {},
        work: &write_unsealed,
        check: &check,
    };
    // The file and its name. That the name is on the disk is needed once the mark is in the next segment: before that it says where this
    // one ends, and the sync of the folder for the next segment comes first.
    let is_needed =
        |calls: &[Done], at: usize| is_of_end(calls, at) && calls[at].call != Call::SyncFolder;
    assert_eq!(crashes.mutate(seeds(40), is_needed), 2);
    assert!(longer.get() > 0);
}

/// What was acknowledged before the log was closed is in front of the mark, so that a cut is noticed, also where a slot is lost.
#[test]
fn a_log_that_is_closed_has_all_in_front_of_its_mark() {
    let check = |mut aftermath: Aftermath<'_>| {
        let second = active(&aftermath.disk, 2).filter(|_| aftermath.acknowledged.all);
        let Some(second) = second else {
            return Ok(());
        };
        let file = aftermath
            .disk
            .disk()
            .open(Path::new(&second), Opening::Write);
        let len = FRAME_BYTES + value(FIRST).len();
        file.unwrap().set_len(len as u64).unwrap();
        let mark = aftermath
            .disk
            .disk()
            .open(&folder().join("_mark"), Opening::Write);
        let lost = [0, 4096][aftermath.random.below(2)];
        mark.unwrap().write_at(&[0; 64], lost).unwrap();
        match found(&aftermath.disk) {
            Err(_) => Ok(()),
            Ok(seen) => Err(format!("nobody notices a cut after {seen:?}")),
        }
    };
    let crashes = Crashes {
        name: "a log that is closed".to_owned(),
        prepare: &|_| {},
        work: &write_unsealed,
        check: &check,
    };
    let is_last = |calls: &[Done], at: usize| {
        let is_own = |own: &Done| own.call == Call::Sync && is_of(own, "_mark");
        is_own(&calls[at]) && !calls[at + 1..].iter().any(is_own)
    };
    assert_eq!(crashes.mutate(seeds(40), is_last), 1);
}

#[test]
fn a_full_disk_refuses_and_goes_on() {
    for durability in [Durability::Fsync, Durability::Flush] {
        let start = Simulated::new();
        let calls = {
            let disk = start.copy();
            write(&disk, 0..RECORDS, &mut Acknowledged::default()).unwrap();
            disk.calls().len()
        };
        for at in 0..calls {
            let disk = start.copy();
            disk.trouble(at, Trouble::Full);
            let options = LogOptions::default().segment_bytes(2500).seal(false);
            let options = options.durability(durability).disk(disk.disk());
            let Ok(log) = SegmentLog::open(folder(), options) else {
                continue;
            };
            let mut written = Vec::new();
            for number in 0..RECORDS {
                match log.write(b"type", value(number)) {
                    Ok(_) => written.push(number),
                    Err(Error::Io { .. }) => {}
                    Err(other) => panic!("{durability:?} {at}: {other}"),
                }
            }
            disk.make_room();
            log.write(b"type", value(100))
                .unwrap_or_else(|error| panic!("{durability:?} {at}: {error}"));
            written.push(100);
            log.close().unwrap();
            assert_eq!(all(&disk).unwrap(), written, "{durability:?} {at}");
        }
    }
}
