//! Makes Arrow arrays of filled columns, without a copy.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Int64Array,
    ListArray, StringArray, StructArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};

use crate::error::Error;
use crate::record::{Column, ColumnBuffer, ColumnKind, UuidType, Values};

pub(super) fn data_type(kind: ColumnKind, uuids: UuidType) -> DataType {
    match (kind, uuids) {
        (ColumnKind::Uuid, UuidType::Fixed | UuidType::Extension) => DataType::FixedSizeBinary(16),
        (ColumnKind::Uuid, UuidType::Text) | (ColumnKind::Text, _) => DataType::Utf8,
        (ColumnKind::Uuid, UuidType::Binary) | (ColumnKind::Binary, _) => DataType::Binary,
        (ColumnKind::Timestamp, _) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        (ColumnKind::Int64, _) => DataType::Int64,
        (ColumnKind::UInt64, _) => DataType::UInt64,
        (ColumnKind::Boolean, _) => DataType::Boolean,
        (ColumnKind::List(kind), _) => {
            DataType::List(Arc::new(Field::new("item", data_type(*kind, uuids), true)))
        }
        (ColumnKind::Struct(fields), _) => {
            let field =
                |column: &Column| Field::new(column.name, data_type(column.kind, uuids), true);
            DataType::Struct(fields.iter().map(field).collect())
        }
    }
}

/// The field of a column.
pub(super) fn field(name: &str, kind: ColumnKind, uuids: UuidType) -> Field {
    let field = Field::new(name, data_type(kind, uuids), true);
    match (kind, uuids) {
        (ColumnKind::Uuid, UuidType::Extension) => {
            let entries = EXTENSION.map(|(key, value)| (key.to_owned(), value.to_owned()));
            field.with_metadata(HashMap::from(entries))
        }
        _ => field,
    }
}

/// Marks fixed-size binary as UUIDs: Arrow's canonical extension type, without parameters.
const EXTENSION: [(&str, &str); 2] = [
    ("ARROW:extension:name", "arrow.uuid"),
    ("ARROW:extension:metadata", ""),
];

/// Unsigned numbers as what `data_type` has for them. As signed ones those above 2^63-1 are negative.
fn unsigned(
    values: Vec<u64>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> std::result::Result<ArrayRef, ArrowError> {
    Ok(match data_type {
        DataType::Int64 => {
            let values: Vec<_> = values.into_iter().map(u64::cast_signed).collect();
            Arc::new(Int64Array::try_new(values.into(), nulls)?)
        }
        DataType::Decimal128(digits, scale) => {
            let values: Vec<_> = values.into_iter().map(i128::from).collect();
            let decimals = Decimal128Array::try_new(values.into(), nulls)?;
            Arc::new(decimals.with_precision_and_scale(*digits, *scale)?)
        }
        _ => Arc::new(UInt64Array::try_new(values.into(), nulls)?),
    })
}

pub(super) fn array(
    column: ColumnBuffer,
    data_type: &DataType,
) -> std::result::Result<ArrayRef, ArrowError> {
    let (values, len, valid) = column.into_parts();
    let nulls = valid.map(NullBuffer::from);
    Ok(match values {
        Values::Fixed16(values) => Arc::new(FixedSizeBinaryArray::try_new(
            16,
            Buffer::from_vec(fitted(values).into_flattened()),
            nulls,
        )?),
        Values::Int64(values) if *data_type == DataType::Int64 => {
            Arc::new(Int64Array::try_new(fitted(values).into(), nulls)?)
        }
        Values::Int64(values) => {
            let times = TimestampMicrosecondArray::try_new(fitted(values).into(), nulls)?;
            Arc::new(times.with_timezone("UTC"))
        }
        Values::UInt64(values) => unsigned(fitted(values), data_type, nulls)?,
        Values::Boolean(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)),
        Values::Binary { offsets, data } => {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(fitted(offsets)));
            let data = Buffer::from_vec(fitted(data));
            Arc::new(BinaryArray::try_new(offsets, data, nulls)?)
        }
        Values::Text { offsets, data } => Arc::new(text(fitted(offsets), data, nulls)?),
        Values::List { offsets, items } => {
            let DataType::List(field) = data_type else {
                return Err(mismatch(data_type));
            };
            let items = array(*items, field.data_type())?;
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            Arc::new(ListArray::try_new(field.clone(), offsets, items, nulls)?)
        }
        Values::Struct(columns) => {
            let DataType::Struct(fields) = data_type else {
                return Err(mismatch(data_type));
            };
            let columns = columns.into_iter().zip(fields);
            let columns = columns.map(|(column, field)| array(column, field.data_type()));
            let columns = columns.collect::<std::result::Result<_, _>>()?;
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                nulls,
                len,
            )?)
        }
    })
}

/// Frees the reserved memory that is not needed, if it is much.
fn fitted<T>(mut values: Vec<T>) -> Vec<T> {
    if values.len() < values.capacity() / 2 {
        values.shrink_to_fit();
    }
    values
}

/// An array of texts that are adjacent in memory, as [`ColumnBuffer`] collects them: each from its offset to the next.
#[allow(unsafe_code)]
fn text(
    offsets: Vec<i32>,
    data: String,
    nulls: Option<NullBuffer>,
) -> std::result::Result<StringArray, ArrowError> {
    if i32::try_from(data.len()).is_err() {
        return Err(ArrowError::OffsetOverflowError(data.len()));
    }
    let data = Buffer::from_vec(fitted(data.into_bytes()));
    // SAFETY: a column's first offset is 0, and each later one is the length of its data after a whole text. So offsets
    // ascend, none is past the end, and none is within a character. The data is a `String`, which is UTF-8. Offsets are
    // cut off at the largest value only if the data is longer, which was refused above. A column has one more offset
    // than values, and `valid`, if it is not empty, has one entry for each value.
    Ok(unsafe {
        let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets));
        StringArray::new_unchecked(offsets, data, nulls)
    })
}

fn mismatch(data_type: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("the column is not of type {data_type}"))
}

/// The error if Arrow refuses the columns. All have the same length and the types of their fields, so this is a bug in
/// this module.
pub(super) fn internal(error: ArrowError) -> Error {
    Error::Usage(format!("cannot build a record batch: {error}"))
}
