//! Reads a file's records as Arrow record batches of bounded size, by one walk, or by other threads.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::parallel::{Parallel, bytes_of_parts};
use super::selection::Selection;
use super::walk_batches::{Batch, Limits, WalkBatches};
use crate::engine::Start;
use crate::error::Result;
use crate::format::split;
use crate::source::Source;
use crate::verbs::Report;
use crate::walk::{Options, Part, Walk};

/// Reads a file as record batches. Sound records before an error are returned first, in a batch of their own.
///
/// ```
/// use std::sync::Arc;
///
/// use seglake::Options;
/// use seglake::columns::{Batches, Limits, Selection, UuidType};
/// use seglake::format::active;
/// use seglake::source::BytesSource;
/// # let mut segment = Vec::new();
/// # let uuid = seglake::uuid6::Generator::default().now();
/// # active::encode(&mut segment, &Default::default(), uuid.as_bytes(), b"", b"hello")?;
///
/// let options = Options::default().format(&active::FORMAT);
/// let names = ["uuid".to_owned(), "value".to_owned()];
/// let selection = Selection::new(&active::FORMAT, &options, Some(&names), UuidType::Extension)?;
/// let source = Arc::new(BytesSource::new(segment));
/// for batch in Batches::new(source, &options, selection, Limits::default())? {
///     assert_eq!(batch?.num_columns(), 2);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batches {
    /// One walk. It is empty if other threads read.
    single: WalkBatches,
    /// Replaces the walk if other threads read.
    parallel: Option<Parallel>,
}

impl Batches {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`open`](crate::format::open), and [`Error::Usage`](crate::Error::Usage) for a selection of another format.
    pub fn new(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
    ) -> Result<Self> {
        Self::starting(source, options, selection, limits, Start::Beginning)
    }

    /// Opens a file at `start`, which may be one of its [parts](crate::format::Part).
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
            single: WalkBatches::starting(source, options, selection, limits, start)?,
            parallel: None,
        })
    }

    /// Reads a walk that is open already. `report` names what it goes through.
    pub(crate) fn of_walk(
        walk: Box<dyn Walk>,
        mut report: Report,
        selection: Selection,
        limits: Limits,
    ) -> Self {
        report.summary.checked = walk.checked();
        Self {
            single: WalkBatches::of_walk(walk, report, selection, limits),
            parallel: None,
        }
    }

    /// As [`starting`](Self::starting), with a thread that makes the next batch while the caller uses the last one, at most two
    /// ahead. It begins with the first batch that is asked for. Batches, damage and errors are the same, in the same order.
    ///
    /// # Errors
    /// As [`open`](crate::format::open). While reading, [`Error::Io`](crate::Error::Io) if no thread can be started.
    #[doc(hidden)]
    pub fn ahead(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        start: Start<'_>,
    ) -> Result<Self> {
        Self::by_threads(source, options, selection, limits, (start, &[]), 1)
    }

    /// Opens what other threads read: these parts, of which the first begins at a start, or all from there on if it has no others.
    fn by_threads(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        parts: (Start<'_>, &[Part]),
        threads: usize,
    ) -> Result<Self> {
        let (parallel, single) =
            Parallel::open(source, options, selection, limits, parts, threads)?;
        Ok(Self {
            single,
            parallel: Some(parallel),
        })
    }

    /// Opens a file and reads its [parts](crate::format::split) in several threads. Records, damage and errors come in
    /// the same order as with one thread. Batches also end where parts end. The threads begin with the first batch that is asked for.
    ///
    /// Memory, beyond that of one thread: two parts for each thread, each of about twice [`Limits::bytes`] or 16 MiB,
    /// or four batches if these are larger.
    ///
    /// # Errors
    /// - As [`open`](crate::format::open).
    /// - While reading, [`Error::Io`](crate::Error::Io) if no thread can be started, and [`Error::Usage`](crate::Error::Usage) for
    ///   a file that cannot be read in parts although its index says so: read it with one thread.
    pub fn threaded(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        threads: usize,
    ) -> Result<Self> {
        let parts = match threads {
            0 | 1 => Vec::new(),
            _ if options.prunes() => Vec::new(),
            _ => split(
                source.clone(),
                options,
                bytes_of_parts(limits.bytes, source.len(), threads),
            )?,
        };
        match parts.as_slice() {
            [] | [_] => Self::new(source, options, selection, limits),
            [first, others @ ..] => {
                let parts = (Start::Part(first), others);
                Self::by_threads(source, options, selection, limits, parts, threads)
            }
        }
    }

    /// The report on what was read so far.
    #[must_use]
    pub const fn report(&self) -> &Report {
        self.single.report()
    }

    /// The next batch; `None` at the end. A batch may contain damage but no records.
    ///
    /// # Errors
    /// As [`Walk::step`](crate::format::Walk::step).
    #[doc(hidden)] // public for the Python extension
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        if let Some(parallel) = &mut self.parallel {
            let next = parallel.next_batch(&mut self.single.report);
            if !matches!(next, Ok(Some(_))) {
                // The remaining walk is empty.
                self.parallel = None;
            }
            return next;
        }
        self.single.next_batch()
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
        self.single.selection.schema().clone()
    }
}
