//! How a file is read: the walk, and what each of its steps gives.

use std::ops::Range;

use super::{Checked, Part, Value};
use crate::columns::ColumnBuffer;
use crate::error::Result;
use crate::ledger::{Cause, RecordRun, Span};

/// Good records, in the order in which they were found. Methods that take a row panic where there is none of that number, as
/// slices do.
pub trait Rows {
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

    /// The value of one of the format's [columns](super::Format::columns), by its place there.
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

/// What a step of a walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Records or ranges were found; there may be more.
    More,
    /// What is there so far is read, and the file is still growing: go on later from the [`Carry`].
    Wait,
    /// The file is read to its end, or to where no wanted record can follow.
    Done,
}

/// How a file's end is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eof {
    /// The file is finished: an incomplete record at its end is a torn tail.
    #[default]
    Final,
    /// The file is being written: an incomplete record at its end is one to wait for.
    Growing,
}

/// A point from which a walk can go on, as JSON: no part of it is code, and it can be kept for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carry(pub String);

/// Where a walk begins.
#[derive(Clone, Copy, Debug, Default)]
pub enum Start<'a> {
    /// At the file's beginning.
    #[default]
    Beginning,
    /// At this offset, at which a record begins. What is before it is not known, so the first record ascends whatever it is.
    Offset(u64),
    /// Where another walk was.
    Carry(&'a Carry),
    /// At the beginning of this part, at whose end the walk ends.
    Part(&'a Part),
}

/// Reads one file from its beginning, or from a [`Carry`], to its end: the only thing that parses or checks records.
///
/// Ranges come in file order, but for one thing: which entries of an index or table of contents are right, only the walk
/// through what they point at can show. So the ranges in front of [`front_end`](Self::front_end) come last, with the last step
/// that gives any; [`verbs::Ledger`](crate::verbs::Ledger) puts them in front.
///
/// Reading strictly, records that are good and in front of the first damage that the walk meets may be given out before it;
/// the error is of the damage that is first in the file.
pub trait Walk: Send {
    /// Goes on until something is found. [`rows`](Self::rows) and [`spans`](Self::spans) are of the latest step alone.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) if reading strictly, [`Error::Limit`](crate::Error::Limit),
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    /// A walk that failed fails again in the same way when stepped again, or is at its end.
    fn step(&mut self) -> Result<Step>;

    /// The good records that the last step found and that [`Options::wanted`](super::Options::wanted) let through.
    fn rows(&self) -> Box<dyn Rows + '_>;

    /// The ranges of the ledger that the last step settled, in file order, each once.
    fn spans(&self) -> &[Span];

    /// The same as [`spans`](Self::spans), where they are records one directly behind the other and nothing else: without making
    /// them one by one. `None` where they are not, and where only looking at each would tell.
    fn record_run(&self) -> Option<RecordRun> {
        None
    }

    /// Whether the last step settled that something is damaged.
    fn found_damage(&self) -> bool {
        self.record_run().is_none() && self.spans().iter().any(Span::is_damage)
    }

    /// The offset up to which ranges come last. 0 where all come in file order.
    fn front_end(&self) -> u64 {
        0
    }

    /// How the records of this very file are checked.
    fn checked(&self) -> Checked;

    /// The offset up to which the file has been read.
    fn offset(&self) -> u64;

    /// Where another walk would go on.
    fn carry(&self) -> Carry;

    /// Whether so far nothing checked although the structure is sound to the end: the key is probably wrong.
    fn suspects_key(&self) -> bool {
        false
    }
}
