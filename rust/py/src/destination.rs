//! Where new files go.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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

impl AsRef<Path> for Destination {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}
