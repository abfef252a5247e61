//! The findings of a step: messages, as slices of the walk's window, and the good blocks and partitions.

use std::ops::Range;
use std::sync::Arc;

use super::probe::Input;
use super::toc::Entry;
use crate::bug::OrBug;
use crate::limits::LIMITS;
use crate::private::Sealed;
use crate::record::{ColumnBuffer, Rows, Value};
use crate::text::escape;

/// The length of a message's length field, which comes before its content.
pub(super) const MESSAGE_HEADER_BYTES: u64 = 4;

/// A message of a good block, by its position in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The offset of its length field.
    pub(super) position: u64,
    pub(super) len: u32,
    /// Its index in the block.
    pub(super) index: u32,
    /// The index of its tenant among those of the step.
    pub(super) tenant: usize,
}

/// A tenant in a partition, of which the step emits messages.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    partition: u32,
    /// `None` if the ID is too long for a reader without bodies.
    id: Option<Arc<[u8]>>,
    /// The length of the ID as text, in bytes.
    shown_bytes: usize,
}

impl Tenant {
    pub(super) fn new(partition: u32, id: Option<Arc<[u8]>>) -> Self {
        let shown_bytes = match &id {
            Some(id) => escape(id).len(),
            None => 0,
        };
        Self {
            partition,
            id,
            shown_bytes,
        }
    }

    fn id(&self) -> Value<'_> {
        match &self.id {
            Some(id) => Value::Text(id),
            None => Value::Null,
        }
    }
}

/// Messages whose bytes begin at the absolute offset `base`.
pub(super) struct TenantRows<'a> {
    base: u64,
    /// Empty if bodies are not read.
    bytes: &'a [u8],
    messages: &'a [Message],
    tenants: &'a [Tenant],
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

impl Sealed for TenantRows<'_> {}

impl Rows for TenantRows<'_> {
    fn len(&self) -> usize {
        self.messages.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.message(row).0.position
    }

    fn end(&self, row: usize) -> u64 {
        let (message, _) = self.message(row);
        message.position + MESSAGE_HEADER_BYTES + u64::from(message.len)
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
        let messages = self.messages.get(rows.clone());
        let messages = messages.or_bug_default("rows of the step").iter();
        let tenants = rows.map(|row| self.message(row).1);
        match column {
            0 => buffer.extend_int64(tenants.map(|tenant| tenant.partition.into())),
            1 => buffer.extend_optional_text(tenants.map(|tenant| tenant.id.as_deref())),
            2 => buffer.extend_int64(messages.map(|message| message.index.into())),
            _ => buffer.extend_bytes(messages.map(|message| self.body(message))),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct StepFindings {
    pub(super) messages: Vec<Message>,
    pub(super) tenants: Vec<Tenant>,
    /// The good blocks, by entries that describe them. Version 1: without lengths and CRC-32s.
    pub(super) good: Vec<Entry>,
    /// The total length of their tenant IDs.
    id_bytes: usize,
    /// Version 1: the good partitions, including those without tenants. Their entries count tenants.
    pub(super) partitions: Vec<Entry>,
    /// Damage was met: nothing is emitted any more, and the walk continues only to find the first damage.
    pub(super) is_silent: bool,
}

impl StepFindings {
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.tenants.clear();
        self.good.clear();
        self.id_bytes = 0;
        self.partitions.clear();
    }

    /// Adds a good block.
    pub(super) fn add_block(&mut self, block: Entry) {
        if !self.is_silent {
            if let Some(id) = block.tenant.bytes() {
                self.id_bytes += id.len();
            }
            self.good.push(block);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.good.is_empty() && self.partitions.is_empty()
    }

    /// Whether a step cannot emit more messages.
    pub(super) fn is_full(&self, input: &Input) -> bool {
        let (Some(first), Some(last)) = (self.messages.first(), self.messages.last()) else {
            return false;
        };
        let bytes = last.position.saturating_sub(first.position);
        self.messages.len() >= LIMITS.tenant_step_rows || bytes >= input.options.window_bytes as u64
    }

    /// Whether there is enough for a step.
    pub(super) fn is_crowded(&self, input: &Input) -> bool {
        self.is_full(input)
            || self.id_bytes >= input.options.window_bytes
            || self.partitions.len() >= LIMITS.tenant_step_rows
    }

    pub(super) fn rows<'a>(&'a self, input: &'a Input) -> TenantRows<'a> {
        let base = self.messages.first().map_or(0, |first| first.position);
        let bytes = if input.options.values {
            input.data.bytes(&*input.source, base)
        } else {
            &[]
        };
        TenantRows {
            base,
            bytes,
            messages: &self.messages,
            tenants: &self.tenants,
        }
    }
}
