//! Integers that callers give, and the error for what is none. One that is out of range is a ValueError that names the argument, of
//! whatever size it is.

use std::ops::RangeInclusive;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use seglake::verbs::DiagnoseOptions;

/// An integer in a range that `T` holds.
pub(crate) fn number<T: TryFrom<i128>>(
    name: &str,
    range: RangeInclusive<u64>,
    value: &Bound<'_, PyAny>,
) -> PyResult<T> {
    let beyond = || {
        let (least, most) = range.clone().into_inner();
        let bound = match value.lt(least) {
            Ok(true) => format!("at least {least}"),
            _ => format!("at most {most}"),
        };
        PyValueError::new_err(format!("{name} is {value}: it is {bound}"))
    };
    let given = match value.extract::<i128>() {
        Ok(given) => given,
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => return Err(beyond()),
        Err(_) => return Err(wrong_type(name, "an int", value)),
    };
    let is_within = u64::try_from(given).is_ok_and(|given| range.contains(&given));
    let number = T::try_from(given).ok().filter(|_| is_within);
    number.ok_or_else(beyond)
}

/// A number of bytes or of records, of at least `least`.
pub(crate) fn quantity(name: &str, least: u64, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    number(name, least..=u64::MAX, value)
}

fn unless_none<T>(
    value: &Bound<'_, PyAny>,
    number: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    (!value.is_none()).then(|| number(value)).transpose()
}

/// `batch_size=`.
pub(crate) fn batch_size(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    number("batch_size", 1..=usize::MAX as u64, value)
}

/// `threads=`.
pub(crate) fn threads(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    unless_none(value, |value| {
        number("threads", 1..=usize::MAX as u64, value)
    })
}

/// `size=`, in bytes.
pub(crate) fn size(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    unless_none(value, |value| quantity("size", 0, value))
}

/// `max_bytes=`.
pub(crate) fn max_bytes(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    quantity("max_bytes", 1, value)
}

/// `rows=`.
pub(crate) fn rows(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    number("rows", 0..=usize::MAX as u64, value)
}

/// `partition=`.
pub(crate) fn partition(value: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    unless_none(value, |value| {
        number("partition", 0..=u32::MAX.into(), value)
    })
}

/// `position=`, in bytes.
pub(crate) fn position(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    quantity("position", 0, value)
}

/// `start=`, in bytes.
pub(crate) fn start(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    quantity("start", 0, value)
}

/// `end=`, in bytes.
pub(crate) fn end(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    quantity("end", 0, value)
}

/// `seq=`.
pub(crate) fn seq(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    unless_none(value, |value| quantity("seq", 0, value))
}

/// How many damaged ranges are explained; True is as many as by default.
pub(crate) type Explained = usize;

pub(crate) const EXPLAINED: Option<Explained> = Some(DiagnoseOptions::RANGES);
const _: () = assert!(
    DiagnoseOptions::RANGES == 100,
    "the default that Python shows"
);

/// `explain=`.
pub(crate) fn explain(value: &Bound<'_, PyAny>) -> PyResult<Option<Explained>> {
    match value.cast::<PyBool>() {
        Ok(whether) if whether.is_true() => Ok(EXPLAINED),
        Ok(_) => Ok(None),
        Err(_) => unless_none(value, |value| {
            number("explain", 0..=usize::MAX as u64, value)
        }),
    }
}

/// The error for an argument of another type.
pub(crate) fn wrong_type(name: &str, expected: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let given = object.get_type().qualname();
    let given = given.map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} must be {expected}, not {given}"))
}
