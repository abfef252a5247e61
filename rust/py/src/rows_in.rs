//! Columns of Arrow batches that are to be written, as bytes row by row.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A column of bytes or text.
pub(crate) struct BytesColumn<'a>(&'a dyn Array);

impl<'a> BytesColumn<'a> {
    /// The column of this name. Raises ValueError where it is of a type that has no bytes; None where there is none.
    pub(crate) fn of(batch: &'a RecordBatch, name: &str) -> PyResult<Option<Self>> {
        let Some(array) = batch.column_by_name(name) else {
            return Ok(None);
        };
        match array.data_type() {
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => {}
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {}
            other => {
                return Err(PyValueError::new_err(format!(
                    "the column {name} is of type {other}: cast it to binary or string"
                )));
            }
        }
        Ok(Some(Self(array.as_ref())))
    }

    /// The bytes of a row; None where it is null.
    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        if self.0.is_null(row) {
            return None;
        }
        Some(match self.0.data_type() {
            DataType::Binary => self.0.as_binary::<i32>().value(row),
            DataType::LargeBinary => self.0.as_binary::<i64>().value(row),
            DataType::BinaryView => self.0.as_binary_view().value(row),
            DataType::FixedSizeBinary(_) => self.0.as_fixed_size_binary().value(row),
            DataType::Utf8 => self.0.as_string::<i32>().value(row).as_bytes(),
            DataType::LargeUtf8 => self.0.as_string::<i64>().value(row).as_bytes(),
            _ => self.0.as_string_view().value(row).as_bytes(),
        })
    }

    /// Whether the column is text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(
            self.0.data_type(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
    }
}
