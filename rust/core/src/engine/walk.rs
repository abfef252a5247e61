//! How a file is read: the walk, and what each of its steps gives.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Part;
use crate::error::{Error, Result};
use crate::ledger::{RecordRun, Span, Summary};
use crate::own::Own;
use crate::record::Checked;
use crate::record::Rows;
use crate::source::Source;

/// What a step of a walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Records or ranges were found; there may be more.
    More,
    /// What is there so far is read, and the file is still growing: go on later from the [`Carry`].
    Wait,
    /// The file is read to its end, or to where no wanted record can follow.
    Done,
}

/// How a file's end is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eof {
    /// The file is finished: an incomplete record at its end is a torn tail.
    #[default]
    Final,
    /// The file is being written: an incomplete record at its end is one to wait for.
    Growing,
}

/// A point from which a walk can go on, as JSON: no part of it is code, and it can be kept for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carry(pub String);

impl Carry {
    /// A walk whose state this is.
    ///
    /// A state always has a JSON form, but for what it put into a temporary file that cannot be read back. Then the carry is
    /// empty, and whoever would go on from it is told so.
    pub(crate) fn of(state: &impl Serialize) -> Self {
        Self(serde_json::to_string(state).unwrap_or_default())
    }

    /// The state of a walk through `what`, for instance "an oplog".
    ///
    /// # Errors
    /// [`Error::Usage`] where it is none.
    pub(crate) fn state<T: DeserializeOwned>(&self, what: &str) -> Result<T> {
        serde_json::from_str(&self.0).map_err(|error| {
            Error::Usage(format!(
                "this is not a point from which {what} can be read on: {error}"
            ))
        })
    }
}

/// Where a walk begins.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Start<'a> {
    /// At the file's beginning.
    #[default]
    Beginning,
    /// At this offset, at which a record begins. What is before it is not known, so the first record ascends whatever it is.
    Offset(u64),
    /// Where another walk was.
    Carry(&'a Carry),
    /// At the beginning of this part, at whose end the walk ends.
    Part(&'a Part),
}

/// Reads one file from its beginning, or from a [`Carry`], to its end: the only thing that parses or checks records.
///
/// Ranges come in file order, but for one thing: which entries of an index or table of contents are right, only the walk
/// through what they point at can show. So the ranges in front of [`front_end`](Self::front_end) come last, with the last step
/// that gives any; [`verbs::Ledger`](crate::verbs::Ledger) puts them in front.
///
/// Reading strictly, records that are good and in front of the first damage that the walk meets may be given out before it;
/// the error is of the damage that is first in the file.
pub trait Walk: Own + Send {
    /// Goes on until something is found. [`rows`](Self::rows) and [`spans`](Self::spans) are of the latest step alone.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) if reading strictly, [`Error::Limit`](crate::Error::Limit),
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    /// A walk that failed fails again in the same way when stepped again, or is at its end.
    fn step(&mut self) -> Result<Step>;

    /// The good records that the last step found and that [`Options::filter`](super::Options::filter) lets through.
    fn rows(&self) -> Box<dyn Rows + '_>;

    /// The ranges of the ledger that the last step settled, in file order, each once.
    fn spans(&self) -> &[Span];

    /// The same as [`spans`](Self::spans), where they are records one directly behind the other and nothing else: without making
    /// them one by one. `None` where they are not, and where only looking at each would tell.
    fn record_run(&self) -> Option<RecordRun> {
        None
    }

    /// Whether the last step settled that something is damaged.
    fn found_damage(&self) -> bool {
        self.record_run().is_none() && self.spans().iter().any(Span::is_damage)
    }

    /// The offset up to which ranges come last. 0 where all come in file order.
    fn front_end(&self) -> u64 {
        0
    }

    /// How the records of this very file are checked.
    fn checked(&self) -> Checked;

    /// The offset up to which the file has been read.
    fn offset(&self) -> u64;

    /// Where another walk would go on.
    fn carry(&self) -> Carry;

    /// Whether so far nothing checked although the structure is sound to the end: the key is probably wrong.
    fn suspects_key(&self) -> bool {
        false
    }
}

/// Refuses to begin behind the end of a file.
///
/// # Errors
/// [`Error::Usage`].
pub(crate) fn check_start(at: u64, source: &dyn Source) -> Result<()> {
    let len = source.len();
    if at > len {
        return Err(Error::Usage(format!(
            "cannot start at offset {at} of a file of {len} bytes"
        )));
    }
    Ok(())
}

/// Adds what the last step of a walk found to a summary of what it has read.
pub(crate) fn sum_up(walk: &dyn Walk, summary: &mut Summary) {
    summary.note(walk.checked(), walk.suspects_key());
    let run = walk.record_run();
    // Those of a run are made one by one only for who asks.
    let spans = if run.is_some() { &[] } else { walk.spans() };
    summary.add(run.as_ref(), spans, &*walk.rows());
}
