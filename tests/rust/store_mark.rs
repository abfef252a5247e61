//! The mark of a log that was closed: either slot can be lost, and no loss of power while it is closed takes both.

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, seeds};
use crate::simulated::{Call, Done, Simulated};
use seglake::faults::{Opening, Operation, inject};
use seglake::format::Options;
use seglake::store::{ListedLog, LogOptions, LogReader, SegmentLog};

const SLOTS: [usize; 2] = [0, 4096];
const SLOT_BYTES: usize = 64;

/// No mark is synced but where something waits for it.
fn options() -> LogOptions {
    LogOptions::default().mark_interval(Duration::from_secs(3600))
}

fn value(number: u64) -> Vec<u8> {
    format!("value {number}").into_bytes()
}

fn write(log: &SegmentLog, mut numbers: std::ops::Range<u64>) -> seglake::Result<()> {
    numbers.try_for_each(|number| log.write(b"type", value(number)).map(drop))
}

fn count(reader: &LogReader) -> seglake::Result<u64> {
    let mut found = 0;
    for record in reader.records()? {
        assert_eq!(record?.value(), value(found));
        found += 1;
    }
    Ok(found)
}

/// Reads a log with each bit of its mark flipped in turn, and with each slot's page lost.
fn lose_each_slot(folder: &Path, records: u64) {
    let reader = LogReader::open(folder, Options::default()).unwrap();
    assert_eq!(count(&reader).unwrap(), records);
    let path = folder.join("_mark");
    let whole = fs::read(&path).unwrap();
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    let mut put = |bytes: &[u8], at: usize| {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(bytes).unwrap();
    };
    for slot in SLOTS {
        assert!(whole[slot..].starts_with(b"SEGLMARK"));
        for bit in 0..SLOT_BYTES * 8 {
            let at = slot + bit / 8;
            put(&[whole[at] ^ 1 << (bit % 8)], at);
            assert_eq!(count(&reader).unwrap(), records, "slot {slot}, bit {bit}");
            put(&whole[at..=at], at);
        }
        for lost in [0, 0xff] {
            put(&[lost; 4096], slot);
            assert_eq!(count(&reader).unwrap(), records, "slot {slot}");
        }
        put(&whole[slot..slot + 4096], slot);
    }
}

#[test]
fn either_slot_of_a_closed_log_says_all_records() {
    let own = tempfile::tempdir().unwrap();
    let folder: PathBuf = own.path().join("log");
    // The number of marks decides in which slot the last one is.
    for records in 1..4 {
        let log = SegmentLog::open(&folder, options()).unwrap();
        write(&log, records - 1..records).unwrap();
        log.close().unwrap();
        lose_each_slot(&folder, records);
    }
    let log = SegmentLog::open(&folder, options()).unwrap();
    write(&log, 3..5).unwrap();
    log.roll().unwrap();
    log.close().unwrap();
    lose_each_slot(&folder, 5);
    // Nothing is written, so nothing changes either.
    SegmentLog::open(&folder, options())
        .unwrap()
        .close()
        .unwrap();
    lose_each_slot(&folder, 5);
}

#[test]
fn either_slot_of_a_snapshot_says_all_records() {
    let own = tempfile::tempdir().unwrap();
    let log = SegmentLog::open(own.path().join("log"), options()).unwrap();
    write(&log, 0..3).unwrap();
    let copy = own.path().join("copy");
    let reader = LogReader::open(log.path(), Options::default()).unwrap();
    reader.snapshot(&copy).unwrap();
    lose_each_slot(&copy, 3);
}

#[test]
fn a_log_that_was_closed_with_one_slot_behind_is_read_and_written() {
    let own = tempfile::tempdir().unwrap();
    let folder = own.path().join("log");
    let log = SegmentLog::open(&folder, options()).unwrap();
    write(&log, 0..1).unwrap();
    let before = fs::read(folder.join("_mark")).unwrap();
    write(&log, 1..2).unwrap();
    log.close().unwrap();
    // As it was left before both slots were written: one says the place of the last record, the other an earlier one.
    let mut mark = fs::read(folder.join("_mark")).unwrap();
    let counter = |bytes: &[u8], slot: usize| bytes[slot + 16..slot + 24].to_vec();
    let later = SLOTS.into_iter().max_by_key(|slot| counter(&mark, *slot));
    let later = later.unwrap();
    mark[later..later + SLOT_BYTES].copy_from_slice(&before[later..later + SLOT_BYTES]);
    fs::write(folder.join("_mark"), &mark).unwrap();
    let reader = LogReader::open(&folder, Options::default()).unwrap();
    assert_eq!(count(&reader).unwrap(), 2);
    let log = SegmentLog::open(&folder, options()).unwrap();
    assert!(log.recovered().is_empty());
    write(&log, 2..3).unwrap();
    log.close().unwrap();
    lose_each_slot(&folder, 3);
}

const PREPARED: u64 = 3;
const WRITTEN: u64 = 5;

fn folder() -> &'static Path {
    Path::new("/data/log")
}

fn open(disk: &Simulated) -> seglake::Result<SegmentLog> {
    SegmentLog::open(folder(), options().disk(disk.disk()))
}

fn prepare(disk: &Simulated) {
    let log = open(disk).unwrap();
    write(&log, 0..PREPARED).unwrap();
    log.close().unwrap();
    drop(log);
    disk.settle();
}

fn work(disk: &Simulated, acknowledged: &mut Acknowledged) -> seglake::Result<()> {
    let log = open(disk)?;
    write(&log, PREPARED..WRITTEN)?;
    acknowledged.records = WRITTEN;
    acknowledged.opened = Some(disk.calls().len());
    log.close()
}

fn seen(disk: &Simulated) -> Result<u64, String> {
    let said = |error: seglake::Error| error.to_string();
    let options = Options::default().disk(disk.disk());
    let reader = LogReader::open(folder(), options).map_err(said)?;
    count(&reader).map_err(said)
}

/// The calls of work that nothing disturbs: the first one of closing that brings a mark to the disk.
fn first_sync() -> usize {
    let disk = Simulated::new();
    prepare(&disk);
    let mut acknowledged = Acknowledged::default();
    work(&disk, &mut acknowledged).unwrap();
    let is_of_mark = |own: &Done| own.call == Call::Sync && own.path.ends_with("_mark");
    let calls = disk.calls();
    let closing = acknowledged.opened.unwrap();
    let syncs = (closing..calls.len()).filter(|at| is_of_mark(&calls[*at]));
    let syncs: Vec<_> = syncs.collect();
    syncs[0]
}

/// What was proven by a mark that was synced is proven after each loss of power: of the log as it was opened, and once a sync of
/// closing has returned, of all of it. After closing, also where a slot is lost.
fn check(aftermath: Aftermath<'_>, first_sync: usize) -> Checked {
    let Aftermath {
        disk,
        acknowledged,
        at,
        mut random,
        ..
    } = aftermath;
    let proven = match at > first_sync {
        true => WRITTEN,
        false => PREPARED,
    };
    let found = seen(&disk)?;
    if found < proven {
        return Err(format!("{found} records, of which {proven} were proven"));
    }
    if acknowledged.all {
        let slot = SLOTS[random.below(2)] + random.below(SLOT_BYTES);
        let mark = disk.disk().open(&folder().join("_mark"), Opening::Write);
        let mark = mark.unwrap();
        let mut byte = [0];
        mark.read_at(&mut byte, slot as u64).unwrap();
        mark.write_at(&[byte[0] ^ 1], slot as u64).unwrap();
        let found = seen(&disk)?;
        if found != WRITTEN {
            return Err(format!("{found} records after byte {slot} was lost"));
        }
    }
    Ok(())
}

#[test]
fn no_loss_of_power_while_it_is_closed_takes_back_what_was_proven() {
    let first_sync = first_sync();
    let crashes = Crashes {
        name: "closing a log".to_owned(),
        prepare: &prepare,
        work: &work,
        check: &|aftermath| check(aftermath, first_sync),
    };
    // Without it, the slots are both being written when power is lost.
    let is_first = |_: &[Done], at: usize| at == first_sync;
    assert_eq!(crashes.mutate(seeds(100), is_first), 1);
}

/// What readers leave out is said, unless a writer has the log open.
#[test]
fn what_is_after_the_mark_is_said_unless_there_is_a_writer() {
    let own = tempfile::tempdir().unwrap();
    let folder = own.path().join("log");
    let mark = folder.join("_mark");
    let log = SegmentLog::open(&folder, options().seal(false)).unwrap();
    write(&log, 0..3).unwrap();
    log.roll().unwrap();
    write(&log, 3..5).unwrap();
    log.close().unwrap();
    let older = fs::read(&mark).unwrap();
    let log = SegmentLog::open(&folder, options().seal(false)).unwrap();
    write(&log, 5..9).unwrap();
    log.close().unwrap();
    let reader = LogReader::open(&folder, Options::default()).unwrap();
    assert_eq!(reader.unread().unwrap(), None);
    let whole = fs::read(&mark).unwrap();
    let read = |bytes: Option<&[u8]>| {
        match bytes {
            Some(bytes) => fs::write(&mark, bytes).unwrap(),
            None => fs::remove_file(&mark).unwrap(),
        }
        count(&reader).unwrap()
    };
    // Without a mark, with an older one, and with one of another segment.
    assert_eq!(read(None), 3);
    let lost = reader.unread().unwrap().unwrap();
    assert_eq!((lost.id.sequence, lost.offset, lost.records), (2, 0, 6));
    assert_eq!(read(Some(&older)), 5);
    let behind = reader.unread().unwrap().unwrap();
    assert_eq!((behind.records, behind.marked), (4, 2));
    assert_eq!(lost.nbytes, behind.offset + behind.nbytes);
    // Asked again, it looks at the lock and the two slots of the mark, and reads nothing else as long as the file is the same.
    let (again, operations) = inject(None, || reader.unread().unwrap());
    let counted = |of| operations.iter().filter(|own| **own == of).count();
    assert_eq!(again, Some(behind));
    let (opens, reads) = (counted(Operation::Open), counted(Operation::Read));
    assert_eq!((opens, reads), (2, 2));
    let newest = reader.segments().unwrap()[1].path.clone();
    let bytes = fs::read(&newest).unwrap();
    let end = usize::try_from(lost.nbytes).unwrap();
    fs::write(&newest, [&bytes[..end], b"more"].concat()).unwrap();
    assert_eq!(reader.unread().unwrap().unwrap().nbytes, behind.nbytes + 4);
    fs::write(&newest, bytes).unwrap();
    let segment = reader.segments().unwrap()[0].id;
    fs::copy(folder.join(format!("_{segment}.end")), &mark).unwrap();
    assert_eq!(count(&reader).unwrap(), 3);
    let elsewhere = reader.unread().unwrap().unwrap();
    assert_eq!((elsewhere.records, elsewhere.marked), (6, 1));
    assert!(elsewhere.to_string().contains("found one in segment 1"));
    let listed = ListedLog::read(&folder, &Options::default()).unwrap();
    assert_eq!(listed.unread, Some(elsewhere));
    // A writer takes them in. What it has not synced is on its way.
    assert_eq!(read(Some(&older)), 5);
    let log = SegmentLog::open(&folder, options()).unwrap();
    assert_eq!(count(&reader).unwrap(), 9);
    fs::write(&mark, &older).unwrap();
    assert_eq!(
        (count(&reader).unwrap(), reader.unread().unwrap()),
        (5, None)
    );
    drop(log);
    assert_eq!(read(Some(&whole)), 9);
}
