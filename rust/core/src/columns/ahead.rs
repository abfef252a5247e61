//! Reads ahead: a thread makes the next batch while the caller uses the last one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::parallel::{Receiver, Sender, Taken, fifo};
use super::selection::Selection;
use super::walk_batches::{Batch, Limits, WalkBatches};
use crate::engine::Start;
use crate::error::{Error, Result};
use crate::format::resolve;
use crate::source::Source;
use crate::sync::Builder;
use crate::verbs::Report;
use crate::walk::{Interrupt, Options};

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

enum State {
    /// Nothing was asked for yet.
    Opened(Box<WalkBatches>),
    Running(Receiver<Item>),
    Ended,
}

/// The batches of one walk, made in a thread of their own, at most two ahead of the caller. Dropping it ends the thread at its next
/// poll for an interrupt.
pub(super) struct Ahead {
    state: State,
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
    pub(super) fn starting(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
        start: Start<'_>,
    ) -> Result<(Self, WalkBatches)> {
        let stopped = Arc::new(AtomicBool::new(false));
        let own = options.clone().interrupt(Interrupt::once(&stopped));
        let batches = WalkBatches::starting(source.clone(), &own, selection, limits, start)?;
        let emptied = batches.emptied(resolve(&*source, options)?.empty_walk(&*source));
        let own = Self {
            state: State::Opened(Box::new(batches)),
            stopped,
            options: options.clone(),
            source,
            process: std::process::id(),
        };
        Ok((own, emptied))
    }

    /// The next batch; `None` at the end. `report` is updated.
    pub(super) fn next_batch(&mut self, report: &mut Report) -> Result<Option<Batch>> {
        let next = self.receive(report);
        if !matches!(next, Ok(Some(_))) {
            self.stop();
        }
        next
    }

    fn receive(&mut self, report: &mut Report) -> Result<Option<Batch>> {
        if let State::Opened(_) = self.state {
            self.begin()?;
        }
        let State::Running(found) = &self.state else {
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
        let State::Opened(batches) = std::mem::replace(&mut self.state, State::Ended) else {
            return Ok(());
        };
        let (sender, receiver) = fifo(0, WAITING);
        self.process = std::process::id();
        Builder::new()
            .name("seglake-ahead".to_owned())
            .spawn(move || make(*batches, &sender))
            .map_err(|error| Error::io(None, "cannot start a thread to read with", error))?;
        self.state = State::Running(receiver);
        Ok(())
    }

    fn stop(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Ended);
        if self.process == std::process::id() {
            // Not joined: the thread may need a lock that the caller has.
            self.stopped.store(true, Ordering::Release);
        } else {
            // Leaked in a fork: a thread that does not exist here may have locked it forever.
            std::mem::forget(state);
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
