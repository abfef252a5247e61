//! A file that is appended to, with a buffer in front of it.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::sync_folder;
use crate::error::{Error, Result};
use crate::source::FileSource;

/// Bytes are collected up to this many before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Appends bytes to a file. Two appenders of one file keep each other out (by an advisory lock, on Unix).
///
/// Bytes are buffered: [`flush`](Self::flush) hands them to the operating system, [`sync`](Self::sync) to the disk.
/// After an error of `flush` nothing is lost: it can be called again.
#[derive(Debug)]
pub(crate) struct Appender {
    file: File,
    path: PathBuf,
    /// Where the buffered bytes begin in the file.
    at: u64,
    buffer: Vec<u8>,
    /// A sync failed: what the disk holds is no longer known.
    unsynced: bool,
}

impl Appender {
    /// Opens a file for writing, at its beginning: [`go_to`](Self::go_to) moves on.
    ///
    /// # Errors
    /// [`Error::Io`] where the file exists without `append`, is being written to by another writer, or cannot be opened.
    pub(crate) fn open(path: &Path, append: bool) -> Result<Self> {
        let failed = |error| Error::io(Some(path), "cannot open for writing", error);
        let mut open = OpenOptions::new();
        open.read(true).write(true).truncate(false);
        if append {
            open.create(true)
        } else {
            open.create_new(true)
        };
        let file = open.open(path).map_err(failed)?;
        #[cfg(unix)]
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => failed(std::io::Error::new(
                ErrorKind::ResourceBusy,
                "another writer has it open",
            )),
            std::fs::TryLockError::Error(error) => failed(error),
        })?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            at: 0,
            buffer: Vec::new(),
            unsynced: false,
        })
    }

    /// What is in the file, to be walked before anything is appended.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn source(&self) -> Result<FileSource> {
        let file = self
            .file
            .try_clone()
            .map_err(|error| self.failed("cannot read", error))?;
        FileSource::new(file, &self.path)
    }

    /// Goes on at this offset. Nothing may be in the buffer.
    pub(crate) const fn go_to(&mut self, offset: u64) {
        self.at = offset;
    }

    /// The bytes that are not in the file yet, to be appended to.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
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

    /// Fills the file with zeros up to `len` bytes. Written, not only reserved: so a full disk shows now.
    pub(crate) fn fill(&mut self, len: u64) -> Result<()> {
        let present = self
            .file
            .metadata()
            .map_err(|error| self.failed("cannot stat", error))?
            .len();
        self.zero(present, len)
    }

    /// Overwrites the bytes from `start` to `end` with zeros.
    pub(crate) fn zero(&self, start: u64, end: u64) -> Result<()> {
        let zeros = vec![
            0;
            usize::try_from(end.saturating_sub(start))
                .unwrap_or(BUFFER_BYTES)
                .min(BUFFER_BYTES)
        ];
        let mut at = start;
        while at < end {
            let piece = usize::try_from(end - at)
                .unwrap_or(usize::MAX)
                .min(BUFFER_BYTES);
            write_all_at(&self.file, zeros.get(..piece).unwrap_or_default(), at).map_err(
                |error| self.failed(&format!("cannot write zeros at offset {at}"), error),
            )?;
            at += piece as u64;
        }
        Ok(())
    }

    /// Cuts the file off at this length.
    pub(crate) fn truncate(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|error| self.failed(&format!("cannot cut off at offset {len}"), error))
    }

    /// Hands all bytes to the operating system: they survive the end of this process.
    ///
    /// # Errors
    /// [`Error::Io`]; what could not be written is kept, and flushing again writes it to where it belongs.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.check_synced()?;
        write_all_at(&self.file, &self.buffer, self.at).map_err(|error| {
            self.failed(
                &format!(
                    "cannot write {} bytes at offset {}",
                    self.buffer.len(),
                    self.at
                ),
                error,
            )
        })?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES * 2);
        Ok(())
    }

    /// Hands all bytes to the disk: they survive a loss of power.
    ///
    /// # Errors
    /// [`Error::Io`]. After a failed sync the disk's state is unknown, so every later call fails too: open the file again,
    /// which walks it.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let synced = self.file.sync_data().and_then(|()| sync_folder(&self.path));
        self.unsynced = synced.is_err();
        synced.map_err(|error| self.failed("cannot sync", error))
    }

    /// Whether all bytes have been handed to the operating system.
    pub(crate) const fn is_flushed(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Where the next byte will be, in bytes from the start of the file.
    pub(crate) const fn position(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses to go on after a failed sync.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn check_synced(&self) -> Result<()> {
        if self.unsynced {
            let error = std::io::Error::other(
                "an earlier sync failed, so what the disk holds is unknown: open the file again",
            );
            return Err(self.failed("cannot write", error));
        }
        Ok(())
    }

    /// That the damage which appending was to be refused for is gone.
    pub(crate) fn changed(&self) -> Error {
        let error = std::io::Error::new(
            ErrorKind::InvalidData,
            "the file changed while it was walked",
        );
        self.failed("cannot append", error)
    }

    pub(crate) fn failed(&self, action: &str, error: std::io::Error) -> Error {
        Error::io(Some(&self.path), action, error)
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            let _ = self.flush(); // who wants to know calls `flush`
        }
    }
}

#[cfg(unix)]
pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        offset += written as u64;
    }
    Ok(())
}
