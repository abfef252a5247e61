//! The plain types of `seglake._types`, and those of `seglake._results`.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use seglake::ledger::Span;

fn types(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static TYPES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let types = TYPES.get_or_try_init(py, || py.import("seglake._types").map(Bound::unbind))?;
    Ok(types.bind(py))
}

/// An object of a class of `seglake._types`, of its fields in their order.
pub(crate) fn typed<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    types(py)?.call_method1(class, fields)
}

/// The same of its fields by their names.
pub(crate) fn typed_by_name<'py>(
    class: &str,
    fields: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    types(fields.py())?.call_method(class, (), Some(fields))
}

/// An object of a class of `seglake._results`, of its fields in their order.
pub(crate) fn result<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Py<PyAny>> {
    let results = py.import("seglake._results")?;
    results.call_method1(class, fields).map(Bound::unbind)
}

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

/// The attributes of these names as a dict, fit for JSON.
pub(crate) fn as_plain<'py>(
    object: &Bound<'py, PyAny>,
    names: &[&str],
) -> PyResult<Bound<'py, PyAny>> {
    typed(object.py(), "as_plain", (object, names))
}
