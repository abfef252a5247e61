//! Bytes that are read a second time.

use std::path::Path;
use std::sync::Arc;

use super::{Source, passed_on};
use crate::error::Result;

/// A source of which all that is read was read before, by a caller that compares the hashes of both.
pub(crate) struct ReadAgain<'a> {
    source: &'a dyn Source,
}

impl<'a> ReadAgain<'a> {
    pub(crate) const fn new(source: &'a dyn Source) -> Self {
        Self { source }
    }
}

impl Source for ReadAgain<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn as_slice(&self) -> Option<&[u8]> {
        self.source.as_slice()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.source.read_again_at(offset, buffer)
    }

    passed_on!(bound);
}
