//! Fields that are to be written: from Python objects and Arrow arrays to values by kind.

use std::borrow::Cow;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, TimeUnit};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBool, PyBytes, PyDict, PyMapping, PyString};
use seglake::format::{Column, ColumnKind, Value};
use seglake::text::unescape;
use uuid::Uuid;

use crate::record::Record;
use crate::value::{time_from_python, uuid_class, uuid_from_python};

/// A field's value, which owns or borrows its bytes.
pub(crate) enum FieldIn<'a> {
    Null,
    Uuid([u8; 16]),
    Timestamp(i64),
    Int64(i64),
    UInt64(u64),
    Boolean(bool),
    Text(Bytes<'a>),
    Binary(Bytes<'a>),
    List(Vec<Self>),
    Struct(Vec<Self>),
}

impl FieldIn<'_> {
    /// The same as a value of the core.
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Uuid(uuid) => Value::Uuid(*uuid),
            Self::Timestamp(micros) => Value::Timestamp(*micros),
            Self::Int64(number) => Value::Int64(*number),
            Self::UInt64(number) => Value::UInt64(*number),
            Self::Boolean(truth) => Value::Boolean(*truth),
            Self::Text(bytes) => Value::Text(bytes),
            Self::Binary(bytes) => Value::Binary(bytes),
            Self::List(items) => Value::List(items.iter().map(Self::value).collect()),
            Self::Struct(fields) => Value::Struct(fields.iter().map(Self::value).collect()),
        }
    }
}

/// Bytes of a field.
pub(crate) enum Bytes<'a> {
    Text(PyBackedStr),
    Shared(PyBackedBytes),
    Other(Cow<'a, [u8]>),
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Shared(bytes) => bytes,
            Self::Other(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Bytes<'_> {
    /// Text as UTF-8, or any buffer.
    fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if let Ok(text) = object.extract() {
            return Ok(Self::Text(text));
        }
        if let Ok(bytes) = object.extract() {
            return Ok(Self::Shared(bytes));
        }
        match PyBuffer::<u8>::get(object) {
            // A buffer that somebody may write to is copied while the GIL is held.
            Ok(buffer) => Ok(Self::Other(buffer.to_vec(object.py())?.into())),
            Err(_) => Err(wrong_type(name, "str or bytes", object)),
        }
    }
}

/// The bytes of text that is as `Record.type` and `Record.tenant` show it: a backslash in it begins `\xNN`.
fn from_shown<'a>(text: &'a str, name: &str) -> PyResult<Cow<'a, [u8]>> {
    if !text.contains('\\') {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let unescaped = unescape(text).map(Cow::Owned);
    unescaped.ok_or_else(|| PyValueError::new_err(format!(r"in a {name} given as text a backslash begins \xNN: give bytes, or \x5c for a backslash (in {text:?})")))
}

fn wrong_type(name: &str, expected: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let given = object.get_type().qualname();
    let given = given.map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} must be {expected}, not {given}"))
}

/// The bytes of a buffer, shared where nobody can write to it. Text is refused.
pub(crate) fn buffer_bytes<'a>(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Bytes<'a>> {
    match Bytes::of(object, name)? {
        Bytes::Text(_) => Err(wrong_type(name, "bytes", object)),
        bytes => Ok(bytes),
    }
}

/// The tenant ID or type that a Python object names: text as shown, or bytes.
pub(crate) fn shown_bytes(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<u8>> {
    let field = from_python(object, ColumnKind::Text, name)?;
    match field.value() {
        Value::Text(bytes) => Ok(bytes.to_vec()),
        _ => Err(wrong_type(name, "str or bytes", object)),
    }
}

/// A field's value from a Python object; None is null.
pub(crate) fn from_python(
    object: &Bound<'_, PyAny>,
    kind: ColumnKind,
    name: &str,
) -> PyResult<FieldIn<'static>> {
    if object.is_none() {
        return Ok(FieldIn::Null);
    }
    let integer = |expected: &str| {
        if object.is_instance_of::<PyBool>() || object.is_instance_of::<PyString>() {
            Err(wrong_type(name, expected, object))
        } else {
            Ok(())
        }
    };
    Ok(match kind {
        ColumnKind::Uuid => FieldIn::Uuid(uuid_field(object, name)?),
        ColumnKind::Timestamp => FieldIn::Timestamp(match object.extract::<i64>() {
            Ok(micros) if !object.is_instance_of::<PyBool>() => micros,
            _ if object.hasattr("tzinfo")? => time_from_python(object, name)?,
            _ => {
                let expected = "an aware datetime or an int of microseconds since 1970";
                return Err(wrong_type(name, expected, object));
            }
        }),
        ColumnKind::Int64 => {
            integer("an int")?;
            FieldIn::Int64(
                object
                    .extract()
                    .map_err(|error| named(object, error, name))?,
            )
        }
        ColumnKind::UInt64 => {
            integer("an int")?;
            FieldIn::UInt64(
                object
                    .extract()
                    .map_err(|error| named(object, error, name))?,
            )
        }
        ColumnKind::Boolean => FieldIn::Boolean(
            object
                .extract()
                .map_err(|_| wrong_type(name, "a bool", object))?,
        ),
        ColumnKind::Text => FieldIn::Text(match Bytes::of(object, name)? {
            Bytes::Text(text) => match from_shown(&text, name)? {
                Cow::Borrowed(_) => Bytes::Text(text),
                Cow::Owned(bytes) => Bytes::Other(bytes.into()),
            },
            bytes => bytes,
        }),
        ColumnKind::Binary => FieldIn::Binary(Bytes::of(object, name)?),
        ColumnKind::List(kind) => {
            let items = object
                .try_iter()
                .map_err(|_| wrong_type(name, "a list", object))?;
            let items = items.map(|item| from_python(&item?, *kind, name));
            FieldIn::List(items.collect::<PyResult<_>>()?)
        }
        ColumnKind::Struct(fields) => {
            let mapping = object
                .cast::<PyMapping>()
                .map_err(|_| wrong_type(name, "a mapping", object))?;
            for key in mapping.keys()?.iter() {
                let key: String = key.extract()?;
                if !fields.iter().any(|field| field.name == key) {
                    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
                    return Err(PyValueError::new_err(format!(
                        "{name} has no field {key:?}: there are {}",
                        names.join(", ")
                    )));
                }
            }
            let field = |column: &Column| {
                if !mapping.contains(column.name)? {
                    return Ok(FieldIn::Null);
                }
                let name = format!("{name}.{}", column.name);
                from_python(&mapping.get_item(column.name)?, column.kind, &name)
            };
            FieldIn::Struct(fields.iter().map(field).collect::<PyResult<_>>()?)
        }
    })
}

/// A conversion's own error, which says what the value is: out of range, or no number at all.
fn named(object: &Bound<'_, PyAny>, error: PyErr, name: &str) -> PyErr {
    let py = object.py();
    if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) {
        return PyValueError::new_err(format!("{name} is out of range: {object}"));
    }
    wrong_type(name, "an int", object)
}

/// A `uuid.UUID`, its 16 bytes or its text.
pub(crate) fn uuid_field(object: &Bound<'_, PyAny>, name: &str) -> PyResult<[u8; 16]> {
    if let Ok(bytes) = object.cast::<PyBytes>()
        && let Ok(uuid) = bytes.as_bytes().try_into()
    {
        return Ok(uuid);
    }
    if object.is_instance(uuid_class(object.py())?)? {
        return uuid_from_python(object);
    }
    let uuid = match Bytes::of(object, name) {
        Ok(Bytes::Text(text)) => Uuid::parse_str(&text).ok(),
        Ok(bytes) => Uuid::from_slice(&bytes).ok(),
        Err(_) => return Err(wrong_type(name, "a uuid.UUID", object)),
    };
    uuid.map(Uuid::into_bytes).ok_or_else(|| {
        PyValueError::new_err(format!("{name} is neither 16 bytes nor a UUID's text"))
    })
}

/// A field's value from a row of an Arrow array.
pub(crate) fn from_arrow<'a>(
    array: &'a dyn Array,
    row: usize,
    kind: ColumnKind,
    name: &str,
) -> PyResult<FieldIn<'a>> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(FieldIn::Null);
    }
    let misfit = || {
        PyValueError::new_err(format!(
            "the column {name} is of type {}: cast it to {}",
            array.data_type(),
            arrow_name(kind)
        ))
    };
    Ok(match kind {
        ColumnKind::Uuid => {
            let (bytes, is_text) = bytes_at(array, row).ok_or_else(misfit)?;
            let uuid = if is_text {
                Uuid::try_parse_ascii(bytes).ok()
            } else {
                Uuid::from_slice(bytes).ok()
            };
            FieldIn::Uuid(uuid.map(Uuid::into_bytes).ok_or_else(|| {
                PyValueError::new_err(format!("{name} is neither 16 bytes nor a UUID's text"))
            })?)
        }
        ColumnKind::Timestamp => FieldIn::Timestamp(
            micros_at(array, row)
                .or_else(|| integer_at(array, row).and_then(|number| number.try_into().ok()))
                .ok_or_else(misfit)?,
        ),
        ColumnKind::Int64 | ColumnKind::UInt64 => {
            let number = integer_at(array, row).ok_or_else(misfit)?;
            let beyond = |_| PyValueError::new_err(format!("{name} is out of range: {number}"));
            if kind == ColumnKind::Int64 {
                FieldIn::Int64(number.try_into().map_err(beyond)?)
            } else {
                FieldIn::UInt64(number.try_into().map_err(beyond)?)
            }
        }
        ColumnKind::Boolean => {
            let array = array.as_boolean_opt().ok_or_else(misfit)?;
            FieldIn::Boolean(array.value(row))
        }
        ColumnKind::Text => {
            let (bytes, is_text) = bytes_at(array, row).ok_or_else(misfit)?;
            FieldIn::Text(Bytes::Other(match std::str::from_utf8(bytes) {
                Ok(text) if is_text => from_shown(text, name)?,
                _ => bytes.into(),
            }))
        }
        ColumnKind::Binary => {
            let (bytes, _) = bytes_at(array, row).ok_or_else(misfit)?;
            FieldIn::Binary(Bytes::Other(bytes.into()))
        }
        ColumnKind::List(kind) => {
            let (items, range) = items_at(array, row).ok_or_else(misfit)?;
            let items = range.map(|item| from_arrow(items, item, *kind, name));
            FieldIn::List(items.collect::<PyResult<_>>()?)
        }
        ColumnKind::Struct(fields) => {
            let array = array.as_struct_opt().ok_or_else(misfit)?;
            let unknown = array
                .column_names()
                .into_iter()
                .find(|own| !fields.iter().any(|field| field.name == *own));
            if let Some(unknown) = unknown {
                return Err(PyValueError::new_err(format!(
                    "{name} has no field {unknown:?}: drop it first, for it would be lost"
                )));
            }
            let field = |column: &Column| match array.column_by_name(column.name) {
                Some(own) => from_arrow(own, row, column.kind, &format!("{name}.{}", column.name)),
                None => Ok(FieldIn::Null),
            };
            FieldIn::Struct(fields.iter().map(field).collect::<PyResult<_>>()?)
        }
    })
}

fn arrow_name(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Uuid => "fixed_size_binary[16], binary or string",
        ColumnKind::Timestamp => "timestamp[us, tz=UTC]",
        ColumnKind::Text | ColumnKind::Binary => "binary or string",
        ColumnKind::Int64 => "int64",
        ColumnKind::UInt64 => "uint64",
        ColumnKind::Boolean => "bool",
        ColumnKind::List(_) => "list",
        ColumnKind::Struct(_) => "struct",
    }
}

/// Bytes of a row, and whether they are text.
fn bytes_at(array: &dyn Array, row: usize) -> Option<(&[u8], bool)> {
    Some(match array.data_type() {
        DataType::Binary => (array.as_binary::<i32>().value(row), false),
        DataType::LargeBinary => (array.as_binary::<i64>().value(row), false),
        DataType::BinaryView => (array.as_binary_view().value(row), false),
        DataType::FixedSizeBinary(_) => (array.as_fixed_size_binary().value(row), false),
        DataType::Utf8 => (array.as_string::<i32>().value(row).as_bytes(), true),
        DataType::LargeUtf8 => (array.as_string::<i64>().value(row).as_bytes(), true),
        DataType::Utf8View => (array.as_string_view().value(row).as_bytes(), true),
        _ => return None,
    })
}

fn integer_at(array: &dyn Array, row: usize) -> Option<i128> {
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Decimal128(_, 0) => {
            let decimals = array.as_primitive::<arrow_array::types::Decimal128Type>();
            decimals.value(row)
        }
        _ => return None,
    })
}

/// A time's microseconds; finer ones round down, as times of UUIDs do.
fn micros_at(array: &dyn Array, row: usize) -> Option<i64> {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            let array = array.as_primitive::<TimestampSecondType>();
            array.value(row).checked_mul(1_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let array = array.as_primitive::<TimestampMillisecondType>();
            array.value(row).checked_mul(1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Some(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let array = array.as_primitive::<TimestampNanosecondType>();
            Some(array.value(row).div_euclid(1_000))
        }
        _ => None,
    }
}

/// The items of a list, and which of them are a row's.
fn items_at(array: &dyn Array, row: usize) -> Option<(&dyn Array, std::ops::Range<usize>)> {
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let [start, end] = [row, row + 1].map(|at| list.value_offsets().get(at).copied());
            let range = usize::try_from(start?).ok()?..usize::try_from(end?).ok()?;
            Some((&**list.values(), range))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let [start, end] = [row, row + 1].map(|at| list.value_offsets().get(at).copied());
            let range = usize::try_from(start?).ok()?..usize::try_from(end?).ok()?;
            Some((&**list.values(), range))
        }
        _ => None,
    }
}

/// Columns that readers add to those of a format: a writer takes them as said already.
const BESIDE: [&str; 3] = ["path", "position", "cause"];

/// What records to be written have.
pub(crate) struct Fields {
    pub(crate) format: &'static str,
    pub(crate) columns: &'static [Column],
}

impl Fields {
    pub(crate) const fn new(format: &'static str, columns: &'static [Column]) -> Self {
        Self { format, columns }
    }

    /// Refuses names that are no columns: what they hold would be lost.
    pub(crate) fn refuse_unknown<'a>(
        &self,
        mut names: impl Iterator<Item = &'a str>,
    ) -> PyResult<()> {
        let unknown = names.find(|name| !BESIDE.contains(name) && !self.has(name));
        unknown.map_or(Ok(()), |name| Err(self.unknown(name)))
    }

    /// The fields of a record, a mapping, or keyword arguments.
    pub(crate) fn of_arguments<'py>(
        &self,
        py: Python<'py>,
        record: Option<&Bound<'py, PyAny>>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<FieldIn<'static>>> {
        match (record, fields) {
            (None, Some(fields)) => self.of_mapping(fields.as_mapping()),
            (None, None) => self.of_mapping(PyDict::new(py).as_mapping()),
            (Some(_), Some(_)) => Err(PyTypeError::new_err(
                "give a record or its fields, not both",
            )),
            (Some(record), None) => {
                match record.cast::<Record>() {
                    Ok(record) => self.of_record(py, record.get()),
                    Err(_) => self.of_mapping(record.cast::<PyMapping>().map_err(|_| {
                        PyTypeError::new_err("record must be a Record or a mapping")
                    })?),
                }
            }
        }
    }

    /// What would be lost: names that are no columns.
    fn unknown(&self, name: &str) -> PyErr {
        let names: Vec<_> = self.columns.iter().map(|column| column.name).collect();
        PyValueError::new_err(format!(
            "{} records have no {name:?}, so it would be lost: drop it first. They have {}",
            self.format,
            names.join(", ")
        ))
    }

    fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// The fields of a record of this or another format.
    fn of_record(&self, py: Python<'_>, record: &Record) -> PyResult<Vec<FieldIn<'static>>> {
        let lost = record
            .columns()
            .iter()
            .find(|column| !self.has(column.name));
        if let Some(lost) = lost {
            return Err(self.unknown(lost.name));
        }
        let field = |column: &Column| {
            if record.columns().iter().any(|own| own.name == column.name) {
                from_python(&record.raw(py, column.name)?, column.kind, column.name)
            } else {
                Ok(FieldIn::Null)
            }
        };
        self.columns.iter().map(field).collect()
    }

    /// The fields of a mapping as `Record.to_dict` gives it: of text its bytes go first, of times their microseconds.
    fn of_mapping(&self, mapping: &Bound<'_, PyMapping>) -> PyResult<Vec<FieldIn<'static>>> {
        for key in mapping.keys()?.iter() {
            let key: String = key.extract()?;
            let derived = |column: &Column| match column.kind {
                ColumnKind::Text => key.strip_suffix("_bytes") == Some(column.name),
                ColumnKind::Timestamp => key.strip_suffix("_us") == Some(column.name),
                _ => false,
            };
            let known = BESIDE.contains(&key.as_str()) || self.has(&key);
            if !known && !self.columns.iter().any(derived) {
                return Err(self.unknown(&key));
            }
        }
        let field = |column: &Column| {
            let exact = match column.kind {
                ColumnKind::Text => format!("{}_bytes", column.name),
                ColumnKind::Timestamp => format!("{}_us", column.name),
                _ => String::new(),
            };
            for name in [exact.as_str(), column.name] {
                if !name.is_empty() && mapping.contains(name)? {
                    return from_python(&mapping.get_item(name)?, column.kind, name);
                }
            }
            Ok(FieldIn::Null)
        };
        self.columns.iter().map(field).collect()
    }
}
