//! `open`.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::columns::{Limits, Selection, UuidType};
use seglake::format::{Options, by_name, resolve};

use crate::error::raise;
use crate::interrupt::signals;
use crate::reader::{Reader, Reopening};
use crate::{key, source, value};

/// Opens a segment for reading. `source` is a path, a seekable binary file object, or a buffer.
///
/// format: the format's name; None tells it by content and extension.
/// key, keys, key_file: a key of 32 bytes, several to try in order, or a file that holds one (32 raw bytes or 64 hexadecimal
///     digits). Without any, the environment variable SEGLAKE_KEY is used where it is set, else the public default key.
/// on_damage: "raise" raises DamageError at the first damage, "skip" reads on behind it and warns once (DamageWarning).
/// since, until: the records wanted, half-open; aware datetimes or UUIDs of version 6.
/// columns: the columns of Arrow batches; beside the format's own there are "path" and "position".
/// batch_bytes, batch_rows: a batch ends before it has more bytes of values or more rows, but has at least one row.
/// max_record_bytes: a larger record raises LimitError when it is to be returned.
/// uuid_type: UUID columns as fixed-size binary ("fixed"), plain binary ("binary") or text ("string").
/// mmap: None and False read the file in windows, so memory stays flat and a file that shrinks is an error. True maps it:
///     faster to reread, but where somebody truncates the file meanwhile, the process is killed (SIGBUS).
///
/// Raises FileNotFoundError and other OSErrors, FormatError where the format cannot be told, ValueError, TypeError.
#[pyfunction]
#[pyo3(signature = (
    source, *, format=None, key=None, keys=None, key_file=None, on_damage="raise", since=None, until=None, columns=None,
    batch_bytes=8388608, batch_rows=131072, max_record_bytes=2147483647, uuid_type="fixed", mmap=None,
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn open<'py>(
    source: &Bound<'py, PyAny>,
    format: Option<&str>,
    key: Option<&[u8]>,
    keys: Option<Vec<Vec<u8>>>,
    key_file: Option<PathBuf>,
    on_damage: &str,
    since: Option<&Bound<'py, PyAny>>,
    until: Option<&Bound<'py, PyAny>>,
    columns: Option<Vec<String>>,
    batch_bytes: usize,
    batch_rows: usize,
    max_record_bytes: u64,
    uuid_type: &str,
    mmap: Option<bool>,
) -> PyResult<Reader> {
    let py = source.py();
    let strict = match on_damage {
        "raise" => true,
        "skip" => false,
        other => {
            return Err(PyValueError::new_err(format!(
                "on_damage is \"raise\" or \"skip\", not {other:?}"
            )));
        }
    };
    let uuids = match uuid_type {
        "fixed" => UuidType::Fixed,
        "binary" => UuidType::Binary,
        "string" => UuidType::Text,
        other => {
            return Err(PyValueError::new_err(format!(
                "uuid_type is \"fixed\", \"binary\" or \"string\", not {other:?}"
            )));
        }
    };
    for (name, number) in [("batch_bytes", batch_bytes), ("batch_rows", batch_rows)] {
        if number == 0 {
            return Err(PyValueError::new_err(format!("{name} is at least 1")));
        }
    }
    let bounds = value::bounds(since, until)?;
    let (keys, origin) = key::keys(py, key, keys, key_file.as_deref())?;
    let named = format
        .map(by_name)
        .transpose()
        .map_err(|error| raise(py, error))?;
    let (source, path) = source::source(source, mmap)?;
    let options = Options {
        format: named,
        keys,
        strict,
        bounds,
        max_record_bytes,
        interrupt: Some(signals()),
        ..Options::default()
    };
    let format = py
        .detach(|| resolve(&*source, &options))
        .map_err(|error| raise(py, error))?;
    let options = Options {
        format: Some(format),
        ..options
    };
    let selection =
        Selection::new(format, columns.as_deref(), uuids).map_err(|error| raise(py, error))?;
    let limits = Limits {
        bytes: batch_bytes,
        rows: batch_rows,
    };

    let arguments = PyDict::new(py);
    arguments.set_item("format", format.name)?;
    arguments.set_item("key_file", key_file)?;
    arguments.set_item("on_damage", on_damage)?;
    arguments.set_item("since", since)?;
    arguments.set_item("until", until)?;
    arguments.set_item("columns", columns)?;
    arguments.set_item("batch_bytes", batch_bytes)?;
    arguments.set_item("batch_rows", batch_rows)?;
    arguments.set_item("max_record_bytes", max_record_bytes)?;
    arguments.set_item("uuid_type", uuid_type)?;
    arguments.set_item("mmap", mmap)?;
    let reopening = Reopening {
        path,
        origin,
        arguments: arguments.unbind(),
    };
    Ok(Reader::new(
        source, format, options, selection, limits, reopening,
    ))
}
