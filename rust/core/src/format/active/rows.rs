//! The verified records of one step, as slices of the walk's window.

use std::ops::Range;

use super::group::Extent;
use super::layout::{CHECKSUM_BYTES, MIN_HEADER_BYTES, UUID_BYTES, type_of};
use crate::bug::OrBug;
use crate::cursor::Cursor;
use crate::private::Sealed;
use crate::record::{ColumnBuffer, Rows, Value};
use crate::uuid6;

/// Verified records, as positions in `bytes`, which begin at the absolute offset `base`. At least the UUID and the
/// type length of each are there. The value may be absent if the walk was opened without values.
pub(crate) struct ActiveRows<'a> {
    pub(super) base: u64,
    pub(super) bytes: &'a [u8],
    pub(super) records: &'a [Extent],
}

impl ActiveRows<'_> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn record(&self, row: usize) -> Extent {
        self.records[row]
    }

    /// The available bytes of a record before its checksum.
    fn hashed(&self, record @ (_, hashed): Extent) -> &[u8] {
        Cursor::new(self.from(record)).run_up_to(hashed)
    }

    /// The bytes from a record's beginning on.
    fn from(&self, (offset, _): Extent) -> &[u8] {
        let bytes = self.bytes.get(offset..);
        bytes.or_bug_default("the bytes that a record begins with")
    }

    fn uuid(&self, record: Extent) -> &[u8; UUID_BYTES] {
        let uuid = self.from(record).first_chunk();
        uuid.or_bug_value("a UUID in each record", &[0; UUID_BYTES])
    }

    fn micros(&self, record: Extent) -> i64 {
        uuid6::timestamp_micros(self.uuid(record))
    }

    /// The type. Empty if it is incomplete.
    fn type_bytes(&self, record: Extent) -> &[u8] {
        type_of(self.hashed(record))
    }

    /// The value. Empty if it is incomplete. The hashed bytes end with the value, so its length need not be read.
    fn value_bytes(&self, (offset, hashed): Extent) -> &[u8] {
        // Branches that are always predicted, and no conditional moves: this runs for each value.
        let value = || {
            let whole = self.bytes.get(offset..)?.get(..hashed)?;
            whole.get(MIN_HEADER_BYTES + usize::from(*whole.get(UUID_BYTES)?)..)
        };
        value().unwrap_or_default()
    }
}

/// A record with its stored checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) uuid: [u8; UUID_BYTES],
    pub(crate) type_: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) checksum: u64,
}

impl ActiveRows<'_> {
    /// A record whose value was read.
    pub(super) fn stored_record(&self, row: usize) -> Record<'_> {
        let record @ (offset, hashed) = self.record(row);
        let checksum = self.bytes.get(offset + hashed..);
        let checksum = checksum.and_then(|checksum| Cursor::new(checksum).u64_be());
        let (type_, value) = (self.type_bytes(record), self.value_bytes(record));
        Record {
            uuid: *self.uuid(record),
            type_,
            value,
            checksum: checksum.or_bug_default("the checksum of a record whose value was read"),
        }
    }
}

impl Sealed for ActiveRows<'_> {}

impl Rows for ActiveRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.base + self.record(row).0 as u64
    }

    fn end(&self, row: usize) -> u64 {
        let (offset, hashed) = self.record(row);
        self.base + (offset + hashed + CHECKSUM_BYTES) as u64
    }

    fn value(&self, row: usize) -> &[u8] {
        self.value_bytes(self.record(row))
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        Some(self.micros(self.record(row)))
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let record = self.record(row);
        match column {
            0 => Value::Uuid(*self.uuid(record)),
            1 => Value::Timestamp(self.micros(record)),
            2 => Value::Text(self.type_bytes(record)),
            _ => Value::Binary(self.value_bytes(record)),
        }
    }

    fn times(&self) -> Option<(i64, i64)> {
        // UUIDs ascend, and a greater UUID never has an earlier time.
        let (first, last) = (self.records.first()?, self.records.last()?);
        Some((self.micros(*first), self.micros(*last)))
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let records = self.records.get(rows);
        let records = records.or_bug_default("rows that are there").iter();
        match column {
            0 => buffer.extend_uuids(records.map(|record| self.uuid(*record))),
            1 => buffer.extend_int64(records.map(|record| self.micros(*record))),
            2 => buffer.extend_text(records.map(|record| self.type_bytes(*record))),
            _ => buffer.extend_bytes(records.map(|record| self.value_bytes(*record))),
        }
    }
}
