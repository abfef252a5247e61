//! Fields from Arrow arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, GenericListArray, OffsetSizeTrait};
use arrow_schema::{DataType, TimeUnit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::format::{Column, ColumnKind};
use uuid::Uuid;

use crate::field_in::{Bytes, FieldIn, from_shown};

/// A field's value from a row of an Arrow array.
pub(crate) fn from_arrow<'a>(
    array: &'a dyn Array,
    row: usize,
    kind: ColumnKind,
    name: &str,
) -> PyResult<FieldIn<'a>> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(FieldIn::Null);
    }
    let misfit = || {
        PyValueError::new_err(format!(
            "the column {name} is of type {}: cast it to {}",
            array.data_type(),
            arrow_name(kind)
        ))
    };
    Ok(match kind {
        ColumnKind::Uuid => {
            let (bytes, is_text) = bytes_at(array, row).ok_or_else(misfit)?;
            let uuid = if is_text {
                Uuid::try_parse_ascii(bytes).ok()
            } else {
                Uuid::from_slice(bytes).ok()
            };
            FieldIn::Uuid(uuid.map(Uuid::into_bytes).ok_or_else(|| {
                PyValueError::new_err(format!("{name} is neither 16 bytes nor a UUID's text"))
            })?)
        }
        ColumnKind::Timestamp => FieldIn::Timestamp(
            micros_at(array, row)
                .or_else(|| integer_at(array, row).and_then(|number| number.try_into().ok()))
                .ok_or_else(misfit)?,
        ),
        ColumnKind::Int64 | ColumnKind::UInt64 => {
            let number = integer_at(array, row).ok_or_else(misfit)?;
            let beyond = |_| PyValueError::new_err(format!("{name} is out of range: {number}"));
            if kind == ColumnKind::Int64 {
                FieldIn::Int64(number.try_into().map_err(beyond)?)
            } else {
                FieldIn::UInt64(number.try_into().map_err(beyond)?)
            }
        }
        ColumnKind::Boolean => {
            let array = array.as_boolean_opt().ok_or_else(misfit)?;
            FieldIn::Boolean(array.value(row))
        }
        ColumnKind::Text => {
            let (bytes, is_text) = bytes_at(array, row).ok_or_else(misfit)?;
            FieldIn::Text(Bytes::Other(match std::str::from_utf8(bytes) {
                Ok(text) if is_text => from_shown(text, name)?,
                _ => bytes.into(),
            }))
        }
        ColumnKind::Binary => {
            let (bytes, _) = bytes_at(array, row).ok_or_else(misfit)?;
            FieldIn::Binary(Bytes::Other(bytes.into()))
        }
        ColumnKind::List(kind) => {
            let (items, range) = items_at(array, row).ok_or_else(misfit)?;
            let items = range.map(|item| from_arrow(items, item, *kind, name));
            FieldIn::List(items.collect::<PyResult<_>>()?)
        }
        ColumnKind::Struct(fields) => {
            let array = array.as_struct_opt().ok_or_else(misfit)?;
            let unknown = array
                .column_names()
                .into_iter()
                .find(|own| !fields.iter().any(|field| field.name == *own));
            if let Some(unknown) = unknown {
                return Err(PyValueError::new_err(format!(
                    "{name} has no field {unknown:?}: drop it first, for it would be lost"
                )));
            }
            let field = |column: &Column| match array.column_by_name(column.name) {
                Some(own) => from_arrow(own, row, column.kind, &format!("{name}.{}", column.name)),
                None => Ok(FieldIn::Null),
            };
            FieldIn::Struct(fields.iter().map(field).collect::<PyResult<_>>()?)
        }
    })
}

fn arrow_name(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Uuid => "fixed_size_binary[16], binary or string",
        ColumnKind::Timestamp => "timestamp[us, tz=UTC]",
        ColumnKind::Text | ColumnKind::Binary => "binary or string",
        ColumnKind::Int64 => "int64",
        ColumnKind::UInt64 => "uint64",
        ColumnKind::Boolean => "bool",
        ColumnKind::List(_) => "list",
        ColumnKind::Struct(_) => "struct",
    }
}

/// Bytes of a row, and whether they are text.
fn bytes_at(array: &dyn Array, row: usize) -> Option<(&[u8], bool)> {
    Some(match array.data_type() {
        DataType::Binary => (array.as_binary::<i32>().value(row), false),
        DataType::LargeBinary => (array.as_binary::<i64>().value(row), false),
        DataType::BinaryView => (array.as_binary_view().value(row), false),
        DataType::FixedSizeBinary(_) => (array.as_fixed_size_binary().value(row), false),
        DataType::Utf8 => (array.as_string::<i32>().value(row).as_bytes(), true),
        DataType::LargeUtf8 => (array.as_string::<i64>().value(row).as_bytes(), true),
        DataType::Utf8View => (array.as_string_view().value(row).as_bytes(), true),
        _ => return None,
    })
}

fn integer_at(array: &dyn Array, row: usize) -> Option<i128> {
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Decimal128(_, 0) => {
            let decimals = array.as_primitive::<arrow_array::types::Decimal128Type>();
            decimals.value(row)
        }
        _ => return None,
    })
}

/// A time's microseconds; finer ones round down, as times of UUIDs do.
fn micros_at(array: &dyn Array, row: usize) -> Option<i64> {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            let array = array.as_primitive::<TimestampSecondType>();
            array.value(row).checked_mul(1_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let array = array.as_primitive::<TimestampMillisecondType>();
            array.value(row).checked_mul(1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Some(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let array = array.as_primitive::<TimestampNanosecondType>();
            Some(array.value(row).div_euclid(1_000))
        }
        _ => None,
    }
}

/// The items of a list, and which of them are a row's.
fn items_at(array: &dyn Array, row: usize) -> Option<(&dyn Array, std::ops::Range<usize>)> {
    fn items<O: OffsetSizeTrait>(
        list: &GenericListArray<O>,
        row: usize,
    ) -> Option<(&dyn Array, std::ops::Range<usize>)> {
        let [start, end] = list.value_offsets().get(row..)?.first_chunk()?;
        Some((&**list.values(), start.as_usize()..end.as_usize()))
    }
    match array.data_type() {
        DataType::List(_) => items(array.as_list::<i32>(), row),
        DataType::LargeList(_) => items(array.as_list::<i64>(), row),
        _ => None,
    }
}
