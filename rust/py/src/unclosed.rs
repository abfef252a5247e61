//! Writers that nobody closed: what becomes of them when they are freed, or before the process ends. Python's modules are gone when
//! the last objects are freed, so that nothing could be said by then of what is not written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::warn;
use crate::exclusive::Exclusive;

/// What is to be closed by whoever opened it.
pub(crate) trait Unclosed: Send + Sync {
    /// What it is, with its path.
    fn name(&self) -> String;

    /// Ends it; None where somebody did, or where it is another process': a fork has no part in it.
    fn end(&self, py: Python<'_>) -> Option<PyResult<()>>;
}

static OPEN: Exclusive<Vec<Weak<dyn Unclosed>>> = Exclusive::new(Vec::new());
static LOST: AtomicBool = AtomicBool::new(false);

/// Remembers something until it is freed.
pub(crate) fn opened<T: Unclosed + 'static>(py: Python<'_>, new: T) -> PyResult<Arc<T>> {
    let new = Arc::new(new);
    let mut open = OPEN.hold_attached(py)?;
    if open.len() == open.capacity() {
        open.retain(|each| each.strong_count() > 0);
    }
    let weak: Weak<T> = Arc::downgrade(&new);
    open.push(weak);
    Ok(new)
}

/// Ends what nobody closed, and warns of it, as Python's own files do. What fails then cannot be raised.
pub(crate) fn end(unclosed: &dyn Unclosed) {
    Python::try_attach(|py| {
        // What is being raised when this is freed goes on being raised.
        let raised = PyErr::take(py);
        if let Some(ended) = unclosed.end(py) {
            let name = format!("unclosed {}", unclosed.name());
            let lost = format!("{name}: not all that was written to it is kept");
            if let Err(error) = warn(py, &py.get_type::<PyResourceWarning>(), name) {
                error.write_unraisable(py, None);
            }
            if let Err(error) = ended {
                LOST.store(true, Ordering::Relaxed);
                error.write_unraisable(py, Some(PyString::new(py, &lost).as_any()));
            }
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}

/// Ends the writers that nobody closed, with warnings: called when the process is about to end. Returns whether a writer that nobody
/// closed has lost records, now or before.
///
/// >>> from seglake._native import end_unclosed
/// >>> end_unclosed()
/// False
#[pyfunction]
pub(crate) fn end_unclosed(py: Python<'_>) -> PyResult<bool> {
    let open = std::mem::take(&mut *OPEN.hold_attached(py)?);
    for each in open.iter().filter_map(Weak::upgrade) {
        end(&*each);
    }
    Ok(LOST.load(Ordering::Relaxed))
}
