//! Progress of work that reads a file several times, and a source that counts what is read.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::source::{Source, passed_on};
use crate::walk::Options;

/// Reports the progress of several passes, of about as many bytes each, as one number.
pub(super) struct Stages<'a> {
    progress: &'a mut dyn FnMut(u64) -> Result<()>,
    total: u64,
    stages: u64,
    /// How many stages are done.
    done: u64,
}

impl<'a> Stages<'a> {
    /// Work of `stages` stages on a file of `total` bytes.
    pub(super) fn new(
        total: u64,
        stages: u64,
        progress: &'a mut dyn FnMut(u64) -> Result<()>,
    ) -> Self {
        Self {
            progress,
            total,
            stages,
            done: 0,
        }
    }

    /// Reports that this stage has done `done` bytes.
    pub(super) fn tell(&mut self, done: u64) -> Result<()> {
        let share = self.total / self.stages;
        let within = done.min(self.total) / self.stages;
        (self.progress)(share.saturating_mul(self.done).saturating_add(within))
    }

    /// Goes on to the next stage.
    pub(super) const fn next(&mut self) {
        self.done += 1;
    }

    /// Reports that all stages are done.
    pub(super) fn finish(self) -> Result<()> {
        (self.progress)(self.total)
    }
}

/// Another source. It counts the bytes that are read, and asks at each read whether to stop.
pub(super) struct CountingSource<'a> {
    source: &'a dyn Source,
    options: &'a Options,
    read: AtomicU64,
}

impl<'a> CountingSource<'a> {
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

impl Source for CountingSource<'_> {
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
