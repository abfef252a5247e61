//! Several threads that write to one log while others read it and segments are sealed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use seglake::format::Options;
use seglake::store::{LogOptions, LogReader, NewRecord, SegmentLog, TailFrom};
use shuttle::thread;

use crate::history::{History, Shared};
use crate::schedule::pause;
use crate::simulated::{IsOf, Moment, Random, Simulated, Trouble};

pub(crate) fn folder() -> &'static Path {
    Path::new("/data/log")
}

/// What a run is made of, as its seed says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) writers: usize,
    /// How often each of them writes.
    pub(crate) writes: usize,
    pub(crate) segment_bytes: u64,
    pub(crate) is_followed: bool,
    /// What goes wrong at one of the calls.
    pub(crate) trouble: Option<Trouble>,
    /// Calls that are left out: a mutation of the code.
    pub(crate) left_out: Option<IsOf>,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x706c_616e);
        let troubles = [
            None,
            None,
            None,
            Some(Trouble::Broken),
            Some(Trouble::Full),
            Some(Trouble::Short),
        ];
        Self {
            seed,
            writers: 3 + random.below(4),
            writes: 3 + random.below(2),
            segment_bytes: [300, 700, 1500, 5000][random.below(4)],
            is_followed: random.percent(40),
            trouble: troubles[random.below(troubles.len())],
            left_out: None,
        }
    }

    /// Nothing goes wrong.
    pub(crate) fn smooth(self) -> Self {
        Self {
            trouble: None,
            ..self
        }
    }
}

/// A run, and the disk at each of its calls.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) history: History,
    pub(crate) tape: Vec<Moment>,
}

pub(crate) fn options(disk: &Simulated, segment_bytes: u64) -> LogOptions {
    LogOptions::default()
        .segment_bytes(segment_bytes)
        .disk(disk.disk())
}

pub(crate) fn reader(disk: &Simulated) -> seglake::Result<LogReader> {
    LogReader::open(folder(), Options::default().disk(disk.disk()))
}

/// An empty disk whose operations are points at which another thread may go on.
pub(crate) fn disk() -> Simulated {
    Simulated::new().pausing(pause)
}

/// Of sizes that end in, at and beyond sectors.
fn value(random: &mut Random, writer: usize, number: usize) -> Vec<u8> {
    let bytes = [0, 3, 20, 60, 130, 450, 700][random.below(7)];
    let mut value = format!("{writer}.{number} ").into_bytes();
    value.extend((0..bytes).map(|at| b'a' + u8::try_from(at % 26).unwrap()));
    value
}

/// One of the threads that write.
fn write(log: &SegmentLog, shared: &Shared, plan: Plan, writer: usize) {
    let mut random = Random::new(plan.seed.rotate_left(7) ^ writer as u64);
    let mut number = 0;
    for _ in 0..plan.writes {
        let many = match random.below(8) {
            0 => 2 + random.below(3),
            _ => 1,
        };
        let values = (0..many).map(|own| value(&mut random, writer, number + own));
        let values: Vec<_> = values.collect();
        number += many;
        let told = shared.write(values, |values| match values {
            [only] => log.write(b"t", only).map(|uuid| vec![uuid]),
            many => log.write_batch(many.iter().map(|own| NewRecord::new(b"t", own))),
        });
        if told.is_err() && random.percent(50) {
            shared.disk.make_room();
        }
        match random.below(12) {
            0 => drop(log.roll()),
            1 => drop(log.sync()),
            _ => {}
        }
    }
}

/// Follows the log until all writers have ended.
fn follow(shared: &Shared, writing: &AtomicUsize) -> seglake::Result<()> {
    let mut tail = reader(&shared.disk)?.tail(TailFrom::Start)?;
    loop {
        let is_last = writing.load(Ordering::Relaxed) == 0;
        while let Some(record) = tail.poll()? {
            shared.see(record.value());
        }
        if is_last {
            return Ok(());
        }
        thread::yield_now();
    }
}

/// Has the threads write. Comes within [`crate::schedule::run`].
pub(crate) fn work(plan: Plan, disk: &Simulated) -> Run {
    let shared = Shared::new(disk);
    disk.begin_tape();
    if let Some(is_of) = plan.left_out {
        disk.leave_out(is_of);
    }
    if let Some(trouble) = plan.trouble {
        let mut random = Random::new(plan.seed ^ 0x7472_6f75);
        disk.seed(random.next());
        disk.trouble(10 + random.below(80), trouble);
    }
    if let Ok(log) = SegmentLog::open(folder(), options(disk, plan.segment_bytes)) {
        let log = Arc::new(log);
        let writing = Arc::new(AtomicUsize::new(plan.writers));
        let writers = (0..plan.writers).map(|writer| {
            let (log, shared, writing) = (log.clone(), shared.clone(), writing.clone());
            thread::spawn(move || {
                write(&log, &shared, plan, writer);
                writing.fetch_sub(1, Ordering::Relaxed);
            })
        });
        let mut threads: Vec<_> = writers.collect();
        if plan.is_followed {
            let shared = shared.clone();
            let follow = move || {
                let followed = follow(&shared, &writing);
                if plan.trouble.is_none() {
                    followed.unwrap();
                }
            };
            threads.push(thread::spawn(follow));
        }
        for thread in threads {
            thread.join().unwrap();
        }
        let closed = log.close();
        if plan.trouble.is_none() {
            closed.unwrap();
        }
    }
    Run {
        history: shared.take(),
        tape: disk.end_tape(),
    }
}
