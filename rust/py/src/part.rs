//! `Part`: a part of a file that can be read by itself.

use pyo3::prelude::*;
use seglake::format;

use crate::error::raise;
use crate::json::{Reduced, hash_of, reduced};

/// A part of a file, from `Reader.split`: `Reader.part` reads it by itself. It holds no bytes of records and no key, and
/// pickles as the JSON that `to_json` gives.
///
/// >>> orders = seglake.open("orders.sealed")
/// >>> [part] = orders.split()
/// >>> orders.part(part).count_rows()
/// 3
#[pyclass(frozen, eq, module = "seglake.incremental")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part(pub(crate) format::Part);

#[pymethods]
impl Part {
    /// A part from what `to_json` gave. Raises ValueError where it is none.
    ///
    /// >>> [part] = seglake.open("orders.sealed").split()
    /// >>> seglake.incremental.Part.from_json(part.to_json()) == part
    /// True
    #[staticmethod]
    fn from_json(py: Python<'_>, json: &str) -> PyResult<Self> {
        format::Part::from_json(json)
            .map(Self)
            .map_err(|error| raise(py, error))
    }

    /// The part as JSON, which is opaque: it may look different in another version.
    ///
    /// >>> [part] = seglake.open("orders.sealed").split()
    /// >>> type(part.to_json())
    /// <class 'str'>
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// About how many bytes of the file are read for it.
    ///
    /// >>> [part] = seglake.open("orders.sealed").split()
    /// >>> part.nbytes == seglake.open("orders.sealed").nbytes
    /// True
    #[getter]
    const fn nbytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Whether it is the whole file.
    ///
    /// >>> [part] = seglake.open("orders.sealed").split()
    /// >>> part.is_whole
    /// True
    #[getter]
    const fn is_whole(&self) -> bool {
        self.0.is_whole()
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0.to_json())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, "from_json", slf.get().0.to_json())
    }

    fn __repr__(&self) -> String {
        format!("Part({})", self.0.to_json())
    }
}
