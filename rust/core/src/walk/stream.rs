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

use std::sync::{Arc, OnceLock};

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

    /// Goes past damage.
    fn pass(_scan: &mut Stream<Self>, _fault: &Self::Fault) {}

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
        is_held: bool,
    ) -> std::result::Result<(), Stop<Self::Fault>>;

    /// What is wrong with the content of a sound unit, which is returned nonetheless.
    fn cause(_record: &Self::Record) -> Option<Cause> {
        None
    }

    /// The text and numbers of that.
    fn flaw(_record: &Self::Record) -> Option<Finding> {
        None
    }

    /// Goes past a sound unit, the last of the records.
    fn commit(scan: &mut Stream<Self>, is_held: bool) -> Result<()>;
}

/// Why a unit was not judged to be sound. Boxed, since a larger result would pass through memory for each unit.
#[derive(Debug)]
pub(crate) enum Stop<F> {
    /// It is damaged.
    Fault(Box<F>),
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

/// What a scan reads.
pub(crate) struct Input {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) options: Options,
    pub(crate) window: Window,
    data_end: DataEnd,
}

impl Input {
    pub(crate) fn new(source: Arc<dyn Source>, options: Options) -> Self {
        Self {
            source,
            options,
            window: Window::default(),
            data_end: DataEnd::default(),
        }
    }

    /// The length of the file in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.source.len()
    }

    /// The bytes of the window from `at` on.
    pub(crate) fn bytes(&self, at: u64) -> &[u8] {
        self.window.bytes(&*self.source, at)
    }

    /// At least `min` bytes from `at` on. The caller makes sure that the file has them.
    pub(crate) fn load(&mut self, at: u64, min: usize) -> Result<&[u8]> {
        let want = self.options.window_bytes;
        self.window.load(&*self.source, at, min, want)?;
        Ok(self.bytes(at))
    }

    /// The offset after the last nonzero byte of the file.
    pub(crate) fn data_end(&self) -> Result<u64> {
        self.data_end.of(&*self.source, &self.options)
    }

    pub(crate) fn is_growing(&self) -> bool {
        self.options.eof == Eof::Growing
    }
}

/// The offset after the last nonzero byte of a file. Found once, on first use.
#[derive(Debug, Default)]
pub(crate) struct DataEnd(OnceLock<u64>);

impl DataEnd {
    /// That offset in `source`, which must be the same each time.
    pub(crate) fn of(&self, source: &dyn Source, options: &Options) -> Result<u64> {
        if let Some(end) = self.0.get() {
            return Ok(*end);
        }
        let end = data_end(source, || options.poll())?;
        Ok(*self.0.get_or_init(|| end))
    }
}

/// The state in a [`Carry`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State<T> {
    /// The offset of the next unit.
    pub(crate) at: u64,
    /// What searches have spent.
    pub(crate) budget: Budget,
    /// Damage up to `at` that may still grow.
    pub(crate) pending: Option<Span>,
    pub(crate) own: T,
}

impl<T: Default + DeserializeOwned> State<T> {
    /// The state at an offset, if nothing was searched before it.
    pub(crate) fn new(at: u64, own: T) -> Self {
        Self {
            at,
            own,
            ..Self::default()
        }
    }

    /// The state at the beginning of a walk of what `file` is called. A file has one part, the whole.
    pub(crate) fn of(begin: Begin<'_>, file: &str) -> Result<Self> {
        match begin {
            Begin::Carry(carry) => carry.state(file),
            Begin::Offset(offset) => Ok(Self::new(offset, T::default())),
            Begin::Beginning | Begin::Part(_) => Ok(Self::default()),
        }
    }
}

/// The scan of a file of such units.
pub(crate) struct Stream<U: Unit> {
    pub(crate) input: Input,
    pub(crate) budget: Budget,
    pub(crate) own: U::State,
    pub(crate) unit: U,
    /// The offset of the first byte of the window that contains `records`.
    pub(crate) base: u64,
    /// The sound units of this step.
    pub(crate) records: Vec<U::Record>,
    tiling: Tiling,
    spans: Vec<Span>,
}

impl<U: Unit> Stream<U> {
    /// Begins a scan.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file ends before it.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        options: &Options,
        state: State<U::State>,
        unit: U,
    ) -> Result<Self> {
        check_start(state.at, &*source)?;
        Ok(Self {
            input: Input::new(source, options.clone()),
            budget: state.budget,
            own: state.own,
            unit,
            base: state.at,
            records: Vec::new(),
            tiling: Tiling::resume(state.at, state.pending),
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

    /// Handles damage here.
    pub(crate) fn damage(&mut self, fault: &U::Fault) -> Result<Advance> {
        let (at, len, finding): (_, _, Finding) =
            (self.at(), self.input.len(), fault.clone().into());
        let is_growing = self.input.is_growing();
        if self.input.options.strict && !is_growing && !U::looks_first(self) {
            return Err(self.damage_error(finding));
        }
        let before = self.budget;
        let end = U::end(self, fault)?;
        if is_growing && matches!(end, End::Last(..) | End::Nothing(_)) {
            self.budget = before;
            return Ok(Advance::Wait);
        }
        if self.input.options.strict {
            return Err(self.damage_error(finding));
        }
        let cause = finding.cause();
        U::pass(self, fault);
        match end {
            End::Followed(end) => self.cover(end, Kind::Corrupt, Some(cause)),
            End::Last(end, fate) => self.cover(end, fate.kind(cause), Some(cause)),
            // Zeros may be no unit: then the first of them is damage if nothing else is there.
            End::Nothing(fate) => {
                let used = self.input.data_end()?;
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

    /// Covers the bytes up to `end`, and goes on there.
    pub(crate) fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
    }

    fn damage_error(&self, finding: Finding) -> Error {
        Error::damage(self.input.source.path(), self.at(), finding)
    }

    /// The error for a file whose bytes changed while it was read.
    pub(crate) fn changed(&self) -> Error {
        let what = format!("the {} at offset {}", U::NAME, self.at());
        Error::changed(self.input.source.path(), &what)
    }
}

impl<U: Framed> Stream<U> {
    /// Takes the sound units of a window, up to `limit`, or one that is larger, or handles damage.
    pub(crate) fn advance_until(&mut self, limit: u64) -> Result<Advance> {
        let (len, want) = (self.input.len(), self.input.options.window_bytes);
        self.base = self.at();
        if self.base >= len {
            return Ok(self.input.options.eof.reached());
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
            if !is_held && U::is_loaded(&self.input.options, header) {
                self.input.load(at, whole)?;
                continue;
            }
            match U::judge(self, header, is_held) {
                Ok(()) => {}
                Err(Stop::Error(error)) => return Err(*error),
                Err(Stop::Fault(_)) if !is_first => return Ok(Advance::On),
                Err(Stop::Fault(fault)) => return self.damage(&fault),
            }
            let options = &self.input.options;
            let cause = self.records.last().and_then(U::cause);
            let is_flawed = options.strict && cause.is_some();
            if is_flawed || options.values && U::size(header) > options.record_bytes {
                return self.refuse(header, is_first);
            }
            if options.values && !is_held {
                // Judged again, so that exactly the bytes that were judged are emitted.
                self.records.pop();
                let window = &mut self.input.window;
                window.load(&*self.input.source, at, whole, whole)?;
                continue;
            }
            if let Err(error) = U::commit(self, is_held) {
                self.records.pop();
                return Err(error);
            }
            self.cover(at + total, Kind::Record, cause);
        }
    }

    /// Does not return the last record, which is sound.
    #[cold]
    fn refuse(&mut self, header: U::Header, is_first: bool) -> Result<Advance> {
        let record = self.records.pop();
        if !is_first {
            return Ok(Advance::On);
        }
        let flaw = record.as_ref().and_then(U::flaw);
        if let Some(flaw) = flaw.filter(|_| self.input.options.strict) {
            return Err(self.damage_error(flaw));
        }
        let (path, most) = (self.input.source.path(), self.input.options.record_bytes);
        let what = format!("the {} at offset {}", U::NAME, self.at());
        let needed = U::size(header);
        Err(Error::record_too_large(path, what, needed, most))
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
