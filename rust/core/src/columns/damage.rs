//! Damaged ranges as Arrow: one row each, with their probable causes if these were diagnosed.

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

use super::arrays::{array, data_type, internal};
use crate::error::Result;
use crate::format::FORMATS;
use crate::record::{Column, ColumnBuffer, ColumnKind, UuidType, Value};
use crate::saturating::saturating_i64;
use crate::spec::Dialect;
use crate::verbs::{Neighbour, Repair, Report};

/// A record next to damage, with the identifying columns of all formats. UUIDs are text.
static NEIGHBOUR: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let mut columns = vec![
        Column::new("position", ColumnKind::Int64),
        Column::optional("timestamp", ColumnKind::Timestamp),
    ];
    for format in FORMATS {
        for own in format.identifying(Dialect::default()) {
            if columns.iter().all(|column| column.name != own.name) {
                columns.push(Column::optional(own.name, own.kind));
            }
        }
    }
    columns
});

const REPAIR: ColumnKind = ColumnKind::Struct(&[
    Column::new("byte_offset", ColumnKind::Int64),
    Column::new("bit", ColumnKind::Int64),
    Column::new("old", ColumnKind::Int64),
    Column::new("new", ColumnKind::Int64),
    Column::new("checks", ColumnKind::Text),
    Column::new("start", ColumnKind::Int64),
    Column::new("end", ColumnKind::Int64),
]);

/// The columns of damage. Those from `reason` on are null for ranges that were not diagnosed.
static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let neighbour = ColumnKind::Struct(NEIGHBOUR.as_slice());
    vec![
        Column::new("start", ColumnKind::Int64),
        Column::new("end", ColumnKind::Int64),
        Column::new("kind", ColumnKind::Text),
        Column::new("cause", ColumnKind::Text),
        Column::optional("reason", ColumnKind::Text),
        Column::optional("certainty", ColumnKind::Text),
        Column::optional("evidence", ColumnKind::Text),
        Column::optional("against", ColumnKind::Text),
        Column::optional("before", neighbour),
        Column::optional("after", neighbour),
        Column::optional("repairs", ColumnKind::List(&REPAIR)),
    ]
});

/// The schema of [`damage`].
#[must_use]
pub fn damage_schema() -> SchemaRef {
    let field = |column: &Column| {
        Field::new(
            column.name,
            data_type(column.kind, UuidType::Text),
            column.optional,
        )
    };
    Arc::new(Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>()))
}

/// The damaged ranges of a report, with their diagnoses if it has them. Offsets are those of the file, numbers of bytes
/// and bits are int64, UUIDs are text.
///
/// # Errors
/// No report causes one.
pub fn damage(report: &Report) -> Result<RecordBatch> {
    let mut buffers: Vec<_> = COLUMNS
        .iter()
        .map(|column| ColumnBuffer::new(column.kind, UuidType::Text))
        .collect();
    let mut diagnoses = report.diagnoses.iter().peekable();
    for span in &report.summary.damage {
        let mut row = vec![
            int(span.start),
            int(span.end),
            text(span.kind.as_str()),
            Value::or_null(span.cause.map(|cause| text(cause.as_str()))),
        ];
        if let Some(own) = diagnoses.next_if(|own| own.span == *span) {
            let certainty = own.certainty;
            row.extend([
                text(own.reason.as_str()),
                Value::or_null(certainty.map(|certainty| text(certainty.as_str()))),
                text(&own.evidence),
                text(&own.against),
                Value::or_null(own.before.as_ref().map(neighbour)),
                Value::or_null(own.after.as_ref().map(neighbour)),
                Value::List(own.repairs.iter().map(repair).collect()),
            ]);
        }
        row.resize(COLUMNS.len(), Value::Null);
        for (buffer, value) in buffers.iter_mut().zip(&row) {
            buffer.push(value);
        }
    }
    let schema = damage_schema();
    let columns = buffers.into_iter().zip(schema.fields());
    let columns = columns.map(|(buffer, field)| array(buffer, field.data_type()));
    let columns = columns
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(internal)?;
    RecordBatch::try_new(schema, columns).map_err(internal)
}

fn text(text: &str) -> Value<'_> {
    Value::Text(text.as_bytes())
}

/// Offsets in a file are below 2^63.
fn int(number: u64) -> Value<'static> {
    Value::Int64(saturating_i64(number))
}

fn neighbour(own: &Neighbour) -> Value<'_> {
    let mut fields = vec![
        int(own.position),
        Value::or_null(own.timestamp.map(Value::Timestamp)),
    ];
    let values = match &own.id {
        Some(id) => id.values(),
        None => &[],
    };
    for column in NEIGHBOUR.iter().skip(fields.len()) {
        let mut named = own.identifier.iter().zip(values);
        let value = named.find(|(name, _)| **name == column.name);
        fields.push(Value::or_null(
            value.map(|(_, value)| value.value(column.kind)),
        ));
    }
    Value::Struct(fields)
}

fn repair(own: &Repair) -> Value<'_> {
    Value::Struct(vec![
        int(own.offset),
        Value::Int64(own.bit.into()),
        Value::Int64(own.old.into()),
        Value::Int64(own.new.into()),
        text(&own.checks),
        int(own.start),
        int(own.end),
    ])
}
