//! A file that appears under its name only when it is complete.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    LockedFile, NOT_PLACED, NOT_SYNCED, folder, is_without_links, prefix, refuse_irregular,
};
use crate::disk::{Disk, DiskFile, DiskRef, Handle, Opening, Stat};
use crate::error::{Error, Result};
use crate::source::FileSource;

/// A file that is written beside its final place, under a temporary name. It is created exclusively, so no link is
/// followed. Dropping it removes it, except in a fork of the process that began it.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: Handle,
    disk: DiskRef,
    /// Its temporary name, until it gets the final one.
    temporary: Option<PathBuf>,
    path: PathBuf,
    overwrite: bool,
}

impl NewFile {
    /// Begins a file that will be `path`. It has the permissions of other new files of the process, as files that are appended to
    /// have.
    ///
    /// # Errors
    /// [`Error::Io`] if `path` exists and `overwrite` is not set, or if its folder cannot be written to.
    pub(crate) fn create(disk: &DiskRef, path: &Path, overwrite: bool) -> Result<Self> {
        Self::begin(disk, path, overwrite, |disk, path| {
            disk.open(path, Opening::New)
        })
    }

    /// Begins a file that holds bytes of another one, `like`: on Unix nobody may read or write it who may not that one.
    ///
    /// # Errors
    /// As [`create`](Self::create); also if the other one does not exist.
    pub(crate) fn create_like(
        disk: &DiskRef,
        path: &Path,
        overwrite: bool,
        like: &Path,
    ) -> Result<Self> {
        Self::begin(disk, path, overwrite, |disk, path| {
            disk.create_like(path, like)
        })
    }

    fn begin(
        disk: &DiskRef,
        path: &Path,
        overwrite: bool,
        make: impl Fn(&dyn Disk, &Path) -> std::io::Result<Arc<dyn DiskFile>>,
    ) -> Result<Self> {
        let failed = |error| Error::io(Some(path), "cannot open for writing", error);
        if !overwrite && disk.is_taken(path) {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        refuse_irregular(disk, path)?;
        if path.file_name().is_none() {
            return Err(failed(ErrorKind::IsADirectory.into()));
        }
        let made = disk.temporary(folder(path), &prefix(path), ".tmp", make);
        let (file, temporary) = made.map_err(failed)?;
        Ok(Self {
            file: Handle::new(file),
            disk: disk.clone(),
            temporary: Some(temporary),
            path: path.to_path_buf(),
            overwrite,
        })
    }

    /// The file, to write to.
    pub(crate) const fn file(&mut self) -> &mut Handle {
        &mut self.file
    }

    /// The written bytes, to read before the file gets its name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn source(&self) -> Result<FileSource> {
        FileSource::of(self.file.another(), &self.disk, &self.path)
    }

    /// The final path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the file and gives it its name. On failure the new file is removed, and an existing one is unchanged. If
    /// only the folder could not be synced, the new file stays in its place, complete.
    ///
    /// # Errors
    /// [`Error::Io`]; also if a file of that name has appeared meanwhile and `overwrite` is not set.
    pub(crate) fn commit(self) -> Result<()> {
        self.sync()?;
        let (disk, path) = (self.disk.clone(), self.path.clone());
        self.place()?;
        let synced = disk.sync_folder(folder(&path));
        synced.map_err(|error| Error::io(Some(&path), NOT_SYNCED, error))
    }

    /// Syncs the file and gives it the name of `old`, which gets the name `aside`: also if it has that one already. At every moment,
    /// also after a loss of power, one of the two names is that of a complete file, and `old` has one of them. On failure it has its
    /// own, and the new file is removed. If only the folder could not be synced at last, both stay in their places.
    ///
    /// # Errors
    /// [`Error::Io`]; also if `aside` is the name of another file, or if `old` changed since it was as `before`, or lost its name.
    pub(crate) fn replace(mut self, old: &LockedFile, before: &Stat, aside: &Path) -> Result<()> {
        self.sync()?;
        let (disk, path) = (self.disk.clone(), old.path());
        let failed = |error| Error::io(Some(path), NOT_PLACED, error);
        old.refuse_changed(before)?;
        let is_linked = match disk.hard_link(path, aside) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists && old.is_at(aside)? => true,
            Err(error) if is_without_links(&error) => {
                disk.rename_new(path, aside).map_err(failed)?;
                false
            }
            Err(error) => return Err(failed(error)),
        };
        // Without links the name is free for a moment, and may be that of another writer's file.
        self.overwrite = is_linked;
        // The old one is safe before the new one has its name.
        let mut ready = disk.sync_folder(folder(path)).map_err(failed);
        if is_linked {
            ready = ready.and_then(|()| old.refuse_changed(before));
        }
        if let Err(error) = ready.and_then(|()| self.place()) {
            put_back(&disk, old, aside, is_linked);
            return Err(error);
        }
        let synced = disk.sync_folder(folder(path));
        synced.map_err(|error| Error::io(Some(path), NOT_SYNCED, error))
    }

    /// Syncs the file to the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn sync(&self) -> Result<()> {
        let synced = self.file.sync_all();
        synced.map_err(|error| Error::io(Some(&self.path), NOT_PLACED, error))
    }

    /// Gives the file its name. The name survives a loss of power only after its folder is synced.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(super) fn place(mut self) -> Result<()> {
        if let Some(temporary) = &self.temporary {
            let placed = if self.overwrite {
                self.disk.rename(temporary, &self.path)
            } else {
                self.disk.rename_new(temporary, &self.path)
            };
            placed.map_err(|error| Error::io(Some(&self.path), NOT_PLACED, error))?;
        }
        self.temporary = None;
        Ok(())
    }
}

/// Errors are ignored: the first one is reported. The second name goes only while the old file has its first one: a rename may have been
/// done although it failed.
fn put_back(disk: &DiskRef, old: &LockedFile, aside: &Path, is_linked: bool) {
    let _ = match is_linked {
        true if old.has_its_name().is_ok_and(|has| has) => disk.unlink(aside),
        true => Ok(()),
        false => disk.rename_new(aside, old.path()),
    };
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take()
            && self.file.is_own()
        {
            let _ = self.disk.unlink(&temporary); // a leftover does no harm
        }
    }
}
