//! Fields that are to be written: from Python objects and Arrow arrays to values by kind.

use std::borrow::Cow;

use pyo3::buffer::PyBuffer;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyNotImplementedError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBool, PyBytes, PyMapping, PyString};
use seglake::format::{Column, ColumnKind, Value};
use seglake::text::{printable, unescape};
use uuid::Uuid;

use crate::numbers::wrong_type;
use crate::value::time_from_python;

/// How many characters of a text that is not a UUID an error shows.
const MOST_SHOWN: usize = 64;

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
    pub(crate) fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        // Casts and not `extract`, which makes an exception of what it does not take. One that fails takes longer than to ask first.
        if object.is_instance_of::<PyBytes>()
            && let Ok(bytes) = object.cast::<PyBytes>()
        {
            return Ok(Self::Shared(bytes.clone().into()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            let text = PyBackedStr::try_from(text.clone()).map_err(|_| {
                PyValueError::new_err(format!(
                    "{name} is text with half of a surrogate pair, which UTF-8 does not have: give bytes"
                ))
            })?;
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

    /// The same, of text that is as `Record.type` and `Record.tenant` show it.
    pub(crate) fn of_shown(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        Ok(match Self::of(object, name)? {
            Self::Text(text) => match from_shown(&text, name)? {
                Cow::Borrowed(_) => Self::Text(text),
                Cow::Owned(bytes) => Self::Other(bytes.into()),
            },
            bytes => bytes,
        })
    }
}

/// The bytes of text that is as `Record.type` and `Record.tenant` show it: a backslash in it begins `\xNN`.
pub(crate) fn from_shown<'a>(text: &'a str, name: &str) -> PyResult<Cow<'a, [u8]>> {
    if !text.contains('\\') {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let unescaped = unescape(text).map(Cow::Owned);
    unescaped.ok_or_else(|| PyValueError::new_err(format!(r"in a {name} given as text a backslash begins \xNN: give bytes, or \x5c for a backslash (in {text:?})")))
}

/// The bytes of a buffer, shared where nobody can write to it. Text is refused.
pub(crate) fn buffer_bytes<'a>(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Bytes<'a>> {
    match Bytes::of(object, name)? {
        Bytes::Text(_) => Err(wrong_type(name, "bytes", object)),
        bytes => Ok(bytes),
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
    Ok(match kind {
        ColumnKind::Uuid => FieldIn::Uuid(uuid_field(object, name)?),
        ColumnKind::Timestamp => FieldIn::Timestamp(match object.extract::<i64>() {
            Ok(micros) if !object.is_instance_of::<PyBool>() => micros,
            _ => time_from_python(object, name)?,
        }),
        ColumnKind::Int64 => FieldIn::Int64(integer(object, name)?),
        ColumnKind::UInt64 => FieldIn::UInt64(integer(object, name)?),
        ColumnKind::Boolean => FieldIn::Boolean(
            object
                .extract()
                .map_err(|_| wrong_type(name, "a bool", object))?,
        ),
        ColumnKind::Text => FieldIn::Text(Bytes::of_shown(object, name)?),
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
        other => return Err(unknown_kind(other)),
    })
}

/// The error for a column of a kind that is new in the crate.
pub(crate) fn unknown_kind(kind: ColumnKind) -> PyErr {
    PyNotImplementedError::new_err(format!("{kind:?} has no form in Python: a bug in seglake"))
}

/// An int; a bool is none here.
fn integer<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    if object.is_instance_of::<PyBool>() {
        return Err(wrong_type(name, "an int", object));
    }
    object.extract().map_err(|error: T::Error| {
        match error.into().is_instance_of::<PyOverflowError>(object.py()) {
            true => PyValueError::new_err(format!("{name} is out of range: {object}")),
            false => wrong_type(name, "an int", object),
        }
    })
}

/// A `uuid.UUID`, its 16 bytes or its text.
pub(crate) fn uuid_field(object: &Bound<'_, PyAny>, name: &str) -> PyResult<[u8; 16]> {
    if let Ok(bytes) = object.cast::<PyBytes>()
        && let Ok(uuid) = bytes.as_bytes().try_into()
    {
        return Ok(uuid);
    }
    if !object.is_instance_of::<PyString>()
        && let Ok(uuid) = object.extract::<Uuid>()
    {
        return Ok(uuid.into_bytes());
    }
    match Bytes::of(object, name) {
        Ok(Bytes::Text(text)) => uuid_of(text.as_bytes(), Some(&text), name),
        Ok(bytes) => uuid_of(&bytes, None, name),
        Err(_) => Err(wrong_type(name, "a uuid.UUID", object)),
    }
}

/// The UUID that a text says, or that 16 bytes are where there is no text.
pub(crate) fn uuid_of(bytes: &[u8], text: Option<&str>, name: &str) -> PyResult<[u8; 16]> {
    let uuid = match text {
        Some(text) => Uuid::try_parse(text).ok(),
        None => Uuid::from_slice(bytes).ok(),
    };
    uuid.map(Uuid::into_bytes).ok_or_else(|| {
        let is = match text {
            Some(text) if text.chars().nth(MOST_SHOWN).is_none() => {
                format!("is \"{}\"", printable(text))
            }
            Some(text) => {
                let shown: String = text.chars().take(MOST_SHOWN).collect();
                format!("begins with \"{}\"", printable(&shown))
            }
            None => format!("has {} bytes", bytes.len()),
        };
        PyValueError::new_err(format!(
            "{name} {is}: expected a UUID's text or its 16 bytes"
        ))
    })
}
