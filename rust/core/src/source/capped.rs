//! Sources that change one thing of another: where it ends, or some of its bytes.

use std::path::Path;
use std::sync::Arc;

use super::{Bound, Source, check_within, passed_on};
use crate::error::Result;
use crate::saturating::saturating_usize;

/// The first bytes of another source, for instance of a file that grew after it was listed.
pub struct CappedSource {
    source: Arc<dyn Source>,
    len: u64,
}

impl CappedSource {
    /// At most the first `len` bytes of `source`.
    #[must_use]
    pub fn new(source: Arc<dyn Source>, len: u64) -> Self {
        let len = len.min(source.len());
        Self { source, len }
    }
}

impl Source for CappedSource {
    fn len(&self) -> u64 {
        self.len
    }

    passed_on!();

    fn as_slice(&self) -> Option<&[u8]> {
        self.source.as_slice()?.get(..saturating_usize(self.len))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        self.source.read_exact_at(offset, buffer)
    }

    fn read_again_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        self.source.read_again_at(offset, buffer)
    }

    fn bound(&self) -> Option<Bound> {
        self.source.bound().filter(|bound| bound.offset <= self.len)
    }
}

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

    passed_on!(bound, other);
}

/// The same bytes, which are not compared with a parity sidecar.
pub(crate) fn uncompared(source: &Arc<dyn Source>) -> Arc<dyn Source> {
    match source.by_sidecar() {
        None => source.clone(),
        Some(_) => Arc::new(PatchedSource::new(source.clone(), Vec::new())),
    }
}
