//! `decode_message`, `decode_system` and `encode_message`: single messages of oplogs.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use seglake::OrBug;
use seglake::format::{Column, Dialect, RecordSet, Value, oplog};

use crate::error::raise;
use crate::field_in::{FieldIn, buffer_bytes};
use crate::fields::Fields;
use crate::numbers;
use crate::record::{Record, RecordMaker, to_python};
use crate::typed::typed;

fn columns(dialect: Dialect) -> &'static [Column] {
    oplog::FORMAT.columns(dialect)
}

pub(crate) fn dialect_of(py: Python<'_>, name: &str) -> PyResult<Dialect> {
    name.parse::<Dialect>().map_err(|error| raise(py, error))
}

/// Decodes one message of an oplog that comes from elsewhere: a body in another format, a column of a table, a queue. `data` is
/// the message without the length that frames it in a file.
///
/// dialect: "draft", "draft-1.1" or "autobase".
/// seq: its sequence number, if that is known: a message of "draft-1.1" can refer to its own keys then. References to keys of
///     other messages give null keys.
///
/// Raises DamageError where the bytes are no message of this dialect, with the offset within the message.
///
/// >>> from seglake import oplog
/// >>> data = oplog.encode(version=1, checkpointer=1, clock=[], abi=0, batch=1, value=b"v")
/// >>> oplog.decode(data).value
/// b'v'
#[pyfunction]
#[pyo3(signature = (data, *, dialect="draft", seq=None))]
pub(crate) fn decode_message(
    data: &Bound<'_, PyAny>,
    dialect: &str,
    #[pyo3(from_py_with = numbers::seq)] seq: Option<u64>,
) -> PyResult<Py<Record>> {
    let py = data.py();
    let dialect = dialect_of(py, dialect)?;
    let bytes = buffer_bytes(data, "data")?;
    let single = oplog::decode_message(bytes, dialect, seq).map_err(|error| raise(py, error))?;
    RecordMaker::new(oplog::FORMAT.name, columns(dialect)).record(py, &*single.rows(), 0)
}

/// Decodes the part of a message that is never encrypted: a System, with the rest of the message as bytes.
///
/// Raises DamageError as `decode_message`; ValueError for the dialect "autobase", whose messages begin otherwise.
///
/// >>> from seglake import oplog
/// >>> data = oplog.encode(version=1, checkpointer=1, clock=[], abi=0, batch=1, value=b"v")
/// >>> oplog.decode_system(data).version
/// 1
#[pyfunction]
#[pyo3(signature = (data, *, dialect="draft"))]
pub(crate) fn decode_system<'py>(
    data: &Bound<'py, PyAny>,
    dialect: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let dialect = dialect_of(py, dialect)?;
    let bytes = buffer_bytes(data, "data")?;
    let system = oplog::decode_system(&bytes, dialect).map_err(|error| raise(py, error))?;
    let checkpoint = match system.checkpoint {
        Some((hash, length)) => Value::Struct(vec![Value::Binary(hash), Value::UInt64(length)]),
        None => Value::Null,
    };
    let mut columns = columns(dialect).iter();
    let kind = columns
        .find(|column| column.name == "checkpoint")
        .map(|column| column.kind);
    let kind = kind.or_bug("a column of checkpoints");
    let kind = kind.map_err(|error| raise(py, error))?;
    let fields = (
        system.version,
        system.checkpointer,
        to_python(py, &checkpoint, kind)?,
        PyBytes::new(py, system.node),
    );
    typed(py, "System", fields)
}

/// Encodes one message of an oplog, without the length that frames it in a file: a Record, a mapping with the same names, or
/// the fields. What `decode_message` gives encodes back to the same bytes where they were written in the shortest way.
///
/// In "draft-1.1", `seq` is needed where the message refers to its own keys; other references have to be given with their
/// `seq` and `offset`. In "autobase" version 2 is written.
///
/// Raises ValueError for what the dialect cannot hold, TypeError.
///
/// >>> from seglake import oplog
/// >>> oplog.encode(version=1, checkpointer=1, clock=[], abi=0, batch=1, value=b"v").hex()
/// '01010000010176'
#[pyfunction]
#[pyo3(signature = (*record, dialect="draft", **fields))]
pub(crate) fn encode_message<'py>(
    py: Python<'py>,
    record: &Bound<'py, PyTuple>,
    dialect: &str,
    fields: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let dialect = dialect_of(py, dialect)?;
    let given = Fields::new(oplog::FORMAT.name, columns(dialect)).of_call(record, fields)?;
    let values: Vec<_> = given.iter().map(FieldIn::value).collect();
    let bytes = oplog::encode_message(&values, dialect).map_err(|error| raise(py, error))?;
    Ok(PyBytes::new(py, &bytes))
}
