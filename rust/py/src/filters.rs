//! `filters=`: conditions on columns, as tuples.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PyString, PyTuple};
use seglake::format::{Column, ColumnKind, Dialect, Filter, Format, Scalar};
use seglake::uuid6::is_v6;

use crate::field_in::from_python;
use crate::numbers::wrong_type;

const OPERATORS: &str = "==, !=, <, <=, >, >=, in and not in";

/// Conditions in a list of their own: whoever gave them may change or exhaust what they were in.
#[derive(IntoPyObject, IntoPyObjectRef)]
pub(crate) struct Filters(Py<PyList>);

impl<'py> FromPyObject<'_, 'py> for Filters {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyTuple>() {
            return Err(malformed(&object));
        }
        let conditions = object.try_iter().map_err(|_| malformed(&object))?;
        let conditions = conditions.collect::<PyResult<Vec<_>>>()?;
        Ok(Self(PyList::new(object.py(), conditions)?.unbind()))
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

/// The records that meet all conditions: tuples of a column's name, an operator and a value, or a list of values for `in` and
/// `not in`.
fn filter(filters: &Bound<'_, PyList>, format: &Format, columns: &[Column]) -> PyResult<Filter> {
    let mut filter = Filter::default();
    for condition in filters {
        let Ok((name, operator, value)) = condition.extract::<(String, String, Bound<'_, PyAny>)>()
        else {
            return Err(malformed(&condition));
        };
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

/// As Python shows it, in its type's words where it cannot.
fn shown(given: &Bound<'_, PyAny>) -> String {
    given
        .repr()
        .map_or_else(|_| given.get_type().to_string(), |shown| shown.to_string())
}

fn malformed(given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "filters is a list of tuples (column, operator, value), such as [(\"timestamp\", \">=\", time)]: {} is not one",
        shown(given)
    ))
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

fn scalar(value: &Bound<'_, PyAny>, column: &Column) -> PyResult<Scalar> {
    let name = column.name;
    if value.is_none() {
        return Err(PyValueError::new_err(format!(
            "filters compare {name} with None, which is neither equal to a value nor less nor greater"
        )));
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
