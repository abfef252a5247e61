//! The scan of files that are a sequence of units: one after the other, until the file ends.
//!
//! A format has a [`Unit`]: its own state, what begins at an offset, where damage ends, and its rows. Everything else is here:
//! where a scan begins, its state in a [`Carry`], the ledger, strict reading, files that grow, and what is left when damage or the
//! search budget ends. If a header says how long its unit is, the unit is [`Framed`], and the scan asks of each in this order:
//!
//! 1. Is its header whole, and does the unit lie within the file?
//! 2. Is it sound? It is judged in the window, or in pieces if it is large: a false length costs no memory.
//! 3. Does it exceed a limit of the reader?
//!
//! What fails after sound units ends the step. The next step meets it again, after those were emitted.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Advance, Begin, Budget, Carry, Eof, Options, Scan, check_start};
use crate::error::{Error, Finding, Result};
use crate::ledger::{Cause, Fate, Kind, Span, Tiling};
use crate::limits::LIMITS;
use crate::record::{Checked, Rows};
use crate::saturating::saturating_usize;
use crate::source::{Source, Window, data_end};

/// The units of a format. It has what a scan needs beside its [`State`](Self::State): windows of searches, and the like.
pub(crate) trait Unit: Send + Sized {
    /// What a [`Carry`] has beside the offset, the budget and the pending range.
    type State: Serialize + DeserializeOwned + Default + Send;
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

    /// Goes past damage. Returns its fate if no sound unit follows.
    fn pass(scan: &mut Stream<Self>, fault: &Self::Fault) -> Fate;

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

    /// Judges the unit at the scan's offset, which is in the window or else read in pieces.
    fn judge(
        scan: &mut Stream<Self>,
        header: Self::Header,
        is_held: bool,
    ) -> Result<std::result::Result<Self::Record, Self::Fault>>;

    /// What is wrong with the content of a sound unit, which is returned nonetheless.
    fn cause(_record: &Self::Record) -> Option<Cause> {
        None
    }

    /// The text and numbers of that.
    fn flaw(_record: &Self::Record) -> Option<Finding> {
        None
    }

    /// Goes past a sound unit.
    fn commit(scan: &mut Stream<Self>, record: &Self::Record, is_held: bool) -> Result<()>;
}

/// Where damage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At this offset, before a sound unit or where a proven length says.
    Followed(u64),
    /// At this offset, and no sound unit follows.
    Last(u64),
    /// After the last byte that is not zero, and no sound unit follows. The zeros are unused space.
    Nothing,
    /// The search budget ended here.
    Limit(u64),
}

/// The state in a [`Carry`].
#[derive(Serialize, Deserialize)]
struct State<T> {
    /// The offset of the next unit.
    at: u64,
    /// What searches have spent.
    budget: Budget,
    /// Damage up to `at` that may still grow.
    pending: Option<Span>,
    own: T,
}

/// The scan of a file of such units.
pub(crate) struct Stream<U: Unit> {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) options: Options,
    pub(crate) budget: Budget,
    pub(crate) own: U::State,
    pub(crate) unit: U,
    pub(crate) window: Window,
    /// The offset of the first byte of the window that contains `records`.
    pub(crate) base: u64,
    /// The sound units of this step.
    pub(crate) records: Vec<U::Record>,
    tiling: Tiling,
    spans: Vec<Span>,
}

impl<U: Unit> Stream<U> {
    /// Begins a scan. A file has one part, the whole.
    ///
    /// # Errors
    /// [`Error::Usage`] if it cannot begin there.
    pub(crate) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        begin: Begin<'_>,
        unit: U,
    ) -> Result<Self> {
        let at = |at| State {
            at,
            budget: Budget::default(),
            pending: None,
            own: U::State::default(),
        };
        let state = match begin {
            Begin::Carry(carry) => carry.state(U::FILE)?,
            Begin::Offset(offset) => at(offset),
            Begin::Beginning | Begin::Part(_) => at(0),
        };
        check_start(state.at, &*source)?;
        Ok(Self {
            options: options.clone(),
            budget: state.budget,
            own: state.own,
            unit,
            window: Window::default(),
            base: state.at,
            records: Vec::new(),
            tiling: Tiling::resume(state.at, state.pending),
            spans: Vec::new(),
            source,
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

    /// Handles damage here.
    pub(crate) fn damage(&mut self, fault: &U::Fault) -> Result<Advance> {
        let (at, len, finding): (_, _, Finding) =
            (self.at(), self.source.len(), fault.clone().into());
        let is_growing = self.options.eof == Eof::Growing;
        if self.options.strict && !is_growing && !U::looks_first(self) {
            return Err(self.damage_error(finding));
        }
        let before = self.budget;
        let end = U::end(self, fault)?;
        if is_growing && matches!(end, End::Last(_) | End::Nothing) {
            self.budget = before;
            return Ok(Advance::Wait);
        }
        if self.options.strict {
            return Err(self.damage_error(finding));
        }
        let (cause, fate) = (finding.cause(), U::pass(self, fault));
        match end {
            End::Followed(end) => self.cover(end, Kind::Corrupt, Some(cause)),
            End::Last(end) => self.cover(end, fate.kind(cause), Some(cause)),
            // Zeros may be no unit: then the first of them is damage if nothing else is there.
            End::Nothing => {
                let used = data_end(&*self.source, || self.options.poll())?;
                self.cover(used.max(at + 1), fate.kind(cause), Some(cause));
                self.cover(len, Kind::Unused, None);
            }
            End::Limit(end) => {
                self.cover(end, Kind::Corrupt, Some(cause));
                self.cover(len, Kind::Corrupt, Some(Cause::SearchLimit));
            }
        }
        Ok(Advance::On)
    }

    fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
    }

    fn damage_error(&self, finding: Finding) -> Error {
        Error::damage(self.source.path(), self.at(), finding)
    }

    /// The error for a file whose bytes changed while it was read.
    pub(crate) fn changed(&self) -> Error {
        let what = format!("the {} at offset {}", U::NAME, self.at());
        Error::changed(self.source.path(), &what)
    }
}

impl<U: Framed> Stream<U> {
    /// Takes the sound units of a window, up to `limit`, or one that is larger, or handles damage.
    pub(crate) fn advance_until(&mut self, limit: u64) -> Result<Advance> {
        let (source, len) = (self.source.clone(), self.source.len());
        self.base = self.at();
        if self.base >= len {
            return Ok(self.options.eof.reached());
        }
        let want = self.options.window_bytes;
        let head = saturating_usize(len - self.base).min(U::HEADER_BYTES);
        self.window.load(&*source, self.base, head, want)?;
        loop {
            let (at, is_first) = (self.at(), self.at() == self.base);
            let is_full = self.records.len() >= LIMITS.step_rows
                || at - self.base >= want as u64
                || at >= limit.min(len);
            if is_full && !is_first {
                return Ok(Advance::On);
            }
            let held = self.window.bytes(&*source, at);
            let header = match U::header(held, len - at) {
                Ok(Some(header)) => header,
                _ if !is_first => return Ok(Advance::On),
                Err(fault) => return self.damage(&fault),
                Ok(None) => return Err(self.changed()),
            };
            let total = U::total(header);
            let is_held = total <= held.len() as u64;
            if !is_held && !is_first {
                return Ok(Advance::On);
            }
            // At least a window, so that the buffer keeps its size.
            let whole = saturating_usize(total);
            if !is_held && U::is_loaded(&self.options, header) {
                self.window.load(&*source, at, whole, want)?;
                continue;
            }
            let record = match U::judge(self, header, is_held)? {
                Ok(record) => record,
                Err(_) if !is_first => return Ok(Advance::On),
                Err(fault) => return self.damage(&fault),
            };
            if let Some(error) = self.refusal(header, &record) {
                return if is_first {
                    Err(error)
                } else {
                    Ok(Advance::On)
                };
            }
            if self.options.values && !is_held {
                // Judged again, so that exactly the bytes that were judged are emitted.
                self.window.load(&*source, at, whole, whole)?;
                continue;
            }
            U::commit(self, &record, is_held)?;
            self.cover(at + total, Kind::Record, U::cause(&record));
            self.records.push(record);
        }
    }

    /// Why a sound unit is not returned.
    fn refusal(&self, header: U::Header, record: &U::Record) -> Option<Error> {
        if self.options.strict
            && let Some(flaw) = U::flaw(record)
        {
            return Some(self.damage_error(flaw));
        }
        let (needed, most) = (U::size(header), self.options.record_bytes);
        let what = || format!("the {} at offset {}", U::NAME, self.at());
        (self.options.values && needed > most)
            .then(|| Error::record_too_large(self.source.path(), what(), needed, most))
    }
}

impl<U: Unit> Scan for Stream<U> {
    type Rows<'a>
        = U::Rows<'a>
    where
        U: 'a;

    fn options(&self) -> &Options {
        &self.options
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
        !self.records.is_empty() || !self.spans.is_empty()
    }

    fn rows(&self) -> U::Rows<'_> {
        U::rows(self)
    }

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn checked(&self) -> Checked {
        U::CHECKED
    }

    fn offset(&self, _: bool) -> u64 {
        self.at()
    }

    fn carry(&self, _: bool) -> Option<Carry> {
        Some(Carry::of(&State {
            at: self.at(),
            budget: self.budget,
            pending: self.tiling.pending(),
            own: &self.own,
        }))
    }
}
