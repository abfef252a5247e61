//! The messages of one step, as slices of the walk's window, and messages that were looked up.

use std::ops::Range;
use std::sync::Arc;

use crate::record::ColumnBuffer;
use crate::record::{Found, Rows, Value};
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

/// Messages that were looked up, with the bytes of their bodies end to end.
#[derive(Debug, Default)]
pub(super) struct FoundMessages {
    messages: Vec<(Message, Range<usize>)>,
    bytes: Vec<u8>,
    tenants: Vec<Tenant>,
}

impl FoundMessages {
    /// Adds a message of the tenant that was added last.
    pub(super) fn push(&mut self, position: u64, index: u32, body: &[u8]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(body);
        let message = Message {
            position,
            len: 0,
            index,
            tenant: self.tenants.len().saturating_sub(1),
        };
        self.messages.push((message, start..self.bytes.len()));
        self.messages.len() - 1
    }

    /// The tenant of the messages that are added next. It is kept once for those of one tenant that come together.
    pub(super) fn tenant(&mut self, partition: u32, id: &[u8]) {
        let is_last = |last: &Tenant| last.partition == partition && last.id.as_deref() == Some(id);
        if !self.tenants.last().is_some_and(is_last) {
            self.tenants.push(Tenant::new(partition, Some(id.into())));
        }
    }
}

impl Found for FoundMessages {
    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(self)
    }
}

#[allow(
    clippy::indexing_slicing,
    reason = "a row beyond the rows is the caller's mistake, as with any slice"
)]
impl Rows for &FoundMessages {
    fn len(&self) -> usize {
        self.messages.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.messages[row].0.position
    }

    fn value(&self, row: usize) -> &[u8] {
        let range = self.messages[row].1.clone();
        self.bytes.get(range).unwrap_or_default()
    }

    fn weight(&self, row: usize) -> usize {
        let tenant = &self.tenants[self.messages[row].0.tenant];
        self.value(row).len().saturating_add(tenant.shown_bytes)
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let message = &self.messages[row].0;
        let tenant = &self.tenants[message.tenant];
        match column {
            0 => Value::Int64(tenant.partition.into()),
            1 => tenant.id(),
            2 => Value::Int64(message.index.into()),
            _ => Value::Binary(self.value(row)),
        }
    }
}
