//! The UUIDs of many records, in little memory: `seglake.types.Uuids`.

use arrow_array::FixedSizeBinaryArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use seglake::columns::{Selection, UuidType};
use seglake::format::{Options, active};
use uuid::Uuid;

use crate::arrow::{column_capsules, failed};
use crate::error::raise;

/// UUIDs in an order, as a `seglake.types.Uuids`.
pub(crate) fn uuids<'py>(py: Python<'py>, uuids: &[Uuid]) -> PyResult<Bound<'py, PyAny>> {
    let bytes: Vec<u8> = uuids.iter().flat_map(|uuid| *uuid.as_bytes()).collect();
    let class = py.import("seglake._results")?.getattr("Uuids")?;
    class.call_method1("from_bytes", (PyBytes::new(py, &bytes),))
}

/// UUIDs of 16 bytes each, one after the other, as an array of `arrow.uuid`: two PyCapsules.
///
/// >>> from seglake._native import uuid_array
/// >>> [type(capsule).__name__ for capsule in uuid_array(bytes(32))]
/// ['PyCapsule', 'PyCapsule']
#[pyfunction]
#[pyo3(signature = (data, /))]
pub(crate) fn uuid_array<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
    let names = ["uuid".to_owned()];
    let (options, uuids) = (Options::default(), UuidType::Extension);
    let selection = Selection::new(&active::FORMAT, &options, Some(&names), uuids);
    let selection = selection.map_err(|error| raise(py, error))?;
    let array = FixedSizeBinaryArray::try_new(16, data.to_vec().into(), None).map_err(failed)?;
    column_capsules(py, &array, selection.schema().field(0))
}
