//! Filled columns as Arrow arrays, without a copy.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Int64Array, ListArray, StringArray,
    StructArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};

use super::{ColumnBuffer, UuidType, Values};
use crate::error::Error;
use crate::format::{Column, ColumnKind};

pub(super) fn data_type(kind: ColumnKind, uuids: UuidType) -> DataType {
    match (kind, uuids) {
        (ColumnKind::Uuid, UuidType::Fixed) => DataType::FixedSizeBinary(16),
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

pub(super) fn array(
    column: ColumnBuffer,
    data_type: &DataType,
) -> std::result::Result<ArrayRef, ArrowError> {
    let (values, len, valid) = column.into_parts();
    let nulls = valid.map(NullBuffer::from);
    Ok(match values {
        Values::Fixed16(bytes) => Arc::new(FixedSizeBinaryArray::try_new(
            16,
            Buffer::from_vec(fitted(bytes)),
            nulls,
        )?),
        Values::Int64(values) if *data_type == DataType::Int64 => {
            Arc::new(Int64Array::try_new(fitted(values).into(), nulls)?)
        }
        Values::Int64(values) => {
            let times = TimestampMicrosecondArray::try_new(fitted(values).into(), nulls)?;
            Arc::new(times.with_timezone("UTC"))
        }
        Values::UInt64(values) => Arc::new(UInt64Array::try_new(fitted(values).into(), nulls)?),
        Values::Boolean(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)),
        Values::Binary { offsets, data } => {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(fitted(offsets)));
            let data = Buffer::from_vec(fitted(data));
            Arc::new(BinaryArray::try_new(offsets, data, nulls)?)
        }
        Values::Text { offsets, data } => {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(fitted(offsets)));
            let data = Buffer::from_vec(fitted(data.into_bytes()));
            Arc::new(StringArray::try_new(offsets, data, nulls)?)
        }
        Values::Views(views) => views.into_array(nulls)?,
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

/// What was reserved and is not needed goes, where that is much.
fn fitted<T>(mut values: Vec<T>) -> Vec<T> {
    if values.len() < values.capacity() / 2 {
        values.shrink_to_fit();
    }
    values
}

fn mismatch(data_type: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("the column is not of type {data_type}"))
}

/// Columns of one length each with the type of its field: that Arrow refuses them would be a mistake of this module.
pub(super) fn internal(error: ArrowError) -> Error {
    Error::Usage(format!("cannot build a record batch: {error}"))
}
