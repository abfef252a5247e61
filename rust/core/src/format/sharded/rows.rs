//! The records of one step, as slices of the walk's window.

use super::layout::{HEADER_BYTES, Header};
use crate::bug::OrBug;
use crate::own::Own;
use crate::record::{Rows, Value};
use crate::saturating::saturating_usize;

/// A verified record, and where it begins in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) at: u64,
    pub(super) header: Header,
}

impl Record {
    /// Where it ends.
    pub(super) const fn end(&self) -> u64 {
        self.at + self.header.total()
    }
}

/// Records, with the bytes of the file from `base` on. A body may be absent if bodies are not read.
pub(crate) struct ShardedRows<'a> {
    pub(super) base: u64,
    pub(super) bytes: &'a [u8],
    pub(super) records: &'a [Record],
}

impl ShardedRows<'_> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn record(&self, row: usize) -> &Record {
        &self.records[row]
    }
}

impl Own for ShardedRows<'_> {}

impl Rows for ShardedRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.record(row).at
    }

    fn value(&self, row: usize) -> &[u8] {
        let record = self.record(row);
        let from = saturating_usize(record.at - self.base);
        let whole = self.bytes.get(from..);
        let whole = whole.and_then(|bytes| bytes.get(..saturating_usize(record.header.total())));
        // An absent body was not asked for.
        whole.map_or(&[], |whole| {
            whole.get(HEADER_BYTES..).or_bug_default("a record's body")
        })
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        Some(self.record(row).header.time)
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let header = &self.record(row).header;
        match column {
            0 => Value::Timestamp(header.time),
            1 => Value::Int64(header.shard.into()),
            2 => Value::UInt64(header.sequence),
            3 => Value::Int64(header.level.into()),
            _ => Value::Binary(self.value(row)),
        }
    }
}
