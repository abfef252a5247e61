//! Group commit: one thread hands the records of many to the disk.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use super::frozen::remove_synced;
use super::log::SegmentLog;
use super::options::Durability;
use super::state::{Batch, Guard, Outcome, State, again};
use crate::engine::Writer as _;
use crate::error::{Error, Result};
use crate::sync::Instant;

/// The mark is synced at most this often, but for rolls and closing.
const MARK_SYNC_INTERVAL: Duration = Duration::from_millis(100);
/// The longest that a commit waits for as many records as the last one had.
const MOST_GATHERING: Duration = Duration::from_millis(1);

impl SegmentLog {
    /// Waits for what `durability` promises of records that were appended to these batches.
    pub(super) fn settle<'a>(
        &'a self,
        mut state: Guard<'a>,
        batches: &[Arc<Batch>],
        uuids: &[Uuid],
    ) -> Result<()> {
        let settled = match self.options.durability {
            Durability::None => Ok(()),
            Durability::Flush => self.flush(&mut state, batches, uuids),
            Durability::Fsync => {
                let mut failed = None;
                for batch in batches {
                    let waited = self.wait(state, batch, uuids);
                    failed = failed.or(waited.err());
                    state = self.state();
                }
                failed.map_or(Ok(()), Err)
            }
        };
        match settled {
            // Other batches of these records may be in the log.
            Err(error @ Error::Io { .. }) if batches.len() > 1 => {
                Err(self.unknown(uuids, &error.to_string()))
            }
            settled => settled,
        }
    }

    /// Hands all records to the operating system.
    fn flush(&self, state: &mut State, batches: &[Arc<Batch>], uuids: &[Uuid]) -> Result<()> {
        if let Some(current) = &mut state.segment {
            if let Err(error) = current.writer.flush() {
                return Err(self.refuse_batch(state, error, uuids));
            }
            current.flushed = (current.writer.position(), current.last());
        }
        // Another thread may have found no room for what it flushed.
        batches.iter().try_for_each(|batch| match batch.0.get() {
            Some(Outcome::Refused(error)) => Err(again(error)),
            _ => Ok(()),
        })
    }

    /// Waits until a batch is committed; commits it where no other thread does.
    pub(super) fn wait<'a>(
        &'a self,
        mut state: Guard<'a>,
        batch: &Batch,
        uuids: &[Uuid],
    ) -> Result<()> {
        loop {
            if let Some(outcome) = batch.0.get() {
                return match outcome {
                    Outcome::Durable => Ok(()),
                    Outcome::Refused(error) => Err(again(error)),
                    Outcome::Unknown(reason) => Err(self.unknown(uuids, reason)),
                };
            }
            if let Some(poison) = &state.poison {
                return Err(self.unknown(uuids, poison));
            }
            state = if state.is_committing {
                self.wait_committed(state)
            } else {
                self.commit(state, uuids.len() == 1)
            };
        }
    }

    pub(super) fn unknown(&self, uuids: &[Uuid], reason: &str) -> Error {
        Error::OutcomeUnknown {
            path: self.folder.clone(),
            uuids: uuids.to_vec(),
            reason: reason.to_owned(),
        }
    }

    pub(super) fn wait_committed<'a>(&self, state: Guard<'a>) -> Guard<'a> {
        self.committed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits all that was appended, and leaves nothing to commit.
    pub(super) fn commit_all<'a>(&'a self, mut state: Guard<'a>) -> Result<Guard<'a>> {
        loop {
            self.check_poison(&state)?;
            if state.is_committing {
                state = self.wait_committed(state);
            } else if state.is_settled() {
                return Ok(state);
            } else {
                let batch = state.batch.clone();
                state = self.commit(state, false);
                if let Some(Outcome::Refused(error)) = batch.0.get() {
                    return Err(again(error));
                }
            }
        }
    }

    /// Hands what was appended so far to the disk, and moves the mark. Other threads append meanwhile.
    fn commit<'a>(&'a self, mut state: Guard<'a>, gather: bool) -> Guard<'a> {
        state.is_committing = true;
        if gather {
            state = self.gather(state);
        }
        let batch = std::mem::take(&mut state.batch);
        let records = std::mem::take(&mut state.batch_records);
        let Some(current) = &mut state.segment else {
            // Nothing was appended since the last segment ended with a commit, unless the log was closed meanwhile.
            let outcome = match records {
                0 => Outcome::Durable,
                _ => Outcome::Unknown("the log was closed".into()),
            };
            return self.end_commit(state, &batch, outcome);
        };
        if let Err(error) = current.writer.flush() {
            let outcome = match self.options.durability {
                // The buffer keeps what was taken, and writes it when there is room.
                Durability::None => Outcome::Refused(Arc::new(error)),
                _ => self.roll_back(&mut state, error),
            };
            return self.end_commit(state, &batch, outcome);
        }
        let (file, is_named) = (current.file.clone(), current.is_named);
        let (sequence, end) = (
            current.id.sequence,
            (current.writer.position(), current.last()),
        );
        current.syncing = Some(end);
        drop(state);
        let began = Instant::now();
        let synced = file.sync_data().and_then(|()| {
            if is_named {
                return Ok(());
            }
            self.options.disk.sync_folder(&self.folder)
        });
        let took = began.elapsed();
        state = self.state();
        if let Err(error) = synced {
            return self.poison(state, &batch, &error.to_string());
        }
        if let Some(reason) = state.poison.clone() {
            // A sync of another thread failed meanwhile. The system tells only one of them that bytes were lost.
            return self.end_commit(state, &batch, Outcome::Unknown(reason));
        }
        state.last_commit = (records, took);
        if let Some(current) = &mut state.segment {
            current.is_named = true;
            current.synced = end;
            current.syncing = None;
        }
        if let (offset, Some(last)) = end
            && let Err(error) = state.mark.advance(sequence, offset, last)
        {
            return self.poison(state, &batch, &error.to_string());
        }
        let _ = batch.0.set(Outcome::Durable); // nobody else sets it
        if state.mark_synced.elapsed() >= MARK_SYNC_INTERVAL {
            // Those whose records are on the disk need not wait for this.
            self.committed.notify_all();
            state = self.sync_mark(state);
        }
        self.end_commit(state, &batch, Outcome::Durable)
    }

    /// Waits for as many records as the last commit had, but for a part of what a sync takes at most: the threads of that one are
    /// on their way with their next.
    fn gather<'a>(&self, mut state: Guard<'a>) -> Guard<'a> {
        let (records, took) = state.last_commit;
        let deadline = Instant::now() + (took / 2).min(MOST_GATHERING);
        while state.batch_records < records {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.appended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    pub(super) fn sync_mark<'a>(&self, mut state: Guard<'a>) -> Guard<'a> {
        state.mark_synced = Instant::now();
        let synced = self.check_lock(&mut state).and_then(|()| state.mark.sync());
        if let Err(error) = synced {
            state.poison = Some(error.to_string().into());
        }
        state
    }

    fn end_commit<'a>(&self, mut state: Guard<'a>, batch: &Batch, outcome: Outcome) -> Guard<'a> {
        let _ = batch.0.set(outcome); // set before where the mark was synced
        state.is_committing = false;
        self.committed.notify_all();
        state
    }

    /// Refuses to go on after a failed sync.
    fn poison<'a>(&self, mut state: Guard<'a>, batch: &Batch, error: &str) -> Guard<'a> {
        let reason: Arc<str> = error.into();
        state.poison = Some(reason.clone());
        self.end_commit(state, batch, Outcome::Unknown(reason))
    }

    /// Takes back the records that could not be written and whose writes have not returned.
    fn roll_back(&self, state: &mut State, error: Error) -> Outcome {
        let Some(current) = &mut state.segment else {
            return Outcome::Refused(Arc::new(error));
        };
        let (offset, last) = match self.options.durability {
            Durability::Flush => current.flushed,
            _ => current.syncing.unwrap_or(current.synced),
        };
        current.filled = offset;
        let mut rolled = current.writer.roll_back(offset, last);
        if offset == 0 && rolled.is_ok() {
            // Its name is that of a record that is not there.
            let path = current.writer.path();
            rolled = remove_synced(&self.options.disk, &self.folder, path);
            state.next_sequence = current.id.sequence;
            state.segment = None;
        }
        match rolled {
            Ok(()) => Outcome::Refused(Arc::new(error)),
            Err(failed) => {
                let reason: Arc<str> = failed.to_string().into();
                state.poison = Some(reason.clone());
                Outcome::Unknown(reason)
            }
        }
    }

    /// Takes back what was appended since the last commit began, tells all who wait for it, and returns the error for a writer of
    /// these UUIDs.
    pub(super) fn refuse_batch(&self, state: &mut State, error: Error, uuids: &[Uuid]) -> Error {
        if self.options.durability == Durability::None {
            return error; // the buffer keeps what was taken, and writes it when there is room
        }
        let outcome = self.roll_back(state, error);
        let batch = std::mem::take(&mut state.batch);
        state.batch_records = 0;
        let told = match &outcome {
            Outcome::Unknown(reason) => self.unknown(uuids, reason),
            Outcome::Refused(error) => again(error),
            Outcome::Durable => Error::Usage("a batch that was refused is on the disk".to_owned()),
        };
        let _ = batch.0.set(outcome); // nobody else sets it
        self.committed.notify_all();
        told
    }
}
