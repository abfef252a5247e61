//! Pickling a record: its fields as plain values, and a record from them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use seglake::format::{Dialect, Value, by_name};
use seglake::ledger::Cause;

use super::{Record, RecordMaker, VALUE};
use crate::error::raise;
use crate::field_in::{FieldIn, from_python};
use crate::message::dialect_of;

/// What may come from anywhere is checked.
fn wrong(what: &str) -> PyErr {
    PyValueError::new_err(format!("these are not the values of a record: {what}"))
}

impl Record {
    /// What [`Record::restored`] takes: the format, the dialect that its columns are of, a value for each column, the position, and the
    /// cause.
    pub(super) fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let format = by_name(self.format).map_err(|error| raise(py, error))?;
        for dialect in Dialect::ALL {
            if format.columns(*dialect) == self.columns {
                let values = self.fields().map(|(_, field)| self.stored(py, field));
                let values = PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
                let cause = self.cause.map(Cause::as_str);
                let dialect = dialect.as_str();
                return (self.format, dialect, values, self.position, cause).into_pyobject(py);
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
        let dialect = dialect_of(py, dialect)?;
        let format = by_name(format).map_err(|error| raise(py, error))?;
        let columns = format.columns(dialect);
        if columns.len() != values.len() {
            return Err(wrong("there is not one for each column"));
        }
        let fields = columns.iter().zip(values).map(|(column, value)| {
            let is_message = value.is_none() || value.is_instance_of::<PyBytes>();
            if column.name == VALUE && !is_message {
                return Err(wrong(VALUE));
            }
            from_python(&value, column.kind, column.name).map_err(|_| wrong(column.name))
        });
        let fields: Vec<FieldIn<'_>> = fields.collect::<PyResult<_>>()?;
        let cause_named = |name| Cause::ALL.iter().copied().find(|own| own.as_str() == name);
        let named = cause.map(|name| cause_named(name).ok_or_else(|| wrong("cause")));
        let value = |place: usize| match fields.get(place) {
            Some(field) => field.value(),
            None => Value::Null, // there is one for each column
        };
        RecordMaker::new(format.name, columns).of_values(py, value, position, named.transpose()?)
    }
}
