//! The mark of a log that is being written. Readers see each one at once; a thread makes it survive a loss of power soon after.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::lock::Lock;
use super::mark::MarkFile;
use crate::disk::Owner;
use crate::error::{Error, Result};
use crate::sync::{self, Condvar, Instant, JoinHandle, Mutex, MutexGuard, Unpoisoned as _};

/// What the thread and those who write marks share. Who has the log's state may wait for this lock, not the other way round.
#[derive(Debug)]
struct Shared {
    marks: Mutex<Marks>,
    changed: Condvar,
    interval: Duration,
    /// As [`Marks::error`], for those who do not want to wait while a mark is synced.
    has_failed: AtomicBool,
}

#[derive(Debug)]
struct Marks {
    file: MarkFile,
    /// Held until the log is closed.
    lock: Option<Lock>,
    /// Since when there is a mark that is not synced.
    unsynced: Option<Instant>,
    /// What a sync or a write of a mark ended with: what the disk holds is unknown from then on.
    error: Option<Error>,
    is_stopped: bool,
}

impl Marks {
    /// Refuses to go on where another process may write to the log by now.
    fn check_lock(&mut self) -> Result<()> {
        match &self.lock {
            Some(lock) => lock.check(),
            None => Ok(()),
        }
    }

    /// Has this bring the last mark to the disk.
    fn settle(&mut self, settle: fn(&mut MarkFile) -> Result<()>) -> Result<()> {
        self.check_lock()?;
        self.unsynced = None;
        settle(&mut self.file)
    }
}

impl Shared {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        // After a panic nobody knows which mark is in which slot.
        self.marks.lock().unwrap_or_else(|poisoned| {
            let mut marks = poisoned.into_inner();
            let panicked = std::io::Error::other("a thread that wrote the synced mark panicked");
            let error = || Error::io(None, "cannot write the synced mark", panicked);
            marks.error.get_or_insert_with(error);
            self.has_failed.store(true, Ordering::Release);
            marks
        })
    }

    /// Writes or syncs a mark, unless that failed before.
    fn change<T>(&self, change: impl FnOnce(&mut Marks) -> Result<T>) -> Result<T> {
        let mut marks = self.marks();
        if let Some(error) = &marks.error {
            return Err(error.again());
        }
        change(&mut marks).inspect_err(|error| {
            marks.error = Some(error.again());
            self.has_failed.store(true, Ordering::Release);
        })
    }

    /// Syncs the mark whenever there is an unsynced one for as long as the interval.
    fn run(&self) {
        let mut marks = self.marks();
        while !marks.is_stopped && marks.error.is_none() {
            let Some(since) = marks.unsynced else {
                marks = self.changed.wait(marks).unpoisoned();
                continue;
            };
            let left = self.interval.saturating_sub(since.elapsed());
            if !left.is_zero() {
                marks = self.changed.wait_timeout(marks, left).unpoisoned().0;
                continue;
            }
            drop(marks);
            // The next write of the log raises the error.
            let _ = self.change(|marks| marks.settle(MarkFile::sync));
            marks = self.marks();
        }
    }
}

/// Writes a log's mark, and has a thread that syncs it.
#[derive(Debug)]
pub(super) struct Marker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    owner: Owner,
}

impl Marker {
    /// Starts the thread. A mark is synced so long after it was written.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn start(
        file: MarkFile,
        lock: Lock,
        folder: &Path,
        interval: Duration,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            marks: Mutex::new(Marks {
                file,
                lock: Some(lock),
                unsynced: None,
                error: None,
                is_stopped: false,
            }),
            changed: Condvar::new(),
            interval,
            has_failed: AtomicBool::new(false),
        });
        let for_thread = shared.clone();
        let thread = sync::Builder::new()
            .name("seglake-mark".to_owned())
            .spawn(move || for_thread.run());
        let thread =
            thread.map_err(|error| Error::io(Some(folder), "cannot start a thread", error))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
            owner: Owner::here(),
        })
    }

    /// The counter of the last mark.
    pub(super) fn counter(&self) -> u64 {
        self.shared.marks().file.mark().counter
    }

    /// As [`MarkFile::advance`], after which the mark is synced soon.
    ///
    /// # Errors
    /// [`Error::Io`], also where an earlier write or sync failed.
    pub(super) fn advance(&self, sequence: u64, offset: u64, last: [u8; 16]) -> Result<()> {
        let is_first = self.shared.change(|marks| {
            marks.file.advance(sequence, offset, last)?;
            let is_first = marks.unsynced.is_none();
            marks.unsynced.get_or_insert_with(Instant::now);
            Ok(is_first)
        })?;
        if is_first {
            self.shared.changed.notify_one();
        }
        Ok(())
    }

    /// Makes the last mark survive a loss of power now.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub(super) fn sync(&self) -> Result<()> {
        self.shared.change(|marks| marks.settle(MarkFile::sync))
    }

    /// As [`MarkFile::finish`]: no mark follows.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub(super) fn finish(&self) -> Result<()> {
        self.shared.change(|marks| marks.settle(MarkFile::finish))
    }

    /// Refuses to go on where another process may write to the log by now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn check_lock(&self) -> Result<()> {
        self.shared.change(Marks::check_lock)
    }

    /// Lets other writers in.
    pub(super) fn release(&self) {
        self.shared.marks().lock = None;
    }

    /// Whether a mark could not be written or synced. It is asked with each record.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Acquire)
    }

    /// Why a mark could not be written or synced.
    pub(super) fn failed(&self) -> Option<String> {
        if !self.has_failed() {
            return None;
        }
        let marks = self.shared.marks();
        marks.error.as_ref().map(ToString::to_string)
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        if !self.owner.is_here() {
            return; // a fork has no such thread, and perhaps a lock that nobody will free
        }
        self.shared.marks().is_stopped = true;
        self.shared.changed.notify_one();
        let thread = self.thread.lock().unpoisoned().take();
        if let Some(thread) = thread {
            let _ = thread.join(); // a panic of it was noticed
        }
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        self.stop();
    }
}
