//! Repairs an existing index before more is appended, so that it matches the segment's chunks.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::index::{Entries, beside};
use super::layout::{ITEM_BYTES, Item};
use crate::disk::DiskRef;
use crate::engine::WriteOptions;
use crate::error::{Error, Result};
use crate::output::{Appender, Spool};
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source, Window, data_end};
use crate::walk::Options;

/// How much of an index is read or copied at a time.
const COPY_BYTES: usize = 64 << 10;

/// The path of the index for the segment at `path`.
pub(super) fn index_path(path: &Path) -> Result<PathBuf> {
    beside(path).ok_or_else(|| {
        Error::Usage(format!(
            "{} has the name of its own index: give the segment another extension, or write it without an index (`index`)",
            crate::text::path(path)
        ))
    })
}

/// Refuses to replace a file that happens to have the name of a new segment's index.
pub(super) fn refuse_existing(disk: &DiskRef, index: &Path) -> Result<()> {
    match disk.stat(index, false) {
        Ok(stat) if stat.len > 0 => Err(Error::io(
            Some(index),
            "a new segment's index would replace this file: move it away, or write the segment without an index (`index`)",
            ErrorKind::AlreadyExists.into(),
        )),
        _ => Ok(()),
    }
}

/// Compares an index with what it should be, and spills what it lacks.
pub(super) struct IndexRepair {
    disk: DiskRef,
    path: PathBuf,
    existing: Option<FileSource>,
    window: Window,
    /// How many bytes of the index are right.
    right: u64,
    /// What must follow them. Created when there is anything.
    missing: Option<Spool>,
}

impl IndexRepair {
    pub(super) fn new(disk: &DiskRef, path: PathBuf) -> Result<Self> {
        let existing = match FileSource::open(disk, &path) {
            Ok(file) => Some(file),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            disk: disk.clone(),
            path,
            existing,
            window: Window::default(),
            right: 0,
            missing: None,
        })
    }

    /// Takes the next item that the index should have.
    pub(super) fn expect(&mut self, item: &Item) -> Result<()> {
        let bytes = item.encode();
        let missing = match self.missing.take() {
            Some(missing) => missing,
            None if self.is_next(&bytes)? => {
                self.right += ITEM_BYTES as u64;
                return Ok(());
            }
            None => Spool::create(&self.disk, &self.path)?,
        };
        let missing = self.missing.insert(missing);
        missing.buffer().extend_from_slice(&bytes);
        missing.flush_if_full()
    }

    fn is_next(&mut self, item: &[u8; ITEM_BYTES]) -> Result<bool> {
        let Some(existing) = &self.existing else {
            return Ok(false);
        };
        if existing.len() < self.right + ITEM_BYTES as u64 {
            return Ok(false);
        }
        self.window
            .load(existing, self.right, ITEM_BYTES, COPY_BYTES)?;
        Ok(self.window.bytes(existing, self.right).starts_with(item))
    }

    /// Writes what is missing, puts aside what is wrong or too much, and returns the index for appending.
    pub(super) fn repair(mut self, log: &dyn Source, options: &WriteOptions) -> Result<Appender> {
        let len = self.existing.as_ref().map_or(0, Source::len);
        if let Some(existing) = self
            .existing
            .as_ref()
            .filter(|_| self.right == 0 && len > 0)
        {
            self.refuse_foreign(log, existing, options)?;
        }
        let mut out = Appender::open(&self.disk, &self.path, true)?;
        match self.write(&mut out, len) {
            Ok(()) => Ok(out),
            Err(error) => {
                out.discard();
                Err(error)
            }
        }
    }

    fn write(&mut self, out: &mut Appender, len: u64) -> Result<()> {
        out.go_to(self.right);
        if self.right < len {
            let name = out.quarantine(self.right);
            out.remove_tail(self.right..len, false, name)?;
        }
        if let Some(missing) = &mut self.missing {
            let missing = missing.source()?;
            let (mut window, mut at) = (Window::default(), 0);
            while at < missing.len() {
                let left = saturating_usize(missing.len() - at);
                let piece = left.min(COPY_BYTES);
                let bytes = window.exact(&missing, at, piece, piece)?;
                out.buffer().extend_from_slice(bytes);
                out.flush_if_full()?;
                at += piece as u64;
            }
        }
        out.flush()
    }

    /// Refuses a file that is not empty and has no index item: it is not an index.
    fn refuse_foreign(
        &self,
        log: &dyn Source,
        existing: &FileSource,
        options: &WriteOptions,
    ) -> Result<()> {
        let reading = Options::default().interrupt(options.interrupt.clone());
        let mut entries = Entries::new(log, existing, &reading);
        let first = entries.next().transpose()?;
        let is_short = existing.len() < ITEM_BYTES as u64;
        let is_zero = data_end(existing, || reading.poll())? == 0;
        if first.is_none() || entries.any_verified() || is_short || is_zero {
            return Ok(());
        }
        Err(Error::io(
            Some(&self.path),
            "nothing in this file is an index item, so it is not replaced: move it away, or write the segment without an index (`index`)",
            ErrorKind::InvalidData.into(),
        ))
    }
}
