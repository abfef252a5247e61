//! Two ways to do one thing, in turns, and the median of their ratios: what else the machine does hits both alike.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Rounds of a comparison: at least so many, and more until the time is used up.
const MIN_ROUNDS: usize = 7;
const TIME: Duration = Duration::from_secs(2);
/// One measurement lasts at least so long: what is shorter is repeated within it.
const MIN_RUN: Duration = Duration::from_millis(8);

/// What one run works on, so that it can be told per second.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each suite takes what it needs")]
pub(crate) enum Work {
    /// Bytes: told in GB/s.
    Bytes(usize),
    /// Messages, keys or such: told in millions a second.
    Items(usize),
}

impl Work {
    /// In [`unit`](Self::unit), by the second.
    fn amount(self) -> f64 {
        match self {
            Self::Bytes(bytes) => bytes as f64 / 1e9,
            Self::Items(items) => items as f64 / 1e6,
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Bytes(_) => "GB/s",
            Self::Items(_) => "M/s",
        }
    }
}

/// Which clock counts.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each suite takes what it needs")]
pub(crate) enum Clock {
    /// The time that this thread had on a processor: for what neither waits nor has threads.
    Processor,
    /// The time that passed.
    Wall,
}

impl Clock {
    fn now(self) -> Duration {
        match self {
            Self::Processor => {
                let time = clock_gettime(ClockId::ThreadCPUTime);
                Duration::new(
                    time.tv_sec.cast_unsigned(),
                    u32::try_from(time.tv_nsec).unwrap(),
                )
            }
            Self::Wall => {
                static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
                BEGUN.get_or_init(Instant::now).elapsed()
            }
        }
    }
}

/// One line of the table.
#[derive(Serialize)]
struct Row {
    name: String,
    /// What ours is measured beside.
    beside: String,
    unit: &'static str,
    ours: f64,
    reference: f64,
    /// How many times as fast ours is.
    ratio: f64,
    target: Option<f64>,
    holds: Option<bool>,
}

/// The comparisons of one suite.
pub(crate) struct Comparison {
    suite: &'static str,
    clock: Clock,
    rows: Vec<Row>,
}

impl Comparison {
    pub(crate) const fn new(suite: &'static str) -> Self {
        Self {
            suite,
            clock: Clock::Processor,
            rows: Vec::new(),
        }
    }

    /// What follows is measured by this clock.
    #[allow(dead_code, reason = "for suites that wait or have threads")]
    pub(crate) fn clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Measures `ours` beside `theirs`, which do the same work. `target` is the ratio to reach: how many times as fast ours is.
    pub(crate) fn run<A, B>(
        &mut self,
        name: impl Into<String>,
        beside: &str,
        work: Work,
        target: impl Into<Option<f64>>,
        ours: impl FnMut() -> A,
        theirs: impl FnMut() -> B,
    ) {
        self.run_each(name, beside, [work; 2], target, ours, theirs);
    }

    /// As [`run`](Self::run), of two that do `works`, in the same unit: what is compared is how much of it a second.
    pub(crate) fn run_each<A, B>(
        &mut self,
        name: impl Into<String>,
        beside: &str,
        works: [Work; 2],
        target: impl Into<Option<f64>>,
        mut ours: impl FnMut() -> A,
        mut theirs: impl FnMut() -> B,
    ) {
        let clock = self.clock;
        // The first run of each warms up, and tells how often it is to be repeated.
        let repeats = [seconds(clock, 1, &mut ours), seconds(clock, 1, &mut theirs)].map(|once| {
            (MIN_RUN.as_secs_f64() / once.max(1e-9))
                .ceil()
                .clamp(1.0, 1e6) as usize
        });
        let begun = Instant::now();
        let (mut own, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        while ratios.len() < MIN_ROUNDS || begun.elapsed() < TIME {
            let mine = seconds(clock, repeats[0], &mut ours);
            let peer = seconds(clock, repeats[1], &mut theirs);
            own.push(works[0].amount() / mine);
            other.push(works[1].amount() / peer);
            ratios.push(works[0].amount() / mine / (works[1].amount() / peer));
        }
        let (ours, reference) = (median(&mut own), median(&mut other));
        let unit = works[0].unit();
        let ratio = median(&mut ratios);
        self.enter(name, beside, unit, (ours, reference), ratio, target);
    }

    /// Enters what was measured otherwise, as `ours` and `reference` in `unit`; `ratio` is how many times as good ours is.
    pub(crate) fn enter(
        &mut self,
        name: impl Into<String>,
        beside: &str,
        unit: &'static str,
        (ours, reference): (f64, f64),
        ratio: f64,
        target: impl Into<Option<f64>>,
    ) {
        let target = target.into();
        let row = Row {
            name: name.into(),
            beside: beside.to_owned(),
            unit,
            ours,
            reference,
            ratio,
            target,
            holds: target.map(|target| ratio >= target),
        };
        println!(
            "{:<44} {:>9.3} {:<5} {:<34} {:>9.3}  ratio {:>7.2}{}",
            row.name,
            row.ours,
            row.unit,
            row.beside,
            row.reference,
            row.ratio,
            target.map_or(String::new(), |target| {
                format!(
                    "  target {target:.2}{}",
                    if ratio >= target { "" } else { "  MISSED" }
                )
            })
        );
        self.rows.push(row);
    }

    /// Writes what was found, where that is wanted.
    pub(crate) fn finish(self) {
        if let Some(folder) = std::env::var_os("SEGLAKE_RATIOS").map(PathBuf::from) {
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join(format!("{}.json", self.suite));
            std::fs::write(path, serde_json::to_vec_pretty(&self.rows).unwrap()).unwrap();
        }
    }
}

/// How long one run takes, of `repeats` in a row.
fn seconds<T>(clock: Clock, repeats: usize, run: &mut impl FnMut() -> T) -> f64 {
    let begun = clock.now();
    for _ in 0..repeats {
        std::hint::black_box(run());
    }
    (clock.now() - begun).as_secs_f64() / repeats as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
