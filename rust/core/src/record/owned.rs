//! Copies of records, whatever their format. They stay valid when the walk goes on.

use std::sync::Arc;

use uuid::Uuid;

use super::{Column, RecordId, Rows, Scalar, Value};
use crate::cause::Cause;
use crate::private::Sealed;

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
