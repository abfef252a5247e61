//! `sync_file`, `sync_folder`, `rename` and `rename_new`: what makes files durable that Python wrote.

use std::io;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use seglake::durable;

use crate::error::of_system;

fn done(py: Python<'_>, path: &Path, work: impl FnOnce() -> io::Result<()> + Send) -> PyResult<()> {
    py.detach(work).map_err(|error| of_system(py, path, &error))
}

/// Makes the content of a closed or flushed file survive a loss of power. Raises OSError.
///
/// >>> from seglake._native import sync_file
/// >>> sync_file("orders.active")
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn sync_file(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    done(py, &path, || durable::sync_file(&path))
}

/// Makes the names in a folder survive a loss of power. Raises OSError. Windows syncs no folders, so there it does nothing.
///
/// >>> from seglake._native import sync_folder
/// >>> sync_folder(".")
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn sync_folder(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    done(py, &path, || durable::sync_folder(&path))
}

/// Gives a file another name, and replaces the file that has it. The name survives a loss of power once its folder is synced.
/// Raises OSError.
///
/// >>> from seglake._native import rename
/// >>> rename("orders.active", "orders-1.active")
#[pyfunction]
#[pyo3(signature = (path, to, /))]
pub(crate) fn rename(py: Python<'_>, path: PathBuf, to: PathBuf) -> PyResult<()> {
    done(py, &path, || durable::rename(&path, &to))
}

/// Gives a file another name, as `rename` does, but replaces none. Raises FileExistsError where the name is taken, and OSError,
/// also where the file system can only replace.
///
/// >>> from seglake._native import rename_new
/// >>> rename_new("orders.active", "orders-1.active")
#[pyfunction]
#[pyo3(signature = (path, to, /))]
pub(crate) fn rename_new(py: Python<'_>, path: PathBuf, to: PathBuf) -> PyResult<()> {
    done(py, &path, || durable::rename_new(&path, &to))
}
