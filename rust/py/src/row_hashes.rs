//! `row_hashes`: a hash of each row of Arrow record batches.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, ListLikeArray, MapArray, OffsetSizeTrait, UInt64Array,
};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use highway_batch::{Batch, Key, hash};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arrow::{column_capsules, import_arrays};
use crate::field_in_arrow::BytesArray;

/// Values of this many bytes or more are hashed where they are. Their hash is encoded instead, so encodings stay small.
const LONG_BYTES: usize = 1024;
/// Rows are hashed together once their encodings have this many bytes.
const WINDOW_BYTES: usize = 1 << 18;

/// Returns a hash of each row of a record batch or struct array, over all columns: HighwayHash-64 with the key 0. `pyarrow.array` makes
/// an array of uint64 of the result. Rows have the same hash if all their values are the same; names of columns do not count. A null
/// differs from each value. Floats are compared by their bits. Binary and string columns of all types are compared by their bytes,
/// lists of all types by their items, and dictionaries by their values. Other values are compared within their type.
///
/// Raises TypeError for another object, a column of another type (a union, list view or run-end encoded one), or types nested deeper
/// than 64.
///
/// >>> import pyarrow
/// >>> from seglake._native import row_hashes
/// >>> rows = pyarrow.record_batch({"type": ["paid", "sent", "paid"]})
/// >>> first, second, third = pyarrow.array(row_hashes(rows)).to_pylist()
/// >>> first == third, first == second
/// (True, False)
#[pyfunction]
#[pyo3(signature = (batch, /))]
pub(crate) fn row_hashes(batch: &Bound<'_, PyAny>) -> PyResult<RowHashes> {
    let is_one = batch.hasattr("__arrow_c_array__")?;
    let rows = is_one.then(|| import_arrays(batch)).transpose()?.flatten();
    let rows = rows.and_then(|mut arrays| arrays.pop());
    let Some(rows) = rows.filter(|rows| matches!(rows.data_type(), DataType::Struct(_))) else {
        let kind = batch.get_type().qualname()?;
        return Err(PyTypeError::new_err(format!(
            "expected an Arrow record batch or struct array (__arrow_c_array__), found {kind}"
        )));
    };
    let hashes = batch.py().detach(|| hashes(&rows))?;
    Ok(RowHashes(hashes.into()))
}

/// Hashes of rows.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct RowHashes(UInt64Array);

#[pymethods]
impl RowHashes {
    /// An array of uint64, for Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema; // a wish that may be left unfulfilled
        column_capsules(py, &self.0, &Field::new("hash", DataType::UInt64, false))
    }
}

fn hashes(rows: &ArrayRef) -> PyResult<Vec<u64>> {
    let values = Values::new(rows)?;
    let mut hashes = Vec::with_capacity(rows.len());
    let (mut batch, mut found) = (Batch::new(), Vec::new());
    let (mut bytes, mut extents) = (Vec::new(), Vec::new());
    for row in 0..rows.len() {
        let start = bytes.len();
        values.encode(row, &mut bytes).ok_or_else(|| {
            let message = format!("row {row}: expected a value, found the end of an Arrow buffer");
            PyValueError::new_err(message)
        })?;
        extents.push((start, bytes.len() - start));
        if bytes.len() >= WINDOW_BYTES || row + 1 == rows.len() {
            batch.hash(&Key::ZERO, &bytes, &extents, &mut found);
            hashes.append(&mut found);
            bytes.clear();
            extents.clear();
        }
    }
    Ok(hashes)
}

/// An array, whose type is looked at once and not for each row.
struct Values<'a> {
    array: &'a dyn Array,
    has_nulls: bool,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Null,
    Boolean(&'a BooleanArray),
    /// Values of this many bytes.
    Fixed(ArrayData, usize),
    Bytes(BytesArray<'a>),
    Struct(Vec<Values<'a>>),
    List(&'a dyn ListLikeArray, Box<Values<'a>>),
    Map(&'a MapArray, Box<Values<'a>>),
    /// The place of each row's value.
    Dictionary(Vec<usize>, Box<Values<'a>>),
}

impl<'a> Values<'a> {
    /// Calls itself as deep as types are nested, which the import limits.
    fn new(array: &'a dyn Array) -> PyResult<Self> {
        let kind = array.data_type();
        let list = |list: &'a dyn ListLikeArray| {
            PyResult::Ok(Kind::List(list, Box::new(Self::new(list.values())?)))
        };
        let kind = match kind {
            DataType::Null => Kind::Null,
            DataType::Boolean => Kind::Boolean(array.as_boolean()),
            DataType::Struct(_) => {
                let columns = array.as_struct().columns().iter();
                let columns = columns.map(|column| Self::new(column));
                Kind::Struct(columns.collect::<PyResult<_>>()?)
            }
            DataType::List(_) => list(array.as_list::<i32>())?,
            DataType::LargeList(_) => list(array.as_list::<i64>())?,
            DataType::FixedSizeList(..) => list(array.as_fixed_size_list())?,
            DataType::Map(..) => {
                let map = array.as_map();
                Kind::Map(map, Box::new(Self::new(map.entries())?))
            }
            DataType::Dictionary(..) => {
                let array = array.as_any_dictionary();
                let values = Box::new(Self::new(array.values())?);
                let is_empty = array.values().is_empty(); // all keys are null
                let keys = if is_empty {
                    Vec::new()
                } else {
                    array.normalized_keys()
                };
                Kind::Dictionary(keys, values)
            }
            _ => match (kind.primitive_width(), BytesArray::of(array)) {
                (Some(width), _) => Kind::Fixed(array.to_data(), width),
                (None, Some(array)) => Kind::Bytes(array),
                (None, None) => {
                    return Err(PyTypeError::new_err(format!(
                        "expected columns whose rows can be hashed, found one of type {kind}: cast it"
                    )));
                }
            },
        };
        let has_nulls = array.null_count() > 0;
        Ok(Self {
            array,
            has_nulls,
            kind,
        })
    }

    /// Appends a row's value; `None` where the array's buffers do not reach. No encoding is the beginning of another one of
    /// the same type.
    fn encode(&self, row: usize, out: &mut Vec<u8>) -> Option<()> {
        if self.has_nulls && self.array.is_null(row) {
            out.push(0);
            return Some(());
        }
        match &self.kind {
            Kind::Null => out.push(0),
            Kind::Boolean(array) => out.push(1 + u8::from(array.value(row))),
            Kind::Fixed(data, width) => {
                out.push(1);
                let start = (data.offset() + row) * width;
                let bytes = data.buffers().first()?.as_slice();
                out.extend_from_slice(bytes.get(start..start + width)?);
            }
            Kind::Bytes(array) => {
                let (bytes, _) = array.at(row);
                out.push(1);
                out.extend((bytes.len() as u64).to_le_bytes());
                if bytes.len() < LONG_BYTES {
                    out.extend_from_slice(bytes);
                } else {
                    out.extend(hash(&Key::ZERO, bytes).to_le_bytes());
                }
            }
            Kind::Struct(columns) => {
                out.push(1);
                for column in columns {
                    column.encode(row, out)?;
                }
            }
            Kind::List(list, values) => values.encode_items(list.element_range(row), out)?,
            Kind::Map(map, values) => values.encode_items(range(map.value_offsets(), row)?, out)?,
            Kind::Dictionary(keys, values) => values.encode(*keys.get(row)?, out)?,
        }
        Some(())
    }

    fn encode_items(&self, mut items: Range<usize>, out: &mut Vec<u8>) -> Option<()> {
        out.push(1);
        out.extend((items.len() as u64).to_le_bytes());
        items.try_for_each(|item| self.encode(item, out))
    }
}

/// The items of a row, by the offsets of all rows.
fn range<O: OffsetSizeTrait>(offsets: &[O], row: usize) -> Option<Range<usize>> {
    let [start, end] = offsets.get(row..)?.first_chunk()?;
    Some(start.as_usize()..end.as_usize())
}
