//! Writing many records at once, and what is said of those where some cannot be written.

use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::log::SegmentLog;
use super::options::Durability;
use super::state::{Batch, NewRecord, Outcome, Settled};
use crate::bug::OrBug;
use crate::error::{Error, Result};

/// Records that were appended, and what each part of them is committed with. Where a segment ends between two of them, they are
/// committed apart.
#[derive(Debug, Default)]
struct AppendedRecords {
    uuids: Vec<Uuid>,
    parts: Vec<(Arc<Batch>, Range<usize>)>,
}

impl AppendedRecords {
    /// Adds a record, and returns whether it is the first one of its batch.
    fn push(&mut self, uuid: Uuid, batch: &Arc<Batch>) -> bool {
        let at = self.uuids.len();
        self.uuids.push(uuid);
        match self.parts.last_mut() {
            Some((last, range)) if Arc::ptr_eq(last, batch) => {
                range.end = at + 1;
                false
            }
            _ => {
                self.parts.push((batch.clone(), at..at + 1));
                true
            }
        }
    }

    fn of(&self, range: &Range<usize>) -> &[Uuid] {
        let uuids = self.uuids.get(range.clone());
        uuids.or_bug_default("UUIDs of the batch")
    }
}

impl SegmentLog {
    /// Appends records up to the first that is refused, and waits for all of these.
    pub(super) fn write_all(&self, records: &[NewRecord<'_>]) -> Result<Vec<Uuid>> {
        let mut appended = AppendedRecords {
            uuids: Vec::with_capacity(records.len()),
            parts: Vec::new(),
        };
        let is_taken_back = self.options.durability != Durability::None;
        let mut failed = None;
        let mut state = self.state();
        for record in records {
            match self.room(state, record) {
                Ok(own) => state = own,
                Err(error) => {
                    state = self.state();
                    failed = Some(error);
                    break;
                }
            }
            // Refused where earlier records that it was to follow were refused.
            let before = appended.parts.last().filter(|_| is_taken_back);
            let pushed = match before.and_then(|(batch, _)| batch.0.get()) {
                Some(before @ (Outcome::Refused(_) | Outcome::Unknown(_))) => {
                    Err(self.failed(before, &[]))
                }
                _ => self.push(&mut state, *record),
            };
            match pushed {
                Ok(uuid) => {
                    if appended.push(uuid, &state.batch) {
                        self.count_write(&mut state);
                    }
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if self.options.durability == Durability::Flush
            && let Some((last, _)) = appended.parts.last()
        {
            let _ = self.flush(&mut state, last); // told of each part below
        }
        drop(state);
        self.told(appended, failed)
    }

    /// What became of records that were appended, where `failed` hindered the next.
    fn told(&self, appended: AppendedRecords, mut failed: Option<Error>) -> Result<Vec<Uuid>> {
        let (mut written, mut unknown) = (Vec::new(), Vec::new());
        let mut reason = None;
        for (batch, range) in &appended.parts {
            let uuids = appended.of(range);
            match self.part(batch) {
                Ok(()) => written.extend_from_slice(uuids),
                Err(Outcome::Unknown(own)) => {
                    unknown.extend_from_slice(uuids);
                    reason = reason.or(Some(own));
                }
                Err(refused) => failed = Some(self.failed(&refused, &[])),
            }
        }
        if let Some(reason) = reason {
            return Err(self.unknown(&unknown, &written, &reason));
        }
        match failed {
            None => Ok(appended.uuids),
            Some(error) if written.is_empty() => Err(error),
            Some(error) => Err(Error::Partial {
                path: self.folder.clone(),
                written,
                source: Box::new(error),
            }),
        }
    }

    /// Waits for what was promised of records that were appended together.
    fn part(&self, batch: &Arc<Batch>) -> Settled {
        match (self.options.durability, batch.0.get()) {
            (Durability::Fsync, None) => self.wait(self.state(), batch, false),
            (Durability::None, Some(Outcome::Refused(_))) => Ok(()), // they are still in the buffer
            (_, None | Some(Outcome::Durable)) => Ok(()),
            (_, Some(failed)) => Err(failed.clone()),
        }
    }
}
