//! The ranges of a file or of a sidecar, for Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use seglake::ledger::Span;

/// A `seglake.Span`.
pub(crate) fn span<'py>(py: Python<'py>, own: &Span) -> PyResult<Bound<'py, PyAny>> {
    let cause = own.cause.map(|cause| cause.as_str());
    span_of(py, (own.start, own.end), own.kind.as_str(), cause)
}

/// A `seglake.Span` of any kind.
pub(crate) fn span_of<'py>(
    py: Python<'py>,
    (start, end): (u64, u64),
    kind: &str,
    cause: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "seglake._types", "Span")?;
    class.call1((start, end, kind, cause))
}
