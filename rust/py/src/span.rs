//! The ranges of a file or of a sidecar, for Python.

use pyo3::prelude::*;
use seglake::ledger::Span;

use crate::typed::typed;

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
    typed(py, "Span", (start, end, kind, cause))
}
