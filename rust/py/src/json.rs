//! What classes have in common whose objects are JSON: they hash and pickle by it.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The hash of an object whose JSON this is.
pub(crate) fn hash_of(json: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    hasher.finish()
}

/// What `__reduce__` of an object returns whose JSON this is, and whose class has `from_json`.
pub(crate) fn reduced<'py>(
    object: &Bound<'py, PyAny>,
    json: String,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let from_json = object.get_type().getattr("from_json")?;
    Ok((from_json, PyTuple::new(object.py(), [json])?))
}
