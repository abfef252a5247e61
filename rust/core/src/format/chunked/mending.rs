//! Making an existing index what its segment's chunks say, before more is appended.

use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::SpooledTempFile;

use super::index::{Entries, ITEM_BYTES, Item, beside};
use crate::error::{Error, Result};
use crate::format::{Options, WriteOptions};
use crate::output::Appender;
use crate::source::{FileSource, Source, Window, data_end, open_regular};

/// How much memory the missing items take before they go to a temporary file.
const SPOOL_BYTES: usize = 1 << 20;
/// How much of an index is read or copied at a time.
const COPY_BYTES: usize = 64 << 10;

/// Where the index of the segment at `path` is.
pub(super) fn index_path(path: &Path) -> Result<PathBuf> {
    beside(path).ok_or_else(|| {
        Error::Usage(format!(
            "{} has the name of its own index: give the segment another extension, or write it with index=False",
            path.display()
        ))
    })
}

/// A new segment's index does not replace a file that happens to have its name.
pub(super) fn refuse_existing(index: &Path) -> Result<()> {
    match std::fs::symlink_metadata(index) {
        Ok(metadata) if metadata.len() > 0 => Err(Error::io(
            Some(index),
            "a new segment's index would replace this file: move it away, or write the segment with index=False",
            ErrorKind::AlreadyExists.into(),
        )),
        _ => Ok(()),
    }
}

/// Compares an index with what it should be, and keeps what is missing in it.
pub(super) struct Mending {
    path: PathBuf,
    existing: Option<FileSource>,
    window: Window,
    /// How many bytes of the index are right.
    right: u64,
    /// What belongs behind them.
    missing: SpooledTempFile,
    differs: bool,
}

impl Mending {
    pub(super) fn new(path: PathBuf) -> Result<Self> {
        let existing = match open_regular(&path) {
            Ok(file) => Some(FileSource::new(file, &path)?),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            path,
            existing,
            window: Window::default(),
            right: 0,
            missing: SpooledTempFile::new(SPOOL_BYTES),
            differs: false,
        })
    }

    /// The next item that the index should have.
    pub(super) fn expect(&mut self, item: &Item) -> Result<()> {
        let bytes = item.encode();
        if !self.differs {
            if self.stands_next(&bytes)? {
                self.right += ITEM_BYTES as u64;
                return Ok(());
            }
            self.differs = true;
        }
        let written = self.missing.write_all(&bytes);
        written.map_err(|error| Error::io(Some(&self.path), "cannot keep index items", error))
    }

    fn stands_next(&mut self, item: &[u8; ITEM_BYTES]) -> Result<bool> {
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

    /// Writes what is missing, cuts off what is too much, and gives the index to be appended to.
    pub(super) fn mend(mut self, log: &dyn Source, options: &WriteOptions) -> Result<Appender> {
        let len = self.existing.as_ref().map_or(0, Source::len);
        if let Some(existing) = self
            .existing
            .as_ref()
            .filter(|_| self.right == 0 && len > 0)
        {
            self.refuse_foreign(log, existing, options)?;
        }
        let mut out = Appender::open(&self.path, true)?;
        let failed = |error| Error::io(Some(&self.path), "cannot mend the index", error);
        out.go_to(self.right);
        self.missing.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut piece = vec![0; COPY_BYTES];
        loop {
            let read = self.missing.read(&mut piece).map_err(failed)?;
            if read == 0 {
                break;
            }
            out.buffer()
                .extend_from_slice(piece.get(..read).unwrap_or_default());
            out.flush_if_full()?;
        }
        out.flush()?;
        if out.position() < len {
            out.truncate(out.position())?;
        }
        Ok(out)
    }

    /// A file in which nothing is an index item, and that is not empty, is somebody else's.
    fn refuse_foreign(
        &self,
        log: &dyn Source,
        existing: &FileSource,
        options: &WriteOptions,
    ) -> Result<()> {
        let reading = Options {
            interrupt: options.interrupt.clone(),
            ..Options::default()
        };
        let mut entries = Entries::new(log, existing, &reading);
        let first = entries.next().transpose()?;
        let is_short = existing.len() < ITEM_BYTES as u64;
        let is_zero = data_end(existing, || reading.poll())? == 0;
        if first.is_none() || entries.has_checked() || is_short || is_zero {
            return Ok(());
        }
        Err(Error::io(
            Some(&self.path),
            "nothing in this file is an index item, so it is not replaced: move it away, or write the segment with index=False",
            ErrorKind::InvalidData.into(),
        ))
    }
}
