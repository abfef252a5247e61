//! `Batches`: a pass that gives Arrow record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator, PyTuple};
use seglake::columns;
use seglake::verbs;

use crate::arrow::{self, Schema};
use crate::error::raise;
use crate::exclusive::{Exclusive, InUse};
use crate::passes::{Pass, Shared};
use crate::report::{Report, span};

impl Pass for Exclusive<columns::Batches> {
    fn report(&self) -> Result<verbs::Report, InUse> {
        Ok(self.hold()?.report().clone())
    }
}

/// An iterator over record batches of a reader.
///
/// >>> orders = seglake.open("orders.active")
/// >>> [batch.num_rows for batch in orders.batches()]
/// [3]
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Batches {
    batches: Arc<Exclusive<columns::Batches>>,
    warns: bool,
    shared: Arc<Shared>,
}

impl Batches {
    pub(crate) fn new(
        batches: Arc<Exclusive<columns::Batches>>,
        warns: bool,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            batches,
            warns,
            shared,
        }
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

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __repr__(&self) -> String {
        self.shared.shown("Batches")
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.next_batch(py)
    }
}

impl Batches {
    /// The next batch; `None` at the end.
    pub(crate) fn next_batch(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
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
    pub(crate) fn rows(&self) -> usize {
        self.0.records.num_rows()
    }

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
        self.rows()
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

    /// Damaged ranges that became known since the batch before, as Spans in file order.
    ///
    /// >>> batches = seglake.open("damaged.active", on_damage="skip").batches()
    /// >>> [span.cause for batch in batches for span in batch.damage]
    /// ['checksum_mismatch']
    #[getter]
    fn damage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0
            .damage
            .iter()
            .map(|damaged| span(py, damaged))
            .collect()
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

/// A pass as Arrow's stream interface, which other libraries pull from any thread.
pub(crate) struct Stream {
    batches: Arc<Exclusive<columns::Batches>>,
    schema: SchemaRef,
    warns: bool,
    shared: Arc<Shared>,
}

impl Stream {
    pub(crate) fn new(
        batches: Arc<Exclusive<columns::Batches>>,
        schema: SchemaRef,
        warns: bool,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            batches,
            schema,
            warns,
            shared,
        }
    }

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
        Some(ArrowError::ExternalError(Box::new(error)))
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match self.batches.hold() {
            Ok(mut batches) => batches.next(),
            Err(error) => Some(Err(ArrowError::ExternalError(Box::new(error)))),
        };
        self.look().map_or(next, |error| Some(Err(error)))
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Batches of several readers as Arrow's stream interface: an iterator over them in Python, and the schema that they get.
struct Joined {
    batches: Py<PyIterator>,
    schema: SchemaRef,
}

impl Joined {
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let Some(batch) = self.batches.bind(py).clone().next().transpose()? else {
            return Ok(None);
        };
        let batch = batch.cast::<Batch>()?.get().0.records.clone();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        let renamed = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        renamed.map(Some).map_err(arrow::failed)
    }
}

impl Iterator for Joined {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Python::try_attach(|py| self.next_batch(py))?;
        next.map_err(|error| ArrowError::ExternalError(Box::new(error)))
            .transpose()
    }
}

impl RecordBatchReader for Joined {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
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
    let joined = Joined {
        batches: batches.try_iter()?.unbind(),
        schema: schema.get().0.clone(),
    };
    arrow::stream_capsule(schema.py(), joined)
}
