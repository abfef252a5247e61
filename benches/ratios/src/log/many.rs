//! Threads that each wait until their record is on the disk.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex};
use std::time::Instant;

use rustix::thread::futex;
use seglake::store::Durability;
use tempfile::TempDir;

use super::peers::{CommitLog, OkayWal, Sqlite};
use super::{ENDLESS, VALUE_BYTES, open};
use crate::compare::{Beside, Comparison};
use crate::messages::TYPE;

const THREADS: usize = 64;
const RECORDS_A_THREAD: usize = 300;
/// Of those that sync each record by itself.
const SLOW_RECORDS_A_THREAD: usize = 20;
const SYNCS: usize = 300;
/// The bytes of a record.
const RECORD_BYTES: usize = 16 + 1 + TYPE.len() + 4 + VALUE_BYTES + 8;
/// The file of the bare syncs.
const PREALLOCATED_BYTES: u64 = 64 << 20;
const LIMIT_TARGET: f64 = 0.5;
const UNIT: &str = "k/s";

pub(super) fn run(comparison: &mut Comparison) {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let log = open(&path("log"), Durability::Fsync, ENDLESS);
    let write = |value: &[u8]| {
        log.write(TYPE, value).unwrap();
    };
    let name = format!("{THREADS} threads write to a log, fsync");
    let mut syncs = Syncs::new(&path("syncs"));
    comparison.turns(
        &name,
        Beside::Limit("64 records a bare fdatasync"),
        UNIT,
        LIMIT_TARGET,
        || (),
        || rate(RECORDS_A_THREAD, write),
        || syncs.rate(),
    );
    let lockstep = Lockstep::new(&path("lockstep"));
    comparison.turns(
        &name,
        Beside::Limit("the same threads at one futex, the last one syncs"),
        UNIT,
        None,
        || (),
        || rate(RECORDS_A_THREAD, write),
        || rate(RECORDS_A_THREAD, |_| lockstep.write()),
    );
    let handed = Handed::new(&path("handed"));
    comparison.turns(
        &name,
        Beside::Itself("the same threads, handed to one fdatasync by hand"),
        UNIT,
        None,
        || (),
        || rate(RECORDS_A_THREAD, write),
        || rate(RECORDS_A_THREAD, |value| handed.write(value)),
    );
    let sqlite = Sqlite::new(&path("sqlite"));
    comparison.turns(
        &name,
        Beside::Peer("SQLite, WAL, synchronous=FULL"),
        UNIT,
        1.0,
        || (),
        || rate(RECORDS_A_THREAD, write),
        || rate(SLOW_RECORDS_A_THREAD, |value| sqlite.write(value)),
    );
    let okaywal = OkayWal::new(&path("okaywal"));
    comparison.turns(
        &name,
        Beside::Peer("okaywal"),
        UNIT,
        1.0,
        || (),
        || rate(RECORDS_A_THREAD, write),
        || rate(RECORDS_A_THREAD, |value| okaywal.write(value)),
    );
    let commitlog = CommitLog::new(&path("commitlog"));
    comparison.turns(
        &name,
        Beside::Peer("commitlog, flush and fdatasync"),
        UNIT,
        1.0,
        || (),
        || rate(RECORDS_A_THREAD, write),
        || rate(SLOW_RECORDS_A_THREAD, |value| commitlog.write(value)),
    );
    comparison.turns(
        "one thread writes to a log, fsync",
        Beside::Limit("one record a bare fdatasync"),
        UNIT,
        None,
        || (),
        || {
            let begun = Instant::now();
            (0..SYNCS).for_each(|_| write(&[0x5a; VALUE_BYTES]));
            thousands(SYNCS, begun)
        },
        || syncs.rate() / THREADS as f64,
    );
    log.close().unwrap();
}

fn thousands(records: usize, begun: Instant) -> f64 {
    records as f64 / 1e3 / begun.elapsed().as_secs_f64()
}

/// Thousands of records a second of all threads together. Starting the threads is not measured.
fn rate(records: usize, write: impl Fn(&[u8]) + Sync) -> f64 {
    let start = Barrier::new(THREADS + 1);
    let begun = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                (0..records).for_each(|_| write(&[0x5a; VALUE_BYTES]));
            });
        }
        start.wait();
        Instant::now()
    });
    thousands(THREADS * records, begun)
}

/// A file of zeros, into which the bytes of as many records as there are threads are written and synced.
struct Syncs {
    file: File,
    at: u64,
}

impl Syncs {
    fn new(path: &Path) -> Self {
        Self {
            file: preallocated(path),
            at: 0,
        }
    }

    fn rate(&mut self) -> f64 {
        let records = [0x5a; THREADS * RECORD_BYTES];
        let begun = Instant::now();
        for _ in 0..SYNCS {
            if self.at + records.len() as u64 > PREALLOCATED_BYTES {
                self.at = 0;
            }
            self.file.write_all_at(&records, self.at).unwrap();
            self.file.sync_data().unwrap();
            self.at += records.len() as u64;
        }
        thousands(SYNCS * THREADS, begun)
    }
}

fn preallocated(path: &Path) -> File {
    let file = File::create_new(path).unwrap();
    let zeros = vec![0; 1 << 20];
    for at in (0..PREALLOCATED_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at).unwrap();
    }
    file.sync_all().unwrap();
    file
}

/// The least work of threads that each sleep until their record is on the disk: all sleep at one futex, and the last one to come
/// writes and syncs the bytes of all.
struct Lockstep {
    file: File,
    at: AtomicU64,
    arrived: AtomicU32,
    round: AtomicU32,
}

impl Lockstep {
    fn new(path: &Path) -> Self {
        Self {
            file: preallocated(path),
            at: AtomicU64::new(0),
            arrived: AtomicU32::new(0),
            round: AtomicU32::new(0),
        }
    }

    fn write(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 < THREADS as u32 {
            while self.round.load(Ordering::Acquire) == round {
                // Where the round has ended meanwhile this returns at once.
                let _ = futex::wait(&self.round, futex::Flags::PRIVATE, round, None);
            }
            return;
        }
        self.arrived.store(0, Ordering::Release);
        let records = [0x5a; THREADS * RECORD_BYTES];
        let at = self.at.load(Ordering::Relaxed);
        self.file.write_all_at(&records, at).unwrap();
        self.file.sync_data().unwrap();
        let end = at + records.len() as u64;
        let fits = end + records.len() as u64 <= PREALLOCATED_BYTES;
        self.at.store(if fits { end } else { 0 }, Ordering::Relaxed);
        self.round.store(round.wrapping_add(1), Ordering::Release);
        futex::wake(&self.round, futex::Flags::PRIVATE, u32::MAX >> 1).unwrap();
    }
}

/// A group commit without a log, which is no limit: each thread puts its record into a buffer. One writes and syncs those that are
/// there, while the others wait, each for its own.
struct Handed {
    file: File,
    state: Mutex<HandedState>,
    done: [Condvar; 2],
}

struct HandedState {
    at: u64,
    buffer: Vec<u8>,
    /// Groups that are in the file.
    synced: u64,
    /// The group that records are put into.
    group: u64,
    is_syncing: bool,
}

impl Handed {
    fn new(path: &Path) -> Self {
        Self {
            file: preallocated(path),
            state: Mutex::new(HandedState {
                at: 0,
                buffer: Vec::new(),
                synced: 0,
                group: 1,
                is_syncing: false,
            }),
            done: [Condvar::new(), Condvar::new()],
        }
    }

    fn write(&self, value: &[u8]) {
        let mut state = self.state.lock().unwrap();
        state
            .buffer
            .extend_from_slice(&[0x5a; RECORD_BYTES - VALUE_BYTES]);
        state.buffer.extend_from_slice(value);
        let own = state.group;
        let done = |group: u64| &self.done[usize::from(group % 2 == 1)];
        while state.synced < own {
            if state.is_syncing {
                state = done(own).wait(state).unwrap();
                continue;
            }
            state.is_syncing = true;
            let records = std::mem::take(&mut state.buffer);
            if state.at + records.len() as u64 > PREALLOCATED_BYTES {
                state.at = 0;
            }
            let at = state.at;
            state.at += records.len() as u64;
            state.group += 1;
            drop(state);
            self.file.write_all_at(&records, at).unwrap();
            self.file.sync_data().unwrap();
            state = self.state.lock().unwrap();
            state.synced = own;
            state.is_syncing = false;
            done(own).notify_all();
            // One of the next group goes on with that.
            done(own + 1).notify_one();
        }
    }
}
