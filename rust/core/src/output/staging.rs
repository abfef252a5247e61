//! Files of writers that write in place, which get their final places when all are complete.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{NOT_PLACED, NOT_SYNCED, folder, refuse_irregular};
use crate::bug::OrBug;
use crate::disk::{DiskRef, Owner};
use crate::error::{Error, Result};

/// A folder beside a file that will be written. Dropping it removes it with its content, except in a fork of
/// the process that began it.
#[derive(Debug)]
pub(crate) struct Staging {
    inside: PathBuf,
    disk: DiskRef,
    path: PathBuf,
    overwrite: bool,
    owner: Owner,
}

impl Staging {
    /// Begins the file that will be `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if `path` exists and `overwrite` is not set, or if its folder cannot be written to.
    pub(crate) fn create(disk: &DiskRef, path: &Path, overwrite: bool) -> Result<Self> {
        let failed = |error| Error::io(Some(path), "cannot open for writing", error);
        if !overwrite && disk.is_taken(path) {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        refuse_irregular(disk, path)?;
        let prefix = ".seglake.".as_ref();
        let made = disk.temporary(folder(path), prefix, ".tmp", |disk, path| {
            disk.create_folder(path)
        });
        let ((), inside) = made.map_err(failed)?;
        Ok(Self {
            inside,
            disk: disk.clone(),
            path: path.to_path_buf(),
            overwrite,
            owner: Owner::here(),
        })
    }

    /// Marks it as inherited by a fork of the process that began it.
    #[cfg(test)]
    pub(crate) const fn disown(&mut self) {
        self.owner = Owner::elsewhere();
    }

    /// The temporary path of the file: the same name, in that folder. If the path has no name (`..`), it is the
    /// folder itself; writing there fails, as it would at the path.
    pub(crate) fn inside(&self) -> PathBuf {
        self.inside.join(self.path.file_name().unwrap_or_default())
    }

    /// The same error, with the final path instead of that in this folder, which users do not know.
    pub(crate) fn outside(&self, error: Error) -> Error {
        match error {
            Error::Io {
                path: Some(path),
                action,
                source,
            } if path.starts_with(&self.inside) => {
                let place = self.place(&path);
                // There, "in its place" refers to the final path, not to this folder.
                let is_there = action == NOT_SYNCED;
                let action = if is_there {
                    NOT_PLACED.to_owned()
                } else {
                    action
                };
                Error::io(Some(&place), action, source)
            }
            error => error,
        }
    }

    /// Moves all files to their final places, the main one last. When it exists, the others do, also after a loss of
    /// power.
    ///
    /// # Errors
    /// [`Error::Io`]; also if one of them exists and `overwrite` is not set. Then no new file remains; with
    /// `overwrite`, files beside the main one may already be replaced. If only folders could not be synced, all files
    /// stay in their places, complete.
    pub(crate) fn commit(self) -> Result<()> {
        let failed = |action: &str, error| Error::io(Some(&self.path), action, error);
        let main = self.inside();
        let files = self.disk.list(&self.inside);
        let mut files = files.map_err(|error| failed(NOT_PLACED, error))?;
        files.sort_by_key(|file| *file == main);
        let mut placed: Vec<PathBuf> = Vec::new();
        for file in files {
            let place = self.place(&file);
            let ready = match file == main && !placed.is_empty() {
                true => self.disk.sync_folder(folder(&self.path)),
                false => Ok(()),
            };
            if let Err(error) = ready.and_then(|()| self.put(&file, &place)) {
                for place in placed.iter().filter(|_| !self.overwrite) {
                    let _ = self.disk.unlink(place); // the first error is reported
                }
                return Err(failed(NOT_PLACED, error));
            }
            placed.push(place);
        }
        let synced = self.disk.sync_folder(folder(&self.path));
        synced.map_err(|error| failed(NOT_SYNCED, error))
    }

    /// The final path of a file in this folder.
    fn place(&self, file: &Path) -> PathBuf {
        let name = file.file_name();
        folder(&self.path).join(name.or_bug_default("a name for each file in a folder"))
    }

    fn put(&self, file: &Path, place: &Path) -> std::io::Result<()> {
        if self.overwrite {
            return self.disk.rename(file, place);
        }
        // A link fails if the file exists; a rename would replace it. The other name is removed with the folder.
        match self.disk.hard_link(file, place) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            Ok(()) => Ok(()),
            Err(_) if self.disk.is_taken(place) => Err(ErrorKind::AlreadyExists.into()),
            Err(_) => self.disk.rename(file, place),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.owner.is_here() {
            let _ = self.disk.remove_folder(&self.inside); // a leftover does no harm
        }
    }
}
