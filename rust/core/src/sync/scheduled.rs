//! Locks, threads and clocks that a seed directs. [Shuttle](https://docs.rs/shuttle) runs all threads in one, and switches between
//! them at each lock, wait and wake-up.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LockResult, TryLockError, TryLockResult};
use std::time::Duration;

use shuttle::rand::{Rng as _, RngCore as _, thread_rng};
pub(crate) use shuttle::thread::{Builder, JoinHandle, Scope, scope};
use uuid::Uuid;

/// As [`std::sync::Mutex`]. None is ever poisoned: a panic ends the run.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T> {
    inner: shuttle::sync::MutexGuard<'a, T>,
    mutex: &'a shuttle::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        Ok(MutexGuard::of(&self.0))
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let mutex = &self.0;
        let inner = mutex.try_lock();
        let inner = inner.map_err(|_| TryLockError::WouldBlock)?;
        Ok(MutexGuard { inner, mutex })
    }

    pub(crate) fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<'a, T> MutexGuard<'a, T> {
    fn of(mutex: &'a shuttle::sync::Mutex<T>) -> Self {
        let inner = mutex.lock().unwrap();
        Self { inner, mutex }
    }

    /// Unlocks for a moment.
    fn let_others(self) -> Self {
        let mutex = self.mutex;
        drop(self);
        shuttle::thread::yield_now();
        Self::of(mutex)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// As [`std::sync::Condvar`]: a thread may wake though nobody woke it.
#[derive(Debug, Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        if thread_rng().gen_ratio(1, 16) {
            return Ok(guard.let_others());
        }
        let MutexGuard { inner, mutex } = guard;
        let inner = self.0.wait(inner).unwrap();
        Ok(MutexGuard { inner, mutex })
    }

    /// For waits that end by their timeout: it may end at any time. So a wake-up that is missing is not noticed here.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let guard = guard.let_others();
        pass(thread_rng().gen_range(Duration::ZERO..=timeout * 2));
        Ok((guard, ()))
    }

    /// For waits with a timeout only to look for something else now and then: it ends at once, or never. So a wake-up that is
    /// missing leaves a thread waiting for ever.
    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        if thread_rng().gen_ratio(1, 4) {
            pass(timeout);
            return Ok((guard.let_others(), ()));
        }
        while condition(&mut guard) {
            guard = self.wait(guard).unwrap();
        }
        Ok((guard, ()))
    }
}

/// As [`std::sync::OnceLock`].
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    mutex: shuttle::sync::Mutex<()>,
    is_set: shuttle::sync::Condvar,
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self {
            value: std::sync::OnceLock::new(),
            mutex: shuttle::sync::Mutex::new(()),
            is_set: shuttle::sync::Condvar::new(),
        }
    }
}

impl<T> OnceLock<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        let guard = self.mutex.lock().unwrap();
        let set = self.value.set(value);
        drop(guard);
        self.is_set.notify_all();
        set
    }

    pub(crate) fn wait(&self) -> &T {
        let mut guard = self.mutex.lock().unwrap();
        loop {
            if let Some(value) = self.value.get() {
                return value;
            }
            guard = self.is_set.wait(guard).unwrap();
        }
    }
}

shuttle::lazy_static! {
    /// Nanoseconds since the run began.
    static ref CLOCK: AtomicU64 = AtomicU64::new(0);
}

fn pass(time: Duration) {
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap();
    CLOCK.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// Each look at the clock takes at least one tick of a UUID, and rarely longer than any interval of the code.
fn read() -> Duration {
    let mut random = thread_rng();
    let longer = [0, 1_000, 1_000_000, 150_000_000][random.gen_range(0..4)];
    pass(Duration::from_nanos(100 + longer));
    Duration::from_nanos(CLOCK.load(Ordering::Relaxed))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(read())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }

    pub(crate) fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) fn checked_add(&self, time: Duration) -> Option<Self> {
        self.0.checked_add(time).map(Self)
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time)
    }
}

pub(crate) fn sleep(time: Duration) {
    pass(time);
    shuttle::thread::yield_now();
}

/// Some day in 2026, and what passed since.
pub(crate) fn since_epoch() -> Duration {
    Duration::from_secs(1_780_000_000) + read()
}

pub(crate) fn random() -> Uuid {
    let mut bytes = [0; 16];
    thread_rng().fill_bytes(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

pub(crate) fn spawn_scoped<'scope>(
    scope: &'scope Scope<'scope, '_>,
    _name: &str,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    scope.spawn(work);
    Ok(())
}
