//! The parts of one file, read by several threads, and given in the order of the file.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pipe::{Inlet, Outlet, Taken, pipe};
use super::selection::Selection;
use super::walk_batches::{Batch, Limits, WalkBatches};
use crate::engine::{Format, Interrupt, Options, Part, Start, Step, part_bytes};
use crate::error::{Error, Result};
use crate::format::open;
use crate::limits::LIMITS;
use crate::source::Source;
use crate::verbs::Report;

/// How many parts for each thread are begun and not yet given out, at most.
const PARTS_AHEAD: usize = 2;
/// No part is larger than this, which waits in memory, unless batches are.
const MOST_BYTES: usize = 8 << 20;
/// What a batch takes by itself, and each of its records beside its value, about, in bytes.
const BATCH_BYTES: usize = 4 << 10;
const ROW_BYTES: usize = 32;
/// How long is waited for a batch between two looks at whether to stop.
const WAIT: Duration = Duration::from_millis(50);

/// What a thread found. A batch with damage comes with the part's report so far.
enum Found {
    Batch(Batch, Option<Box<Report>>),
    End(Box<Report>),
    Failed(Error),
}

/// A part that may be begun, and where its batches go.
type Waiting = (Part, Inlet<Found>);

/// The parts that may be begun and that no thread has begun, and whether those are the last.
#[derive(Default)]
struct Queue {
    state: Mutex<(VecDeque<Waiting>, bool)>,
    changed: Condvar,
    stopped: Arc<AtomicBool>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Waiting>, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part, once it may be begun; `None` where none is left.
    fn next(&self) -> Option<Waiting> {
        let mut state = self.lock();
        while state.0.is_empty() && !state.1 {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.0.pop_front()
    }

    /// One more part may be begun.
    fn push(&self, waiting: Waiting) {
        self.lock().0.push_back(waiting);
        self.changed.notify_one();
    }

    /// There are no more parts.
    fn close(&self) {
        self.lock().1 = true;
        self.changed.notify_all();
    }

    /// Nobody wants any part any more.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        *self.lock() = (VecDeque::new(), true);
        self.changed.notify_all();
    }
}

/// How large parts are to be, for batches of so many bytes.
pub(super) fn bytes_of_parts(batch_bytes: usize, size: u64, threads: usize) -> u64 {
    let least = LIMITS.least_part_bytes.min(batch_bytes as u64);
    let most = batch_bytes.max(MOST_BYTES) as u64;
    part_bytes(least, most, size, threads)
}

/// What a thread needs to read parts.
#[derive(Clone)]
struct Reading {
    source: Arc<dyn Source>,
    options: Options,
    selection: Selection,
    limits: Limits,
}

impl Reading {
    /// Reads parts until none is left or nobody wants them.
    fn work(&self, queue: &Queue) {
        while let Some((part, found)) = queue.next() {
            let sent = self.read(&part, |item, bytes| {
                found.put(item, bytes).ok_or(Error::Interrupted)
            });
            let end = match sent {
                Ok(report) => Found::End(report),
                Err(error) => Found::Failed(error),
            };
            // Whoever is gone does not want to know.
            let _ = found.put(end, 0);
        }
    }

    fn read(
        &self,
        part: &Part,
        mut send: impl FnMut(Found, usize) -> Result<()>,
    ) -> Result<Box<Report>> {
        let Self {
            source,
            options,
            selection,
            limits,
        } = self.clone();
        let start = Start::Part(part);
        let mut batches = WalkBatches::starting(source, &options, selection, limits, start)?;
        while let Some(batch) = batches.next_batch()? {
            let report = match batch.damage.is_empty() {
                true => None,
                false => Some(Box::new(batches.report().clone())),
            };
            let rows = batch.records.num_rows() * ROW_BYTES + size_of_val(&*batch.damage);
            let bytes = BATCH_BYTES + rows + batch.value_bytes;
            send(Found::Batch(batch, report), bytes)?;
        }
        Ok(Box::new(batches.report().clone()))
    }
}

/// Batches of several parts. Its threads end when it is dropped, each as soon as it looks whether to.
pub(super) struct SideBySide {
    reading: Reading,
    /// The parts that may not be begun yet: so threads do not run away from who takes their batches.
    parts: std::vec::IntoIter<Part>,
    /// Of each part that may be begun and has not been given out whole, in the order of the file.
    found: VecDeque<Outlet<Found>>,
    queue: Arc<Queue>,
    /// On the parts that have been given out whole.
    report: Report,
    /// The process whose threads they are: a fork of it has none.
    process: u32,
}

impl SideBySide {
    /// Begins to read these parts.
    ///
    /// # Errors
    /// [`Error::Io`] where no thread can be had.
    pub(super) fn begin(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        parts: Vec<Part>,
        (format, threads): (&'static Format, usize),
    ) -> Result<Self> {
        let report = Report::of(format, &*source);
        let reading = Reading {
            source,
            options: options.clone(),
            selection,
            limits,
        };
        let threads = threads.min(parts.len());
        let queue = Arc::new(Queue::default());
        let mut own = Self {
            reading: reading.clone(),
            parts: parts.into_iter(),
            found: VecDeque::new(),
            queue: queue.clone(),
            report,
            process: std::process::id(),
        };
        for _ in 0..threads.saturating_mul(PARTS_AHEAD) {
            own.admit();
        }
        for _ in 0..threads {
            let (queue, mut reading) = (queue.clone(), reading.clone());
            // The caller is asked whether to stop by who takes the batches.
            reading.options.interrupt = Some(Interrupt::once(&queue.stopped));
            std::thread::Builder::new()
                .name("seglake-read".to_owned())
                .spawn(move || reading.work(&queue))
                .map_err(|error| Error::io(None, "cannot start a thread to read with", error))?;
        }
        Ok(own)
    }

    /// The next part may be begun, if there is one.
    fn admit(&mut self) {
        let Some(part) = self.parts.next() else {
            return self.queue.close();
        };
        // A part of a file that is compressed holds more than it has bytes.
        let room = self.reading.limits.bytes.max(MOST_BYTES).saturating_mul(2);
        let (inlet, outlet) = pipe(room);
        self.found.push_back(outlet);
        self.queue.push((part, inlet));
    }

    /// The next batch; `None` at the end. `report` becomes what is known by then.
    pub(super) fn next_batch(&mut self, report: &mut Report) -> Result<Option<Batch>> {
        if self.process != std::process::id() {
            return Err(Error::Usage(
                "threads of another process read these batches, from which this one was forked: begin anew".to_owned(),
            ));
        }
        // Batches may always be there when they are asked for.
        self.poll()?;
        while let Some(found) = self.found.front() {
            match found.take(WAIT) {
                Taken::Item(Found::Batch(batch, part)) => {
                    if let Some(part) = part {
                        report.clone_from(&self.report);
                        report.merge(&part);
                    }
                    return Ok(Some(batch));
                }
                Taken::Item(Found::End(part)) => {
                    self.report.merge(&part);
                    report.clone_from(&self.report);
                    self.found.pop_front();
                    self.admit();
                }
                Taken::Item(Found::Failed(error)) => {
                    self.stop();
                    return Err(self.first(error));
                }
                Taken::Nothing => self.poll()?,
                Taken::End => {
                    self.stop();
                    let ended = std::io::Error::other("it ended early");
                    return Err(Error::io(
                        self.reading.source.path(),
                        "a thread that reads",
                        ended,
                    ));
                }
            }
        }
        Ok(None)
    }

    /// Asks the caller whether to stop.
    fn poll(&mut self) -> Result<()> {
        self.reading.options.poll().inspect_err(|_| self.stop())
    }

    fn stop(&mut self) {
        self.queue.stop();
        self.found.clear();
    }

    /// The error that one walk of the whole file raises where a part raised this: damage that is in front of it in the file, such
    /// as that of an index, may have been met in a later part.
    fn first(&self, error: Error) -> Error {
        if !matches!(error, Error::Damage(_)) {
            return error;
        }
        let options = self.reading.options.clone().values(false);
        let walk = open(self.reading.source.clone(), &options, Start::Beginning);
        let raised = walk.and_then(|mut walk| {
            while walk.step()? == Step::More {}
            Ok(())
        });
        raised.err().unwrap_or(error)
    }
}

impl Drop for SideBySide {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Not waited for: they may need what the caller holds.
            self.stop();
        } else {
            // A thread that this process does not have may hold their locks for good.
            std::mem::forget(std::mem::take(&mut self.found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_of_a_batch_or_many() {
        for (batch_bytes, size, parts) in [
            (8 << 20, 1 << 30, 8 << 20),
            (1 << 10, 1 << 30, 8 << 20),
            (64 << 20, 4 << 30, 64 << 20),
            (8 << 20, 48 << 20, 3 << 20),
            (8 << 20, 1 << 20, 1 << 20),
            (1 << 10, 1 << 16, 1 << 12),
            (1, 15, 1),
        ] {
            assert_eq!(bytes_of_parts(batch_bytes, size, 2), parts);
        }
    }
}
