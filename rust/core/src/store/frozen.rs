//! Segments that are kept as they are, and files of a log's folder that appear or vanish for good.

use std::io::ErrorKind;
use std::path::Path;

use super::name::SegmentId;
use crate::disk::{DiskRef, Handle, Opening};
use crate::error::{Error, Result};
use crate::output::NewFile;
use crate::saturating::saturating_usize;

/// More than any description of a frozen segment has.
const MOST_BYTES: usize = 1 << 20;

/// What the file beside a frozen segment says.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Frozen {
    /// Why it is frozen.
    pub(super) reason: String,
    /// The offset up to which it was on the disk, in bytes; `None` means all of it. Damage before that is an error, damage
    /// after it can only be of records that nobody was told of.
    pub(super) synced: Option<u64>,
}

/// Writes down why a segment is kept as it is. Then writing can go on in a new one.
pub(super) fn freeze(
    disk: &DiskRef,
    folder: &Path,
    id: SegmentId,
    reason: &str,
    synced: Option<u64>,
) -> Result<()> {
    let said = Frozen {
        reason: reason.to_owned(),
        synced,
    };
    let text = serde_json::to_vec(&said).map_err(|error| {
        Error::io(
            Some(folder),
            "cannot describe a frozen segment",
            error.into(),
        )
    })?;
    write_new(disk, &folder.join(id.frozen_name()), |out| {
        out.write_all_at(&text, 0)
    })
}

/// Why a segment is kept as it is that the disk cannot read.
pub(super) fn unreadable_page((offset, error): (u64, String)) -> String {
    format!("the disk cannot read the page at offset {offset}: {error}")
}

/// Writes a new file, which is on the disk with its name when this returns.
pub(super) fn write_new(
    disk: &DiskRef,
    path: &Path,
    write: impl FnOnce(&mut Handle) -> std::io::Result<()>,
) -> Result<()> {
    let mut new = NewFile::create(disk, path, true)?;
    write(new.file()).map_err(|error| Error::io(Some(path), "cannot write", error))?;
    new.commit()
}

impl Frozen {
    /// What is said of a segment, if anything can be read of it.
    pub(super) fn read(disk: &DiskRef, folder: &Path, id: SegmentId) -> Option<Self> {
        let path = folder.join(id.frozen_name());
        let file = disk.handle(&path, Opening::ReadOwn).ok()?;
        let mut bytes = vec![0; saturating_usize(file.len().ok()?).min(MOST_BYTES)];
        file.read_exact_at(&mut bytes, 0).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// Removes a file, if it is there, and makes that survive a loss of power before anything else is removed.
pub(super) fn remove_synced(disk: &DiskRef, folder: &Path, path: &Path) -> Result<()> {
    let removed = match disk.unlink(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    let removed = removed.and_then(|()| disk.sync_folder(folder));
    removed.map_err(|error| Error::io(Some(path), "cannot remove", error))
}
