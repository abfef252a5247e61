//! A file whose bytes are changed where they are.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::NOT_PLACED;
use crate::disk::{DiskRef, Handle, Opening, Stat};
use crate::error::{Error, Result};
use crate::source::FileSource;

/// A file that is changed in place. It is locked against other writers until it is
/// dropped.
#[derive(Debug)]
pub(crate) struct LockedFile {
    file: Handle,
    disk: DiskRef,
    path: PathBuf,
}

impl LockedFile {
    /// Opens a file. If it is replaced before it is locked, the new one is opened. `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`]; also if another writer has it open.
    pub(crate) fn open(disk: &DiskRef, path: &Path) -> Result<Option<Self>> {
        let failed = |error| Error::io(Some(path), "cannot open for writing", error);
        let is_gone = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
        // Also refuses what is not a regular file.
        match FileSource::open_on(disk, path) {
            Ok(_) => {}
            Err(Error::Io { source, .. }) if is_gone(&source) => return Ok(None),
            Err(error) => return Err(error),
        }
        let opened = disk.locked(path, true, Handle::lock, || {
            disk.handle(path, Opening::Write)
        });
        let file = match opened {
            Err(error) if is_gone(&error) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        // So that a link stays one, also if the file is written anew.
        let path = disk.canonical(path).map_err(failed)?;
        Ok(Some(Self {
            file,
            disk: disk.clone(),
            path,
        }))
    }

    /// The path, with links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The content as it is now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn source(&self) -> Result<FileSource> {
        FileSource::of(self.file.another(), &self.disk, &self.path)
    }

    /// The length in bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn len(&self) -> Result<u64> {
        self.file
            .len()
            .map_err(|error| self.failed("cannot stat", error))
    }

    /// Its properties now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn stat(&self) -> Result<Stat> {
        let stat = self.file.stat();
        stat.map_err(|error| self.failed("cannot stat", error))
    }

    /// Whether its path still leads to it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn has_its_name(&self) -> Result<bool> {
        let named = self.disk.names(&self.path, false, self.stat()?.node);
        named.map_err(|error| self.failed("cannot stat", error))
    }

    /// Refuses a file that changed, by its length and times, or lost its name since it was so.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn refuse_changed(&self, before: &Stat) -> Result<()> {
        let now = self.stat()?;
        let failed = |error| Err(Error::io(Some(&self.path), NOT_PLACED, error));
        if (now.len, now.modified) != (before.len, before.modified) {
            let error = "it changed meanwhile, and stays as it is: try again when nobody writes it";
            return failed(std::io::Error::new(ErrorKind::InvalidData, error));
        }
        if !self.has_its_name()? {
            let error = "another process removed or replaced the old one meanwhile";
            return failed(std::io::Error::other(error));
        }
        Ok(())
    }

    /// Whether a path is a name of it, too. Where the system tells no identity, none is.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn is_at(&self, path: &Path) -> Result<bool> {
        let node = self.stat()?.node;
        let named = self.disk.names(path, false, node);
        let named = named.map_err(|error| Error::io(Some(path), "cannot stat", error))?;
        Ok(named && node.is_some())
    }

    /// The open file.
    pub(crate) fn handle(&self) -> Handle {
        self.file.another()
    }

    /// Writes bytes at an offset. The file grows if they end after it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|error| {
            let action = format!("cannot write {} bytes at offset {offset}", bytes.len());
            self.failed(&action, error)
        })
    }

    /// Cuts it off at this length, or fills it with zeros up to it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn set_len(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|error| self.failed(&format!("cannot set the length to {len} bytes"), error))
    }

    /// Makes its bytes and its length survive a loss of power.
    ///
    /// # Errors
    /// [`Error::Io`]. The state of the disk is unknown then.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file
            .sync_all()
            .map_err(|error| self.failed("cannot sync, so the state of the disk is unknown", error))
    }

    fn failed(&self, action: &str, error: std::io::Error) -> Error {
        Error::io(Some(&self.path), action, error)
    }
}
