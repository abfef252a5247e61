//! One record as a Python object.

mod state;

use std::mem::ManuallyDrop;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use seglake::format::{Column, ColumnKind, Hits, Rows, Value};
use seglake::ledger::Cause;
use seglake::text::escape;

use crate::texts::{Text, Texts};
use crate::value::time_to_python;

/// The column of a record's value, which all formats have.
const VALUE: &str = "value";
/// Records with at most this many columns before `value` keep their fields in the object, without an allocation. Only oplogs have
/// more.
const FEW: usize = 3;

/// A checked record. Its attributes are the columns of its format; those that are structures are dicts, or lists of them.
///
/// >>> record = next(iter(seglake.open("orders.active")))
/// >>> record.type, record.value
/// ('order.created', b'{"order": 1}')
#[pyclass(frozen, mapping, module = "seglake")]
pub(crate) struct Record {
    format: &'static str,
    columns: &'static [Column],
    fields: OwnFields,
    // A member of the object rather than a getter: Python reads it without a call.
    /// The message; None where an oplog's has none.
    ///
    /// >>> record = next(iter(seglake.open("orders.active")))
    /// >>> record.value
    /// b'{"order": 1}'
    #[pyo3(get)]
    value: Py<PyAny>,
    position: u64,
    cause: Option<Cause>,
}

/// One field for each column, in their order.
enum OwnFields {
    /// The columns before `value`, which is the last column. Places without a column are not used.
    Few([Field; FEW]),
    Many(Box<[Field]>),
}

enum Field {
    /// [`Record::value`].
    Value,
    Uuid(Uuid),
    Timestamp(i64),
    Int64(i64),
    Text(Arc<Text>),
    Binary(Py<PyBytes>),
    /// What is the same in Python and costs little to make: numbers, structures, None.
    Other(Py<PyAny>),
}

/// 16 bytes, aligned as other fields are. Otherwise fields are written in pieces that do not match those in which they are copied,
/// and the processor waits for them.
#[repr(align(8))]
struct Uuid([u8; 16]);

/// A value as a Python object. Bytes that are meant to be text are shown escaped.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &Value<'_>,
    kind: ColumnKind,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match (value, kind) {
        (Value::Null, _) => py.None().into_bound(py),
        (Value::Uuid(uuid), _) => uuid::Uuid::from_bytes(*uuid).into_pyobject(py)?,
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

/// Makes the records of one file.
pub(crate) struct RecordMaker {
    format: &'static str,
    columns: &'static [Column],
    /// The place of the column `value`.
    value_column: Option<usize>,
    texts: Texts,
}

impl RecordMaker {
    pub(crate) fn new(format: &'static str, columns: &'static [Column]) -> Self {
        Self {
            format,
            columns,
            value_column: columns.iter().position(|column| column.name == VALUE),
            texts: Texts::default(),
        }
    }

    /// Copies one row.
    pub(crate) fn record(
        &mut self,
        py: Python<'_>,
        rows: &dyn Rows,
        row: usize,
    ) -> PyResult<Py<Record>> {
        let (position, cause) = (rows.position(row), rows.cause(row));
        let record = self.of_values(py, |place| rows.field(row, place), position, cause)?;
        Py::new(py, record)
    }

    /// A record of a value for each column.
    #[inline(always)]
    fn of_values<'v>(
        &mut self,
        py: Python<'_>,
        value: impl Fn(usize) -> Value<'v>,
        position: u64,
        cause: Option<Cause>,
    ) -> PyResult<Record> {
        let count = self.columns.len();
        let is_last = self.value_column.is_some_and(|place| place + 1 == count);
        let fields = if count <= FEW + 1 && is_last {
            let mut field = |place| self.field(py, &value, place);
            OwnFields::Few([field(0)?, field(1)?, field(2)?])
        } else {
            let many = (0..count).map(|place| self.field(py, &value, place));
            OwnFields::Many(many.collect::<PyResult<_>>()?)
        };
        // Nothing to drop, as messages are bytes or null.
        let value = ManuallyDrop::new(self.value_column.map(value));
        let value = match *value {
            Some(Value::Binary(bytes)) => PyBytes::new(py, bytes).into_any().unbind(),
            Some(Value::Null) => py.None(),
            _ => return Err(PyValueError::new_err("a message is neither bytes nor null")),
        };
        Ok(Record {
            format: self.format,
            columns: self.columns,
            fields,
            value,
            position,
            cause,
        })
    }

    /// The records that were looked up.
    pub(crate) fn found(
        mut self,
        py: Python<'_>,
        hits: &Hits,
    ) -> PyResult<Vec<Option<Py<Record>>>> {
        let (mut found, mut failed) = (Vec::with_capacity(hits.places.len()), None);
        hits.each(|hit| {
            let record = hit.map(|(rows, row)| self.record(py, rows, row));
            match record.transpose() {
                Ok(record) => found.push(record),
                Err(error) => failed = Some(error),
            }
        });
        match failed {
            None => Ok(found),
            Some(error) => Err(error),
        }
    }

    /// The field of a column; [`Field::Value`] for the column `value` and for a place without a column. Inlined, so that fields are
    /// written straight into the record.
    #[inline(always)]
    fn field<'v>(
        &mut self,
        py: Python<'_>,
        value: &impl Fn(usize) -> Value<'v>,
        place: usize,
    ) -> PyResult<Field> {
        let column = self.columns.get(place);
        let Some(column) = column.filter(|_| self.value_column != Some(place)) else {
            return Ok(Field::Value);
        };
        // Only what becomes Other has anything to drop.
        let value = ManuallyDrop::new(value(place));
        Ok(match *value {
            Value::Uuid(uuid) => Field::Uuid(Uuid(uuid)),
            Value::Timestamp(micros) => Field::Timestamp(micros),
            Value::Int64(number) => Field::Int64(number),
            Value::Text(bytes) => Field::Text(self.texts.get(bytes)),
            Value::Binary(bytes) => Field::Binary(PyBytes::new(py, bytes).unbind()),
            _ => {
                let value = to_python(py, &ManuallyDrop::into_inner(value), column.kind)?;
                Field::Other(value.unbind())
            }
        })
    }
}

impl Record {
    /// What the record has.
    pub(crate) const fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// Its columns with their fields.
    fn fields(&self) -> impl Iterator<Item = (&'static Column, &Field)> {
        let fields: &[Field] = match &self.fields {
            OwnFields::Few(fields) => fields,
            OwnFields::Many(fields) => fields,
        };
        // Few ones leave the value out, which is the last.
        let fields = fields.iter().chain(std::iter::repeat(&Field::Value));
        self.columns.iter().zip(fields)
    }

    fn field(&self, name: &str) -> Option<&Field> {
        let mut fields = self.fields();
        let found = fields.find(|(column, _)| column.name == name);
        found.map(|(_, field)| field)
    }

    fn missing(&self, name: &str) -> PyErr {
        let names: Vec<_> = self.columns.iter().map(|column| column.name).collect();
        PyAttributeError::new_err(format!(
            "{} records have no {name}: they have {}, position and cause",
            self.format,
            names.join(", ")
        ))
    }

    /// A column, the microseconds of one of times (`timestamp_us`), or the bytes of one of texts (`type_bytes`).
    fn attribute<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(field) = self.field(name) {
            return self.shown(py, field);
        }
        let derived = |suffix| self.field(name.strip_suffix(suffix)?);
        match (derived("_us"), derived("_bytes")) {
            (Some(field @ Field::Timestamp(_)), _) | (_, Some(field @ Field::Text(_))) => {
                self.stored(py, field)
            }
            _ => Err(self.missing(name)),
        }
    }

    /// What a writer takes: like the attribute, but text as its bytes and times as microseconds.
    pub(crate) fn raw<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let field = self.field(name);
        field.map(|field| self.stored(py, field)).transpose()
    }

    /// A field's value before it was made a UUID, text or time.
    fn stored<'py>(&self, py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyAny>> {
        match field {
            Field::Uuid(Uuid(uuid)) => Ok(PyBytes::new(py, uuid).into_any()),
            Field::Text(text) => Ok(text.bytes(py).clone().into_any()),
            Field::Timestamp(micros) => Ok(micros.into_pyobject(py)?.into_any()),
            field => self.shown(py, field),
        }
    }

    fn shown<'py>(&self, py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyAny>> {
        match field {
            Field::Value => Ok(self.value.bind(py).clone()),
            Field::Uuid(Uuid(uuid)) => uuid::Uuid::from_bytes(*uuid).into_pyobject(py),
            Field::Timestamp(micros) => Ok(time_to_python(py, *micros)?.into_pyobject(py)?),
            Field::Int64(number) => Ok(number.into_pyobject(py)?.into_any()),
            Field::Text(text) => Ok(text.shown(py).clone().into_any()),
            Field::Binary(bytes) => Ok(bytes.bind(py).clone().into_any()),
            Field::Other(object) => Ok(object.bind(py).clone()),
        }
    }
}

/// The methods of records, with a getter for each of these columns and what is derived from them, beside the name that Python has
/// for it. What formats have beyond them is found by name alone, without text for an editor.
macro_rules! methods {
    (columns { $($(#[$about:meta])* $getter:ident $name:literal;)+ } $($methods:tt)*) => {
        #[pymethods]
        impl Record {
            $(
                $(#[$about])*
                #[getter]
                fn $getter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                    self.attribute(py, $name)
                }
            )+

            $($methods)*
        }
    };
}

methods! {
    columns {
        /// active, sealed: the record's `uuid.UUID`, of version 6.
        ///
        /// >>> record = next(iter(seglake.open("orders.active")))
        /// >>> record.uuid.version
        /// 6
        uuid "uuid";
        /// active, sealed, chunked: the record's time as an aware datetime in UTC, to the microsecond; None where the calendar
        /// cannot hold it.
        ///
        /// >>> record = next(iter(seglake.open("orders.active")))
        /// >>> record.timestamp.isoformat()
        /// '2024-06-15T05:00:00+00:00'
        timestamp "timestamp";
        /// active, sealed, chunked: the record's time in microseconds since 1970-01-01 UTC.
        ///
        /// >>> record = next(iter(seglake.open("orders.active")))
        /// >>> record.timestamp_us
        /// 1718427600000000
        timestamp_us "timestamp_us";
        /// active, sealed: the type as text: UTF-8, with `\xNN` for each byte that is not, and `\x5c` for a backslash.
        ///
        /// >>> record = next(iter(seglake.open("orders.active")))
        /// >>> record.type
        /// 'order.created'
        r#type "type";
        /// active, sealed: the type as it is in the file.
        ///
        /// >>> record = next(iter(seglake.open("orders.active")))
        /// >>> record.type_bytes
        /// b'order.created'
        type_bytes "type_bytes";
        /// tenant: the partition's ID.
        ///
        /// >>> orders = seglake.open("orders.tenant")
        /// >>> [record.partition for record in orders]
        /// [0, 0, 0]
        partition "partition";
        /// tenant: the tenant's ID as text, shown like `type`.
        ///
        /// >>> orders = seglake.open("orders.tenant")
        /// >>> [record.tenant for record in orders]
        /// ['acme', 'acme', 'globex']
        tenant "tenant";
        /// tenant: the tenant's ID as it is in the file.
        ///
        /// >>> orders = seglake.open("orders.tenant")
        /// >>> next(iter(orders)).tenant_bytes
        /// b'acme'
        tenant_bytes "tenant_bytes";
        /// tenant: the record's place among those of its tenant in its partition, from 0.
        ///
        /// >>> orders = seglake.open("orders.tenant")
        /// >>> [record.index for record in orders]
        /// [0, 1, 0]
        index "index";
        /// chunked: the message offset.
        ///
        /// >>> orders = seglake.open("orders.chunks")
        /// >>> [record.offset for record in orders]
        /// [0, 1, 2]
        offset "offset";
        /// oplog: the message's place in the log, from 0.
        ///
        /// >>> [message.seq for message in seglake.open("orders.oplog")]
        /// [0, 1, 2]
        seq "seq";
        /// oplog: the version of the message's layout.
        ///
        /// >>> message = seglake.open("orders.oplog").get(0)
        /// >>> message.version
        /// 1
        version "version";
        /// oplog: how many messages ago the last checkpoint was.
        ///
        /// >>> message = seglake.open("orders.oplog").get(0)
        /// >>> message.checkpointer
        /// 1
        checkpointer "checkpointer";
        /// oplog: the checkpoint as a dict, or None.
        ///
        /// >>> message = seglake.open("orders.oplog").get(0)
        /// >>> print(message.checkpoint)
        /// None
        checkpoint "checkpoint";
        /// oplog: the vector clock as a list of dicts of `key` and `length`.
        ///
        /// >>> message = seglake.open("orders.oplog").get(0)
        /// >>> [entry["length"] for entry in message.clock]
        /// [5]
        clock "clock";
        /// oplog: the version of the application's values.
        ///
        /// >>> message = seglake.open("orders.oplog").get(0)
        /// >>> message.abi
        /// 0
        abi "abi";
        /// oplog: how many messages of an atomic batch are still to come.
        ///
        /// >>> message = seglake.open("orders.oplog").get(0)
        /// >>> message.batch
        /// 0
        batch "batch";
        /// oplog: the keys that the message declares, as a list of bytes, or None.
        ///
        /// >>> from seglake import oplog
        /// >>> key = bytes(32)
        /// >>> fields = {"version": 1, "checkpointer": 1, "clock": [], "abi": 0, "batch": 0, "value": b"", "keys": [key]}
        /// >>> data = oplog.encode({**fields, "seq": 0}, dialect="draft-1.1")
        /// >>> oplog.decode(data, dialect="draft-1.1").keys == [key]
        /// True
        keys "keys";
        /// oplog, `autobase`: the newest version that the writer understood, or None.
        ///
        /// >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        /// >>> print(message.max_supported_version)
        /// None
        max_supported_version "max_supported_version";
        /// oplog, `autobase`: whether the message is optimistic.
        ///
        /// >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        /// >>> message.optimistic
        /// False
        optimistic "optimistic";
        /// oplog, `autobase`: the digest as a dict of `pointer` and `key`, or None.
        ///
        /// >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        /// >>> print(message.digest)
        /// None
        digest "digest";
        /// oplog, `autobase`: the trace as a dict, or None.
        ///
        /// >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        /// >>> print(message.trace)
        /// None
        trace "trace";
        /// oplog, `autobase`: the outer flags as they are in the message, or None.
        ///
        /// >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        /// >>> type(message.flags)
        /// <class 'int'>
        flags "flags";
        /// oplog, `autobase`: bytes after the fields that this version knows, or None.
        ///
        /// >>> message = seglake.open("autobase.oplog", options={"dialect": "autobase"}).get(0)
        /// >>> print(message.extra)
        /// None
        extra "extra";
    }

    /// A column that no getter is for, so that every column of every format is an attribute.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.attribute(py, name)
    }

    /// A column, or what else `to_dict` has, by its name. Raises KeyError where there is none.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match name {
            "position" => Ok(self.position.into_pyobject(py)?.into_any()),
            name => self.attribute(py, name).map_err(|error| {
                match error.is_instance_of::<PyAttributeError>(py) {
                    true => PyKeyError::new_err(error.value(py).to_string()),
                    false => error,
                }
            }),
        }
    }

    /// Where the record begins in its file, in bytes; in a chunked file, where its chunk does.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> [record.position for record in orders]
    /// [0, 54, 105]
    #[getter]
    fn position(&self) -> u64 {
        self.position
    }

    /// What is wrong with a record that is given out all the same (`dangling_reference`), or None.
    ///
    /// >>> record = next(iter(seglake.open("orders.active")))
    /// >>> print(record.cause)
    /// None
    #[getter]
    fn cause(&self) -> Option<&'static str> {
        self.cause.map(Cause::as_str)
    }

    /// The fields, those among them that are derived, and the position as a dict of the same names.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.get(1).to_dict()["offset"]
    /// 1
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (column, field) in self.fields() {
            dict.set_item(column.name, self.shown(py, field)?)?;
            match field {
                Field::Timestamp(micros) => dict.set_item(format!("{}_us", column.name), micros)?,
                Field::Text(text) => {
                    dict.set_item(format!("{}_bytes", column.name), text.bytes(py))?;
                }
                _ => {}
            }
        }
        dict.set_item("position", self.position)?;
        Ok(dict)
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        self.to_dict(py)?.eq(other.to_dict(py)?)
    }

    /// The record of what `__reduce__` gave.
    #[staticmethod]
    #[pyo3(name = "_restored", signature = (format, dialect, values, position, cause))]
    fn from_state(
        format: &str,
        dialect: &str,
        values: &Bound<'_, PyTuple>,
        position: u64,
        cause: Option<&str>,
    ) -> PyResult<Self> {
        Self::restored((format, dialect), values, position, cause)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restored = slf.get_type().getattr("_restored")?;
        Ok((restored, slf.get().state(slf.py())?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut shown = vec![format!("format={:?}", self.format)];
        for (column, field) in self.fields() {
            let bytes = match field {
                Field::Binary(bytes) => Some(bytes.bind(py)),
                Field::Value => self.value.bind(py).cast::<PyBytes>().ok(),
                _ => None,
            };
            let text = match (bytes, field) {
                (Some(bytes), _) => format!("<{} bytes>", bytes.as_bytes().len()),
                (None, Field::Timestamp(micros)) => time_to_python(py, *micros)?
                    .map_or_else(|| micros.to_string(), |time| time.to_string()),
                _ => self.shown(py, field)?.repr()?.to_string(),
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
