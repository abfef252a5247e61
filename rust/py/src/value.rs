//! Times, UUIDs and record fields between Rust and Python.

use std::sync::Mutex;

use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDateTime, PyDelta, PyDict, PyInt, PyType, PyTzInfo};
use seglake::format::Scalar;
use seglake::text::escape;
use seglake::uuid6::Generator;
use uuid::Uuid;

use crate::exclusive::{forks, lock};
use crate::numbers::wrong_type;

/// `uuid.UUID`.
pub(crate) fn uuid_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "uuid", "UUID")
}

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

/// What makes a `uuid.UUID` without its `__init__`, which is Python and takes four times as long.
struct UuidMaker {
    class: Py<PyType>,
    /// `object.__new__`.
    new: Py<PyAny>,
    /// The setters of its slots: an instance refuses to be changed, these do not.
    set_int: Py<PyAny>,
    set_is_safe: Py<PyAny>,
    /// `uuid.SafeUUID.unknown`.
    unknown: Py<PyAny>,
}

impl UuidMaker {
    /// That of this version of Python; `None` if the class has other slots.
    fn find(py: Python<'_>) -> PyResult<Option<Self>> {
        let class = uuid_class(py)?;
        let slots: Vec<String> = class.getattr("__slots__")?.extract()?;
        if slots != ["int", "is_safe", "__weakref__"] {
            return Ok(None);
        }
        let setter = |name| class.getattr(name)?.getattr("__set__");
        let new = py
            .import("builtins")?
            .getattr("object")?
            .getattr("__new__")?;
        let safe = py.import("uuid")?.getattr("SafeUUID")?;
        Ok(Some(Self {
            class: class.clone().unbind(),
            new: new.unbind(),
            set_int: setter("int")?.unbind(),
            set_is_safe: setter("is_safe")?.unbind(),
            unknown: safe.getattr("unknown")?.unbind(),
        }))
    }

    fn make<'py>(&self, py: Python<'py>, uuid: &[u8; 16]) -> PyResult<Bound<'py, PyAny>> {
        let made = self.new.bind(py).call1((&self.class,))?;
        self.set_int
            .bind(py)
            .call1((&made, u128::from_be_bytes(*uuid)))?;
        self.set_is_safe.bind(py).call1((&made, &self.unknown))?;
        Ok(made)
    }
}

/// A `uuid.UUID` of 16 bytes in network byte order.
pub(crate) fn uuid_to_python<'py>(py: Python<'py>, uuid: &[u8; 16]) -> PyResult<Bound<'py, PyAny>> {
    static MAKER: PyOnceLock<Option<UuidMaker>> = PyOnceLock::new();
    if let Some(maker) = MAKER.get_or_try_init(py, || UuidMaker::find(py))? {
        return maker.make(py, uuid);
    }
    let fields = PyDict::new(py);
    fields.set_item(intern!(py, "bytes"), PyBytes::new(py, uuid))?;
    uuid_class(py)?.call((), Some(&fields))
}

/// A list of `uuid.UUID`.
pub(crate) fn to_uuids<'py>(py: Python<'py>, uuids: &[Uuid]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let uuids = uuids.iter();
    uuids
        .map(|uuid| uuid_to_python(py, uuid.as_bytes()))
        .collect()
}

/// A value that a record is found by: a `uuid.UUID`, an int, or text.
pub(crate) fn scalar_to_python<'py>(
    py: Python<'py>,
    value: &Scalar,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Scalar::Uuid(uuid) => uuid_to_python(py, uuid),
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
pub(crate) fn uuid6<'py>(
    py: Python<'py>,
    timestamp: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let micros = timestamp
        .map(|time| time_from_python(time, "timestamp"))
        .transpose()?;
    uuid_to_python(py, new_uuid(micros)?.as_bytes())
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
