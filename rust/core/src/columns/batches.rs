//! Reads a walk's records as Arrow record batches of bounded size, also ahead: then a thread makes the next batch while the caller
//! uses the last one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::parallel::{Parallel, Receiver, Sender, Taken, bytes_of_parts, fifo};
use super::selection::Selection;
use super::walk_batches::{Batch, Limits, WalkBatches};
use crate::engine::Start;
use crate::error::{Error, Result};
use crate::format::{resolve, split};
use crate::source::Source;
use crate::sync::Builder;
use crate::verbs::Report;
use crate::walk::{Interrupt, Options, Walk};

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
    /// One walk. It is empty if several threads read.
    single: WalkBatches,
    /// Replaces the walk if several threads read.
    parallel: Option<Parallel>,
    /// Replaces the walk if a thread reads ahead.
    ahead: Option<Ahead>,
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
            ahead: None,
        })
    }

    /// Reads a walk that is open already. `report` names what it goes through.
    pub(crate) fn of_walk(
        walk: Box<dyn Walk>,
        report: Report,
        selection: Selection,
        limits: Limits,
    ) -> Self {
        Self {
            single: WalkBatches::of_walk(walk, report, selection, limits),
            parallel: None,
            ahead: None,
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
        let (ahead, single) = Ahead::starting(source, options, selection, limits, start)?;
        Ok(Self {
            single,
            parallel: None,
            ahead: Some(ahead),
        })
    }

    /// Opens a file and reads its [parts](crate::format::split) in several threads. Records, damage and errors come in
    /// the same order as with one thread. Batches also end where parts end.
    ///
    /// Memory, beyond that of one thread: two parts for each thread, each of about twice [`Limits::bytes`] or 16 MiB,
    /// or four batches if these are larger.
    ///
    /// # Errors
    /// - As [`open`](crate::format::open).
    /// - [`Error::Io`](crate::Error::Io) if no thread can be started.
    /// - While reading, [`Error::Usage`](crate::Error::Usage) for a file that cannot be read in parts although its
    ///   index says so: read it with one thread.
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
        let mut batches =
            Self::starting(source.clone(), options, selection.clone(), limits, first)?;
        batches.single.walk = format.empty_walk(&*source);
        let begun = Parallel::begin(source, options, selection, limits, parts, (format, threads))?;
        batches.parallel = Some(begun);
        Ok(batches)
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
        if let Some(ahead) = &mut self.ahead {
            return ahead.next_batch(&mut self.single.report);
        }
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

/// How many batches wait. With more, the slower of the two threads is still the slower one.
const WAITING: usize = 1;
/// How long to wait for a batch before polling for an interrupt again.
const WAIT: Duration = Duration::from_millis(50);

/// An item from the thread. A batch with damage comes with the report so far.
enum Item {
    Batch(Batch, Option<Box<Report>>),
    End(Box<Report>),
    Failed(Error, Box<Report>),
}

enum Stage {
    /// Nothing was asked for yet.
    Opened(Box<WalkBatches>),
    Running(Receiver<Item>),
    Ended,
}

/// The batches of one walk, made in a thread of their own, at most two ahead of the caller. Dropping it ends the thread at its next
/// poll for an interrupt.
struct Ahead {
    stage: Stage,
    stopped: Arc<AtomicBool>,
    /// The caller's options, with the interrupt that the thread must not poll.
    options: Options,
    source: Arc<dyn Source>,
    /// The process that owns the thread: it does not exist in a fork.
    process: u32,
}

impl Ahead {
    /// Opens a file at `start`. The thread begins with the first batch that is asked for. Also returns the same batches without
    /// anything to read, for what the caller keeps of them.
    ///
    /// # Errors
    /// As [`open`](crate::format::open).
    fn starting(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        start: Start<'_>,
    ) -> Result<(Self, WalkBatches)> {
        let stopped = Arc::new(AtomicBool::new(false));
        let stoppable = options.clone().interrupt(Interrupt::once(&stopped));
        let batches = WalkBatches::starting(source.clone(), &stoppable, selection, limits, start)?;
        let emptied = batches.emptied(resolve(&*source, options)?.empty_walk(&*source));
        let ahead = Self {
            stage: Stage::Opened(Box::new(batches)),
            stopped,
            options: options.clone(),
            source,
            process: std::process::id(),
        };
        Ok((ahead, emptied))
    }

    /// The next batch; `None` at the end. `report` is updated.
    fn next_batch(&mut self, report: &mut Report) -> Result<Option<Batch>> {
        let next = self.receive(report);
        if !matches!(next, Ok(Some(_))) {
            self.stop();
        }
        next
    }

    fn receive(&mut self, report: &mut Report) -> Result<Option<Batch>> {
        if let Stage::Opened(_) = self.stage {
            self.begin()?;
        }
        let Stage::Running(found) = &self.stage else {
            return Ok(None);
        };
        if self.process != std::process::id() {
            return Err(Error::Usage(
                "a thread of the parent process reads these batches, and this one is a fork: open the file again".to_owned(),
            ));
        }
        loop {
            self.options.poll()?;
            match found.take(WAIT) {
                Taken::Item(Item::Batch(batch, latest)) => {
                    if let Some(latest) = latest {
                        *report = *latest;
                    }
                    return Ok(Some(batch));
                }
                Taken::Item(Item::End(last)) => {
                    *report = *last;
                    return Ok(None);
                }
                Taken::Item(Item::Failed(error, last)) => {
                    *report = *last;
                    return Err(error);
                }
                Taken::Empty => {}
                Taken::End => {
                    let ended = std::io::Error::other("it ended early");
                    let path = self.source.path();
                    return Err(Error::io(path, "a thread that reads", ended));
                }
            }
        }
    }

    /// Starts the thread.
    fn begin(&mut self) -> Result<()> {
        let Stage::Opened(batches) = std::mem::replace(&mut self.stage, Stage::Ended) else {
            return Ok(());
        };
        let (sender, receiver) = fifo(0, WAITING);
        self.process = std::process::id();
        Builder::new()
            .name("seglake-ahead".to_owned())
            .spawn(move || make(*batches, &sender))
            .map_err(|error| Error::io(None, "cannot start a thread to read with", error))?;
        self.stage = Stage::Running(receiver);
        Ok(())
    }

    fn stop(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        if self.process == std::process::id() {
            // Not joined: the thread may need a lock that the caller has.
            self.stopped.store(true, Ordering::Release);
        } else {
            // Leaked in a fork: a thread that does not exist here may have locked it forever.
            std::mem::forget(stage);
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Makes batches until the end, an error, or the receiver is dropped.
fn make(mut batches: WalkBatches, sender: &Sender<Item>) {
    loop {
        let next = batches.next_batch();
        let report = || Box::new(batches.report().clone());
        let (item, is_last) = match next {
            Ok(Some(batch)) => {
                let latest = (!batch.damage.is_empty()).then(report);
                (Item::Batch(batch, latest), false)
            }
            Ok(None) => (Item::End(report()), true),
            Err(error) => (Item::Failed(error, report()), true),
        };
        if sender.put(item, 0).is_none() || is_last {
            return;
        }
    }
}
