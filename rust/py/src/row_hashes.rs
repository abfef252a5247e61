//! `row_hashes`: a hash of each row of Arrow record batches.

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, FixedSizeBinaryArray, ListArray, ListLikeArray};
use arrow_schema::DataType;
use highway_batch::{Key, hash};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::{failed, import_arrays};
use crate::field_in_arrow::BytesArray;
use crate::numbers::wrong_type;

/// Values of this many bytes or more are hashed where they are. Their hash is encoded instead, so encodings stay small.
const LONG_BYTES: usize = 1024;

/// Returns a hash of each row of a record batch or struct array with columns as those of records: 8 bytes each, in the machine's byte
/// order.
/// Rows with columns of the same types have the same hash if all their values are the same. A null differs from each value. Names of
/// columns do not count.
///
/// Raises TypeError for another object, a column of a type that no column of records has, or types nested deeper than 64.
///
/// >>> import pyarrow
/// >>> from seglake._native import row_hashes
/// >>> rows = pyarrow.record_batch({"type": ["paid", "sent", "paid"]})
/// >>> first, second, third = memoryview(row_hashes(rows)).cast("Q")
/// >>> first == third, first == second
/// (True, False)
#[pyfunction]
#[pyo3(signature = (rows, /))]
pub(crate) fn row_hashes<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = rows.py();
    let is_one = rows.hasattr("__arrow_c_array__")?;
    let array = is_one.then(|| import_arrays(rows)).transpose()?.flatten();
    let array = array.and_then(|mut arrays| arrays.pop());
    let Some(array) = array.filter(|array| matches!(array.data_type(), DataType::Struct(_))) else {
        return Err(wrong_type(
            "rows",
            "an Arrow record batch or struct array",
            rows,
        ));
    };
    let hashes = py.detach(|| hashes(&array))?;
    Ok(PyBytes::new(py, &hashes))
}

fn hashes(rows: &dyn Array) -> PyResult<Vec<u8>> {
    let values = Values::new(rows)?;
    let mut hashes = Vec::with_capacity(rows.len() * size_of::<u64>());
    let mut encoded = Vec::new();
    for row in 0..rows.len() {
        encoded.clear();
        values.encode(row, &mut encoded);
        hashes.extend(hash(&Key::ZERO, &encoded).to_ne_bytes());
    }
    Ok(hashes)
}

/// An array, whose type is looked at once and not for each row.
struct Values<'a> {
    array: &'a dyn Array,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Boolean(&'a BooleanArray),
    /// Values of a fixed width, by their bytes.
    Fixed(FixedSizeBinaryArray),
    Bytes(BytesArray<'a>),
    Struct(Vec<Values<'a>>),
    List(&'a ListArray, Box<Values<'a>>),
}

impl<'a> Values<'a> {
    /// Calls itself as deep as types are nested, which the import limits.
    fn new(array: &'a dyn Array) -> PyResult<Self> {
        let fixed = |width| {
            let kind = DataType::FixedSizeBinary(width);
            let data = array.to_data().into_builder().data_type(kind).build();
            data.map(|data| Kind::Fixed(data.into())).map_err(failed)
        };
        let kind = match array.data_type() {
            DataType::Boolean => Kind::Boolean(array.as_boolean()),
            DataType::Int64 | DataType::UInt64 | DataType::Timestamp(..) => fixed(8)?,
            DataType::Decimal128(..) => fixed(16)?,
            DataType::Struct(_) => {
                let columns = array.as_struct().columns().iter();
                let columns = columns.map(|column| Self::new(column));
                Kind::Struct(columns.collect::<PyResult<_>>()?)
            }
            DataType::List(_) => {
                let list = array.as_list();
                Kind::List(list, Box::new(Self::new(list.values())?))
            }
            kind => Kind::Bytes(BytesArray::of(array).ok_or_else(|| {
                let expected = "expected columns as those of records";
                PyTypeError::new_err(format!("{expected}, found one of type {kind}: cast it"))
            })?),
        };
        Ok(Self { array, kind })
    }

    /// Appends a row's value. No encoding is the beginning of another one of the same type.
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        out.push(self.array.is_valid(row).into());
        if self.array.is_null(row) {
            return;
        }
        match &self.kind {
            Kind::Boolean(array) => out.push(array.value(row).into()),
            Kind::Fixed(array) => out.extend_from_slice(array.value(row)),
            Kind::Bytes(array) => {
                let (bytes, _) = array.at(row);
                out.extend((bytes.len() as u64).to_le_bytes());
                if bytes.len() < LONG_BYTES {
                    out.extend_from_slice(bytes);
                } else {
                    out.extend(hash(&Key::ZERO, bytes).to_le_bytes());
                }
            }
            Kind::Struct(columns) => {
                for column in columns {
                    column.encode(row, out);
                }
            }
            Kind::List(list, values) => {
                let items = list.element_range(row);
                out.extend((items.len() as u64).to_le_bytes());
                for item in items {
                    values.encode(item, out);
                }
            }
        }
    }
}
