//! A source that ends earlier than another.

use std::path::Path;
use std::sync::Arc;

use super::{Bound, Source, View, check_within, passed_on};
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

/// The same bytes, which are not compared with a parity sidecar.
pub(crate) fn uncompared(source: &Arc<dyn Source>) -> Arc<dyn Source> {
    match source.by_sidecar() {
        None => source.clone(),
        Some(_) => Arc::new(View::new(source.clone(), Vec::new())),
    }
}
