//! Sealing segments that are complete and protecting sealed ones, in the background, and removing old ones. docs/formats/log.md,
//! "Sealing".

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use super::end::{freeze, unreadable_page};
use super::folder::{Listing, LogFolder, Segment};
use super::mark::Mark;
use super::name::{SegmentId, SegmentKind};
use super::options::{LogOptions, Retention};
use crate::disk::{DiskRef, Owner, Stat};
use crate::engine::IfExists;
use crate::error::{Error, Result};
use crate::parity::Parameters;
use crate::source::{Bound, BoundSource, FileSource, SaidBy};
use crate::sync::{self, Condvar, JoinHandle, Mutex, MutexGuard, Unpoisoned as _};
use crate::uuid6;
use crate::verbs::{self, ProtectOptions, SealOptions, kept_of};
use crate::walk::Interrupt;

/// How long a thread waits for sealing before it asks whether to go on.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// Seals a complete segment: the new file is verified against the checksums of the records, synced and in its place before the
/// active file is removed. A damaged segment is frozen, and so is one that the disk cannot read, one without records, or whose records
/// do not reach `end` or what its file `.end` says. Returns the segment as it is then.
///
/// # Errors
/// [`Error::Io`]: the segment is as it was. [`Error::Interrupted`].
pub(super) fn seal(
    folder: &LogFolder,
    segment: &Segment,
    overwrite: bool,
    interrupt: Option<Interrupt>,
    end: Option<u64>,
) -> Result<Segment> {
    let bound = Bound::of_complete(folder, end, segment.id);
    // What cannot be read is damage, and tried a second time.
    let file = FileSource::open_on(&folder.disk, &segment.path)?.around_unreadable();
    let file = Arc::new(file);
    let source = BoundSource::whole(file.clone(), bound);
    let sealed = folder.segment(segment.id, SegmentKind::Sealed);
    let options = folder.options().record_bytes(u64::MAX).interrupt(interrupt);
    let how = SealOptions::default().if_exists(IfExists::overwrite_if(overwrite));
    match verbs::seal(Arc::new(source), &options, &sealed.path, &how, |_| Ok(())) {
        Ok(_) => remove_active(folder, segment.id).map(|()| sealed),
        // Not where the new file is read back differently: that is no damage of the segment.
        Err(Error::Damage(damage)) if damage.path.as_ref() == Some(&segment.path) => {
            let reason = match file.unreadable() {
                Some(unreadable) => unreadable_page(unreadable),
                None => damage.to_string(),
            };
            let is_known = bound.said_by != SaidBy::Name && damage.offset < bound.offset;
            let synced = is_known.then_some(bound.offset);
            freeze(folder, segment.id, reason, synced)?;
            Ok(Segment {
                is_frozen: true,
                ..segment.clone()
            })
        }
        Err(error) => Err(error),
    }
}

/// Removes the active file of a segment that is sealed, and what is said of it. A leftover of that does no harm: it is removed when the log
/// is opened the next time.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn remove_active(folder: &LogFolder, id: SegmentId) -> Result<()> {
    let path = folder.join(id.file_name(SegmentKind::Active));
    folder.remove(&path)?;
    folder.forget(&id.end_name());
    folder.forget(&id.sidecar_name(SegmentKind::Active));
    forget_kept(&folder.disk, &path);
    Ok(())
}

/// Removes what repairs kept beside a file of a segment that is gone: there is nothing left to undo. A leftover of that does no harm: it is
/// removed when the log is opened the next time.
fn forget_kept(disk: &DiskRef, file: &Path) {
    for kept in kept_of(file).iter().filter(|kept| disk.is_taken(kept)) {
        let _ = disk.unlink(kept);
    }
}

/// What retention knows of the folder. It is listed once: nobody but the writer begins, seals or removes segments of its log, and what others
/// put beside them is looked for by its name.
#[derive(Debug)]
struct Known {
    /// The place in the log of the oldest segment.
    oldest: Option<u64>,
    /// Segments that are sealed or frozen, in order.
    removable: VecDeque<(Segment, Stat)>,
    /// For what recovery kept beside segments.
    listing: Listing,
}

impl Known {
    fn read(folder: &LogFolder, mark: &Mark) -> Result<Self> {
        let mut listing = Listing::read(&folder.disk, &folder.path, mark.sequence)?;
        let oldest = listing.segments.first().map(|first| first.id.sequence);
        let segments = std::mem::take(&mut listing.segments).into_iter();
        let removable = segments.filter(|file| file.kind == SegmentKind::Sealed || file.is_frozen);
        let removable: Result<_> = removable.map(|file| sized(&folder.disk, file)).collect();
        removable.map(|removable| Self {
            oldest,
            removable,
            listing,
        })
    }

    /// Removes a segment and what is beside it.
    fn remove(&self, folder: &LogFolder, segment: &Segment) -> Result<()> {
        let (id, disk) = (segment.id, &folder.disk);
        // Where sealing was cut short, it has two files. Of these the one that is read goes last.
        let kinds = match segment.kind {
            SegmentKind::Sealed => [SegmentKind::Active, SegmentKind::Sealed],
            SegmentKind::Active => [SegmentKind::Sealed, SegmentKind::Active],
        };
        let [files, sidecars] = [SegmentId::file_name, SegmentId::sidecar_name]
            .map(|name| kinds.map(|kind| folder.join(name(&id, kind))));
        for path in files.iter().chain(&sidecars) {
            if disk.is_taken(path) {
                folder.remove(path)?;
            }
        }
        // What is said of it goes after it. A leftover does no harm: readers of the folder take it for a part of the log.
        files.iter().for_each(|path| forget_kept(disk, path));
        for kept in self.listing.kept_of(id) {
            let _ = disk.unlink(kept);
        }
        folder.forget(&id.frozen_name());
        folder.forget(&id.end_name());
        Ok(())
    }
}

/// A segment, and what its file is.
fn sized(disk: &DiskRef, segment: Segment) -> Result<(Segment, Stat)> {
    let stat = disk.stat(&segment.path, true);
    let stat = stat.map_err(|error| Error::io(Some(&segment.path), "cannot stat", error))?;
    Ok((segment, stat))
}

/// What the thread is to do next.
#[derive(Debug)]
pub(super) enum Job {
    /// Seal this segment, whose records have to reach this offset if it is known.
    Seal(Segment, Option<u64>),
    /// Make the sidecar of this sealed segment.
    Protect(SegmentId),
}

/// What the thread that seals is to do, and how it went.
#[derive(Debug, Default)]
struct Work {
    waiting: VecDeque<Job>,
    is_busy: bool,
    is_closed: bool,
    /// What hindered sealing or protecting last, which is tried again when the log is opened again, or removing old segments, which is
    /// tried again with the next segment that ends.
    error: Option<Error>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unpoisoned()
}

#[derive(Debug)]
struct Shared {
    folder: LogFolder,
    retention: Option<Retention>,
    protect: Option<Parameters>,
    work: Mutex<Work>,
    changed: Condvar,
    /// Held while a segment is sealed or protected, and while old ones are removed: all of them make or remove files of segments that
    /// are complete. It has what is known of these since old ones were to be removed for the first time.
    arranging: Mutex<Option<Known>>,
    stopped: Arc<AtomicBool>,
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        locked(&self.work)
    }

    fn wait<'a>(&self, work: MutexGuard<'a, Work>) -> MutexGuard<'a, Work> {
        self.changed.wait(work).unpoisoned()
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
            let done = match panic::catch_unwind(AssertUnwindSafe(|| self.work_on(job))) {
                Ok(done) => done,
                Err(_) => {
                    let error = std::io::Error::other("the thread that seals panicked");
                    let path = Some(&*self.folder.path);
                    Err(Error::io(path, "cannot seal a segment", error))
                }
            };
            work = self.work();
            work.is_busy = false;
            work.error = done.err().or(work.error.take());
            self.changed.notify_all();
        }
    }

    /// Does a job, and then removes what is too old or too much, also where a segment was not sealed: that may have been for lack of room.
    fn work_on(&self, job: Job) -> Result<()> {
        let worked = match job {
            Job::Protect(id) => self.protect(id),
            Job::Seal(segment, end) => match self.seal(&segment, end) {
                Ok(now) if !now.is_frozen => self.protect(now.id),
                sealed => sealed.map(drop),
            },
        };
        let retained = match &self.retention {
            Some(retention) if !self.stopped.load(Ordering::Acquire) => {
                self.retain(retention).map(drop)
            }
            _ => Ok(()),
        };
        worked.and(retained)
    }

    fn seal(&self, segment: &Segment, end: Option<u64>) -> Result<Segment> {
        let mut known = locked(&self.arranging);
        let interrupt = Some(Interrupt::once(&self.stopped));
        let now = seal(&self.folder, segment, false, interrupt, end);
        let now = now.inspect_err(|_| *known = None)?; // what it left is listed
        let is_last = |known: &Known| {
            let before = known.removable.back();
            before.is_none_or(|(before, _)| before.id < now.id)
        };
        match (&mut *known, sized(&self.folder.disk, now.clone())) {
            (Some(known), Ok(sized)) if is_last(known) => known.removable.push_back(sized),
            _ => *known = None, // it is listed when old ones are to be removed
        }
        Ok(now)
    }

    /// Makes the parity sidecar of a sealed segment, if segments have one. docs/formats/log.md, "Sidecars". Nothing is done if there is no
    /// such segment, as where old ones were removed meanwhile. What is damaged is not protected.
    fn protect(&self, id: SegmentId) -> Result<()> {
        let Some(parameters) = self.protect else {
            return Ok(());
        };
        let _alone = locked(&self.arranging);
        let path = self.folder.join(id.file_name(SegmentKind::Sealed));
        let interrupt = Some(Interrupt::once(&self.stopped));
        let options = self.folder.options().interrupt(interrupt);
        let how = ProtectOptions::default().parameters(parameters);
        match verbs::protect(&path, &options, &how, |_| Ok(())) {
            Err(error) if error.is_not_found() && !self.folder.disk.is_taken(&path) => Ok(()),
            protected => protected.map(drop),
        }
    }

    /// Removes the oldest sealed and frozen segments as `retention` says, one after the other, each for good before the next, so that no gap
    /// can come about. Returns those that are gone.
    fn retain(&self, retention: &Retention) -> Result<Vec<Segment>> {
        let mut known = locked(&self.arranging);
        let folder = &self.folder;
        let mark = Mark::read(folder)?;
        let known = match &mut *known {
            Some(known) => known,
            none => none.insert(Known::read(folder, &mark)?),
        };
        let mut total: u64 = known.removable.iter().map(|(_, stat)| stat.len).sum();
        let now = sync::since_epoch();
        let micros = |time: Duration| time.as_micros().cast_signed();
        let oldest = retention.age.map(|age| micros(now) - micros(age));
        let mut removed = Vec::new();
        while let Some((segment, stat)) = known.removable.front() {
            // All records of a segment are older than the first one of the next, and than the last one that is on the disk. If that is ahead
            // of the clock, it tells nothing.
            let later = match known.removable.get(1) {
                Some((next, _)) => next.id.first.into_bytes(),
                // It is being written. Few others are left, so that listing them takes little.
                None if oldest.is_some() => {
                    let listing = Listing::read(&folder.disk, &folder.path, mark.sequence)?;
                    let mut after = listing.segments.iter();
                    let after = after.find(|next| next.id.sequence > segment.id.sequence);
                    after.map_or(mark.last, |next| next.id.first.into_bytes())
                }
                None => mark.last,
            };
            let modified = || stat.modified?.duration_since(UNIX_EPOCH).ok().map(micros);
            let end = match uuid6::ahead(&later) {
                Some(_) => modified(),
                None => Some(uuid6::timestamp_micros(&later).into()),
            };
            let is_old = oldest.zip(end).is_some_and(|(oldest, end)| end < oldest);
            let is_over = retention.bytes.is_some_and(|most| total > most);
            let is_oldest = known.oldest == Some(segment.id.sequence);
            // After the segment of the mark nothing may be on the disk: without that one the log would be lost.
            let is_proven = segment.id.sequence < mark.sequence;
            if !is_oldest || !is_proven || !(is_old || is_over) {
                break;
            }
            known.remove(folder, segment)?;
            total -= stat.len;
            known.oldest = Some(segment.id.sequence + 1);
            removed.extend(known.removable.pop_front().map(|(segment, _)| segment));
        }
        Ok(removed)
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
    pub(super) fn start(folder: &LogFolder, options: &LogOptions) -> Result<Self> {
        let shared = Arc::new(Shared {
            folder: folder.clone(),
            retention: options.retention,
            protect: options.protect,
            work: Mutex::default(),
            changed: Condvar::new(),
            arranging: Mutex::default(),
            stopped: Arc::default(),
        });
        let for_thread = shared.clone();
        let thread = sync::Builder::new()
            .name("seglake-seal".to_owned())
            .spawn(move || for_thread.run());
        let thread = thread
            .map_err(|error| Error::io(Some(&folder.path), "cannot start a thread", error))?;
        Ok(Self {
            shared,
            thread: Some(thread),
            owner: Owner::here(),
        })
    }

    /// Has the thread do this soon.
    pub(super) fn add(&self, jobs: impl IntoIterator<Item = Job>) {
        self.shared.work().waiting.extend(jobs);
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
            drop(waited.unpoisoned().0);
            // With nothing held: it may call anything.
            if interrupt.stops() {
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
