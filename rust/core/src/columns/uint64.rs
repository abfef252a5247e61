//! Unsigned 64-bit numbers for readers without such a type, also within lists and structures.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Decimal128Array, Int64Array, ListArray, StructArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, DataType, Field};

/// The digits of 2^64-1.
const DIGITS: u8 = 20;

/// The Arrow type of unsigned 64-bit numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uint64Type {
    /// `uint64`.
    #[default]
    UInt64,
    /// `int64`. A number above 2^63-1 is an [`Error::Number`](crate::Error::Number).
    Int64,
    /// `decimal128(20, 0)`, which has all of them.
    Decimal,
}

impl Uint64Type {
    /// A field with unsigned 64-bit numbers as this type.
    pub(super) fn field(self, field: &Field) -> Field {
        let data_type = self.data_type(field.data_type());
        field.clone().with_data_type(data_type)
    }

    fn data_type(self, data_type: &DataType) -> DataType {
        match (data_type, self) {
            (DataType::UInt64, Self::Int64) => DataType::Int64,
            (DataType::UInt64, Self::Decimal) => DataType::Decimal128(DIGITS, 0),
            (DataType::List(items), _) => DataType::List(Arc::new(self.field(items))),
            (DataType::Struct(fields), _) => {
                DataType::Struct(fields.iter().map(|field| self.field(field)).collect())
            }
            _ => data_type.clone(),
        }
    }
}

/// A number that an `int64` cannot store: its row, its field (`clock.length`) and its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge {
    pub(super) row: usize,
    pub(super) field: String,
    pub(super) value: u64,
}

/// The first number of a column above 2^63-1. That of a list has the list's row.
pub(super) fn find_too_large(array: &ArrayRef, field: &str) -> Option<TooLarge> {
    match array.data_type() {
        DataType::UInt64 => {
            let numbers = array.as_primitive::<UInt64Type>();
            let is_above = |(_, value): &(usize, Option<u64>)| {
                value.is_some_and(|value| i64::try_from(value).is_err())
            };
            let (row, value) = numbers.iter().enumerate().find(is_above)?;
            let (field, value) = (field.to_owned(), value?);
            Some(TooLarge { row, field, value })
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let found = find_too_large(list.values(), field)?;
            let is_in_front = |end: &i32| usize::try_from(*end).is_ok_and(|end| end <= found.row);
            let ends = list.value_offsets().get(1..)?;
            let row = ends.partition_point(is_in_front);
            Some(TooLarge { row, ..found })
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            columns
                .filter_map(|(column, own)| {
                    find_too_large(column, &format!("{field}.{}", own.name()))
                })
                .next()
        }
        _ => None,
    }
}

/// A column of unsigned 64-bit numbers, or with some within it, as `to`. No number is above what `to` can store.
pub(super) fn converted(array: ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    Ok(match (array.data_type(), to) {
        (DataType::UInt64, DataType::Int64) => {
            let numbers = array.as_primitive::<UInt64Type>();
            let values = ScalarBuffer::<i64>::from(numbers.values().inner().clone());
            Arc::new(Int64Array::try_new(values, numbers.nulls().cloned())?)
        }
        (DataType::UInt64, DataType::Decimal128(digits, scale)) => {
            let numbers = array.as_primitive::<UInt64Type>();
            let values: Vec<_> = numbers.values().iter().copied().map(i128::from).collect();
            let decimals = Decimal128Array::try_new(values.into(), numbers.nulls().cloned())?;
            Arc::new(decimals.with_precision_and_scale(*digits, *scale)?)
        }
        (DataType::List(_), DataType::List(field)) => {
            let list = array.as_list::<i32>();
            let items = converted(list.values().clone(), field.data_type())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(field.clone(), offsets, items, nulls)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let own = array.as_struct();
            let columns = own.columns().iter().cloned().zip(fields);
            let columns = columns.map(|(column, field)| converted(column, field.data_type()));
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns.collect::<Result<_, _>>()?,
                own.nulls().cloned(),
                own.len(),
            )?)
        }
        _ => array,
    })
}

/// What a record is called in an error: the values of these columns, as far as they are numbers.
pub(super) fn record_name<'a>(
    columns: impl Iterator<Item = (&'a str, &'a ArrayRef)>,
    row: usize,
) -> String {
    let named = columns.filter_map(|(name, array)| {
        let numbers = array.as_primitive_opt::<Int64Type>()?;
        Some(format!("{name} {}, ", numbers.value(row)))
    });
    named.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_array::UInt64Array;
    use arrow_buffer::{NullBuffer, OffsetBuffer};

    use super::*;

    const MOST: u64 = 1 << 63;

    /// Lists of structures of a number: [], [0, null], null, [2^63-1, `last`].
    fn lists(last: u64) -> ArrayRef {
        let numbers = UInt64Array::from(vec![Some(0), None, Some(MOST - 1), Some(last)]);
        let fields = vec![Arc::new(Field::new("length", DataType::UInt64, true))];
        let structs = StructArray::new(fields.into(), vec![Arc::new(numbers)], None);
        let item = Arc::new(Field::new("item", structs.data_type().clone(), true));
        let offsets = OffsetBuffer::new(vec![0, 0, 2, 2, 4].into());
        let nulls = NullBuffer::from(vec![true, true, false, true]);
        Arc::new(ListArray::new(
            item,
            offsets,
            Arc::new(structs),
            Some(nulls),
        ))
    }

    fn numbers(array: &ArrayRef) -> ArrayRef {
        array
            .as_list::<i32>()
            .values()
            .as_struct()
            .column(0)
            .clone()
    }

    #[test]
    fn numbers_within_lists_and_structures_are_converted() {
        let array = lists(MOST - 1);
        let field = Field::new("clock", array.data_type().clone(), true);
        for (uint64, most) in [
            (Uint64Type::Int64, MOST - 1),
            (Uint64Type::Decimal, u64::MAX),
        ] {
            let array = lists(most);
            let to = uint64.field(&field);
            let made = converted(array.clone(), to.data_type()).unwrap();
            assert_eq!(made.data_type(), to.data_type());
            assert_eq!(made.nulls(), array.nulls());
            assert_eq!(
                made.as_list::<i32>().offsets(),
                array.as_list::<i32>().offsets()
            );
            let found: Vec<_> = match uint64 {
                Uint64Type::Int64 => {
                    let own = numbers(&made);
                    let own = own.as_primitive::<Int64Type>();
                    own.iter().map(|own| own.map(i128::from)).collect()
                }
                _ => {
                    let own = numbers(&made);
                    assert_eq!(*own.data_type(), DataType::Decimal128(20, 0));
                    own.as_primitive::<arrow_array::types::Decimal128Type>()
                        .iter()
                        .collect()
                }
            };
            let some = |number: u64| Some(i128::from(number));
            assert_eq!(found, [some(0), None, some(MOST - 1), some(most)]);
        }
        assert_eq!(Uint64Type::UInt64.field(&field), field);
    }

    #[test]
    fn the_first_number_that_is_too_large_is_found() {
        assert_eq!(find_too_large(&lists(MOST - 1), "clock"), None);
        let (row, field, value) = (3, "clock.length".to_owned(), MOST);
        let expected = TooLarge { row, field, value };
        assert_eq!(find_too_large(&lists(MOST), "clock"), Some(expected));
        let plain: ArrayRef = Arc::new(UInt64Array::from(vec![None, Some(5), Some(u64::MAX)]));
        let found = find_too_large(&plain, "batch").unwrap();
        assert_eq!((found.row, found.value), (2, u64::MAX));
    }
}
