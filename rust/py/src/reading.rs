//! What reading by way of the interpreter takes, whatever is read.

use std::path::Path;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use seglake::Error;

/// Copies what came from Python, which is as long as was asked for.
pub(crate) fn copy(bytes: &Bound<'_, PyAny>, buffer: &mut [u8]) -> PyResult<()> {
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    if bytes.len() != buffer.len() {
        return Err(PyValueError::new_err(format!(
            "{} bytes came instead of {}",
            bytes.len(),
            buffer.len()
        )));
    }
    buffer.copy_from_slice(bytes);
    Ok(())
}

/// Runs Python code, unless the interpreter is ending.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    let ending = || PyRuntimeError::new_err("the interpreter is ending");
    Python::try_attach(work).ok_or_else(ending)?
}

/// The exception goes along: it becomes the cause of the one that is raised.
pub(crate) fn failed(path: Option<&Path>, action: impl Into<String>, error: PyErr) -> Error {
    Error::io(path, action, std::io::Error::other(error))
}

pub(crate) fn cannot_read(offset: u64, len: usize) -> String {
    format!("cannot read {len} bytes at offset {offset}")
}
