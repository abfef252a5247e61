//! The scan of files that are a sequence of units: one after the other, until the file ends.
//!
//! A format has a [`Unit`]: its state, what begins at an offset, where damage ends, and its rows. Everything else is here:
//! where a scan begins, its state in a [`Carry`], the ledger, strict reading, files that grow, how far a segment of a log has to reach,
//! and what is left when damage or the search budget ends. If a header says how long its unit is, the unit is [`Framed`], and the scan asks of each in this order:
//!
//! 1. Is its header whole, and does the unit lie within the file?
//! 2. Is it sound? It is judged in the window, or in pieces if it is large: a false length costs no memory.
//! 3. Does it exceed a limit of the reader?
//!
//! What fails after sound units ends the step. The next step meets it again, after those were emitted.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::input::Input;
use super::{Advance, Begin, Budget, Carry, Options, Scan};
use crate::error::{Damage, Error, Finding, Result};
use crate::ledger::{Cause, Fate, Kind, RecordRun, Span, Tiling};
use crate::limits::LIMITS;
use crate::record::{Checked, Rows};
use crate::saturating::saturating_usize;
use crate::source::{Source, expected_len};

/// The units of a format. It has what a scan needs beside its [`State`](Self::State), such as conditions or a step's rows.
pub(crate) trait Unit: Send + Sized {
    /// What a [`Carry`] has beside the offset, the budget and the pending range.
    type State: Serialize + DeserializeOwned + Send;
    /// A sound unit, as the rows of a step need it.
    type Record: Send;
    /// What is wrong with a unit.
    type Fault: Clone + Into<Finding>;
    type Rows<'a>: Rows
    where
        Self: 'a;

    /// What a file of such units is called, for instance "an oplog".
    const FILE: &'static str;
    /// What a unit is called.
    const NAME: &'static str;
    const CHECKED: Checked;

    /// Goes on from the scan's offset, as [`Scan::advance`] does.
    fn advance(scan: &mut Stream<Self>) -> Result<Advance>;

    /// Whether a strict scan of a complete file looks where the damage at its offset ends before it raises it.
    fn looks_first(_scan: &Stream<Self>) -> bool {
        false
    }

    /// Where the damage at the scan's offset ends. The window has the unit's header, or the rest of the file.
    fn end(scan: &mut Stream<Self>, fault: &Self::Fault) -> Result<End>;

    /// Goes past damage.
    fn pass(_scan: &mut Stream<Self>, _fault: &Self::Fault) {}

    /// The ranges that the last step settled.
    fn spans(scan: &Stream<Self>) -> &[Span] {
        &scan.spans
    }

    /// As [`Scan::record_run`].
    fn record_run(&self) -> Option<RecordRun> {
        None
    }

    /// As [`Scan::suspects_key`].
    fn suspects_key(_state: &Self::State) -> bool {
        false
    }

    /// Forgets what the last step found.
    fn begin_step(&mut self) -> Result<()> {
        Ok(())
    }

    fn rows(scan: &Stream<Self>) -> Self::Rows<'_>;
}

/// Units whose headers say how long they are.
pub(crate) trait Framed: Unit {
    type Header: Copy;

    /// The length of the longest header in bytes.
    const HEADER_BYTES: usize;

    /// The header that begins `bytes`, of a unit that lies within the file, which has `left` bytes from there on. `None` if it
    /// is not whole in `bytes`, but in the file.
    fn header(bytes: &[u8], left: u64) -> std::result::Result<Option<Self::Header>, Self::Fault>;

    /// The length of the whole unit in bytes.
    fn total(header: Self::Header) -> u64;

    /// What `record_bytes` limits, in bytes.
    fn size(header: Self::Header) -> u64 {
        Self::total(header)
    }

    /// Whether a unit is loaded whole before it is judged.
    fn is_loaded(options: &Options, header: Self::Header) -> bool;

    /// Judges the unit at the scan's offset, which is in the window or else read in pieces. Adds it to the records if it is sound.
    fn judge(
        scan: &mut Stream<Self>,
        header: Self::Header,
    ) -> std::result::Result<(), Stop<Self::Fault>>;

    /// Whether the sound unit at the scan's offset matches the conditions that the format applies. If not, it is left out.
    fn matches(_scan: &Stream<Self>, _header: Self::Header) -> bool {
        true
    }

    /// What is wrong with the sound unit at the scan's offset, the last of the records, which is returned nonetheless.
    fn flaw(_scan: &Stream<Self>, _header: Self::Header) -> Option<Finding> {
        None
    }

    /// Goes past a sound unit, the last of the records.
    fn commit(scan: &mut Stream<Self>, header: Self::Header) -> Result<()>;
}

/// Why a unit was not judged to be sound. Boxed, since a larger result would pass through memory for each unit.
#[derive(Debug)]
pub(crate) enum Stop<F> {
    /// It is damaged.
    Fault(Box<F>),
    /// It is sound, and neither it nor what follows matches the conditions that the format applies.
    Past,
    /// Its bytes could not be read.
    Error(Box<Error>),
}

impl<F> From<Error> for Stop<F> {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

/// Where damage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At this offset, before a sound unit or where a proven length says.
    Followed(u64),
    /// At this offset, and no sound unit follows.
    Last(u64, Fate),
    /// After the last byte that is not zero, and no sound unit follows. The zeros are unused space.
    Nothing(Fate),
    /// The search budget ended here.
    Limit(u64),
}

/// What a [`Carry`] has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Point<T> {
    /// The offset of the next unit.
    pub(crate) at: u64,
    /// What searches have spent.
    pub(crate) budget: Budget,
    /// Damage up to `at` that may still grow.
    pub(crate) pending: Option<Span>,
    /// Of the format. Positions that were stored name it `own`.
    #[serde(rename = "own")]
    pub(crate) state: T,
}

impl<T> Point<T> {
    /// At an offset, if nothing was searched before it.
    pub(crate) fn new(at: u64, state: T) -> Self {
        Self {
            at,
            budget: Budget::default(),
            pending: None,
            state,
        }
    }
}

impl<T: DeserializeOwned> Point<T> {
    /// The beginning of a walk of what `file` is called. A file has one part, the whole. `state` is that of a walk that
    /// resumes none.
    pub(crate) fn of(begin: Begin<'_>, file: &str, state: T) -> Result<Self> {
        match begin {
            Begin::Carry(carry) => carry.state(file),
            Begin::Offset(offset) => Ok(Self::new(offset, state)),
            Begin::Beginning | Begin::Part(_) => Ok(Self::new(0, state)),
        }
    }
}

/// The scan of a file of such units.
pub(crate) struct Stream<U: Unit> {
    pub(crate) input: Input,
    pub(crate) budget: Budget,
    pub(crate) state: U::State,
    pub(crate) unit: U,
    /// The offset of the first byte of the window that contains `records`.
    pub(crate) base: u64,
    /// The sound units of this step.
    pub(crate) records: Vec<U::Record>,
    pub(crate) tiling: Tiling,
    pub(crate) spans: Vec<Span>,
}

impl<U: Unit> Stream<U> {
    /// Begins a scan.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file ends before it.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        options: &Options,
        point: Point<U::State>,
        unit: U,
    ) -> Result<Self> {
        let (at, len) = (point.at, source.len());
        if at > expected_len(&*source) {
            return Err(Error::Usage(format!(
                "cannot start at offset {at}: expected at most {len}, the file's length"
            )));
        }
        Ok(Self {
            input: Input::new(source, options.clone()),
            budget: point.budget,
            state: point.state,
            unit,
            base: point.at,
            records: Vec::new(),
            tiling: Tiling::resume(point.at, point.pending),
            spans: Vec::new(),
        })
    }

    /// The offset of the next unit.
    pub(crate) const fn at(&self) -> u64 {
        self.tiling.end()
    }

    /// Goes on at another offset, as if nothing before it had been read.
    pub(crate) fn go_to(&mut self, at: u64) {
        self.tiling = Tiling::resume(at, None);
    }

    /// Goes on where the file ends: what it lacks of what it has to reach is damage.
    pub(crate) fn at_end(&mut self) -> Result<Advance> {
        let (Some(cut), false) = (self.input.cut_at(self.at()), self.input.is_growing()) else {
            return Ok(self.input.options.eof.reached());
        };
        if self.input.options.strict {
            return Err(self.damage_error(cut));
        }
        let end = expected_len(&*self.input.source);
        self.cover(end, Kind::Corrupt, Some(cut.cause()));
        Ok(Advance::On)
    }

    /// Handles damage here.
    pub(crate) fn damage(&mut self, fault: &U::Fault) -> Result<Advance> {
        let (at, len, raises) = (self.at(), self.input.len(), self.input.raises(self.at()));
        let (finding, is_growing): (Finding, _) = (fault.clone().into(), self.input.is_growing());
        // Where the file is cut, only a search tells whether this unit is, or has a wrong length.
        let is_cut = matches!(finding, Finding::Truncated { .. } | Finding::TooLong { .. });
        let cut = self.input.cut_at(at).filter(|_| is_cut);
        if raises && !is_growing && cut.is_none() && !U::looks_first(self) {
            return Err(self.damage_error(finding));
        }
        let before = self.budget;
        let end = U::end(self, fault)?;
        let is_last = matches!(end, End::Last(..) | End::Nothing(_));
        if is_growing && is_last {
            self.budget = before;
            return Ok(Advance::Wait);
        }
        let finding = match cut {
            Some(cut) if is_last => cut,
            _ => finding,
        };
        if raises {
            return Err(self.damage_error(finding));
        }
        U::pass(self, fault);
        let cause = finding.cause();
        match end {
            End::Followed(end) => self.cover_damage(end, Kind::Corrupt, cause),
            End::Last(end, fate) => self.cover_last(end, fate, cause),
            // Zeros may be no unit: then the first of them is damage if nothing else is there.
            End::Nothing(fate) => {
                let used = self.input.data_end()?;
                self.cover_last(used.max(at + 1), fate, cause);
                self.cover(len, Kind::Unused, None);
            }
            End::Limit(end) => {
                self.cover_damage(end, Kind::Corrupt, cause);
                self.cover_damage(len, Kind::Corrupt, Cause::SearchLimit);
            }
        }
        Ok(Advance::On)
    }

    /// Covers damage that no sound unit follows.
    fn cover_last(&mut self, end: u64, fate: Fate, cause: Cause) {
        // What was synced is no interrupted write, and its zeros are no unused space.
        let (end, fate) = match self.input.bound.filter(|bound| self.at() < bound.offset) {
            Some(bound) => (end.max(bound.offset.min(self.input.len())), Fate::Corrupt),
            None => (end, fate),
        };
        self.cover_damage(end, fate.kind(cause), cause);
    }

    /// Covers damage, if it is one there.
    pub(crate) fn cover_damage(&mut self, end: u64, kind: Kind, cause: Cause) {
        match self.input.counts(self.at()) {
            true => self.cover(end, kind, Some(cause)),
            false => self.cover(end, Kind::Unproven, None),
        }
    }

    /// Covers the bytes up to `end`, and goes on there.
    pub(crate) fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
    }

    /// The error for damage here.
    pub(crate) fn damage_error(&self, finding: Finding) -> Error {
        Error::Damage(Box::new(Damage {
            wrong_key: U::suspects_key(&self.state),
            ..Damage::new(self.input.path(), self.at(), finding)
        }))
    }

    /// The error for a unit here that needs so many bytes, more than `record_bytes`.
    pub(crate) fn too_large(&self, needed: u64) -> Error {
        let what = format!("the {} at offset {}", U::NAME, self.at());
        let most = self.input.options.record_bytes;
        Error::record_too_large(self.input.path(), what, needed, most)
    }

    /// The error for a file whose bytes changed while it was read.
    pub(crate) fn changed(&self) -> Error {
        let what = format!("the {} at offset {}", U::NAME, self.at());
        Error::changed(self.input.path(), &what)
    }
}

impl<U: Framed> Stream<U> {
    /// Takes the sound units of a window, up to `limit`, or one that is larger, or handles damage.
    pub(crate) fn advance_until(&mut self, limit: u64) -> Result<Advance> {
        let (len, want) = (self.input.len(), self.input.options.window_bytes);
        self.base = self.at();
        if self.base >= len {
            return self.at_end();
        }
        let head = saturating_usize(len - self.base).min(U::HEADER_BYTES);
        self.input.load(self.base, head)?;
        loop {
            let (at, is_first) = (self.at(), self.at() == self.base);
            let is_full = self.records.len() >= LIMITS.step_rows
                || at - self.base >= want as u64
                || at >= limit.min(len);
            if is_full && !is_first {
                return Ok(Advance::On);
            }
            let held = self.input.bytes(at);
            let is_whole = |header| U::total(header) <= held.len() as u64;
            let header = match U::header(held, len - at) {
                Ok(Some(header)) if is_first || is_whole(header) => header,
                _ if !is_first => return Ok(Advance::On),
                Err(fault) => return self.damage(&fault),
                Ok(Some(_) | None) => return Err(self.changed()),
            };
            let (total, is_held) = (U::total(header), is_whole(header));
            // At least a window, so that the buffer keeps its size.
            let whole = saturating_usize(total);
            if !is_held && U::is_loaded(&self.input.options, header) {
                self.input.load(at, whole)?;
                continue;
            }
            match U::judge(self, header) {
                Ok(()) => {}
                Err(Stop::Error(error)) => return Err(*error),
                Err(_) if !is_first => return Ok(Advance::On),
                Err(Stop::Fault(fault)) => return self.damage(&fault),
                Err(Stop::Past) => return Ok(Advance::End),
            }
            let options = &self.input.options;
            let (flaw, size) = (U::flaw(self, header), U::size(header));
            let is_too_large = size > options.record_bytes || usize::try_from(size).is_err();
            let is_wanted = U::matches(self, header);
            let needs_value = options.values && is_wanted;
            if flaw.is_some() && options.strict || needs_value && is_too_large {
                return self.refuse(size, flaw, is_first);
            }
            if needs_value && !is_held {
                // Judged again, so that exactly the bytes that were judged are emitted.
                self.records.pop();
                self.input.load_up_to(at, whole, whole)?;
                continue;
            }
            let committed = U::commit(self, header);
            if committed.is_err() || !is_wanted {
                self.records.pop();
            }
            committed?;
            self.cover(at + total, Kind::Record, flaw.map(|flaw| flaw.cause()));
        }
    }

    /// Does not return the last record, which is sound.
    #[cold]
    fn refuse(&mut self, size: u64, flaw: Option<Finding>, is_first: bool) -> Result<Advance> {
        self.records.pop();
        if !is_first {
            return Ok(Advance::On);
        }
        Err(match flaw.filter(|_| self.input.options.strict) {
            Some(flaw) => self.damage_error(flaw),
            None => self.too_large(size),
        })
    }
}

impl<U: Unit> Scan for Stream<U> {
    type Rows<'a>
        = U::Rows<'a>
    where
        U: 'a;

    fn options(&self) -> &Options {
        &self.input.options
    }

    fn begin_step(&mut self) -> Result<()> {
        self.records.clear();
        self.spans.clear();
        self.unit.begin_step()
    }

    fn advance(&mut self) -> Result<Advance> {
        U::advance(self)
    }

    fn finish(&mut self) {
        self.tiling.finish(&mut self.spans);
    }

    fn has_found(&self) -> bool {
        !self.records.is_empty() || !self.spans.is_empty() || self.record_run().is_some()
    }

    fn rows(&self) -> U::Rows<'_> {
        U::rows(self)
    }

    fn spans(&self) -> &[Span] {
        U::spans(self)
    }

    fn record_run(&self) -> Option<RecordRun> {
        self.unit.record_run()
    }

    fn suspects_key(&self) -> bool {
        U::suspects_key(&self.state)
    }

    fn checked(&self) -> Checked {
        U::CHECKED
    }

    fn offset(&self, _: bool) -> u64 {
        self.at()
    }

    fn carry(&self, _: bool) -> Option<Carry> {
        Some(Carry::of(&Point {
            at: self.at(),
            budget: self.budget,
            pending: self.tiling.pending(),
            state: &self.state,
        }))
    }
}
