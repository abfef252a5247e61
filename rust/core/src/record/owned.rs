//! Records that own their fields, whatever their format: what is left of a walk's step when the walk has gone on.

use super::{Column, Rows, Value};
use crate::cause::Cause;

/// Records that own what they are made of.
pub trait Found: Send {
    /// The records.
    fn rows(&self) -> Box<dyn Rows + '_>;
}

/// The column that is the record's body, which is kept once.
const BODY: &str = "value";

/// The value of a field.
#[derive(Clone, Debug)]
enum Field {
    Plain(Value<'static>),
    Text(Vec<u8>),
    Binary(Vec<u8>),
    List(Vec<Self>),
    Struct(Vec<Self>),
}

impl Field {
    /// Copies a value; values nest no deeper than columns do.
    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Text(bytes) => Self::Text(bytes.to_vec()),
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

    fn value(&self) -> Value<'_> {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Text(bytes) => Value::Text(bytes),
            Self::Binary(bytes) => Value::Binary(bytes),
            Self::List(fields) => Value::List(fields.iter().map(Self::value).collect()),
            Self::Struct(fields) => Value::Struct(fields.iter().map(Self::value).collect()),
        }
    }
}

/// One record.
#[derive(Clone, Debug)]
pub(crate) struct CopiedRow {
    position: u64,
    timestamp: Option<i64>,
    cause: Option<Cause>,
    weight: usize,
    /// `None` for the body.
    fields: Vec<Option<Field>>,
    value: Vec<u8>,
}

impl CopiedRow {
    /// A copy of a row that has these columns.
    pub(crate) fn of(rows: &dyn Rows, row: usize, columns: &[Column]) -> Self {
        let field = |(place, column): (usize, &Column)| match rows.field(row, place) {
            // Not where there is none.
            Value::Binary(_) if column.name == BODY => None,
            field => Some(Field::of(&field)),
        };
        Self {
            position: rows.position(row),
            timestamp: rows.timestamp(row),
            cause: rows.cause(row),
            weight: rows.weight(row),
            fields: columns.iter().enumerate().map(field).collect(),
            value: rows.value(row).to_vec(),
        }
    }
}

/// Records, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Copied(pub(crate) Vec<CopiedRow>);

impl Found for Copied {
    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(CopiedRows(&self.0))
    }
}

struct CopiedRows<'a>(&'a [CopiedRow]);

impl CopiedRows<'_> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn row(&self, row: usize) -> &CopiedRow {
        &self.0[row]
    }
}

impl Rows for CopiedRows<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.row(row).position
    }

    fn value(&self, row: usize) -> &[u8] {
        &self.row(row).value
    }

    fn weight(&self, row: usize) -> usize {
        self.row(row).weight
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        self.row(row).timestamp
    }

    fn cause(&self, row: usize) -> Option<Cause> {
        self.row(row).cause
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let row = self.row(row);
        match row.fields.get(column) {
            Some(Some(field)) => field.value(),
            Some(None) => Value::Binary(&row.value),
            None => Value::Null,
        }
    }
}
