//! Reads a file in other threads, and returns its batches in the order of the file: its parts in several threads, or all of it ahead of
//! the caller in one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::selection::Selection;
use super::walk_batches::{Batch, Limits, WalkBatches};
use crate::engine::Start;
use crate::error::{Error, Result};
use crate::format::open;
use crate::limits::LIMITS;
use crate::source::Source;
use crate::sync::{Builder, Receiver, Sender, Taken, fifo};
use crate::verbs::Report;
use crate::walk::{Interrupt, Options, Part, Step, part_bytes};

/// The most parts for each thread that are begun and not returned completely.
const PARTS_AHEAD: usize = 2;
/// The most bytes in a part, unless batches are larger. Its batches wait in memory.
const MOST_BYTES: usize = 8 << 20;
/// The approximate overhead in bytes of a batch, and of each record in it besides its value.
const BATCH_BYTES: usize = 4 << 10;
const ROW_BYTES: usize = 32;
/// This many batches of a part wait, however large they are.
const WAITING: usize = 4;
/// How many batches of a file without parts wait. With more, the slower of the two threads is still the slower one.
const WAITING_AHEAD: usize = 1;
/// How long to wait for a batch before polling for an interrupt again.
const WAIT: Duration = Duration::from_millis(50);

/// An item from a thread.
enum Item {
    Batch(Batch),
    /// The report on the part so far. It comes before a batch with damage, and before the end.
    Report(Box<Report>),
    End,
    Failed(Error),
}

/// What a thread is to read.
enum Reading {
    Part(Part),
    /// What is open already: the first part, or all of the file.
    Opened(Box<WalkBatches>),
}

/// What may be begun, and the FIFO for its batches.
type Waiting = (Reading, Sender<Item>);

/// The size of parts for batches of so many bytes.
pub(super) fn bytes_of_parts(batch_bytes: usize, size: u64, threads: usize) -> u64 {
    let least = LIMITS.least_part_bytes.min(batch_bytes as u64);
    let most = batch_bytes.max(MOST_BYTES) as u64;
    part_bytes(least, most, size, threads)
}

/// What a thread needs to read parts.
#[derive(Clone)]
struct PartReading {
    source: Arc<dyn Source>,
    /// With an interrupt that stops the threads.
    options: Options,
    selection: Selection,
    limits: Limits,
}

impl PartReading {
    fn open(&self, start: Start<'_>) -> Result<WalkBatches> {
        let (source, selection) = (self.source.clone(), self.selection.clone());
        WalkBatches::starting(source, &self.options, selection, self.limits, start)
    }

    /// Reads until nothing is left.
    fn work(&self, waiting: &Receiver<Waiting>, stopped: &AtomicBool) {
        loop {
            let (reading, found) = match waiting.take(WAIT) {
                Taken::Item(next) if !stopped.load(Ordering::Acquire) => next,
                Taken::Empty => continue,
                Taken::Item(_) | Taken::End => return,
            };
            let opened = match reading {
                Reading::Opened(batches) => Ok(*batches),
                Reading::Part(part) => self.open(Start::Part(&part)),
            };
            // A dropped receiver is not an error.
            let _ = match opened {
                Ok(batches) => give(batches, &found),
                Err(error) => found.put(Item::Failed(error), 0),
            };
        }
    }
}

/// Makes batches until the end or an error. `None` if the receiver is dropped before.
fn give(mut batches: WalkBatches, found: &Sender<Item>) -> Option<()> {
    loop {
        let next = batches.next_batch();
        if !matches!(&next, Ok(Some(batch)) if batch.damage.is_empty()) {
            found.put(Item::Report(Box::new(batches.report().clone())), 0)?;
        }
        match next {
            Ok(Some(batch)) => {
                let rows = batch.records.num_rows() * ROW_BYTES + size_of_val(&*batch.damage);
                let bytes = BATCH_BYTES + rows + batch.value_bytes;
                found.put(Item::Batch(batch), bytes)?;
            }
            Ok(None) => return found.put(Item::End, 0),
            Err(error) => return found.put(Item::Failed(error), 0),
        }
    }
}

/// Batches that other threads make. These begin with the first batch that is asked for. Dropping it ends them, each at its next poll for
/// an interrupt.
pub(super) struct Parallel {
    reading: PartReading,
    /// The caller's options, with the interrupt that the threads must not poll.
    options: Options,
    /// How many threads are to be started.
    threads: usize,
    /// What may not be begun yet. This bounds how far threads read ahead.
    left: VecDeque<Reading>,
    /// The FIFOs of what is begun and not returned completely, in the order of the file.
    found: VecDeque<Receiver<Item>>,
    /// Whether they are of parts. Else there is one, of all of the file.
    in_parts: bool,
    /// What may be begun and no thread has begun yet; without a sender no more will come.
    queue: Option<Sender<Waiting>>,
    waiting: Arc<Receiver<Waiting>>,
    stopped: Arc<AtomicBool>,
    /// The report on what is returned completely.
    report: Report,
    /// The process that owns the threads: they do not exist in a fork.
    process: u32,
}

impl Parallel {
    /// Opens a file at `start`: there the first of several parts begins, or what one thread reads. Also returns the same batches without
    /// anything to read, for what the caller keeps of them.
    ///
    /// # Errors
    /// As [`open`].
    pub(super) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        (start, others): (Start<'_>, &[Part]),
        threads: usize,
    ) -> Result<(Self, WalkBatches)> {
        let stopped = Arc::default();
        let (queue, waiting) = fifo(usize::MAX, usize::MAX);
        let reading = PartReading {
            source,
            options: options.clone().interrupt(Interrupt::once(&stopped)),
            selection,
            limits,
        };
        let first = reading.open(start)?;
        let emptied = first.emptied(&*reading.source);
        let mut left = VecDeque::from([Reading::Opened(Box::new(first))]);
        left.extend(others.iter().cloned().map(Reading::Part));
        let parallel = Self {
            options: options.clone(),
            threads: threads.min(left.len()),
            left,
            found: VecDeque::new(),
            in_parts: !others.is_empty(),
            queue: Some(queue),
            waiting: Arc::new(waiting),
            stopped,
            report: Report::of(emptied.report().format, &*reading.source),
            reading,
            process: std::process::id(),
        };
        Ok((parallel, emptied))
    }

    /// Starts the threads, once.
    fn begin(&mut self) -> Result<()> {
        let threads = std::mem::take(&mut self.threads);
        if threads > 0 {
            self.process = std::process::id();
        }
        for _ in 0..threads.saturating_mul(PARTS_AHEAD) {
            self.admit();
        }
        for _ in 0..threads {
            let (waiting, stopped) = (self.waiting.clone(), self.stopped.clone());
            let reading = self.reading.clone();
            Builder::new()
                .name("seglake-read".to_owned())
                .spawn(move || reading.work(&waiting, &stopped))
                .map_err(|error| Error::io(None, "cannot start a thread to read with", error))?;
        }
        Ok(())
    }

    /// Lets the next part be begun, if there is one.
    fn admit(&mut self) {
        let (Some(next), Some(queue)) = (self.left.pop_front(), &self.queue) else {
            self.queue = None;
            return;
        };
        // A part of a compressed file has more content than bytes.
        let part_bytes = self.reading.limits.bytes.max(MOST_BYTES).saturating_mul(2);
        let (sender, receiver) = match self.in_parts {
            true => fifo(part_bytes, WAITING),
            false => fifo(0, WAITING_AHEAD),
        };
        self.found.push_back(receiver);
        let _ = queue.put((next, sender), 0); // its threads may have ended
    }

    /// The next batch; `None` at the end. `report` is updated.
    pub(super) fn next_batch(&mut self, report: &mut Report) -> Result<Option<Batch>> {
        self.begin()?;
        if self.process != std::process::id() {
            return Err(Error::Usage(
                "threads of the parent process read these batches, and this one is a fork: open the file again".to_owned(),
            ));
        }
        // Polled here too, because a batch may be available at every call.
        self.options.poll()?;
        while let Some(found) = self.found.front() {
            match found.take(WAIT) {
                Taken::Item(Item::Batch(batch)) => return Ok(Some(batch)),
                Taken::Item(Item::Report(part)) => {
                    report.clone_from(&self.report);
                    report.merge(&part);
                }
                Taken::Item(Item::End) => {
                    self.report.clone_from(report);
                    self.found.pop_front();
                    self.admit();
                }
                Taken::Item(Item::Failed(error)) => {
                    self.stop();
                    return Err(self.first(error));
                }
                Taken::Empty => self.options.poll()?,
                Taken::End => {
                    let ended = std::io::Error::other("it ended early");
                    let path = self.reading.source.path();
                    return Err(Error::io(path, "a thread that reads", ended));
                }
            }
        }
        Ok(None)
    }

    fn stop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.queue = None;
        self.found.clear();
    }

    /// The error that one walk of the whole file raises, if a part raised `error`. Damage earlier in the file, such as
    /// in an index, may be met only by a later part.
    fn first(&self, error: Error) -> Error {
        if !matches!(error, Error::Damage(_)) || !self.in_parts {
            return error;
        }
        let options = self.options.clone().values(false);
        let walk = open(self.reading.source.clone(), &options, Start::Beginning);
        let raised = walk.and_then(|mut walk| {
            while walk.step()? == Step::More {}
            Ok(())
        });
        match raised {
            Err(first) => first,
            Ok(()) => error,
        }
    }
}

impl Drop for Parallel {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Not joined: the threads may need a lock that the caller has.
            self.stop();
        } else {
            // Leaked in a fork: a thread that does not exist here may have locked them forever.
            std::mem::forget((std::mem::take(&mut self.found), self.queue.take()));
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
