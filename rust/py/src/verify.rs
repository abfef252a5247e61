//! `verify`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use seglake::format::{Options, by_name};
use seglake::{Error, verbs};

use crate::error::raise;
use crate::interrupt::{keep, signals};
use crate::report::Report;
use crate::{key, source};

/// How often progress is told.
const INTERVAL: Duration = Duration::from_millis(100);

/// Reads a file to its end and checks every record; damage is in the report, not raised.
///
/// `progress(done, total)` is called now and then, and at the end, with bytes; what it raises ends the verifying.
///
/// Raises FormatError where the format cannot be told, OSError where the file cannot be read.
#[pyfunction]
#[pyo3(signature = (source, *, format=None, key=None, keys=None, key_file=None, mmap=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn verify(
    source: &Bound<'_, PyAny>,
    format: Option<&str>,
    key: Option<&[u8]>,
    keys: Option<Vec<Vec<u8>>>,
    key_file: Option<PathBuf>,
    mmap: Option<bool>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Report> {
    let py = source.py();
    let (keys, _) = key::keys(py, key, keys, key_file.as_deref())?;
    let format = format
        .map(by_name)
        .transpose()
        .map_err(|error| raise(py, error))?;
    let (source, _) = source::source(source, mmap)?;
    let options = Options {
        format,
        keys,
        interrupt: Some(signals()),
        ..Options::default()
    };
    let (total, mut told) = (source.len(), Instant::now());
    let tell = |done: u64| -> Result<(), Error> {
        let Some(progress) = progress
            .as_ref()
            .filter(|_| done >= total || told.elapsed() >= INTERVAL)
        else {
            return Ok(());
        };
        told = Instant::now();
        Python::attach(|py| progress.call1(py, (done, total)))
            .map(drop)
            .map_err(|error| {
                keep(error);
                Error::Interrupted
            })
    };
    py.detach(|| verbs::verify(source, &options, tell))
        .map(Report)
        .map_err(|error| raise(py, error))
}
