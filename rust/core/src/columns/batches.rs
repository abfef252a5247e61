//! A walk's records as Arrow record batches of bounded size.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Int64Array, ListArray, RecordBatch,
    RecordBatchOptions, RecordBatchReader, StringArray, StructArray, TimestampMicrosecondArray,
    UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use super::{ColumnBuffer, UuidType, Values};
use crate::error::{Error, Result};
use crate::format::{
    Column, ColumnKind, Format, Hits, Options, Rows, Start, Step, Walk, open, resolve,
};
use crate::ledger::Span;
use crate::source::Source;
use crate::text::escape;
use crate::verbs::Report;

/// The most rows in a batch: with texts of at most 1,020 bytes their offsets stay within 31 bits.
const MAX_ROWS: usize = 1 << 20;
/// How many damaged ranges a batch carries before it ends.
const MAX_DAMAGE: usize = 1 << 16;
/// How many bytes `binary` and `utf8` columns can hold.
const MAX_DATA_BYTES: usize = i32::MAX as usize;

/// What bounds a batch: it ends before either is exceeded, but has at least one record.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of values, and of other fields that can be large, default 8 MiB.
    pub bytes: usize,
    /// Records, default 131,072.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 8 << 20,
            rows: 128 << 10,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    /// One of the format's columns, by its place among them.
    Field(usize),
    /// The file's path.
    Path,
    /// Where the record begins in its file.
    Position,
    /// What is wrong with a record that is given out all the same.
    Cause,
}

/// Which columns are wanted, and how they look in Arrow.
#[derive(Clone, Debug)]
pub struct Selection {
    chosen: Vec<(Chosen, ColumnKind)>,
    uuids: UuidType,
    /// The columns as Arrow fields.
    pub schema: SchemaRef,
    /// Whether the records' values are among them.
    pub values: bool,
}

impl Selection {
    /// The columns of these names, in this order; all of the format's for `None`. Beside them there are `path`, `position` and
    /// `cause`, which says what is wrong with a record that is given out all the same.
    ///
    /// # Errors
    /// [`Error::Usage`] for a name that is no column, or is given twice.
    pub fn new(
        format: &Format,
        options: &Options,
        names: Option<&[String]>,
        uuids: UuidType,
    ) -> Result<Self> {
        let columns = format.columns(options);
        let all: Vec<_> = columns
            .iter()
            .map(|column| column.name.to_owned())
            .collect();
        let names = names.unwrap_or(&all);
        let (mut chosen, mut fields) = (Vec::new(), Vec::new());
        for (place, name) in names.iter().enumerate() {
            if names.iter().take(place).any(|earlier| earlier == name) {
                return Err(Error::Usage(format!(
                    "the column {name:?} is asked for twice"
                )));
            }
            let column = columns
                .iter()
                .enumerate()
                .find(|(_, column)| column.name == name);
            let (choice, kind) = match (column, name.as_str()) {
                (Some((place, column)), _) => (Chosen::Field(place), column.kind),
                (None, "path") => (Chosen::Path, ColumnKind::Text),
                (None, "position") => (Chosen::Position, ColumnKind::Int64),
                (None, "cause") => (Chosen::Cause, ColumnKind::Text),
                (None, _) => {
                    let message = format!(
                        "there is no column {name:?} in {} records: there are {}, path, position, cause",
                        format.name,
                        all.join(", ")
                    );
                    return Err(Error::Usage(message));
                }
            };
            chosen.push((choice, kind));
            fields.push(Field::new(name, data_type(kind, uuids), true));
        }
        let values = names.iter().any(|name| name == "value");
        Ok(Self {
            chosen,
            uuids,
            schema: Arc::new(Schema::new(fields)),
            values,
        })
    }

    /// Empty columns.
    fn buffers(&self) -> Vec<ColumnBuffer> {
        let empty = |(_, kind): &(Chosen, ColumnKind)| ColumnBuffer::new(*kind, self.uuids);
        self.chosen.iter().map(empty).collect()
    }

    /// The record batch of filled columns.
    fn batch(&self, columns: Vec<ColumnBuffer>, rows: usize) -> Result<RecordBatch> {
        let arrays = columns
            .into_iter()
            .zip(self.schema.fields())
            .map(|(column, field)| array(column, field.data_type()));
        let arrays = arrays
            .collect::<std::result::Result<_, _>>()
            .map_err(internal)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(internal)
    }

    /// What was looked up as a record batch of one row for each that was asked for, all null where there is none.
    ///
    /// # Errors
    /// [`Error::Limit`] where the values do not fit into one batch.
    pub fn hits(&self, hits: &Hits, path: Option<&Path>) -> Result<RecordBatch> {
        let path = path
            .map(|path| path_text(path.as_os_str()))
            .unwrap_or_default();
        let (mut columns, mut bytes) = (self.buffers(), 0_usize);
        hits.each(|found| {
            bytes = bytes.saturating_add(path.len());
            for (column, (chosen, _)) in columns.iter_mut().zip(&self.chosen) {
                match found {
                    Some((rows, row)) if bytes <= MAX_DATA_BYTES => {
                        fill(column, *chosen, rows, row..row + 1, &path, 0);
                    }
                    _ => column.push_null(),
                }
            }
            bytes = bytes.saturating_add(found.map_or(0, |(rows, row)| rows.weight(row)));
        });
        if bytes > MAX_DATA_BYTES {
            return Err(Error::Usage(format!(
                "the records that were looked up have {bytes} bytes: more than one Arrow batch holds, look up fewer at once"
            )));
        }
        self.batch(columns, hits.places.len())
    }
}

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

/// Some records, and the damage found on the way to them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The records.
    pub records: RecordBatch,
    /// Damaged ranges that became known since the batch before, in file order.
    pub damage: Vec<Span>,
    /// How many bytes the records' values have.
    pub value_bytes: usize,
}

/// Reads a file as record batches. What was good before an error is given out first, in a batch of its own.
pub struct Batches {
    walk: Box<dyn Walk>,
    selection: Selection,
    limits: Limits,
    path: String,
    report: Report,
    /// The first of the walk's rows that is in no batch yet.
    next_row: usize,
    damage: Vec<Span>,
    failed: Option<Error>,
    ended: bool,
}

impl Batches {
    /// Begins to read a file.
    ///
    /// # Errors
    /// As [`open`].
    pub fn new(
        source: Arc<dyn Source>,
        options: &Options,
        selection: Selection,
        limits: Limits,
    ) -> Result<Self> {
        let format = resolve(&*source, options)?;
        let path = source
            .path()
            .map(|path| path_text(path.as_os_str()))
            .unwrap_or_default();
        let rows = limits
            .rows
            .clamp(1, MAX_ROWS)
            .min(MAX_DATA_BYTES / path.len().max(1));
        let limits = Limits {
            rows,
            bytes: limits.bytes.clamp(1, MAX_DATA_BYTES),
        };
        let max_record_bytes = options.max_record_bytes.min(Options::MAX_RECORD_BYTES);
        let options = Options {
            format: Some(format),
            values: selection.values,
            max_record_bytes,
            ..options.clone()
        };
        let report = Report::of(format, &*source);
        let walk = open(source, &options, Start::Beginning)?;
        Ok(Self {
            walk,
            selection,
            limits,
            path,
            report,
            next_row: 0,
            damage: Vec::new(),
            failed: None,
            ended: false,
        })
    }

    /// What has been read so far.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The next batch; `None` at the end. A batch can be without records where damage was found.
    ///
    /// # Errors
    /// As [`Walk::step`].
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        let mut columns = self.selection.buffers();
        let (mut rows, mut value_bytes) = (0, 0);
        loop {
            let (taken, bytes, full) = self.take_rows(&mut columns, rows, value_bytes);
            (rows, value_bytes) = (rows + taken, value_bytes + bytes);
            if full || self.ended || self.failed.is_some() || self.damage.len() >= MAX_DAMAGE {
                break;
            }
            self.step();
        }
        if rows == 0 && self.damage.is_empty() {
            return self.failed.take().map_or(Ok(None), |error| {
                self.ended = true;
                Err(error)
            });
        }
        let records = self.selection.batch(columns, rows)?;
        Ok(Some(Batch {
            records,
            damage: std::mem::take(&mut self.damage),
            value_bytes: if self.selection.values {
                value_bytes
            } else {
                0
            },
        }))
    }

    fn step(&mut self) {
        self.next_row = 0;
        match self.walk.step() {
            Ok(Step::More) => {
                self.report.add(&*self.walk);
                self.damage
                    .extend(self.walk.spans().iter().filter(|span| span.is_damage()));
            }
            Ok(Step::Wait | Step::Done) => self.ended = true,
            Err(error) => self.failed = Some(error),
        }
    }

    /// Copies what fits of the walk's rows. Gives how many rows and bytes of values that was, and whether the batch is full.
    fn take_rows(
        &mut self,
        columns: &mut [ColumnBuffer],
        rows_before: usize,
        bytes_before: usize,
    ) -> (usize, usize, bool) {
        let rows = self.walk.rows();
        let first = self.next_row;
        let (mut end, mut bytes, mut full) = (first, 0, false);
        while end < rows.len() {
            let weight = rows.weight(end);
            let is_first = rows_before + end - first == 0;
            full = rows_before + end - first >= self.limits.rows
                || !is_first && bytes_before + bytes + weight > self.limits.bytes;
            if full {
                break;
            }
            bytes += weight;
            end += 1;
        }
        if end > first {
            let expected = self
                .limits
                .bytes
                .min(usize::try_from(self.report.size).unwrap_or(usize::MAX));
            for (column, (chosen, _)) in columns.iter_mut().zip(&self.selection.chosen) {
                fill(column, *chosen, &*rows, first..end, &self.path, expected);
            }
        }
        self.next_row = end;
        (end - first, bytes, full)
    }
}

fn fill(
    column: &mut ColumnBuffer,
    chosen: Chosen,
    rows: &dyn Rows,
    range: std::ops::Range<usize>,
    path: &str,
    expected: usize,
) {
    match chosen {
        Chosen::Field(place) => {
            // Values are copied once: into a buffer that need not grow.
            column.reserve(expected);
            rows.fill(range, place, column);
        }
        Chosen::Path => range.for_each(|_| column.push_bytes(path.as_bytes())),
        Chosen::Position => {
            range.for_each(|row| column.push_int64(rows.position(row).cast_signed()))
        }
        Chosen::Cause => range.for_each(|row| match rows.cause(row) {
            Some(cause) => column.push_bytes(cause.as_str().as_bytes()),
            None => column.push_null(),
        }),
    }
}

/// A path as text: as it is where it is Unicode, else [escaped](escape), so that different paths always show differently.
fn path_text(path: &OsStr) -> String {
    path.to_str().map_or_else(
        || escape(path.as_encoded_bytes()).into_owned(),
        str::to_owned,
    )
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
            Buffer::from_vec(bytes),
            nulls,
        )?),
        Values::Int64(values) if *data_type == DataType::Int64 => {
            Arc::new(Int64Array::try_new(values.into(), nulls)?)
        }
        Values::Int64(values) => {
            let times = TimestampMicrosecondArray::try_new(values.into(), nulls)?;
            Arc::new(times.with_timezone("UTC"))
        }
        Values::UInt64(values) => Arc::new(UInt64Array::try_new(values.into(), nulls)?),
        Values::Boolean(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)),
        Values::Variable {
            offsets,
            mut data,
            text,
        } => {
            if data.len() < data.capacity() / 2 {
                data.shrink_to_fit();
            }
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            if text {
                Arc::new(StringArray::try_new(
                    offsets,
                    Buffer::from_vec(data),
                    nulls,
                )?)
            } else {
                Arc::new(BinaryArray::try_new(
                    offsets,
                    Buffer::from_vec(data),
                    nulls,
                )?)
            }
        }
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

fn mismatch(data_type: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("the column is not of type {data_type}"))
}

/// Columns of one length each with the type of its field: that Arrow refuses them would be a mistake of this module.
pub(super) fn internal(error: ArrowError) -> Error {
    Error::Usage(format!("cannot build a record batch: {error}"))
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_batch() {
                Ok(Some(batch)) if batch.records.num_rows() == 0 => {}
                Ok(batch) => return batch.map(|batch| Ok(batch.records)),
                Err(error) => return Some(Err(ArrowError::ExternalError(Box::new(error)))),
            }
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.selection.schema.clone()
    }
}
