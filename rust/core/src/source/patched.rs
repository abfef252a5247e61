//! A source with some bytes changed: a test of a changed file without writing one.

use std::path::Path;
use std::sync::Arc;

use super::Source;
use crate::error::Result;

/// Another source, with some bytes replaced.
pub(crate) struct PatchedSource {
    source: Arc<dyn Source>,
    /// Absolute offsets and the new bytes.
    patches: Vec<(u64, u8)>,
}

impl PatchedSource {
    pub(crate) const fn new(source: Arc<dyn Source>, patches: Vec<(u64, u8)>) -> Self {
        Self { source, patches }
    }
}

impl Source for PatchedSource {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn path(&self) -> Option<&Path> {
        self.source.path()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.source.read_exact_at(offset, buffer)?;
        for (at, byte) in &self.patches {
            let place = at.checked_sub(offset).map(usize::try_from);
            if let Some(Ok(place)) = place
                && let Some(own) = buffer.get_mut(place)
            {
                *own = *byte;
            }
        }
        Ok(())
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
        self.source.synced()
    }
}
