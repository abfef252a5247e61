//! What a log's writer knows: the active segment, and the batches of records that are committed together.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::name::SegmentId;
use super::options::LogOptions;
use crate::engine::Writer as _;
use crate::error::{Error, Result};
use crate::format::active::{self, Sequence};
use crate::sync::{MutexGuard, OnceLock};
use crate::uuid6;

#[derive(Debug, Default)]
pub(super) struct LogState {
    pub(super) segment: Option<Current>,
    pub(super) next_sequence: u64,
    /// After the greatest UUID that was appended or found, also of records that were taken back.
    pub(super) sequence: Sequence,
    /// What becomes of the records since the last commit began.
    pub(super) batch: Arc<Batch>,
    /// How many writes have records among those: of one record, or of many.
    pub(super) batch_writes: usize,
    /// A thread waits for so many; 0 if none does.
    pub(super) awaited: usize,
    /// A thread waits to commit them. Others only wait for that.
    pub(super) is_led: bool,
    /// What a thread is committing: only one does.
    pub(super) committing: Option<Arc<Batch>>,
    /// A thread waits for all commits to begin a new segment, so nothing is appended.
    pub(super) is_rolling: bool,
    /// How many writes the last commit had, and how long its sync took.
    pub(super) last_commit: (usize, Duration),
    /// Why nothing can be written any more.
    pub(super) poison: Option<Arc<str>>,
    pub(super) stage: Stage,
    /// What closing ended with, while the log is still being sealed.
    pub(super) close_error: Option<Error>,
}

/// The segment that is being written.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) id: SegmentId,
    pub(super) writer: active::Writer,
    /// When it was begun, or gone on with, in ticks of UUIDs.
    pub(super) begun: u64,
    /// The file's name is known to be on the disk.
    pub(super) is_named: bool,
    /// Up to where the file has bytes, written or zeros.
    pub(super) filled: u64,
    /// What is on the disk.
    pub(super) synced: SegmentEnd,
    /// What is not taken back any more: a commit took it along, or writes that returned handed it to the operating system
    /// ([`Durability::Flush`]).
    pub(super) flushed: SegmentEnd,
}

/// A record that is to be written to a log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewRecord<'a> {
    #[doc(hidden)] // public for the Python extension
    pub uuid: Option<Uuid>,
    #[doc(hidden)] // public for the Python extension
    pub type_: &'a [u8],
    #[doc(hidden)] // public for the Python extension
    pub value: &'a [u8],
}

impl<'a> NewRecord<'a> {
    /// A record of the present time, with a type of at most 255 bytes.
    #[must_use]
    pub const fn new(type_: &'a [u8], value: &'a [u8]) -> Self {
        Self {
            uuid: None,
            type_,
            value,
        }
    }

    /// The same record with this UUID; `None` makes one of the present time.
    #[must_use]
    pub fn uuid(mut self, uuid: impl Into<Option<Uuid>>) -> Self {
        self.uuid = uuid.into();
        self
    }
}

/// An offset in a segment, and the UUID of the last record before it.
pub(super) type SegmentEnd = (u64, Option<[u8; 16]>);

/// Records that are committed together, and what became of them: each batch has its own waiters. Once it is no more
/// [`LogState::batch`], a thread sets the outcome.
#[derive(Debug, Default)]
pub(super) struct Batch(pub(super) OnceLock<Outcome>);

impl Batch {
    /// Tells all who wait. What was told before stays.
    pub(super) fn end(&self, outcome: Outcome) {
        let _ = self.0.set(outcome);
    }
}

/// That records are as durable as was promised, or why not.
pub(super) type Outcome = std::result::Result<(), Failure>;

#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// None of them is in the log.
    Refused(Arc<Error>),
    /// Each of them may be in the log or not.
    Unknown(Arc<str>),
}

/// How far a log is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Open,
    /// Nothing is appended any more.
    Closed,
    /// Other writers are let in.
    Released,
}

/// How far the active segment is filled with zeros ahead of its records, in bytes: a sync of bytes that are in the file already
/// need not write the file's length.
const PREALLOCATED_BYTES: u64 = 4 << 20;

/// The state, held by one thread.
pub(super) type Guard<'a> = MutexGuard<'a, LogState>;

impl LogState {
    /// The UUID of the next record.
    #[inline]
    pub(super) fn next_uuid(&mut self, given: Option<Uuid>, most: Duration) -> Result<Uuid> {
        match given {
            None => self.sequence.next(),
            Some(uuid) => {
                self.sequence.check(&uuid)?;
                refuse_ahead(&uuid, most).map(|()| uuid)
            }
        }
    }

    /// Takes what was appended since the last commit began. Who takes it has to [end](Batch::end) it.
    pub(super) fn take_batch(&mut self) -> (Arc<Batch>, usize) {
        self.is_led = false;
        let writes = std::mem::take(&mut self.batch_writes);
        (std::mem::take(&mut self.batch), writes)
    }

    /// Refuses to go on: nobody knows what the disk holds, or what this state is. Tells all who wait for a commit.
    pub(super) fn fail(&mut self, reason: &str) {
        let reason = self.poison.get_or_insert_with(|| reason.into());
        let unknown = Failure::Unknown(reason.clone());
        if let Some(committing) = &self.committing {
            committing.end(Err(unknown.clone()));
        }
        self.batch.end(Err(unknown));
    }

    /// Whether all that was appended is on the disk.
    pub(super) fn is_settled(&self) -> bool {
        self.segment
            .as_ref()
            .is_none_or(|current| current.writer.position() == current.synced.0)
    }
}

impl Current {
    /// A new segment.
    pub(super) fn begin(id: SegmentId, writer: active::Writer) -> Self {
        let end = end_of(&writer);
        Self {
            id,
            writer,
            begun: uuid6::present(),
            is_named: false,
            filled: 0,
            synced: end,
            flushed: end,
        }
    }

    /// Goes on with a segment that recovery put in order: all of it is on the disk.
    pub(super) fn resume(id: SegmentId, writer: active::Writer) -> Result<Self> {
        let mut current = Self::begin(id, writer);
        let (filled, path) = (current.writer.handle().len(), current.writer.path());
        current.filled = filled.map_err(|error| Error::io(Some(path), "cannot stat", error))?;
        current.is_named = true;
        Ok(current)
    }

    /// Where it ends, with what is in the writer's buffer.
    pub(super) fn end(&self) -> SegmentEnd {
        end_of(&self.writer)
    }

    /// Whether this record goes into another segment.
    #[inline]
    pub(super) fn is_full(&self, record: &NewRecord<'_>, options: &LogOptions) -> bool {
        let position = self.writer.position();
        let end = position.saturating_add(record_bytes(record));
        let is_old = options
            .segment_age
            .is_some_and(|age| self.age_at(record) >= age);
        position > 0 && (is_old || end > options.segment_bytes)
    }

    /// By how much this record is later than the segment's first one. Both have their time in their UUID, so that it is the same after the
    /// log was opened again, and records of the past do not get a segment each.
    #[cold]
    fn age_at(&self, record: &NewRecord<'_>) -> Duration {
        let (present, first) = (uuid6::present(), uuid6::ticks(self.id.first.as_bytes()));
        if first > present {
            return uuid6::between(self.begun, present);
        }
        let time = match record.uuid {
            Some(given) => uuid6::ticks(given.as_bytes()),
            None => present,
        };
        // A clock that was set back shows nothing: its records are later than the last one.
        let last = self.end().1.map(|last| uuid6::ticks(&last));
        let time = last.into_iter().fold(time, u64::max);
        uuid6::between(first, time)
    }

    /// Fills the file with zeros ahead of a record of so many bytes. Where there is no room for that there may be some for the
    /// record itself, so an error is left to that.
    pub(super) fn preallocate(&mut self, bytes: u64, segment_bytes: u64) {
        let end = self.writer.position().saturating_add(bytes);
        if end <= self.filled {
            return;
        }
        let wanted = end
            .saturating_add(PREALLOCATED_BYTES)
            .min(segment_bytes)
            .max(end);
        self.filled = if self.writer.fill(wanted).is_ok() {
            wanted
        } else {
            end // another try with the next record
        };
    }
}

fn end_of(writer: &active::Writer) -> SegmentEnd {
    (writer.position(), writer.last_uuid().map(Uuid::into_bytes))
}

/// Refuses a time that is too far ahead of the clock.
fn refuse_ahead(uuid: &Uuid, most: Duration) -> Result<()> {
    match uuid6::ahead(uuid.as_bytes()) {
        Some(ahead) if ahead > most => Err(Error::Usage(format!(
            "the time of the UUID {uuid} is {} s ahead of the clock: expected at most {} s. All later records would get that time. Correct \
             it, or raise `max_clock_ahead`",
            ahead.as_secs(),
            most.as_secs()
        ))),
        _ => Ok(()),
    }
}

/// What a record takes beside its type and value: UUID, two lengths, checksum.
const RECORD_BYTES: u64 = 16 + 1 + 4 + 8;

/// The bytes of a record.
#[inline]
pub(super) const fn record_bytes(record: &NewRecord<'_>) -> u64 {
    RECORD_BYTES + record.type_.len() as u64 + record.value.len() as u64
}
