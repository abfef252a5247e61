//! Parity sidecars of a log's segments. docs/formats/log.md, "Sidecars".

use std::path::Path;

use super::name::{SegmentId, SegmentKind};
use crate::checksum::Key;
use crate::disk::DiskRef;
use crate::error::Result;
use crate::parity::Parameters;
use crate::verbs::{self, Protection};
use crate::walk::{Interrupt, Options};

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
    match verbs::protect(&path, &options, &how, |_| Ok(())) {
        Err(error) if error.is_not_found() && !disk.is_taken(&path) => Ok(()),
        protected => protected.map(drop),
    }
}
