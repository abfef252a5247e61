//! Measures two ways to do one thing, in turns, and takes the median of their ratios. Other load on the machine slows both alike.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Rounds of a comparison: at least so many, and more until the time is used up. Each goes first in half of them.
const MIN_ROUNDS: usize = 8;
/// The time of a comparison in seconds, unless the environment says otherwise.
const SECONDS: f64 = 2.0;
const SECONDS_VARIABLE: &str = "SEGLAKE_RATIOS_SECONDS";
/// The shortest measurement: shorter work is repeated within it.
const MIN_RUN: Duration = Duration::from_millis(8);

/// The work of one run, to compute speeds.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Bytes: shown in GB/s.
    Bytes(usize),
    /// Messages, keys or similar: shown in millions a second.
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

/// The clock of a measurement.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    /// This thread's processor time: for work that neither waits nor has threads.
    Processor,
    /// Wall time.
    Wall,
}

impl Clock {
    pub(crate) fn now(self) -> Duration {
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

/// What seglake is compared with.
#[derive(Clone, Copy)]
pub(crate) enum Beside<'a> {
    /// The least work of any program for the same result. Only noise exceeds 1.00.
    Limit(&'a str),
    /// Another program or library that gives the same result.
    Peer(&'a str),
    /// seglake itself, with another size or another setting.
    Itself(&'a str),
    /// A fixed number, of which less is better.
    Goal(&'a str),
}

impl<'a> Beside<'a> {
    const fn name(self) -> &'a str {
        match self {
            Self::Limit(name) | Self::Peer(name) | Self::Itself(name) | Self::Goal(name) => name,
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Limit(_) => "limit",
            Self::Peer(_) => "peer",
            Self::Itself(_) => "itself",
            Self::Goal(_) => "goal",
        }
    }
}

/// One line of the table.
#[derive(Serialize, Deserialize)]
struct Row {
    name: String,
    /// What seglake is compared with.
    beside: String,
    /// Whether that is a limit, a peer, or seglake itself.
    kind: String,
    unit: String,
    ours: f64,
    reference: f64,
    /// How many times as fast ours is: the median of all rounds.
    ratio: f64,
    /// The quartiles of the rounds' ratios.
    low: f64,
    high: f64,
    rounds: usize,
    target: Option<f64>,
    holds: Option<bool>,
}

/// The rounds of one comparison: the rate a second, or the cost, of each side, and their ratio.
#[derive(Default)]
pub(crate) struct Rounds {
    pub(crate) ours: Vec<f64>,
    pub(crate) reference: Vec<f64>,
    /// How many times as good ours is.
    pub(crate) ratios: Vec<f64>,
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

    /// Sets the clock of the comparisons that follow.
    pub(crate) fn clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Compares `ours` with `theirs`, which do the same work. `target` is the ratio to reach: how many times as fast
    /// ours is.
    pub(crate) fn run<A, B>(
        &mut self,
        name: impl Into<String>,
        beside: Beside<'_>,
        work: Work,
        target: impl Into<Option<f64>>,
        ours: impl FnMut() -> A,
        theirs: impl FnMut() -> B,
    ) {
        self.run_each(name, beside, [work; 2], target, || (), ours, theirs);
    }

    /// As [`run`](Self::run), if the two sides do different amounts of work: `works` of the same unit. Their rates are compared.
    /// `prepare` runs before each round and is not measured.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is one property of a comparison"
    )]
    pub(crate) fn run_each<A, B>(
        &mut self,
        name: impl Into<String>,
        beside: Beside<'_>,
        works: [Work; 2],
        target: impl Into<Option<f64>>,
        mut prepare: impl FnMut(),
        mut ours: impl FnMut() -> A,
        mut theirs: impl FnMut() -> B,
    ) {
        let clock = self.clock;
        prepare();
        // The first run of each warms up, and shows how often it is to be repeated.
        let repeats = [seconds(clock, 1, &mut ours), seconds(clock, 1, &mut theirs)].map(|once| {
            (MIN_RUN.as_secs_f64() / once.max(1e-9))
                .ceil()
                .clamp(1.0, 1e6) as usize
        });
        self.turns(
            name,
            beside,
            works[0].unit(),
            target,
            prepare,
            || works[0].amount() / seconds(clock, repeats[0], &mut ours),
            || works[1].amount() / seconds(clock, repeats[1], &mut theirs),
        );
    }

    /// Compares two sides that measure themselves: each gives its rate, in `unit`. `prepare` runs before each round.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is one property of a comparison"
    )]
    pub(crate) fn turns(
        &mut self,
        name: impl Into<String>,
        beside: Beside<'_>,
        unit: &'static str,
        target: impl Into<Option<f64>>,
        mut prepare: impl FnMut(),
        mut ours: impl FnMut() -> f64,
        mut theirs: impl FnMut() -> f64,
    ) {
        let (begun, time) = (Instant::now(), time());
        let mut rounds = Rounds::default();
        // An even number of rounds, so that each goes first as often as the other.
        while rounds.ratios.len() < MIN_ROUNDS
            || rounds.ratios.len() % 2 == 1
            || begun.elapsed() < time
        {
            prepare();
            let (own, other);
            if rounds.ratios.len().is_multiple_of(2) {
                own = ours();
                other = theirs();
            } else {
                other = theirs();
                own = ours();
            }
            rounds.ours.push(own);
            rounds.reference.push(other);
            rounds.ratios.push(own / other);
        }
        self.enter(name, beside, unit, rounds, target);
    }

    /// Adds a row of values that were measured elsewhere, in `unit`.
    pub(crate) fn enter(
        &mut self,
        name: impl Into<String>,
        beside: Beside<'_>,
        unit: &'static str,
        mut rounds: Rounds,
        target: impl Into<Option<f64>>,
    ) {
        let target = target.into();
        let ratio = median(&mut rounds.ratios);
        let row = Row {
            name: name.into(),
            beside: beside.name().to_owned(),
            kind: beside.kind().to_owned(),
            unit: unit.to_owned(),
            ours: median(&mut rounds.ours),
            reference: median(&mut rounds.reference),
            ratio,
            low: quantile(&mut rounds.ratios, 0.25),
            high: quantile(&mut rounds.ratios, 0.75),
            rounds: rounds.ratios.len(),
            target,
            holds: target.map(|target| ratio >= target),
        };
        self.add(row);
    }

    /// Adds the rows of a suite that another process has measured, of those names that are `wanted`.
    pub(crate) fn take_over(&mut self, path: &Path, wanted: impl Fn(&str) -> bool) {
        let rows: Vec<Row> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        for row in rows.into_iter().filter(|row| wanted(&row.name)) {
            self.add(row);
        }
    }

    fn add(&mut self, row: Row) {
        println!(
            "{:<44} {:>9.3} {:<5} {:<44} {:>9.3}  ratio {:>7.2} ({:.2} to {:.2}){}",
            row.name,
            row.ours,
            row.unit,
            row.beside,
            row.reference,
            row.ratio,
            row.low,
            row.high,
            row.target.map_or(String::new(), |target| {
                format!(
                    "  target {target:.2}{}",
                    if row.ratio >= target { "" } else { "  MISSED" }
                )
            })
        );
        self.rows.push(row);
    }

    /// Writes the rows into the folder that the environment names, if it names one.
    pub(crate) fn finish(self) {
        if let Some(folder) = std::env::var_os("SEGLAKE_RATIOS").map(PathBuf::from) {
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join(format!("{}.json", self.suite));
            std::fs::write(path, serde_json::to_vec_pretty(&self.rows).unwrap()).unwrap();
        }
    }
}

/// The time of a comparison.
fn time() -> Duration {
    let seconds = std::env::var(SECONDS_VARIABLE)
        .map_or(SECONDS, |text| text.parse().expect(SECONDS_VARIABLE));
    Duration::from_secs_f64(seconds)
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
    quantile(values, 0.5)
}

/// The quantile of this share, interpolated between two values.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = share * (values.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    values[below] + (values[above] - values[below]) * place.fract()
}
