//! Records that are written to a log: one, or many at once.

use std::path::Path;

use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use seglake::Error;
use seglake::store::{self, SegmentLog};
use seglake::uuid6;
use uuid::Uuid;

use crate::arrow::{failed, import, is_arrow};
use crate::error::{is_refusal, of_row, partial, raise};
use crate::field_in::{Bytes, FieldIn};
use crate::field_in_arrow::ColumnIn;
use crate::fields::{Fields, check_pair};
use crate::value::new_uuid;

/// About so much of an iterable is written at once.
const PIECE_BYTES: usize = 16 << 20;

/// A record to be written.
pub(crate) struct NewRecord<'a> {
    uuid: Option<Uuid>,
    type_: Bytes<'a>,
    value: Bytes<'a>,
}

impl<'a> NewRecord<'a> {
    /// Of the fields of an active segment's record, in their order.
    pub(crate) fn new(fields: [FieldIn<'a>; 4]) -> PyResult<Self> {
        let [uuid, timestamp, type_, value] = fields;
        let uuid = match (uuid, timestamp) {
            (FieldIn::Null, FieldIn::Null) => None,
            (FieldIn::Uuid(uuid), FieldIn::Timestamp(micros))
                if uuid6::timestamp_micros(&uuid) != micros =>
            {
                return Err(PyValueError::new_err(format!(
                    "timestamp {micros} is not that of the UUID {}: leave timestamp out",
                    Uuid::from_bytes(uuid)
                )));
            }
            (FieldIn::Uuid(uuid), _) => Some(Uuid::from_bytes(uuid)),
            (_, FieldIn::Timestamp(micros)) => Some(new_uuid(Some(micros))?),
            _ => None,
        };
        Ok(Self {
            uuid,
            type_: bytes(type_, "type")?,
            value: bytes(value, "value")?,
        })
    }

    /// Of a tuple of type and value.
    fn of_pair(pair: &Bound<'_, PyTuple>) -> PyResult<Self> {
        check_pair(pair)?;
        let (type_, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
        if type_.is_none() || value.is_none() {
            return Err(missing(if type_.is_none() { "type" } else { "value" }));
        }
        Ok(Self {
            uuid: None,
            type_: Bytes::of_shown(&type_, "type")?,
            value: Bytes::of(&value, "value")?,
        })
    }

    /// About how many bytes of memory it takes.
    fn weight(&self) -> usize {
        size_of::<Self>() + self.type_.len() + self.value.len()
    }

    pub(crate) fn parts(&self) -> store::NewRecord<'_> {
        store::NewRecord::new(&self.type_, &self.value).uuid(self.uuid)
    }
}

fn bytes<'a>(field: FieldIn<'a>, name: &str) -> PyResult<Bytes<'a>> {
    match field {
        FieldIn::Text(bytes) | FieldIn::Binary(bytes) => Ok(bytes),
        _ => Err(missing(name)),
    }
}

fn missing(name: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is missing: a record needs one"))
}

/// The four fields of a record.
fn four(fields: Vec<FieldIn<'_>>) -> PyResult<[FieldIn<'_>; 4]> {
    let fields = fields.try_into();
    fields.map_err(|_| PyTypeError::new_err("a record has four fields"))
}

/// The exception for a batch of which these records were written before.
fn unwritten(py: Python<'_>, path: &Path, before: &mut Vec<Uuid>, mut error: Error) -> PyErr {
    if let Error::OutcomeUnknown { written, .. } = &mut error {
        before.append(written);
        std::mem::swap(before, written);
        return raise(py, error);
    }
    let (mut written, source) = match error {
        Error::Partial {
            written, source, ..
        } => (written, source),
        error => (Vec::new(), Box::new(error)),
    };
    before.append(&mut written);
    if before.is_empty() || matches!(*source, Error::Usage(_)) {
        return of_row(py, before.len(), raise(py, *source));
    }
    let partial = Error::Partial {
        path: path.to_path_buf(),
        written: std::mem::take(before),
        source,
    };
    raise(py, partial)
}

/// Writes the records of an Arrow object or an iterable. Returns their UUIDs.
pub(crate) fn write_records(
    py: Python<'_>,
    writer: &SegmentLog,
    columns: &Fields,
    records: &Bound<'_, PyAny>,
) -> PyResult<Vec<Uuid>> {
    let mut uuids = Vec::new();
    if is_arrow(records)? {
        return match write_batches(py, writer, columns, records, &mut uuids) {
            Ok(()) => Ok(uuids),
            Err(error) => Err(after_others(py, writer.path(), &uuids, error)),
        };
    }
    let mut given = records.try_iter()?.map(|record| {
        let record = record?;
        match record.cast::<PyTuple>() {
            Ok(pair) => NewRecord::of_pair(pair),
            Err(_) => NewRecord::new(four(columns.of_row(&record)?)?),
        }
    });
    // In pieces, so that not all records have to be in memory. A list says how many there are.
    let room = match records.cast::<PyList>() {
        Ok(list) => list.len(),
        Err(_) => 0,
    };
    let mut is_over = false;
    while !is_over {
        let room = room.saturating_sub(uuids.len());
        let mut left = PIECE_BYTES;
        let piece = std::iter::from_fn(|| {
            if left == 0 {
                return None;
            }
            let record = given.next();
            match &record {
                Some(Ok(record)) => left = left.saturating_sub(record.weight()),
                Some(Err(_)) => {}
                None => is_over = true,
            }
            record
        });
        if let Err(error) = write_all(py, writer, &mut uuids, piece, room) {
            return Err(after_others(py, writer.path(), &uuids, error));
        }
    }
    Ok(uuids)
}

/// Writes the batches of an Arrow object one after the other, and adds their UUIDs to `uuids`.
fn write_batches(
    py: Python<'_>,
    writer: &SegmentLog,
    columns: &Fields,
    records: &Bound<'_, PyAny>,
    uuids: &mut Vec<Uuid>,
) -> PyResult<()> {
    for batch in import(records)? {
        let batch = batch.map_err(failed)?;
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name().as_str());
        columns.check_names(names)?;
        let [uuid, timestamp, type_, value] = columns.columns else {
            return Err(PyTypeError::new_err("a record has four fields"));
        };
        let own = [uuid, timestamp, type_, value].map(|column| {
            let array = batch.column_by_name(column.name);
            array.map(|array| ColumnIn::new(array, column))
        });
        let row = |row| {
            if let [None, None, Some(type_), Some(value)] = &own {
                return Ok(NewRecord {
                    uuid: None,
                    type_: bytes(type_.at(row)?, "type")?,
                    value: bytes(value.at(row)?, "value")?,
                });
            }
            let mut fields = [const { FieldIn::Null }; 4];
            for (column, field) in own.iter().zip(&mut fields) {
                if let Some(column) = column {
                    *field = column.at(row)?;
                }
            }
            NewRecord::new(fields)
        };
        let rows = (0..batch.num_rows()).map(row);
        write_all(py, writer, uuids, rows, batch.num_rows())?;
        py.check_signals()?;
    }
    Ok(())
}

/// The exception for a stream that failed after these of its records were written. A refused row says that by its number, and what is
/// no error but a wish to end stays what it is.
fn after_others(py: Python<'_>, path: &Path, written: &[Uuid], error: PyErr) -> PyErr {
    let is_of_row = error.value(py).hasattr("row").is_ok_and(|has_row| has_row);
    if written.is_empty() || is_of_row || !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let reason = error.value(py).to_string();
    match partial(py, path, written, &reason, error) {
        Ok(error) | Err(error) => error,
    }
}

/// Writes rows up to the first that is refused, and adds their UUIDs to those of rows that were written before. Writes none where giving
/// them fails. Room is made for so many at once, within the bytes of a piece: a batch of nulls takes no memory, however many they are.
fn write_all<'a>(
    py: Python<'_>,
    writer: &SegmentLog,
    uuids: &mut Vec<Uuid>,
    rows: impl Iterator<Item = PyResult<NewRecord<'a>>>,
    room: usize,
) -> PyResult<()> {
    let first = uuids.len();
    let room = room.min(PIECE_BYTES / size_of::<NewRecord<'_>>());
    let (mut records, mut refused) = (Vec::with_capacity(room), Ok(()));
    for row in rows {
        match row {
            Ok(record) => records.push(record),
            Err(error) if !is_refusal(py, &error) => return Err(error),
            Err(error) => {
                refused = Err(of_row(py, first + records.len(), error));
                break;
            }
        }
    }
    let parts = records.iter().map(NewRecord::parts);
    match py.detach(|| writer.write_batch(parts)) {
        Ok(written) if uuids.is_empty() => *uuids = written,
        Ok(written) => uuids.extend(written),
        Err(error) => return Err(unwritten(py, writer.path(), uuids, error)),
    }
    refused
}
