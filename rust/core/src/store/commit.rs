//! Group commit: one thread hands the records of many to the disk.
//!
//! The records since the last commit began are a batch. The first thread that waits for a batch leads it: it commits the batch when
//! the commit before it has ended. The others wait for the batch's outcome alone, so that the end of a commit wakes those whose
//! records it covers, and the leader of the next.
//!
//! Many records that are written at once may be of several batches, and each part of them has an outcome of its own.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::log::SegmentLog;
use super::options::Durability;
use super::state::{Batch, Failure, Guard, LogState, NewRecord, Outcome, SegmentEnd};
use crate::disk::Handle;
use crate::engine::Writer as _;
use crate::error::{Error, Result};
use crate::sync::{Instant, Unpoisoned as _};

/// The longest that a commit waits for as many writes as the last one had.
const MOST_GATHERING: Duration = Duration::from_millis(1);
const PANICKED: &str = "a thread that wrote to it panicked";

/// What a thread does to the log. Where it panics nobody knows how far it came, so the log is failed, and others stop waiting for
/// it. Declared before the state is locked, and so dropped after.
#[derive(Debug)]
pub(super) struct Unwinding<'a> {
    log: &'a SegmentLog,
    /// Has others stop waiting for it.
    stop: fn(&mut LogState),
    /// It was unwinding before: what is dropped then may close a log.
    is_unwinding: bool,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() || self.is_unwinding {
            return;
        }
        let mut state = self.log.state();
        state.fail(PANICKED);
        (self.stop)(&mut state);
        self.log.committed.notify_all();
    }
}

impl SegmentLog {
    #[inline]
    pub(super) fn unwinding(&self, stop: fn(&mut LogState)) -> Unwinding<'_> {
        Unwinding {
            log: self,
            stop,
            is_unwinding: std::thread::panicking(),
        }
    }

    /// The state, for this thread alone.
    pub(super) fn state(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.fail(PANICKED);
            state
        })
    }

    /// Waits until a commit or a roll ends.
    pub(super) fn wait_committed<'a>(&self, state: Guard<'a>) -> Guard<'a> {
        let waited = self.committed.wait(state);
        waited.unpoisoned()
    }

    /// Waits for what `durability` promises of records that were appended to this batch.
    pub(super) fn settle<'a>(
        &'a self,
        mut state: Guard<'a>,
        batch: &Arc<Batch>,
        gather: bool,
    ) -> Outcome {
        match self.options.durability {
            Durability::None => Ok(()),
            Durability::Flush => self.flush(&mut state, batch),
            Durability::Fsync => self.wait(state, batch, gather),
        }
    }

    /// Hands all records to the operating system.
    pub(super) fn flush(&self, state: &mut LogState, batch: &Batch) -> Outcome {
        if let Some(current) = &mut state.segment {
            if let Err(error) = current.writer.flush() {
                return Err(self.refuse_batch(state, error));
            }
            current.flushed = current.end();
        }
        // Another thread may have found no room for what it flushed.
        match batch.0.get() {
            Some(outcome) => outcome.clone(),
            None => Ok(()),
        }
    }

    /// Waits until a batch is committed; commits it where no other thread is about to.
    pub(super) fn wait<'a>(
        &'a self,
        mut state: Guard<'a>,
        batch: &Arc<Batch>,
        gather: bool,
    ) -> Outcome {
        if Arc::ptr_eq(batch, &state.batch) && !state.is_led {
            state.is_led = true;
            while state.committing.is_some() && batch.0.get().is_none() {
                state = self.wait_committed(state);
            }
            // It was not taken by a thread that commits all, or taken back.
            if batch.0.get().is_none() && Arc::ptr_eq(batch, &state.batch) {
                self.commit(state, gather);
            } else {
                drop(state);
            }
        } else {
            drop(state);
        }
        batch.0.wait().clone()
    }

    /// Commits all that was appended, and leaves nothing to commit.
    pub(super) fn commit_all<'a>(&'a self, mut state: Guard<'a>) -> Result<Guard<'a>> {
        loop {
            self.check_poison(&state)?;
            if state.committing.is_some() {
                state = self.wait_committed(state);
            } else if state.is_settled() {
                return Ok(state);
            } else {
                let batch = state.batch.clone();
                self.commit(state, false);
                state = self.state();
                if let Some(Err(Failure::Refused(error))) = batch.0.get() {
                    return Err(error.again());
                }
            }
        }
    }

    /// Hands what was appended so far to the disk, and moves the mark. Other threads append meanwhile.
    fn commit<'a>(&'a self, state: Guard<'a>, gather: bool) {
        let _unwinding = self.unwinding(|state| state.committing = None);
        let mut state = state;
        state.committing = Some(state.batch.clone());
        if gather {
            state = self.gather(state);
        }
        let (batch, writes) = state.take_batch();
        // Another one where that was taken back meanwhile.
        state.committing = Some(batch.clone());
        let Some(current) = &mut state.segment else {
            // Nothing was appended since the last segment ended with a commit, unless the log was closed meanwhile.
            let outcome = match writes {
                0 => Ok(()),
                _ => Err(Failure::Unknown("the log was closed".into())),
            };
            return self.end_commit(state, &batch, outcome);
        };
        if let Err(error) = current.writer.flush() {
            let failure = self.roll_back(&mut state, error);
            return self.end_commit(state, &batch, Err(failure));
        }
        let (file, is_named) = (current.writer.handle(), current.is_named);
        let sequence = current.id.sequence;
        let end = current.end();
        // Nothing before the mark is taken back, also where the writes of these records have not returned yet.
        current.flushed = end;
        drop(state);
        let began = Instant::now();
        let synced = self.sync_segment(&file, is_named);
        let took = began.elapsed();
        // Without the state, so that others append while the mark is being synced.
        let done = synced.and_then(|()| self.mark(sequence, end));
        state = self.state();
        if let Err(error) = done {
            state.fail(&error);
        }
        if let Some(reason) = &state.poison {
            let unknown = Failure::Unknown(reason.clone());
            return self.end_commit(state, &batch, Err(unknown));
        }
        state.last_commit = (writes, took);
        if let Some(current) = &mut state.segment {
            current.is_named = true;
            current.synced = end;
        }
        self.end_commit(state, &batch, Ok(()))
    }

    fn sync_segment(&self, file: &Handle, is_named: bool) -> std::result::Result<(), String> {
        let synced = file.sync_data().and_then(|()| match is_named {
            true => Ok(()),
            false => self.folder.disk.sync_folder(self.path()),
        });
        synced.map_err(|error| error.to_string())
    }

    /// Moves the mark after what is on the disk. Not where a sync of another thread failed meanwhile: the system tells only one of
    /// them that bytes were lost.
    fn mark(&self, sequence: u64, end: SegmentEnd) -> std::result::Result<(), String> {
        let (offset, Some(last)) = end else {
            return Ok(());
        };
        if self.state().poison.is_some() {
            return Ok(());
        }
        let marked = self.marker.advance(sequence, offset, last);
        marked.map_err(|error| error.to_string())
    }

    /// Waits for as many writes as the last commit had, but for a part of what a sync takes at most: the threads of that one are
    /// on their way with their next.
    fn gather<'a>(&self, mut state: Guard<'a>) -> Guard<'a> {
        let (writes, took) = state.last_commit;
        let deadline = Instant::now() + (took / 2).min(MOST_GATHERING);
        while state.batch_writes < writes && state.poison.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.awaited = writes;
            let waited = self.appended.wait_timeout(state, left);
            state = waited.unpoisoned().0;
        }
        state.awaited = 0;
        state
    }

    /// Tells those who wait for a batch. The leader of the next one goes on at once, while these are woken.
    fn end_commit(&self, mut state: Guard<'_>, batch: &Batch, outcome: Outcome) {
        state.committing = None;
        drop(state);
        self.committed.notify_all();
        batch.end(outcome);
    }

    /// Takes back the records that could not be written and whose writes have not returned. Where no write waits, the buffer keeps what was
    /// taken, and writes it when there is room.
    fn roll_back(&self, state: &mut LogState, error: Error) -> Failure {
        let refused = Failure::Refused(Arc::new(error));
        let Some(current) = &mut state.segment else {
            return refused;
        };
        if self.options.durability == Durability::None {
            return refused;
        }
        let (offset, last) = current.flushed;
        current.filled = offset;
        let mut rolled = current.writer.roll_back(offset, last);
        if offset == 0 && rolled.is_ok() {
            // Its name is that of a record that is not there.
            rolled = self.folder.remove(current.writer.path());
            state.next_sequence = current.id.sequence;
            state.segment = None;
        }
        match rolled {
            Ok(()) => refused,
            Err(failed) => {
                let reason: Arc<str> = failed.to_string().into();
                state.fail(&reason);
                Failure::Unknown(reason)
            }
        }
    }

    /// Takes back what was appended since the last commit began, and tells all who wait for it. Returns what became of it.
    pub(super) fn refuse_batch(&self, state: &mut LogState, error: Error) -> Failure {
        if self.options.durability == Durability::None {
            // The buffer keeps what was taken, and writes it when there is room.
            return Failure::Refused(Arc::new(error));
        }
        let (batch, _) = state.take_batch();
        let failure = self.roll_back(state, error);
        batch.end(Err(failure.clone()));
        failure
    }

    /// The error for a writer of these records.
    pub(super) fn failed(&self, failure: &Failure, uuids: &[Uuid]) -> Error {
        match failure {
            Failure::Refused(error) => error.again(),
            Failure::Unknown(reason) => self.unknown(uuids, &[], reason),
        }
    }

    fn unknown(&self, uuids: &[Uuid], written: &[Uuid], reason: &str) -> Error {
        Error::OutcomeUnknown {
            path: self.folder.path.clone(),
            uuids: uuids.to_vec(),
            written: written.to_vec(),
            reason: reason.to_owned(),
        }
    }

    /// Appends records up to the first that is refused, and waits for all of these.
    pub(super) fn write_all(&self, records: &[NewRecord<'_>]) -> Result<Vec<Uuid>> {
        let mut parts: Vec<Part> = Vec::new();
        let is_taken_back = self.options.durability != Durability::None;
        let mut failed = None;
        let mut state = self.state();
        for record in records {
            match self.room(state, record) {
                Ok(guard) => state = guard,
                Err(error) => {
                    state = self.state();
                    failed = Some(error);
                    break;
                }
            }
            // Refused where earlier records that it was to follow were refused.
            let before = parts.last().filter(|_| is_taken_back);
            let pushed = match before.and_then(|(batch, _)| batch.0.get()) {
                Some(Err(before)) => Err(self.failed(before, &[])),
                _ => self.push(&mut state, *record),
            };
            match (pushed, parts.last_mut()) {
                (Ok(uuid), Some((last, uuids))) if Arc::ptr_eq(last, &state.batch) => {
                    uuids.push(uuid);
                }
                (Ok(uuid), _) => {
                    parts.push((state.batch.clone(), vec![uuid]));
                    self.count_write(&mut state);
                }
                (Err(error), _) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if self.options.durability == Durability::Flush
            && let Some((last, _)) = parts.last()
        {
            let _ = self.flush(&mut state, last); // told of each part below
        }
        drop(state);
        self.told(parts, failed)
    }

    /// What became of records that were appended, where `failed` hindered the next.
    fn told(&self, parts: Vec<Part>, mut failed: Option<Error>) -> Result<Vec<Uuid>> {
        let (mut written, mut unknown) = (Vec::new(), Vec::new());
        let mut reason = None;
        for (batch, uuids) in parts {
            match self.part(&batch) {
                Ok(()) => written.extend(uuids),
                Err(Failure::Unknown(why)) => {
                    unknown.extend(uuids);
                    reason = reason.or(Some(why));
                }
                Err(refused) => failed = Some(self.failed(&refused, &[])),
            }
        }
        if let Some(reason) = reason {
            return Err(self.unknown(&unknown, &written, &reason));
        }
        match failed {
            None => Ok(written),
            Some(error) if written.is_empty() => Err(error),
            Some(error) => Err(Error::Partial {
                path: self.folder.path.clone(),
                written,
                source: Box::new(error),
            }),
        }
    }

    /// Waits for what was promised of records that were appended together.
    fn part(&self, batch: &Arc<Batch>) -> Outcome {
        match (self.options.durability, batch.0.get()) {
            (Durability::Fsync, None) => self.wait(self.state(), batch, false),
            (Durability::None, Some(Err(Failure::Refused(_)))) => Ok(()), // they are still in the buffer
            (_, Some(outcome)) => outcome.clone(),
            (_, None) => Ok(()),
        }
    }
}

/// Records that were appended together, and what they are committed with. Where a segment ends between two of a call, they are
/// committed apart.
type Part = (Arc<Batch>, Vec<Uuid>);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::{LogOptions, NewRecord};

    /// One thread wrote all of them, so the next commit waits for one.
    #[test]
    fn the_records_of_one_call_count_as_one_write() {
        let folder = tempfile::tempdir().unwrap();
        let log = SegmentLog::open(folder.path(), LogOptions::default()).unwrap();
        log.write_batch([NewRecord::new(b"type", b"value"); 3])
            .unwrap();
        assert_eq!(log.state().last_commit.0, 1);
        log.write(b"type", b"value").unwrap();
        assert_eq!(log.state().last_commit.0, 1);
        log.close().unwrap();
    }

    /// A write may wait with records in the buffer, which a commit of another thread takes along. Where the next ones find no room, those
    /// stay: the mark is after them, and who waits for them was told so.
    #[test]
    fn what_a_commit_took_along_is_not_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let options = LogOptions::default().durability(Durability::Flush);
        let log = SegmentLog::open(folder.path(), options).unwrap();
        let append =
            |state: &mut LogState| log.push(state, NewRecord::new(b"type", b"value")).unwrap();
        let mut state = log.state();
        append(&mut state);
        let batch = state.batch.clone();
        let mut state = log.commit_all(state).unwrap();
        assert!(matches!(batch.0.get(), Some(Ok(()))));
        append(&mut state);
        let full = Error::io(None, "cannot write", std::io::ErrorKind::StorageFull.into());
        log.refuse_batch(&mut state, full);
        let current = state.segment.as_ref().unwrap();
        assert!(current.synced.0 > 0);
        assert_eq!(current.writer.position(), current.synced.0);
        drop(state);
        log.close().unwrap();
    }
}
