//! Parity sidecars of a log's segments. docs/formats/log.md, "Sidecars".

use std::path::Path;

use super::name::{SegmentId, SegmentKind};
use crate::checksum::Key;
use crate::disk::DiskRef;
use crate::engine::{Interrupt, Options};
use crate::error::Result;
use crate::parity::Parameters;
use crate::verbs::{self, Protection};

/// Makes the parity sidecar of a sealed segment. Nothing is done if there is none, as where old ones were removed meanwhile.
///
/// # Errors
/// [`Error::Damage`]: what is damaged is not protected. [`Error::Io`], [`Error::Interrupted`].
pub(super) fn protect(
    disk: &DiskRef,
    folder: &Path,
    id: SegmentId,
    key: Key,
    parameters: Parameters,
    interrupt: Interrupt,
) -> Result<()> {
    let path = folder.join(id.file_name(SegmentKind::Sealed));
    let options = Options::default()
        .on_disk(disk)
        .keys(vec![key])
        .interrupt(Some(interrupt));
    let how = Protection::default().parameters(parameters);
    protect_if_there(disk, &path, &options, &how)
}

/// Protects a file, unless it is no longer there.
fn protect_if_there(
    disk: &DiskRef,
    path: &Path,
    options: &Options,
    how: &Protection,
) -> Result<()> {
    match verbs::protect(path, options, how, |_| Ok(())) {
        Err(error) if error.is_not_found() && !disk.is_taken(path) => Ok(()),
        protected => protected.map(drop),
    }
}

/// Extends the parity sidecar of the segment that is being written up to this offset, which is on the disk: what is after it may be taken
/// back, and is not read. Without `is_last` that may wait until there is more. Nothing is done if the segment was sealed meanwhile.
///
/// # Errors
/// [`Error::Damage`]: what is damaged is not protected. [`Error::Io`], [`Error::Interrupted`].
pub(super) fn protect_active(
    disk: &DiskRef,
    folder: &Path,
    (id, end): (SegmentId, u64),
    options: &Options,
    parameters: Parameters,
    is_last: bool,
) -> Result<()> {
    let path = folder.join(id.file_name(SegmentKind::Active));
    let how = Protection::default()
        .parameters(parameters)
        .lazy(!is_last)
        .synced_up_to(end);
    let options = options.clone().format(SegmentKind::Active.format());
    protect_if_there(disk, &path, &options, &how)
}
