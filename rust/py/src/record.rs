//! One record as a Python object.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use seglake::format::{Format, Rows, Value};
use seglake::text::escape;

use crate::value::{time_to_python, uuid_to_python};

/// A checked record. Its attributes are the columns of its format.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Record {
    format: &'static Format,
    fields: Vec<Field>,
    position: u64,
}

enum Field {
    Uuid([u8; 16]),
    Timestamp(i64),
    Text(Py<PyBytes>),
    Binary(Py<PyBytes>),
    Int64(i64),
}

impl Record {
    /// Copies one row.
    pub(crate) fn new(
        py: Python<'_>,
        format: &'static Format,
        rows: &dyn Rows,
        row: usize,
    ) -> Self {
        let own = |column| match rows.field(row, column) {
            Value::Uuid(uuid) => Field::Uuid(uuid),
            Value::Timestamp(micros) => Field::Timestamp(micros),
            Value::Text(bytes) => Field::Text(PyBytes::new(py, bytes).unbind()),
            Value::Binary(bytes) => Field::Binary(PyBytes::new(py, bytes).unbind()),
            Value::Int64(number) => Field::Int64(number),
        };
        Self {
            format,
            fields: (0..format.columns.len()).map(own).collect(),
            position: rows.position(row),
        }
    }

    fn field(&self, name: &str) -> PyResult<&Field> {
        let place = self
            .format
            .columns
            .iter()
            .position(|column| column.name == name);
        let missing =
            || PyAttributeError::new_err(format!("{} records have no {name}", self.format.name));
        place
            .and_then(|place| self.fields.get(place))
            .ok_or_else(missing)
    }

    /// The bytes of a field of bytes.
    pub(crate) fn bytes(&self, name: &str) -> PyResult<&Py<PyBytes>> {
        match self.field(name)? {
            Field::Text(bytes) | Field::Binary(bytes) => Ok(bytes),
            _ => Err(PyAttributeError::new_err(format!(
                "{name} is not made of bytes"
            ))),
        }
    }

    fn shown<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.field(name)? {
            Field::Uuid(uuid) => uuid_to_python(py, uuid),
            Field::Timestamp(micros) => Ok(time_to_python(py, *micros)?.into_pyobject(py)?),
            Field::Text(bytes) => Ok(escape(bytes.as_bytes(py)).into_pyobject(py)?.into_any()),
            Field::Binary(bytes) => Ok(bytes.bind(py).clone().into_any()),
            Field::Int64(number) => Ok(number.into_pyobject(py)?.into_any()),
        }
    }
}

#[pymethods]
impl Record {
    /// The record's `uuid.UUID`, of version 6.
    #[getter]
    fn uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "uuid")
    }

    /// The record's time as an aware datetime in UTC, to the microsecond; None where the calendar cannot hold it.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "timestamp")
    }

    /// The record's time in microseconds since 1970-01-01 UTC.
    #[getter]
    fn timestamp_us(&self) -> PyResult<i64> {
        match self.field("timestamp")? {
            Field::Timestamp(micros) => Ok(*micros),
            _ => Err(PyAttributeError::new_err("timestamp is no time")),
        }
    }

    /// The type as text: UTF-8, with `\xNN` for each byte that is not, and `\x5c` for a backslash.
    #[getter]
    fn r#type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "type")
    }

    /// The type as it is in the file.
    #[getter]
    fn type_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        Ok(self.bytes("type")?.clone_ref(py))
    }

    /// The message.
    #[getter]
    fn value(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        Ok(self.bytes("value")?.clone_ref(py))
    }

    /// Where the record begins in its file, in bytes.
    #[getter]
    fn position(&self) -> u64 {
        self.position
    }

    /// All attributes as a dict of the same names.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (column, field) in self.format.columns.iter().zip(&self.fields) {
            dict.set_item(column.name, self.shown(py, column.name)?)?;
            match field {
                Field::Timestamp(micros) => dict.set_item(format!("{}_us", column.name), micros)?,
                Field::Text(bytes) => dict.set_item(format!("{}_bytes", column.name), bytes)?,
                _ => {}
            }
        }
        dict.set_item("position", self.position)?;
        Ok(dict)
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        self.to_dict(py)?.eq(other.to_dict(py)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut shown = Vec::new();
        for (column, field) in self.format.columns.iter().zip(&self.fields) {
            let text = match field {
                Field::Binary(bytes) => format!("<{} bytes>", bytes.as_bytes(py).len()),
                Field::Timestamp(micros) => time_to_python(py, *micros)?
                    .map_or_else(|| micros.to_string(), |time| time.to_string()),
                _ => self.shown(py, column.name)?.repr()?.to_string(),
            };
            shown.push(format!("{}={text}", column.name));
        }
        Ok(format!(
            "Record({}, position={})",
            shown.join(", "),
            self.position
        ))
    }
}
