//! A file as a source, read by offset in windows, and around pages that the disk cannot read. Any number of walks share it without a
//! common file position.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Source, file_beside};
use crate::disk::{DiskRef, Handle, Opening, System};
use crate::error::{Error, Result};
use crate::saturating::saturating_usize;
use crate::sync::{Mutex, Unpoisoned as _};

/// A file as a source. Bytes are read on request, so memory stays flat, and a file that shrinks is an error.
#[derive(Debug)]
pub struct FileSource {
    file: Handle,
    disk: DiskRef,
    path: PathBuf,
    len: u64,
    /// Set where it is read around what the disk cannot read.
    unreadable: Option<Arc<Unreadable>>,
    /// It was opened to read, and not by the writer that has its lock.
    is_readers: bool,
}

impl FileSource {
    /// Opens a regular file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, or if it is a folder, a pipe or a device.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_on(&DiskRef::default(), path.as_ref())
    }

    /// A source of an open `file`. Errors name it `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if the file's length cannot be read.
    pub fn new(file: File, path: impl AsRef<Path>) -> Result<Self> {
        let file = Handle::new(Arc::new(file));
        Ok(Self {
            is_readers: true,
            ..Self::of(file, &DiskRef::default(), path.as_ref())?
        })
    }

    /// Opens a regular file on a disk of the tests.
    ///
    /// # Errors
    /// As [`open_regular`].
    #[cfg(feature = "faults")]
    #[doc(hidden)]
    pub fn on(disk: &Arc<dyn crate::disk::Disk>, path: &Path) -> Result<Self> {
        Self::open_on(&disk.clone().into(), path)
    }

    /// Opens a regular file, as [`open_regular`] does.
    pub(crate) fn open_on(disk: &DiskRef, path: &Path) -> Result<Self> {
        refuse_irregular(disk, path)?;
        let file = disk.handle(path, Opening::Read);
        let file = file.map_err(|error| cannot_open(path, error))?;
        Ok(Self {
            is_readers: true,
            ..Self::of(file, disk, path)?
        })
    }

    /// As [`new`](Self::new), for a file that is being written.
    pub(crate) fn of(file: Handle, disk: &DiskRef, path: &Path) -> Result<Self> {
        let len = file
            .len()
            .map_err(|error| Error::io(Some(path), "cannot stat", error))?;
        Ok(Self {
            file,
            disk: disk.clone(),
            path: path.to_path_buf(),
            len,
            unreadable: None,
            is_readers: false,
        })
    }

    /// The first bytes alone, at most up to this offset.
    pub(crate) fn up_to(self, len: u64) -> Self {
        Self {
            len: len.min(self.len),
            ..self
        }
    }

    /// The open file.
    pub(crate) fn handle(&self) -> Handle {
        self.file.another()
    }

    /// The same file, as long as it is now.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn again(&self) -> Result<Self> {
        let again = Self::of(self.file.another(), &self.disk, &self.path)?;
        Ok(Self {
            unreadable: self.unreadable.clone(),
            is_readers: self.is_readers,
            ..again
        })
    }

    /// The same file, read around pages that the disk cannot read. They have bytes that are no record: so walks find damage there, and
    /// the records around it.
    pub(crate) fn around_unreadable(self) -> Self {
        Self {
            unreadable: Some(Arc::default()),
            ..self
        }
    }

    /// The offset of the first page that the disk could not read so far, and why.
    pub(crate) fn unreadable(&self) -> Option<(u64, String)> {
        self.unreadable.as_ref()?.first()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| {
            let len = buffer.len();
            if error.kind() == ErrorKind::UnexpectedEof {
                return self.shrunk(offset.saturating_add(len as u64));
            }
            let action = format!("cannot read {len} bytes at offset {offset}");
            Error::io(Some(&self.path), action, error)
        })
    }

    /// Makes what was written of the file survive a loss of power. It may be open for reading only.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn sync(&self) -> Result<()> {
        // Windows syncs only files that are open for writing.
        let writable = cfg!(windows).then(|| self.disk.handle(&self.path, Opening::Write));
        let synced = match writable.transpose() {
            Ok(Some(writable)) => writable.sync_all(),
            Ok(None) => self.file.sync_all(),
            Err(error) => Err(error),
        };
        synced.map_err(|error| Error::io(Some(&self.path), "cannot sync", error))
    }

    fn shrunk(&self, offset: u64) -> Error {
        let action = format!(
            "the file shrank while it was read: expected {} bytes, but it now ends before offset {offset}",
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
        let read = |offset, buffer: &mut [u8]| self.read(offset, buffer);
        match &self.unreadable {
            Some(unreadable) => unreadable.read_around(offset, buffer, read),
            None => read(offset, buffer),
        }
    }

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        file_beside(&self.disk, Some(&self.path), extension)
    }

    /// On Windows writers hold no lock that others can look at.
    fn is_written(&self) -> Result<bool> {
        if !self.is_readers || cfg!(windows) {
            return Ok(false);
        }
        let failed = |error| Error::io(Some(&self.path), "cannot look for a writer", error);
        // In a file of its own: a lock of the same one would be the reader's.
        let other = match self.disk.handle(&self.path, Opening::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            other => other.map_err(failed)?,
        };
        let node = |file: &Handle| file.node().map_err(failed);
        if node(&other)? != node(&self.file)? {
            return Ok(false);
        }
        // A file system without locks has no writers that can be noticed.
        let is_locked = matches!(other.is_locked(), Ok(true));
        Ok(is_locked || other.len().map_err(failed)? > self.len)
    }
}

/// Opens a regular file for reading. A pipe or device is refused without waiting for its other end.
///
/// # Errors
/// [`Error::Io`] if it does not exist, cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> Result<File> {
    refuse_irregular(&DiskRef::default(), path)?;
    System::read(path).map_err(|error| cannot_open(path, error))
}

fn refuse_irregular(disk: &DiskRef, path: &Path) -> Result<()> {
    let stat = disk.stat(path, true);
    let regular = stat.and_then(|stat| stat.kind.regular("copy it into a file or a buffer first"));
    regular.map_err(|error| cannot_open(path, error))
}

fn cannot_open(path: &Path, error: std::io::Error) -> Error {
    Error::io(Some(path), "cannot open", error)
}

/// What the operating system reads from a disk at a time, and so what one bad sector takes along.
const PAGE_BYTES: usize = 4096;
/// No record of an active segment begins with it: that would be a UUID of another version. And a record that has it where other
/// bytes were is not verified.
const FILL: u8 = 0xff;

/// The first page that could not be read so far: its offset, and why.
#[derive(Debug, Default)]
struct Unreadable(Mutex<Option<(u64, String)>>);

impl Unreadable {
    fn first(&self) -> Option<(u64, String)> {
        let first = self.0.lock();
        first.unpoisoned().clone()
    }

    fn note(&self, offset: u64, error: &io::Error) {
        let first = self.0.lock();
        let mut first = first.unpoisoned();
        if first.as_ref().is_none_or(|(known, _)| offset < *known) {
            *first = Some((offset, error.to_string()));
        }
    }

    /// Reads as [`Source::read_exact_at`](super::Source::read_exact_at) does. Pages that cannot be read are filled with bytes that are
    /// no record.
    fn read_around(
        &self,
        offset: u64,
        buffer: &mut [u8],
        read: impl Fn(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        match read(offset, buffer) {
            Err(Error::Io { source, .. }) if is_of_disk(&source) => {}
            done => return done,
        }
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at_mut(up_to_page(at).min(rest.len()));
            match read(at, piece) {
                Err(Error::Io { source, .. }) if is_of_disk(&source) => {
                    piece.fill(FILL);
                    self.note(at, &source);
                }
                done => done?,
            }
            at += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }
}

/// How many bytes the page at an offset has from there on.
pub(crate) fn up_to_page(offset: u64) -> usize {
    PAGE_BYTES - saturating_usize(offset % PAGE_BYTES as u64)
}

/// Whether an error says that bytes that are there cannot be read.
fn is_of_disk(error: &io::Error) -> bool {
    error.kind() != ErrorKind::UnexpectedEof
}
