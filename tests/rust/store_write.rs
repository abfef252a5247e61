//! Threads that write to a log on a disk that fails or panics: none waits for ever, and each is told the truth.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::simulated::{Call, Done, IsOf, Simulated, Trouble};
use seglake::Error;
use seglake::format::{Interrupt, Options};
use seglake::store::{Durability, LogOptions, LogReader, NewRecord, SegmentLog};
use uuid::Uuid;

const LONG: Duration = Duration::from_secs(3600);
const THREADS: usize = 4;

fn folder() -> &'static Path {
    Path::new("/data/log")
}

/// Segments of two records, and a mark that nothing syncs but the end of a segment and closing.
fn options(disk: &Simulated) -> LogOptions {
    LogOptions::default()
        .disk(disk.disk())
        .mark_interval(LONG)
        .segment_bytes(100)
}

fn open(options: LogOptions) -> SegmentLog {
    SegmentLog::open(folder(), options).unwrap()
}

/// Has a thread do something that must come to an end.
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let done = work();
        let _ = sender.send(());
        done
    });
    let told = receiver.recv_timeout(Duration::from_secs(120));
    assert_ne!(
        told,
        Err(mpsc::RecvTimeoutError::Timeout),
        "a thread waits for ever"
    );
    thread.join().unwrap()
}

fn is_of(own: &Done, call: Call, end: &str) -> bool {
    own.call == call && own.path.to_str().is_some_and(|own| own.contains(end))
}

fn value(number: usize) -> Vec<u8> {
    format!("value {number:02}").into_bytes()
}

/// The values that a reader finds after all that was closed.
fn values(disk: &Simulated) -> Vec<Vec<u8>> {
    drop(SegmentLog::open(folder(), LogOptions::default().disk(disk.disk())).unwrap());
    let log = LogReader::open(folder(), Options::default().disk(disk.disk())).unwrap();
    let records = log.records().unwrap();
    records.map(|own| own.unwrap().value().to_vec()).collect()
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    numbers.map(value).collect()
}

fn write_batch(log: &SegmentLog, numbers: std::ops::Range<usize>) -> seglake::Result<Vec<Uuid>> {
    let values = numbered(numbers);
    log.write_batch(values.iter().map(|own| NewRecord::new(b"type", own)))
}

/// Threads write until each is refused or panics, while a call of a kind panics after so many others of it. Gives how many
/// panicked.
fn until_it_panics(options: LogOptions, disk: &Simulated, call: IsOf, after: usize) -> usize {
    disk.trouble_at(call, after, Trouble::Panic);
    let log = Arc::new(open(options));
    let own = log.clone();
    let panicked = ends(move || {
        let between = Arc::new(AtomicUsize::new(THREADS));
        let write = || {
            BETWEEN.set(between.clone());
            let told = catch_unwind(AssertUnwindSafe(|| {
                loop {
                    between.fetch_sub(1, Ordering::AcqRel);
                    if let Err(error) = own.write(b"type", [b'v'; 60]) {
                        return error;
                    }
                    between.fetch_add(1, Ordering::AcqRel);
                }
            }));
            let is_told = |error: &Error| {
                assert!(error.to_string().contains("panicked"), "{error}");
            };
            told.inspect(is_told).is_err()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(write)).collect();
            let ended = threads.into_iter().map(|own| own.join().unwrap());
            ended.filter(|panicked| *panicked).count()
        })
    });
    // The log stays refused, and says why. It can be closed, and opened again.
    ends(move || {
        for refused in [
            log.sync(),
            log.roll(),
            log.write(b"type", b"").map(drop),
            log.close(),
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("panicked"), "{error}");
        }
        log.close().unwrap();
    });
    disk.make_room();
    values(disk);
    panicked
}

thread_local! {
    /// How many of the threads that write with this one are between two writes.
    static BETWEEN: RefCell<Arc<AtomicUsize>> = RefCell::default();
}

/// Holds up a thread that writes until all others write, too, and lets them come to where they wait for this one.
fn hold_until_all_write() -> u64 {
    while BETWEEN.with_borrow(|own| own.load(Ordering::Acquire)) > 0 {
        std::thread::yield_now();
    }
    for _ in 0..100 {
        std::thread::yield_now();
    }
    0
}

#[test]
fn a_panic_in_a_commit_leaves_nobody_waiting() {
    let is_sync = |own: &Done| is_of(own, Call::Sync, ".active");
    for after in [0, 1, 5] {
        let disk = Simulated::new().pausing(hold_until_all_write);
        let endless = options(&disk).segment_bytes(1 << 20);
        assert_eq!(until_it_panics(endless, &disk, is_sync, after), 1);
    }
}

#[test]
fn a_panic_while_a_segment_ends_leaves_nobody_waiting() {
    let kinds: [IsOf; 5] = [
        |own| is_of(own, Call::Sync, ".active"),
        |own| is_of(own, Call::SetLen, ".active"),
        |own| is_of(own, Call::Sync, ".end"),
        |own| is_of(own, Call::Sync, "_mark"),
        |own| is_of(own, Call::Create, ".active"),
    ];
    for is_of in kinds {
        let disk = Simulated::new().pausing(hold_until_all_write);
        assert_eq!(until_it_panics(options(&disk), &disk, is_of, 3), 1);
    }
}

#[test]
fn a_panic_while_appending_leaves_nobody_waiting() {
    for durability in [Durability::Flush, Durability::Fsync] {
        let disk = Simulated::new().pausing(hold_until_all_write);
        let options = options(&disk).durability(durability);
        let is_write = |own: &Done| is_of(own, Call::Write, ".active");
        assert_eq!(until_it_panics(options, &disk, is_write, 3), 1);
    }
}

/// The caller's own iterator is none of the log's: it may write, and panic.
#[test]
fn an_iterator_that_panics_leaves_the_log_as_it_was() {
    let disk = Simulated::new();
    let log = Arc::new(open(options(&disk)));
    let own = log.clone();
    ends(move || {
        let records = (0..3).map(|number| {
            own.write(b"type", value(number)).unwrap();
            assert!(number < 2, "as told");
            NewRecord::new(b"type", b"never")
        });
        catch_unwind(AssertUnwindSafe(|| own.write_batch(records))).unwrap_err();
        own.write(b"type", value(3)).unwrap();
    });
    log.close().unwrap();
    assert_eq!(values(&disk), numbered(0..4));
}

#[test]
fn a_panic_while_sealing_is_told_and_others_are_sealed() {
    let disk = Simulated::new();
    let log = Arc::new(open(options(&disk)));
    let is_named = |own: &Done| is_of(own, Call::Rename, ".sealed.");
    disk.trouble_at(is_named, 0, Trouble::Panic);
    let own = log.clone();
    ends(move || {
        own.write(b"type", b"value").unwrap();
        own.roll().unwrap();
        let error = own.wait_sealed().unwrap_err().to_string();
        assert!(error.contains("panicked"), "{error}");
        own.write(b"type", b"value").unwrap();
        own.roll().unwrap();
        own.wait_sealed().unwrap();
        own.close().unwrap();
    });
    let sealed = disk
        .files()
        .into_keys()
        .filter(|own| own.ends_with(".sealed"));
    assert_eq!(sealed.count(), 1);
}

fn syncs_of_the_mark(disk: &Simulated) -> usize {
    let calls = disk.calls();
    let syncs = calls.iter().filter(|own| is_of(own, Call::Sync, "_mark"));
    syncs.count()
}

#[test]
fn the_mark_is_synced_though_nothing_more_is_written() {
    let disk = Simulated::new();
    let log = open(options(&disk).mark_interval(Duration::from_millis(1)));
    disk.settle(); // counts calls from here
    log.write(b"type", b"value").unwrap();
    let own = disk.clone();
    ends(move || {
        while syncs_of_the_mark(&own) == 0 {
            std::thread::yield_now();
        }
    });
    // A mark that is on the disk is not synced again. The other slot gets its place.
    let before = syncs_of_the_mark(&disk);
    log.close().unwrap();
    assert_eq!(syncs_of_the_mark(&disk), before + 1);
}

#[test]
fn the_mark_is_not_synced_with_each_commit() {
    let disk = Simulated::new();
    let log = open(options(&disk).segment_bytes(1 << 20));
    disk.settle();
    for _ in 0..20 {
        log.write(b"type", b"value").unwrap();
    }
    assert_eq!(syncs_of_the_mark(&disk), 0);
    log.close().unwrap();
    assert_eq!(syncs_of_the_mark(&disk), 2); // one for each slot
}

#[test]
fn a_mark_that_cannot_be_synced_fails_the_log() {
    for trouble in [Trouble::Broken, Trouble::Panic] {
        for durability in [Durability::Fsync, Durability::None] {
            let disk = Simulated::new();
            let options = options(&disk)
                .mark_interval(Duration::ZERO)
                .segment_bytes(1 << 20)
                .durability(durability);
            let log = open(options);
            disk.trouble_at(|own| is_of(own, Call::Sync, "_mark"), 0, trouble);
            let error = ends(move || {
                loop {
                    let written = log.write(b"type", b"value").and_then(|_| log.sync());
                    if let Err(error) = written {
                        drop(log.close());
                        return error.to_string();
                    }
                }
            });
            assert!(error.contains("synced mark"), "{error}");
        }
    }
}

#[test]
fn the_first_records_of_a_batch_are_named_where_the_others_find_no_room() {
    for durability in Durability::ALL {
        let disk = Simulated::new();
        let log = open(options(&disk).durability(*durability));
        let is_third = |own: &Done| is_of(own, Call::Create, "00003-");
        disk.trouble_at(is_third, 0, Trouble::Full);
        // Two records in each segment.
        let Err(Error::Partial {
            written, source, ..
        }) = write_batch(&log, 0..9)
        else {
            panic!("{durability:?}")
        };
        assert!(matches!(*source, Error::Io { .. }), "{source}");
        assert_eq!(written.len(), 4);
        disk.make_room();
        write_batch(&log, 4..6).unwrap();
        log.close().unwrap();
        assert_eq!(values(&disk.after_power_loss(1)), numbered(0..6));
    }
}

#[test]
fn a_batch_that_finds_no_room_at_all_is_refused() {
    let disk = Simulated::new();
    let log = open(options(&disk));
    disk.trouble_at(|own| is_of(own, Call::Create, "00001-"), 0, Trouble::Full);
    let error = write_batch(&log, 0..9).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    disk.make_room();
    log.close().unwrap();
    assert_eq!(values(&disk), numbered(0..0));
}

#[test]
fn the_records_before_one_that_is_refused_are_written() {
    let disk = Simulated::new();
    let log = open(options(&disk));
    let values_ = numbered(0..4);
    let records = |bad: usize| {
        let records = values_.iter().enumerate();
        records.map(move |(number, own)| {
            let uuid = (number == bad).then_some(Uuid::nil());
            NewRecord::new(b"type", own).uuid(uuid)
        })
    };
    let error = log.write_batch(records(0)).unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
    let error = log.write_batch(records(3)).unwrap_err();
    let Error::Partial {
        written, source, ..
    } = error
    else {
        panic!("{error}")
    };
    assert!(matches!(*source, Error::Usage(_)), "{source}");
    assert_eq!(written.len(), 3);
    // Each as if it had been written by itself.
    let lost = disk.after_power_loss(1);
    assert_eq!(values(&lost), numbered(0..3));
}

#[test]
fn a_sync_that_fails_says_which_records_before_it_are_written() {
    let disk = Simulated::new();
    let log = open(options(&disk));
    let is_second =
        |own: &Done| is_of(own, Call::Sync, "00002-") && is_of(own, Call::Sync, ".active");
    disk.trouble_at(is_second, 0, Trouble::Broken);
    let error = write_batch(&log, 0..9).unwrap_err();
    let Error::OutcomeUnknown { uuids, written, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((written.len(), uuids.len()), (2, 2));
    drop(log);
    let found = values(&disk.after_power_loss(1));
    assert!(found.starts_with(&numbered(0..2)) && found.len() <= 4);
}

static IS_SEALING_HELD: AtomicBool = AtomicBool::new(false);

/// Holds up the thread that seals.
fn hold_sealing() -> u64 {
    let is_sealing = std::thread::current().name() == Some("seglake-seal");
    while is_sealing && IS_SEALING_HELD.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    0
}

#[test]
fn waiting_for_sealing_can_be_interrupted() {
    let disk = Simulated::new().pausing(hold_sealing);
    let log = Arc::new(open(options(&disk)));
    IS_SEALING_HELD.store(true, Ordering::Release);
    log.write(b"type", value(0)).unwrap();
    log.roll().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let own = (log.clone(), asked.clone());
    ends(move || {
        let (log, asked) = own;
        let interrupt = Interrupt::new(move || asked.fetch_add(1, Ordering::Relaxed) > 0);
        for interrupted in [
            log.wait_sealed_unless(Some(&interrupt)),
            log.close_unless(Some(&interrupt)),
            log.close_unless(Some(&interrupt)),
        ] {
            assert!(matches!(interrupted, Err(Error::Interrupted)));
        }
    });
    // It was asked again.
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    // Nothing more is written, and nobody else writes.
    let error = log.write(b"type", b"").unwrap_err().to_string();
    assert!(error.contains("it is closed"), "{error}");
    let other = SegmentLog::open(folder(), options(&disk)).unwrap_err();
    assert!(other.to_string().contains("has it open"), "{other}");
    IS_SEALING_HELD.store(false, Ordering::Release);
    log.close().unwrap();
    let sealed = disk.files().into_keys().any(|own| own.ends_with(".sealed"));
    assert!(sealed);
    assert_eq!(values(&disk), numbered(0..1));
}
