//! What is promised of a log after a loss of power.

use seglake::store::{LogReader, SegmentLog, TailFrom};
use seglake::{Error, Value};
use uuid::Uuid;

use crate::history::{Fate, shown};
use crate::simulated::{Random, Simulated, Survivors, Trouble};
use crate::workload::{Run, folder, options, reader};

/// A record as a reader gives it.
type Found = (Uuid, Vec<u8>);

fn said(error: Error) -> String {
    error.to_string()
}

fn found(record: &seglake::Record) -> Found {
    let Some(Value::Uuid(uuid)) = record.field("uuid") else {
        panic!("a record without a UUID: {record:?}");
    };
    (Uuid::from_bytes(uuid), record.value().to_vec())
}

/// All records of a log.
fn read(log: &LogReader) -> seglake::Result<Vec<Found>> {
    log.records()?.map(|record| Ok(found(&record?))).collect()
}

/// All records that a tail gives.
fn follow(log: &LogReader) -> seglake::Result<Vec<Found>> {
    let mut tail = log.tail(TailFrom::Start)?;
    let mut records = Vec::new();
    while let Some(record) = tail.poll()? {
        records.push(found(&record));
    }
    Ok(records)
}

/// The values of all records, after a writer has put the log in order.
pub(crate) fn values(disk: &Simulated) -> seglake::Result<Vec<Vec<u8>>> {
    let log = SegmentLog::open(folder(), options(disk, 300))?;
    log.close()?;
    let records = read(&reader(disk)?)?;
    Ok(records.into_iter().map(|(_, value)| value).collect())
}

/// What has to be there after a loss of power before the call of this number, and what may be.
struct Expected<'a> {
    run: &'a Run,
    at: usize,
    /// Values of records that a reader found after it.
    seen: Vec<Vec<u8>>,
    /// What was written since, and acknowledged or not.
    since: Vec<(Vec<u8>, bool)>,
}

impl Expected<'_> {
    /// Whether records that were found are what is promised. A reader gives those that are proven: those that were acknowledged may
    /// not all be.
    fn check(&self, found: &[Found], all: bool) -> Result<(), String> {
        let history = &self.run.history;
        if let Some(pair) = found.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!(
                "out of order, or twice: {}, then {}",
                shown(&pair[0].1),
                shown(&pair[1].1)
            ));
        }
        for (uuid, value) in found {
            if self.since.iter().any(|(own, _)| own == value) {
                continue;
            }
            let Some(place) = history.places.get(value) else {
                return Err(format!("nobody wrote {}", shown(value)));
            };
            let entry = &history.entries[*place];
            if entry.began > self.at {
                return Err(format!("{} was not written yet", shown(value)));
            }
            if entry.fate(self.at) == Some(Fate::Refused) {
                return Err(format!("{} was refused", shown(value)));
            }
            if entry.uuid.is_some_and(|own| own != *uuid) {
                return Err(format!("{} has another UUID", shown(value)));
            }
        }
        if !all {
            return Ok(());
        }
        let is_there = |value: &[u8]| found.iter().any(|(_, own)| own == value);
        for entry in &history.entries {
            if entry.fate(self.at) == Some(Fate::Acknowledged) && !is_there(&entry.value) {
                return Err(format!("{} was acknowledged", shown(&entry.value)));
            }
        }
        for (at, place) in &history.seen {
            let value = &history.entries[*place].value;
            if *at <= self.at && !is_there(value) {
                return Err(format!("{} was followed", shown(value)));
            }
        }
        if let Some(value) = self.seen.iter().find(|value| !is_there(value)) {
            return Err(format!("{} was read after the loss", shown(value)));
        }
        let lost = self
            .since
            .iter()
            .find(|(value, is_sure)| *is_sure && !is_there(value));
        match lost {
            Some((value, _)) => Err(format!("{} was written after the loss", shown(value))),
            None => Ok(()),
        }
    }

    /// Opens the log, writes to it, and closes it. Gives whether all went right.
    fn write_on(&mut self, disk: &Simulated, name: &str) -> Result<(), String> {
        let log = SegmentLog::open(folder(), options(disk, 400)).map_err(said)?;
        let value = name.as_bytes().to_vec();
        let told = log.write(b"t", &value);
        self.since.push((value, told.is_ok()));
        told.map_err(said)?;
        log.close().map_err(said)
    }

    /// What a reader finds before a writer puts the log in order.
    fn look(&mut self, disk: &Simulated) -> Result<(), String> {
        let is_there = |path: &String| path.starts_with("log/");
        let records = match reader(disk).and_then(|log| read(&log)) {
            Ok(records) => records,
            // No more than the name of the folder was begun.
            Err(Error::Io { .. }) if !disk.files().keys().any(is_there) => Vec::new(),
            Err(error) => return Err(format!("it cannot be read: {error}")),
        };
        self.check(&records, false)?;
        self.seen
            .extend(records.into_iter().map(|(_, value)| value));
        Ok(())
    }
}

/// Loses power before a call of a run, and looks at what is left. Gives what survived.
pub(crate) fn lose_power(run: &Run, at: usize, seed: u64) -> Result<Survivors, String> {
    let mut random = Random::new(seed);
    let (mut disk, survivors) = run.tape[at].losing_power(random.next());
    let mut expected = Expected {
        run,
        at,
        seen: Vec::new(),
        since: Vec::new(),
    };
    if random.percent(25) {
        expected.look(&disk)?;
    }
    if random.percent(25) {
        // Power is lost again while a writer puts the log in order and writes on.
        disk.trouble(random.below(30), Trouble::Crash);
        let _ = expected.write_on(&disk, "again");
        disk = disk.after_power_loss(random.next());
        if random.percent(25) {
            expected.look(&disk)?;
        }
    }
    expected
        .write_on(&disk, "last")
        .map_err(|failure| format!("it cannot be opened: {failure}"))?;
    let log = reader(&disk).map_err(said)?;
    let records = read(&log).map_err(said)?;
    expected.check(&records, true)?;
    if random.percent(10) {
        let followed = follow(&log).map_err(said)?;
        if followed != records {
            let names = |of: &[Found]| of.iter().map(|own| shown(&own.1)).collect::<Vec<_>>();
            return Err(format!(
                "a tail gives {:?}, a reader {:?}",
                names(&followed),
                names(&records)
            ));
        }
    }
    Ok(survivors)
}
