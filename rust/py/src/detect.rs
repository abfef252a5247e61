//! `detect`.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use seglake::format;

use crate::error::raise;
use crate::json::hash_of;
use crate::key::KeyArgument;
use crate::options::Named;
use crate::read_options::ReadArguments;
use crate::remote::within;
use crate::source::given_in;

/// What format a file seems to be of, and how sure that is.
///
/// >>> seglake.detect("orders.sealed").confidence
/// 'certain'
#[pyclass(frozen, module = "seglake.types")]
pub(crate) struct Detection(format::Detection);

impl Detection {
    /// What it is made of, as Python has it.
    fn state(&self) -> (Option<&'static str>, bool, &str) {
        (self.format(), self.0.certain, self.reason())
    }
}

#[pymethods]
impl Detection {
    /// The format's name; None where it cannot be told.
    ///
    /// >>> seglake.detect("orders.sealed").format
    /// 'sealed'
    #[getter]
    fn format(&self) -> Option<&'static str> {
        self.0.format.map(|format| format.name)
    }

    /// "certain" where a checksum proves it, "likely", or "unknown".
    ///
    /// >>> seglake.detect("orders.sealed").confidence
    /// 'certain'
    #[getter]
    fn confidence(&self) -> &'static str {
        match self.0.format {
            Some(_) if self.0.certain => "certain",
            Some(_) => "likely",
            None => "unknown",
        }
    }

    /// Why, for a person.
    ///
    /// >>> type(seglake.detect("orders.sealed").reason)
    /// <class 'str'>
    #[getter]
    fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The detection of what `__reduce__` gave.
    #[staticmethod]
    #[pyo3(name = "_restored", signature = (format, certain, reason))]
    fn restored(
        py: Python<'_>,
        format: Option<&str>,
        certain: bool,
        reason: String,
    ) -> PyResult<Self> {
        let format = format.map(format::by_name).transpose();
        let format = format.map_err(|error| raise(py, error))?;
        Ok(Self(format::Detection::new(format, certain, reason)))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restored = slf.get_type().getattr("_restored")?;
        Ok((restored, slf.get().state().into_pyobject(slf.py())?))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.state() == other.state()
    }

    fn __hash__(&self) -> u64 {
        hash_of(self.reason())
    }

    fn __repr__(&self) -> String {
        let format = match self.format() {
            Some(name) => format!("{name:?}"),
            None => "None".to_owned(),
        };
        format!(
            "Detection(format={format}, confidence={:?}, reason={:?})",
            self.confidence(),
            self.reason()
        )
    }
}

/// Tells a file's format by its content, and by its extension where the content does not tell. Formats without a magic number
/// (active, oplog, tfrecord) are told by their first records; an oplog's are decoded as `dialect` among the `options` says, which are as in `open`.
///
/// Raises OSError where the file cannot be read.
///
/// >>> seglake.detect("orders.sealed").format
/// 'sealed'
#[pyfunction]
#[pyo3(signature = (source, *, key=None, options=None, filesystem=None, storage_options=None))]
pub(crate) fn detect(
    source: &Bound<'_, PyAny>,
    key: Option<KeyArgument>,
    options: Option<Named>,
    filesystem: Option<Py<PyAny>>,
    storage_options: Option<Py<PyAny>>,
) -> PyResult<Detection> {
    let py = source.py();
    let within = within(source, &filesystem, &storage_options)?;
    let arguments = ReadArguments {
        key,
        options: options.as_ref(),
        general: true,
        ..ReadArguments::default()
    };
    let (options, ..) = arguments.options(py)?;
    let source = given_in(source, within.as_ref())?.open(py, false)?;
    py.detach(|| format::detect(&*source, &options))
        .map(Detection)
        .map_err(|error| raise(py, error))
}
