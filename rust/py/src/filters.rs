//! `filters=`: conditions on columns.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyList, PyString};
use seglake::format::{Column, ColumnKind, Dialect, Filter, Format, Scalar};
use seglake::uuid6::is_v6;

use crate::field_in::{Bytes, from_python};
use crate::numbers::wrong_type;

const OPERATORS: &str =
    "==, !=, <, <=, >, >=, in, not in, between, like, not like, is null and is not null";

/// Conditions as tuples in a list of their own: whoever gave them may change or exhaust what they were in.
#[derive(IntoPyObject, IntoPyObjectRef)]
pub(crate) struct Filters(Py<PyList>);

impl<'py> FromPyObject<'_, 'py> for Filters {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        static PLAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let plain = PLAIN.import(object.py(), "seglake.read.filters", "plain")?;
        let conditions = plain.call1((object,))?;
        Ok(Self(conditions.cast_into::<PyList>()?.unbind()))
    }
}

impl Filters {
    /// The filter of an argument that may be left out.
    pub(crate) fn filter(
        filters: Option<&Self>,
        py: Python<'_>,
        format: &Format,
        dialect: Dialect,
    ) -> PyResult<Filter> {
        match filters {
            Some(filters) => filter(filters.0.bind(py), format, format.columns(dialect)),
            None => Ok(Filter::default()),
        }
    }
}

/// The records that meet all conditions, as `seglake.read.filters.plain` gives them.
fn filter(filters: &Bound<'_, PyList>, format: &Format, columns: &[Column]) -> PyResult<Filter> {
    let mut filter = Filter::default();
    for condition in filters {
        let (name, operator, value): (String, String, Bound<'_, PyAny>) = condition.extract()?;
        let column = columns.iter().find(|column| column.name == name);
        let column = column.ok_or_else(|| {
            let names: Vec<_> = columns.iter().map(|column| column.name).collect();
            PyValueError::new_err(format!(
                "cannot filter {} records by {name}: they have no such column, only {}",
                format.name,
                names.join(", ")
            ))
        })?;
        filter = add(filter, column, &operator, &value)?;
    }
    Ok(filter)
}

fn add(
    filter: Filter,
    column: &Column,
    operator: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<Filter> {
    let name = column.name;
    let one = || scalar(value, column);
    Ok(match operator {
        "==" | "=" => filter.among(name, [one()?]),
        "!=" => filter.not_among(name, [one()?]),
        ">=" => filter.at_least(name, ordered(one()?, name)?),
        ">" => filter.above(name, ordered(one()?, name)?),
        "<" => filter.below(name, ordered(one()?, name)?),
        "<=" => filter.at_most(name, ordered(one()?, name)?),
        "in" => filter.among(name, scalars(value, column)?),
        "not in" => filter.not_among(name, scalars(value, column)?),
        "like" => filter.like(name, pattern(value, column)?),
        "not like" => filter.not_like(name, pattern(value, column)?),
        "is null" => filter.is_null(name),
        "is not null" => filter.is_not_null(name),
        other => {
            return Err(PyValueError::new_err(format!(
                "filters on {name} have an operator {other:?}: there are {OPERATORS}"
            )));
        }
    })
}

fn scalars(values: &Bound<'_, PyAny>, column: &Column) -> PyResult<Vec<Scalar>> {
    if values.is_instance_of::<PyString>() || values.is_instance_of::<PyBytes>() {
        return Err(wrong_type(column.name, "a list of values after in", values));
    }
    let each = values.try_iter();
    let each = each.map_err(|_| wrong_type(column.name, "a list of values after in", values))?;
    each.map(|value| scalar(&value?, column)).collect()
}

/// The pattern of `like`: its own backslashes say which bytes they stand for.
fn pattern(value: &Bound<'_, PyAny>, column: &Column) -> PyResult<Vec<u8>> {
    if !matches!(column.kind, ColumnKind::Text | ColumnKind::Binary) {
        return Err(PyValueError::new_err(format!(
            "filters cannot compare {} by like: its values are of kind {}, not text or bytes",
            column.name,
            column.kind.as_str()
        )));
    }
    Ok(Bytes::of(value, column.name)?.to_vec())
}

/// The number or Boolean value that a text says, for a column of these.
fn read(text: &str, column: &Column) -> PyResult<Scalar> {
    let hexadecimal = text.strip_prefix("0x");
    let (read, expected) = match column.kind {
        ColumnKind::Boolean => (text.parse().ok().map(Scalar::Boolean), "true or false"),
        _ => (
            hexadecimal
                .map_or_else(|| text.parse(), |digits| i128::from_str_radix(digits, 16))
                .ok()
                .map(Scalar::Integer),
            "a whole number",
        ),
    };
    read.ok_or_else(|| {
        PyValueError::new_err(format!(
            "filters on {} have {text:?}: expected {expected}",
            column.name
        ))
    })
}

fn scalar(value: &Bound<'_, PyAny>, column: &Column) -> PyResult<Scalar> {
    let name = column.name;
    if value.is_none() {
        return Err(PyValueError::new_err(format!(
            "filters compare {name} with None, which equals nothing: the operators are \"is null\" and \"is not null\""
        )));
    }
    if let Ok(text) = value.cast::<PyString>()
        && matches!(
            column.kind,
            ColumnKind::Int64 | ColumnKind::UInt64 | ColumnKind::Boolean
        )
    {
        return read(text.to_str()?, column);
    }
    // Also what no record can have is compared with.
    if matches!(column.kind, ColumnKind::Int64 | ColumnKind::UInt64)
        && !value.is_instance_of::<PyBool>()
        && let Ok(number) = value.extract::<i128>()
    {
        return Ok(Scalar::Integer(number));
    }
    let field = from_python(value, column.kind, name)?;
    Scalar::of(&field.value()).ok_or_else(|| {
        PyValueError::new_err(format!(
            "filters cannot compare {name}, whose values are of kind {}",
            column.kind.as_str()
        ))
    })
}

/// Refuses UUIDs that the order of time is not known of.
fn ordered(value: Scalar, name: &str) -> PyResult<Scalar> {
    match &value {
        Scalar::Uuid(uuid) if !is_v6(uuid) => Err(PyValueError::new_err(format!(
            "filters compare {name} with a UUID of another version than 6: only those are ordered by time"
        ))),
        _ => Ok(value),
    }
}
