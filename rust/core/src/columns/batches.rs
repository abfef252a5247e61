//! A walk's records as Arrow record batches of bounded size.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::selection::Selection;
use super::side_by_side::{SideBySide, bytes_of_parts};
use super::walk_batches::{Batch, Limits, WalkBatches};
use crate::engine::{Options, Start};
use crate::error::Result;
use crate::format::{resolve, split};
use crate::source::Source;
use crate::verbs::Report;

/// Reads a file as record batches. What was good before an error is given out first, in a batch of its own.
pub struct Batches {
    /// Has nothing to read any more where several threads read.
    own: WalkBatches,
    /// What reads in its place, where several threads do.
    side_by_side: Option<SideBySide>,
}

impl Batches {
    /// Begins to read a file.
    ///
    /// # Errors
    /// As [`open`](crate::format::open).
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
    /// As [`open`](crate::format::open).
    pub fn starting(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        start: Start<'_>,
    ) -> Result<Self> {
        Ok(Self {
            own: WalkBatches::starting(source, options, selection, limits, start)?,
            side_by_side: None,
        })
    }

    /// Begins to read a file with so many threads, as far as it has [parts](crate::format::split): records and damage come in the
    /// same order as with one, and errors are the same; batches end where parts do, too. Beside those that one thread takes,
    /// memory is for two parts for each thread, of about twice [`Limits::bytes`] or 16 MiB each, or for four batches of each that
    /// is larger.
    ///
    /// # Errors
    /// As [`open`](crate::format::open); [`Error::Io`](crate::Error::Io) where no thread can be had. While reading, [`Error::Usage`](crate::Error::Usage) for a file that cannot be read in
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
        own.own.walk = format.nothing(&*source);
        let begun =
            SideBySide::begin(source, options, selection, limits, parts, (format, threads))?;
        own.side_by_side = Some(begun);
        Ok(own)
    }

    /// What has been read so far.
    #[must_use]
    pub const fn report(&self) -> &Report {
        self.own.report()
    }

    /// The next batch; `None` at the end. A batch can be without records where damage was found.
    ///
    /// # Errors
    /// As [`Walk::step`](crate::format::Walk::step).
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        if let Some(side_by_side) = &mut self.side_by_side {
            let next = side_by_side.next_batch(&mut self.own.report);
            if !matches!(next, Ok(Some(_))) {
                // The walk that is left has nothing.
                self.side_by_side = None;
            }
            return next;
        }
        self.own.next_batch()
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
        self.own.selection.schema.clone()
    }
}
