//! Reads the records of one walk as batches.

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::selection::{MAX_DATA_BYTES, Selection, path_text};
use crate::engine::Start;
use crate::error::{Error, Result};
use crate::format::{open, resolve};
use crate::ledger::Span;
use crate::record::{ColumnBuffer, Room};
use crate::saturating::saturating_usize;
use crate::setters::setters;
use crate::source::Source;
use crate::verbs::Report;
use crate::walk::layers::EmptyWalk;
use crate::walk::{Options, Step, Walk};

/// The most rows in a batch. With texts of at most 1,020 bytes their offsets fit into 31 bits.
const MAX_ROWS: usize = 1 << 20;
/// How many rows of one column are filled before the next column. It is small enough for the records' headers to stay
/// in the nearest cache.
const FILL_ROWS: usize = 128;
/// How many damaged ranges end a batch.
const MAX_DAMAGE: usize = 1 << 16;

/// The limits of a batch. It ends before either is exceeded, but has at least one record.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    #[doc(hidden)] // public for the Python extension and tests
    pub bytes: usize,
    #[doc(hidden)] // public for the Python extension and tests
    pub rows: usize,
}

setters!(Limits {
    /// Bytes of values, and of other fields that can be large. The default is 8 MiB.
    bytes: usize;
    /// Records. The default is 131,072.
    rows: usize;
});

impl Limits {
    /// The default of `bytes`.
    pub const BYTES: usize = 8 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: Self::BYTES,
            rows: 128 << 10,
        }
    }
}

/// A batch of records, and the damage found on the way to them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The records.
    pub records: RecordBatch,
    /// Damaged ranges found since the previous batch, in file order.
    pub damage: Vec<Span>,
    /// The total bytes of the records' values.
    pub value_bytes: usize,
}

impl Batch {
    /// A batch without damage, of values of so many bytes.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub const fn new(records: RecordBatch, value_bytes: usize) -> Self {
        Self {
            records,
            value_bytes,
            damage: Vec::new(),
        }
    }
}

/// Reads a file as record batches, by one walk.
pub(super) struct WalkBatches {
    pub(super) walk: Box<dyn Walk>,
    pub(super) selection: Selection,
    limits: Limits,
    path: String,
    pub(super) report: Report,
    /// The first of the walk's rows that was not copied yet.
    next_row: usize,
    damage: Vec<Span>,
    failed: Option<Error>,
    ended: bool,
}

impl WalkBatches {
    /// Opens a file at `start`, which may be one of its [parts](crate::format::Part).
    ///
    /// # Errors
    /// As [`open`].
    pub(super) fn starting(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        start: Start<'_>,
    ) -> Result<Self> {
        let format = resolve(&*source, options)?;
        let record_bytes = options.record_bytes.min(Options::RECORD_BYTES);
        let options = options
            .clone()
            .format(format)
            .values(selection.values)
            .record_bytes(record_bytes);
        selection.check(format.columns(options.dialect))?;
        let mut report = Report::of(format, &*source);
        let walk = open(source, &options, start)?;
        report.summary.checked = walk.checked();
        Ok(Self::of_walk(walk, report, selection, limits))
    }

    /// Reads a walk that is open already. The report says how its records are checked.
    pub(super) fn of_walk(
        walk: Box<dyn Walk>,
        report: Report,
        selection: Selection,
        limits: Limits,
    ) -> Self {
        let path = path_text(report.summary.path.as_deref());
        let rows = limits
            .rows
            .clamp(1, MAX_ROWS)
            .min(MAX_DATA_BYTES / path.len().max(1));
        let limits = Limits::default()
            .rows(rows)
            .bytes(limits.bytes.clamp(1, MAX_DATA_BYTES));
        Self {
            walk,
            selection,
            limits,
            path,
            report,
            next_row: 0,
            damage: Vec::new(),
            failed: None,
            ended: false,
        }
    }

    /// The same columns and report, with nothing to read.
    pub(super) fn emptied(&self, source: &dyn Source) -> Self {
        let walk = Box::new(EmptyWalk::new(self.report.format, source));
        let (report, selection) = (self.report.clone(), self.selection.clone());
        Self {
            ended: true,
            ..Self::of_walk(walk, report, selection, self.limits)
        }
    }

    /// The report on what was read so far.
    pub(super) const fn report(&self) -> &Report {
        &self.report
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// As [`Walk::step`].
    pub(super) fn next_batch(&mut self) -> Result<Option<Batch>> {
        let mut columns = self.selection.buffers();
        let (mut rows, mut value_bytes) = (0, 0);
        loop {
            let (taken, bytes, full) = self.take_rows(&mut columns, rows, value_bytes);
            (rows, value_bytes) = (rows + taken, value_bytes + bytes);
            if full || self.ended || self.failed.is_some() || self.damage.len() >= MAX_DAMAGE {
                break;
            }
            self.step();
        }
        if rows == 0 && self.damage.is_empty() {
            let Some(error) = self.failed.take() else {
                return Ok(None);
            };
            self.ended = true;
            return Err(error);
        }
        let records = self
            .selection
            .batch(columns, rows, self.report.summary.path.as_deref());
        let records = records.inspect_err(|_| self.ended = true)?;
        Ok(Some(Batch {
            records,
            damage: std::mem::take(&mut self.damage),
            value_bytes: if self.selection.values {
                value_bytes
            } else {
                0
            },
        }))
    }

    fn step(&mut self) {
        self.next_row = 0;
        match self.walk.step() {
            Ok(Step::More) => {
                self.report.add(&*self.walk);
                if self.walk.record_run().is_none() {
                    let spans = self.walk.spans().iter();
                    self.damage.extend(spans.filter(|span| span.is_damage()));
                }
            }
            Ok(Step::Wait | Step::Done) => {
                self.report.note(&*self.walk);
                self.ended = true;
            }
            Err(error) => self.failed = Some(error),
        }
    }

    /// Copies those of the walk's rows that fit. Returns the number of rows, the bytes of their values, and whether the
    /// batch is full.
    fn take_rows(
        &mut self,
        columns: &mut [ColumnBuffer],
        rows_before: usize,
        bytes_before: usize,
    ) -> (usize, usize, bool) {
        let rows = self.walk.rows();
        let first = self.next_row;
        let (rows_left, bytes_left) = match self.limits.bytes.checked_sub(bytes_before) {
            Some(bytes) => (self.limits.rows - rows_before, bytes),
            None => (0, 0), // the first record alone exceeds the limit
        };
        let room = Room {
            rows: rows_left,
            bytes: bytes_left,
            empty: rows_before == 0,
        };
        let (taken, bytes) = rows.fitting(first, room);
        let end = first + taken;
        if rows_before == 0 && taken > 0 {
            self.reserve(columns, taken, bytes);
        }
        for start in (first..end).step_by(FILL_ROWS) {
            let run = start..end.min(start + FILL_ROWS);
            self.selection.fill(columns, &*rows, &run, &self.path);
        }
        let full = end < rows.len();
        self.next_row = end;
        (taken, bytes, full)
    }

    /// Reserves space in empty columns for a batch of records like the first `taken` ones, which have `bytes` bytes.
    fn reserve(&self, columns: &mut [ColumnBuffer], taken: usize, bytes: usize) {
        let Limits {
            bytes: most_bytes,
            rows: most_rows,
        } = self.limits;
        let size = saturating_usize(self.report.summary.size);
        let a_little_more = |number: usize| number.saturating_add(number / 16);
        let each = (bytes / taken).max(1);
        let expected_rows = a_little_more(most_bytes / each).min(most_rows).min(size);
        let all_rows = a_little_more(each.saturating_add(1).saturating_mul(most_rows));
        let expected_bytes = most_bytes.min(size).min(all_rows).max(bytes);
        for column in columns {
            column.reserve(expected_rows.max(taken), expected_bytes);
        }
    }
}
