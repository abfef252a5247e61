//! A file of a log, of which is known how far it is filled with records.

use std::path::Path;
use std::sync::Arc;

use super::Source;
use crate::error::Result;
use crate::saturating::saturating_usize;

/// A source that is known to be filled with records up to an offset. What the file lacks of that reads as zeros, so that whoever
/// walks it reports that as damage, like zeros that were never written over.
pub(crate) struct SyncedSource {
    source: Arc<dyn Source>,
    synced: u64,
    len: u64,
}

impl SyncedSource {
    /// All of the file.
    pub(crate) fn whole(source: Arc<dyn Source>, synced: u64) -> Self {
        let len = source.len().max(synced);
        Self {
            source,
            synced,
            len,
        }
    }

    /// The file up to there. What is after it was not written yet, or may be taken back.
    pub(crate) const fn up_to(source: Arc<dyn Source>, synced: u64) -> Self {
        Self {
            source,
            synced,
            len: synced,
        }
    }
}

impl Source for SyncedSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&Path> {
        self.source.path()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let there = saturating_usize(self.source.len().saturating_sub(offset));
        let (there, missing) = buffer.split_at_mut(there.min(buffer.len()));
        missing.fill(0);
        if there.is_empty() {
            return Ok(());
        }
        self.source.read_exact_at(offset, there)
    }

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        self.source.beside(extension)
    }

    fn is_replaceable(&self) -> bool {
        self.source.is_replaceable()
    }

    fn confirm(&self) -> Result<()> {
        self.source.confirm()
    }

    fn synced(&self) -> Option<u64> {
        Some(self.synced)
    }
}
