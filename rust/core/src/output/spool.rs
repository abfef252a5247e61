//! Bytes that are put aside until it is known where they belong.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::appender::write_all_at;
use super::folder;
use crate::error::{Error, Result};
use crate::source::FileSource;

/// Bytes are collected up to this many before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// A file without a name, in the folder of the one that is to be made of it, with a buffer in front. It vanishes with its
/// writer, however that ends.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    /// The file that is to be, for errors.
    path: PathBuf,
    /// Where the buffered bytes begin.
    at: u64,
    buffer: Vec<u8>,
}

impl Spool {
    /// An empty spool for the file that will be `path`.
    ///
    /// # Errors
    /// [`Error::Io`] where its folder cannot be written to.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(folder(path)).map_err(|error| {
            Error::io(Some(path), "cannot open a temporary file beside it", error)
        })?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            at: 0,
            buffer: Vec::new(),
        })
    }

    /// The bytes that are not in the file yet, to be appended to.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// How many bytes there are.
    pub(crate) const fn len(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// Flushes where the buffer is full.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Hands all bytes to the operating system.
    ///
    /// # Errors
    /// [`Error::Io`]; what could not be written is kept, and flushing again writes it to where it belongs.
    pub(crate) fn flush(&mut self) -> Result<()> {
        write_all_at(&self.file, &self.buffer, self.at).map_err(|error| {
            let action = format!("cannot put {} bytes aside", self.buffer.len());
            Error::io(Some(&self.path), action, error)
        })?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES * 2);
        Ok(())
    }

    /// All bytes, to be read.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn source(&mut self) -> Result<FileSource> {
        self.flush()?;
        let file = self.file.try_clone();
        let file = file.map_err(|error| {
            Error::io(Some(&self.path), "cannot read what was put aside", error)
        })?;
        FileSource::new(file, &self.path)
    }
}
