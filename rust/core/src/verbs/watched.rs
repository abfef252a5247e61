//! A source that counts what is read of it, for the progress of work that has no callback of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::source::{Source, passed_on};
use crate::walk::Options;

/// Another source. It counts the bytes that are read, and asks at each read whether to stop.
pub(super) struct Watched<'a> {
    source: &'a dyn Source,
    options: &'a Options,
    read: AtomicU64,
}

impl<'a> Watched<'a> {
    pub(super) const fn new(source: &'a dyn Source, options: &'a Options) -> Self {
        Self {
            source,
            options,
            read: AtomicU64::new(0),
        }
    }

    /// How many bytes were read. Bytes that were read twice count twice.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

impl Source for Watched<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.options.poll()?;
        self.source.read_exact_at(offset, buffer)?;
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    passed_on!(bound);
}
