//! Values that one thread at a time uses. Who would wait for himself, or for a thread that a fork left behind, gets an error
//! instead of waiting for ever: signal handlers, finalisers and the caller's own file objects run Python code in the middle of
//! ours, and that code may use the same reader or writer again.

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often, and at what intervals, it is looked again whether a lock without a holder's number is one that a fork left behind.
const FORK_CHECKS: usize = 1000;
const FORK_CHECK_INTERVAL: Duration = Duration::from_micros(10);

/// How many of a thread's number's bits count threads; those above say after how many forks it began.
const THREAD_BITS: u32 = 40;

/// How many forks this process is away from the one that loaded the extension.
static FORKS: AtomicU64 = AtomicU64::new(0);
static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static THIS_THREAD: Cell<u64> = Cell::new(new_thread());
}

fn new_thread() -> u64 {
    forks() << THREAD_BITS | THREADS.fetch_add(1, Ordering::Relaxed)
}

/// How many forks this process is away from the one that loaded the extension: what was made at another number was made by
/// another process.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Called in a process that was just forked, by its only thread.
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    THIS_THREAD.set(new_thread());
}

/// Why a value cannot be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InUse {
    /// This very thread is using it.
    Here,
    /// A thread of the process that this one was forked from was using it at that moment.
    BeforeFork,
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here => "it is used within its own use: by a signal handler, a finaliser or its own file object",
            Self::BeforeFork => "another thread was using it when this process was forked: open the file again here",
        })
    }
}

impl std::error::Error for InUse {}

impl From<InUse> for PyErr {
    fn from(error: InUse) -> Self {
        PyRuntimeError::new_err(error.to_string())
    }
}

/// Waits for a lock. A thread that panicked with it leaves the value as it was.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that one thread at a time uses.
pub(crate) struct Exclusive<T> {
    /// The number of the thread that uses it; 0 if none does.
    holder: AtomicU64,
    value: Mutex<T>,
}

impl<T: Send> Exclusive<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            holder: AtomicU64::new(0),
            value: Mutex::new(value),
        }
    }

    /// Waits for the value. Not to be called with the GIL, which those who have the value may need.
    pub(crate) fn hold(&self) -> Result<Held<'_, T>, InUse> {
        match self.try_hold()? {
            Some(held) => Ok(held),
            None => Ok(self.held(lock(&self.value))),
        }
    }

    /// Waits for the value with the GIL released, and has both then.
    pub(crate) fn hold_attached(&self, py: Python<'_>) -> Result<Held<'_, T>, InUse> {
        loop {
            if let Some(held) = self.try_hold()? {
                return Ok(held);
            }
            py.detach(|| drop(self.value.lock()));
        }
    }

    fn try_hold(&self) -> Result<Option<Held<'_, T>>, InUse> {
        for _ in 0..FORK_CHECKS {
            match self.value.try_lock() {
                Ok(guard) => return Ok(Some(self.held(guard))),
                Err(TryLockError::Poisoned(error)) => {
                    return Ok(Some(self.held(error.into_inner())));
                }
                Err(TryLockError::WouldBlock) => match self.holder.load(Ordering::Relaxed) {
                    // A thread has the lock and has not yet stored its number, or no longer. One that a fork left behind never goes on.
                    0 if forks() > 0 => std::thread::sleep(FORK_CHECK_INTERVAL),
                    0 => return Ok(None),
                    holder if holder == THIS_THREAD.get() => return Err(InUse::Here),
                    holder if holder >> THREAD_BITS != forks() => return Err(InUse::BeforeFork),
                    _ => return Ok(None),
                },
            }
        }
        Err(InUse::BeforeFork)
    }

    fn held<'a>(&'a self, guard: MutexGuard<'a, T>) -> Held<'a, T> {
        self.holder.store(THIS_THREAD.get(), Ordering::Relaxed);
        Held {
            holder: &self.holder,
            guard,
        }
    }
}

/// A value in use.
pub(crate) struct Held<'a, T> {
    holder: &'a AtomicU64,
    guard: MutexGuard<'a, T>,
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
