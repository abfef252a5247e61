//! A walk that applies the conditions that its format does not apply by itself.

use std::ops::Range;

use super::around::{Around, Change};
use super::{Step, Walk};
use crate::cause::Cause;
use crate::error::Result;
use crate::own::Own;
use crate::record::{ColumnBuffer, Rows, Value};
use crate::spec::filter::Tests;

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
        Box::new(Around(Self {
            walk,
            filter,
            selected: Some(Vec::new()),
        }))
    }

    /// Selects the rows that the walk has after this.
    fn after(&mut self, next: fn(&mut dyn Walk) -> Result<Step>) -> Result<Step> {
        self.selected = Some(Vec::new());
        let step = next(&mut *self.walk)?;
        let rows = self.walk.rows();
        let is_met = |row: &usize| self.filter.is_met(|column| rows.field(*row, column));
        let selected: Vec<_> = (0..rows.len()).filter(is_met).collect();
        self.selected = (selected.len() < rows.len()).then_some(selected);
        Ok(step)
    }
}

impl Change for Filtering {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        self.after(|walk| walk.step())
    }

    fn settle(&mut self) -> Result<Step> {
        self.after(|walk| walk.settle())
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

impl Own for SelectedRows<'_> {}

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
        self.each_run(rows, |own, run| own.fill(run, column, buffer));
    }

    fn fill_positions(&self, rows: Range<usize>, buffer: &mut ColumnBuffer) {
        self.each_run(rows, |own, run| own.fill_positions(run, buffer));
    }

    fn fill_causes(&self, rows: Range<usize>, buffer: &mut ColumnBuffer) {
        self.each_run(rows, |own, run| own.fill_causes(run, buffer));
    }
}
