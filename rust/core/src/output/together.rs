//! A group of files of which all appear, or none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{NOT_PLACED, NewFile, folder, is_without_links, prefix};
use crate::disk::DiskRef;
use crate::error::{Error, Result};

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
