//! `SegmentLog`: a durable log.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use seglake::columns::{Limits, Selection, UuidType};
use seglake::format::{ColumnKind, Dialect, Filter, Options, active};
use seglake::store::{LogReader, Retention, SegmentLog as Log, TailFrom};
use seglake::verbs::Report;
use uuid::Uuid;

use crate::arrow;
use crate::batches::Batches;
use crate::destination::Destination;
use crate::error::{detached, raise};
use crate::exclusive::forks;
use crate::field_in::{FieldIn, from_python, uuid_field};
use crate::fields::Fields;
use crate::filters::Filters;
use crate::interrupt;
use crate::key::{KeyArgument, keys};
use crate::listed::mark_to_python;
use crate::log_batch::{NewRecord, write_records};
use crate::log_facts::{
    recovery_to_python, segment_to_python, unread_to_python, warn_of_clock, warn_of_unread,
};
use crate::log_options::{duration, log_options};
use crate::names;
use crate::numbers::{self, quantity};
use crate::open;
use crate::passes::Shared;
use crate::reader::{no_array, no_length};
use crate::record::{Record, RecordMaker};
use crate::records::Records;
use crate::tail::{Tail, tail_from};
use crate::unclosed::{self, Unclosed};
use crate::uuids;

/// A durable log: a folder of segments, one of which is written. Use it in a `with` block, or call `close`.
///
/// One process writes, with any number of threads; any number of processes read. Every segment is a file of its own: an active
/// segment, which becomes a sealed one in the background when it is full. Names that begin with `_` are the log's own.
///
/// path: the folder; one that does not exist is made.
/// key: the key of the checksums, as in `open`; one.
/// segment_bytes: a segment ends before it has more bytes. None is 64 MiB.
/// segment_age: a segment ends before a record that is later than its first one by so many seconds, a timedelta, or text such as
///     "12h", going by their UUIDs. All durations may be given so.
/// max_clock_ahead: a record whose time is so much ahead of the clock is refused: all later ones would get its time. None is a day.
/// durability: what `write` waits for. "fsync": the record is on the disk, and survives a loss of power; threads that write at the
///     same time share a sync. "flush": the operating system has it, and it survives the end of the process. "none": it may be
///     in the memory of the process alone. None is "fsync".
/// mark_interval: so long after a write the mark survives a loss of power as well: damage before it is never taken for the end of the log.
///     Readers see it at once. None is 0.1.
/// retention: a dict of what is removed, whenever a segment is sealed: `age`, sealed and frozen segments that are older, such as
///     "7d"; `bytes`, the oldest ones while all of these together have more bytes.
/// seal: whether segments that are full are sealed. None is True.
/// protect: a profile as in `seglake.protect`, such as "128+8": each sealed segment gets a parity sidecar, from which `repair` restores
///     damaged bytes. Those that have none yet get one in the background. None: no sidecars are made.
/// on_damage: what reading the log does at damage. "raise" raises DamageError after the records before it, and FormatError for a segment that
///     is missing; "skip" goes on after it, and warns (DamageWarning).
/// readonly: open the log to read, beside its writer. Nothing is locked or changed. Of the others only `key` and `on_damage` can be given
///     then.
///
/// Raises OSError where the folder cannot be used, or another writer has it open (the error names its process); FormatError
/// where segments are missing, and for a folder of other files; WrongKeyError where nothing checks under the key; FileNotFoundError with
/// readonly=True. Warns (ClockAheadWarning) where the last record is ahead of the clock, which `clock_ahead` tells.
///
/// >>> with seglake.SegmentLog("new") as log:
/// ...     uuid = log.write("order.paid", b"...")
/// ...     [record.type for record in log]
/// ['order.paid']
#[pyclass(frozen, module = "seglake")]
pub(crate) struct SegmentLog {
    open: Arc<Open>,
    reader: LogReader,
    fields: Fields,
}

/// The log of this process.
struct Open {
    path: PathBuf,
    writer: Option<Log>,
    /// Of the process that opened it: a fork of that has no part in it.
    forks: u64,
    is_closed: OnceLock<()>,
}

fn closed() -> PyErr {
    PyValueError::new_err("the log is closed")
}

impl SegmentLog {
    fn check_open(&self) -> PyResult<()> {
        match self.open.is_closed.get() {
            None => Ok(()),
            Some(()) => Err(closed()),
        }
    }

    /// The log, to be written to.
    pub(crate) fn writer(&self) -> PyResult<&Log> {
        self.check_open()?;
        self.open.writer.as_ref().ok_or_else(|| {
            PyValueError::new_err(
                "the log is open with readonly=True: open it without that to write",
            )
        })
    }

    /// Warns of what is not read. Of a log that is being written here nothing is left out for good.
    fn warn_of_unread(&self, py: Python<'_>) -> PyResult<()> {
        if self.open.writer.is_some() {
            return Ok(());
        }
        let unread = detached(py, || self.reader.unread())?;
        match unread {
            Some(unread) => warn_of_unread(py, &self.open.path, &unread),
            None => Ok(()),
        }
    }

    /// The log, to be read now. Warns of what is not read.
    fn reading(&self, py: Python<'_>, on_damage: Option<&str>) -> PyResult<LogReader> {
        self.check_open()?;
        self.warn_of_unread(py)?;
        Ok(match on_damage {
            Some(name) => self.reader.on_damage(open::on_damage(name)?),
            None => self.reader.anew(),
        })
    }

    fn records(
        &self,
        py: Python<'_>,
        filter: &Filter,
        on_damage: Option<&str>,
    ) -> PyResult<Records> {
        let reader = self.reading(py, on_damage)?;
        let walk = detached(py, || reader.walk(filter))?;
        let report = Report::new(&active::FORMAT, Some(&self.open.path), 0);
        let (name, columns) = (active::FORMAT.name, self.reader.columns());
        let lenient = !reader.options().strict;
        let shared = Shared::of_log(reader);
        Ok(Records::new(walk, name, columns, report, lenient, shared))
    }

    /// The records that were looked up.
    fn found(&self, py: Python<'_>, uuids: &[Uuid]) -> PyResult<Vec<Option<Py<Record>>>> {
        self.check_open()?;
        let hits = detached(py, || self.reader.hits(uuids))?;
        if hits.places.contains(&None) {
            self.warn_of_unread(py)?;
        }
        RecordMaker::new(active::FORMAT.name, self.reader.columns()).found(py, &hits)
    }

    fn selection(
        &self,
        py: Python<'_>,
        names: Option<&[String]>,
        uuids: UuidType,
    ) -> PyResult<Selection> {
        let selection = Selection::new(&active::FORMAT, self.reader.options(), names, uuids);
        selection.map_err(|error| raise(py, error))
    }
}

#[pymethods]
impl SegmentLog {
    #[new]
    #[pyo3(signature = (path, *, key=None, on_damage="raise", readonly=false, **of_writer))]
    #[pyo3(
        text_signature = "(path, *, key=None, segment_bytes=None, segment_age=None, max_clock_ahead=None, durability=None, mark_interval=None, retention=None, seal=None, protect=None, on_damage=\"raise\", readonly=False)"
    )]
    fn new(
        py: Python<'_>,
        path: Destination,
        key: Option<KeyArgument>,
        on_damage: &str,
        readonly: bool,
        of_writer: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let on_damage = open::on_damage(on_damage)?;
        let [key] = *keys(py, key.as_ref())? else {
            return Err(PyValueError::new_err("a log has one key: give one"));
        };
        let options = log_options(of_writer, readonly)?.key(key);
        let (writer, reader) = detached(py, || {
            let writer = (!readonly).then(|| Log::open(&path, options)).transpose()?;
            // Whatever can be written is read.
            let reading = Options::default().keys(vec![key]).record_bytes(u64::MAX);
            Ok((
                writer,
                LogReader::open(&path, reading.on_damage(on_damage))?,
            ))
        })?;
        let ahead = match &writer {
            Some(writer) => writer.clock_ahead(),
            None => detached(py, || reader.clock_ahead())?,
        };
        if let Some(ahead) = ahead {
            warn_of_clock(py, &path.0, ahead)?;
        }
        let open = Open {
            path: path.0,
            writer,
            forks: forks(),
            is_closed: OnceLock::new(),
        };
        Ok(Self {
            open: unclosed::opened(py, open)?,
            fields: Fields::new(active::FORMAT.name, reader.columns()),
            reader,
        })
    }

    /// The log's folder.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.path
    /// 'log'
    #[getter]
    fn path(&self) -> &OsStr {
        self.open.path.as_os_str()
    }

    /// Whether the log is open to read only.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.readonly
    /// True
    #[getter]
    fn readonly(&self) -> bool {
        self.open.writer.is_none()
    }

    /// Whether the log is closed.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.closed
    /// False
    #[getter]
    fn closed(&self) -> bool {
        self.open.is_closed.get().is_some()
    }

    /// What was put in order when the log was opened, since its last writer did not close it: a list of LogRecovery.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     log.recovered
    /// []
    #[getter]
    fn recovered<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let steps = self.open.writer.iter().flat_map(Log::recovered);
        steps.map(|step| recovery_to_python(py, step)).collect()
    }

    /// Appends one record and waits as `durability` says. Returns its UUID.
    ///
    /// type: text, shown as records show it, or bytes; at most 255 bytes.
    /// value: bytes, or text as UTF-8; at most 4294967295 bytes.
    /// timestamp: an aware datetime or microseconds since 1970, of which the UUID is made; None is the present time.
    /// uuid: a UUID of version 6 that is greater than all in the log, instead of one that is made.
    ///
    /// Raises ValueError for what the log cannot hold, and OSError where it cannot be written, such as to a full disk: the record is not in
    /// the log then. Raises OutcomeUnknownError where a sync failed: the record may be in the log or not, and nothing more can be written.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     uuid = log.write("order.paid", b"...")
    /// ...     log.get(uuid).value
    /// b'...'
    #[pyo3(signature = (r#type, value, *, timestamp=None, uuid=None))]
    fn write(
        &self,
        py: Python<'_>,
        r#type: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        timestamp: Option<&Bound<'_, PyAny>>,
        uuid: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Uuid> {
        let optional = |given: Option<&_>, kind, name| match given {
            Some(given) => from_python(given, kind, name),
            None => Ok(FieldIn::Null),
        };
        let fields = [
            optional(uuid, ColumnKind::Uuid, "uuid")?,
            optional(timestamp, ColumnKind::Timestamp, "timestamp")?,
            from_python(r#type, ColumnKind::Text, "type")?,
            from_python(value, ColumnKind::Binary, "value")?,
        ];
        let record = NewRecord::new(fields)?;
        let writer = self.writer()?;
        let record = record.parts();
        detached(py, || {
            writer.write_as(record.uuid, record.type_, record.value)
        })
    }

    /// Appends many records and waits once for all of them. Returns their UUIDs, a sequence that makes each one when it is
    /// asked for.
    ///
    /// records: an Arrow table, record batch or stream with the columns `type` and `value`, and perhaps `uuid` or `timestamp`; or an iterable
    ///     of Records, mappings with these names, or tuples of type and value.
    ///
    /// The batch is not a transaction: after a crash some of its records may be in the log. Raises RowError for what `write` refuses: its `row`
    /// is the number of the row, and those before it are in the log. Raises PartialWriteError where only the first records could be written,
    /// such as to a full disk, and OutcomeUnknownError as `write` does: the attribute `written` of both has the UUIDs of those that are in the
    /// log. An Arrow stream is written batch by batch, and an iterable in pieces of 16 MiB: where it fails after the first, that is a
    /// PartialWriteError as well. Otherwise raises what `write` or the iterable raises, and none of the records is in the log.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     len(log.write_batch([("order.created", b"1"), ("order.paid", b"2")]))
    /// 2
    #[pyo3(signature = (records, /))]
    fn write_batch<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let written = write_records(py, self.writer()?, &self.fields, records)?;
        uuids::uuids(py, &written)
    }

    /// Makes all records that were written survive a loss of power, and visible to readers. Raises what `write` raises.
    ///
    /// >>> with seglake.SegmentLog("new", durability="none") as log:
    /// ...     uuid = log.write("order.paid", b"...")
    /// ...     log.sync()
    /// ...     log.synced.last == uuid
    /// True
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.writer()?;
        detached(py, || writer.sync())
    }

    /// Ends the active segment: the next record begins another, and the old one is sealed. Raises what `write` raises.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     for value in "ab":
    /// ...         uuid = log.write("order.paid", value)
    /// ...         log.roll()
    /// ...     len(log.segments())
    /// 2
    fn roll(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.writer()?;
        detached(py, || writer.roll())
    }

    /// Waits until all segments that are full are sealed, with `protect` until sealed ones have their sidecar, and those that `retention`
    /// names are removed. Raises what hindered sealing or protecting, which is tried again when the log is opened next, or removing,
    /// which is tried again when the next segment ends.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     uuid = log.write("order.paid", b"...")
    /// ...     log.roll()
    /// ...     log.wait_sealed()
    /// ...     log.segments()[0].kind
    /// 'sealed'
    fn wait_sealed(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.writer()?;
        let interrupt = interrupt::signals();
        detached(py, || writer.wait_sealed_unless(Some(&interrupt)))
    }

    /// Removes the oldest sealed and frozen segments and returns them as a list of LogSegment. The newest segment always stays.
    ///
    /// age: those that are older than so many seconds, a timedelta, or text such as "7d".
    /// bytes: the oldest ones, while all of these together have more bytes.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     len(log.retain(bytes=1_000_000))
    /// 0
    #[pyo3(signature = (*, age=None, bytes=None))]
    fn retain<'py>(
        &self,
        py: Python<'py>,
        age: Option<Bound<'py, PyAny>>,
        bytes: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let bytes = bytes
            .map(|bytes| quantity("bytes", 0, &bytes))
            .transpose()?;
        let age = age.map(|age| duration("age", &age)).transpose()?;
        let retention = Retention::default().age(age).bytes(bytes);
        let writer = self.writer()?;
        let removed = detached(py, || writer.retain(&retention))?;
        removed
            .iter()
            .map(|own| segment_to_python(py, own))
            .collect()
    }

    /// Makes a folder with what is on the disk now, which is a log of its own: it can be read and written, and this log as well. Sealed
    /// segments are linked where that is possible, so that they take no room until retention removes them here.
    ///
    /// path: the folder, which does not exist yet. It appears when all of it is on the disk.
    ///
    /// Raises FileExistsError where there is something, and OSError where it cannot be written.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.snapshot("taken")
    /// >>> len(seglake.SegmentLog("taken", readonly=True).segments())
    /// 2
    #[pyo3(signature = (path, /))]
    fn snapshot(&self, py: Python<'_>, path: Destination) -> PyResult<()> {
        self.check_open()?;
        self.warn_of_unread(py)?;
        detached(py, || self.reader.snapshot(&path))
    }

    /// Makes all records survive a loss of power and closes the log. Segments that are full are sealed before this returns. Closing twice
    /// does nothing. Raises what `write` raises; the log is closed all the same. Ctrl-C interrupts the wait for segments to be sealed:
    /// nothing more is written then, but other writers are kept out until `close` is called again and waits on, or the log is freed.
    ///
    /// >>> log = seglake.SegmentLog("new")
    /// >>> log.close()
    /// >>> log.closed
    /// True
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.open.close(py)
    }

    /// The segments that are there now, in order, as a list of LogSegment.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> [(segment.sequence, segment.kind) for segment in log.segments()]
    /// [(1, 'sealed'), (2, 'active')]
    fn segments<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.check_open()?;
        let segments = detached(py, || self.reader.segments())?;
        segments
            .iter()
            .map(|own| segment_to_python(py, own))
            .collect()
    }

    /// How far the log is known to be on the disk, as a LogMark; None while nothing is.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.synced.sequence
    /// 2
    #[getter]
    fn synced<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let synced = detached(py, || self.reader.synced())?;
        synced.map(|mark| mark_to_python(py, mark)).transpose()
    }

    /// How far the last record is ahead of the clock, as a timedelta: records of the present time get times after it. None by less than a
    /// second.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.clock_ahead is None
    /// True
    #[getter]
    fn clock_ahead(&self, py: Python<'_>) -> PyResult<Option<Duration>> {
        match &self.open.writer {
            Some(writer) => Ok(py.detach(|| writer.clock_ahead())),
            None => detached(py, || self.reader.clock_ahead()),
        }
    }

    /// What readers leave out, as a LogUnread, since it is after the synced mark and no writer has the log open; None if that is nothing.
    /// Reading such a log warns of it (UnreadWarning).
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.unread is None
    /// True
    #[getter]
    fn unread<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let unread = detached(py, || self.reader.unread())?;
        unread
            .map(|unread| unread_to_python(py, &self.open.path, &unread))
            .transpose()
    }

    /// Finds one record by its UUID; None if it is not in the log. Raises DamageError where damage may have been it.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.get(log.synced.last).type
    /// 'order.shipped'
    #[pyo3(signature = (uuid, /))]
    fn get(&self, py: Python<'_>, uuid: &Bound<'_, PyAny>) -> PyResult<Option<Py<Record>>> {
        let uuid = Uuid::from_bytes(uuid_field(uuid, "uuid")?);
        Ok(self.found(py, &[uuid])?.pop().flatten())
    }

    /// Several records by their UUIDs, None where there is none, in the order in which they are asked for. Each segment is opened once.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> [record and record.type for record in log.get_many([log.synced.last, seglake.uuid6()])]
    /// ['order.shipped', None]
    #[pyo3(signature = (uuids, /))]
    fn get_many(
        &self,
        py: Python<'_>,
        uuids: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Option<Py<Record>>>> {
        let uuids = uuids.try_iter()?;
        let uuids = uuids.map(|uuid| Ok(Uuid::from_bytes(uuid_field(&uuid?, "uuid")?)));
        self.found(py, &uuids.collect::<PyResult<Vec<_>>>()?)
    }

    /// The records that meet all filters, as an iterator. Segments that cannot have any are not opened.
    ///
    /// filters: as in `open`.
    /// on_damage: as that of the log, or another one here.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> [record.value for record in log.range([("type", "==", "order.paid")])]
    /// [b'2']
    #[pyo3(signature = (filters=None, *, on_damage=None))]
    fn range(
        &self,
        py: Python<'_>,
        filters: Option<Filters>,
        on_damage: Option<&str>,
    ) -> PyResult<Records> {
        let filter = Filters::filter(filters.as_ref(), py, &active::FORMAT, Dialect::default())?;
        self.records(py, &filter, on_damage)
    }

    /// Whether there is a record with this UUID, as `get` finds it.
    fn __contains__(&self, py: Python<'_>, uuid: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.get(py, uuid)?.is_some())
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Raises TypeError: counting reads all records.
    fn __len__(&self) -> PyResult<usize> {
        Err(no_length("log"))
    }

    /// Raises TypeError: numpy has no such table, nor does pandas take one by its constructor.
    #[pyo3(signature = (*_arguments, **_options))]
    fn __array__(
        &self,
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        Err(no_array())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, &Filter::default(), None)
    }

    /// The records as Arrow record batches, which `pyarrow.record_batch` takes: those that are on the disk now. Segments that cannot
    /// have any are not opened.
    ///
    /// columns: their names; None is all. Beside those of the records there are `path`, the log's folder, and `position`, the offset
    ///     in the segment in bytes.
    /// filters: as in `open`.
    /// uuid_type: the type of UUIDs, as in `open`.
    /// batch_size: a batch ends before it has more rows; it has at least one.
    /// on_damage: as that of the log, or another one here.
    ///
    /// The log itself has Arrow's stream interface, for pyarrow, polars and DuckDB: `pyarrow.table(log)`.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> [batch.num_rows for batch in log.batches(filters=[("type", "==", "order.paid")])]
    /// [1]
    #[pyo3(signature = (*, columns=None, filters=None, uuid_type="uuid", batch_size=131_072, on_damage=None))]
    fn batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = names::columns)] columns: Option<Vec<String>>,
        filters: Option<Filters>,
        uuid_type: &str,
        #[pyo3(from_py_with = numbers::batch_size)] batch_size: usize,
        on_damage: Option<&str>,
    ) -> PyResult<Batches> {
        let selection = self.selection(py, columns.as_deref(), open::uuids(uuid_type)?)?;
        let filter = Filters::filter(filters.as_ref(), py, &active::FORMAT, Dialect::default())?;
        let reader = self.reading(py, on_damage)?;
        let limits = Limits::default().rows(batch_size);
        let batches = detached(py, || reader.batches(&filter, selection, limits))?;
        let lenient = !reader.options().strict;
        Ok(Batches::new(batches, lenient, Shared::of_log(reader)))
    }

    /// The records as a `pyarrow.Table`, which takes as much memory as they do. The arguments are as in `batches`. Needs pyarrow.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.to_table(columns=["type"]).num_rows
    /// 3
    #[pyo3(signature = (*, columns=None, filters=None, uuid_type="uuid", on_damage=None))]
    fn to_table<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = names::columns)] columns: Option<Vec<String>>,
        filters: Option<Filters>,
        uuid_type: &str,
        on_damage: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = Limits::default().rows;
        self.batches(py, columns, filters, uuid_type, rows, on_damage)?
            .made(py, "to_table")
    }

    /// The records as a `pandas.DataFrame`, whose columns are made of those of `to_table`. Needs pyarrow and pandas.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.to_pandas(columns=["type"]).shape
    /// (3, 1)
    #[pyo3(signature = (*, columns=None, filters=None, uuid_type="uuid", on_damage=None))]
    fn to_pandas<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = names::columns)] columns: Option<Vec<String>>,
        filters: Option<Filters>,
        uuid_type: &str,
        on_damage: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = Limits::default().rows;
        self.batches(py, columns, filters, uuid_type, rows, on_damage)?
            .made(py, "to_pandas")
    }

    /// The records as a `polars.DataFrame`. The arguments are as in `batches`. Needs polars.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.to_polars(columns=["type"]).shape
    /// (3, 1)
    #[pyo3(signature = (*, columns=None, filters=None, uuid_type="uuid", on_damage=None))]
    fn to_polars<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = names::columns)] columns: Option<Vec<String>>,
        filters: Option<Filters>,
        uuid_type: &str,
        on_damage: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = Limits::default().rows;
        self.batches(py, columns, filters, uuid_type, rows, on_damage)?
            .made(py, "to_polars")
    }

    /// The first `rows` records as a `pyarrow.Table`, without reading much more than these. The arguments are as in `batches`. Needs
    /// pyarrow. Raises ValueError where `rows` is negative.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.head(2).column("type").to_pylist()
    /// ['order.created', 'order.paid']
    #[pyo3(signature = (rows=5, *, columns=None, filters=None, uuid_type="uuid", on_damage=None))]
    fn head<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = numbers::rows)] rows: usize,
        #[pyo3(from_py_with = names::columns)] columns: Option<Vec<String>>,
        filters: Option<Filters>,
        uuid_type: &str,
        on_damage: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let most = rows.clamp(1, Limits::default().rows);
        self.batches(py, columns, filters, uuid_type, most, on_damage)?
            .head(py, rows)
    }

    /// The number of records that meet all filters. Each is checked, and none is copied.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> log.count_rows(), log.count_rows([("type", "==", "order.paid")])
    /// (3, 1)
    #[pyo3(signature = (filters=None, *, on_damage=None))]
    fn count_rows(
        &self,
        py: Python<'_>,
        filters: Option<Filters>,
        on_damage: Option<&str>,
    ) -> PyResult<u64> {
        let position = Some(vec!["position".to_owned()]);
        let rows = Limits::default().rows;
        self.batches(py, position, filters, "uuid", rows, on_damage)?
            .count_rows(py)
    }

    /// The schema, for Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let selection = self.selection(py, None, UuidType::Fixed)?;
        arrow::schema_capsule(py, selection.schema())
    }

    /// The records, for Arrow's PyCapsule interface: those that are on the disk when it is asked for. `requested_schema` is ignored,
    /// as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.batches(py, None, None, "uuid", Limits::default().rows, None)?
            .__arrow_c_stream__(py, requested_schema)
    }

    /// Follows the log: an iterator that waits for records to come, also from a writer in another process, and gives each once. It gives
    /// what is on the disk, so that no crash takes back what was given.
    ///
    /// start: "now", "start", or the UUID of the record after which to begin.
    /// on_damage: as that of the log, or another one here.
    ///
    /// Raises, while iterating, SegmentGoneError where retention removed a segment before it was read, FormatError where one is missing,
    /// DamageError where it is damaged, and ReplacedError where another log has its place. With on_damage="skip" each is warned of
    /// (DamageWarning), and it goes on after it.
    ///
    /// >>> log = seglake.SegmentLog("log", readonly=True)
    /// >>> [record.type for record in iter(log.tail("start").poll, None)]
    /// ['order.created', 'order.paid', 'order.shipped']
    #[pyo3(signature = (start=None, *, on_damage=None))]
    fn tail(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        on_damage: Option<&str>,
    ) -> PyResult<Tail> {
        let from = match start {
            Some(start) => tail_from(start)?,
            None => TailFrom::Now,
        };
        let reader = self.reading(py, on_damage)?;
        let tail = detached(py, || reader.tail(from))?;
        Ok(Tail::new(tail, self.reader.columns()))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.check_open()?;
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
        let state = match (self.open.is_closed.get(), &self.open.writer) {
            (Some(()), _) => ", closed",
            (None, None) => ", readonly=True",
            (None, Some(_)) => "",
        };
        format!("SegmentLog({:?}{state})", self.open.path)
    }
}

impl Open {
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let _ = self.is_closed.set(()); // closed before
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        let interrupt = interrupt::signals();
        detached(py, || writer.close_unless(Some(&interrupt)))
    }
}

/// A log that nobody closed is closed.
impl Unclosed for Open {
    fn name(&self) -> String {
        format!("log {}", seglake::text::path(&self.path))
    }

    fn keep(&self, py: Python<'_>) -> Option<PyResult<()>> {
        let is_open = self.is_closed.get().is_none() && self.forks == forks();
        let writer = self.writer.as_ref().filter(|_| is_open)?;
        Some(detached(py, || writer.sync()))
    }

    fn end(&self, py: Python<'_>) -> Option<PyResult<()>> {
        let is_open = self.is_closed.get().is_none() && self.forks == forks();
        (is_open && self.writer.is_some()).then(|| self.close(py))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        unclosed::end(self);
    }
}
