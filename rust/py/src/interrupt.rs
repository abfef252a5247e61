//! Ctrl-C during long work: signal handlers run now and then, and what they raise ends the work.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use seglake::format::Interrupt;

thread_local! {
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Often enough for a person, seldom enough not to wait for the GIL all the time.
const INTERVAL: Duration = Duration::from_millis(50);

/// An interrupt that runs Python's signal handlers. What they raise is kept for [`take`].
pub(crate) fn signals() -> Interrupt {
    let looked = Mutex::new(Instant::now());
    Interrupt::new(move || {
        let mut looked = looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.elapsed() < INTERVAL {
            return false;
        }
        *looked = Instant::now();
        drop(looked);
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
