//! One record as a Python object.

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use seglake::format::{Column, ColumnKind, Rows, Value};
use seglake::ledger::Cause;
use seglake::text::escape;

use crate::value::{time_to_python, uuid_to_python};

/// A checked record. Its attributes are the columns of its format; those that are structures are dicts, or lists of them.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Record {
    format: &'static str,
    columns: &'static [Column],
    fields: Vec<Field>,
    position: u64,
    cause: Option<Cause>,
}

enum Field {
    Uuid([u8; 16]),
    Timestamp(i64),
    Text(Py<PyBytes>),
    Binary(Py<PyBytes>),
    /// What is the same in Python and costs little to make: numbers, structures, None.
    Other(Py<PyAny>),
}

/// A value as a Python object. Bytes that are meant to be text are shown escaped.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &Value<'_>,
    kind: ColumnKind,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match (value, kind) {
        (Value::Null, _) => py.None().into_bound(py),
        (Value::Uuid(uuid), _) => uuid_to_python(py, uuid)?,
        (Value::Timestamp(micros), _) => time_to_python(py, *micros)?.into_pyobject(py)?,
        (Value::Text(bytes), _) => escape(bytes).into_pyobject(py)?.into_any(),
        (Value::Binary(bytes), _) => PyBytes::new(py, bytes).into_any(),
        (Value::Int64(number), _) => number.into_pyobject(py)?.into_any(),
        (Value::UInt64(number), _) => number.into_pyobject(py)?.into_any(),
        (Value::Boolean(truth), _) => truth.into_pyobject(py)?.to_owned().into_any(),
        (Value::List(items), ColumnKind::List(kind)) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item, *kind)?)?;
            }
            list.into_any()
        }
        (Value::Struct(values), ColumnKind::Struct(fields)) => {
            let dict = PyDict::new(py);
            for (field, value) in fields.iter().zip(values) {
                dict.set_item(field.name, to_python(py, value, field.kind)?)?;
            }
            dict.into_any()
        }
        _ => return Err(PyValueError::new_err("a value is not of its column's kind")),
    })
}

impl Record {
    /// Copies one row.
    pub(crate) fn new(
        py: Python<'_>,
        format: &'static str,
        columns: &'static [Column],
        rows: &dyn Rows,
        row: usize,
    ) -> PyResult<Self> {
        let own = |(place, column): (usize, &Column)| {
            Ok(match rows.field(row, place) {
                Value::Uuid(uuid) => Field::Uuid(uuid),
                Value::Timestamp(micros) => Field::Timestamp(micros),
                Value::Text(bytes) => Field::Text(PyBytes::new(py, bytes).unbind()),
                Value::Binary(bytes) => Field::Binary(PyBytes::new(py, bytes).unbind()),
                other => Field::Other(to_python(py, &other, column.kind)?.unbind()),
            })
        };
        let fields = columns.iter().enumerate().map(own);
        Ok(Self {
            format,
            columns,
            fields: fields.collect::<PyResult<_>>()?,
            position: rows.position(row),
            cause: rows.cause(row),
        })
    }

    /// What the record has.
    pub(crate) const fn columns(&self) -> &'static [Column] {
        self.columns
    }

    fn field(&self, name: &str) -> PyResult<&Field> {
        let place = self.columns.iter().position(|column| column.name == name);
        let missing =
            || PyAttributeError::new_err(format!("{} records have no {name}", self.format));
        place
            .and_then(|place| self.fields.get(place))
            .ok_or_else(missing)
    }

    /// The bytes of a field of text.
    fn bytes(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyBytes>> {
        match self.field(name)? {
            Field::Text(bytes) | Field::Binary(bytes) => Ok(bytes.clone_ref(py)),
            _ => Err(PyAttributeError::new_err(format!(
                "{name} is not made of bytes"
            ))),
        }
    }

    /// What a writer takes: like the attribute, but text as its bytes and times as microseconds.
    pub(crate) fn raw<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.field(name)? {
            Field::Text(bytes) => Ok(bytes.bind(py).clone().into_any()),
            Field::Timestamp(micros) => Ok(micros.into_pyobject(py)?.into_any()),
            _ => self.shown(py, name),
        }
    }

    fn shown<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.field(name)? {
            Field::Uuid(uuid) => uuid_to_python(py, uuid),
            Field::Timestamp(micros) => Ok(time_to_python(py, *micros)?.into_pyobject(py)?),
            Field::Text(bytes) => Ok(escape(bytes.as_bytes(py)).into_pyobject(py)?.into_any()),
            Field::Binary(bytes) => Ok(bytes.bind(py).clone().into_any()),
            Field::Other(object) => Ok(object.bind(py).clone()),
        }
    }
}

#[pymethods]
impl Record {
    /// active, sealed: the record's `uuid.UUID`, of version 6.
    #[getter]
    fn uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "uuid")
    }

    /// active, sealed, chunked: the record's time as an aware datetime in UTC, to the microsecond; None where the calendar
    /// cannot hold it.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "timestamp")
    }

    /// active, sealed, chunked: the record's time in microseconds since 1970-01-01 UTC.
    #[getter]
    fn timestamp_us(&self) -> PyResult<i64> {
        match self.field("timestamp")? {
            Field::Timestamp(micros) => Ok(*micros),
            _ => Err(PyAttributeError::new_err("timestamp is no time")),
        }
    }

    /// active, sealed: the type as text: UTF-8, with `\xNN` for each byte that is not, and `\x5c` for a backslash.
    #[getter]
    fn r#type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "type")
    }

    /// active, sealed: the type as it is in the file.
    #[getter]
    fn type_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        self.bytes(py, "type")
    }

    /// tenant: the partition's ID.
    #[getter]
    fn partition<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "partition")
    }

    /// tenant: the tenant's ID as text, shown like `type`.
    #[getter]
    fn tenant<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "tenant")
    }

    /// tenant: the tenant's ID as it is in the file.
    #[getter]
    fn tenant_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        self.bytes(py, "tenant")
    }

    /// tenant: the record's place among those of its tenant in its partition, from 0.
    #[getter]
    fn index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "index")
    }

    /// chunked: the message offset.
    #[getter]
    fn offset<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "offset")
    }

    /// oplog: the message's place in the log, from 0.
    #[getter]
    fn seq<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "seq")
    }

    /// oplog: the version of the message's layout.
    #[getter]
    fn version<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "version")
    }

    /// oplog: how many messages ago the last checkpoint was.
    #[getter]
    fn checkpointer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "checkpointer")
    }

    /// oplog: the checkpoint as a dict, or None.
    #[getter]
    fn checkpoint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "checkpoint")
    }

    /// oplog: the vector clock as a list of dicts of `key` and `length`.
    #[getter]
    fn clock<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "clock")
    }

    /// oplog: the version of the application's values.
    #[getter]
    fn abi<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "abi")
    }

    /// oplog: how many messages of an atomic batch are still to come.
    #[getter]
    fn batch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "batch")
    }

    /// oplog: the keys that the message declares, as a list of bytes, or None.
    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "keys")
    }

    /// oplog, `autobase`: the newest version that the writer understood, or None.
    #[getter]
    fn max_supported_version<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "max_supported_version")
    }

    /// oplog, `autobase`: whether the message is optimistic.
    #[getter]
    fn optimistic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "optimistic")
    }

    /// oplog, `autobase`: the digest as a dict of `pointer` and `key`, or None.
    #[getter]
    fn digest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "digest")
    }

    /// oplog, `autobase`: the trace as a dict, or None.
    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "trace")
    }

    /// oplog, `autobase`: the outer flags as they are in the message, or None.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "flags")
    }

    /// oplog, `autobase`: bytes behind the fields that this version knows, or None.
    #[getter]
    fn extra<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "extra")
    }

    /// The message; None where an oplog's has none.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shown(py, "value")
    }

    /// Where the record begins in its file, in bytes; in a chunked file, where its chunk does.
    #[getter]
    fn position(&self) -> u64 {
        self.position
    }

    /// What is wrong with a record that is given out all the same (`dangling_reference`), or None.
    #[getter]
    fn cause(&self) -> Option<&'static str> {
        self.cause.map(Cause::as_str)
    }

    /// The fields, those among them that are derived, and the position as a dict of the same names.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (column, field) in self.columns.iter().zip(&self.fields) {
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
        for (column, field) in self.columns.iter().zip(&self.fields) {
            let text = match field {
                Field::Binary(bytes) => format!("<{} bytes>", bytes.as_bytes(py).len()),
                Field::Timestamp(micros) => time_to_python(py, *micros)?
                    .map_or_else(|| micros.to_string(), |time| time.to_string()),
                _ => self.shown(py, column.name)?.repr()?.to_string(),
            };
            shown.push(format!("{}={text}", column.name));
        }
        shown.push(format!("position={}", self.position));
        if let Some(cause) = self.cause {
            shown.push(format!("cause={:?}", cause.as_str()));
        }
        Ok(format!("Record({})", shown.join(", ")))
    }
}
