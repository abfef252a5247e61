//! Messages that were looked up.

use std::sync::Arc;

use super::check::{Checker, admit};
use super::layout::{Message, UUID_BYTES};
use super::rows::{Bodies, SealedRows};
use crate::bug::OrBug;
use crate::engine::Options;
use crate::error::Result;
use crate::record::{Found, Rows};
use crate::saturating::saturating_usize;
use crate::source::Source;

/// Messages that were looked up.
pub(super) struct FoundMessages {
    source: Arc<dyn Source>,
    in_memory: bool,
    messages: Vec<Message>,
    /// Their bytes, where the source does not have them in memory.
    bytes: Vec<Vec<u8>>,
}

impl FoundMessages {
    pub(super) fn new(source: Arc<dyn Source>, capacity: usize) -> Self {
        Self {
            in_memory: source.as_slice().is_some(),
            source,
            messages: Vec::with_capacity(capacity),
            bytes: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn uuids(&self) -> impl Iterator<Item = [u8; UUID_BYTES]> {
        self.messages.iter().map(|message| message.uuid)
    }

    /// Takes in a message that was checked.
    pub(super) fn take(
        &mut self,
        checker: &mut Checker,
        message: Message,
        options: &Options,
    ) -> Result<()> {
        if self.in_memory {
            admit(&*self.source, &message, options)?;
        } else {
            let len = checker.bring_checked(&message, options)?;
            let reader = &checker.reader;
            let held = reader.held(message.position, len);
            let bytes = held.ok_or_else(|| reader.changed(message.position))?;
            self.bytes.push(bytes.to_vec());
        }
        self.messages.push(message);
        Ok(())
    }
}

/// Where the bytes of messages that were looked up are.
struct Looked<'a> {
    /// The whole source, where it is in memory.
    whole: Option<&'a [u8]>,
    bytes: &'a [Vec<u8>],
}

impl Bodies for Looked<'_> {
    fn bytes_of(&self, row: usize, message: &Message) -> &[u8] {
        match self.whole {
            Some(bytes) => bytes.get(saturating_usize(message.position)..),
            None => self.bytes.get(row).map(Vec::as_slice),
        }
        .or_bug_default("the bytes of each message that was found")
    }
}

impl Found for FoundMessages {
    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(SealedRows {
            messages: &self.messages,
            bodies: Looked {
                whole: self.source.as_slice(),
                bytes: &self.bytes,
            },
        })
    }
}
