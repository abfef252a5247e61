//! What classes have in common whose objects are JSON: they hash and pickle by it.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The hash of an object whose JSON this is.
pub(crate) fn hash_of(json: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    hasher.finish()
}

/// What `__reduce__` returns: a function and its arguments.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// What `__reduce__` of an object returns whose JSON this is, and whose class has a function of this name that takes it.
pub(crate) fn reduced<'py>(
    object: &Bound<'py, PyAny>,
    from_json: &str,
    json: String,
) -> PyResult<Reduced<'py>> {
    let from_json = object.get_type().getattr(from_json)?;
    Ok((from_json, PyTuple::new(object.py(), [json])?))
}

/// The JSON of plain values, to pickle and compare them.
pub(crate) fn written<T: Serialize + ?Sized>(values: &T) -> PyResult<String> {
    serde_json::to_string(values).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The values of what [`written`] gave. It may come from anywhere: it is checked.
pub(crate) fn restored<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| {
        PyValueError::new_err(format!("these are not the values of a result: {error}"))
    })
}
