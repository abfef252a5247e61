//! Records side by side, each with its fields.

use std::ops::Range;

use super::{ColumnBuffer, Value};
use crate::cause::Cause;
use crate::own::Own;

/// Good records, in the order in which they were found. Methods that take a row panic where there is none of that number, as
/// slices do.
pub trait Rows: Own {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the record begins in its file; for records within a compressed chunk, where the chunk does.
    fn position(&self, row: usize) -> u64;

    /// The record's body; empty where it has none.
    fn value(&self, row: usize) -> &[u8];

    /// How many bytes the record weighs when batches are bounded: its body, unless other fields can be large too.
    fn weight(&self, row: usize) -> usize {
        self.value(row).len()
    }

    /// The record's time in microseconds since 1970-01-01 UTC, where the format has one.
    fn timestamp(&self, row: usize) -> Option<i64> {
        let _ = row;
        None
    }

    /// The least and the greatest time of all records, in microseconds since 1970-01-01 UTC, where the format has times.
    fn times(&self) -> Option<(i64, i64)> {
        let times = (0..self.len()).filter_map(|row| self.timestamp(row));
        times.fold(None, |range, time| {
            let (least, greatest) = range.unwrap_or((time, time));
            Some((time.min(least), time.max(greatest)))
        })
    }

    /// How many rows from `first` on fit into a batch that has this much room, and what they [weigh](Self::weight) together.
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

    /// What is wrong with a record that is given out all the same, its range of the ledger being damage.
    fn cause(&self, row: usize) -> Option<Cause> {
        let _ = row;
        None
    }

    /// The value of one of the format's [columns](crate::format::Format::columns), by its place there.
    fn field(&self, row: usize, column: usize) -> Value<'_>;

    /// Appends one column of several records to `buffer`, which is of that column's kind.
    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        self.push_fields(rows, column, buffer);
    }

    /// As [`fill`](Self::fill), by way of [`field`](Self::field): for formats that fill some of their columns themselves.
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

    /// Appends where each of several records begins.
    fn fill_positions(&self, rows: Range<usize>, buffer: &mut ColumnBuffer) {
        buffer.extend_int64(rows.map(|row| self.position(row).cast_signed()));
    }

    /// Appends what is [wrong](Self::cause) with each of several records.
    fn fill_causes(&self, rows: Range<usize>, buffer: &mut ColumnBuffer) {
        let causes = rows.map(|row| self.cause(row).map(|cause| cause.as_str().as_bytes()));
        buffer.extend_optional_text(causes);
    }
}

/// How much room a batch has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Records.
    pub rows: usize,
    /// Bytes, as records are [weighed](Rows::weight).
    pub bytes: usize,
    /// Whether it has no record yet: then it takes one of any weight.
    pub empty: bool,
}
