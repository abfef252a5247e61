//! A file that appears under its name when it is complete, and not at all otherwise.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::{folder, sync_folder};
use crate::error::{Error, Result};
use crate::source::FileSource;

/// A file being written beside its final place, under a name of its own, readable by its owner alone. It is created
/// exclusively, so no link is followed. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct NewFile {
    temporary: NamedTempFile,
    path: PathBuf,
    overwrite: bool,
}

impl NewFile {
    /// Begins a file that will be `path`.
    ///
    /// # Errors
    /// [`Error::Io`] where `path` exists and is not to be overwritten, or its folder cannot be written to.
    pub(crate) fn create(path: &Path, overwrite: bool) -> Result<Self> {
        let failed = |error| Error::io(Some(path), "cannot open for writing", error);
        if !overwrite && std::fs::symlink_metadata(path).is_ok() {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let name = path
            .file_name()
            .ok_or_else(|| failed(ErrorKind::IsADirectory.into()))?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let temporary = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            .tempfile_in(folder(path))
            .map_err(failed)?;
        Ok(Self {
            temporary,
            path: path.to_path_buf(),
            overwrite,
        })
    }

    /// The file, to be written to.
    pub(crate) fn file(&mut self) -> &mut File {
        self.temporary.as_file_mut()
    }

    /// What has been written, to be read before the file gets its name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn source(&self) -> Result<FileSource> {
        let file = self.temporary.as_file().try_clone();
        let file =
            file.map_err(|error| Error::io(Some(&self.path), "cannot read it back", error))?;
        FileSource::new(file, &self.path)
    }

    /// Syncs the file and gives it its name. Where that fails the file is removed, and what was there before is as it was.
    ///
    /// # Errors
    /// [`Error::Io`], also where a file of that name has appeared meanwhile and is not to be overwritten.
    pub(crate) fn commit(self) -> Result<()> {
        let Self {
            temporary,
            path,
            overwrite,
        } = self;
        let failed = |error| Error::io(Some(&path), "cannot put the new file in its place", error);
        temporary.as_file().sync_all().map_err(failed)?;
        let persisted = if overwrite {
            temporary.persist(&path)
        } else {
            temporary.persist_noclobber(&path)
        };
        persisted.map_err(|error| failed(error.error))?;
        sync_folder(&path).map_err(failed)
    }
}
