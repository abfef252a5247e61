//! `Reader`: one open segment, and the passes over it.

mod walks;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyTuple};
use seglake::columns::{Limits, Selection, Uint64Type, UuidType};
use seglake::format::{self, Column, Format, Hits, Options, RecordId, Start, Unproven};
use seglake::parity::ProtectedSource;
use seglake::source::Source;
use seglake::text::escape;
use seglake::verbs;

use crate::arrow::{self, Schema};
use crate::batches::{Batch, Batches};
use crate::error::{detached, raise};
use crate::filters::Filters;
use crate::ids::{id_from_arguments, id_from_python, ids_from_arrow};
use crate::index::Index;
use crate::ledger::Ledger;
use crate::lookup::LazyLookup;
use crate::numbers;
use crate::passes::{Made, Passes, Shared};
use crate::position::Position;
use crate::read_options::OpenSource;
use crate::record::{Record, RecordMaker};
use crate::records::Records;
use crate::reopening::Reopening;
use crate::report::Report;
use crate::typed::typed;

/// An open segment. It can be read more than once, and by several threads: each iteration is a pass of its own.
///
/// >>> orders = seglake.open("orders.active")
/// >>> orders.count_rows(), orders.format
/// (3, 'active')
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Reader {
    source: Arc<dyn Source>,
    format: &'static Format,
    options: Options,
    selection: Selection,
    limits: Limits,
    passes: Passes,
    reopening: Arc<Reopening>,
    shared: Arc<Shared>,
    lookup: LazyLookup,
}

/// What is read of the records.
pub(crate) struct Wanted {
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) filters: Option<Filters>,
    pub(crate) uuids: UuidType,
}

impl Reader {
    pub(crate) fn new(
        py: Python<'_>,
        given: OpenSource,
        format: &'static Format,
        wanted: Wanted,
        passes: Passes,
        mut reopening: Reopening,
    ) -> PyResult<Self> {
        let options = given.options;
        let filter = Filters::filter(wanted.filters.as_ref(), py, format, options.dialect)?;
        let filter = options.filter.clone().both(&filter);
        let options = options.filter(filter);
        let columns = wanted.columns.as_deref();
        let selection = Selection::new(format, &options, columns, wanted.uuids);
        let shared = Shared::new(given.path.as_deref(), format.name, given.source.len());
        reopening.path = given.path;
        Ok(Self {
            source: given.source,
            format,
            options,
            selection: selection.map_err(|error| raise(py, error))?,
            limits: given.limits,
            passes,
            reopening: Arc::new(reopening),
            shared: Arc::new(shared),
            lookup: LazyLookup::default(),
        })
    }

    /// A reader of the same file, of this part of it or of all.
    fn over(&self, part: Option<format::Part>) -> Self {
        let path = self.reopening.path.as_deref();
        Self {
            source: self.source.clone(),
            options: self.options.clone(),
            selection: self.selection.clone(),
            passes: Passes::over(part, self.passes.threads),
            reopening: self.reopening.clone(),
            shared: Arc::new(Shared::new(path, self.format.name, self.source.len())),
            lookup: LazyLookup::default(),
            ..*self
        }
    }

    /// What a verb that reads all of the file needs.
    pub(crate) fn whole(&self) -> PyResult<(Arc<dyn Source>, Options)> {
        self.shared.check_open()?;
        if self.passes.part.is_some() || self.passes.growth.is_some() {
            return Err(PyValueError::new_err(
                "expected a reader of a whole file, found one of a part of it: open the file",
            ));
        }
        Ok((self.source.clone(), self.options.clone().prune(false)))
    }

    fn columns(&self) -> &'static [Column] {
        self.format.columns(self.options.dialect)
    }

    /// The columns that records are found by.
    fn identifying(&self) -> Vec<&'static Column> {
        self.format.identifying(self.options.dialect).collect()
    }

    /// Looks up records; `None` stands for what no record can be found by.
    fn look_up(&self, py: Python<'_>, ids: Vec<Option<RecordId>>) -> PyResult<Hits> {
        self.shared.check_open()?;
        let hits = detached(py, || self.lookup.get(&self.source, &self.options, ids))?;
        if hits.unproven == Some(Unproven::Damage) {
            self.shared.warn_of_miss(py, self.source.path())?;
        }
        Ok(hits)
    }

    /// The records that were looked up.
    fn found(&self, py: Python<'_>, hits: &Hits) -> PyResult<Vec<Option<Py<Record>>>> {
        RecordMaker::new(self.format.name, self.columns()).found(py, hits)
    }

    fn check_tenant(&self) -> PyResult<()> {
        self.shared.check_open()?;
        if *self.format != format::tenant::FORMAT {
            let name = self.format.name;
            return Err(PyValueError::new_err(format!(
                "{name} files have no partitions and tenants"
            )));
        }
        Ok(())
    }

    fn contents(&self, py: Python<'_>) -> PyResult<format::tenant::Contents> {
        self.check_tenant()?;
        detached(py, || {
            format::tenant::Contents::read(self.source.clone(), &self.options)
        })
    }
}

#[pymethods]
impl Reader {
    /// The file's path; None where the source is no path.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.path
    /// 'orders.active'
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.reopening.path.as_deref().map(Path::as_os_str)
    }

    /// The format's name.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.format
    /// 'active'
    #[getter]
    fn format(&self) -> &'static str {
        self.format.name
    }

    /// The length of the file when it was opened, in bytes.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.nbytes
    /// 159
    #[getter]
    fn nbytes(&self) -> u64 {
        self.source.len()
    }

    /// The columns that Arrow batches have. `pyarrow.schema(reader.schema)` makes it a pyarrow schema.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.schema.names
    /// ['uuid', 'timestamp', 'type', 'value']
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.selection.schema().clone())
    }

    /// Why something that `get` or `get_many` did not find may be in the file all the same: `damage`, or `unchecked` for files
    /// without checksums. None where all that was not found is proven not to be there.
    ///
    /// >>> messages = seglake.open("orders.oplog")
    /// >>> messages.get(7), messages.unproven
    /// (None, 'unchecked')
    #[getter]
    fn unproven(&self) -> Option<&'static str> {
        self.lookup.unproven().map(Unproven::as_str)
    }

    /// Why the parity sidecar that the file is read by counts for nothing, as `ParityReport.refused` says it; None if it counts, or
    /// there is none.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.count_rows(), orders.parity_refused
    /// (3, None)
    #[getter]
    fn parity_refused(&self) -> Option<&'static str> {
        Some(ProtectedSource::of(&*self.source)?.refused()?.as_str())
    }

    /// What the latest pass has read so far. Before the first, it says what the records will be checked by.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.count_rows(), orders.report.ok
    /// (3, True)
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<Report> {
        let report = match self.shared.latest() {
            Some(pass) => py.detach(|| pass.report())?,
            None => detached(py, || {
                let walk = format::open(self.source.clone(), &self.options, Start::Beginning)?;
                let mut report = verbs::Report::of(self.format, &*self.source);
                report.summary.checked = walk.checked();
                Ok(report)
            })?,
        };
        Ok(Report(report))
    }

    /// Of a reader that `resume` gave: where to go on, once a pass has read to the end. None before that, and for other readers.
    ///
    /// >>> orders = seglake.incremental.resume("orders.active", None)
    /// >>> orders.count_rows(), orders.position.byte_offset
    /// (3, 159)
    #[getter]
    fn position(&self) -> Option<Position> {
        self.passes.growth.as_ref()?.position().map(Position)
    }

    /// Of a reader that `resume` gave: how many bytes of an unfinished record are at the end, once a pass has read to there. They
    /// are read when it is finished. None before that, and for other readers.
    ///
    /// >>> orders = seglake.incremental.resume("orders.active", None, size=150)
    /// >>> orders.count_rows(), orders.pending_bytes
    /// (2, 45)
    #[getter]
    fn pending_bytes(&self) -> Option<u64> {
        self.passes.growth.as_ref()?.pending_bytes()
    }

    /// The position after all of a sealed or tenant file, which does not grow. Only the first record and the end are read for it. A whole
    /// pass gives the same position. None for a file that may grow, for one without a sound record, and for a reader that `resume`
    /// did not return or that begins at a position.
    ///
    /// Raises OSError if the file cannot be read, or was replaced meanwhile.
    ///
    /// >>> orders = seglake.incremental.resume("orders.sealed", None)
    /// >>> orders.position_after_all().byte_offset == orders.nbytes
    /// True
    fn position_after_all(&self, py: Python<'_>) -> PyResult<Option<Position>> {
        self.shared.check_open()?;
        let Some(growth) = &self.passes.growth else {
            return Ok(None);
        };
        let position = detached(py, || growth.position_after_all())?;
        Ok(position.map(Position))
    }

    /// Whether the reader is closed.
    ///
    /// >>> with seglake.open("orders.active") as orders:
    /// ...     pass
    /// >>> orders.closed
    /// True
    #[getter]
    fn closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Whether there is a record by this identifier, as `get` finds it: a tuple where that is several things.
    fn __contains__(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = id_from_python(self.format, &self.identifying(), id)?;
        let hits = self.look_up(py, vec![id])?;
        Ok(hits.places.iter().all(Option::is_some))
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Raises TypeError: counting reads all records.
    fn __len__(&self) -> PyResult<usize> {
        Err(no_length("reader"))
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

    /// The records, one by one, in file order.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, || {
            format::open(self.source.clone(), &self.options, self.start())
        })
    }

    /// The records as Arrow record batches, which `pyarrow.record_batch` takes. Errors are raised as they are, while those
    /// within an Arrow stream come wrapped.
    ///
    /// batch_size: a batch ends before it has more rows; it has at least one.
    ///
    /// Each has the damage that was passed over on the way to it, as `Batch.damage`. If you report that, pass `warn=False`:
    /// then no DamageWarning is issued. Which warnings are shown is a setting of the whole process.
    ///
    /// For engines that take batches one by one: with `ahead`, a thread makes the next batch while you use the last one. With
    /// `uint64_type`, unsigned 64-bit numbers are `int64` ("int64"; LimitError for a number above 2^63-1) or `decimal128(20, 0)`
    /// ("decimal").
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> sum(batch.num_rows for batch in orders.batches())
    /// 3
    #[pyo3(signature = (batch_size=131_072, *, warn=true, ahead=false, uint64_type="uint64"))]
    fn batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::batch_size)] batch_size: usize,
        warn: bool,
        ahead: bool,
        uint64_type: &str,
    ) -> PyResult<Batches> {
        let selection = self.selection.clone().with_uint64(uint64(uint64_type)?);
        let limits = self.limits.rows(batch_size);
        let made = match ahead {
            true => Made::Ahead,
            false => Made::By(self.passes.threads),
        };
        let batches = self.core_batches(py, selection, limits, made)?;
        Ok(batches.warning(warn))
    }

    /// The records as a `pyarrow.Table`, which takes as much memory as they do. Needs pyarrow.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.to_table().column("type").to_pylist()
    /// ['order.created', 'order.paid', 'order.shipped']
    fn to_table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.own_batches(py)?.made(py, "to_table")
    }

    /// The records as a `pandas.DataFrame`, whose columns are made of those of `to_table`. Needs pyarrow and pandas.
    ///
    /// >>> orders = seglake.open("orders.active", columns=["type"])
    /// >>> orders.to_pandas().shape
    /// (3, 1)
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.own_batches(py)?.made(py, "to_pandas")
    }

    /// The records as a `polars.DataFrame`. Needs polars. What a scan gives is a `LazyFrame`.
    ///
    /// >>> orders = seglake.open("orders.active", columns=["type"])
    /// >>> orders.to_polars().shape
    /// (3, 1)
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.own_batches(py)?.made(py, "to_polars")
    }

    /// The first `rows` records as a `pyarrow.Table`, without reading much more of the file than these. Needs pyarrow.
    ///
    /// Damage before them is an error, or passed over, as `on_damage` says. Raises ValueError where `rows` is negative.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.head(1).num_rows
    /// 1
    #[pyo3(signature = (rows=5))]
    fn head<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = numbers::rows)] rows: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let limits = self.limits.rows(rows.clamp(1, self.limits.rows));
        self.core_batches(py, self.selection.clone(), limits, Made::By(1))?
            .head(py, rows)
    }

    /// The number of records: those of `filters`, where there are some. Every record is checked, and none is copied.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.count_rows()
    /// 3
    fn count_rows(&self, py: Python<'_>) -> PyResult<u64> {
        let position = ["position".to_owned()];
        let selection =
            Selection::new(self.format, &self.options, Some(&position), UuidType::Fixed);
        let selection = selection.map_err(|error| raise(py, error))?;
        self.core_batches(py, selection, self.limits, Made::By(self.passes.threads))?
            .count_rows(py)
    }

    /// Splits the file into parts of about `max_bytes` bytes each, which `part` reads by themselves, on any machine. Together they give each record, and each damaged range, that the whole file gives, once, in their order.
    ///
    /// There is one part where the file has no more bytes, where its format has no parts (active, oplog, tfrecord), or where it is not
    /// certain that parts give what the whole does: sealed files without a trailer, under a key that was not given, or with a
    /// damaged index; tenant files of version 1 or with a damaged table of contents; chunked files with a damaged header or a
    /// torn tail. Reads no records. Raises ValueError where `max_bytes` is not positive.
    ///
    /// >>> parts = seglake.open("orders.sealed").split(64)
    /// >>> sum(seglake.open("orders.sealed").part(part).count_rows() for part in parts)
    /// 3
    #[pyo3(signature = (max_bytes=134_217_728))]
    fn split(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: u64,
    ) -> PyResult<Vec<crate::part::Part>> {
        self.shared.check_open()?;
        let parts = detached(py, || {
            format::split(self.source.clone(), &self.options, max_bytes)
        })?;
        Ok(parts.into_iter().map(crate::part::Part).collect())
    }

    /// A reader of one of the parts that `split` gave: its records and batches are of this part alone, while looking up and `ledger()`
    /// are of the whole file. Else it is as this one. Raises ValueError, when it reads, for a part of another file.
    ///
    /// >>> orders = seglake.open("orders.sealed")
    /// >>> [orders.part(part).count_rows() for part in orders.split()]
    /// [3]
    #[pyo3(signature = (part, /))]
    fn part(&self, part: &crate::part::Part) -> PyResult<Self> {
        self.shared.check_open()?;
        if self.passes.growth.is_some() {
            return Err(PyValueError::new_err(
                "a reader that `resume` gave has no parts: open the file",
            ));
        }
        Ok(self.over(Some(part.0.clone())))
    }

    /// One record, or None: by its UUID (active, sealed; a `uuid.UUID`, its 16 bytes or its text), offset (chunked), sequence
    /// number (oplog), or by partition, tenant and index (tenant), positional or by name.
    ///
    /// What is found has been checked. Reading strictly, damage at which the record might have stood is an error. Without
    /// checksums (sealed files without a trailer, version 1 of tenant files, oplogs) that a record is absent cannot be proven.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.get(2).timestamp.isoformat(), orders.get(3)
    /// ('2024-06-15T07:00:00+00:00', None)
    /// >>> seglake.open("orders.tenant").get(0, "acme", 1).value
    /// b'{"order": 1}'
    #[pyo3(signature = (*id, **fields))]
    fn get(
        &self,
        py: Python<'_>,
        id: &Bound<'_, PyTuple>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<Py<Record>>> {
        let id = id_from_arguments(self.format, &self.identifying(), id, fields)?;
        let hits = self.look_up(py, vec![id])?;
        Ok(self.found(py, &hits)?.pop().flatten())
    }

    /// Several records, None where there is none, in the order in which they are asked for; some may be asked for twice.
    ///
    /// `ids` is a sequence of what `get` takes, tuples where that is several things: the result is a list of Records. Or it is
    /// an Arrow array (of a struct where it is several things): the result is a Batch of as many rows with the reader's
    /// columns, all null where there is no such record: the fastest way, for UUIDs with an array of `fixed_size_binary[16]`.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> [record and record.offset for record in orders.get_many([2, 9, 0])]
    /// [2, None, 0]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (format, identifying) = (self.format, self.identifying());
        if let Some(arrays) = arrow::import_arrays(ids)? {
            let mut known = Vec::new();
            for array in arrays {
                known.extend(ids_from_arrow(py, format, &identifying, &*array)?);
            }
            let hits = self.look_up(py, known)?;
            let path = self.source.path();
            let batch = detached(py, move || self.selection.hits(&hits, path))?;
            let batch = Batch::of(batch);
            return Ok(batch.into_pyobject(py)?.into_any());
        }
        let known = ids
            .try_iter()?
            .map(|id| id_from_python(format, &identifying, &id?));
        let hits = self.look_up(py, known.collect::<PyResult<_>>()?)?;
        Ok(self.found(py, &hits)?.into_pyobject(py)?.into_any())
    }

    /// The records that meet `filters`, as in `open`, reading no more of the file than it takes.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> [record.offset for record in orders.range([("offset", ">=", 1)])]
    /// [1, 2]
    fn range(&self, py: Python<'_>, filters: Filters) -> PyResult<Records> {
        let filter = Filters::filter(Some(&filters), py, self.format, self.options.dialect)?;
        self.records(py, || {
            let lookup = self.lookup.made(&self.source, &self.options)?;
            lookup.range(&filter)
        })
    }

    /// The partitions of a tenant file, in ascending order. Raises ValueError for other formats.
    ///
    /// >>> orders = seglake.open("orders.tenant")
    /// >>> orders.partitions()
    /// [0]
    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.contents(py)?.partitions().to_vec())
    }

    /// The tenants of a tenant file, or of one of its partitions, each once in ascending order, as text like `Record.tenant`.
    /// Reads no more than the table of contents where that is sound. Raises ValueError for other formats.
    ///
    /// >>> orders = seglake.open("orders.tenant")
    /// >>> orders.tenants()
    /// ['acme', 'globex']
    #[pyo3(signature = (partition=None))]
    fn tenants(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::partition)] partition: Option<u32>,
    ) -> PyResult<Vec<String>> {
        let contents = self.contents(py)?;
        let blocks = contents.blocks().iter();
        let tenants: BTreeSet<&[u8]> = blocks
            .filter(|block| partition.is_none_or(|partition| block.partition == partition))
            .map(|block| &*block.tenant)
            .collect();
        let tenants = tenants.into_iter();
        Ok(tenants.map(|tenant| escape(tenant).into_owned()).collect())
    }

    /// The sound blocks of a tenant file as Blocks in file order, whatever `on_damage` says. Raises ValueError for other formats.
    ///
    /// >>> orders = seglake.open("orders.tenant")
    /// >>> [(block.tenant, block.messages) for block in orders.blocks()]
    /// [('acme', 2), ('globex', 1)]
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.check_tenant()?;
        let options = self.options.clone().strict(false);
        let blocks = detached(py, || format::tenant::blocks(self.source.clone(), &options))?;
        let object = |block: &format::tenant::Block| {
            let fields = (
                block.position,
                block.partition,
                escape(&block.tenant),
                PyBytes::new(py, &block.tenant),
                block.messages,
            );
            typed(py, "Block", fields)
        };
        blocks.iter().map(object).collect()
    }

    /// A chunked file's index, held against the file; None where there is none. Raises ValueError for other formats.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.index().ok
    /// True
    fn index(&self, py: Python<'_>) -> PyResult<Option<Index>> {
        self.shared.check_open()?;
        if *self.format != format::chunked::FORMAT {
            let name = self.format.name;
            return Err(PyValueError::new_err(format!(
                "{name} files have no index of their own"
            )));
        }
        detached(py, || Index::of(&*self.source, &self.options))
    }

    /// The whole file as Spans in file order, whatever `on_damage` says. Each byte of the file is in exactly one.
    /// `damaged_only`: without those that are sound.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> sum(span.nbytes for span in orders.ledger()) == orders.nbytes
    /// True
    #[pyo3(signature = (*, damaged_only=false))]
    fn ledger(&self, py: Python<'_>, damaged_only: bool) -> PyResult<Ledger> {
        self.shared.check_open()?;
        // The ledger is of the whole file, or of what it grew by.
        let start = match &self.passes.growth {
            Some(growth) => Start::Growth(growth),
            None => Start::Beginning,
        };
        let ledger = detached(py, || {
            verbs::Ledger::starting(self.source.clone(), &self.options, start)
        })?;
        Ok(Ledger::new(ledger, self.shared.clone(), damaged_only))
    }

    /// The damaged ranges that the latest pass has met so far, as in `Report.damage`: after reading to the end, all that concerned
    /// it. Before the first pass none. `seglake.verify` finds those of the whole file.
    ///
    /// >>> orders = seglake.open("damaged.active", on_damage="skip")
    /// >>> orders.count_rows(), [span.cause for span in orders.damage]
    /// (2, ['checksum_mismatch'])
    #[getter]
    fn damage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.report(py)?.damage(py)
    }

    /// The records from the one that begins at `position` on: an offset in bytes, as `Record.position` gives it. Where no
    /// record begins there, it is damage.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> first, second, third = (record.position for record in orders)
    /// >>> [record.type for record in orders.records_from(second)]
    /// ['order.paid', 'order.shipped']
    fn records_from(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::position)] position: u64,
    ) -> PyResult<Records> {
        self.records(py, || {
            let start = Start::Offset(position);
            format::open(self.source.clone(), &self.options, start)
        })
    }

    /// Bytes `start` to `end` of the file, as they are. `restored`: as the parity sidecar has them that it is read by. What a file that
    /// was cut off lacks is left out, unless it is restored.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> len(orders.read_bytes(0, 16))
    /// 16
    #[pyo3(signature = (start, end, *, restored=false))]
    fn read_bytes<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = numbers::start)] start: u64,
        #[pyo3(from_py_with = numbers::end)] end: u64,
        restored: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.shared.check_open()?;
        let size = self.source.len();
        let file = ProtectedSource::of(&*self.source).filter(|_| !restored);
        let source = file.as_ref().map_or(&self.source, |own| own.file());
        let start_there = start.min(source.len());
        let len = end
            .checked_sub(start)
            .filter(|_| end <= size)
            .and_then(|_| usize::try_from(end.min(source.len()) - start_there).ok());
        let len = len.ok_or_else(|| {
            PyValueError::new_err(format!(
                "bytes {start} to {end} are not a range of a file of {size} bytes"
            ))
        })?;
        let mut bytes = vec![0; len];
        detached(py, || source.read_exact_at(start_there, &mut bytes))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Closes the reader: every later use of it, also by iterators that it gave, raises ValueError.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.close()
    /// >>> orders.closed
    /// True
    fn close(&self) {
        self.shared.closed.store(true, Ordering::Release);
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.shared.check_open()?;
        Ok(slf)
    }

    #[pyo3(signature = (exc_type, exc, traceback, /))]
    fn __exit__(
        &self,
        exc_type: Option<Py<PyAny>>,
        exc: Option<Py<PyAny>>,
        traceback: Option<Py<PyAny>>,
    ) {
        drop((exc_type, exc, traceback));
        self.close();
    }

    /// The schema, for Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema_capsule(py, self.selection.schema())
    }

    /// The records, for Arrow's PyCapsule interface: a new pass each time it is asked for. `requested_schema` is ignored, as
    /// the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.own_batches(py)?
            .__arrow_c_stream__(py, requested_schema)
    }

    /// Pickling opens the file again by its path. Raises TypeError where the source is no path, or where the key was given
    /// as bytes: it would have to be in the pickle.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        self.shared.check_open()?;
        let Some(part) = &self.passes.part else {
            return self.reopening.reduce(py);
        };
        let part = crate::part::Part(part.clone());
        let of_part = py
            .import("operator")?
            .getattr("methodcaller")?
            .call1(("part", part))?;
        Ok((of_part, PyTuple::new(py, [self.over(None)])?))
    }

    fn __repr__(&self) -> String {
        self.shared.shown("Reader")
    }
}

/// Why `len` of a thing that gives records is refused.
pub(crate) fn no_length(thing: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {thing} has no length: count_rows() reads all records to count them"
    ))
}

/// Why numpy, and so `pandas.DataFrame(...)`, which would lose the columns, is refused.
pub(crate) fn no_array() -> PyErr {
    PyTypeError::new_err(
        "records are no array of numpy: to_pandas() makes a pandas.DataFrame of them, to_table() a pyarrow.Table",
    )
}

/// How unsigned 64-bit numbers come.
fn uint64(name: &str) -> PyResult<Uint64Type> {
    match name {
        "uint64" => Ok(Uint64Type::UInt64),
        "int64" => Ok(Uint64Type::Int64),
        "decimal" => Ok(Uint64Type::Decimal),
        other => Err(PyValueError::new_err(format!(
            "uint64_type is \"uint64\", \"int64\" or \"decimal\", not {other:?}"
        ))),
    }
}
