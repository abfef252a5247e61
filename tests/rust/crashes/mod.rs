//! Work on a simulated disk that loses power: before each call of the disk in turn, and after the last one. What is promised must
//! hold in each state that the disk may be in afterwards.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::simulated::{Call, Done, Random, Simulated, Trouble};

/// How many states are looked at after each loss of power: this many in `make test`, more in `make crash`.
const ROUNDS: &str = "SEGLAKE_CRASH_ROUNDS";
/// The first of their seeds, to run a failure again.
const SEED: &str = "SEGLAKE_CRASH_SEED";

pub(crate) type Files = BTreeMap<String, Vec<u8>>;
pub(crate) type Checked = Result<(), String>;

/// What was acknowledged before the power was lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledged {
    /// So many records were synced.
    pub(crate) records: u64,
    /// The files at that time.
    pub(crate) files: Files,
    /// After so many calls the file was open, and what may have been torn removed.
    pub(crate) opened: Option<usize>,
    /// The work came to its end.
    pub(crate) all: bool,
}

/// What a check looks at.
pub(crate) struct Aftermath<'a> {
    pub(crate) disk: Simulated,
    pub(crate) before: &'a Files,
    /// The files after work that nothing disturbed.
    pub(crate) after: &'a Files,
    pub(crate) acknowledged: &'a Acknowledged,
    /// The power was lost before this call.
    pub(crate) at: usize,
    /// Nothing went wrong before the power was lost.
    pub(crate) is_smooth: bool,
    /// For what the check itself has to choose.
    pub(crate) random: Random,
}

/// Work that is cut short by losses of power.
pub(crate) struct Crashes<'a> {
    pub(crate) name: String,
    /// Makes the files that are there before, and settles what is certain of them.
    pub(crate) prepare: &'a dyn Fn(&Simulated),
    pub(crate) work: &'a dyn Fn(&Simulated, &mut Acknowledged) -> seglake::Result<()>,
    pub(crate) check: &'a dyn Fn(Aftermath<'_>) -> Checked,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |own| own.parse().unwrap())
}

/// The seeds to try after each loss of power, if `make test` tries so many.
pub(crate) fn seeds(rounds: u64) -> Range<u64> {
    let first = number(SEED, 0);
    first..first + number(ROUNDS, rounds)
}

impl Crashes<'_> {
    fn start(&self) -> Simulated {
        let disk = Simulated::new();
        (self.prepare)(&disk);
        disk
    }

    fn says(&self, error: &seglake::Error) -> String {
        format!("{}: {error}", self.name)
    }

    fn work(&self, disk: &Simulated) -> (Acknowledged, seglake::Result<()>) {
        let mut acknowledged = Acknowledged::default();
        let done = (self.work)(disk, &mut acknowledged);
        acknowledged.all = done.is_ok();
        (acknowledged, done)
    }

    /// Loses power everywhere.
    pub(crate) fn crash(&self, seeds: Range<u64>) {
        let states = self
            .try_crash(None, seeds)
            .unwrap_or_else(|(_, failure)| panic!("{failure}"));
        println!("{}: {states} states after a loss of power", self.name);
    }

    /// Loses power everywhere, with one call left out. Gives how many states were looked at, or the first seed that breaks a
    /// promise, and how.
    fn try_crash(&self, skipped: Option<usize>, seeds: Range<u64>) -> Result<usize, (u64, String)> {
        let start = self.start();
        let before = start.visible();
        let begin = || {
            let disk = start.copy();
            skipped
                .iter()
                .for_each(|at| disk.trouble(*at, Trouble::Skip));
            disk
        };
        let undisturbed = start.copy();
        self.work(&undisturbed)
            .1
            .map_err(|error| (seeds.start, self.says(&error)))?;
        let after = undisturbed.visible();
        let whole = begin();
        let done = self.work(&whole).1;
        done.map_err(|error| (seeds.start, self.says(&error)))?;
        let calls = whole.calls();
        let crash = |at| {
            let disk = begin();
            disk.trouble(at, Trouble::Crash);
            let (acknowledged, _) = self.work(&disk);
            (disk, acknowledged)
        };
        let crashed: Vec<_> = (0..=calls.len()).map(crash).collect();
        let mut states = 0;
        for seed in seeds {
            for (at, (disk, acknowledged)) in crashed.iter().enumerate() {
                let mut random = Random::new(seed ^ (at as u64) << 32);
                states += 1;
                let aftermath = Aftermath {
                    disk: disk.after_power_loss(random.next()),
                    before: &before,
                    after: &after,
                    acknowledged,
                    at,
                    is_smooth: true,
                    random,
                };
                (self.check)(aftermath).map_err(|failure| {
                    let call = calls.get(at);
                    let failure = format!(
                        "{}: power lost before call {at} of {}, {call:?}, {SEED}={seed}: {failure}",
                        self.name,
                        calls.len()
                    );
                    (seed, failure)
                })?;
            }
        }
        Ok(states)
    }

    /// Leaves out one call after the other of those that make something last. Each time a promise must be broken that the same seeds
    /// do not break with all calls. Gives how many calls there were.
    pub(crate) fn mutate(
        &self,
        seeds: Range<u64>,
        is_needed: impl Fn(&[Done], usize) -> bool,
    ) -> usize {
        let disk = self.start();
        self.work(&disk).1.unwrap();
        let calls = disk.calls();
        let durable = calls
            .iter()
            .enumerate()
            .filter(|(_, own)| own.call.is_durable());
        let (mut tried, mut end) = (0, seeds.start);
        for (at, call) in durable.filter(|(at, _)| is_needed(&calls, *at)) {
            let Err((seed, _)) = self.try_crash(Some(at), seeds.clone()) else {
                panic!(
                    "{}: nobody notices that call {at} is left out: {call:?} of {calls:?}",
                    self.name
                );
            };
            tried += 1;
            end = end.max(seed + 1);
        }
        self.crash(seeds.start..end);
        tried
    }

    /// Has a call fail, or the disk fill up, and then loses power somewhere.
    pub(crate) fn trouble(&self, seeds: Range<u64>) {
        let start = self.start();
        let before = start.visible();
        let whole = start.copy();
        self.work(&whole).1.unwrap();
        let (after, calls) = (whole.visible(), whole.calls());
        for (at, _) in calls.iter().enumerate() {
            for seed in seeds.clone() {
                let mut random = Random::new(seed ^ (at as u64) << 32);
                let disk = start.copy();
                disk.seed(random.next());
                let troubles = [Trouble::Broken, Trouble::Full, Trouble::Short];
                let trouble = troubles[random.below(3)];
                disk.trouble(at, trouble);
                // The work that comes after an error may be longer or shorter.
                let crash = at + 1 + random.below(calls.len() - at + 1);
                disk.trouble(crash, Trouble::Crash);
                let (acknowledged, _) = self.work(&disk);
                let aftermath = Aftermath {
                    disk: disk.after_power_loss(random.next()),
                    before: &before,
                    after: &after,
                    acknowledged: &acknowledged,
                    at: crash,
                    is_smooth: false,
                    random,
                };
                (self.check)(aftermath).unwrap_or_else(|failure| {
                    panic!(
                        "{}: {trouble:?} at call {at}, {:?}, power lost before call {crash}, {SEED}={seed}: {failure}",
                        self.name, calls[at]
                    )
                });
            }
        }
    }
}

/// That each file is as before or as after, and as after if the work came to its end. If `last` is as after, so is all, unless an
/// error made the work take all back.
pub(crate) fn old_or_new(aftermath: &Aftermath<'_>, last: &str) -> Checked {
    let (before, after) = (aftermath.before, aftermath.after);
    let files = aftermath.disk.visible();
    for (path, content) in &files {
        let own = Some(content);
        if before.get(path) != own && after.get(path) != own {
            return Err(format!("half of {path}"));
        }
    }
    for path in before.keys().filter(|path| after.contains_key(*path)) {
        if !files.contains_key(path) {
            return Err(format!("{path} is gone"));
        }
    }
    let is_late = aftermath.is_smooth
        && before.get(last) != after.get(last)
        && files.get(last) == after.get(last);
    if (aftermath.acknowledged.all || is_late) && files != *after {
        let names: Vec<_> = files.keys().collect();
        return Err(format!("not on the disk as it should be: {names:?}"));
    }
    Ok(())
}

/// Whether a call is one that a promise hangs on.
pub(crate) fn is_needed(calls: &[Done], at: usize) -> bool {
    let is_in = |at: usize, part: &str| {
        calls[at]
            .path
            .to_str()
            .is_some_and(|own| own.contains(part))
    };
    // What is in a private folder is looked for by nobody: that its names last is of no use, but its writer does not know.
    let is_private = calls[at].call == Call::SyncFolder && is_in(at, ".seglake.");
    // What is replaced gets a second name, to be put back after an error that does not end the process.
    let is_aside = calls[at].call == Call::Link && !is_in(at, ".seglake.");
    // One of two is enough.
    let is_twice = calls[at].call == Call::SyncFolder && is_repeated(calls, at);
    !is_private && !is_aside && !is_twice
}

/// Whether the same folder is synced before or after, and no name changes in between.
fn is_repeated(calls: &[Done], at: usize) -> bool {
    let is_quiet = |own: &&Done| matches!(own.call, Call::Write | Call::SetLen | Call::Sync);
    let is_same = |own: Option<&Done>| {
        own.is_some_and(|own| own.call == Call::SyncFolder && own.path == calls[at].path)
    };
    is_same(calls[at + 1..].iter().find(|own| !is_quiet(own)))
        || is_same(calls[..at].iter().rfind(|own| !is_quiet(own)))
}
