//! What records are found by.

use std::fmt;
use std::slice;

use uuid::Uuid;

use super::{Column, ColumnKind, Rows, Value};
use crate::text::escape;

/// What one record is found by: a value for each column that identifies records of its format
/// ([`Format::identifier`](crate::format::Format::identifier)), in their order.
///
/// ```
/// use seglake::RecordId;
///
/// // Of one column: a UUID in network byte order, or a number.
/// let order = RecordId::from([0x1e; 16]);
/// let offset = RecordId::from(17);
/// // Of several: partition, tenant and index of a tenant file.
/// let message = RecordId::new([7.into(), "acme".into(), 0.into()]);
/// assert_eq!(message.values().len(), 3);
/// # assert_ne!(order, offset);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(Values);

/// One value, of which there are many, is kept without a list of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Values {
    One(IdValue),
    Several(Vec<IdValue>),
}

/// The value of one column that identifies records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum IdValue {
    /// 16 bytes in network byte order.
    Uuid([u8; 16]),
    /// A number, of whatever kind the column is. One that the column cannot hold is no record's.
    Integer(i128),
    /// Bytes, shown as text.
    Text(Vec<u8>),
}

impl IdValue {
    /// The value of a column, unless records are not found by such.
    #[must_use]
    pub fn of(value: &Value<'_>) -> Option<Self> {
        match *value {
            Value::Uuid(uuid) => Some(Self::Uuid(uuid)),
            Value::Int64(number) => Some(number.into()),
            Value::UInt64(number) => Some(number.into()),
            Value::Text(bytes) | Value::Binary(bytes) => Some(bytes.into()),
            _ => None,
        }
    }

    /// Whether a column can have values of this kind.
    const fn is_of(&self, kind: ColumnKind) -> bool {
        match self {
            Self::Uuid(_) => matches!(kind, ColumnKind::Uuid),
            Self::Integer(_) => matches!(kind, ColumnKind::Int64 | ColumnKind::UInt64),
            Self::Text(_) => matches!(kind, ColumnKind::Text | ColumnKind::Binary),
        }
    }

    /// The same as the value of a column of this kind; [`Value::Null`] where that cannot hold it.
    #[must_use]
    pub fn value(&self, kind: ColumnKind) -> Value<'_> {
        match (self, kind) {
            (Self::Uuid(uuid), ColumnKind::Uuid) => Value::Uuid(*uuid),
            (Self::Integer(number), ColumnKind::Int64) => {
                (*number).try_into().map_or(Value::Null, Value::Int64)
            }
            (Self::Integer(number), ColumnKind::UInt64) => {
                (*number).try_into().map_or(Value::Null, Value::UInt64)
            }
            (Self::Text(bytes), ColumnKind::Text) => Value::Text(bytes),
            (Self::Text(bytes), ColumnKind::Binary) => Value::Binary(bytes),
            _ => Value::Null,
        }
    }
}

/// As it is shown: a UUID hyphenated, bytes as [`escape`] has them.
impl fmt::Display for IdValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => Uuid::from_bytes(*uuid).fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Text(bytes) => escape(bytes).fmt(f),
        }
    }
}

impl RecordId {
    /// Of these values, one for each identifying column.
    #[must_use]
    pub fn new(values: impl Into<Vec<IdValue>>) -> Self {
        let mut values = values.into();
        Self(match (values.pop(), values.is_empty()) {
            (Some(value), true) => Values::One(value),
            (last, _) => {
                values.extend(last);
                Values::Several(values)
            }
        })
    }

    /// The values, in the order of the columns.
    #[must_use]
    pub fn values(&self) -> &[IdValue] {
        match &self.0 {
            Values::One(value) => slice::from_ref(value),
            Values::Several(values) => values,
        }
    }

    /// What a row is found by whose identifying columns have these places; `None` if it lacks one.
    pub(crate) fn of_row(rows: &dyn Rows, row: usize, places: &[usize]) -> Option<Self> {
        let value = |place: &usize| IdValue::of(&rows.field(row, *place));
        match places {
            [place] => value(place).map(Self::from),
            places => places
                .iter()
                .map(value)
                .collect::<Option<Vec<_>>>()
                .map(Self::new),
        }
    }

    /// Whether records with these identifying columns are found by such.
    #[inline]
    pub(crate) fn fits(&self, columns: &[&Column]) -> bool {
        match (&self.0, columns) {
            (Values::One(value), [column]) => value.is_of(column.kind),
            (Values::Several(values), columns) if values.len() == columns.len() => {
                let mut each = values.iter().zip(columns);
                each.all(|(value, column)| value.is_of(column.kind))
            }
            _ => false,
        }
    }

    /// The UUID, where that is all.
    #[inline]
    pub(crate) const fn as_uuid(&self) -> Option<[u8; 16]> {
        match &self.0 {
            Values::One(IdValue::Uuid(uuid)) => Some(*uuid),
            _ => None,
        }
    }

    /// The number, where that is all and it is of this type.
    #[cfg(feature = "chunked")]
    pub(crate) fn as_integer<T: TryFrom<i128>>(&self) -> Option<T> {
        match &self.0 {
            Values::One(IdValue::Integer(number)) => T::try_from(*number).ok(),
            _ => None,
        }
    }
}

impl<T: Into<IdValue>> From<T> for RecordId {
    /// Of one column.
    fn from(value: T) -> Self {
        Self(Values::One(value.into()))
    }
}

impl From<[u8; 16]> for IdValue {
    fn from(uuid: [u8; 16]) -> Self {
        Self::Uuid(uuid)
    }
}

impl From<i32> for IdValue {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u32> for IdValue {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<i64> for IdValue {
    fn from(number: i64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u64> for IdValue {
    fn from(number: u64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<&[u8]> for IdValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Text(bytes.to_vec())
    }
}

impl From<Vec<u8>> for IdValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Text(bytes)
    }
}

impl From<&str> for IdValue {
    fn from(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_a_column_that_can_hold_it() {
        let number = IdValue::from(-1);
        assert_eq!(number.value(ColumnKind::Int64), Value::Int64(-1));
        assert_eq!(number.value(ColumnKind::UInt64), Value::Null);
        assert_eq!(
            IdValue::from(u64::MAX).value(ColumnKind::Int64),
            Value::Null
        );
        assert_eq!(IdValue::from("a").value(ColumnKind::Uuid), Value::Null);
        assert_eq!(
            IdValue::from("a").value(ColumnKind::Binary),
            Value::Binary(b"a")
        );
    }

    #[test]
    fn identifiers_are_of_columns() {
        let columns = [
            Column::new("shard", ColumnKind::Int64),
            Column::new("sequence", ColumnKind::UInt64),
        ];
        assert!(RecordId::new([1.into(), 2.into()]).fits(&columns.each_ref()));
        assert!(!RecordId::from(1).fits(&columns.each_ref()));
        assert!(!RecordId::new([1.into(), "2".into()]).fits(&columns.each_ref()));
        assert!(!RecordId::new([1.into(), 2.into(), 3.into()]).fits(&columns.each_ref()));
        assert!(!RecordId::new([]).fits(&columns.each_ref()));
        assert_eq!(RecordId::new([1.into()]), RecordId::from(1));
    }
}
