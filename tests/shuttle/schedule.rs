//! Runs threads in an order that a seed decides.

use std::sync::{Arc, Mutex};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use seglake::uuid6::Generator;

use crate::simulated::Random;

/// Far more than any run takes: threads that never come to an end fail.
const MOST_STEPS: usize = 3_000_000;
/// Of a thread: what the code takes without optimization.
const STACK_BYTES: usize = 512 << 10;

/// One run, whose seed says which thread goes on.
#[derive(Debug)]
struct Seeded {
    random: Random,
    /// How often the same thread goes on, of a hundred times. Some mistakes show only if threads take turns at each step, others
    /// only if one does much while another waits.
    same: usize,
    is_begun: bool,
}

impl Scheduler for Seeded {
    fn new_execution(&mut self) -> Option<Schedule> {
        let is_begun = std::mem::replace(&mut self.is_begun, true);
        (!is_begun).then(|| Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let stays = !is_yielding && self.random.percent(self.same);
        let current = current.filter(|_| stays);
        let same = runnable.iter().find(|task| Some(task.id()) == current);
        let next = same.unwrap_or(&runnable[self.random.below(runnable.len())]);
        Some(next.id())
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next()
    }
}

/// Runs threads that are begun by `work`, and gives what it returns.
///
/// # Panics
/// If a thread panics, if all threads wait for each other, or if they never end.
pub(crate) fn run<T: Send + 'static>(seed: u64, work: impl FnOnce() -> T + Send + 'static) -> T {
    let mut random = Random::new(seed);
    let same = [0, 50, 90][random.below(3)];
    let scheduler = Seeded {
        random,
        same,
        is_begun: false,
    };
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    config.silence_warnings = true;
    config
        .ungraceful_shutdown_config
        .immediately_return_on_panic = true;
    let (work, done) = (Mutex::new(Some(work)), Arc::new(Mutex::new(None)));
    let own = done.clone();
    Runner::new(scheduler, config).run(move || {
        let work = work.lock().unwrap().take().unwrap();
        let result = work();
        *own.lock().unwrap() = Some(result);
    });
    done.lock().unwrap().take().unwrap()
}

/// Lets another thread go on, if the seed says so. Gives the time: the first half of a UUID that was made now.
pub(crate) fn pause() -> u64 {
    // Any operation that threads can see of each other is such a point.
    shuttle::thread::sleep(std::time::Duration::ZERO);
    let now = Generator::default().now();
    u64::from_be_bytes(now.as_bytes()[..8].try_into().unwrap())
}
