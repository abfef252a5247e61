//! A file read in windows, by offset: any number of walks share it, and none moves a file position.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Source;
use crate::disk::{self, Handle};
use crate::error::{Error, Result};

/// A file as a source. Bytes are read when asked for, so memory stays flat, and a file that shrinks is an error.
#[derive(Debug)]
pub struct FileSource {
    file: Handle,
    path: PathBuf,
    len: u64,
}

impl FileSource {
    /// A source of `file`, which errors call `path`.
    ///
    /// # Errors
    /// [`Error::Io`] where the file's length cannot be had.
    pub fn new(file: File, path: &Path) -> Result<Self> {
        Self::of(Handle::new(file), path)
    }

    /// As [`new`](Self::new), of a file that is being written.
    pub(crate) fn of(file: Handle, path: &Path) -> Result<Self> {
        let len = file
            .len()
            .map_err(|error| Error::io(Some(path), "cannot stat", error))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            len,
        })
    }

    fn shrunk(&self, offset: u64) -> Error {
        let action = format!(
            "the file shrank while it was read: it had {} bytes and now ends before offset {offset}",
            self.len
        );
        Error::io(Some(&self.path), action, ErrorKind::UnexpectedEof.into())
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| {
            let len = buffer.len();
            if error.kind() == ErrorKind::UnexpectedEof {
                return self.shrunk(offset.saturating_add(len as u64));
            }
            let action = format!("cannot read {len} bytes at offset {offset}");
            Error::io(Some(&self.path), action, error)
        })
    }
}

/// Opens a regular file for reading. A pipe or device is refused without waiting for its other end.
///
/// # Errors
/// [`Error::Io`] where it does not exist, cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> Result<File> {
    let failed = |error| Error::io(Some(path), "cannot open", error);
    let metadata = disk::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        let error = std::io::Error::new(
            ErrorKind::InvalidInput,
            "not a regular file: read it into a file or a buffer first",
        );
        return Err(failed(error));
    }
    disk::open(path).map_err(failed)
}
