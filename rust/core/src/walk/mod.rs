//! The walk: reads a file in steps.

mod budget;
mod driver;
pub(crate) mod indexed;
pub(crate) mod layers;
mod lookup;
mod options;
pub(crate) mod part;
pub(crate) mod sidecar;
pub(crate) mod stream;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::ledger::{RecordRun, Span, Summary};
use crate::record::{Checked, Rows};
use crate::source::Source;

pub(crate) use budget::{Budget, follows_plausibly};
pub(crate) use driver::{Advance, Driver, Scan};
pub(crate) use layers::SelectedRows;
pub use lookup::{Hits, Lookup, Unproven};
pub use options::{IndexSource, Interrupt, OnDamage, Options, Sidecar};
pub use part::Part;
pub(crate) use part::part_bytes;

/// The outcome of a step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Records or ranges were found; there may be more.
    More,
    /// All bytes so far are read, and the file is still growing. Resume later from the [`Carry`].
    Wait,
    /// The file is read to its end, or to where no matching record can follow.
    Done,
}

/// Whether a file may still grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Eof {
    /// The file is complete: an incomplete record at its end is a torn tail.
    #[default]
    Final,
    /// The file is being written: wait for an incomplete record at its end.
    Growing,
}

/// A point from which a walk can resume, as JSON. It contains no code and can be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carry(pub String);

impl Carry {
    /// The carry of a walk with this state.
    pub(crate) fn of(state: &impl Serialize) -> Self {
        Self(serde_json::to_string(state).or_bug_default("a state with a JSON form"))
    }

    /// The same carry, with the members of its JSON in the order in which they are compared; `None` if it is empty.
    pub(crate) fn compared(&self) -> Option<Self> {
        let state: serde_json::Value = serde_json::from_str(&self.0).ok()?;
        Some(Self(state.to_string()))
    }

    /// The state of a walk through `what`, for instance "an oplog".
    ///
    /// # Errors
    /// [`Error::Usage`] if the carry is not such a state.
    pub(crate) fn state<T: DeserializeOwned>(&self, what: &str) -> Result<T> {
        serde_json::from_str(&self.0).map_err(|error| {
            Error::Usage(format!(
                "this is not a point at which {what} can be resumed: {error}. Read from the beginning"
            ))
        })
    }
}

/// Where the walk of a format begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Begin<'a> {
    #[default]
    Beginning,
    Offset(u64),
    Carry(&'a Carry),
    /// A part that is not the whole file.
    Part(&'a Part),
}

/// What the walk of a format is opened for. [`Options`] have what a user may choose; this has what only the opener
/// knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening<'a> {
    pub(crate) begin: Begin<'a>,
    pub(crate) unproven: UnprovenPolicy,
    pub(crate) numbering: OffsetNumbering,
    pub(crate) purpose: Purpose,
}

impl<'a> From<Begin<'a>> for Opening<'a> {
    fn from(begin: Begin<'a>) -> Self {
        Self {
            begin,
            ..Self::default()
        }
    }
}

/// What is read of a file that has no checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UnprovenPolicy {
    /// What follows damage too, if it leads to where the file ends now.
    #[default]
    All,
    /// What is before the first damage: where the file ends now may prove something else than its end.
    SoundPrefix,
    /// All of a complete file, unless its parity sidecar is of another file: then nothing is proven.
    OwnSidecar,
}

/// Which numbers a walk that begins at an offset gives its records, in formats that do not store them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OffsetNumbering {
    /// Their own: the records before them are counted.
    #[default]
    Counted,
    /// Any. A record begins at the offset, and the records before it are not read unless others refer to them.
    Any,
}

/// What a walk is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its records and ranges.
    #[default]
    All,
    /// Where it ends. What does not change that may be left out.
    End,
}

/// What only the openers of files do with a walk, before others are laid around it. It seals [`Walk`].
#[allow(unreachable_pub, reason = "a public trait requires it")]
pub trait Settle {
    /// Ends a walk that [waits](Step::Wait): settles the ranges that more bytes might have extended. They are those of a
    /// last step, if there are any, and [`carry`](Walk::carry) has none of them.
    ///
    /// # Errors
    /// As [`Walk::step`].
    fn settle(&mut self) -> Result<Step> {
        Ok(Step::Done)
    }
}

/// Reads one file, from its beginning or from a [`Carry`], to its end. Only walks parse and verify records.
///
/// Ranges come in file order, with one exception. An index or table of contents can only be verified by the units that
/// its entries name. So the ranges before [`front_end`](Self::front_end) come last, with the last step that returns
/// any. [`verbs::Ledger`](crate::verbs::Ledger) puts them in front.
///
/// In strict mode, sound records before the first damage that the walk meets may be emitted before the error. The error
/// is the damage that is first in the file.
pub trait Walk: Settle + Send {
    /// Goes on until something is found. [`rows`](Self::rows) and [`spans`](Self::spans) are those of the latest step.
    ///
    /// # Errors
    /// - [`Error::Damage`](crate::Error::Damage) in strict mode.
    /// - [`Error::Limit`](crate::Error::Limit), [`Error::Io`](crate::Error::Io),
    ///   [`Error::Interrupted`](crate::Error::Interrupted).
    ///
    /// After an error, each further step returns the same error.
    fn step(&mut self) -> Result<Step>;

    /// The sound records of the last step that match [`Options::filter`].
    fn rows(&self) -> Box<dyn Rows + '_>;

    /// The ranges of the ledger that the last step settled, in file order, each once.
    fn spans(&self) -> &[Span];

    /// The same as [`spans`](Self::spans) if they are adjacent records and nothing else, without making each of them.
    /// Returns `None` if they are not, or if only a look at each would show it.
    #[doc(hidden)]
    fn record_run(&self) -> Option<RecordRun> {
        None
    }

    /// Whether the last step settled a damaged range.
    #[doc(hidden)]
    fn found_damage(&self) -> bool {
        self.record_run().is_none() && self.spans().iter().any(Span::is_damage)
    }

    /// How many records of the last step have bytes that a parity sidecar restores, whether they are emitted or not.
    #[doc(hidden)]
    fn repaired(&self) -> u64 {
        0
    }

    /// The offset before which ranges come last; 0 if all come in file order.
    #[doc(hidden)]
    fn front_end(&self) -> u64 {
        0
    }

    /// How the records of this file are checked.
    #[doc(hidden)] // public for the extension: the report has it
    fn checked(&self) -> Checked;

    /// The offset up to which the file has been read.
    fn offset(&self) -> u64;

    /// The point from which another walk can resume; `None` in a file of a format that does not grow.
    #[doc(hidden)]
    fn carry(&self) -> Option<Carry>;

    /// Whether no record was verified so far although the structure is sound to the end: the key is probably wrong.
    #[doc(hidden)]
    fn suspects_key(&self) -> bool {
        false
    }
}

/// Refuses to start past the end of a file.
///
/// # Errors
/// [`Error::Usage`].
pub(crate) fn check_start(at: u64, source: &dyn Source) -> Result<()> {
    let len = source.len();
    if at > len {
        return Err(Error::Usage(format!(
            "cannot start at offset {at}: expected at most {len}, the file's length"
        )));
    }
    Ok(())
}

/// The error for a carry, given to a walk of a format that has none.
pub(crate) fn cannot_resume(format: &str) -> Error {
    Error::Usage(format!(
        "expected a place to begin in a {format} segment, found the state of another walk: such a segment is complete, and no walk of it is resumed. Read from the beginning"
    ))
}

/// Adds the ranges of a walk's last step to a summary.
pub(crate) fn sum_up(walk: &dyn Walk, summary: &mut Summary) {
    summary.note(walk.checked(), walk.suspects_key());
    let run = walk.record_run();
    // The spans of a run are made only when asked for.
    let spans = if run.is_some() { &[] } else { walk.spans() };
    summary.add(run.as_ref(), spans, &*walk.rows());
    summary.repaired += walk.repaired();
}
