//! A disk in memory that loses power, fails and fills up. After a loss of power only this is certain: the bytes of a file at its
//! last sync, and the names in a folder at the last sync of that folder. Of everything else any part survives:
//!
//! - Each sector of a file holds what was there at any moment since the file's last sync. The bytes of it that were written may
//!   also be zero, garbage, or a mix of two moments. Bytes that were not written keep their value.
//! - The length is that of any moment since the file's last sync.
//! - Each change of a name is lost or kept, whatever becomes of the others and of the data. A rename is one change.
//!
//! Syncs can fail: then the file reads as before, and what the disk holds of it is any of the above. The next sync brings only
//! the pages that are written from then on.
//!
//! A seed says what survives, so a failure can be run again.

#![allow(dead_code, reason = "two test programs use it, each a part")]

mod files;
mod names;
mod random;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use seglake::faults::{Disk, DiskFile, Kind, Opening, Stat};

use files::Content;
use names::Names;
pub(crate) use random::Random;

/// How much longer than other operations a sync takes.
const SYNC_PAUSES: usize = 16;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What a disk is asked to change or to keep. Reading is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Call {
    Create,
    Nameless,
    CreateFolder,
    Rename,
    Link,
    Unlink,
    RemoveFolder,
    SyncFolder,
    Write,
    SetLen,
    Sync,
}

impl Call {
    /// Whether a promise may hang on this single call.
    pub(crate) const fn is_durable(self) -> bool {
        matches!(
            self,
            Self::Rename | Self::Link | Self::SyncFolder | Self::Sync
        )
    }
}

/// What goes wrong at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Power is lost before it. All later calls fail.
    Crash,
    /// It reports success and does nothing: a mutation of the code that leaves the call out.
    Skip,
    /// An error of the drive, once. A sync that fails loses what it should have kept.
    Broken,
    /// No room: this call and all later ones that need room fail.
    Full,
    /// A write takes only its first byte.
    Short,
    /// A bug: the call panics.
    Panic,
}

/// What went on.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) call: Call,
    /// The path, or the first of two; empty for a file without a name.
    pub(crate) path: PathBuf,
    /// What was written.
    pub(crate) bytes: Vec<u8>,
    /// The time, where the disk has a clock.
    pub(crate) time: u64,
}

#[derive(Clone, Debug, Default)]
struct State {
    names: Names,
    files: BTreeMap<usize, Arc<Content>>,
    /// The files that a writer holds the lock of.
    locked: Vec<usize>,
    next: usize,
    calls: Vec<Done>,
    troubles: Vec<(usize, Trouble)>,
    is_off: bool,
    is_full: bool,
    locks_no_folders: bool,
    has_no_links: bool,
    /// Bytes of files that cannot be read.
    unreadable: Vec<(usize, Range<u64>)>,
    random: Random,
    /// How often something was read, and at which time an error comes of it, once.
    reads: usize,
    /// How many bytes of files were read.
    read_bytes: u64,
    time: u64,
    broken_read: Option<usize>,
    /// The beginning of names that the next listing misses, as one does that overlaps with their renames.
    missed: Option<String>,
    /// What goes wrong at a call of a kind, after so many others of it.
    trouble_at: Option<(IsOf, usize, Trouble)>,
    /// Calls that report success and do nothing.
    left_out: Option<IsOf>,
    /// The disk before each call, if that is kept.
    tape: Option<Vec<State>>,
}

/// The disk.
#[derive(Clone, Debug)]
pub(crate) struct Simulated {
    state: Arc<Mutex<State>>,
    /// Comes before each operation, and tells the time: where threads are switched by hand, they may be here.
    pause: fn() -> u64,
}

impl Default for Simulated {
    fn default() -> Self {
        Self::of(State::default())
    }
}

/// A disk before one of its calls, and that call; `None` after the last one.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    disk: Simulated,
    pub(crate) call: Option<Done>,
}

/// Whether a call is one of a kind.
pub(crate) type IsOf = fn(&Done) -> bool;

/// What survived a loss of power: the same number means the same.
pub(crate) type Survivors = u64;

impl Simulated {
    fn of(state: State) -> Self {
        Self {
            state: Arc::new(Mutex::new(state)),
            pause: || 0,
        }
    }

    /// Has this come before each operation.
    pub(crate) fn pausing(mut self, pause: fn() -> u64) -> Self {
        self.pause = pause;
        self
    }

    /// An empty disk with one folder, `/data`.
    pub(crate) fn new() -> Self {
        let disk = Self::default();
        disk.create_folder(Path::new("/data")).unwrap();
        disk.settle();
        disk
    }

    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the time of a sync.
    fn linger(&self) {
        for _ in 0..SYNC_PAUSES {
            (self.pause)();
        }
    }

    /// The state, for an operation.
    fn turn(&self) -> MutexGuard<'_, State> {
        let time = (self.pause)();
        let mut state = self.state();
        state.time = time;
        state
    }

    fn opened(&self, id: usize, path: &Path) -> Opened {
        Opened {
            disk: self.clone(),
            id,
            path: path.to_path_buf(),
            locks: AtomicBool::new(false),
        }
    }

    /// A copy whose changes are its own.
    pub(crate) fn copy(&self) -> Self {
        let own = self.state().clone();
        Self::of(own).pausing(self.pause)
    }

    /// Makes everything certain, and counts calls from 0 again.
    pub(crate) fn settle(&self) {
        self.settle_contents();
        self.state().names.settle();
    }

    /// The same, but for the names.
    pub(crate) fn settle_contents(&self) {
        let mut state = self.state();
        let files = state.files.values_mut();
        files.for_each(|own| Arc::make_mut(own).settle());
        state.calls.clear();
    }

    /// Has something go wrong at the call of this number.
    pub(crate) fn trouble(&self, at: usize, trouble: Trouble) {
        self.state().troubles.push((at, trouble));
    }

    /// Ends that the disk is full, and all other trouble.
    pub(crate) fn make_room(&self) {
        let mut state = self.state();
        state.is_full = false;
        state.broken_read = None;
        state.troubles.clear();
    }

    /// Has something go wrong at a call of a kind, after so many others of it.
    pub(crate) fn trouble_at(&self, is_of: IsOf, after: usize, trouble: Trouble) {
        self.state().trouble_at = Some((is_of, after, trouble));
    }

    /// Leaves out all calls of a kind: a mutation of the code.
    pub(crate) fn leave_out(&self, is_of: IsOf) {
        self.state().left_out = Some(is_of);
    }

    /// Has something be read wrongly: the operation of this number, of those that change nothing.
    pub(crate) fn break_read(&self, at: usize) {
        self.state().broken_read = Some(at);
    }

    /// Has the next listing miss the names that begin so.
    pub(crate) fn miss_once(&self, beginning: &str) {
        self.state().missed = Some(beginning.to_owned());
    }

    /// How many operations changed nothing.
    pub(crate) fn reads(&self) -> usize {
        self.state().reads
    }

    /// How many bytes of files were read since the last call.
    pub(crate) fn take_read_bytes(&self) -> u64 {
        std::mem::take(&mut self.state().read_bytes)
    }

    /// Keeps the disk as it is before each call from now on.
    pub(crate) fn begin_tape(&self) {
        self.state().tape = Some(Vec::new());
    }

    /// What was kept since, and the disk as it is now.
    pub(crate) fn end_tape(&self) -> Vec<Moment> {
        let mut state = self.state();
        let states = state.tape.take().unwrap();
        let first = state.calls.len() - states.len();
        let calls = state.calls[first..].iter().cloned().map(Some);
        let now = State {
            calls: Vec::new(),
            ..state.clone()
        };
        let states = states.into_iter().zip(calls).chain([(now, None)]);
        let moments = states.map(|(own, call)| Moment {
            disk: Self::of(own).pausing(self.pause),
            call,
        });
        moments.collect()
    }

    /// How many calls there were.
    pub(crate) fn count(&self) -> usize {
        self.state().calls.len()
    }

    /// As on file systems that cannot lock folders.
    pub(crate) fn lock_no_folders(&self) {
        self.state().locks_no_folders = true;
    }

    /// As on file systems without hard links.
    pub(crate) fn link_nothing(&self) {
        self.state().has_no_links = true;
    }

    /// Has a range of a file be unreadable from now on.
    pub(crate) fn break_range(&self, path: &str, range: Range<u64>) {
        let mut state = self.state();
        let id = state.names.find(Path::new(path)).unwrap();
        state.unreadable.push((id, range));
    }

    /// What lost syncs leave.
    pub(crate) fn seed(&self, seed: u64) {
        self.state().random = Random::new(seed);
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<Done> {
        self.state().calls.clone()
    }

    /// The disk after a loss of power, of which this seed says what survives.
    pub(crate) fn after_power_loss(&self, seed: u64) -> Self {
        self.losing_power(seed).0
    }

    /// The same, and what survived.
    pub(crate) fn losing_power(&self, seed: u64) -> (Self, Survivors) {
        let state = self.state();
        let mut random = Random::new(seed);
        // Sometimes nothing survives, or all, or most: what any subset alone would hardly give.
        let kept = [0, 5, 50, 95, 100][random.below(5)];
        let names = state.names.after_power_loss(kept, &mut random);
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        let reachable = names.files();
        let mut files = BTreeMap::new();
        for (id, own) in state.files.iter().filter(|(id, _)| reachable.contains(*id)) {
            let (held, told) = own.after_power_loss(kept, &mut random);
            (id, told).hash(&mut hasher);
            files.insert(*id, Arc::new(held));
        }
        let after = State {
            files,
            names,
            next: state.next,
            random,
            has_no_links: state.has_no_links,
            ..State::default()
        };
        (Self::of(after).pausing(self.pause), hasher.finish())
    }

    /// The content of each file below `/data`, but for those whose name, or the name of a folder above them, begins with a dot.
    pub(crate) fn visible(&self) -> BTreeMap<String, Vec<u8>> {
        let mut visible = self.files();
        visible.retain(|path, _| !path.split('/').any(|name| name.starts_with('.')));
        visible
    }

    /// The content of each file below `/data`.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let mut files = BTreeMap::new();
        for (path, id) in state.names.paths() {
            if let (Some(content), Some(name)) = (state.files.get(&id), path.strip_prefix("/data/"))
            {
                files.insert(name.to_owned(), content.now().to_vec());
            }
        }
        files
    }

    /// Puts a file there.
    pub(crate) fn put(&self, path: &str, content: &[u8]) {
        let file = self.open(Path::new(path), Opening::New).unwrap();
        assert_eq!(file.write_at(content, 0).unwrap(), content.len());
    }
}

impl Moment {
    /// The disk after a loss of power at this moment, of which a seed says what survives, and what that is.
    pub(crate) fn losing_power(&self, seed: u64) -> (Simulated, Survivors) {
        self.disk.losing_power(seed)
    }

    /// The disk after its process was killed at this moment: all that was written is there, and nobody holds a lock.
    pub(crate) fn killed(&self) -> Simulated {
        let disk = self.disk.copy();
        disk.state().locked.clear();
        disk
    }
}

impl State {
    /// Counts a call. Gives what goes wrong that the call itself has to do.
    fn reach(&mut self, call: Call, path: &Path) -> io::Result<Option<Trouble>> {
        self.reach_with(call, path, needs_room(call))
    }

    fn reach_with(
        &mut self,
        call: Call,
        path: &Path,
        needs_room: bool,
    ) -> io::Result<Option<Trouble>> {
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        if let Some(mut tape) = self.tape.take() {
            let calls = std::mem::take(&mut self.calls);
            tape.push(self.clone());
            (self.calls, self.tape) = (calls, Some(tape));
        }
        let at = self.calls.len();
        self.calls.push(Done {
            call,
            path: path.to_path_buf(),
            bytes: Vec::new(),
            time: self.time,
        });
        let troubles = self.troubles.iter().filter(|(own, _)| *own == at);
        let mut trouble = troubles.map(|(_, trouble)| *trouble).next();
        let call = &self.calls[at];
        if self.left_out.is_some_and(|is_of| is_of(call)) {
            return Ok(IS_SKIPPED);
        }
        if let Some((is_of, left, own)) = &mut self.trouble_at
            && is_of(call)
        {
            trouble = trouble.or((*left == 0).then_some(*own));
            *left = left.wrapping_sub(1);
        }
        let call = call.call;
        if self.is_full && needs_room {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        match trouble {
            Some(Trouble::Crash) => {
                self.is_off = true;
                Err(io::Error::other("the power is off"))
            }
            Some(Trouble::Broken) if call != Call::Sync => Err(io::Error::from_raw_os_error(EIO)),
            Some(Trouble::Panic) => panic!("as told"),
            Some(Trouble::Full) if needs_room => {
                self.is_full = true;
                Err(io::Error::from_raw_os_error(ENOSPC))
            }
            trouble => Ok(trouble),
        }
    }

    /// Counts an operation that changes nothing.
    fn read(&mut self) -> io::Result<()> {
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        self.reads += 1;
        match self.broken_read == Some(self.reads - 1) {
            true => Err(io::Error::from_raw_os_error(EIO)),
            false => Ok(()),
        }
    }

    fn stat(&self, id: usize) -> Stat {
        let content = self.files.get(&id);
        Stat {
            kind: content.map_or(Kind::Folder, |_| Kind::File),
            len: content.map_or(0, |own| own.now().len() as u64),
            node: Some((0, id as u64)),
            modified: None,
        }
    }

    fn begin(&mut self) -> usize {
        self.next += 1;
        self.files.insert(self.next, Arc::default());
        self.next
    }
}

const fn needs_room(call: Call) -> bool {
    matches!(
        call,
        Call::Create | Call::Nameless | Call::CreateFolder | Call::Write | Call::Link
    )
}

const PAGE_BYTES: u64 = 4096;
const IS_SKIPPED: Option<Trouble> = Some(Trouble::Skip);

impl Disk for Simulated {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.turn();
        let id = if opening.is_existing() {
            state.read()?;
            state.names.find(path)?
        } else {
            state.reach(Call::Create, path)?;
            state.names.refuse_taken(path)?;
            let id = state.begin();
            state.names.set(path, id)?;
            id
        };
        if !state.files.contains_key(&id) {
            return Err(ErrorKind::IsADirectory.into());
        }
        Ok(Arc::new(self.opened(id, path)))
    }

    fn nameless(&self, folder: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.turn();
        state.reach(Call::Nameless, folder)?;
        state.names.find(folder)?;
        Ok(Arc::new(self.opened(state.begin(), Path::new(""))))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.turn();
        state.reach(Call::CreateFolder, path)?;
        state.names.refuse_taken(path)?;
        state.next += 1;
        let id = state.next;
        state.names.set(path, id)
    }

    fn stat(&self, path: &Path, _: bool) -> io::Result<Stat> {
        let mut state = self.turn();
        state.read()?;
        let id = state.names.find(path)?;
        Ok(state.stat(id))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let mut state = self.turn();
        state.read()?;
        state.names.find(path)?;
        Ok(path.to_path_buf())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut state = self.turn();
        state.read()?;
        let mut paths = state.names.list(folder)?;
        if let Some(missed) = state.missed.take() {
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            paths.retain(|path| !name(path).starts_with(&missed));
        }
        Ok(paths)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.turn();
        match state.reach(Call::Rename, from)? {
            IS_SKIPPED => Ok(()),
            _ => state.names.rename(from, to),
        }
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.turn();
        let trouble = state.reach(Call::Rename, from)?;
        state.names.refuse_taken(to)?;
        match trouble {
            IS_SKIPPED => Ok(()),
            _ => state.names.rename(from, to),
        }
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.turn();
        if state.has_no_links {
            return Err(ErrorKind::Unsupported.into());
        }
        let trouble = state.reach(Call::Link, from)?;
        state.names.refuse_taken(to)?;
        let id = state.names.find(from)?;
        match trouble {
            IS_SKIPPED => Ok(()),
            _ => state.names.set(to, id),
        }
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut state = self.turn();
        state.reach(Call::Unlink, path)?;
        state.names.remove(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.turn();
        state.reach(Call::RemoveFolder, path)?;
        for inside in state.names.list(path)? {
            state.names.remove(&inside)?;
        }
        state.names.remove(path)
    }

    fn open_folder(&self, folder: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.turn();
        state.read()?;
        if state.locks_no_folders {
            return Err(ErrorKind::Unsupported.into());
        }
        let id = state.names.find(folder)?;
        Ok(Arc::new(self.opened(id, folder)))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.linger();
        let mut state = self.turn();
        match state.reach(Call::SyncFolder, folder)? {
            IS_SKIPPED => Ok(()),
            _ => state.names.sync(folder),
        }
    }
}

/// An open file.
#[derive(Debug)]
struct Opened {
    disk: Simulated,
    id: usize,
    path: PathBuf,
    locks: AtomicBool,
}

impl Opened {
    /// Does something with the content, after counting it as this call if it changes anything.
    fn with<T>(
        &self,
        call: Option<Call>,
        work: impl FnOnce(&mut Content, Option<Trouble>, &mut Random) -> io::Result<T>,
    ) -> io::Result<T> {
        let state = &mut *self.disk.turn();
        let trouble = match call {
            Some(call) => state.reach(call, &self.path)?,
            None => state.read().map(|()| None)?,
        };
        let content = state.files.get_mut(&self.id);
        work(Arc::make_mut(content.unwrap()), trouble, &mut state.random)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.linger();
        self.with(Some(Call::Sync), |content, trouble, random| match trouble {
            IS_SKIPPED => Ok(()),
            Some(Trouble::Broken) => {
                content.lose(random);
                Err(io::Error::from_raw_os_error(EIO))
            }
            _ => {
                content.settle();
                Ok(())
            }
        })
    }
}

impl DiskFile for Opened {
    fn stat(&self) -> io::Result<Stat> {
        let mut state = self.disk.turn();
        state.read()?;
        Ok(state.stat(self.id))
    }

    /// Times and modes are not kept here.
    fn set_like(&self, _: &dyn DiskFile) -> io::Result<()> {
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = offset + buffer.len() as u64;
        let is_within =
            |(id, own): &(usize, Range<u64>)| *id == self.id && offset < own.end && own.start < end;
        if self.disk.state().unreadable.iter().any(is_within) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let len = self.with(None, |content, _, _| {
            let rest = usize::try_from(offset).ok();
            let rest = rest.and_then(|start| content.now().get(start..));
            let rest = rest.unwrap_or_default();
            let len = rest.len().min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        })?;
        self.disk.state().read_bytes += len as u64;
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let state = &mut *self.disk.turn();
        let start = usize::try_from(offset).unwrap();
        // What is in the file already has its room.
        let grows = start + bytes.len() > state.files[&self.id].now().len();
        let trouble = state.reach_with(Call::Write, &self.path, grows)?;
        if trouble == IS_SKIPPED {
            return Ok(bytes.len());
        }
        // A page gets another place where all of it is written. To write a part of it the rest is read.
        let (id, end) = (self.id, offset + bytes.len() as u64);
        let is_whole = |own: &Range<u64>| {
            let page = own.start / PAGE_BYTES * PAGE_BYTES..own.end.next_multiple_of(PAGE_BYTES);
            offset <= page.start && page.end <= end
        };
        let unreadable = &mut state.unreadable;
        unreadable.retain(|(own, range)| *own != id || !is_whole(range));
        let is_within = |own: &Range<u64>| offset < own.end && own.start < end;
        if unreadable
            .iter()
            .any(|(own, range)| *own == id && is_within(range))
        {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        if let (Some(_), Some(call)) = (&state.tape, state.calls.last_mut()) {
            call.bytes = bytes.to_vec();
        }
        let most = match trouble {
            Some(Trouble::Short) => bytes.len().min(1),
            _ => bytes.len(),
        };
        let content = state.files.get_mut(&self.id).unwrap();
        Arc::make_mut(content).write(start, &bytes[..most]);
        Ok(most)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(Some(Call::SetLen), |content, _, _| {
            content.set_len(usize::try_from(len).unwrap());
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn lock(&self) -> io::Result<()> {
        let mut state = self.disk.turn();
        state.read()?;
        if state.locked.contains(&self.id) {
            return Err(ErrorKind::ResourceBusy.into());
        }
        state.locked.push(self.id);
        self.locks.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        let is_locked = self.locks.swap(false, Ordering::Relaxed);
        let mut state = self.disk.state();
        state.locked.retain(|own| !is_locked || *own != self.id);
        Ok(())
    }
}

impl Drop for Opened {
    /// Closing syncs nothing.
    fn drop(&mut self) {
        let _ = self.unlock();
    }
}
