//! Times, UUIDs and record fields between Rust and Python.

use std::sync::Mutex;

use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDateTime, PyDelta, PyInt, PyTzInfo};
use seglake::format::Scalar;
use seglake::text::escape;
use seglake::uuid6::Generator;
use uuid::Uuid;

use crate::exclusive::{forks, lock};
use crate::numbers::wrong_type;

/// 1970-01-01 00:00 UTC, as a `datetime`.
fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyDateTime>> {
    static EPOCH: PyOnceLock<Py<PyDateTime>> = PyOnceLock::new();
    let epoch = EPOCH.get_or_try_init(py, || {
        let utc = PyTzInfo::utc(py)?;
        PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&utc)).map(Bound::unbind)
    })?;
    Ok(epoch.bind(py))
}

fn microsecond(py: Python<'_>) -> PyResult<&Bound<'_, PyDelta>> {
    static MICROSECOND: PyOnceLock<Py<PyDelta>> = PyOnceLock::new();
    let microsecond =
        MICROSECOND.get_or_try_init(py, || PyDelta::new(py, 0, 0, 1, false).map(Bound::unbind))?;
    Ok(microsecond.bind(py))
}

/// A value that a record is found by: a `uuid.UUID`, an int, or text.
pub(crate) fn scalar_to_python<'py>(
    py: Python<'py>,
    value: &Scalar,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Scalar::Uuid(uuid) => Uuid::from_bytes(*uuid).into_pyobject(py),
        Scalar::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        Scalar::Text(bytes) => Ok(escape(bytes).into_pyobject(py)?.into_any()),
        other => Err(PyNotImplementedError::new_err(format!(
            "{other:?} has no form in Python: a bug in seglake"
        ))),
    }
}

/// An aware `datetime` of microseconds since 1970; `None` where the calendar (years 1 to 9999) does not hold it.
pub(crate) fn time_to_python(py: Python<'_>, micros: i64) -> PyResult<Option<Bound<'_, PyAny>>> {
    let calculate = || epoch(py)?.add(microsecond(py)?.mul(micros)?);
    match calculate() {
        Ok(time) => Ok(Some(time)),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Microseconds since 1970 of an aware `datetime`.
pub(crate) fn time_from_python(object: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    let py = object.py();
    if object
        .getattr(intern!(py, "tzinfo"))
        .is_ok_and(|zone| zone.is_none())
    {
        return Err(PyValueError::new_err(format!(
            "{name} has no time zone: give an aware datetime, for example datetime(..., tzinfo=timezone.utc)"
        )));
    }
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        return object.extract().map_err(|_| {
            PyValueError::new_err(format!(
                "{name} is out of range: {object} microseconds since 1970"
            ))
        });
    }
    if !object.hasattr("tzinfo")? {
        let expected = "an aware datetime or an int of microseconds since 1970";
        return Err(wrong_type(name, expected, object));
    }
    object
        .sub(epoch(py)?)?
        .floor_div(microsecond(py)?)?
        .extract()
}

/// A UUID of version 6, time-ordered (RFC 9562).
///
/// Without `timestamp`, of the present time: each is greater than the one before, also within 100 ns and when the clock steps
/// back. With `timestamp`, an aware datetime, of that time to the microsecond: repeated calls with one time ascend.
///
/// Raises ValueError for a naive datetime or a time before 1582-10-15 or after 5236-03-31.
///
/// >>> from datetime import UTC, datetime
/// >>> seglake.uuid6(datetime(2024, 6, 15, 5, tzinfo=UTC)).version
/// 6
#[pyfunction]
#[pyo3(signature = (timestamp=None))]
pub(crate) fn uuid6(timestamp: Option<&Bound<'_, PyAny>>) -> PyResult<Uuid> {
    let micros = timestamp
        .map(|time| time_from_python(time, "timestamp"))
        .transpose()?;
    new_uuid(micros)
}

/// A UUID of this time, in microseconds since 1970, or of now.
pub(crate) fn new_uuid(micros: Option<i64>) -> PyResult<Uuid> {
    static GENERATOR: Mutex<Option<(u64, Generator)>> = Mutex::new(None);
    let mut kept = lock(&GENERATOR);
    // Another one after a fork: two processes must not give out the same.
    if kept.as_ref().is_some_and(|(own, _)| *own != forks()) {
        *kept = None;
    }
    let (_, generator) = kept.get_or_insert_with(|| (forks(), Generator::default()));
    match micros {
        None => Ok(generator.now()),
        Some(micros) => generator.at(micros).ok_or_else(|| PyValueError::new_err("a UUID of version 6 cannot hold that time, or all of that microsecond are given out")),
    }
}
