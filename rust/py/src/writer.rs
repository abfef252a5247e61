//! `create` and `Writer`.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use seglake::format::{self, Column, Format, IfExists, RecordId, WriteOptions, by_name};
use seglake::text::path as printable_path;
use seglake::verbs;

use crate::arrow::{import, is_arrow};
use crate::destination::Destination;
use crate::error::{damage_warning, of_row, raise, raise_new, warn};
use crate::exclusive::{Exclusive, InUse, forks};
use crate::field_in::FieldIn;
use crate::field_in_arrow::from_arrow;
use crate::fields::Fields;
use crate::formats::by_extension;
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::options::Named;
use crate::passes::about;
use crate::report::Report;
use crate::unclosed::{self, Unclosed};
use crate::value::scalar_to_python;
use crate::write_options::write_options;

with_keywords! {
/// Creates a file, or opens one to append to.
///
/// format: the format's name; None takes it from the extension of `path`. What does not concern it raises ValueError.
/// key: the key of the checksums, as in `open` (active, sealed). Of several the first is written with.
/// if_exists: what is done with a file that exists already. "error" raises FileExistsError; "append" goes on after its last
///     record, and walks it first (active, chunked, oplog, tfrecord); "overwrite" replaces it once the new one is complete (sealed, tenant).
/// zero_torn_tail: if an existing file ends in one record, chunk or message that was not written to its end, move that into
///     `FILE.OFFSET.quarantine` beside it, synced, and go on there. Otherwise it raises DamageError. All other damage at the end, and a
///     key that seems wrong, always do. FormatError where the file is probably of another format or program.
///     What does not belong into a chunked file's index is moved in the same way, and DamageWarning names each new file: an index
///     that listed more than the file has is the only list of what is missing.
/// options: a dict of what else the format declares; `formats()` has names, kinds, ranges and defaults. Oplogs: `dialect`, how
///     messages are laid out: "draft" (default), "draft-1.1" or "autobase". Active: `preallocate` (0), fill the file with zeros to
///     this many bytes beforehand, so that appending need not grow it. Sealed: `trailer`
///     (True), whether checksums are written after the data. Tenant: `version` (2), of the layout; `memory_bytes`
///     (67108864), how many bytes of messages are kept in memory before they are spilled to temporary files. Chunked:
///     `chunk_bytes` (262144) and `chunk_records` (65536), how much a chunk has at most, which is lost together where it is
///     damaged; `level` (1), of zstd; `index` (True), whether the index is written beside the file.
///
/// Raises OSError where the file cannot be written or another writer has it open; ValueError.
///
/// >>> with seglake.create("new.active") as orders:
/// ...     id = orders.write("order.paid", b"...")
/// >>> seglake.open("new.active").get(id).type
/// 'order.paid'
fn create(path: Destination; CreateArguments<'a> {
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    if_exists: &'a str = "error",
    zero_torn_tail: bool = false,
    options: Option<Named> = None,
}) -> Writer;
}

impl CreateArguments<'_> {
    fn create(self, path: Destination) -> PyResult<Writer> {
        Python::attach(|py| {
            let core = |error| raise(py, error);
            let format = match self.format {
                Some(name) => by_name(name).map_err(core)?,
                None => by_extension(path.as_ref(), "format")?,
            };
            let own = ["key", "if_exists", "zero_torn_tail"];
            let if_exists = self.if_exists.parse::<IfExists>().map_err(core)?;
            let mut options = WriteOptions::default().if_exists(if_exists);
            if self.zero_torn_tail {
                options = options.set("zero_torn_tail", true);
            }
            let given = self.options.as_ref();
            let options = write_options(py, format, given, &own, self.key, options)?;
            let writer = py.detach(|| format::create(format, path.as_ref(), &options));
            let next = match format.is_appended_to() {
                true => "if_exists=\"append\" goes on in it",
                false => "if_exists=\"overwrite\" replaces it",
            };
            let writer = writer.map_err(|error| raise_new(py, error, next))?;
            for kept in writer.quarantined() {
                let text = format!(
                    "{}: what was removed before appending to {} is here",
                    printable_path(kept),
                    printable_path(writer.path())
                );
                warn(py, damage_warning(py)?, text)?;
            }
            let fields = Fields::new(format.name, writer.columns());
            let open = Open {
                path: path.0,
                format,
                forks: forks(),
                writer: Exclusive::new(Some(writer)),
            };
            let open = unclosed::opened(py, open)?;
            Ok(Writer { fields, open })
        })
    }
}

/// Writes records to one file. Leaving the `with` block closes it.
///
/// Append-only formats (active, chunked, oplog, tfrecord) buffer: `flush` hands records to the operating system, `sync` to the disk, and
/// what was written until an exception leaves the `with` block is valid. Formats that are written whole (sealed, tenant)
/// appear under their name when they are closed, and not at all when the block is left by an exception.
///
/// >>> with seglake.create("new.chunks", format="chunked") as orders:
/// ...     orders.write(timestamp=0, value=b"first"), orders.write(timestamp=1, value=b"second")
/// (0, 1)
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Writer {
    fields: Fields,
    open: Arc<Open>,
}

/// The file.
struct Open {
    path: PathBuf,
    format: &'static Format,
    /// Of the process that opened it: a fork of that has no part in it.
    forks: u64,
    writer: Exclusive<Option<Box<dyn format::Writer>>>,
}

/// So many rows of a batch are written before signal handlers may run, and other threads use the writer.
const ROWS_AT_ONCE: usize = 1024;

fn closed() -> PyErr {
    PyValueError::new_err("the writer is closed")
}

/// What a record is found by, in Python: the value of its column, or a tuple of the values of several.
fn id_to_python(py: Python<'_>, id: Option<RecordId>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(id) = id else { return Ok(None) };
    if let [value] = id.values() {
        return scalar_to_python(py, value).map(Some);
    }
    let values = id.values().iter();
    let values = values.map(|value| scalar_to_python(py, value));
    let values = PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
    Ok(Some(values.into_any()))
}

impl Writer {
    /// Runs `work` on the open writer with the GIL released.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut (dyn format::Writer + 'static)) -> seglake::Result<T> + Send,
    ) -> PyResult<T> {
        let done = self
            .open
            .with(py, |open| open.as_deref_mut().map(work).transpose())?;
        done.ok_or_else(closed)
    }

    fn peek<T>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&(dyn format::Writer + 'static)) -> T,
    ) -> PyResult<T> {
        let writer = self.open.writer.hold_attached(py)?;
        writer.as_deref().map(look).ok_or_else(closed)
    }

    /// Ends writing with `work`, unless that fails.
    fn end(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut (dyn format::Writer + 'static)) -> seglake::Result<()> + Send,
    ) -> PyResult<()> {
        self.open.with(py, |open| {
            if let Some(writer) = open.as_deref_mut() {
                work(writer)?;
            }
            *open = None;
            Ok(())
        })
    }

    fn write_fields(&self, py: Python<'_>, fields: &[FieldIn<'_>]) -> PyResult<Option<RecordId>> {
        self.with(py, |writer| {
            let values: Vec<_> = fields.iter().map(FieldIn::value).collect();
            writer.write(&values)
        })
    }

    fn write_record_batch(
        &self,
        py: Python<'_>,
        batch: &RecordBatch,
        rows_before: usize,
    ) -> PyResult<()> {
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name().as_str());
        self.fields.check_names(names)?;
        let arrays: Vec<_> = self
            .fields
            .columns
            .iter()
            .map(|column| (column, batch.column_by_name(column.name)))
            .collect();
        let mut next = 0;
        while next < batch.num_rows() {
            let rows = next..batch.num_rows().min(next + ROWS_AT_ONCE);
            next = rows.end;
            py.detach(|| self.write_rows(&arrays, rows))
                .map_err(|(row, error)| of_row(py, rows_before + row, error))?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Writes these rows, to be called with the GIL released. Gives the row that is refused, if one is.
    fn write_rows(
        &self,
        arrays: &[(&Column, Option<&ArrayRef>)],
        rows: Range<usize>,
    ) -> Result<(), (usize, PyErr)> {
        let held = self.open.writer.hold();
        let mut held = held.map_err(|in_use| (rows.start, in_use.into()))?;
        let writer = held.as_deref_mut();
        let writer = writer.ok_or_else(|| (rows.start, closed()))?;
        let mut fields = Vec::with_capacity(arrays.len());
        for row in rows {
            fields.clear();
            for (column, array) in arrays {
                let field = match array {
                    Some(array) => from_arrow(*array, row, column.kind, column.name),
                    None => Ok(FieldIn::Null),
                };
                fields.push(field.map_err(|error| (row, error))?);
            }
            let values: Vec<_> = fields.iter().map(FieldIn::value).collect();
            if let Err(error) = writer.write(&values) {
                drop(held);
                return Err((row, Python::attach(|py| raise(py, error))));
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Writer {
    /// The file's path.
    ///
    /// >>> with seglake.create("new.active", format="active") as orders:
    /// ...     orders.path
    /// 'new.active'
    #[getter]
    fn path(&self) -> &OsStr {
        self.open.path.as_os_str()
    }

    /// The format's name.
    ///
    /// >>> with seglake.create("new.active", format="active") as orders:
    /// ...     orders.format
    /// 'active'
    #[getter]
    const fn format(&self) -> &'static str {
        self.fields.format
    }

    /// The usual extension of such files, without the dot.
    ///
    /// >>> with seglake.create("new.log", format="active") as orders:
    /// ...     orders.extension
    /// 'active'
    #[getter]
    fn extension(&self) -> &'static str {
        self.open.format.extension
    }

    /// The columns of which each record has a value of its own, in their order. The others follow from the rest or may be
    /// missing.
    ///
    /// >>> with seglake.create("new.active", format="active") as orders:
    /// ...     orders.required
    /// ['uuid', 'type', 'value']
    #[getter]
    fn required(&self) -> Vec<&'static str> {
        let columns = self.fields.columns.iter();
        let required = columns.filter(|column| !column.optional);
        required.map(|column| column.name).collect()
    }

    /// Where the next record will begin, in bytes from the start of the file; None where that is not known yet.
    ///
    /// >>> with seglake.create("new.active", format="active") as orders:
    /// ...     orders.position
    /// 0
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.peek(py, |writer| writer.position())
    }

    /// What the last record in the file is found by, as `write` returned it; None while there is none.
    ///
    /// >>> with seglake.create("new.chunks", format="chunked") as orders:
    /// ...     orders.last, orders.write(timestamp=0, value=b""), orders.last
    /// (None, 0, 0)
    #[getter]
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let last = self.peek(py, |writer| writer.last())?;
        id_to_python(py, last)
    }

    /// What was in the file when it was opened to append to; None where formats are written whole.
    ///
    /// >>> with seglake.create("new.active", format="active") as orders:
    /// ...     orders.found.records
    /// 0
    #[getter]
    fn found(&self, py: Python<'_>) -> PyResult<Option<Report>> {
        let format = self.open.format;
        let report = |found| Report(verbs::Report::from_summary(format, found));
        self.peek(py, |writer| writer.found().cloned().map(report))
    }

    /// Whether the writer is closed.
    ///
    /// >>> with seglake.create("new.active", format="active") as orders:
    /// ...     pass
    /// >>> orders.closed
    /// True
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.peek(py, |_| ()).is_err()
    }

    /// Writes one record: a Record, a mapping with the same names as `Record.to_dict` gives, or the fields. Returns what it
    /// will be found by: its UUID (active, sealed), offset (chunked), sequence number (oplog),
    /// position (tfrecord), or partition, tenant and index (tenant).
    ///
    /// Fields go by their names. Of active and sealed files type and value may come first without: `write(type, value, *, timestamp=None,
    /// uuid=None)`, as `SegmentLog.write` has them. The UUID is then made of `timestamp`, an aware datetime or microseconds since 1970, or of
    /// the present time.
    ///
    /// What follows from the rest may be left out: `uuid`, `timestamp`, `offset`, `index`, `seq`. `type` and `tenant` as text are taken as
    /// records show them. `value` as text is written as UTF-8. A `partition` and `tenant` without a `value` add a tenant that has no
    /// messages.
    ///
    /// Raises ValueError for what the format cannot hold (UUIDs or offsets that do not ascend, lengths, unknown fields), and
    /// TypeError: nothing is written then. Raises OSError where a full buffer cannot be written.
    ///
    /// >>> with seglake.create("new.tenant") as orders:
    /// ...     orders.write(partition=0, tenant="acme", value="first")
    /// (0, 'acme', 0)
    #[pyo3(signature = (*record, **fields))]
    fn write<'py>(
        &self,
        py: Python<'py>,
        record: &Bound<'py, PyTuple>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let fields = self.fields.of_call(record, fields)?;
        let id = self.write_fields(py, &fields)?;
        id_to_python(py, id)
    }

    /// Writes many records and returns how many: an Arrow table, record batch or stream, or an iterable of Records, mappings with the names
    /// of `write`, or (active, sealed) tuples of type and value. Columns that may be left out in `write` may be missing. `path`, `position`
    /// and `cause` may be there too, and are not written.
    ///
    /// Raises RowError for what `write` refuses: its `row` is the number of the row, and those before it are written. Where the iterable fails,
    /// raises its error, and `last` says which record was written last. Raises ValueError for other columns.
    ///
    /// >>> with seglake.create("new.active") as orders:
    /// ...     orders.write_batch([("order.created", b"1"), {"type": "order.paid", "value": b"2"}])
    /// 2
    #[pyo3(signature = (records, /))]
    fn write_batch(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut rows = 0;
        if !is_arrow(records)? {
            for record in records.try_iter()? {
                let fields = record.and_then(|record| self.fields.of_row(&record));
                let written = fields.and_then(|fields| self.write_fields(py, &fields));
                written.map_err(|error| of_row(py, rows, error))?;
                rows += 1;
                if rows.is_multiple_of(ROWS_AT_ONCE) {
                    py.check_signals()?;
                }
            }
            return Ok(rows);
        }
        for batch in import(records)? {
            let batch = batch.map_err(|error| PyValueError::new_err(format!("Arrow: {error}")))?;
            self.write_record_batch(py, &batch, rows)?;
            rows += batch.num_rows();
        }
        Ok(rows)
    }

    /// Hands all records to the operating system. After an OSError it can be called again.
    ///
    /// >>> with seglake.create("new.active", format="active") as orders:
    /// ...     id = orders.write(type="order.paid", value=b"")
    /// ...     orders.flush()
    /// ...     seglake.verify("new.active").records
    /// 1
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| writer.flush())
    }

    /// Hands all records to the disk. After an OSError the file must be opened again.
    ///
    /// >>> with seglake.create("new.active", format="active") as orders:
    /// ...     id = orders.write(type="order.paid", value=b"")
    /// ...     orders.sync()
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| writer.sync())
    }

    /// Completes and closes the file. Closing twice does nothing; after an OSError it can be called again.
    ///
    /// >>> orders = seglake.create("new.active", format="active")
    /// >>> orders.close()
    /// >>> orders.closed
    /// True
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |writer| writer.close())
    }

    /// Closes the file without completing it: append-only formats keep what was written, the others leave nothing.
    ///
    /// >>> import os
    /// >>> orders = seglake.create("new.sealed", format="sealed")
    /// >>> orders.abandon()
    /// >>> os.path.exists("new.sealed")
    /// False
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |writer| writer.abandon())
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
        drop((exc, traceback));
        match exc_type {
            None => self.close(py),
            Some(_) => self.abandon(py),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = if self.closed(py) { ", closed" } else { "" };
        format!(
            "Writer({}{state})",
            about(Some(&self.open.path), self.fields.format)
        )
    }
}

/// A writer that nobody closed is abandoned.
impl Unclosed for Open {
    fn name(&self) -> String {
        format!("writer of {}", seglake::text::path(&self.path))
    }

    fn keep(&self, py: Python<'_>) -> Option<PyResult<()>> {
        self.left(py, |open| match open.as_deref_mut() {
            Some(writer) if self.format.is_appended_to() => writer.flush().map(Some),
            Some(_) => Err(seglake::Error::Usage(
                "the file is there when it is closed: close the writer, or use `with`".to_owned(),
            )),
            None => Ok(None),
        })
    }

    fn end(&self, py: Python<'_>) -> Option<PyResult<()>> {
        self.left(py, |open| {
            open.take().map(|mut writer| writer.abandon()).transpose()
        })
    }
}

impl Open {
    /// Runs `work` on the writer, which is None if it is closed, with the GIL released.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Option<Box<dyn format::Writer>>) -> seglake::Result<T> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| Ok::<_, InUse>(work(&mut *self.writer.hold()?)))?;
        done.map_err(|error| raise(py, error))
    }

    /// Does what is left to do with the writer, unless it is another process's.
    fn left(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Option<Box<dyn format::Writer>>) -> seglake::Result<Option<()>> + Send,
    ) -> Option<PyResult<()>> {
        let is_own = self.forks == forks();
        is_own.then(|| self.with(py, work).transpose()).flatten()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        unclosed::end(self);
    }
}
