//! `Position`: up to where a file was read.

use pyo3::prelude::*;
use seglake::format;
use uuid::Uuid;

use crate::error::raise;
use crate::json::{Reduced, hash_of, reduced};

/// Up to where a file was read, and what reading on needs: `resume` takes it, and `Reader.position` gives it. It holds no key
/// and no value of a record, and pickles as the JSON that `to_json` gives.
///
/// >>> orders = seglake.incremental.resume("orders.active", None)
/// >>> orders.count_rows(), orders.position.byte_offset
/// (3, 159)
#[pyclass(frozen, eq, module = "seglake.incremental")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Position(pub(crate) format::Position);

#[pymethods]
impl Position {
    /// A position from what `to_json` gave, which may come from anywhere: it is checked. Raises ValueError where it is none.
    ///
    /// >>> orders = seglake.incremental.resume("orders.active", None)
    /// >>> orders.count_rows()
    /// 3
    /// >>> seglake.incremental.Position.from_json(orders.position.to_json()) == orders.position
    /// True
    #[staticmethod]
    fn from_json(py: Python<'_>, json: &str) -> PyResult<Self> {
        let position = format::Position::from_json(json);
        position.map(Self).map_err(|error| raise(py, error))
    }

    /// The position as JSON, which is opaque but for its member `version`. It has at most 52 KiB, most often some 500 bytes.
    ///
    /// >>> orders = seglake.incremental.resume("orders.active", None)
    /// >>> orders.count_rows(), type(orders.position.to_json())
    /// (3, <class 'str'>)
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The name of the format that the file had.
    ///
    /// >>> orders = seglake.incremental.resume("orders.active", None)
    /// >>> orders.count_rows(), orders.position.format
    /// (3, 'active')
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format().name
    }

    /// What identifies the file, as `identity` gives it; None as long as it had no whole record that is sound.
    ///
    /// >>> orders = seglake.incremental.resume("orders.active", None)
    /// >>> orders.count_rows(), orders.position.identity == seglake.incremental.identity("orders.active")
    /// (3, True)
    #[getter]
    fn identity(&self) -> Option<String> {
        self.0.identity().map(ToString::to_string)
    }

    /// The offset up to which the file was read. 0 for a segment of a log that was sealed since it was listed: see `uuid`.
    ///
    /// >>> orders = seglake.incremental.resume("orders.active", None)
    /// >>> orders.count_rows(), orders.position.byte_offset
    /// (3, 159)
    #[getter]
    const fn byte_offset(&self) -> u64 {
        self.0.offset()
    }

    /// The UUID of the last sound record that was read; None if that is not known, and for formats whose records have none.
    ///
    /// >>> orders = seglake.incremental.resume("orders.active", None)
    /// >>> orders.count_rows(), orders.position.uuid == list(seglake.open("orders.active"))[-1].uuid
    /// (3, True)
    #[getter]
    fn uuid(&self) -> Option<Uuid> {
        self.0.uuid()
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0.to_json())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, "from_json", slf.get().0.to_json())
    }

    fn __repr__(&self) -> String {
        format!("Position({})", self.0.to_json())
    }
}
