//! `detect`.

use std::path::PathBuf;

use pyo3::prelude::*;
use seglake::format::{self, Options};

use crate::error::raise;
use crate::interrupt::signals;
use crate::{key, source};

/// What format a file seems to be of, and how sure that is.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Detection(format::Detection);

#[pymethods]
impl Detection {
    /// The format's name; None where it cannot be told.
    #[getter]
    fn format(&self) -> Option<&'static str> {
        self.0.format.map(|format| format.name)
    }

    /// "certain" where a checksum proves it, "likely", or "unknown".
    #[getter]
    fn confidence(&self) -> &'static str {
        match self.0.format {
            Some(_) if self.0.certain => "certain",
            Some(_) => "likely",
            None => "unknown",
        }
    }

    /// Why, for a person.
    #[getter]
    fn reason(&self) -> &str {
        &self.0.reason
    }

    fn __repr__(&self) -> String {
        format!(
            "Detection(format={:?}, confidence={:?}, reason={:?})",
            self.format(),
            self.confidence(),
            self.reason()
        )
    }
}

/// Tells a file's format by its content, and by its extension where the content does not tell.
///
/// Raises OSError where the file cannot be read.
#[pyfunction]
#[pyo3(signature = (source, *, key=None, keys=None, key_file=None))]
pub(crate) fn detect(
    source: &Bound<'_, PyAny>,
    key: Option<&[u8]>,
    keys: Option<Vec<Vec<u8>>>,
    key_file: Option<PathBuf>,
) -> PyResult<Detection> {
    let py = source.py();
    let (keys, _) = key::keys(py, key, keys, key_file.as_deref())?;
    let (source, _) = source::source(source, None)?;
    let options = Options {
        keys,
        interrupt: Some(signals()),
        ..Options::default()
    };
    py.detach(|| format::detect(&*source, &options))
        .map(Detection)
        .map_err(|error| raise(py, error))
}
