//! Opening a reader again, elsewhere.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::key::KeyArgument;

/// What `pickle` needs to open a reader again.
pub(crate) struct Reopening {
    pub(crate) path: Option<PathBuf>,
    /// Whether a key was given as bytes.
    has_key: bool,
    /// The function that opens it, of the extension.
    function: &'static str,
    /// The keyword arguments, without such a key.
    keywords: Py<PyDict>,
}

impl Reopening {
    pub(crate) fn new(
        function: &'static str,
        keywords: Bound<'_, PyDict>,
        key: Option<&KeyArgument>,
    ) -> Self {
        Self {
            path: None,
            has_key: key.is_some_and(KeyArgument::has_bytes),
            function,
            keywords: keywords.unbind(),
        }
    }

    /// What `__reduce__` gives: the function with the same arguments, and the path.
    pub(crate) fn reduce<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let path = self.path.as_ref().ok_or_else(|| {
            PyTypeError::new_err("only a reader of a path can be pickled: it is opened again by it")
        })?;
        if self.has_key {
            return Err(PyTypeError::new_err(
                "a reader whose key was given as bytes cannot be pickled: give the path of a file that holds it, or set SEGLAKE_KEY",
            ));
        }
        let open = py.import("seglake._native")?.getattr(self.function)?;
        let partial = py
            .import("functools")?
            .getattr("partial")?
            .call((open,), Some(self.keywords.bind(py)))?;
        // As text: a `pathlib.Path` of a URI has a slash less.
        Ok((partial, PyTuple::new(py, [path.as_os_str()])?))
    }
}
