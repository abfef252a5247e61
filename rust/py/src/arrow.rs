//! Arrow's PyCapsule interface (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, StructArray, make_array};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema as ArrowSchema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";
/// How deep types may be nested: Arrow's crates, and what goes through values, call themselves for each level.
const MOST_LEVELS: usize = 64;

pub(crate) fn failed(error: impl Into<ArrowError>) -> PyErr {
    let error = error.into();
    PyValueError::new_err(format!("Arrow: {error}"))
}

/// The columns of batches.
///
/// >>> import pyarrow
/// >>> schema = seglake.open("orders.active").schema
/// >>> pyarrow.schema(schema).names
/// ['uuid', 'timestamp', 'type', 'value']
#[pyclass(frozen, module = "seglake.types")]
pub(crate) struct Schema(pub(crate) SchemaRef);

#[pymethods]
impl Schema {
    /// The columns' names.
    ///
    /// >>> orders = seglake.open("orders.active")
    /// >>> orders.schema.names
    /// ['uuid', 'timestamp', 'type', 'value']
    #[getter]
    fn names(&self) -> Vec<String> {
        let fields = self.0.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// The columns' Arrow types, as text.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.schema.types
    /// ['Int64', 'Timestamp(µs, "UTC")', 'Binary']
    #[getter]
    fn types(&self) -> Vec<String> {
        let fields = self.0.fields().iter();
        fields.map(|field| field.data_type().to_string()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    /// The same columns with another name for the one that is called `name`.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.schema.renamed("value", "body").names
    /// ['offset', 'timestamp', 'body']
    fn renamed(&self, name: &str, new: &str) -> Self {
        let fields = self.0.fields().iter().map(|field| {
            if field.name() == name {
                Arc::new(field.as_ref().clone().with_name(new))
            } else {
                field.clone()
            }
        });
        let fields: Fields = fields.collect();
        Self(Arc::new(ArrowSchema::new_with_metadata(
            fields,
            self.0.metadata().clone(),
        )))
    }

    /// The schema, for Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }

    fn __repr__(&self) -> String {
        let fields: Vec<_> = self
            .names()
            .into_iter()
            .zip(self.types())
            .map(|(name, kind)| format!("{name}: {kind}"))
            .collect();
        format!("Schema({})", fields.join(", "))
    }
}

pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &ArrowSchema,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(
        py,
        FFI_ArrowSchema::try_from(schema).map_err(failed)?,
        SCHEMA,
    )
}

pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
) -> PyResult<Bound<'py, PyTuple>> {
    let rows = match batch.num_columns() {
        0 => StructArray::new_empty_fields(batch.num_rows(), None),
        _ => StructArray::from(batch.clone()),
    };
    let (array, schema) = to_ffi(&rows.into_data()).map_err(failed)?;
    capsules(py, schema, array)
}

/// One column that is no record batch.
pub(crate) fn column_capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
    field: &Field,
) -> PyResult<Bound<'py, PyTuple>> {
    let (array, _) = to_ffi(&array.to_data()).map_err(failed)?;
    let schema = FFI_ArrowSchema::try_from(field).map_err(failed)?;
    capsules(py, schema, array)
}

fn capsules(
    py: Python<'_>,
    schema: FFI_ArrowSchema,
    array: FFI_ArrowArray,
) -> PyResult<Bound<'_, PyTuple>> {
    let (schema, array) = (
        PyCapsule::new_with_value(py, schema, SCHEMA)?,
        PyCapsule::new_with_value(py, array, ARRAY)?,
    );
    PyTuple::new(py, [schema, array])
}

pub(crate) fn stream_capsule(
    py: Python<'_>,
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
) -> PyResult<Bound<'_, PyCapsule>> {
    let batches = Box::new(RecordBatchIterator::new(batches, schema));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// Whether an object has `__arrow_c_stream__` or `__arrow_c_array__`.
pub(crate) fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?)
}

/// The batches of such an object.
pub(crate) fn import(
    object: &Bound<'_, PyAny>,
) -> PyResult<Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>> {
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        return Ok(Box::new(take_stream(capsule.cast()?)?));
    }
    if object.hasattr("__arrow_c_array__")? {
        let rows = take_rows(take_data(object)?)?;
        return Ok(Box::new(std::iter::once(Ok(rows))));
    }
    let kind = object.get_type().qualname()?;
    Err(PyTypeError::new_err(format!(
        "expected an Arrow table, record batch or stream (__arrow_c_stream__), not {kind}"
    )))
}

/// The arrays of an Arrow array, chunked array, record batch or table, or of what becomes one by `to_arrow` (a polars series);
/// `None` where it is none of these.
pub(crate) fn import_arrays(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    if object.hasattr("__arrow_c_array__")? {
        return Ok(Some(vec![make_array(take_data(object)?)]));
    }
    if !object.hasattr("__arrow_c_stream__")? {
        return Ok(None);
    }
    // A stream of other arrays than record batches cannot be taken as a stream: its chunks can.
    if object.hasattr("chunks")? {
        let mut arrays = Vec::new();
        for chunk in object.getattr("chunks")?.try_iter()? {
            arrays.extend(import_arrays(&chunk?)?.into_iter().flatten());
        }
        return Ok(Some(arrays));
    }
    if object.hasattr("to_arrow")? {
        return import_arrays(&object.call_method0("to_arrow")?);
    }
    let batches = import(object)?.map(|batch| {
        let rows: ArrayRef = Arc::new(StructArray::from(batch.map_err(failed)?));
        Ok(rows)
    });
    batches.collect::<PyResult<_>>().map(Some)
}

#[allow(unsafe_code)]
fn take_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<RecordBatchStreamReader> {
    let stream = capsule
        .pointer_checked(Some(STREAM))?
        .cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name points to an ArrowArrayStream that nobody has consumed, as the interface demands.
    // `from_raw` moves it out and leaves a released one, so the capsule's destructor finds nothing to release.
    unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) }.map_err(failed)
}

/// Whether types are nested no deeper than `MOST_LEVELS`. It does not call itself.
fn is_shallow(schema: &FFI_ArrowSchema) -> bool {
    let mut level = vec![schema];
    for _ in 0..MOST_LEVELS {
        let below = level
            .iter()
            .flat_map(|each| each.children().chain(each.dictionary()));
        level = below.collect();
        if level.is_empty() {
            return true;
        }
    }
    false
}

#[allow(unsafe_code)]
fn take_data(object: &Bound<'_, PyAny>) -> PyResult<ArrayData> {
    let capsules = object.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema
        .pointer_checked(Some(SCHEMA))?
        .cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names point to an ArrowSchema and an ArrowArray that describe each other, as the interface
    // demands. The array is moved out and a released one left; the schema is only read. Both capsules outlive the calls.
    let data = unsafe {
        let schema = schema.as_ref();
        if !is_shallow(schema) {
            let message = format!("expected types nested at most {MOST_LEVELS} deep, found deeper");
            return Err(PyTypeError::new_err(message));
        }
        let array = FFI_ArrowArray::from_raw(array.as_ptr());
        arrow_array::ffi::from_ffi(array, schema).map_err(failed)?
    };
    Ok(data)
}

fn take_rows(data: ArrayData) -> PyResult<RecordBatch> {
    if !matches!(data.data_type(), DataType::Struct(_)) || data.null_count() > 0 {
        return Err(PyTypeError::new_err(format!(
            "expected an Arrow record batch, not an array of {}",
            data.data_type()
        )));
    }
    let rows = StructArray::from(data);
    Ok(RecordBatch::from(rows))
}
