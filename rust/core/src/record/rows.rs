//! Records, whatever their format: batches of them, copies that stay valid when the walk goes on, and their identifiers.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Column, ColumnBuffer, Scalar, Value};
use crate::private::Sealed;
use crate::words::Cause;

/// Sound records in order. Methods that take a row panic if it is out of bounds, as slices do.
pub trait Rows: Sealed {
    /// The number of records.
    fn len(&self) -> usize;

    /// Whether there are no records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record's offset in its file. For a record in a compressed chunk, the chunk's offset.
    fn position(&self, row: usize) -> u64;

    /// The offset after the record's last byte. For a record in a compressed chunk, that after the chunk.
    #[doc(hidden)] // public for the Python extension: the ledger has it
    fn end(&self, row: usize) -> u64;

    /// The record's body; empty if it has none.
    fn value(&self, row: usize) -> &[u8];

    /// How many bytes the record adds to a batch's limit: its body, and other fields that can be large.
    #[doc(hidden)]
    fn weight(&self, row: usize) -> usize {
        self.value(row).len()
    }

    /// The record's time in microseconds since 1970-01-01 UTC, if the format has times.
    fn timestamp(&self, row: usize) -> Option<i64> {
        let _ = row;
        None
    }

    /// The least and the greatest time of all records, in microseconds since 1970-01-01 UTC, if the format has times.
    #[doc(hidden)]
    fn times(&self) -> Option<(i64, i64)> {
        let times = (0..self.len()).filter_map(|row| self.timestamp(row));
        times.fold(None, |range, time| {
            let (least, greatest) = range.unwrap_or((time, time));
            Some((time.min(least), time.max(greatest)))
        })
    }

    /// How many rows from `first` on fit into the room of a batch, and their total [weight](Self::weight).
    #[doc(hidden)]
    fn fitting(&self, first: usize, room: Room) -> (usize, usize) {
        let end = first.saturating_add(room.rows).min(self.len());
        let (mut rows, mut bytes) = (0, 0_usize);
        for row in first..end {
            let sum = bytes.saturating_add(self.weight(row));
            if sum > room.bytes && !(room.empty && rows == 0) {
                break;
            }
            (rows, bytes) = (rows + 1, sum);
        }
        (rows, bytes)
    }

    /// The cause of damage in a record that is emitted although its range of the ledger is damaged.
    fn cause(&self, row: usize) -> Option<Cause> {
        let _ = row;
        None
    }

    /// The value of a column, by its place in the format's [columns](crate::format::Spec::columns).
    fn field(&self, row: usize, column: usize) -> Value<'_>;

    /// Appends a column of several records to `buffer`, which is of that column's kind.
    #[doc(hidden)]
    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        self.push_fields(rows, column, buffer);
    }

    /// As [`fill`](Self::fill), through [`field`](Self::field): for formats that fill only some of their columns
    /// faster.
    #[doc(hidden)]
    fn push_fields(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let mut nulls = 0;
        for row in rows {
            match self.field(row, column) {
                Value::Null => nulls += 1,
                value => {
                    buffer.push_nulls(std::mem::take(&mut nulls));
                    buffer.push(&value);
                }
            }
        }
        buffer.push_nulls(nulls);
    }

    /// Appends the offsets of several records.
    #[doc(hidden)]
    fn fill_positions(&self, rows: Range<usize>, buffer: &mut ColumnBuffer) {
        buffer.extend_int64(rows.map(|row| self.position(row).cast_signed()));
    }

    /// Appends the [causes](Self::cause) of several records.
    #[doc(hidden)]
    fn fill_causes(&self, rows: Range<usize>, buffer: &mut ColumnBuffer) {
        let causes = rows.map(|row| self.cause(row).map(|cause| cause.as_str().as_bytes()));
        buffer.extend_optional_text(causes);
    }
}

/// The room that a batch has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Records.
    pub rows: usize,
    /// Bytes of [weight](Rows::weight).
    pub bytes: usize,
    /// Whether the batch is empty. Then it takes one record of any weight.
    pub empty: bool,
}

/// Records that own their memory. Only this crate implements it.
pub trait RecordSet: Sealed + Send {
    /// The records.
    fn rows(&self) -> Box<dyn Rows + '_>;
}

/// The column that is the record's body, which is stored once.
const BODY: &str = "value";

/// The value of a field.
#[derive(Clone, Debug)]
enum Field {
    /// The record's body.
    Body,
    Plain(Value<'static>),
    /// Shared with the previous record if that has the same.
    Text(Arc<[u8]>),
    Binary(Vec<u8>),
    List(Vec<Self>),
    Struct(Vec<Self>),
}

impl Field {
    /// Copies a value. Values nest no deeper than columns do.
    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Text(bytes) => Self::Text((*bytes).into()),
            Value::Binary(bytes) => Self::Binary(bytes.to_vec()),
            Value::List(values) => Self::List(values.iter().map(Self::of).collect()),
            Value::Struct(values) => Self::Struct(values.iter().map(Self::of).collect()),
            Value::Null => Self::Plain(Value::Null),
            Value::Uuid(uuid) => Self::Plain(Value::Uuid(*uuid)),
            Value::Timestamp(time) => Self::Plain(Value::Timestamp(*time)),
            Value::Int64(number) => Self::Plain(Value::Int64(*number)),
            Value::UInt64(number) => Self::Plain(Value::UInt64(*number)),
            Value::Boolean(truth) => Self::Plain(Value::Boolean(*truth)),
        }
    }

    fn value<'a>(&'a self, body: &'a [u8]) -> Value<'a> {
        let values = |fields: &'a [Self]| fields.iter().map(|field| field.value(body)).collect();
        match self {
            Self::Body => Value::Binary(body),
            Self::Plain(value) => value.clone(),
            Self::Text(bytes) => Value::Text(bytes),
            Self::Binary(bytes) => Value::Binary(bytes),
            Self::List(fields) => Value::List(values(fields)),
            Self::Struct(fields) => Value::Struct(values(fields)),
        }
    }
}

/// A copy of one verified record, with all its fields.
#[derive(Clone, Debug)]
pub struct Record {
    /// The names of the columns that identify it.
    identifier: &'static [&'static str],
    columns: &'static [Column],
    position: u64,
    end: u64,
    timestamp: Option<i64>,
    cause: Option<Cause>,
    weight: usize,
    body: Box<[u8]>,
    fields: Box<[Field]>,
}

impl Record {
    /// Copies a row of records with these columns. Text that equals that of the record `before` is shared.
    fn copy(
        columns: &'static [Column],
        rows: &dyn Rows,
        row: usize,
        before: Option<&Self>,
    ) -> Self {
        let field = |(place, column): (usize, &Column)| {
            let before = before.and_then(|before| before.fields.get(place));
            match (rows.field(row, place), before) {
                (Value::Binary(_), _) if column.name == BODY => Field::Body,
                (Value::Text(text), Some(Field::Text(before))) if **before == *text => {
                    Field::Text(before.clone())
                }
                (value, _) => Field::of(&value),
            }
        };
        Self {
            identifier: &[],
            columns,
            position: rows.position(row),
            end: rows.end(row),
            timestamp: rows.timestamp(row),
            cause: rows.cause(row),
            weight: rows.weight(row),
            body: rows.value(row).into(),
            fields: columns.iter().enumerate().map(field).collect(),
        }
    }

    /// Copies a row of records with these columns, which those of these names identify.
    pub(crate) fn of(
        identifier: &'static [&'static str],
        columns: &'static [Column],
        rows: &dyn Rows,
        row: usize,
    ) -> Self {
        Self {
            identifier,
            ..Self::copy(columns, rows, row, None)
        }
    }

    /// The identifier, by which [`Reader::get`](crate::Reader::get) finds the record; `None` if a value of it is null.
    #[must_use]
    pub fn id(&self) -> Option<RecordId> {
        let value = |name: &&str| match *name {
            "position" => Some(self.position.into()),
            name => Scalar::of(&self.field(name)?),
        };
        let values: Option<Vec<_>> = self.identifier.iter().map(value).collect();
        values.map(RecordId::new)
    }

    /// The UUID, in formats whose records have one.
    #[must_use]
    pub fn uuid(&self) -> Option<Uuid> {
        self.field("uuid")?.as_uuid()
    }

    /// The columns of the record's format, in the order in which they are displayed and written.
    #[must_use]
    pub const fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// The value of the column of this name; `None` if the format has no such column.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Value<'_>> {
        let place = self.columns.iter().position(|column| column.name == name)?;
        self.fields.get(place).map(|field| field.value(&self.body))
    }

    /// The record's body, in bytes; empty if it has none.
    #[must_use]
    pub const fn value(&self) -> &[u8] {
        &self.body
    }

    /// The record's time in microseconds since 1970-01-01 UTC; `None` if the format has no times.
    #[must_use]
    pub const fn timestamp(&self) -> Option<i64> {
        self.timestamp
    }

    /// The record's offset in its file, in bytes. For a record in a compressed chunk, the chunk's offset.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The cause of damage in a record that is returned although its range of the ledger is damaged: an oplog's message
    /// with dangling references. `None` if the record is sound.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        self.cause
    }
}

/// Copies of records in order.
#[derive(Debug)]
pub(crate) struct OwnedRows {
    columns: &'static [Column],
    rows: Vec<Record>,
}

impl OwnedRows {
    /// No records yet, of these columns.
    pub(crate) const fn new(columns: &'static [Column]) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Appends a copy of a row. Returns its number.
    pub(crate) fn push(&mut self, rows: &dyn Rows, row: usize) -> usize {
        let record = Record::copy(self.columns, rows, row, self.rows.last());
        self.rows.push(record);
        self.rows.len() - 1
    }
}

impl Sealed for OwnedRows {}

impl RecordSet for OwnedRows {
    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(self)
    }
}

impl Sealed for &OwnedRows {}

#[allow(
    clippy::indexing_slicing,
    reason = "a row out of bounds is the caller's mistake, as with any slice"
)]
impl Rows for &OwnedRows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.rows[row].position
    }

    fn end(&self, row: usize) -> u64 {
        self.rows[row].end
    }

    fn value(&self, row: usize) -> &[u8] {
        &self.rows[row].body
    }

    fn weight(&self, row: usize) -> usize {
        self.rows[row].weight
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        self.rows[row].timestamp
    }

    fn cause(&self, row: usize) -> Option<Cause> {
        self.rows[row].cause
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let row = &self.rows[row];
        match row.fields.get(column) {
            Some(field) => field.value(&row.body),
            None => Value::Null,
        }
    }
}

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
