//! Losses of power while several threads write.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::history::{groups, ways};
use crate::oracle::lose_power;
use crate::schedule;
use crate::simulated::{Call, Done, IsOf, Random};
use crate::workload::{Plan, Run, disk, work};

/// How many different losses of power are looked at: this many in `make test`, more in `make crash`.
const LOSSES: &str = "SEGLAKE_CRASH_LOSSES";
/// The first seed, to run a failure again.
const SEED: &str = "SEGLAKE_CRASH_SEED";

/// How many losses are looked at in one run of threads.
const TOGETHER: usize = 8;
/// How many states are looked at after a loss of power, where one group is synced while another waits, and elsewhere.
const STATES: [usize; 2] = [20, 1];

/// What was tried.
#[derive(Debug, Default)]
struct Counts {
    runs: usize,
    losses: usize,
    /// At least two groups of records were not acknowledged.
    pending: usize,
    /// One group was being synced, and another one waited in memory.
    overlap: usize,
    /// What was called when power was lost, and what survived.
    distinct: HashSet<u64>,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.losses += other.losses;
        self.pending += other.pending;
        self.overlap += other.overlap;
        self.distinct.extend(other.distinct);
    }
}

/// Loses power in the run of a seed.
fn crash(plan: Plan) -> Result<Counts, String> {
    let run: Arc<Run> = Arc::new(schedule::run(plan.seed, move || work(plan, &disk())));
    let ways = ways(&run.history, &run.tape);
    let mut random = Random::new(plan.seed ^ 0x6c6f_7373);
    let mut counts = Counts {
        runs: 1,
        ..Counts::default()
    };
    let mut losses = Vec::new();
    for at in 0..run.tape.len() {
        let groups = groups(&run.history, &ways, &run.tape, at);
        let states = STATES[usize::from(!groups.overlap)];
        counts.losses += states;
        counts.pending += if groups.pending > 1 { states } else { 0 };
        counts.overlap += if groups.overlap { states } else { 0 };
        losses.extend((0..states).map(|_| (at, random.next())));
    }
    for some in losses.chunks(TOGETHER) {
        let (run, some) = (run.clone(), some.to_vec());
        let survivors = schedule::run(random.next(), move || {
            let look = |(at, seed): (usize, u64)| {
                let call = &run.tape[at].call;
                let told = lose_power(&run, at, seed).map_err(|failure| {
                    let call = call.as_ref().map(|own| (own.call, &own.path));
                    format!(
                        "{SEED}={}, {plan:?}, power lost before call {at}, {call:?}: {failure}",
                        plan.seed
                    )
                })?;
                let mut hasher = DefaultHasher::new();
                call.as_ref()
                    .map(|own| (own.call, &own.path))
                    .hash(&mut hasher);
                told.hash(&mut hasher);
                Ok(hasher.finish())
            };
            some.into_iter()
                .map(look)
                .collect::<Result<Vec<_>, String>>()
        })?;
        counts.distinct.extend(survivors);
    }
    Ok(counts)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |own| own.parse().unwrap())
}

/// Loses power in runs of one seed after the other, in two threads, until there are so many different losses.
fn crashes(first: u64, losses: usize, plan: impl Fn(u64) -> Plan + Sync) -> Result<Counts, String> {
    let (next, is_over) = (AtomicU64::new(first), AtomicBool::new(false));
    let all = Mutex::new(Ok(Counts::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let counts = crash(plan(seed));
                    let mut all = all.lock().unwrap();
                    let Ok(sum) = &mut *all else { return };
                    match counts {
                        Ok(counts) => sum.add(counts),
                        Err(failure) => {
                            *all = Err(failure);
                            is_over.store(true, Ordering::Relaxed);
                            return;
                        }
                    }
                    is_over.fetch_or(sum.distinct.len() >= losses, Ordering::Relaxed);
                }
            });
        }
    });
    all.into_inner().unwrap()
}

#[test]
fn what_was_promised_stays() {
    let begun = Instant::now();
    let losses = usize::try_from(number(LOSSES, 10_000)).unwrap();
    let counts =
        crashes(number(SEED, 0), losses, Plan::of).unwrap_or_else(|failure| panic!("{failure}"));
    println!(
        "a log, several threads: {} distinct pairs of operation and survivors, of {} losses of power in {} runs; \
         {} with two groups pending, {} with one being synced while another waits; {:.0?}",
        counts.distinct.len(),
        counts.losses,
        counts.runs,
        counts.pending,
        counts.overlap,
        begun.elapsed()
    );
    assert!(
        counts.overlap * 2 >= counts.losses,
        "too few with two groups pending"
    );
}

fn has_end(own: &Done, end: &str) -> bool {
    own.path.to_str().unwrap().ends_with(end)
}

/// Calls that make something last, by what they are needed for.
fn kinds() -> [(&'static str, IsOf); 6] {
    [
        ("syncs of segments", |own| {
            own.call == Call::Sync && has_end(own, ".active")
        }),
        ("syncs of sealed segments", |own| {
            own.call == Call::Sync && has_end(own, ".tmp")
        }),
        ("syncs of the mark", |own| {
            own.call == Call::Sync && has_end(own, "_mark")
        }),
        ("names of sealed segments", |own| own.call == Call::Rename),
        ("syncs of the log's folder", |own| {
            own.call == Call::SyncFolder && has_end(own, "/log")
        }),
        ("the sync of the folder above", |own| {
            own.call == Call::SyncFolder && has_end(own, "/data")
        }),
    ]
}

#[test]
fn no_kind_of_sync_can_be_left_out() {
    for (name, is_of) in kinds() {
        let plan = |seed| Plan {
            left_out: Some(is_of),
            ..Plan::of(seed).smooth()
        };
        assert!(
            crashes(0, 4_000, plan).is_err(),
            "nobody notices that {name} are left out"
        );
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in 0..10 {
        let run = || {
            let plan = Plan::of(seed);
            let run = schedule::run(seed, move || work(plan, &disk()));
            let calls = run
                .tape
                .iter()
                .map(|own| own.call.clone())
                .collect::<Vec<_>>();
            format!("{calls:?} {:?}", run.history.entries)
        };
        assert!(run() == run(), "seed {seed}");
    }
}
