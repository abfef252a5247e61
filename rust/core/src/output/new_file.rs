//! Files that appear under their names only when they are complete: one, several together, and those of a writer that writes in place.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{LockedFile, NOT_PLACED, folder, prefix, refuse_irregular};
use crate::bug::OrBug;
use crate::disk::{DiskRef, Handle, Opening, Owner, Stat};
use crate::error::{Error, Result};
use crate::source::FileSource;

/// The error if a new file has its name, but the folder could not be synced.
const NOT_SYNCED: &str = "the new file is complete and in its place, but a loss of power may undo that: its folder cannot be synced";

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
        Self::begin(disk, path, overwrite, None)
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
        Self::begin(disk, path, overwrite, Some(like))
    }

    fn begin(disk: &DiskRef, path: &Path, overwrite: bool, like: Option<&Path>) -> Result<Self> {
        let failed = |error| Error::io(Some(path), "cannot open for writing", error);
        if !overwrite && disk.is_taken(path) {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        refuse_irregular(disk, path)?;
        if path.file_name().is_none() {
            return Err(failed(ErrorKind::IsADirectory.into()));
        }
        let made = disk.temporary(
            folder(path),
            &prefix(path),
            ".tmp",
            |disk, path| match like {
                None => disk.open(path, Opening::New),
                Some(like) => disk.create_like(path, like),
            },
        );
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
    fn place(mut self) -> Result<()> {
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

/// Whether a link failed since the file system has none.
fn is_without_links(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unsupported | ErrorKind::PermissionDenied
    )
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

/// Syncs all files and gives them their names, one after the other. The last one gets its name after those of the
/// others are synced. So it never exists alone, also after a loss of power. If anything fails, all new files are
/// removed, and the replaced ones are restored.
///
/// # Errors
/// As [`NewFile::commit`].
pub(crate) fn commit_together(disk: &DiskRef, files: Vec<NewFile>) -> Result<()> {
    files.iter().try_for_each(NewFile::sync)?;
    let mut placed = Vec::with_capacity(files.len());
    let result = place_all(disk, files, &mut placed);
    match result {
        Ok(()) => placed
            .iter()
            .for_each(|file| discard(disk, file.before.as_deref())),
        Err(_) => placed.iter().rev().for_each(|file| file.undo(disk)),
    }
    result
}

fn place_all(disk: &DiskRef, files: Vec<NewFile>, placed: &mut Vec<Placed>) -> Result<()> {
    let others = files.len().saturating_sub(1);
    for file in files {
        if placed.len() == others {
            sync_folders(disk, placed.iter())?;
        }
        let path = file.path().to_path_buf();
        let before = link_aside(disk, &path)?;
        if let Err(error) = file.place() {
            discard(disk, before.as_deref());
            return Err(error);
        }
        placed.push(Placed { path, before });
    }
    sync_folders(disk, placed.iter().skip(others))
}

/// Syncs each folder of these files once.
fn sync_folders<'a>(disk: &DiskRef, files: impl Iterator<Item = &'a Placed>) -> Result<()> {
    let folders: BTreeMap<_, _> = files.map(|file| (folder(&file.path), &file.path)).collect();
    folders.into_iter().try_for_each(|(folder, path)| {
        let synced = disk.sync_folder(folder);
        synced.map_err(|error| failed(path, error))
    })
}

/// A file that got its name. The file that it replaced, if any, has a second name.
struct Placed {
    path: PathBuf,
    before: Option<PathBuf>,
}

impl Placed {
    /// Errors are ignored: the first one is reported.
    fn undo(&self, disk: &DiskRef) {
        let _ = match &self.before {
            Some(before) => disk.rename(before, &self.path),
            None => disk.unlink(&self.path),
        };
    }
}

fn discard(disk: &DiskRef, before: Option<&Path>) {
    if let Some(before) = before {
        let _ = disk.unlink(before);
    }
}

/// Gives the file at `path`, if there is one, a second name, so that it can be restored. On a file system without links
/// there is none, and replacing cannot be undone.
fn link_aside(disk: &DiskRef, path: &Path) -> Result<Option<PathBuf>> {
    if !disk.is_taken(path) {
        return Ok(None);
    }
    let linked = disk.temporary(folder(path), &prefix(path), ".old", |disk, name| {
        disk.hard_link(path, name)
    });
    match linked {
        // The second name stays until the outcome is known.
        Ok(((), linked)) => Ok(Some(linked)),
        Err(error) if is_without_links(&error) => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::io(Some(path), NOT_PLACED, error)
}

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
        match self.path.file_name() {
            Some(name) => self.inside.join(name),
            None => self.inside.clone(),
        }
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
