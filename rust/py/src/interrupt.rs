//! Ctrl-C during long work: signal handlers run now and then, and what they raise ends the work.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pyo3::prelude::*;
use seglake::format::Interrupt;

thread_local! {
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Often enough for a person, seldom enough not to wait for the GIL all the time.
const INTERVAL_MS: u64 = 50;

/// An interrupt that runs Python's signal handlers. What they raise is kept for [`take`].
pub(crate) fn signals() -> Interrupt {
    // No lock: all passes of a reader have the same one, and a fork would leave it locked for ever.
    let (began, next) = (Instant::now(), AtomicU64::new(INTERVAL_MS));
    Interrupt::new(move || {
        let Ok(now) = u64::try_from(began.elapsed().as_millis()) else {
            return false;
        };
        if now < next.load(Ordering::Relaxed) {
            return false;
        }
        next.store(now.saturating_add(INTERVAL_MS), Ordering::Relaxed);
        match Python::try_attach(|py| py.check_signals()) {
            Some(Ok(())) => false,
            Some(Err(error)) => {
                keep(error);
                true
            }
            None => false, // the interpreter is ending, and runs finalisers: nobody is there to stop them
        }
    })
}

/// Keeps an exception that ends the work of this thread.
pub(crate) fn keep(error: PyErr) {
    RAISED.with_borrow_mut(|raised| *raised = Some(error));
}

/// The exception that ended the work of this thread.
pub(crate) fn take() -> Option<PyErr> {
    RAISED.with_borrow_mut(Option::take)
}
