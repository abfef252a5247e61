//! Values in identifiers and filters.

use std::cmp::Ordering;
use std::fmt;

use uuid::Uuid;

use serde::{Deserialize, Serialize};

use super::{ColumnKind, Value};
use crate::text::escape;

/// A value in an identifier or filter, of any column except lists and structures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Scalar {
    /// 16 bytes in network byte order.
    Uuid([u8; 16]),
    /// A Boolean value.
    Boolean(bool),
    /// A number of any integer column. A time is microseconds since 1970-01-01 UTC. A number outside the column's range
    /// matches no record.
    Integer(i128),
    /// Bytes, displayed as text.
    Text(Vec<u8>),
}

impl Scalar {
    /// The value of a column; `None` if it is null, a list or a structure.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn of(value: &Value<'_>) -> Option<Self> {
        match *value {
            Value::Uuid(uuid) => Some(Self::Uuid(uuid)),
            Value::Boolean(value) => Some(Self::Boolean(value)),
            Value::Timestamp(micros) => Some(micros.into()),
            Value::Int64(number) => Some(number.into()),
            Value::UInt64(number) => Some(number.into()),
            Value::Text(bytes) | Value::Binary(bytes) => Some(bytes.into()),
            _ => None,
        }
    }

    /// Whether a column of this kind can have the value.
    pub(crate) const fn is_of(&self, kind: ColumnKind) -> bool {
        match self {
            Self::Uuid(_) => matches!(kind, ColumnKind::Uuid),
            Self::Boolean(_) => matches!(kind, ColumnKind::Boolean),
            Self::Integer(_) => matches!(
                kind,
                ColumnKind::Timestamp | ColumnKind::Int64 | ColumnKind::UInt64
            ),
            Self::Text(_) => matches!(kind, ColumnKind::Text | ColumnKind::Binary),
        }
    }

    /// The value in a column of this kind; [`Value::Null`] if it is out of that kind's range.
    #[doc(hidden)] // public for tests
    #[must_use]
    pub fn value(&self, kind: ColumnKind) -> Value<'_> {
        match (self, kind) {
            (Self::Uuid(uuid), ColumnKind::Uuid) => Value::Uuid(*uuid),
            (Self::Boolean(value), ColumnKind::Boolean) => Value::Boolean(*value),
            (Self::Integer(number), ColumnKind::Timestamp) => {
                Value::or_null((*number).try_into().ok().map(Value::Timestamp))
            }
            (Self::Integer(number), ColumnKind::Int64) => {
                Value::or_null((*number).try_into().ok().map(Value::Int64))
            }
            (Self::Integer(number), ColumnKind::UInt64) => {
                Value::or_null((*number).try_into().ok().map(Value::UInt64))
            }
            (Self::Text(bytes), ColumnKind::Text) => Value::Text(bytes),
            (Self::Text(bytes), ColumnKind::Binary) => Value::Binary(bytes),
            _ => Value::Null,
        }
    }

    /// Compares with a record's value; `None` if that is null or of another kind.
    pub(crate) fn compare(&self, value: &Value<'_>) -> Option<Ordering> {
        Some(match (self, value) {
            (Self::Uuid(this), Value::Uuid(uuid)) => this.cmp(uuid),
            (Self::Boolean(this), Value::Boolean(value)) => this.cmp(value),
            (Self::Integer(this), Value::Timestamp(number) | Value::Int64(number)) => {
                this.cmp(&i128::from(*number))
            }
            (Self::Integer(this), Value::UInt64(number)) => this.cmp(&i128::from(*number)),
            (Self::Text(this), Value::Text(bytes) | Value::Binary(bytes)) => {
                this.as_slice().cmp(bytes)
            }
            _ => return None,
        })
    }

    /// The next greater value of the same kind; `None` if this is the greatest.
    pub(crate) fn next(&self) -> Option<Self> {
        match self {
            Self::Uuid(uuid) => {
                let next = u128::from_be_bytes(*uuid).checked_add(1)?;
                Some(Self::Uuid(next.to_be_bytes()))
            }
            Self::Boolean(value) => (!value).then_some(Self::Boolean(true)),
            Self::Integer(number) => number.checked_add(1).map(Self::Integer),
            Self::Text(bytes) => {
                let mut next = bytes.clone();
                next.push(0);
                Some(Self::Text(next))
            }
        }
    }
}

/// Displays a UUID hyphenated, and bytes [escaped](escape).
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => Uuid::from_bytes(*uuid).fmt(f),
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Text(bytes) => escape(bytes).fmt(f),
        }
    }
}

impl From<[u8; 16]> for Scalar {
    fn from(uuid: [u8; 16]) -> Self {
        Self::Uuid(uuid)
    }
}

impl From<Uuid> for Scalar {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid.into_bytes())
    }
}

impl From<String> for Scalar {
    fn from(text: String) -> Self {
        Self::Text(text.into_bytes())
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i32> for Scalar {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u32> for Scalar {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<i64> for Scalar {
    fn from(number: i64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u64> for Scalar {
    fn from(number: u64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<&[u8]> for Scalar {
    fn from(bytes: &[u8]) -> Self {
        Self::Text(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Scalar {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Text(bytes)
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_a_column_that_can_hold_it() {
        let number = Scalar::from(-1);
        assert_eq!(number.value(ColumnKind::Int64), Value::Int64(-1));
        assert_eq!(number.value(ColumnKind::UInt64), Value::Null);
        assert_eq!(Scalar::from(u64::MAX).value(ColumnKind::Int64), Value::Null);
        assert_eq!(Scalar::from("a").value(ColumnKind::Uuid), Value::Null);
        assert_eq!(
            Scalar::from("a").value(ColumnKind::Binary),
            Value::Binary(b"a")
        );
    }

    #[test]
    fn values_compare_as_those_of_records_of_the_same_kind_alone() {
        let number = Scalar::from(5);
        for value in [Value::Int64(6), Value::UInt64(6), Value::Timestamp(6)] {
            assert_eq!(number.compare(&value), Some(Ordering::Less));
            assert_eq!(Scalar::of(&value), Some(6.into()));
        }
        assert_eq!(number.compare(&Value::Null), None);
        assert_eq!(number.compare(&Value::Text(b"6")), None);
        assert_eq!(
            Scalar::from("b").compare(&Value::Binary(b"a")),
            Some(Ordering::Greater)
        );
    }

    #[test]
    fn the_next_value_is_the_least_greater_one() {
        assert_eq!(Scalar::from(5).next(), Some(6.into()));
        assert_eq!(Scalar::from("a").next(), Some("a\0".into()));
        assert_eq!(Scalar::from(false).next(), Some(true.into()));
        assert_eq!(Scalar::from(true).next(), None);
        assert_eq!(Scalar::from([0xff; 16]).next(), None);
        let mut uuid = [0; 16];
        uuid[15] = 1;
        assert_eq!(Scalar::from([0; 16]).next(), Some(uuid.into()));
    }
}
