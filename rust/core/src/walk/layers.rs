//! Walks that wrap other walks: conditions that a format does not apply by itself, what an object store confirms, and a walk of nothing.
//! Methods that a wrapper does not change are passed on here, in one place.

use std::ops::Range;
use std::sync::Arc;

use super::{Carry, Settle, Step, Walk};
use crate::error::{Error, Result};
use crate::ledger::{RecordRun, Span};
use crate::private::Sealed;
use crate::record::{Checked, ColumnBuffer, OwnedRows, Rows, Value};
use crate::source::Source;
use crate::spec::Spec;
use crate::spec::filter::Tests;
use crate::words::Cause;

/// What a wrapping walk changes.
pub(crate) trait WalkLayer: Send {
    /// The wrapped walk.
    fn walk(&self) -> &dyn Walk;

    /// As [`Walk::step`].
    ///
    /// # Errors
    /// As there.
    fn step(&mut self) -> Result<Step>;

    /// As [`Walk::rows`].
    fn rows(&self) -> Box<dyn Rows + '_> {
        self.walk().rows()
    }

    /// As [`Walk::spans`].
    fn spans(&self) -> &[Span] {
        self.walk().spans()
    }

    /// As [`Walk::record_run`].
    fn record_run(&self) -> Option<RecordRun> {
        self.walk().record_run()
    }

    /// As [`Walk::repaired`].
    fn repaired(&self) -> u64 {
        self.walk().repaired()
    }

    /// As [`Walk::checked`].
    fn checked(&self) -> Checked {
        self.walk().checked()
    }
}

/// The walk that a [`WalkLayer`] makes of the wrapped one. It passes on the other methods of [`Walk`], also those with a
/// default, but `found_damage`, which asks these.
pub(crate) struct Layered<C>(pub(crate) C);

impl<C: WalkLayer> Settle for Layered<C> {}

impl<C: WalkLayer> Walk for Layered<C> {
    fn step(&mut self) -> Result<Step> {
        self.0.step()
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        self.0.rows()
    }

    fn spans(&self) -> &[Span] {
        self.0.spans()
    }

    fn record_run(&self) -> Option<RecordRun> {
        self.0.record_run()
    }

    fn repaired(&self) -> u64 {
        self.0.repaired()
    }

    fn front_end(&self) -> u64 {
        self.0.walk().front_end()
    }

    fn checked(&self) -> Checked {
        self.0.checked()
    }

    fn offset(&self) -> u64 {
        self.0.walk().offset()
    }

    fn carry(&self) -> Option<Carry> {
        self.0.walk().carry()
    }

    fn suspects_key(&self) -> bool {
        self.0.walk().suspects_key()
    }
}

/// Emits those records of a walk that meet conditions.
pub(crate) struct Filtering {
    walk: Box<dyn Walk>,
    filter: Tests,
    /// The rows of the last step that match; `None` if all do.
    selected: Option<Vec<usize>>,
}

impl Filtering {
    /// Wraps a walk. Returns the same walk if there are no conditions.
    pub(crate) fn around(walk: Box<dyn Walk>, filter: Tests) -> Box<dyn Walk> {
        if filter.is_empty() {
            return walk;
        }
        Box::new(Layered(Self {
            walk,
            filter,
            selected: Some(Vec::new()),
        }))
    }
}

impl WalkLayer for Filtering {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        self.selected = Some(Vec::new());
        let step = self.walk.step()?;
        let rows = self.walk.rows();
        let is_met = |row: &usize| self.filter.is_met(|column| rows.field(*row, column));
        let selected: Vec<_> = (0..rows.len()).filter(is_met).collect();
        self.selected = (selected.len() < rows.len()).then_some(selected);
        Ok(step)
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        let rows = self.walk.rows();
        match &self.selected {
            Some(selected) => Box::new(SelectedRows { rows, selected }),
            None => rows,
        }
    }
}

/// A selection of other rows.
pub(crate) struct SelectedRows<'a> {
    pub(crate) rows: Box<dyn Rows + 'a>,
    /// The numbers of the selected rows, ascending.
    pub(crate) selected: &'a [usize],
}

impl SelectedRows<'_> {
    /// Calls `fill` with ranges of the other rows that make up `rows` of the selection.
    fn each_run(&self, rows: Range<usize>, mut fill: impl FnMut(&dyn Rows, Range<usize>)) {
        let selected = self.selected.get(rows).unwrap_or_default();
        for run in selected.chunk_by(|row, next| row + 1 == *next) {
            if let [first, ..] = run {
                fill(&*self.rows, *first..first + run.len());
            }
        }
    }
}

impl Sealed for SelectedRows<'_> {}

#[allow(
    clippy::indexing_slicing,
    reason = "rows panic on a number out of bounds, as slices do"
)]
impl Rows for SelectedRows<'_> {
    fn len(&self) -> usize {
        self.selected.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.rows.position(self.selected[row])
    }

    fn end(&self, row: usize) -> u64 {
        self.rows.end(self.selected[row])
    }

    fn value(&self, row: usize) -> &[u8] {
        self.rows.value(self.selected[row])
    }

    fn weight(&self, row: usize) -> usize {
        self.rows.weight(self.selected[row])
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        self.rows.timestamp(self.selected[row])
    }

    fn cause(&self, row: usize) -> Option<Cause> {
        self.rows.cause(self.selected[row])
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        self.rows.field(self.selected[row], column)
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        self.each_run(rows, |all, run| all.fill(run, column, buffer));
    }

    fn fill_positions(&self, rows: Range<usize>, buffer: &mut ColumnBuffer) {
        self.each_run(rows, |all, run| all.fill_positions(run, buffer));
    }

    fn fill_causes(&self, rows: Range<usize>, buffer: &mut ColumnBuffer) {
        self.each_run(rows, |all, run| all.fill_causes(run, buffer));
    }
}

/// The outermost layer. It [confirms](Source::confirm) a walk's source before damage is reported, and at the end of the walk. And a
/// walk ends with its first error: every further step returns that again. What its step had found before was not given, so going on would
/// leave it out in silence.
pub(crate) struct Outermost {
    walk: Box<dyn Walk>,
    source: Arc<dyn Source>,
    failed: Option<Error>,
}

impl Outermost {
    /// Wraps a walk.
    pub(crate) fn around(walk: Box<dyn Walk>, source: Arc<dyn Source>) -> Box<dyn Walk> {
        Box::new(Layered(Self {
            walk,
            source,
            failed: None,
        }))
    }

    fn confirmed_step(&mut self) -> Result<Step> {
        let step = confirmed_damage(self.walk.step(), &*self.source)?;
        if self.source.is_replaceable() && (step != Step::More || self.walk.found_damage()) {
            self.source.confirm()?;
        }
        Ok(step)
    }
}

impl WalkLayer for Outermost {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        if let Some(error) = &self.failed {
            return Err(error.again());
        }
        let step = self.confirmed_step();
        self.failed = step.as_ref().err().map(Error::again);
        step
    }
}

/// Returns the result. If it is damage, the source is confirmed first.
pub(crate) fn confirmed_damage<T>(result: Result<T>, source: &dyn Source) -> Result<T> {
    if let Err(Error::Damage(_)) = &result
        && source.is_replaceable()
    {
        source.confirm()?;
    }
    result
}

/// Reads nothing of a file.
pub(crate) struct EmptyWalk {
    checked: Checked,
    len: u64,
    rows: OwnedRows,
}

impl EmptyWalk {
    pub(crate) fn new(format: &Spec, source: &dyn Source) -> Self {
        Self {
            checked: format.checked,
            len: source.len(),
            rows: OwnedRows::new(&[]),
        }
    }
}

impl Settle for EmptyWalk {}

impl Walk for EmptyWalk {
    fn step(&mut self) -> Result<Step> {
        Ok(Step::Done)
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(&self.rows)
    }

    fn spans(&self) -> &[Span] {
        &[]
    }

    fn checked(&self) -> Checked {
        self.checked
    }

    fn offset(&self) -> u64 {
        self.len
    }

    fn carry(&self) -> Option<Carry> {
        None
    }
}
