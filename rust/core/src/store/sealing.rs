//! Sealing segments that are complete and protecting sealed ones, in the background, and removing old ones. docs/formats/log.md,
//! "Sealing".

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use super::end::forget_end;
use super::folder::{Listing, Segment};
use super::frozen::{freeze, remove_synced, unreadable_page};
use super::mark::Mark;
use super::name::{SegmentId, SegmentKind};
use super::options::{LogOptions, Retention};
use super::protecting::{protect, protect_active};
use crate::checksum::Key;
use crate::disk::{DiskRef, Owner};
use crate::engine::{Interrupt, Options};
use crate::error::{Error, Result};
use crate::parity::Parameters;
use crate::source::{Bound, BoundSource, FileSource, SaidBy};
use crate::sync::{self, Condvar, JoinHandle, Mutex, MutexGuard};
use crate::uuid6;
use crate::verbs::{self, SealOptions, kept_of};

/// How long a thread waits for sealing before it asks whether to go on.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// What became of a segment that was to be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sealed {
    Sealed,
    /// It is damaged, and kept as it is.
    Frozen,
}

/// Seals a complete segment: the new file is verified against the checksums of the records, synced and in its place before the
/// active file is removed. A damaged segment is frozen, and so is one that the disk cannot read, one without records, or whose records
/// do not reach `end` or what its file `.end` says.
///
/// # Errors
/// [`Error::Io`]: the segment is as it was. [`Error::Interrupted`].
pub(super) fn seal(
    disk: &DiskRef,
    folder: &Path,
    segment: &Segment,
    key: Key,
    overwrite: bool,
    interrupt: Option<Interrupt>,
    end: Option<u64>,
) -> Result<Sealed> {
    let bound = Bound::of_name()
        .or_later(end.map(Bound::of_given))
        .or_later(Bound::of_end(disk, folder, segment.id, &key));
    // What cannot be read is damage, and tried a second time.
    let file = FileSource::open(disk, &segment.path)?.around_unreadable();
    let file = Arc::new(file);
    let source = BoundSource::whole(file.clone(), bound);
    let path = folder.join(segment.id.file_name(SegmentKind::Sealed));
    let options = Options::default()
        .on_disk(disk)
        .keys(vec![key])
        .record_bytes(u64::MAX)
        .interrupt(interrupt);
    let how = SealOptions::default().overwrite(overwrite);
    match verbs::seal(Arc::new(source), &options, &path, &how, |_| Ok(())) {
        Ok(_) => {
            remove_active(disk, folder, segment.id)?;
            Ok(Sealed::Sealed)
        }
        // Not where the new file is read back differently: that is no damage of the segment.
        Err(Error::Damage(damage)) if damage.path.as_ref() == Some(&segment.path) => {
            let reason = match file.unreadable() {
                Some(unreadable) => unreadable_page(unreadable),
                None => damage.to_string(),
            };
            let is_known = bound.said_by != SaidBy::Name && damage.offset < bound.offset;
            let synced = is_known.then_some(bound.offset);
            freeze(disk, folder, segment.id, &reason, synced)?;
            Ok(Sealed::Frozen)
        }
        Err(error) => Err(error),
    }
}

/// Removes the active file of a segment that is sealed, and what is said of it. A leftover of that does no harm: it is removed when the log
/// is opened the next time.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn remove_active(disk: &DiskRef, folder: &Path, id: SegmentId) -> Result<()> {
    let path = folder.join(id.file_name(SegmentKind::Active));
    remove_synced(disk, folder, &path)?;
    forget_end(disk, folder, id);
    let _ = disk.unlink(&folder.join(id.sidecar_name(SegmentKind::Active)));
    forget_kept(disk, &path);
    Ok(())
}

/// Removes what repairs kept beside a file of a segment that is gone: there is nothing left to undo. A leftover of that does no harm: it is
/// removed when the log is opened the next time.
fn forget_kept(disk: &DiskRef, file: &Path) {
    for kept in kept_of(disk, file) {
        let _ = disk.unlink(&kept);
    }
}

/// Removes the oldest sealed and frozen segments as `retention` says, one after the other, each for good before the next, so that no gap
/// can come about. Returns those that are gone. Nobody else may seal or remove segments meanwhile.
///
/// # Errors
/// [`Error::Io`].
fn retain(disk: &DiskRef, folder: &Path, key: &Key, retention: &Retention) -> Result<Vec<Segment>> {
    let mark = Mark::read(disk, folder, key)?;
    let listing = Listing::read(disk, folder, mark.sequence)?;
    let mut stats = VecDeque::new();
    for segment in &listing.segments {
        if !is_removable(segment) {
            stats.push_back((0, None));
            continue;
        }
        let stat = disk.stat(&segment.path, true);
        let stat = stat.map_err(|error| Error::io(Some(&segment.path), "cannot stat", error))?;
        stats.push_back((stat.len, stat.modified));
    }
    let mut total: u64 = stats.iter().map(|(bytes, _)| bytes).sum();
    let now = sync::since_epoch();
    let micros = |time: Duration| time.as_micros().cast_signed();
    let oldest = retention.age.map(|age| micros(now) - micros(age));
    let mut removed = Vec::new();
    for (pair, (bytes, modified)) in listing.segments.windows(2).zip(stats) {
        let [segment, next] = pair else { break };
        // All records of a segment are older than the first one of the next. If that is ahead of the clock, it tells nothing.
        let end = match uuid6::ahead(next.id.first.as_bytes()) {
            Some(_) => modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok().map(micros)),
            None => Some(uuid6::timestamp_micros(next.id.first.as_bytes()).into()),
        };
        let is_old = oldest.zip(end).is_some_and(|(oldest, end)| end < oldest);
        let is_over = retention.bytes.is_some_and(|most| total > most);
        // After the segment of the mark nothing may be on the disk: without that one the log would be lost.
        let is_proven = segment.id.sequence < mark.sequence;
        if !is_removable(segment) || !is_proven || !(is_old || is_over) {
            break;
        }
        // While it is sealed, or where that was cut short, it has two files. Of these the one that is read goes last.
        let other = listing.doubled.iter().filter(|own| own.id == segment.id);
        for own in other.chain([segment]) {
            remove_synced(disk, folder, &own.path)?;
        }
        for kind in [SegmentKind::Sealed, SegmentKind::Active] {
            if listing.protected.contains(&(segment.id, kind)) {
                remove_synced(disk, folder, &folder.join(segment.id.sidecar_name(kind)))?;
            }
        }
        // What is said of it goes after it. A leftover does no harm: readers of the folder take it for a part of the log.
        for kept in listing.kept_of(segment.id) {
            let _ = disk.unlink(kept);
        }
        forget_end(disk, folder, segment.id);
        total -= bytes;
        removed.push(segment.clone());
    }
    Ok(removed)
}

/// Whether a segment is one that retention removes.
fn is_removable(segment: &Segment) -> bool {
    segment.kind == SegmentKind::Sealed || segment.is_frozen
}

/// What the thread is to do next.
#[derive(Debug)]
enum Job {
    /// Seal this segment, whose records have to reach this offset if it is known.
    Seal(Segment, Option<u64>),
    /// Make the sidecar of this sealed segment.
    Protect(SegmentId),
    /// Extend the sidecar of this active segment up to this offset, now or when there is more.
    Extend(SegmentId, u64, bool),
}

/// How a job went.
#[derive(Debug, Default)]
struct Done {
    /// The segment, if it was frozen.
    frozen: Option<Segment>,
    error: Option<Error>,
}

/// What the thread that seals is to do, and how it went.
#[derive(Debug, Default)]
struct Work {
    waiting: VecDeque<Job>,
    is_busy: bool,
    is_closed: bool,
    /// Segments that were frozen, since they were damaged.
    frozen: Vec<Segment>,
    /// What hindered sealing or protecting last, which is tried again when the log is opened again, or removing old segments, which is
    /// tried again with the next segment that ends.
    error: Option<Error>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Shared {
    disk: DiskRef,
    folder: PathBuf,
    key: Key,
    retention: Option<Retention>,
    protect: Option<Parameters>,
    work: Mutex<Work>,
    changed: Condvar,
    /// Held while a segment is sealed or protected, and while old ones are removed: all of them make or remove files of segments that
    /// are complete.
    arranging: Mutex<()>,
    stopped: Arc<AtomicBool>,
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        locked(&self.work)
    }

    fn wait<'a>(&self, work: MutexGuard<'a, Work>) -> MutexGuard<'a, Work> {
        self.changed
            .wait(work)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut work = self.work();
        loop {
            let Some(job) = work.waiting.pop_front() else {
                if work.is_closed {
                    return;
                }
                work = self.wait(work);
                continue;
            };
            work.is_busy = true;
            drop(work);
            // Others wait for this thread, which therefore survives a panic.
            let done = panic::catch_unwind(AssertUnwindSafe(|| self.work_on(job)));
            let done = done.unwrap_or_else(|_| Done {
                error: Some(self.panicked()),
                ..Done::default()
            });
            work = self.work();
            work.is_busy = false;
            // What became of the segment stays known, whatever becomes of others.
            work.frozen.extend(done.frozen);
            work.error = done.error.or(work.error.take());
            self.changed.notify_all();
        }
    }

    fn panicked(&self) -> Error {
        let error = std::io::Error::other("the thread that seals panicked");
        Error::io(Some(&self.folder), "cannot seal a segment", error)
    }

    /// Does a job, and then what is always done after one.
    fn work_on(&self, job: Job) -> Done {
        let mut frozen = None;
        let worked = match job {
            Job::Protect(id) => self.protect(id),
            Job::Extend(id, end, is_last) => return self.extend(id, end, is_last),
            Job::Seal(segment, end) => match self.seal(&segment, end) {
                Ok(Sealed::Sealed) => self.protect(segment.id),
                Ok(Sealed::Frozen) => {
                    frozen = Some(segment);
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        let retained = self.keep_retention();
        Done {
            frozen,
            error: worked.err().or(retained.err()),
        }
    }

    fn seal(&self, segment: &Segment, end: Option<u64>) -> Result<Sealed> {
        let _alone = locked(&self.arranging);
        seal(
            &self.disk,
            &self.folder,
            segment,
            self.key,
            false,
            Some(Interrupt::once(&self.stopped)),
            end,
        )
    }

    /// Makes the sidecar of a sealed segment, if segments have one.
    fn protect(&self, id: SegmentId) -> Result<()> {
        let Some(parameters) = self.protect else {
            return Ok(());
        };
        let _alone = locked(&self.arranging);
        let interrupt = Interrupt::once(&self.stopped);
        let (disk, folder) = (&self.disk, &self.folder);
        protect(disk, folder, id, self.key, parameters, interrupt)
    }

    /// Extends the sidecar of the segment that is being written.
    fn extend(&self, id: SegmentId, end: u64, is_last: bool) -> Done {
        let Some(parameters) = self.protect else {
            return Done::default();
        };
        let _alone = locked(&self.arranging);
        let options = Options::default()
            .on_disk(&self.disk)
            .keys(vec![self.key])
            .interrupt(Some(Interrupt::once(&self.stopped)));
        let (disk, folder) = (&self.disk, &self.folder);
        let extended = protect_active(disk, folder, (id, end), &options, parameters, is_last);
        Done {
            error: extended.err(),
            ..Done::default()
        }
    }

    /// Removes what is too old or too much, also where a segment was not sealed: that may have been for lack of room.
    fn keep_retention(&self) -> Result<()> {
        match &self.retention {
            Some(retention) if !self.stopped.load(Ordering::Acquire) => {
                self.retain(retention).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn retain(&self, retention: &Retention) -> Result<Vec<Segment>> {
        let _alone = locked(&self.arranging);
        retain(&self.disk, &self.folder, &self.key, retention)
    }
}

/// The thread that seals.
#[derive(Debug)]
pub(super) struct Sealer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    owner: Owner,
}

impl Sealer {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn start(folder: &Path, options: &LogOptions) -> Result<Self> {
        let shared = Arc::new(Shared {
            disk: options.disk.clone(),
            folder: folder.to_path_buf(),
            key: options.key,
            retention: options.retention,
            protect: options.protect,
            work: Mutex::default(),
            changed: Condvar::new(),
            arranging: Mutex::default(),
            stopped: Arc::default(),
        });
        let own = shared.clone();
        let thread = sync::Builder::new()
            .name("seglake-seal".to_owned())
            .spawn(move || own.run());
        let thread =
            thread.map_err(|error| Error::io(Some(folder), "cannot start a thread", error))?;
        Ok(Self {
            shared,
            thread: Some(thread),
            owner: Owner::here(),
        })
    }

    /// Seals a complete segment soon, whose records have to reach `end` if that is known.
    pub(super) fn add(&self, segment: Segment, end: Option<u64>) {
        self.begin(Job::Seal(segment, end));
    }

    /// Makes the sidecar of a sealed segment soon.
    pub(super) fn protect(&self, id: SegmentId) {
        self.begin(Job::Protect(id));
    }

    /// Extends the sidecar of the segment that is being written soon, up to this offset, which is on the disk.
    pub(super) fn extend(&self, id: SegmentId, end: u64, is_last: bool) {
        let mut work = self.shared.work();
        // One that waits is taken further, so that no more than one does.
        let is_same = |own: &Job| matches!(own, Job::Extend(own, ..) if *own == id);
        work.waiting.retain(|own| !is_same(own));
        work.waiting.push_back(Job::Extend(id, end, is_last));
        drop(work);
        self.shared.changed.notify_all();
    }

    fn begin(&self, job: Job) {
        self.shared.work().waiting.push_back(job);
        self.shared.changed.notify_all();
    }

    /// Waits until nothing is left to seal. Returns what hindered sealing or removing last, once.
    ///
    /// # Errors
    /// [`Error::Interrupted`]: the thread goes on.
    pub(super) fn drain(&self, interrupt: Option<&Interrupt>) -> Result<Option<Error>> {
        let mut work = self.shared.work();
        let is_left = |work: &mut Work| work.is_busy || !work.waiting.is_empty();
        while is_left(&mut work) {
            let Some(interrupt) = interrupt else {
                work = self.shared.wait(work);
                continue;
            };
            let changed = &self.shared.changed;
            let waited = changed.wait_timeout_while(work, INTERRUPT_INTERVAL, is_left);
            drop(waited.unwrap_or_else(PoisonError::into_inner).0);
            // With nothing held: it may call anything.
            if interrupt.0() {
                return Err(Error::Interrupted);
            }
            work = self.shared.work();
        }
        Ok(work.error.take())
    }

    /// Removes old sealed segments, after the segment that is being sealed, if any.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn retain(&self, retention: &Retention) -> Result<Vec<Segment>> {
        self.shared.retain(retention)
    }

    /// The segments that were frozen since the log was opened.
    pub(super) fn frozen(&self) -> Vec<Segment> {
        self.shared.work().frozen.clone()
    }
}

impl Drop for Sealer {
    /// Ends the thread. What is not sealed is sealed when the log is opened again.
    fn drop(&mut self) {
        if !self.owner.is_here() {
            return; // a fork has no such thread, and perhaps a lock that nobody will free
        }
        self.shared.stopped.store(true, Ordering::Release);
        {
            let mut work = self.shared.work();
            work.waiting.clear();
            work.is_closed = true;
        }
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic of it is its own
        }
    }
}
