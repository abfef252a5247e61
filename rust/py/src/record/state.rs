//! Pickling a record: its fields as plain values, and a record from them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use seglake::format::{Column, ColumnKind, Dialect, by_name};
use seglake::ledger::Cause;

use super::{FEW, Field, OwnFields, Record, Uuid, VALUE};
use crate::error::raise;
use crate::texts::Texts;

/// What [`Record::restored`] takes: the format, the dialect that its columns are of, a value for each column, the position, and the
/// cause.
pub(super) type State<'py> = (
    &'static str,
    &'static str,
    Bound<'py, PyTuple>,
    u64,
    Option<&'static str>,
);

/// What may come from anywhere is checked.
fn wrong(what: &str) -> PyErr {
    PyValueError::new_err(format!("these are not the values of a record: {what}"))
}

/// The columns of a format's records in a dialect.
fn columns_of(py: Python<'_>, format: &str, dialect: Dialect) -> PyResult<&'static [Column]> {
    let format = by_name(format).map_err(|error| raise(py, error))?;
    Ok(format.columns(dialect))
}

/// The field of a column.
fn field(column: &Column, value: Bound<'_, PyAny>, texts: &mut Texts) -> PyResult<Field> {
    if column.name == VALUE {
        return Ok(Field::Value);
    }
    if value.is_none() {
        return Ok(Field::Other(value.unbind()));
    }
    let bytes = || value.cast::<PyBytes>().map_err(|_| wrong(column.name));
    Ok(match column.kind {
        ColumnKind::Uuid => {
            let uuid = bytes()?.as_bytes().try_into();
            Field::Uuid(Uuid(uuid.map_err(|_| wrong(column.name))?))
        }
        ColumnKind::Timestamp => Field::Timestamp(value.extract()?),
        ColumnKind::Int64 => Field::Int64(value.extract()?),
        ColumnKind::Text => Field::Text(texts.get(bytes()?.as_bytes())),
        ColumnKind::Binary => Field::Binary(bytes()?.clone().unbind()),
        _ => Field::Other(value.unbind()),
    })
}

impl Record {
    pub(super) fn state<'py>(&self, py: Python<'py>) -> PyResult<State<'py>> {
        for dialect in Dialect::ALL {
            if columns_of(py, self.format, *dialect)? == self.columns {
                let values = self.fields().map(|(_, field)| self.stored(py, field));
                let values = PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
                let cause = self.cause.map(Cause::as_str);
                return Ok((self.format, dialect.as_str(), values, self.position, cause));
            }
        }
        let message = "a record whose columns are not all of its format cannot be pickled";
        Err(PyTypeError::new_err(message))
    }

    pub(super) fn restored(
        (format, dialect): (&str, &str),
        values: &Bound<'_, PyTuple>,
        position: u64,
        cause: Option<&str>,
    ) -> PyResult<Self> {
        let py = values.py();
        let dialect = dialect
            .parse::<Dialect>()
            .map_err(|error| raise(py, error))?;
        let columns = columns_of(py, format, dialect)?;
        if columns.len() != values.len() {
            return Err(wrong("there is not one for each column"));
        }
        let mut own_value = None;
        let mut fields = Vec::with_capacity(columns.len());
        let mut texts = Texts::default();
        for (column, value) in columns.iter().zip(values.iter()) {
            if column.name == VALUE {
                own_value = Some(value.clone());
            }
            fields.push(field(column, value, &mut texts)?);
        }
        let is_message =
            |value: &Bound<'_, PyAny>| value.is_none() || value.is_instance_of::<PyBytes>();
        let value = own_value.filter(is_message).ok_or_else(|| wrong(VALUE))?;
        let is_last = columns.last().is_some_and(|column| column.name == VALUE);
        if fields.len() <= FEW + 1 && is_last {
            fields.resize_with(FEW, || Field::Value);
        }
        let fields = match fields.try_into() {
            Ok(few) => OwnFields::Few(few),
            Err(many) => OwnFields::Many(many.into()),
        };
        let cause_named = |name| Cause::ALL.iter().copied().find(|own| own.as_str() == name);
        let named = cause.map(|name| cause_named(name).ok_or_else(|| wrong("cause")));
        Ok(Self {
            format: by_name(format).map_err(|error| raise(py, error))?.name,
            columns,
            fields,
            value: value.unbind(),
            position,
            cause: named.transpose()?,
        })
    }
}
