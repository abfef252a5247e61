//! How long a record takes from the disk to a reader in another process.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use seglake::Options;
use seglake::store::{Durability, LogReader, TailFrom};
use tempfile::TempDir;

use super::{ENDLESS, VALUE_BYTES, open};
use crate::compare::{Beside, Comparison, Rounds, quantile};
use crate::messages::TYPE;

/// The argument that makes this program follow a log, and print when each record came.
pub(crate) const FOLLOW: &str = "--follow-log";
const ROUNDS: usize = 6;
/// The quantiles to measure, and the goals, in milliseconds.
const GOALS: [(&str, f64, f64, &str); 2] =
    [("p50", 0.5, 2.0, "2 ms"), ("p99", 0.99, 20.0, "20 ms")];
/// Longer than any writer takes.
const PATIENCE: Duration = Duration::from_secs(60);
const NS_PER_MS: f64 = 1e6;

pub(super) fn run(comparison: &mut Comparison) {
    for (threads, records) in [(1, 4_000), (64, 32_000)] {
        let rounds: Vec<Vec<f64>> = (0..ROUNDS).map(|_| latencies(threads, records)).collect();
        for (name, share, goal, beside) in GOALS {
            let mut found = Rounds::default();
            for latencies in &rounds {
                let own = quantile(&mut latencies.clone(), share);
                found.ours.push(own);
                found.reference.push(goal);
                found.ratios.push(goal / own);
            }
            // With many threads, the one whose call returns first is not known: its call's beginning is before the sync.
            let from = if threads == 1 { "fsync" } else { "the call" };
            let writers = if threads == 1 {
                "1 thread writes".to_owned()
            } else {
                format!("{threads} threads write")
            };
            comparison.enter(
                format!("{writers}, from {from} to a reader elsewhere, {name}"),
                Beside::Goal(beside),
                "ms",
                found,
                1.0,
            );
        }
    }
}

/// The system's monotonic clock, which all processes share, in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
}

/// Writes at full speed, and gives how long after its sync each record reached a reader in another process, in milliseconds.
fn latencies(threads: usize, records: usize) -> Vec<f64> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log");
    let log = open(&path, Durability::Fsync, ENDLESS);
    let mut reader = Command::new(std::env::current_exe().unwrap())
        .arg(FOLLOW)
        .arg(&path)
        .arg(records.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(reader.stdout.take().unwrap());
    told.read_line(&mut String::new()).unwrap();
    let synced: Vec<AtomicU64> = (0..records).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for own in synced.chunks(records / threads).enumerate() {
            let log = &log;
            scope.spawn(move || {
                let (chunk, synced) = own;
                for (place, synced) in synced.iter().enumerate() {
                    let number = (chunk * (records / threads) + place) as u64;
                    let mut value = [0x5a; VALUE_BYTES];
                    value[..8].copy_from_slice(&number.to_be_bytes());
                    let called = now();
                    log.write(TYPE, &value).unwrap();
                    let from = if threads == 1 { now() } else { called };
                    synced.store(from, Ordering::Relaxed);
                }
            });
        }
    });
    let mut arrivals = Vec::new();
    told.read_to_end(&mut arrivals).unwrap();
    assert!(reader.wait().unwrap().success());
    log.close().unwrap();
    let (arrivals, []) = arrivals.as_chunks::<8>() else {
        panic!("a part of a number")
    };
    assert_eq!(arrivals.len(), records);
    let synced = synced.iter().map(|own| own.load(Ordering::Relaxed));
    let arrivals = arrivals.iter().map(|own| u64::from_be_bytes(*own));
    let late = arrivals
        .zip(synced)
        .map(|(at, synced)| at.saturating_sub(synced));
    late.map(|late| late as f64 / NS_PER_MS).collect()
}

/// Takes the log's folder and the number of records. Prints a line when it is ready, then the time of each by its number.
pub(crate) fn print_arrivals(arguments: &[String]) {
    let [path, records] = arguments else {
        panic!("{FOLLOW} takes a folder and a number")
    };
    let mut arrivals = vec![0; records.parse().unwrap()];
    let mut tail = LogReader::open(Path::new(path), Options::default())
        .and_then(|reader| reader.tail(TailFrom::Start))
        .unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "ready").unwrap();
    for _ in 0..arrivals.len() {
        let record = tail.next_within(PATIENCE).unwrap().unwrap();
        let number = u64::from_be_bytes(*record.value().first_chunk().unwrap());
        arrivals[usize::try_from(number).unwrap()] = now();
    }
    for at in arrivals {
        out.write_all(&at.to_be_bytes()).unwrap();
    }
}
