//! Identifiers of records.

use std::slice;

use serde::{Deserialize, Serialize};

use super::{Column, Rows, Scalar};

/// The identifier of a record: a value for each identifying column of its format
/// ([`Spec::identifier`](crate::format::Spec::identifier)), in their order.
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordId(Values);

/// A single value, the common case, is stored without a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Values {
    One(Scalar),
    Several(Vec<Scalar>),
}

impl RecordId {
    /// An identifier of these values, one for each identifying column.
    #[must_use]
    pub fn new(values: impl Into<Vec<Scalar>>) -> Self {
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
    pub fn values(&self) -> &[Scalar] {
        match &self.0 {
            Values::One(value) => slice::from_ref(value),
            Values::Several(values) => values,
        }
    }

    /// The identifier of a row, whose identifying columns have these places; `None` if a value is missing.
    pub(crate) fn of_row(rows: &dyn Rows, row: usize, places: &[usize]) -> Option<Self> {
        let value = |place: &usize| Scalar::of(&rows.field(row, *place));
        match places {
            [place] => value(place).map(Self::from),
            places => places
                .iter()
                .map(value)
                .collect::<Option<Vec<_>>>()
                .map(Self::new),
        }
    }

    /// Whether it can identify records with these identifying columns.
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

    /// The UUID, if the identifier is one.
    #[inline]
    pub(crate) const fn as_uuid(&self) -> Option<[u8; 16]> {
        match &self.0 {
            Values::One(Scalar::Uuid(uuid)) => Some(*uuid),
            _ => None,
        }
    }

    /// The number, if the identifier is one that fits this type.
    #[cfg(feature = "chunked")]
    pub(crate) fn as_integer<T: TryFrom<i128>>(&self) -> Option<T> {
        match &self.0 {
            Values::One(Scalar::Integer(number)) => T::try_from(*number).ok(),
            _ => None,
        }
    }
}

impl<T: Into<Scalar>> From<T> for RecordId {
    /// An identifier of one column.
    fn from(value: T) -> Self {
        Self(Values::One(value.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ColumnKind;
    use super::*;

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
