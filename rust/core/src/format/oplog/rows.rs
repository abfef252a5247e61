//! The messages of one step, as slices of the walk's window.

use std::ops::Range;

use super::keys::KeyTable;
use super::layout::Body;
use super::layout::columns::{
    ABI, BATCH, CHECKPOINT, CHECKPOINTER, CLOCK, DIGEST, FLAGS, KEYS, MAX_SUPPORTED_VERSION, SEQ,
    TRACE, VALUE, VERSION,
};
use super::message::Record;
use crate::bug::OrBug;
use crate::ledger::Cause;
use crate::private::Sealed;
use crate::record::{ColumnBuffer, Rows, Value};
use crate::saturating::saturating_usize;

/// Where the bytes of messages are.
#[derive(Clone, Copy)]
pub(super) enum Bodies<'a> {
    /// In memory, from this offset of the file on.
    From(u64, &'a [u8]),
    /// In memory, of one message without its value.
    Cut(&'a [u8]),
}

/// Messages, and the keys that they may refer to.
pub(super) struct OplogRows<'a> {
    pub(super) records: &'a [Record],
    pub(super) bodies: Bodies<'a>,
    /// Whether values are wanted.
    pub(super) values: bool,
    pub(super) keys: &'a KeyTable,
}

impl<'a> OplogRows<'a> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn record(&self, row: usize) -> &'a Record {
        &self.records[row]
    }

    fn body(&self, record: &Record) -> Body<'a> {
        match self.bodies {
            Bodies::Cut(bytes) => Body::without(bytes, record.message.value()),
            Bodies::From(base, bytes) => {
                let start = record.start().checked_sub(base).map(saturating_usize);
                let rest = start.and_then(|start| bytes.get(start..));
                let body = rest.and_then(|rest| rest.get(..saturating_usize(record.len)));
                Body::new(body.or_bug_default("the bytes of each message"))
            }
        }
    }
}

impl Sealed for OplogRows<'_> {}

impl Rows for OplogRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.record(row).position
    }

    fn end(&self, row: usize) -> u64 {
        self.record(row).end()
    }

    fn value(&self, row: usize) -> &[u8] {
        let record = self.record(row);
        self.body(record).get(record.message.value())
    }

    fn weight(&self, row: usize) -> usize {
        let record = self.record(row);
        let unwanted = if self.values {
            0
        } else {
            record.message.value().len
        };
        let bytes = record.len.saturating_sub(unwanted);
        saturating_usize(bytes.saturating_add(record.message.spread()))
    }

    fn cause(&self, row: usize) -> Option<Cause> {
        self.record(row).cause()
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let record = self.record(row);
        if column == SEQ {
            return record.seq();
        }
        match record.field(self.body(record), column, self.keys) {
            Ok(value) => value,
            // It decoded before, so a mapped file has changed.
            Err(_) => Value::Null,
        }
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let message = |row| &self.record(row).message;
        match column {
            VERSION | CHECKPOINTER | ABI | BATCH | MAX_SUPPORTED_VERSION | FLAGS => {
                buffer.extend_optional_uint64(rows.map(|row| message(row).number(column)));
            }
            VALUE if rows.clone().all(|row| message(row).has_value()) => {
                buffer.extend_bytes(rows.map(|row| self.value(row)));
            }
            CHECKPOINT | KEYS | DIGEST | TRACE => {
                let mut nulls = 0;
                for row in rows {
                    if message(row).lacks(column) {
                        nulls += 1;
                        continue;
                    }
                    buffer.push_nulls(std::mem::take(&mut nulls));
                    buffer.push(&self.field(row, column));
                }
                buffer.push_nulls(nulls);
            }
            CLOCK => {
                for row in rows {
                    match message(row).clock_count() {
                        0 => buffer.push_list(&[]),
                        _ => buffer.push(&self.field(row, column)),
                    }
                }
            }
            _ => self.push_fields(rows, column, buffer),
        }
    }
}
