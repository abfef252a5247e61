//! Good messages, as slices of what was read of the file: those of a walk, and those that were looked up.

use std::ops::Range;
use std::sync::Arc;

use super::check::Checker;
use super::layout::Message;
use super::reader::Reader;
use crate::bug::OrBug;
use crate::error::Result;
use crate::private::Sealed;
use crate::record::{ColumnBuffer, RecordSet, Rows, Value};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::uuid6;

impl Message {
    /// The type, from the message's bytes.
    pub(super) fn type_bytes<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let place = 1..1 + usize::from(self.header.type_len);
        bytes.get(place).or_bug_default("the type of a message")
    }

    /// The value, from the message's bytes. Empty if it was not read.
    fn value_bytes<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let [start, end] = [self.header.value_start(), self.header.total()].map(saturating_usize);
        match bytes.get(start..end) {
            Some(value) => value,
            None => &[],
        }
    }
}

/// Access to the bytes of messages.
pub(super) trait Bodies {
    /// The bytes from the beginning of this row's message on.
    fn bytes_of(&self, row: usize, message: &Message) -> &[u8];
}

impl Bodies for &Reader {
    fn bytes_of(&self, _: usize, message: &Message) -> &[u8] {
        self.bytes(message.position)
    }
}

/// Messages, and access to their bytes.
pub(super) struct SealedRows<'a, B> {
    pub(super) messages: &'a [Message],
    pub(super) bodies: B,
}

impl<B: Bodies> SealedRows<'_, B> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn message(&self, row: usize) -> (&Message, &[u8]) {
        let message = &self.messages[row];
        (message, self.bodies.bytes_of(row, message))
    }
}

impl<B: Bodies> Sealed for SealedRows<'_, B> {}

impl<B: Bodies> Rows for SealedRows<'_, B> {
    fn len(&self) -> usize {
        self.messages.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.message(row).0.position
    }

    fn end(&self, row: usize) -> u64 {
        self.message(row).0.end()
    }

    fn value(&self, row: usize) -> &[u8] {
        let (message, bytes) = self.message(row);
        message.value_bytes(bytes)
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        Some(uuid6::timestamp_micros(&self.message(row).0.uuid))
    }

    fn times(&self) -> Option<(i64, i64)> {
        // UUIDs of version 6 are ordered by time.
        let uuids = || {
            self.messages
                .iter()
                .map(|message| u128::from_be_bytes(message.uuid))
        };
        let time = |uuid: u128| uuid6::timestamp_micros(&uuid.to_be_bytes());
        uuids().min().map(time).zip(uuids().max().map(time))
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let (message, bytes) = self.message(row);
        match column {
            0 => Value::Uuid(message.uuid),
            1 => Value::Timestamp(uuid6::timestamp_micros(&message.uuid)),
            2 => Value::Text(message.type_bytes(bytes)),
            _ => Value::Binary(message.value_bytes(bytes)),
        }
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let messages = self.messages.get(rows.clone());
        let messages = messages.or_bug_default("rows that there are").iter();
        let whole = rows.map(|row| self.message(row));
        match column {
            0 => buffer.extend_uuids(messages.map(|message| &message.uuid)),
            1 => {
                buffer.extend_int64(messages.map(|message| uuid6::timestamp_micros(&message.uuid)))
            }
            2 => buffer.extend_text(whole.map(|(message, bytes)| message.type_bytes(bytes))),
            _ => buffer.extend_bytes(whole.map(|(message, bytes)| message.value_bytes(bytes))),
        }
    }
}

/// Messages that were looked up.
pub(super) struct FoundMessages {
    source: Arc<dyn Source>,
    messages: Vec<Message>,
    /// Their bytes, if the source does not have them in memory.
    bytes: Vec<Vec<u8>>,
}

impl FoundMessages {
    pub(super) fn new(source: Arc<dyn Source>, capacity: usize) -> Self {
        Self {
            source,
            messages: Vec::with_capacity(capacity),
            bytes: Vec::new(),
        }
    }

    /// Adds a good message, and returns its row.
    pub(super) fn take(&mut self, checker: &mut Checker, message: Message) -> Result<usize> {
        if self.source.as_slice().is_some() {
            checker.reader.admit(&message)?;
        } else {
            let len = checker.load_verified(&message)?;
            let reader = &checker.reader;
            let held = reader.in_window(message.position, len);
            let bytes = held.ok_or_else(|| reader.changed(message.position))?;
            self.bytes.push(bytes.to_vec());
        }
        self.messages.push(message);
        Ok(self.messages.len() - 1)
    }
}

impl Bodies for &FoundMessages {
    fn bytes_of(&self, row: usize, message: &Message) -> &[u8] {
        match self.source.as_slice() {
            Some(bytes) => bytes.get(saturating_usize(message.position)..),
            None => self.bytes.get(row).map(Vec::as_slice),
        }
        .or_bug_default("the bytes of each message that was found")
    }
}

impl Sealed for FoundMessages {}

impl RecordSet for FoundMessages {
    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(SealedRows {
            messages: &self.messages,
            bodies: self,
        })
    }
}
