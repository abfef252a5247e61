//! The writer of a log: appending, and ending segments.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use super::end::write_end;
use super::folder::Segment;
use super::frozen::remove_synced;
use super::lock::Lock;
use super::mark::Mark;
use super::name::{SegmentId, SegmentKind};
use super::options::{Durability, LogOptions};
use super::recovery::{self, Recovered, Recovery};
use super::sealing::{Retention, Sealer};
use super::state::{Batch, Current, Guard, State, again};
use crate::bug::OrBug;
use crate::disk::{DiskRef, Owner};
use crate::engine::{WriteOptions, Writer as _};
use crate::error::{Error, Result};
use crate::format::active::{self, Sequence};
use crate::sync::{Condvar, Instant, Mutex};

/// What a record takes beside its type and value: UUID, two lengths, checksum.
const RECORD_BYTES: u64 = 16 + 1 + 4 + 8;

/// A durable log: a folder of segments, one of them being written. There is one writer, which any number of threads share.
///
/// ```
/// use seglake::store::{LogOptions, LogReader, SegmentLog};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders");
///
/// let log = SegmentLog::open(&path, LogOptions::default())?;
/// let uuid = log.write(b"order.paid", b"{}")?; // on the disk
/// log.close()?;
///
/// for record in LogReader::open(&path)?.records()? {
///     assert_eq!(record?.value(), b"{}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SegmentLog {
    pub(super) folder: PathBuf,
    pub(super) options: LogOptions,
    state: Mutex<State>,
    /// A commit or a roll ended.
    pub(super) committed: Condvar,
    /// A record was appended while a commit gathers.
    pub(super) appended: Condvar,
    sealer: Sealer,
    recovered: Vec<Recovery>,
    owner: Owner,
}

impl SegmentLog {
    /// Opens a log for writing, or begins one. What a dead writer left is put in order first: [`recovered`](Self::recovered) says
    /// what that was.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be written to, or another writer has it open (the error names the process);
    /// [`Error::Format`] where segments are missing; [`Error::Damage`] where the key is probably another one.
    pub fn open(path: impl AsRef<Path>, options: LogOptions) -> Result<Self> {
        let folder = path.as_ref().to_path_buf();
        if options.segment_bytes == 0 {
            return Err(Error::Usage(
                "segment_bytes is 0: it is at least 1".to_owned(),
            ));
        }
        let disk = &options.disk;
        begin_folder(disk, &folder)?;
        let lock = Lock::take(disk, &folder)?;
        let Recovered {
            mark,
            writer,
            next_sequence,
            last,
            unsealed,
            steps,
        } = recovery::recover(disk, &folder, options.key)?;
        let segment = writer
            .map(|(id, writer)| Current::resume(id, writer))
            .transpose()?;
        let sealer = Sealer::start(disk, &folder, options.key, options.retention)?;
        if options.seal {
            unsealed
                .into_iter()
                .for_each(|(segment, end)| sealer.add(segment, end));
        }
        Ok(Self {
            folder,
            state: Mutex::new(State {
                segment,
                next_sequence,
                sequence: Sequence::of_log(last),
                batch: Arc::default(),
                batch_records: 0,
                is_committing: false,
                is_rolling: false,
                last_commit: (0, Duration::ZERO),
                poison: None,
                is_closed: false,
                mark,
                mark_synced: Instant::now(),
                lock: Some(lock),
            }),
            committed: Condvar::new(),
            appended: Condvar::new(),
            sealer,
            recovered: steps,
            owner: Owner::here(),
            options,
        })
    }

    /// The log's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// What recovery did when the log was opened.
    #[must_use]
    pub fn recovered(&self) -> &[Recovery] {
        &self.recovered
    }

    /// Segments that turned out to be damaged when they were to be sealed since the log was opened. They are kept as they are.
    #[must_use]
    pub fn frozen(&self) -> Vec<Segment> {
        self.sealer.frozen()
    }

    /// Appends a record of the present time, and waits as [`LogOptions::durability`] says. Returns its UUID.
    ///
    /// # Errors
    /// As [`write_as`](Self::write_as).
    pub fn write(&self, type_: &[u8], value: &[u8]) -> Result<Uuid> {
        self.write_as(None, type_, value)
    }

    /// Appends a record of this UUID, or of the present time.
    ///
    /// # Errors
    /// Nothing is written where this gives [`Error::Usage`], for a UUID that does not ascend or is not of version 6, or a type or
    /// value that is too long, or [`Error::Io`], such as for a full disk: writing can go on when there is room.
    /// [`Error::OutcomeUnknown`] where a sync failed: the record is in the log later, or not. Nothing more can be written then:
    /// open the log again.
    pub fn write_as(&self, uuid: Option<Uuid>, type_: &[u8], value: &[u8]) -> Result<Uuid> {
        self.check_owner()?;
        let (state, uuid) = self.append(self.state(), uuid, type_, value)?;
        let batch = state.batch.clone();
        self.settle(state, &[batch], &[uuid])?;
        Ok(uuid)
    }

    /// Appends records of the present time, and waits once for all. Returns their UUIDs. The batch is not a transaction: after a
    /// crash some of its records may be in the log.
    ///
    /// # Errors
    /// As [`write_as`](Self::write_as). Where a record is refused for its UUID or its length, those before it are written, without
    /// waiting for them. Where the records need several segments and some cannot be written,
    /// [`Error::OutcomeUnknown`]: each of those that it names may be in the log or not, the others are not.
    pub fn write_batch<'a>(
        &self,
        records: impl IntoIterator<Item = (Option<Uuid>, &'a [u8], &'a [u8])>,
    ) -> Result<Vec<Uuid>> {
        self.check_owner()?;
        let (mut uuids, mut batches) = (Vec::new(), Vec::<Arc<Batch>>::new());
        let mut state = self.state();
        for (uuid, type_, value) in records {
            let appended;
            (state, appended) = match self.append(state, uuid, type_, value) {
                // Those before it may be in the log.
                Err(error @ Error::Io { .. }) if !uuids.is_empty() => {
                    return Err(self.unknown(&uuids, &error.to_string()));
                }
                appended => appended?,
            };
            uuids.push(appended);
            // Where a segment ends in between, other threads may commit what was appended so far.
            if batches
                .last()
                .is_none_or(|last| !Arc::ptr_eq(last, &state.batch))
            {
                batches.push(state.batch.clone());
            }
        }
        self.settle(state, &batches, &uuids)?;
        Ok(uuids)
    }

    /// Makes all records that were written before survive a loss of power, and visible to readers.
    ///
    /// # Errors
    /// As [`write_as`](Self::write_as).
    pub fn sync(&self) -> Result<()> {
        self.check_owner()?;
        let state = self.state();
        self.check(&state)?;
        let batch = state.batch.clone();
        if state.is_settled() {
            return Ok(());
        }
        self.wait(state, &batch, &[])
    }

    /// Ends the active segment, so that the next record begins a new one, and the old one is sealed.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn roll(&self) -> Result<()> {
        self.check_owner()?;
        let state = self.state();
        self.check(&state)?;
        self.end_segment(state).map(drop)
    }

    /// Waits until all complete segments are sealed, and those that [`LogOptions::retention`] names removed.
    ///
    /// # Errors
    /// What hindered sealing one: it stays an active segment, which is sealed when the log is opened again. Or what hindered removing
    /// one, which is tried again when the next segment ends.
    pub fn wait_sealed(&self) -> Result<()> {
        self.check_owner()?;
        match self.sealer.drain() {
            None => Ok(()),
            Some(error) => Err(again(&error)),
        }
    }

    /// Removes old sealed segments, as this says, after the segment that is being sealed. Returns those that are gone.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn retain(&self, retention: &Retention) -> Result<Vec<Segment>> {
        self.check_owner()?;
        self.check(&self.state())?;
        self.sealer.retain(retention)
    }

    /// Syncs all records and the mark, and closes the log. Complete segments are sealed before this returns. Closing again does
    /// nothing.
    ///
    /// # Errors
    /// As [`sync`](Self::sync); the log is closed all the same. What hindered sealing is not an error here.
    pub fn close(&self) -> Result<()> {
        if !self.owner.is_here() {
            return Ok(()); // a fork has no part in it
        }
        let mut state = self.state();
        if state.is_closed {
            return Ok(());
        }
        // Nothing is appended any more.
        state.is_closed = true;
        let synced = self.commit_all(state);
        let closed = match synced {
            Ok(own) => {
                state = own;
                self.check_lock(&mut state).and_then(|()| state.mark.sync())
            }
            Err(error) => {
                state = self.state();
                Err(error)
            }
        };
        while state.is_committing || state.is_rolling {
            state = self.wait_committed(state);
        }
        state.segment = None;
        drop(state);
        let _ = self.sealer.drain(); // sealed when the log is opened again
        self.state().lock = None;
        closed
    }

    pub(super) fn state(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses to write to a log that is closed or failed.
    pub(super) fn check(&self, state: &State) -> Result<()> {
        self.check_poison(state)?;
        if state.is_closed {
            return Err(self.refused("it is closed"));
        }
        Ok(())
    }

    /// Refuses to go on after a failed sync.
    pub(super) fn check_poison(&self, state: &State) -> Result<()> {
        match &state.poison {
            None => Ok(()),
            Some(poison) => Err(self.refused(format!(
                "an earlier error ({poison}) ended it, so what the disk holds is unknown. See to that, then open the log again"
            ))),
        }
    }

    /// Refuses to go on where another process may write to the log by now.
    pub(super) fn check_lock(&self, state: &mut State) -> Result<()> {
        let Some(lock) = &state.lock else {
            return Ok(());
        };
        lock.check()
            .inspect_err(|error| state.poison = Some(error.to_string().into()))
    }

    /// Refuses a fork of the process that opened the log, before anything is waited for: another thread may have held the lock
    /// when the process forked.
    fn check_owner(&self) -> Result<()> {
        if self.owner.is_here() {
            return Ok(());
        }
        Err(self.refused("another process opened it, and this one is a fork of that: write there"))
    }

    fn refused(&self, message: impl Into<String>) -> Error {
        let error = std::io::Error::other(message.into());
        Error::io(Some(&self.folder), "cannot write to the log", error)
    }

    /// Appends a record to the buffer of the active segment, which it begins or ends where it has to.
    fn append<'a>(
        &'a self,
        mut state: Guard<'a>,
        uuid: Option<Uuid>,
        type_: &[u8],
        value: &[u8],
    ) -> Result<(Guard<'a>, Uuid)> {
        let bytes = RECORD_BYTES + type_.len() as u64 + value.len() as u64;
        loop {
            self.check(&state)?;
            if state.is_rolling {
                state = self.wait_committed(state);
                continue;
            }
            let is_full = state
                .segment
                .as_ref()
                .is_some_and(|current| current.is_full(bytes, &self.options));
            if !is_full {
                break;
            }
            state = self.end_segment(state)?;
        }
        let uuid = state.next_uuid(uuid)?;
        if type_.len() > active::MAX_TYPE_BYTES || value.len() as u64 > active::MAX_VALUE_BYTES {
            // Refused before a segment is begun for it, in the words of the format.
            active::encode(
                &mut Vec::new(),
                &self.options.key,
                uuid.as_bytes(),
                type_,
                value,
            )?;
        }
        if state.segment.is_none() {
            self.begin_segment(&mut state, uuid)?;
        }
        let current = state.segment.as_mut().or_bug("a segment that was begun")?;
        if current.writer.is_full() {
            // Room first: a record that does not come into the file is not taken.
            if let Err(error) = current.writer.flush() {
                return Err(self.refuse_batch(&mut state, error, &[]));
            }
        }
        if self.options.durability == Durability::Fsync {
            current.preallocate(bytes, self.options.segment_bytes);
        }
        current.writer.push(&uuid, type_, value)?;
        state.sequence.set_last(uuid.into_bytes());
        state.batch_records += 1;
        if state.is_committing {
            self.appended.notify_one();
        }
        Ok((state, uuid))
    }

    /// Begins a segment, whose first record has this UUID.
    fn begin_segment(&self, state: &mut State, first: Uuid) -> Result<()> {
        let id = SegmentId {
            sequence: state.next_sequence,
            first,
        };
        if id.sequence == u64::MAX {
            return Err(Error::Usage(
                "the log has no more room for segments".to_owned(),
            ));
        }
        self.check_lock(state)?;
        let path = self.folder.join(id.file_name(SegmentKind::Active));
        let options = WriteOptions::default()
            .on_disk(&self.options.disk)
            .key(self.options.key);
        let writer = active::Writer::open(&path, &options).inspect_err(|_| {
            // The next try is under another name. If this one came back after a loss of power, there would be two segments.
            if let Err(error) = remove_synced(&self.options.disk, &self.folder, &path) {
                state.poison = Some(error.to_string().into());
            }
        })?;
        state.segment = Some(Current {
            id,
            file: Arc::new(writer.handle()),
            writer,
            began: Instant::now(),
            is_named: false,
            filled: 0,
            synced: (0, None),
            syncing: None,
            flushed: (0, None),
        });
        state.next_sequence = id.sequence.saturating_add(1); // a name with the greatest number is none of a segment
        Ok(())
    }

    /// Commits the active segment wholly and ends it: nothing is appended to it any more, and the next record begins another.
    fn end_segment<'a>(&'a self, mut state: Guard<'a>) -> Result<Guard<'a>> {
        while state.is_rolling {
            state = self.wait_committed(state);
        }
        let Some(sequence) = state.segment.as_ref().map(|current| current.id.sequence) else {
            return Ok(state);
        };
        state.is_rolling = true;
        let committed = self.commit_all(state);
        let mut state = match committed {
            Ok(state) => state,
            Err(error) => {
                let mut state = self.state();
                state.is_rolling = false;
                self.committed.notify_all();
                return Err(error);
            }
        };
        state.is_rolling = false;
        if let Err(error) = self.write_end(&mut state) {
            self.committed.notify_all();
            return Err(error);
        }
        // The mark is on the disk before there is a next segment: what is in front of that is complete.
        state = self.sync_mark(state);
        self.committed.notify_all();
        self.check(&state)?;
        if let Some(current) = state
            .segment
            .take_if(|current| current.id.sequence == sequence)
        {
            let path = current.writer.path().to_path_buf();
            if self.options.seal {
                let segment = Segment {
                    id: current.id,
                    kind: SegmentKind::Active,
                    path,
                    is_frozen: false,
                };
                self.sealer.add(segment, Some(current.synced.0));
            }
        }
        Ok(state)
    }

    /// Writes down where the active segment ends, all of which is on the disk. The zeros ahead of its records are dropped before: where
    /// they come back after a loss of power, they do no harm.
    fn write_end(&self, state: &mut State) -> Result<()> {
        let counter = state.mark.mark().counter;
        let Some(current) = &mut state.segment else {
            return Ok(());
        };
        let (offset, Some(last)) = current.synced else {
            return Ok(());
        };
        if current.filled > offset && current.file.set_len(offset).is_ok() {
            current.filled = offset;
        }
        let end = Mark {
            counter,
            sequence: current.id.sequence,
            offset,
            last,
        };
        let options = &self.options;
        write_end(&options.disk, &self.folder, current.id, &end, &options.key)
    }
}

impl Drop for SegmentLog {
    /// Closes the log without reporting errors, where nobody did.
    fn drop(&mut self) {
        if self.owner.is_here() {
            let _ = self.close(); // who wants to know calls `close`
        }
    }
}

/// Makes the log's folder where there is none, on the disk with its name.
fn begin_folder(disk: &DiskRef, folder: &Path) -> Result<()> {
    let failed = |error| Error::io(Some(folder), "cannot make the log's folder", error);
    match disk.create_folder(folder) {
        Ok(()) => disk
            .sync_folder(crate::output::folder(folder))
            .map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error)),
    }
}
