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

    /// Writes what it has, as [`end`](Self::end) would; more may be written to it afterwards. An error where nothing of it would be kept.
    fn keep(&self, py: Python<'_>) -> Option<PyResult<()>>;
}

static OPEN: Exclusive<Vec<Weak<dyn Unclosed>>> = Exclusive::new(Vec::new());
static LOST: AtomicBool = AtomicBool::new(false);

/// Remembers something until it is freed, and that there is something to do at the end of this process.
pub(crate) fn opened<T: Unclosed + 'static>(py: Python<'_>, new: T) -> PyResult<Arc<T>> {
    py.import("seglake._unclosed")?.call_method0("opened")?;
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
            if let Err(error) = warn(py, &py.get_type::<PyResourceWarning>(), name) {
                error.write_unraisable(py, None);
            }
            tell(py, unclosed, ended);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}

/// Tells of records that are lost.
fn tell(py: Python<'_>, unclosed: &dyn Unclosed, kept: PyResult<()>) {
    if let Err(error) = kept {
        LOST.store(true, Ordering::Relaxed);
        let name = unclosed.name();
        let lost = format!("unclosed {name}: not all that was written to it is kept");
        error.write_unraisable(py, Some(PyString::new(py, &lost).as_any()));
    }
}

/// Has the writers that nobody closed write what they have: called when the process is about to end. They stay open, as what else is
/// called then may write to them. Returns whether a writer that nobody closed has lost records, now or before.
///
/// >>> from seglake._native import keep_unclosed
/// >>> keep_unclosed()
/// False
#[pyfunction]
pub(crate) fn keep_unclosed(py: Python<'_>) -> PyResult<bool> {
    let open = OPEN.hold_attached(py)?.clone();
    for each in open.iter().filter_map(Weak::upgrade) {
        if let Some(kept) = each.keep(py) {
            tell(py, &*each, kept);
        }
    }
    Ok(LOST.load(Ordering::Relaxed))
}
