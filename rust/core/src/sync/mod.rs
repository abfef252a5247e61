//! Locks, threads and clocks for code whose threads wait for each other. No other module of that code names those of the standard
//! library, because tests put others in their place (`cfg(shuttle)`, tests/shuttle). Then a seed decides which thread goes on at each
//! lock and wait, what a clock shows, and whether a wait with a timeout ends by it.

use std::sync::{LockResult, PoisonError};

mod fifo;
#[cfg(shuttle)]
mod scheduled;

pub(crate) use fifo::{Receiver, Sender, Taken, fifo};

#[cfg(shuttle)]
pub(crate) use scheduled::*;
#[cfg(not(shuttle))]
pub(crate) use system::*;

/// Takes what a lock guards also after a thread panicked that had it. For what is as it should be between any two of its changes.
pub(crate) trait Unpoisoned<T> {
    /// What is guarded, or the guard.
    fn unpoisoned(self) -> T;
}

impl<T> Unpoisoned<T> for LockResult<T> {
    fn unpoisoned(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those of the standard library.
#[cfg(not(shuttle))]
mod system {
    use std::io;
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
    pub(crate) use std::thread::{Builder, JoinHandle, Scope, scope, sleep};
    pub(crate) use std::time::Instant;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use uuid::Uuid;

    /// Starts a thread that ends before its scope does.
    pub(crate) fn spawn_scoped<'scope>(
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        work: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        let thread = Builder::new().name(name.to_owned());
        thread.spawn_scoped(scope, work).map(drop)
    }

    /// The present time since 1970-01-01 UTC; that day for a clock before it.
    pub(crate) fn since_epoch() -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default()
    }

    /// 122 random bits, and 6 that are not.
    pub(crate) fn random() -> Uuid {
        Uuid::new_v4()
    }
}
