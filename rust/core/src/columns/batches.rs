//! A walk's records as Arrow record batches of bounded size.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::selection::{MAX_DATA_BYTES, Selection, path_text};
use super::side_by_side::{SideBySide, bytes_of_parts};
use crate::engine::{Options, Start, Step, Walk};
use crate::error::{Error, Result};
use crate::format::{open, resolve, split};
use crate::ledger::Span;
use crate::record::ColumnBuffer;
use crate::record::Room;
use crate::record::views::Home;
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::verbs::Report;

/// The most rows in a batch: with texts of at most 1,020 bytes their offsets stay within 31 bits.
const MAX_ROWS: usize = 1 << 20;
/// How many rows one column after the other is filled with: few enough for what one has brought into the nearest cache, the
/// record's header, to be there for the next.
const FILL_ROWS: usize = 128;
/// How many damaged ranges a batch carries before it ends.
const MAX_DAMAGE: usize = 1 << 16;

/// What bounds a batch: it ends before either is exceeded, but has at least one record.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of values, and of other fields that can be large, default 8 MiB.
    pub bytes: usize,
    /// Records, default 131,072.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 8 << 20,
            rows: 128 << 10,
        }
    }
}

/// Some records, and the damage found on the way to them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The records.
    pub records: RecordBatch,
    /// Damaged ranges that became known since the batch before, in file order.
    pub damage: Vec<Span>,
    /// How many bytes the records' values have.
    pub value_bytes: usize,
}

/// Reads a file as record batches. What was good before an error is given out first, in a batch of its own.
pub struct Batches {
    walk: Box<dyn Walk>,
    selection: Selection,
    /// What views of values point into.
    home: Option<Home>,
    limits: Limits,
    path: String,
    report: Report,
    /// The first of the walk's rows that is in no batch yet.
    next_row: usize,
    damage: Vec<Span>,
    failed: Option<Error>,
    ended: bool,
    /// What reads in the place of the walk, where several threads do.
    side_by_side: Option<SideBySide>,
}

impl Batches {
    /// Begins to read a file.
    ///
    /// # Errors
    /// As [`open`].
    pub fn new(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
    ) -> Result<Self> {
        Self::starting(source, options, selection, limits, Start::Beginning)
    }

    /// Begins to read a file somewhere, or one of its [parts](crate::format::Part).
    ///
    /// # Errors
    /// As [`open`].
    pub fn starting(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        start: Start<'_>,
    ) -> Result<Self> {
        let format = resolve(&*source, options)?;
        let path = source
            .path()
            .map(|path| path_text(path.as_os_str()))
            .unwrap_or_default();
        let rows = limits
            .rows
            .clamp(1, MAX_ROWS)
            .min(MAX_DATA_BYTES / path.len().max(1));
        let limits = Limits {
            rows,
            bytes: limits.bytes.clamp(1, MAX_DATA_BYTES),
        };
        let max_record_bytes = options.max_record_bytes.min(Options::MAX_RECORD_BYTES);
        let options = Options {
            format: Some(format),
            values: selection.values,
            max_record_bytes,
            ..options.clone()
        };
        let report = Report::of(format, &*source);
        let home = selection.home(format, &source)?;
        let walk = open(source, &options, start)?;
        Ok(Self {
            walk,
            selection,
            home,
            limits,
            path,
            report,
            next_row: 0,
            damage: Vec::new(),
            failed: None,
            ended: false,
            side_by_side: None,
        })
    }

    /// Begins to read a file with so many threads, as far as it has [parts](crate::format::split): records and damage come in the
    /// same order as with one, and errors are the same; batches end where parts do, too. Beside those that one thread takes,
    /// memory is for two parts for each thread, of about twice [`Limits::bytes`] or 16 MiB each, or for four batches of each that
    /// is larger.
    ///
    /// # Errors
    /// As [`open`]; [`Error::Io`] where no thread can be had. While reading, [`Error::Usage`] for a file that cannot be read in
    /// parts though its index says so: read it with one thread.
    pub fn threaded(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        threads: usize,
    ) -> Result<Self> {
        let parts = match threads {
            0 | 1 => Vec::new(),
            _ if options.prune => Vec::new(),
            _ => split(
                source.clone(),
                options,
                bytes_of_parts(limits.bytes, source.len(), threads),
            )?,
        };
        let [first, _, ..] = parts.as_slice() else {
            return Self::new(source, options, selection, limits);
        };
        let format = resolve(&*source, options)?;
        let first = Start::Part(first);
        let mut own = Self::starting(source.clone(), options, selection.clone(), limits, first)?;
        own.walk = format.nothing(&*source);
        let begun =
            SideBySide::begin(source, options, selection, limits, parts, (format, threads))?;
        own.side_by_side = Some(begun);
        Ok(own)
    }

    /// What has been read so far.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The next batch; `None` at the end. A batch can be without records where damage was found.
    ///
    /// # Errors
    /// As [`Walk::step`].
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        if let Some(side_by_side) = &mut self.side_by_side {
            let next = side_by_side.next_batch(&mut self.report);
            if !matches!(next, Ok(Some(_))) {
                // The walk that is left has nothing.
                self.side_by_side = None;
            }
            return next;
        }
        let mut columns = self.selection.buffers(self.home.as_ref());
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
            return self.failed.take().map_or(Ok(None), |error| {
                self.ended = true;
                Err(error)
            });
        }
        let records = self.selection.batch(columns, rows)?;
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
            Ok(Step::Wait | Step::Done) => self.ended = true,
            Err(error) => self.failed = Some(error),
        }
    }

    /// Copies what fits of the walk's rows. Gives how many rows and bytes of values that was, and whether the batch is full.
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
            None => (0, 0), // the first record alone is larger than a batch is to be
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

    /// Makes room in empty columns for a batch of records like these first ones, of which there are `taken` that weigh `bytes`.
    fn reserve(&self, columns: &mut [ColumnBuffer], taken: usize, bytes: usize) {
        let Limits {
            bytes: most_bytes,
            rows: most_rows,
        } = self.limits;
        let size = saturating_usize(self.report.size);
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

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_batch() {
                Ok(Some(batch)) if batch.records.num_rows() == 0 => {}
                Ok(batch) => return batch.map(|batch| Ok(batch.records)),
                Err(error) => return Some(Err(ArrowError::ExternalError(Box::new(error)))),
            }
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.selection.schema.clone()
    }
}
