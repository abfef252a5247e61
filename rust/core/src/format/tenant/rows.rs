//! The messages of one step, as slices of the walk's window.

use std::ops::Range;
use std::sync::Arc;

use crate::record::ColumnBuffer;
use crate::record::{Rows, Value};
use crate::text::escape;

/// The length of a message, in front of its content.
pub(super) const MESSAGE_HEADER_BYTES: u64 = 4;

/// A message of a good block, by where it begins in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Where its length stands.
    pub(super) position: u64,
    pub(super) len: u32,
    /// Its place within the block.
    pub(super) index: u32,
    /// The place of its tenant among those of the step.
    pub(super) tenant: usize,
}

/// A tenant in a partition, of which the step gives messages.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) partition: u32,
    /// `None` where the ID is too long for a reader that did not ask for bodies.
    pub(super) id: Option<Arc<[u8]>>,
    /// How many bytes the ID has as text.
    shown_bytes: usize,
}

impl Tenant {
    pub(super) fn new(partition: u32, id: Option<Arc<[u8]>>) -> Self {
        let shown_bytes = id.as_deref().map_or(0, |id| escape(id).len());
        Self {
            partition,
            id,
            shown_bytes,
        }
    }

    fn id(&self) -> Value<'_> {
        self.id.as_deref().map_or(Value::Null, Value::Text)
    }
}

/// Messages whose bytes begin at the absolute offset `base`.
pub(super) struct TenantRows<'a> {
    pub(super) base: u64,
    /// Empty where bodies are not wanted.
    pub(super) bytes: &'a [u8],
    pub(super) messages: &'a [Message],
    pub(super) tenants: &'a [Tenant],
}

impl TenantRows<'_> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn message(&self, row: usize) -> (&Message, &Tenant) {
        let message = &self.messages[row];
        (message, &self.tenants[message.tenant])
    }

    fn body(&self, message: &Message) -> &[u8] {
        let start = message.position + MESSAGE_HEADER_BYTES - self.base;
        let range = usize::try_from(start)
            .ok()
            .zip(usize::try_from(message.len).ok());
        range
            .and_then(|(start, len)| self.bytes.get(start..start.checked_add(len)?))
            .unwrap_or_default()
    }
}

impl Rows for TenantRows<'_> {
    fn len(&self) -> usize {
        self.messages.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.message(row).0.position
    }

    fn value(&self, row: usize) -> &[u8] {
        self.body(self.message(row).0)
    }

    fn weight(&self, row: usize) -> usize {
        let (message, tenant) = self.message(row);
        self.body(message).len().saturating_add(tenant.shown_bytes)
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let (message, tenant) = self.message(row);
        match column {
            0 => Value::Int64(tenant.partition.into()),
            1 => tenant.id(),
            2 => Value::Int64(message.index.into()),
            _ => Value::Binary(self.body(message)),
        }
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let messages = self.messages.get(rows.clone()).unwrap_or_default().iter();
        let tenants = rows.map(|row| self.message(row).1);
        match column {
            0 => buffer.extend_int64(tenants.map(|tenant| tenant.partition.into())),
            1 => buffer.extend_optional_text(tenants.map(|tenant| tenant.id.as_deref())),
            2 => buffer.extend_int64(messages.map(|message| message.index.into())),
            _ => buffer.extend_bytes(messages.map(|message| self.body(message))),
        }
    }
}
