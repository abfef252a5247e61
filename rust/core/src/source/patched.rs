//! A source with some bytes changed: a test of a changed file without writing one.

use std::path::Path;
use std::sync::Arc;

use super::{Source, passed_on};
use crate::error::Result;

/// Another source, with some bytes replaced.
pub(crate) struct PatchedSource {
    source: Arc<dyn Source>,
    /// Absolute offsets and the new bytes, in order.
    patches: Vec<(u64, u8)>,
}

impl PatchedSource {
    pub(crate) fn new(source: Arc<dyn Source>, mut patches: Vec<(u64, u8)>) -> Self {
        patches.sort_by_key(|(at, _)| *at);
        Self { source, patches }
    }
}

impl Source for PatchedSource {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.source.read_exact_at(offset, buffer)?;
        let first = self.patches.partition_point(|(at, _)| *at < offset);
        let end = offset.saturating_add(buffer.len() as u64);
        let patches = self.patches.iter().skip(first);
        for (at, byte) in patches.take_while(|(at, _)| *at < end) {
            let place = at.checked_sub(offset).map(usize::try_from);
            if let Some(Ok(place)) = place
                && let Some(own) = buffer.get_mut(place)
            {
                *own = *byte;
            }
        }
        Ok(())
    }

    passed_on!(bound);
}
