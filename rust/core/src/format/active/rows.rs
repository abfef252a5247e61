//! The checked records of one step, as slices of the walk's window.

use std::ops::Range;

use super::{CHECKSUM_BYTES, Header, UUID_BYTES};
use crate::columns::ColumnBuffer;
use crate::cursor::Cursor;
use crate::format::{Rows, Value};
use crate::uuid6;

/// A record that checked, by where it begins in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked {
    pub(super) position: u64,
    pub(super) header: Header,
}

/// Checked records whose bytes begin at the absolute offset `base`.
pub(super) struct ActiveRows<'a> {
    pub(super) base: u64,
    pub(super) bytes: &'a [u8],
    pub(super) records: &'a [Checked],
}

impl ActiveRows<'_> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn record(&self, row: usize) -> &Checked {
        &self.records[row]
    }

    /// Bytes of a record from `skip` on, empty where the walk was not asked to keep them.
    fn run(&self, record: &Checked, skip: u64, len: usize) -> &[u8] {
        usize::try_from(record.position - self.base + skip)
            .ok()
            .and_then(|start| self.bytes.get(start..start.checked_add(len)?))
            .unwrap_or_default()
    }

    fn type_bytes(&self, record: &Checked) -> &[u8] {
        self.run(record, UUID_BYTES as u64 + 1, record.header.type_len.into())
    }

    fn value_bytes(&self, record: &Checked) -> &[u8] {
        let len = usize::try_from(record.header.value_len).unwrap_or(usize::MAX - CHECKSUM_BYTES);
        self.run(record, record.header.value_start(), len)
    }
}

/// A record with the checksum that the file has for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) uuid: [u8; UUID_BYTES],
    pub(crate) type_: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) checksum: u64,
}

impl ActiveRows<'_> {
    /// A record whose value was read.
    pub(super) fn stored(&self, row: usize) -> Stored<'_> {
        let record = self.record(row);
        let checksum = self.run(record, record.header.hashed(), CHECKSUM_BYTES);
        Stored {
            uuid: record.header.uuid,
            type_: self.type_bytes(record),
            value: self.value_bytes(record),
            checksum: Cursor::new(checksum).u64_be().unwrap_or_default(),
        }
    }
}

impl Rows for ActiveRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.record(row).position
    }

    fn value(&self, row: usize) -> &[u8] {
        self.value_bytes(self.record(row))
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        Some(uuid6::timestamp_micros(&self.record(row).header.uuid))
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let record = self.record(row);
        match column {
            0 => Value::Uuid(record.header.uuid),
            1 => Value::Timestamp(uuid6::timestamp_micros(&record.header.uuid)),
            2 => Value::Text(self.type_bytes(record)),
            _ => Value::Binary(self.value_bytes(record)),
        }
    }

    fn times(&self) -> Option<(i64, i64)> {
        // UUIDs ascend, and of greater ones the time is no less.
        let (first, last) = (self.records.first()?, self.records.last()?);
        let time = |record: &Checked| uuid6::timestamp_micros(&record.header.uuid);
        Some((time(first), time(last)))
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let records = self.records.get(rows).unwrap_or_default().iter();
        match column {
            0 => buffer.extend_uuids(records.map(|record| &record.header.uuid)),
            1 => buffer
                .extend_int64(records.map(|record| uuid6::timestamp_micros(&record.header.uuid))),
            2 => buffer.extend_text(records.map(|record| self.type_bytes(record))),
            _ => buffer.extend_bytes(records.map(|record| self.value_bytes(record))),
        }
    }
}
