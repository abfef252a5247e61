//! A queue between threads, bounded by bytes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{Condvar, Mutex, MutexGuard, Unpoisoned as _};

/// A FIFO that is full when it has `least` items and they have `room` bytes together.
pub(crate) fn fifo<T>(room: usize, least: usize) -> (Sender<T>, Receiver<T>) {
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
pub(crate) struct Sender<T>(Arc<Fifo<T>>);

impl<T> Sender<T> {
    /// Adds an item of about `bytes` bytes when there is room. Returns `None` if the receiving end was dropped.
    pub(crate) fn put(&self, item: T, bytes: usize) -> Option<()> {
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
pub(crate) struct Receiver<T>(Arc<Fifo<T>>);

/// The outcome of taking an item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<T> {
    Item(T),
    /// No item yet.
    Empty,
    /// No further item will come.
    End,
}

impl<T> Receiver<T> {
    /// Takes the next item. Waits for it, but at most for `wait`.
    pub(crate) fn take(&self, wait: Duration) -> Taken<T> {
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
