//! Threads that write to one log, end its segments, sync and close it: none waits for ever, and each is told the truth.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use seglake::Error;
use seglake::store::{NewRecord, Retention, SegmentLog};
use shuttle::thread;

use crate::history::{Fate, History, Shared};
use crate::oracle::values;
use crate::schedule::run;
use crate::simulated::{Call, Random, Simulated, Trouble};
use crate::workload::{disk, folder, options};

const RUNS: u64 = 300;

/// One of the things that a thread may ask of a log.
fn ask(log: &SegmentLog, shared: &Shared, random: &mut Random, name: &str) -> seglake::Result<()> {
    let write = |values: Vec<Vec<u8>>| {
        let told = shared.write(values, |values| {
            let records = values.iter().map(|own| NewRecord::new(b"t", own));
            match values {
                [only] => log.write(b"t", only).map(|uuid| vec![uuid]),
                _ => log.write_batch(records),
            }
        });
        told.map(drop)
    };
    match random.below(6) {
        0 => log.sync(),
        1 => log.roll(),
        2 => write(vec![
            format!("{name} a").into(),
            format!("{name} {}", "b".repeat(200)).into(),
        ]),
        _ => write(vec![name.into()]),
    }
}

/// Has three threads ask things of a log, the last of which closes it if that is wanted. Gives what came of it, and the error of
/// closing.
fn work(seed: u64, disk: &Simulated, closes: bool) -> (History, Option<Error>) {
    let shared = Shared::new(disk);
    let log = Arc::new(SegmentLog::open(folder(), options(disk, 300)).unwrap());
    let threads = (0..3).map(|number| {
        let (log, shared) = (log.clone(), shared.clone());
        thread::spawn(move || {
            let mut random = Random::new(seed ^ number << 32);
            for round in 0..4 {
                let _ = ask(&log, &shared, &mut random, &format!("{number}.{round}"));
            }
            if closes && number == 2 {
                let _ = log.close();
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
    let closed = log.close();
    (shared.take(), closed.err())
}

/// That exactly those records are there that were acknowledged, or may be.
fn check(history: &History, disk: &Simulated) {
    let found = values(disk).unwrap();
    for entry in &history.entries {
        let is_there = found.contains(&entry.value);
        match entry.ended.unwrap().1 {
            Fate::Acknowledged => assert!(is_there, "{entry:?} is lost"),
            Fate::Refused => assert!(!is_there, "{entry:?} was refused"),
            Fate::Unknown => {}
        }
    }
}

#[test]
fn each_is_told_the_truth() {
    for seed in 0..RUNS {
        run(seed, move || {
            let disk = disk();
            let (history, failed) = work(seed, &disk, false);
            assert!(failed.is_none(), "{failed:?}");
            let fates = history.entries.iter().map(|own| own.ended.unwrap().1);
            assert!(fates.into_iter().all(|fate| fate == Fate::Acknowledged));
            check(&history, &disk);
        });
    }
}

/// Who writes while another thread closes the log is refused, or is told that the record is there.
#[test]
fn closing_leaves_nobody_waiting() {
    let mut refused = 0;
    for seed in 0..RUNS {
        refused += run(seed, move || {
            let disk = disk();
            let (history, _) = work(seed, &disk, true);
            check(&history, &disk);
            let fates = history.entries.iter().map(|own| own.ended.unwrap().1);
            fates.filter(|fate| *fate == Fate::Refused).count()
        });
    }
    assert!(refused > 0);
}

/// After a failed sync of a segment those that waited are told that nobody knows, and all others are refused.
#[test]
fn a_failed_sync_leaves_nobody_waiting() {
    let mut unknown = 0;
    for seed in 0..RUNS {
        unknown += run(seed, move || {
            let disk = disk();
            disk.seed(seed);
            let is_sync = |own: &crate::simulated::Done| {
                own.call == Call::Sync && own.path.extension().is_some_and(|end| end == "active")
            };
            disk.trouble_at(is_sync, usize::try_from(seed % 5).unwrap(), Trouble::Broken);
            let (history, _) = work(seed, &disk, false);
            let fates = history.entries.iter().map(|own| own.ended.unwrap().1);
            let fates: Vec<_> = fates.collect();
            check(&history, &disk.after_power_loss(seed));
            fates.iter().filter(|own| **own == Fate::Unknown).count()
        });
    }
    assert!(unknown > 100, "{unknown}");
}

/// Old segments are removed by any thread, while others are sealed and removed in the background.
#[test]
fn nothing_removed_is_missed() {
    let mut removed = 0;
    for seed in 0..RUNS {
        removed += run(seed, move || {
            let disk = disk();
            let retention = Retention::default().bytes((seed % 2 == 0).then_some(600));
            let options = options(&disk, 300).retention(retention);
            let log = Arc::new(SegmentLog::open(folder(), options).unwrap());
            let (own, is_over) = (log.clone(), Arc::new(AtomicBool::new(false)));
            let ends = is_over.clone();
            let writer = thread::spawn(move || {
                for _ in 0..5 {
                    own.write(b"t", &[b'a'; 200]).unwrap();
                    own.roll().unwrap();
                }
                own.wait_sealed().unwrap();
                ends.store(true, Ordering::Release);
            });
            let mut removed = 0;
            while !is_over.load(Ordering::Acquire) {
                let retention = Retention::default().bytes(400);
                removed += log.retain(&retention).unwrap().len();
            }
            writer.join().unwrap();
            removed
        });
    }
    assert!(removed > 100, "{removed}");
}
