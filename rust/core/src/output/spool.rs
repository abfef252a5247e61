//! Bytes that are put aside until it is known where they belong.

use std::path::{Path, PathBuf};

use super::{WriteBuffer, folder};
use crate::disk::Handle;
use crate::error::{Error, Result};
use crate::source::FileSource;

/// A file without a name, in the folder of the one that is to be made of it, with a buffer in front. It vanishes with its
/// writer, however that ends.
#[derive(Debug)]
pub(crate) struct Spool {
    file: Handle,
    /// The file that is to be, for errors.
    path: PathBuf,
    buffer: WriteBuffer,
}

impl Spool {
    /// An empty spool for the file that will be `path`.
    ///
    /// # Errors
    /// [`Error::Io`] where its folder cannot be written to.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = Handle::nameless(folder(path)).map_err(|error| {
            Error::io(Some(path), "cannot open a temporary file beside it", error)
        })?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            buffer: WriteBuffer::new(0),
        })
    }

    /// The bytes that are not in the file yet, to be appended to.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.bytes()
    }

    /// How many bytes there are.
    pub(crate) const fn len(&self) -> u64 {
        self.buffer.end()
    }

    /// Flushes where the buffer is full.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.is_full() {
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
        let bytes = self.buffer.len();
        self.buffer.write_to(&self.file).map_err(|error| {
            let action =
                format!("cannot put {bytes} bytes into a temporary file beside it, and keeps them to try again");
            Error::io(Some(&self.path), action, error)
        })
    }

    /// All bytes, to be read.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn source(&mut self) -> Result<FileSource> {
        self.flush()?;
        let file = self.file.try_clone();
        let file = file.map_err(|error| {
            let action = "cannot read what was put into a temporary file beside it";
            Error::io(Some(&self.path), action, error)
        })?;
        FileSource::of(file, &self.path)
    }
}
