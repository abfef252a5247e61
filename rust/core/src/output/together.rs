//! Files that belong together: all of them appear, or none.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{NOT_PLACED, NewFile, folder, prefix};
use crate::disk::DiskRef;
use crate::error::{Error, Result};

/// Syncs all files and gives them their names, one after the other. The last one gets its name when those of the others last, so
/// that it is never there alone, also after a loss of power. If anything fails, all files are taken back, and what they replaced
/// is there again.
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
        Err(_) => placed.iter().rev().for_each(|file| file.take_back(disk)),
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
        let before = keep_aside(disk, &path)?;
        if let Err(error) = file.place() {
            discard(disk, before.as_deref());
            return Err(error);
        }
        placed.push(Placed { path, before });
    }
    sync_folders(disk, placed.iter().skip(others))
}

/// Syncs each folder that these files are in, once.
fn sync_folders<'a>(disk: &DiskRef, files: impl Iterator<Item = &'a Placed>) -> Result<()> {
    let folders: BTreeMap<_, _> = files.map(|file| (folder(&file.path), &file.path)).collect();
    folders.into_iter().try_for_each(|(folder, path)| {
        let synced = disk.sync_folder(folder);
        synced.map_err(|error| failed(path, error))
    })
}

/// A file that has its name, and what was there before, if anything was, under a name of its own.
struct Placed {
    path: PathBuf,
    before: Option<PathBuf>,
}

impl Placed {
    /// There is nobody to tell of an error: the one that led here goes first.
    fn take_back(&self, disk: &DiskRef) {
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

/// Gives what is at `path`, if anything is, a second name, so that it can be put back. On a file system without links it gets
/// none, and there replacing it cannot be undone.
fn keep_aside(disk: &DiskRef, path: &Path) -> Result<Option<PathBuf>> {
    if !disk.is_taken(path) {
        return Ok(None);
    }
    let linked = disk.temporary(folder(path), &prefix(path), ".old", |disk, name| {
        disk.hard_link(path, name)
    });
    match linked {
        // Its name is kept until it is settled which of the two stays.
        Ok(((), linked)) => Ok(Some(linked)),
        Err(error) if is_without_links(&error) => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

fn is_without_links(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unsupported | ErrorKind::PermissionDenied
    )
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::io(Some(path), NOT_PLACED, error)
}
