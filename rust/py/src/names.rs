//! Lists of names that callers give. Text is refused: it is a sequence of names, too, of one letter each.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::numbers::wrong_type;

/// `columns=`.
pub(crate) fn columns(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<String>>> {
    (!value.is_none())
        .then(|| names("columns", value))
        .transpose()
}

/// `drop=`.
pub(crate) fn drop(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    names("drop", value)
}

fn names(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    value.extract().map_err(|_| match value.cast::<PyString>() {
        Ok(name) => {
            let list = format!("a list of names, such as [{:?}]", name.to_string_lossy());
            wrong_type(argument, &list, value)
        }
        Err(_) => wrong_type(argument, "a list of names", value),
    })
}
