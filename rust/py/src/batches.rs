//! `Batches`: a pass that gives Arrow record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use seglake::columns;
use seglake::verbs;

use crate::arrow::{self, Schema};
use crate::error::raise;
use crate::exclusive::{Exclusive, InUse};
use crate::passes::{Pass, Shared};
use crate::report::Report;
use crate::typed::span;

/// The Python module that makes tables and data frames.
const FRAMES: &str = "seglake.read.frames";

impl Pass for Exclusive<columns::Batches> {
    fn report(&self) -> Result<verbs::Report, InUse> {
        Ok(self.hold()?.report().clone())
    }
}

/// An iterator over record batches. Those that are left are an Arrow stream, which pyarrow, polars and DuckDB take once.
///
/// >>> orders = seglake.open("orders.active")
/// >>> [batch.num_rows for batch in orders.batches()]
/// [3]
#[derive(Clone)]
#[pyclass(frozen, module = "seglake.types")]
pub(crate) struct Batches {
    batches: Arc<Exclusive<columns::Batches>>,
    schema: SchemaRef,
    warns: bool,
    shared: Arc<Shared>,
}

impl Batches {
    pub(crate) fn new(batches: columns::Batches, warns: bool, shared: Arc<Shared>) -> Self {
        Self {
            schema: batches.schema(),
            batches: Arc::new(Exclusive::new(batches)),
            warns,
            shared,
        }
    }

    /// The same, which do not warn of damage unless `warn`.
    pub(crate) fn warning(self, warn: bool) -> Self {
        Self {
            warns: self.warns && warn,
            ..self
        }
    }

    pub(crate) fn pass(&self) -> Arc<dyn Pass> {
        self.batches.clone()
    }
}

#[pymethods]
impl Batches {
    /// What this pass has read so far.
    ///
    /// >>> batches = seglake.open("orders.active").batches()
    /// >>> [batch.num_rows for batch in batches], batches.report.records
    /// ([3], 3)
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<Report> {
        Ok(Report(py.detach(|| self.batches.report())?))
    }

    /// The columns that each batch has.
    ///
    /// >>> batches = seglake.open("orders.active").batches()
    /// >>> batches.schema.names
    /// ['uuid', 'timestamp', 'type', 'value']
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __repr__(&self) -> String {
        self.shared.shown("Batches")
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.shared.check_open()?;
        let next = py.detach(|| Ok::<_, InUse>(self.batches.hold()?.next_batch()))?;
        self.shared.warn_of_skipped(py)?;
        let next = next.map_err(|error| raise(py, error))?;
        let Some(batch) = next else { return Ok(None) };
        if self.warns && !batch.damage.is_empty() {
            self.shared.warn(py, &*self.batches)?;
        }
        Ok(Some(Batch(batch)))
    }

    /// The schema, for Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema_capsule(py, &self.schema)
    }

    /// The batches that are left, for Arrow's PyCapsule interface. `requested_schema` is ignored, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    pub(crate) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let own = self.clone();
        let next = move || {
            let next = match own.batches.hold() {
                Ok(mut batches) => batches.next(),
                Err(error) => Some(Err(external(error))),
            };
            own.look().map_or(next, |error| Some(Err(error)))
        };
        arrow::stream_capsule(py, self.schema.clone(), std::iter::from_fn(next))
    }
}

impl Batches {
    /// Checks that the reader is open, and warns of damage. What that raises ends the stream.
    fn look(&self) -> Option<ArrowError> {
        let looked = Python::try_attach(|py| {
            self.shared.check_open()?;
            if self.warns {
                self.shared.warn(py, &*self.batches)?;
            }
            Ok::<_, PyErr>(())
        });
        // At the interpreter's end there is nobody to warn.
        let error = looked?.err()?;
        Some(external(error))
    }

    /// How many rows are left.
    pub(crate) fn count_rows(&self, py: Python<'_>) -> PyResult<u64> {
        let mut count = 0;
        while let Some(batch) = self.__next__(py)? {
            count += batch.num_rows() as u64;
            py.check_signals()?;
        }
        Ok(count)
    }

    /// What a function of `seglake.read.frames` makes of them: a table or a data frame.
    pub(crate) fn made<'py>(self, py: Python<'py>, function: &str) -> PyResult<Bound<'py, PyAny>> {
        py.import(FRAMES)?.call_method1(function, (self,))
    }

    /// The first rows as a `pyarrow.Table`.
    pub(crate) fn head<'py>(self, py: Python<'py>, rows: usize) -> PyResult<Bound<'py, PyAny>> {
        py.import(FRAMES)?.call_method1("head", (self, rows))
    }
}

/// Some records as an Arrow record batch, and the damage that was found on the way to them.
///
/// >>> import pyarrow
/// >>> [batch] = seglake.open("orders.active").batches()
/// >>> pyarrow.record_batch(batch).num_rows
/// 3
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Batch(columns::Batch);

impl Batch {
    /// Records that were looked up, so without damage beside them.
    pub(crate) fn of(records: RecordBatch) -> Self {
        let values = records.column_by_name("value");
        let values = values.and_then(|values| values.as_binary_opt::<i32>());
        let value_bytes = values.iter().map(|values| values.value_data().len()).sum();
        Self(columns::Batch::new(records, value_bytes))
    }
}

#[pymethods]
impl Batch {
    /// How many records there are; 0 where only damage was found.
    ///
    /// >>> [batch] = seglake.open("orders.active").batches()
    /// >>> batch.num_rows
    /// 3
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.records.num_rows()
    }

    /// How many bytes the records' values have.
    ///
    /// >>> [batch] = seglake.open("orders.active").batches()
    /// >>> batch.value_bytes
    /// 36
    #[getter]
    fn value_bytes(&self) -> usize {
        self.0.value_bytes
    }

    /// The same records and damage, with the names of a schema whose columns have the same types. Raises ValueError where they have not.
    ///
    /// >>> import pyarrow
    /// >>> orders = seglake.open("orders.chunks", columns=["value"])
    /// >>> [batch] = orders.batches()
    /// >>> renamed = batch.renamed(orders.schema.renamed("value", "body"))
    /// >>> pyarrow.record_batch(renamed).schema.names
    /// ['body']
    fn renamed(&self, schema: &Schema) -> PyResult<Self> {
        let records = renamed(&self.0.records, schema.0.clone())?;
        let mut batch = columns::Batch::new(records, self.0.value_bytes);
        batch.damage.clone_from(&self.0.damage);
        Ok(Self(batch))
    }

    /// Damaged ranges that became known since the batch before, as Spans in file order.
    ///
    /// >>> batches = seglake.open("damaged.active", on_damage="skip").batches()
    /// >>> [span.cause for batch in batches for span in batch.damage]
    /// ['checksum_mismatch']
    #[getter]
    fn damage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let damage = self.0.damage.iter();
        damage.map(|damaged| span(py, damaged)).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    /// The schema, for Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema_capsule(py, &self.0.records.schema())
    }

    /// The records, for Arrow's PyCapsule interface. `requested_schema` is ignored, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        arrow::array_capsules(py, &self.0.records)
    }

    fn __repr__(&self) -> String {
        format!(
            "Batch(num_rows={}, value_bytes={}, damaged ranges={})",
            self.num_rows(),
            self.0.value_bytes,
            self.0.damage.len()
        )
    }
}

/// An error as it comes within a stream.
fn external(error: impl std::error::Error + Send + Sync + 'static) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

/// The same columns with the names of a schema.
fn renamed(batch: &RecordBatch, schema: SchemaRef) -> PyResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(arrow::failed)
}

/// All that is left of `Batches` or `ScanBatches`, or so many of the first rows, in memory, as an Arrow stream: a PyCapsule. Errors are
/// raised as they are, not wrapped as within a stream. Nothing of Python is called to pull from it: libraries pull without the GIL, which
/// PyO3 believes to be held as long as one of its functions runs.
///
/// >>> from seglake._native import collect
/// >>> type(collect(seglake.open("orders.active").batches(), 2)).__name__
/// 'PyCapsule'
#[pyfunction]
#[pyo3(signature = (batches, rows=None))]
pub(crate) fn collect<'py>(
    batches: &Bound<'py, PyAny>,
    rows: Option<usize>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = batches.getattr("schema")?.cast::<Schema>()?.get().0.clone();
    let (mut given, mut found) = (batches.try_iter()?, Vec::new());
    let mut left = rows;
    while left != Some(0)
        && let Some(batch) = given.next().transpose()?
    {
        let mut records = batch.cast::<Batch>()?.get().0.records.clone();
        if let Some(left) = &mut left {
            records = records.slice(0, records.num_rows().min(*left));
            *left -= records.num_rows();
        }
        if records.num_rows() > 0 {
            found.push(Ok(records));
        }
        batches.py().check_signals()?;
    }
    arrow::stream_capsule(batches.py(), schema, found.into_iter())
}

/// The batches of an iterator, whose columns are of the schema's types, as an Arrow stream with the schema's names: a PyCapsule.
///
/// >>> import pyarrow
/// >>> from seglake._native import arrow_stream
/// >>> orders = seglake.open("orders.active")
/// >>> type(arrow_stream(orders.schema, orders.batches())).__name__
/// 'PyCapsule'
#[pyfunction]
pub(crate) fn arrow_stream<'py>(
    schema: &Bound<'py, Schema>,
    batches: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let (py, schema) = (schema.py(), schema.get().0.clone());
    let (batches, own) = (batches.try_iter()?.unbind(), schema.clone());
    let next = move |py: Python<'_>| {
        let Some(batch) = batches.bind(py).clone().next().transpose()? else {
            return Ok(None);
        };
        renamed(&batch.cast::<Batch>()?.get().0.records, own.clone()).map(Some)
    };
    let next = move || {
        let next: PyResult<_> = Python::try_attach(&next)?;
        next.map_err(external).transpose()
    };
    arrow::stream_capsule(py, schema, std::iter::from_fn(next))
}
