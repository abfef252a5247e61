//! The two ways to read a file: a walk, in steps, and a look-up of records. A format has a scan, of which the one loop
//! makes a walk.

mod budget;
pub(crate) mod indexed;
pub(crate) mod input;
pub(crate) mod layers;
mod options;
pub(crate) mod part;
pub(crate) mod sidecar;
pub(crate) mod stream;

use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::ledger::{RecordRun, Span, Summary};
use crate::private::Sealed;
use crate::record::{Checked, Column, RecordId, RecordSet, Rows};
use crate::spec::Filter;

pub(crate) use budget::{Budget, follows_plausibly};
pub(crate) use layers::SelectedRows;
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
    fn of(state: &impl Serialize) -> Self {
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

/// The outcome of one advance of a [`Scan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// There may be more.
    On,
    /// The step ends here: the next advance would push this step's records out of the window, or it ends the walk.
    Full,
    /// All bytes so far are read, and the file is still growing.
    Wait,
    /// Nothing follows.
    End,
}

impl Eof {
    /// The outcome of an advance at the end of the file.
    const fn reached(self) -> Advance {
        match self {
            Self::Final => Advance::End,
            Self::Growing => Advance::Wait,
        }
    }
}

/// Scans a file of one format: decides where to read next and what is there. [`Driver`] makes a [`Walk`] of it. Methods
/// that both have are described in [`Walk`].
pub(crate) trait Scan: Send {
    /// The records that a step emits.
    type Rows<'a>: Rows
    where
        Self: 'a;

    /// How the file is read.
    fn options(&self) -> &Options;

    /// Forgets what the last step found.
    ///
    /// # Errors
    /// An error that reading the last step's rows ran into and could not return. The scan has ended then.
    fn begin_step(&mut self) -> Result<()>;

    /// Goes on by one unit or group of units.
    ///
    /// # Errors
    /// Those of [`Walk::step`].
    fn advance(&mut self) -> Result<Advance>;

    /// Settles pending ranges at the end of the file.
    fn finish(&mut self);

    /// Whether this step has found anything.
    fn has_found(&self) -> bool;

    /// Whether this step has found enough to end. By default, anything is enough: each advance of most scans finds much
    /// at once.
    fn is_enough(&self) -> bool {
        self.has_found()
    }

    /// As [`Walk::rows`].
    fn rows(&self) -> Self::Rows<'_>;

    /// As [`Walk::spans`].
    fn spans(&self) -> &[Span];

    /// As [`Walk::record_run`].
    fn record_run(&self) -> Option<RecordRun> {
        None
    }

    /// As [`Walk::front_end`].
    fn front_end(&self) -> u64 {
        0
    }

    /// As [`Walk::checked`].
    fn checked(&self) -> Checked;

    /// As [`Walk::offset`]. `ended` says whether the scan is at its end.
    fn offset(&self, ended: bool) -> u64;

    /// As [`Walk::carry`]. `ended` says whether the scan is at its end.
    fn carry(&self, _ended: bool) -> Option<Carry> {
        None
    }

    /// As [`Walk::suspects_key`].
    fn suspects_key(&self) -> bool {
        false
    }
}

/// A walk: advances a scan until something is found. [`Outermost`](layers::Outermost) sees to it that nobody goes on after an error.
pub(crate) struct Driver<S> {
    scan: S,
    ended: bool,
}

impl<S: Scan> Driver<S> {
    /// Begins at the scan's position.
    pub(crate) const fn new(scan: S) -> Self {
        Self::resume(scan, false)
    }

    /// Begins at the scan's position. `ended` says whether the scan is at its end already.
    pub(crate) const fn resume(scan: S, ended: bool) -> Self {
        Self { scan, ended }
    }

    /// The scan, with what the last step found.
    pub(crate) const fn scan(&self) -> &S {
        &self.scan
    }

    /// The scan, for methods that need it mutable.
    pub(crate) const fn scan_mut(&mut self) -> &mut S {
        &mut self.scan
    }
}

impl<S: Scan> Settle for Driver<S> {
    fn settle(&mut self) -> Result<Step> {
        self.scan.begin_step()?;
        self.scan.finish();
        Ok(match self.scan.has_found() {
            true => Step::More,
            false => Step::Done,
        })
    }
}

impl<S: Scan> Walk for Driver<S> {
    fn step(&mut self) -> Result<Step> {
        self.scan.options().poll()?;
        self.scan.begin_step()?;
        while !self.ended {
            let advance = self.scan.advance()?;
            match advance {
                Advance::On if !self.scan.is_enough() => {
                    // A source whose bytes change may lead a scan nowhere.
                    if !self.scan.has_found() {
                        self.scan.options().poll()?;
                    }
                    continue;
                }
                Advance::On | Advance::Full | Advance::Wait => {}
                Advance::End => {
                    self.ended = true;
                    self.scan.finish();
                }
            }
            if self.scan.has_found() {
                return Ok(Step::More);
            }
            if advance == Advance::Wait {
                return Ok(Step::Wait);
            }
        }
        Ok(Step::Done)
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(self.scan.rows())
    }

    fn spans(&self) -> &[Span] {
        self.scan.spans()
    }

    fn record_run(&self) -> Option<RecordRun> {
        self.scan.record_run()
    }

    fn front_end(&self) -> u64 {
        self.scan.front_end()
    }

    fn checked(&self) -> Checked {
        self.scan.checked()
    }

    fn offset(&self) -> u64 {
        self.scan.offset(self.ended)
    }

    fn carry(&self) -> Option<Carry> {
        self.scan.carry(self.ended)
    }

    fn suspects_key(&self) -> bool {
        self.scan.suspects_key()
    }
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

/// The result of looking up several records.
#[derive(Default)]
pub struct Hits {
    /// The records that were found, as sets of rows in any order.
    pub sets: Vec<Box<dyn RecordSet>>,
    /// For each identifier the set and the row in it; `None` if no record was found.
    pub places: Vec<Option<(usize, usize)>>,
    /// Why a record that was not found may still be in the file; `None` if every miss is proven.
    pub unproven: Option<Unproven>,
    /// The columns of the records, once it is the result of a whole look-up.
    pub(crate) columns: Option<&'static [Column]>,
}

/// Why a record that was not found may still be in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unproven {
    /// The file has no checksums that could prove it.
    Unchecked,
    /// A range where the record could be is damaged.
    Damage,
}

impl Unproven {
    /// Its name, for machines: `unchecked` or `damage`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchecked => "unchecked",
            Self::Damage => "damage",
        }
    }

    /// Why a miss is unproven, from what a walk met; `None` if it is proven.
    pub(crate) const fn of(is_damaged: bool, checked: Checked) -> Option<Self> {
        match checked {
            _ if is_damaged => Some(Self::Damage),
            Checked::Structure => Some(Self::Unchecked),
            Checked::Checksum | Checked::Parity => None,
        }
    }
}

impl Hits {
    /// Calls `look` for all identifiers in the order of the request. Each call gets the rows of as many of them as are
    /// adjacent in one set, or `None` for misses, and how many identifiers that is.
    pub fn runs(&self, mut look: impl FnMut(Option<(&dyn Rows, Range<usize>)>, usize)) {
        let sets: Vec<_> = self.sets.iter().map(|set| set.rows()).collect();
        let follows =
            |before: &Option<(usize, usize)>, next: &Option<(usize, usize)>| match (before, next) {
                (Some((set, row)), Some((other, next))) => set == other && row + 1 == *next,
                (None, None) => true,
                _ => false,
            };
        for run in self.places.chunk_by(follows) {
            let first = run.first().copied().flatten();
            let rows = first.and_then(|(set, row)| Some((&**sets.get(set)?, row..row + run.len())));
            look(rows, run.len());
        }
    }

    /// Calls `look` for each identifier, in the order of the request.
    pub fn each(&self, mut look: impl FnMut(Option<(&dyn Rows, usize)>)) {
        let sets: Vec<_> = self.sets.iter().map(|set| set.rows()).collect();
        for place in &self.places {
            let found = place.and_then(|(set, row)| sets.get(set).map(|rows| (&**rows, row)));
            look(found);
        }
    }
}

/// Finds records of one open file. What it has proven of an index stays proven as long as this value lives.
pub trait Lookup: Sealed + Send + Sync {
    /// Finds records by identifiers, which may come in any order and repeat. Records are verified as by a walk. A
    /// record that was not found is not in the file, unless [`Hits::unproven`] is set.
    ///
    /// # Errors
    /// - [`Error::Usage`](crate::Error::Usage) for an identifier that the format does not have.
    /// - [`Error::Damage`](crate::Error::Damage) in strict reading, at damage where the record might be.
    /// - Those of [`open`](crate::format::open) and [`Walk::step`].
    fn get(&self, ids: &[RecordId]) -> Result<Hits>;

    /// Prepares the fastest look-up now, in memory that [`Options`](Options) bound. Without this call it happens after enough
    /// records were looked up to pay for it.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Returns a walk over the records that match. It reads no more of the file than needed, so its ranges are not a
    /// ledger of the whole file: they are those that a full walk would settle for the same bytes, and may have gaps
    /// between them.
    ///
    /// # Errors
    /// As [`open`](crate::format::open).
    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>>;
}
