//! Locks, threads and clocks for code whose threads wait for each other. No other module of that code names those of the standard
//! library, because tests put others in their place (`cfg(shuttle)`, tests/shuttle). Then a seed decides which thread goes on at each
//! lock and wait, what a clock shows, and whether a wait with a timeout ends by it.

use std::sync::{LockResult, PoisonError};

#[cfg(shuttle)]
mod scheduled;
#[cfg(not(shuttle))]
mod system;

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
