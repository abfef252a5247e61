//! Those of the standard library.

use std::io;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
pub(crate) use std::thread::{Builder, JoinHandle, Scope, scope, sleep};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use std::time::Instant;
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
