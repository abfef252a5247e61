//! Where new files go.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use seglake::format::IfExists;

use crate::error::raise;
use crate::remote::is_uri;

/// A path on this machine, to write to. Raises ValueError for a URI, of which a path would make a folder or a file of that name.
pub(crate) struct Destination(pub(crate) PathBuf);

impl<'py> FromPyObject<'_, 'py> for Destination {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let path: PathBuf = object.extract()?;
        if is_uri(&path.to_string_lossy()) {
            return Err(PyValueError::new_err(format!(
                "{}: only files on this machine are written: name a path, then copy the file there",
                seglake::text::path(&path)
            )));
        }
        Ok(Self(path))
    }
}

/// `if_exists=`: what becomes of an existing file.
pub(crate) struct Existing(pub(crate) IfExists);

/// The default of `if_exists`.
pub(crate) const ERROR: Existing = Existing(IfExists::Error);

impl<'py> FromPyObject<'_, 'py> for Existing {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let if_exists = object.extract::<&str>()?.parse();
        if_exists
            .map(Self)
            .map_err(|error| raise(object.py(), error))
    }
}

/// The sidecar that is written: the one beside its file, or a path.
pub(crate) struct SidecarPath(pub(crate) Option<PathBuf>);

/// The default of `sidecar`.
pub(crate) const BESIDE: SidecarPath = SidecarPath(None);

impl<'py> FromPyObject<'_, 'py> for SidecarPath {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_beside = object.cast::<PyString>().is_ok_and(|text| *text == "auto");
        let path = (!is_beside).then(|| object.extract::<Destination>());
        Ok(Self(path.transpose()?.map(|path| path.0)))
    }
}

impl AsRef<Path> for Destination {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}
