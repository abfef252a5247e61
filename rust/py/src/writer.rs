//! `create` and `Writer`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Mutex;

use arrow_array::RecordBatch;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyResourceWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::MutexExt;
use pyo3::types::PyMapping;
use seglake::format::{active, by_name};
use seglake::text::unescape;
use uuid::Uuid;

use crate::arrow::import;
use crate::error::raise;
use crate::key;
use crate::reader::lock;
use crate::record::Record;
use crate::report::Report;
use crate::rows_in::BytesColumn;
use crate::value::{uuid_from_python, uuid_to_python};

/// Creates a segment, or opens one to append to.
///
/// format: the format's name.
/// key, key_file: the key of the checksums, as in `open`.
/// preallocate: fill the file with zeros to this many bytes beforehand, so that appending need not grow it.
/// append: go on behind the last record if the file exists; it is walked first. Otherwise an existing file raises
///     FileExistsError.
/// zero_torn_tail: if an existing file ends in a torn tail, overwrite that with zeros, in place, and go on there. Otherwise
///     it raises DamageError. Damage of other kinds at the end, and a key that seems wrong, always do.
///
/// Raises OSError where the file cannot be written or another writer has it open; ValueError.
#[pyfunction]
#[pyo3(signature = (path, *, format, key=None, key_file=None, preallocate=0, append=false, zero_torn_tail=false))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn create(
    py: Python<'_>,
    path: PathBuf,
    format: &str,
    key: Option<&[u8]>,
    key_file: Option<PathBuf>,
    preallocate: u64,
    append: bool,
    zero_torn_tail: bool,
) -> PyResult<Writer> {
    by_name(format).map_err(|error| raise(py, error))?;
    let (keys, _) = key::keys(py, key, None, key_file.as_deref())?;
    let key = keys.first().copied().unwrap_or_default();
    let options = active::WriterOptions {
        key,
        preallocate,
        append,
        zero_torn_tail,
    };
    let writer = py
        .detach(|| active::Writer::open(&path, &options))
        .map_err(|error| raise(py, error))?;
    Ok(Writer {
        path,
        writer: Mutex::new(Some(writer)),
    })
}

/// Appends records to a segment. Records are buffered: `flush` hands them to the operating system, `sync` to the disk, and
/// leaving the `with` block closes the file, also when it is left by an exception: what was written until then is valid.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Writer {
    path: PathBuf,
    writer: Mutex<Option<active::Writer>>,
}

/// Bytes of an argument: text as UTF-8, or any buffer.
enum Bytes {
    Text(PyBackedStr),
    Shared(PyBackedBytes),
    Copied(Vec<u8>),
}

impl Bytes {
    fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if let Ok(text) = object.extract() {
            return Ok(Self::Text(text));
        }
        if let Ok(bytes) = object.extract() {
            return Ok(Self::Shared(bytes));
        }
        match PyBuffer::<u8>::get(object) {
            // A buffer that somebody may write to is copied while the GIL is held.
            Ok(buffer) => Ok(Self::Copied(buffer.to_vec(object.py())?)),
            Err(_) => Err(PyTypeError::new_err(format!(
                "{name} must be str or bytes, not {}",
                object.get_type().qualname()?
            ))),
        }
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Shared(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// A type's bytes: text is as `Record.type` shows it, so a backslash in it begins `\xNN`.
fn type_from_text(text: &str) -> PyResult<Cow<'_, [u8]>> {
    if !text.contains('\\') {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let unescaped = unescape(text).map(Cow::Owned);
    unescaped.ok_or_else(|| PyValueError::new_err(format!(r"in a type given as text a backslash begins \xNN: give bytes, or \x5c for a backslash (in {text:?})")))
}

fn uuid_from_bytes(bytes: &[u8], is_text: bool) -> Option<Uuid> {
    if is_text {
        Uuid::try_parse_ascii(bytes).ok()
    } else {
        Uuid::from_slice(bytes).ok()
    }
}

impl Writer {
    /// Runs `work` on the open writer with the GIL released.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut active::Writer) -> seglake::Result<T> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| lock(&self.writer).as_mut().map(work));
        done.ok_or_else(|| PyValueError::new_err("the writer is closed"))?
            .map_err(|error| raise(py, error))
    }

    fn peek<T>(&self, py: Python<'_>, look: impl FnOnce(&active::Writer) -> T) -> PyResult<T> {
        let writer = self
            .writer
            .lock_py_attached(py)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        writer
            .as_ref()
            .map(look)
            .ok_or_else(|| PyValueError::new_err("the writer is closed"))
    }

    fn append(
        &self,
        py: Python<'_>,
        uuid: Option<[u8; 16]>,
        type_: &[u8],
        value: &[u8],
    ) -> PyResult<Uuid> {
        self.with(py, |writer| {
            let uuid =
                uuid.map_or_else(|| writer.next_uuid(), |uuid| Ok(Uuid::from_bytes(uuid)))?;
            writer.append(&uuid, type_, value)?;
            Ok(uuid)
        })
    }

    fn write_record_batch(
        &self,
        py: Python<'_>,
        batch: &RecordBatch,
        rows_before: usize,
    ) -> PyResult<()> {
        let schema = batch.schema();
        let known = ["uuid", "timestamp", "type", "value", "path", "position"];
        if let Some(field) = schema
            .fields()
            .iter()
            .find(|field| !known.contains(&field.name().as_str()))
        {
            return Err(PyValueError::new_err(format!(
                "active records have no column {:?}: drop it first, for it would be lost",
                field.name()
            )));
        }
        let (uuids, types, values) = (
            BytesColumn::of(batch, "uuid")?,
            BytesColumn::of(batch, "type")?,
            BytesColumn::of(batch, "value")?,
        );
        let (Some(types), Some(values)) = (types, values) else {
            return Err(PyValueError::new_err(
                "the columns type and value are needed",
            ));
        };
        if uuids.is_none() && schema.column_with_name("timestamp").is_some() {
            return Err(PyValueError::new_err(
                "timestamp comes from uuid: give a column uuid too (seglake.uuid6), or drop timestamp",
            ));
        }
        for row in 0..batch.num_rows() {
            let failed =
                |what: &str| PyValueError::new_err(format!("row {}: {what}", rows_before + row));
            let uuid = match &uuids {
                Some(uuids) => {
                    let bytes = uuids.get(row).ok_or_else(|| failed("uuid is null"))?;
                    let uuid = uuid_from_bytes(bytes, uuids.is_text())
                        .ok_or_else(|| failed("uuid is neither 16 bytes nor a UUID's text"))?;
                    Some(uuid.into_bytes())
                }
                None => None,
            };
            let type_ = types.get(row).ok_or_else(|| failed("type is null"))?;
            let value = values.get(row).ok_or_else(|| failed("value is null"))?;
            let type_ = match std::str::from_utf8(type_) {
                Ok(text) if types.is_text() => type_from_text(text)?,
                _ => Cow::Borrowed(type_),
            };
            self.append(py, uuid, &type_, value).inspect_err(|error| {
                let note = format!("row {} of what was given", rows_before + row);
                let _ = error.value(py).call_method1("add_note", (note,));
            })?;
        }
        Ok(())
    }
}

#[pymethods]
impl Writer {
    /// The file's path.
    #[getter]
    fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// Where the next record will begin, in bytes from the start of the file.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        self.peek(py, active::Writer::position)
    }

    /// The last UUID in the segment; None while it is empty.
    #[getter]
    fn last_uuid<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let last = self.peek(py, active::Writer::last_uuid)?;
        last.map(|uuid| uuid_to_python(py, uuid.as_bytes()))
            .transpose()
    }

    /// What was in the file when it was opened.
    #[getter]
    fn found(&self, py: Python<'_>) -> PyResult<Report> {
        self.peek(py, |writer| Report(writer.found().clone()))
    }

    /// Whether the writer is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.peek(py, |_| ()).is_err()
    }

    /// Appends one record and returns its UUID: a Record, a mapping with the same names, or the fields. Without a `uuid` one
    /// of the present time is made, behind the last.
    ///
    /// `type` as text is taken as `Record.type` shows it; `type_bytes` in a mapping goes before `type`. `value` as text is
    /// written as UTF-8.
    ///
    /// Raises ValueError for a UUID that does not ascend or is not of version 6, a type of more than 255 bytes or a value of
    /// more than 2**32-1: nothing is appended then. Raises OSError where a full buffer cannot be written.
    #[pyo3(signature = (record=None, /, *, uuid=None, r#type=None, value=None))]
    fn write<'py>(
        &self,
        py: Python<'py>,
        record: Option<&Bound<'py, PyAny>>,
        uuid: Option<Bound<'py, PyAny>>,
        r#type: Option<Bound<'py, PyAny>>,
        value: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (uuid, type_, value) = match record {
            None => (uuid, r#type, value),
            Some(_) if uuid.is_some() || r#type.is_some() || value.is_some() => {
                return Err(PyTypeError::new_err(
                    "give a record or its fields, not both",
                ));
            }
            Some(record) if record.is_instance_of::<Record>() => {
                let field = |name: &str| record.getattr(name).map(Some);
                (field("uuid")?, field("type_bytes")?, field("value")?)
            }
            Some(record) => {
                let mapping = record
                    .cast::<PyMapping>()
                    .map_err(|_| PyTypeError::new_err("record must be a Record or a mapping"))?;
                let field = |name: &str| {
                    if mapping.contains(name)? {
                        mapping.get_item(name).map(Some)
                    } else {
                        Ok(None)
                    }
                };
                (
                    field("uuid")?,
                    field("type_bytes")?.map_or_else(|| field("type"), |bytes| Ok(Some(bytes)))?,
                    field("value")?,
                )
            }
        };
        let uuid = uuid
            .filter(|uuid| !uuid.is_none())
            .map(|uuid| uuid_from_python(&uuid))
            .transpose()?;
        let (Some(type_), Some(value)) = (type_, value) else {
            return Err(PyTypeError::new_err("type and value are needed"));
        };
        let (type_, value) = (Bytes::of(&type_, "type")?, Bytes::of(&value, "value")?);
        let type_ = match &type_ {
            Bytes::Text(text) => type_from_text(text)?,
            bytes => Cow::Borrowed(&**bytes),
        };
        let uuid = self.append(py, uuid, &type_, &value)?;
        uuid_to_python(py, uuid.as_bytes())
    }

    /// Appends the records of an Arrow table, record batch or stream and returns how many. Its columns are `type`, `value`
    /// and, unless UUIDs are to be made, `uuid` (16 bytes, or text); `timestamp`, `path` and `position` may be there too.
    ///
    /// Raises ValueError for other columns, nulls, and what `write` refuses; its note names the row, and those before it are
    /// appended.
    #[pyo3(signature = (data, /))]
    fn write_batch(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut rows = 0;
        for batch in import(data)? {
            let batch = batch.map_err(|error| PyValueError::new_err(format!("Arrow: {error}")))?;
            self.write_record_batch(py, &batch, rows)?;
            rows += batch.num_rows();
            py.check_signals()?;
        }
        Ok(rows)
    }

    /// Hands all records to the operating system. After an OSError it can be called again.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, active::Writer::flush)
    }

    /// Hands all records to the disk. After an OSError the file must be opened again.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, active::Writer::sync)
    }

    /// Flushes and closes the file. Closing twice does nothing; after an OSError it can be called again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let flushed = py.detach(|| {
            let mut writer = lock(&self.writer);
            let flushed = writer.as_mut().map_or(Ok(()), active::Writer::flush);
            if flushed.is_ok() {
                *writer = None;
            }
            flushed
        });
        flushed.map_err(|error| raise(py, error))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.peek(slf.py(), |_| ())?;
        Ok(slf)
    }

    #[pyo3(signature = (exc_type, exc, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<Py<PyAny>>,
        exc: Option<Py<PyAny>>,
        traceback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        drop((exc_type, exc, traceback));
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("Writer({:?})", self.path())
    }
}

impl Drop for Writer {
    /// A writer that nobody closed: flushed all the same, with a warning, as Python's own files do.
    fn drop(&mut self) {
        let Some(mut writer) = lock(&self.writer).take() else {
            return;
        };
        Python::attach(|py| {
            let text = format!("unclosed writer of {}", self.path.display());
            let text = std::ffi::CString::new(text).unwrap_or_default();
            if let Err(error) = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &text, 1) {
                error.write_unraisable(py, None);
            }
            if let Err(error) = writer.flush() {
                raise(py, error).write_unraisable(py, None);
            }
        });
    }
}
