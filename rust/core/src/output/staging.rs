//! Files that are made by writers which write in place, and put into their places when all are complete.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{folder, sync_folder};
use crate::error::{Error, Result};

/// A private folder beside a file that is to be. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub(crate) struct Staging {
    inside: TempDir,
    path: PathBuf,
    overwrite: bool,
}

impl Staging {
    /// Begins what will be `path`.
    ///
    /// # Errors
    /// [`Error::Io`] where `path` exists and is not to be overwritten, or its folder cannot be written to.
    pub(crate) fn create(path: &Path, overwrite: bool) -> Result<Self> {
        let failed = |error| Error::io(Some(path), "cannot open for writing", error);
        if !overwrite && fs::symlink_metadata(path).is_ok() {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let inside = tempfile::Builder::new()
            .prefix(".seglake.")
            .suffix(".tmp")
            .tempdir_in(folder(path))
            .map_err(failed)?;
        Ok(Self {
            inside,
            path: path.to_path_buf(),
            overwrite,
        })
    }

    /// Where to write the file until then: of the same name, in the private folder.
    pub(crate) fn inside(&self) -> PathBuf {
        self.inside
            .path()
            .join(self.path.file_name().unwrap_or_default())
    }

    /// Moves all files to where they belong, the one that was begun last: once it is there, the others are.
    ///
    /// # Errors
    /// [`Error::Io`], also where one of them exists and is not to be overwritten. Nothing is left behind then but, at worst,
    /// files that go with the one that was begun.
    pub(crate) fn commit(self) -> Result<()> {
        let failed = |error| {
            Error::io(
                Some(&self.path),
                "cannot put the new file in its place",
                error,
            )
        };
        let main = self.inside();
        let mut files: Vec<PathBuf> = fs::read_dir(self.inside.path())
            .and_then(|entries| {
                entries
                    .map(|entry| entry.map(|entry| entry.path()))
                    .collect()
            })
            .map_err(failed)?;
        files.sort_by_key(|file| *file == main);
        for file in files {
            let place = folder(&self.path).join(file.file_name().unwrap_or_default());
            self.put(&file, &place).map_err(failed)?;
        }
        sync_folder(&self.path).map_err(failed)
    }

    fn put(&self, file: &Path, place: &Path) -> std::io::Result<()> {
        if self.overwrite {
            return fs::rename(file, place);
        }
        // A link fails where there is a file already, which a rename would replace.
        match fs::hard_link(file, place) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            Ok(()) => fs::remove_file(file),
            Err(_) if fs::symlink_metadata(place).is_ok() => Err(ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(file, place),
        }
    }
}
