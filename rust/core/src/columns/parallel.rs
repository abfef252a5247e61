//! Reads the parts of one file in several threads, and returns their batches in the order of the file. Also the queue between two
//! threads, bounded by bytes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::selection::Selection;
use super::walk_batches::{Batch, Limits, WalkBatches};
use crate::engine::{Format, Start};
use crate::error::{Error, Result};
use crate::format::open;
use crate::limits::LIMITS;
use crate::source::Source;
use crate::sync::{Builder, Condvar, Mutex, MutexGuard, Unpoisoned as _};
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
/// How long to wait for a batch before polling for an interrupt again.
const WAIT: Duration = Duration::from_millis(50);

/// An item from a thread. A batch with damage comes with the part's report so far.
enum Item {
    Batch(Batch, Option<Box<Report>>),
    End(Box<Report>),
    Failed(Error),
}

/// A part that may be begun, and the FIFO for its batches.
type Waiting = (Part, Sender<Item>);

/// Parts that may be begun and that no thread has begun yet, and whether more will come.
#[derive(Default)]
struct Queue {
    state: Mutex<(VecDeque<Waiting>, bool)>,
    changed: Condvar,
    stopped: Arc<AtomicBool>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Waiting>, bool)> {
        self.state.lock().unpoisoned()
    }

    /// Returns the next part when there is one; `None` if none is left.
    fn next(&self) -> Option<Waiting> {
        let mut state = self.lock();
        while state.0.is_empty() && !state.1 {
            let waited = self.changed.wait(state);
            state = waited.unpoisoned();
        }
        state.0.pop_front()
    }

    /// Adds a part that may be begun.
    fn push(&self, waiting: Waiting) {
        self.lock().0.push_back(waiting);
        self.changed.notify_one();
    }

    /// Says that no more parts will come.
    fn close(&self) {
        self.lock().1 = true;
        self.changed.notify_all();
    }

    /// Stops all threads.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        *self.lock() = (VecDeque::new(), true);
        self.changed.notify_all();
    }
}

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
    options: Options,
    selection: Selection,
    limits: Limits,
}

impl PartReading {
    /// Reads parts until none is left or the receiver is dropped.
    fn work(&self, queue: &Queue) {
        while let Some((part, found)) = queue.next() {
            let sent = self.read(&part, |item, bytes| {
                found.put(item, bytes).ok_or(Error::Interrupted)
            });
            let end = match sent {
                Ok(report) => Item::End(report),
                Err(error) => Item::Failed(error),
            };
            // A dropped receiver is not an error.
            let _ = found.put(end, 0);
        }
    }

    fn read(
        &self,
        part: &Part,
        mut send: impl FnMut(Item, usize) -> Result<()>,
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
            send(Item::Batch(batch, report), bytes)?;
        }
        Ok(Box::new(batches.report().clone()))
    }
}

/// Batches of several parts. Dropping it ends its threads, each at its next poll for an interrupt.
pub(super) struct Parallel {
    reading: PartReading,
    /// The parts that may not be begun yet. This bounds how far threads read ahead.
    parts: std::vec::IntoIter<Part>,
    /// The FIFOs of parts that are begun and not returned completely, in the order of the file.
    found: VecDeque<Receiver<Item>>,
    queue: Arc<Queue>,
    /// The report on parts that are returned completely.
    report: Report,
    /// The process that owns the threads: they do not exist in a fork.
    process: u32,
}

impl Parallel {
    /// Begins to read these parts.
    ///
    /// # Errors
    /// [`Error::Io`] if no thread can be started.
    pub(super) fn begin(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        parts: Vec<Part>,
        (format, threads): (&'static Format, usize),
    ) -> Result<Self> {
        let report = Report::of(format, &*source);
        let reading = PartReading {
            source,
            options: options.clone(),
            selection,
            limits,
        };
        let threads = threads.min(parts.len());
        let queue = Arc::new(Queue::default());
        let mut parallel = Self {
            reading: reading.clone(),
            parts: parts.into_iter(),
            found: VecDeque::new(),
            queue: queue.clone(),
            report,
            process: std::process::id(),
        };
        for _ in 0..threads.saturating_mul(PARTS_AHEAD) {
            parallel.admit();
        }
        for _ in 0..threads {
            let (queue, mut reading) = (queue.clone(), reading.clone());
            // The thread that takes the batches polls the caller's interrupt.
            reading.options.interrupt = Some(Interrupt::once(&queue.stopped));
            Builder::new()
                .name("seglake-read".to_owned())
                .spawn(move || reading.work(&queue))
                .map_err(|error| Error::io(None, "cannot start a thread to read with", error))?;
        }
        Ok(parallel)
    }

    /// Lets the next part be begun, if there is one.
    fn admit(&mut self) {
        let Some(part) = self.parts.next() else {
            return self.queue.close();
        };
        // A part of a compressed file has more content than bytes.
        let room = self.reading.limits.bytes.max(MOST_BYTES).saturating_mul(2);
        let (sender, receiver) = fifo(room, WAITING);
        self.found.push_back(receiver);
        self.queue.push((part, sender));
    }

    /// The next batch; `None` at the end. `report` is updated.
    pub(super) fn next_batch(&mut self, report: &mut Report) -> Result<Option<Batch>> {
        if self.process != std::process::id() {
            return Err(Error::Usage(
                "threads of the parent process read these batches, and this one is a fork: open the file again".to_owned(),
            ));
        }
        // Polled here too, because a batch may be available at every call.
        self.poll()?;
        while let Some(found) = self.found.front() {
            match found.take(WAIT) {
                Taken::Item(Item::Batch(batch, part)) => {
                    if let Some(part) = part {
                        report.clone_from(&self.report);
                        report.merge(&part);
                    }
                    return Ok(Some(batch));
                }
                Taken::Item(Item::End(part)) => {
                    self.report.merge(&part);
                    report.clone_from(&self.report);
                    self.found.pop_front();
                    self.admit();
                }
                Taken::Item(Item::Failed(error)) => {
                    self.stop();
                    return Err(self.first(error));
                }
                Taken::Empty => self.poll()?,
                Taken::End => {
                    self.stop();
                    let ended = std::io::Error::other("a part ended early");
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

    /// Polls the caller's interrupt.
    fn poll(&mut self) -> Result<()> {
        self.reading.options.poll().inspect_err(|_| self.stop())
    }

    fn stop(&mut self) {
        self.queue.stop();
        self.found.clear();
    }

    /// The error that one walk of the whole file raises, if a part raised `error`. Damage earlier in the file, such as
    /// in an index, may be met only by a later part.
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

impl Drop for Parallel {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Not joined: the threads may need a lock that the caller has.
            self.stop();
        } else {
            // Leaked in a fork: a thread that does not exist here may have locked them forever.
            std::mem::forget(std::mem::take(&mut self.found));
        }
    }
}

/// A FIFO that is full when it has `least` items and they have `room` bytes together.
pub(super) fn fifo<T>(room: usize, least: usize) -> (Sender<T>, Receiver<T>) {
    let fifo = Arc::new(Fifo {
        room,
        least,
        state: Mutex::new(Buffered {
            items: VecDeque::new(),
            bytes: 0,
            is_open: true,
        }),
        changed: Condvar::new(),
    });
    (Sender(fifo.clone()), Receiver(fifo))
}

struct Fifo<T> {
    room: usize,
    least: usize,
    state: Mutex<Buffered<T>>,
    changed: Condvar,
}

struct Buffered<T> {
    /// Items, each with its bytes.
    items: VecDeque<(T, usize)>,
    bytes: usize,
    /// Whether both ends exist.
    is_open: bool,
}

impl<T> Fifo<T> {
    fn lock(&self) -> MutexGuard<'_, Buffered<T>> {
        self.state.lock().unpoisoned()
    }

    fn close(&self) {
        self.lock().is_open = false;
        self.changed.notify_all();
    }
}

/// The sending end. Dropping it ends the FIFO after the last item.
pub(super) struct Sender<T>(Arc<Fifo<T>>);

impl<T> Sender<T> {
    /// Adds an item of about `bytes` bytes when there is room. Returns `None` if the receiving end was dropped.
    pub(super) fn put(&self, item: T, bytes: usize) -> Option<()> {
        let mut state = self.0.lock();
        while state.is_open && state.items.len() >= self.0.least && state.bytes >= self.0.room {
            let waited = self.0.changed.wait(state);
            state = waited.unpoisoned();
        }
        if !state.is_open {
            return None;
        }
        state.items.push_back((item, bytes));
        state.bytes += bytes;
        drop(state);
        self.0.changed.notify_all();
        Some(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The receiving end. Dropping it drops the items in the FIFO.
pub(super) struct Receiver<T>(Arc<Fifo<T>>);

/// The outcome of taking an item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken<T> {
    Item(T),
    /// No item yet.
    Empty,
    /// No further item will come.
    End,
}

impl<T> Receiver<T> {
    /// Takes the next item. Waits for it, but at most for `wait`.
    pub(super) fn take(&self, wait: Duration) -> Taken<T> {
        let state = self.0.lock();
        let is_empty = |state: &mut Buffered<T>| state.items.is_empty() && state.is_open;
        let waited = self.0.changed.wait_timeout_while(state, wait, is_empty);
        let mut state = waited.unpoisoned().0;
        let Some((item, bytes)) = state.items.pop_front() else {
            return match state.is_open {
                true => Taken::Empty,
                false => Taken::End,
            };
        };
        state.bytes -= bytes;
        drop(state);
        self.0.changed.notify_all();
        Taken::Item(item)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.close();
        // Dropped after the lock is released, because dropping items may take long.
        let forgotten = std::mem::take(&mut self.0.lock().items);
        drop(forgotten);
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

#[cfg(test)]
mod fifo_tests {
    use super::*;

    const MIN_ITEMS: usize = 4;
    const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_secs(60);

    #[test]
    fn items_come_out_in_order_and_then_the_end() {
        let (sender, receiver) = fifo(0, MIN_ITEMS);
        assert_eq!(receiver.take(SOON), Taken::Empty);
        for number in 0..MIN_ITEMS {
            assert_eq!(sender.put(number, 100), Some(()));
        }
        drop(sender);
        for number in 0..MIN_ITEMS {
            assert_eq!(receiver.take(LATE), Taken::Item(number));
        }
        assert_eq!(receiver.take(LATE), Taken::End);
    }

    #[test]
    fn many_small_items_find_room_and_few_large_ones() {
        for (room, bytes, fits) in [(1000, 10, 100), (1000, 400, MIN_ITEMS), (1000, 250, 4)] {
            let (sender, receiver) = fifo(room, MIN_ITEMS);
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    (0..=fits).for_each(|number| {
                        // The last item waits.
                        assert_eq!(sender.put(number, bytes), Some(()));
                    })
                });
                while receiver.0.lock().items.len() < fits {
                    std::thread::yield_now();
                }
                std::thread::sleep(SOON);
                assert_eq!(receiver.0.lock().items.len(), fits);
                for number in 0..=fits {
                    assert_eq!(receiver.take(LATE), Taken::Item(number));
                }
                assert_eq!(receiver.take(LATE), Taken::End);
            });
        }
    }

    #[test]
    fn what_nobody_takes_is_forgotten_at_once() {
        let (sender, receiver) = fifo(1000, MIN_ITEMS);
        let item = Arc::new(());
        assert_eq!(sender.put(item.clone(), 1), Some(()));
        drop(receiver);
        assert_eq!(Arc::strong_count(&item), 1);
        assert_eq!(sender.put(item, 1), None);
    }

    #[test]
    fn who_waits_for_room_learns_that_nobody_takes_it() {
        let (sender, receiver) = fifo(0, MIN_ITEMS);
        std::thread::scope(|scope| {
            let putting = scope.spawn(move || {
                for number in 0..MIN_ITEMS {
                    assert_eq!(sender.put(number, 1), Some(()));
                }
                sender.put(MIN_ITEMS, 1)
            });
            while receiver.0.lock().items.len() < MIN_ITEMS {
                std::thread::yield_now();
            }
            drop(receiver);
            assert!(matches!(putting.join(), Ok(None)));
        });
    }
}
