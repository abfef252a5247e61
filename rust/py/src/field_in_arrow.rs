//! Fields from Arrow arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{
    Array, ArrowPrimitiveType, BinaryArray, BinaryViewArray, FixedSizeBinaryArray,
    LargeBinaryArray, LargeStringArray, ListLikeArray, StringArray, StringViewArray,
    downcast_integer_array,
};
use arrow_schema::{DataType, TimeUnit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::format::{Column, ColumnKind};

use crate::field_in::{Bytes, FieldIn, from_shown, unknown_kind, uuid_of};

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
            let (bytes, text) = bytes_at(array, row).ok_or_else(misfit)?;
            FieldIn::Uuid(uuid_of(bytes, text, name)?)
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
        ColumnKind::Text => text_in(bytes_at(array, row).ok_or_else(misfit)?, name)?,
        ColumnKind::Binary => binary_in(bytes_at(array, row).ok_or_else(misfit)?),
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
        other => return Err(unknown_kind(other)),
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
        other => other.as_str(),
    }
}

fn text_in<'a>((bytes, text): (&'a [u8], Option<&'a str>), name: &str) -> PyResult<FieldIn<'a>> {
    Ok(FieldIn::Text(Bytes::Other(match text {
        Some(text) => from_shown(text, name)?,
        None => bytes.into(),
    })))
}

fn binary_in<'a>((bytes, _): (&'a [u8], Option<&str>)) -> FieldIn<'a> {
    FieldIn::Binary(Bytes::Other(bytes.into()))
}

/// Bytes of a row, and the same where they are text.
fn bytes_at(array: &dyn Array, row: usize) -> Option<(&[u8], Option<&str>)> {
    BytesArray::of(array).map(|array| array.at(row))
}

/// An array of bytes or text, by its type.
#[derive(Clone, Copy)]
pub(crate) enum BytesArray<'a> {
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedSizeBinary(&'a FixedSizeBinaryArray),
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
}

impl<'a> BytesArray<'a> {
    pub(crate) fn of(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Binary => Self::Binary(array.as_binary()),
            DataType::LargeBinary => Self::LargeBinary(array.as_binary()),
            DataType::BinaryView => Self::BinaryView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Self::FixedSizeBinary(array.as_fixed_size_binary()),
            DataType::Utf8 => Self::Utf8(array.as_string()),
            DataType::LargeUtf8 => Self::LargeUtf8(array.as_string()),
            DataType::Utf8View => Self::Utf8View(array.as_string_view()),
            _ => return None,
        })
    }

    /// Bytes of a row, and the same where they are text.
    pub(crate) fn at(self, row: usize) -> (&'a [u8], Option<&'a str>) {
        let text = match self {
            Self::Binary(array) => return (array.value(row), None),
            Self::LargeBinary(array) => return (array.value(row), None),
            Self::BinaryView(array) => return (array.value(row), None),
            Self::FixedSizeBinary(array) => return (array.value(row), None),
            Self::Utf8(array) => array.value(row),
            Self::LargeUtf8(array) => array.value(row),
            Self::Utf8View(array) => array.value(row),
        };
        (text.as_bytes(), Some(text))
    }
}

/// A column of an Arrow batch. What its array is, is asked once and not with each row.
pub(crate) struct ColumnIn<'a> {
    array: &'a dyn Array,
    /// Where no row is null.
    bytes: Option<BytesArray<'a>>,
    kind: ColumnKind,
    name: &'static str,
}

impl<'a> ColumnIn<'a> {
    pub(crate) fn new(array: &'a dyn Array, column: &Column) -> Self {
        Self {
            array,
            bytes: BytesArray::of(array).filter(|_| array.null_count() == 0),
            kind: column.kind,
            name: column.name,
        }
    }

    /// A field's value.
    pub(crate) fn at(&self, row: usize) -> PyResult<FieldIn<'a>> {
        match (self.bytes, self.kind) {
            (Some(array), ColumnKind::Text) => text_in(array.at(row), self.name),
            (Some(array), ColumnKind::Binary) => Ok(binary_in(array.at(row))),
            _ => from_arrow(self.array, row, self.kind, self.name),
        }
    }
}

fn integer_at(array: &dyn Array, row: usize) -> Option<i128> {
    downcast_integer_array!(
        array => Some(array.value(row).into()),
        DataType::Decimal128(_, 0) => Some(array.as_primitive::<Decimal128Type>().value(row)),
        _ => None
    )
}

/// A time's microseconds; finer ones round down, as times of UUIDs do.
fn micros_at(array: &dyn Array, row: usize) -> Option<i64> {
    fn at<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
        array.as_primitive::<T>().value(row)
    }
    let DataType::Timestamp(unit, _) = array.data_type() else {
        return None;
    };
    match unit {
        TimeUnit::Second => at::<TimestampSecondType>(array, row).checked_mul(1_000_000),
        TimeUnit::Millisecond => at::<TimestampMillisecondType>(array, row).checked_mul(1_000),
        TimeUnit::Microsecond => Some(at::<TimestampMicrosecondType>(array, row)),
        TimeUnit::Nanosecond => Some(at::<TimestampNanosecondType>(array, row).div_euclid(1_000)),
    }
}

/// The items of a list, and which of them are a row's.
fn items_at(array: &dyn Array, row: usize) -> Option<(&dyn Array, std::ops::Range<usize>)> {
    let list: &dyn ListLikeArray = match array.data_type() {
        DataType::List(_) => array.as_list::<i32>(),
        DataType::LargeList(_) => array.as_list::<i64>(),
        _ => return None,
    };
    Some((&**list.values(), list.element_range(row)))
}
