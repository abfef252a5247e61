//! A batch of records, each with its fields.

use std::ops::Range;

use super::{ColumnBuffer, Value};
use crate::cause::Cause;
use crate::private::Sealed;

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
