//! A spool: bytes that are stored until their place is known.

use std::path::{Path, PathBuf};

use super::{WriteBuffer, folder};
use crate::disk::{DiskRef, Handle};
use crate::error::{Error, Result};
use crate::source::FileSource;

/// A buffered file without a name, in the folder of the file that will be made from it. It vanishes with its writer,
/// also after a kill.
#[derive(Debug)]
pub(crate) struct Spool {
    file: Handle,
    disk: DiskRef,
    /// The path of the final file.
    path: PathBuf,
    buffer: WriteBuffer,
}

impl Spool {
    /// An empty spool for the file that will be `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if its folder cannot be written to.
    pub(crate) fn create(disk: &DiskRef, path: &Path) -> Result<Self> {
        let file = disk.nameless(folder(path)).map_err(|error| {
            Error::io(Some(path), "cannot open a temporary file beside it", error)
        })?;
        Ok(Self {
            file: Handle::new(file),
            disk: disk.clone(),
            path: path.to_path_buf(),
            buffer: WriteBuffer::new(0),
        })
    }

    /// The bytes that are not in the file yet, to append to. There may be padding before them.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.bytes()
    }

    /// The number of bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.buffer.end()
    }

    /// Flushes a full buffer.
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
    /// [`Error::Io`]. Unwritten bytes stay buffered, and flushing again writes them to their place.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let bytes = self.buffer.len();
        self.buffer.write_to(&self.file).map_err(|error| {
            let action = format!(
                "cannot write {bytes} bytes to a temporary file beside it: they stay buffered"
            );
            Error::io(Some(&self.path), action, error)
        })
    }

    /// All bytes, to read.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn source(&mut self) -> Result<FileSource> {
        self.flush()?;
        FileSource::of(self.file.another(), &self.disk, &self.path)
    }
}
