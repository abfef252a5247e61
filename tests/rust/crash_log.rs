//! Losses of power while a log is written, rolled, sealed and recovered: afterwards every acknowledged record is there, none that
//! was refused or never written, and all in their order.

use std::path::Path;

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, seeds};
use crate::simulated::{Call, Done, Simulated, Trouble};
use seglake::Error;
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
        log.write(b"type", &value(number))?;
        acknowledged.records = number + 1;
    }
    log.close()
}

fn reader(disk: &Simulated) -> seglake::Result<LogReader> {
    LogReader::with(folder(), Options::default().disk(disk.disk()))
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

/// The mark and the end of a segment are lower bounds: where they are lost, nothing else is. So leaving a sync of them out breaks no
/// promise of a writer.
fn is_needed(calls: &[Done], at: usize) -> bool {
    let path = calls[at].path.to_str().unwrap();
    let is_of_end = |own: &Done| own.path.to_str().unwrap().contains(".end");
    let is_bound = path.ends_with("_mark")
        || is_of_end(&calls[at])
        || calls[at].call == Call::SyncFolder && is_of_end(&calls[at - 1]);
    // Where a name is synced once more before anything hangs on it, one of two is enough.
    let is_twice = calls[at].call == Call::SyncFolder
        && calls[at + 1..]
            .iter()
            .take(6)
            .any(|own| own.call == Call::SyncFolder);
    !is_bound && !is_twice
}

#[test]
fn no_sync_can_be_left_out() {
    crashes(|crashes| {
        assert!(crashes.mutate(seeds(6), is_needed) > 10);
    });
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
                match log.write(b"type", &value(number)) {
                    Ok(_) => written.push(number),
                    Err(Error::Io { .. }) => {}
                    Err(other) => panic!("{durability:?} {at}: {other}"),
                }
            }
            disk.make_room();
            log.write(b"type", &value(100))
                .unwrap_or_else(|error| panic!("{durability:?} {at}: {error}"));
            written.push(100);
            log.close().unwrap();
            assert_eq!(all(&disk).unwrap(), written, "{durability:?} {at}");
        }
    }
}
