//! How much of a source is read.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use seglake::source::Source;

use super::Windowed;

/// A source in windows that counts the bytes and the reads.
pub(crate) struct Counting {
    source: Windowed,
    bytes: AtomicU64,
    reads: AtomicU64,
}

impl Counting {
    pub(crate) fn new(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            source: Windowed(bytes),
            bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        })
    }

    /// The bytes and reads since the last call.
    pub(crate) fn take(&self) -> (u64, u64) {
        (
            self.bytes.swap(0, Ordering::Relaxed),
            self.reads.swap(0, Ordering::Relaxed),
        )
    }
}

impl Source for Counting {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        self.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.source.read_exact_at(offset, buffer)
    }
}
