//! The writer of a log: appending, and beginning and ending segments.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use super::end::write_end;
use super::folder::{Listing, LogFolder, Segment, absolute};
use super::lock::Lock;
use super::mark::Mark;
use super::marking::Marker;
use super::name::{SegmentId, SegmentKind};
use super::options::{Durability, LogOptions, Retention};
use super::recovery::{self, Recovery};
use super::sealing::{Job, Sealer};
use super::state::{Current, Guard, LogState, NewRecord, Stage, record_bytes};
use crate::bug::OrBug;
use crate::disk::{DiskRef, Owner};
use crate::engine::{WriteOptions, Writer as _};
use crate::error::{Error, Result};
use crate::format::active::{self, Sequence};
use crate::sync::{Condvar, Mutex};
use crate::uuid6;
use crate::walk::Interrupt;

/// A durable log: a folder of segments, one of them being written. There is one writer, which any number of threads share.
///
/// ```
/// use seglake::Options;
/// use seglake::store::{LogOptions, LogReader, SegmentLog};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders");
///
/// let log = SegmentLog::open(&path, LogOptions::default())?;
/// let uuid = log.write(b"order.paid", b"{}")?; // on the disk
/// log.close()?;
///
/// for record in LogReader::open(&path, Options::default())?.records()? {
///     assert_eq!(record?.value(), b"{}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SegmentLog {
    // Its thread ends before the marker is dropped, which holds the lock that keeps other writers out.
    sealer: Sealer,
    pub(super) marker: Marker,
    pub(super) folder: LogFolder,
    pub(super) options: LogOptions,
    pub(super) state: Mutex<LogState>,
    /// A commit or a roll ended, or the log failed.
    pub(super) committed: Condvar,
    /// So many writes were appended as a commit waits for.
    pub(super) appended: Condvar,
    recovered: Vec<Recovery>,
    owner: Owner,
}

impl SegmentLog {
    /// Opens a log for writing, or begins one. What a dead writer left is put in order first: [`recovered`](Self::recovered) says
    /// what that was.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be written to, or another writer has it open (the error names the process);
    /// [`Error::Log`] where segments are missing; [`Error::Format`] for a folder of other files, to which nothing is written; [`Error::Damage`] where
    /// the key is probably another one.
    pub fn open(path: impl AsRef<Path>, options: LogOptions) -> Result<Self> {
        let folder = LogFolder {
            disk: options.disk.clone(),
            path: absolute(path.as_ref())?,
            key: options.key,
        };
        options.check()?;
        let disk = &options.disk;
        begin_folder(disk, &folder.path)?;
        Listing::read(disk, &folder.path, 0)?; // before anything is written to a folder of other files
        let lock = Lock::take(disk, &folder.path)?;
        let found = recovery::recover(&folder)?;
        let segment = found.writer.map(|(id, writer)| Current::resume(id, writer));
        let segment = segment.transpose()?;
        let marker = Marker::start(found.mark, lock, &folder.path, options.mark_interval)?;
        let sealer = Sealer::start(&folder, &options)?;
        if options.protect.is_some() {
            sealer.add(found.unprotected.into_iter().map(Job::Protect));
        }
        if options.seal {
            sealer.add(found.unsealed);
        }
        Ok(Self {
            sealer,
            marker,
            folder,
            state: Mutex::new(LogState {
                segment,
                next_sequence: found.next_sequence,
                sequence: Sequence::of_log(found.last),
                ..LogState::default()
            }),
            committed: Condvar::new(),
            appended: Condvar::new(),
            recovered: found.steps,
            owner: Owner::here(),
            options,
        })
    }

    /// The log's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// What recovery did when the log was opened.
    #[must_use]
    pub fn recovered(&self) -> &[Recovery] {
        &self.recovered
    }

    /// How far the last record is ahead of the clock; `None` by less than a second. Records of the present time get UUIDs right after it.
    #[must_use]
    pub fn clock_ahead(&self) -> Option<Duration> {
        uuid6::ahead(&self.state().sequence.last()?)
    }

    /// Appends a record of the present time, and waits as [`LogOptions::durability`] says. Returns its UUID.
    ///
    /// # Errors
    /// As [`write_as`](Self::write_as).
    pub fn write(&self, type_: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Uuid> {
        self.write_as(None, type_, value)
    }

    /// Appends a record of this UUID, or of the present time.
    ///
    /// # Errors
    /// Nothing is written where this gives [`Error::Usage`], for a UUID that does not ascend or is not of version 6, or a type or
    /// value that is too long, or [`Error::Io`], such as for a full disk: writing can go on when there is room.
    /// [`Error::OutcomeUnknown`] where a sync failed: the record is in the log later, or not. Nothing more can be written then:
    /// open the log again.
    pub fn write_as(
        &self,
        uuid: Option<Uuid>,
        type_: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Uuid> {
        self.write_one(NewRecord::new(type_.as_ref(), value.as_ref()).uuid(uuid))
    }

    fn write_one(&self, record: NewRecord<'_>) -> Result<Uuid> {
        self.check_owner()?;
        let _unwinding = self.unwinding(|_| ());
        let mut state = self.room(self.state(), &record)?;
        let uuid = self.push(&mut state, record)?;
        self.count_write(&mut state);
        if self.options.durability == Durability::None {
            return Ok(uuid);
        }
        let batch = state.batch.clone();
        let settled = self.settle(state, &batch, true);
        settled.map_err(|outcome| self.failed(&outcome, &[uuid]))?;
        Ok(uuid)
    }

    /// Appends records, and waits once for all. Returns their UUIDs. The batch is not a transaction: after a
    /// crash some of its records may be in the log. All records are taken from the iterator before the first is written.
    ///
    /// # Errors
    /// As [`write_as`](Self::write_as) where none of the records is in the log. Where the first ones are, and the others are not,
    /// [`Error::Partial`]. Where a sync failed, [`Error::OutcomeUnknown`]. Both say which records are in the log.
    pub fn write_batch<'a>(
        &self,
        records: impl IntoIterator<Item = NewRecord<'a>>,
    ) -> Result<Vec<Uuid>> {
        self.check_owner()?;
        // The caller's iterator may wait, panic, or write to this log: none of that with the state held.
        let records: Vec<_> = records.into_iter().collect();
        let _unwinding = self.unwinding(|_| ());
        self.write_all(&records)
    }

    /// Makes all records that were written before survive a loss of power, and visible to readers.
    ///
    /// # Errors
    /// As [`write_as`](Self::write_as).
    pub fn sync(&self) -> Result<()> {
        self.check_owner()?;
        let _unwinding = self.unwinding(|_| ());
        let mut state = self.state();
        self.check(&mut state)?;
        if state.is_settled() {
            return Ok(());
        }
        let batch = match &state.committing {
            Some(committing) if state.batch_writes == 0 => committing.clone(),
            _ => state.batch.clone(),
        };
        let settled = self.wait(state, &batch, false);
        settled.map_err(|outcome| self.failed(&outcome, &[]))
    }

    /// Ends the active segment, so that the next record begins a new one, and the old one is sealed.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn roll(&self) -> Result<()> {
        self.check_owner()?;
        let _unwinding = self.unwinding(|_| ());
        let mut state = self.state();
        self.check(&mut state)?;
        self.end_segment(state).map(drop)
    }

    /// Waits until all complete segments are sealed, with [`LogOptions::protect`] until sealed ones have their sidecar, and those that
    /// [`LogOptions::retention`] names removed.
    ///
    /// # Errors
    /// What hindered sealing one: it stays an active segment, which is sealed when the log is opened again. Or what hindered protecting
    /// one, which is tried then, too: [`Error::Damage`] if it is damaged. Or what hindered removing one, which is tried again when the
    /// next segment ends.
    pub fn wait_sealed(&self) -> Result<()> {
        self.wait_sealed_unless(None)
    }

    /// As [`wait_sealed`](Self::wait_sealed), unless the caller does not want to wait any longer.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and those of `wait_sealed`.
    #[doc(hidden)]
    pub fn wait_sealed_unless(&self, interrupt: Option<&Interrupt>) -> Result<()> {
        self.check_owner()?;
        match self.sealer.drain(interrupt)? {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Removes old sealed segments, as this says, after the segment that is being sealed. Returns those that are gone.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn retain(&self, retention: &Retention) -> Result<Vec<Segment>> {
        self.check_owner()?;
        self.check(&mut self.state())?;
        self.sealer.retain(retention)
    }

    /// Syncs all records and the mark, and closes the log. Complete segments are sealed before this returns. Closing again does
    /// nothing.
    ///
    /// # Errors
    /// As [`sync`](Self::sync); the log is closed all the same. What hindered sealing is not an error here.
    pub fn close(&self) -> Result<()> {
        self.close_unless(None)
    }

    /// As [`close`](Self::close), unless the caller does not want to wait any longer for segments to be sealed. Nothing more is
    /// written then, but other writers are still kept out: close again to wait on, or drop the log. What is not sealed then is sealed
    /// when the log is opened again.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and those of `close`.
    #[doc(hidden)]
    pub fn close_unless(&self, interrupt: Option<&Interrupt>) -> Result<()> {
        if !self.owner.is_here() {
            return Ok(()); // a fork has no part in it
        }
        let _unwinding = self.unwinding(|_| ());
        let mut state = self.state();
        if state.stage == Stage::Released {
            return Ok(());
        }
        state.stage = Stage::Closed;
        let closed = self.commit_all(state).and_then(|state| {
            drop(state);
            self.marker.finish()
        });
        state = self.state();
        while state.committing.is_some() || state.is_rolling {
            state = self.wait_committed(state);
        }
        if let Some(current) = &mut state.segment
            && self.marker.check_lock().is_err()
        {
            // Another process may write to the file.
            current.writer.forget();
        }
        state.segment = None;
        state.close_error = state.close_error.take().or(closed.err());
        drop(state);
        self.marker.stop();
        // What hindered sealing: it is done when the log is opened again.
        let _ = self.sealer.drain(interrupt)?;
        self.marker.release();
        let mut state = self.state();
        state.stage = Stage::Released;
        match state.close_error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Refuses to write to a log that is closed or failed.
    #[inline]
    pub(super) fn check(&self, state: &mut LogState) -> Result<()> {
        if let Some(reason) = self.marker.failed() {
            state.fail(&reason);
        }
        self.check_poison(state)?;
        if state.stage != Stage::Open {
            return Err(self.refused("it is closed"));
        }
        Ok(())
    }

    /// Refuses to go on after a failed sync.
    pub(super) fn check_poison(&self, state: &LogState) -> Result<()> {
        match &state.poison {
            None => Ok(()),
            Some(poison) => Err(self.refused(format!(
                "an earlier error ({poison}) ended it, so what the disk holds is unknown. See to that, then open the log again"
            ))),
        }
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
        Error::io(Some(self.path()), "cannot write to the log", error)
    }

    /// Makes sure that a record can be [pushed](Self::push): ends the segment where it has to.
    #[inline]
    pub(super) fn room<'a>(
        &'a self,
        state: Guard<'a>,
        record: &NewRecord<'_>,
    ) -> Result<Guard<'a>> {
        if self.has_room(&state, record) {
            return Ok(state);
        }
        self.make_room(state, record)
    }

    /// Appends a record to the buffer of the active segment, which it begins where there is none. Inlined, so that a UUID stays in
    /// registers: one that is copied from place to place as part of a result waits for the store buffer each time.
    #[inline(always)]
    pub(super) fn push(&self, state: &mut LogState, record: NewRecord<'_>) -> Result<Uuid> {
        let NewRecord { uuid, type_, value } = record;
        let uuid = state.next_uuid(uuid, self.options.max_clock_ahead)?;
        // Refused before a segment is begun for it.
        self.refuse_long(&record)?;
        if state.segment.is_none() {
            self.begin_segment(state, uuid)?;
        }
        let current = state.segment.as_mut().or_bug("a segment that was begun")?;
        if current.writer.is_full() {
            // Room first: a record that does not come into the file is not taken.
            if let Err(error) = current.writer.flush() {
                let outcome = self.refuse_batch(state, error);
                return Err(self.failed(&outcome, &[]));
            }
        }
        if self.options.durability == Durability::Fsync {
            current.preallocate(record_bytes(&record), self.options.segment_bytes);
        }
        // The log's sequence has said that the UUID comes next, also in the segment.
        current.writer.push_next(&uuid, type_, value)?;
        state.sequence.set_last(uuid.into_bytes());
        Ok(uuid)
    }

    /// Counts a write whose records are committed with the batch: one record, or those of one call.
    #[inline]
    pub(super) fn count_write(&self, state: &mut LogState) {
        state.batch_writes += 1;
        if state.awaited > 0 && state.batch_writes >= state.awaited {
            self.appended.notify_one();
        }
    }

    /// Whether a record can be appended at once: the log is open, and the segment does not end before.
    #[inline]
    fn has_room(&self, state: &LogState, record: &NewRecord<'_>) -> bool {
        let is_open = state.poison.is_none() && state.stage == Stage::Open;
        is_open && !state.is_rolling && !self.marker.has_failed() && !self.is_full(state, record)
    }

    #[inline]
    fn is_full(&self, state: &LogState, record: &NewRecord<'_>) -> bool {
        let current = state.segment.as_ref();
        current.is_some_and(|current| current.is_full(record, &self.options))
    }

    /// Ends the segment, or waits for a thread that does. Refuses that where the log is closed or failed.
    #[cold]
    #[inline(never)]
    fn make_room<'a>(&'a self, mut state: Guard<'a>, record: &NewRecord<'_>) -> Result<Guard<'a>> {
        loop {
            self.check(&mut state)?;
            if state.is_rolling {
                state = self.wait_committed(state);
            } else if self.is_full(&state, record) {
                // A record that is refused ends nothing.
                if record.uuid.is_some() {
                    state.next_uuid(record.uuid, self.options.max_clock_ahead)?;
                }
                self.refuse_long(record)?;
                state = self.end_segment(state)?;
            } else {
                return Ok(state);
            }
        }
    }

    /// Refuses a type or a value that is too long, in the words of the format.
    #[inline]
    fn refuse_long(&self, record: &NewRecord<'_>) -> Result<()> {
        let NewRecord { type_, value, .. } = record;
        if type_.len() <= active::MAX_TYPE_BYTES && value.len() as u64 <= active::MAX_VALUE_BYTES {
            return Ok(());
        }
        active::encode(&mut Vec::new(), &self.options.key, &[0; 16], type_, value)
    }

    /// Begins a segment, whose first record has this UUID.
    fn begin_segment(&self, state: &mut LogState, first: Uuid) -> Result<()> {
        let id = SegmentId {
            sequence: state.next_sequence,
            first,
        };
        if id.sequence == u64::MAX {
            return Err(Error::Usage(
                "the log has no more room for segments".to_owned(),
            ));
        }
        let checked = self.marker.check_lock();
        checked.inspect_err(|error| state.fail(&error.to_string()))?;
        let path = self.folder.join(id.file_name(SegmentKind::Active));
        let options = WriteOptions::default()
            .on_disk(&self.options.disk)
            .key(self.options.key);
        let writer = active::Writer::open(&path, &options).inspect_err(|error| {
            // The next try is under another name. If this one came back after a loss of power, there would be two segments.
            if let Err(error) = self.remove_begun(&path, error) {
                state.fail(&error.to_string());
            }
        })?;
        state.segment = Some(Current::begin(id, writer));
        state.next_sequence = id.sequence.saturating_add(1); // a name with the greatest number is none of a segment
        Ok(())
    }

    /// Removes what may have been begun of a segment's file before this error. What has bytes is of somebody else: it stays.
    fn remove_begun(&self, path: &Path, error: &Error) -> Result<()> {
        let disk = &self.folder.disk;
        let is_taken =
            matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists);
        let is_empty = || match disk.stat(path, false) {
            Ok(stat) => Ok(stat.len == 0),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(Error::io(Some(path), "cannot stat", error)),
        };
        if is_taken || !is_empty()? {
            return Err(Error::Format {
                path: Some(path.to_path_buf()),
                next: None,
                message: "expected no file where the log begins its next segment, found one that it did not write: move it elsewhere"
                    .to_owned(),
            });
        }
        self.folder.remove(path)
    }

    /// Commits the active segment wholly and ends it: nothing is appended to it any more, and the next record begins another.
    fn end_segment<'a>(&'a self, mut state: Guard<'a>) -> Result<Guard<'a>> {
        while state.is_rolling {
            state = self.wait_committed(state);
        }
        let Some(sequence) = state.segment.as_ref().map(|current| current.id.sequence) else {
            return Ok(state);
        };
        let mut state = self.roll_alone(state)?;
        if let Some(current) = state
            .segment
            .take_if(|current| current.id.sequence == sequence)
            && self.options.seal
        {
            let segment = self.folder.segment(current.id, SegmentKind::Active);
            let end = Some(current.synced.0);
            self.sealer.add([Job::Seal(segment, end)]);
        }
        Ok(state)
    }

    /// Commits the active segment wholly and writes down where it ends, while others wait to append.
    fn roll_alone<'a>(&'a self, state: Guard<'a>) -> Result<Guard<'a>> {
        let _unwinding = self.unwinding(|state| state.is_rolling = false);
        let mut state = state;
        state.is_rolling = true;
        let committed = self.commit_all(state);
        let (mut state, committed) = match committed {
            Ok(state) => (state, Ok(())),
            Err(error) => (self.state(), Err(error)),
        };
        state.is_rolling = false;
        self.committed.notify_all();
        committed?;
        self.write_end(&mut state)?;
        // The mark is on the disk before there is a next segment: what is before that is complete.
        if let Err(error) = self.marker.sync() {
            state.fail(&error.to_string());
        }
        self.check(&mut state)?;
        Ok(state)
    }

    /// Writes down where the active segment ends, all of which is on the disk. The zeros ahead of its records are dropped before: where
    /// they come back after a loss of power, they do no harm.
    fn write_end(&self, state: &mut LogState) -> Result<()> {
        let counter = self.marker.counter();
        let Some(current) = &mut state.segment else {
            return Ok(());
        };
        let (offset, Some(last)) = current.synced else {
            return Ok(());
        };
        if current.filled > offset && current.writer.handle().set_len(offset).is_ok() {
            current.filled = offset;
        }
        let end = Mark {
            counter,
            sequence: current.id.sequence,
            offset,
            last,
        };
        write_end(&self.folder, current.id, &end)
    }
}

impl Drop for SegmentLog {
    /// Closes the log without reporting errors, where nobody did. Where closing was interrupted, sealing is, too.
    fn drop(&mut self) {
        if self.owner.is_here() && self.state().stage == Stage::Open {
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
