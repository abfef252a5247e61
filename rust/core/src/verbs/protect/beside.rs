//! Opens the sidecar of a file. What is there and cannot be read is an error: without it the file would be read as if it had none.

use std::io::ErrorKind;
use std::path::Path;

use super::find_sidecar;
use crate::disk::DiskRef;
use crate::error::{Error, Result};
use crate::output::LockedFile;
use crate::source::FileSource;
use crate::walk::Options;

/// How a file is read without its sidecar, whatever command met it.
const WITHOUT: &str = "read the file without it (`sidecar` none)";

/// The sidecar that a file of this name [is read by](find_sidecar). `None` if there is none.
///
/// # Errors
/// [`Error::Io`] if it cannot be opened, or is not a file.
pub fn open_sidecar(path: &Path, options: &Options) -> Result<Option<FileSource>> {
    to_read(options.on(), &find_sidecar(path, options))
}

/// A sidecar, to read. `None` if there is none.
///
/// # Errors
/// As [`open_sidecar`].
pub(in crate::verbs) fn to_read(disk: &DiskRef, sidecar: &Path) -> Result<Option<FileSource>> {
    match FileSource::open_on(disk, sidecar) {
        Ok(source) => Ok(Some(source)),
        // A link that leads nowhere is none either. Nor is what cannot have the name, or is in a folder that nobody may look into:
        // then the file cannot be opened, and that says why.
        Err(error) if error.is_not_found() || !disk.is_taken(sidecar) => Ok(None),
        Err(error) => Err(unusable(sidecar, error)),
    }
}

/// A sidecar, to change. `None` if there is none.
///
/// # Errors
/// As [`open_sidecar`]; also if it may not be written, or if another writer has it open.
pub(in crate::verbs) fn to_write(disk: &DiskRef, sidecar: &Path) -> Result<Option<LockedFile>> {
    LockedFile::open(disk, sidecar).map_err(|error| match to_read(disk, sidecar) {
        Err(reason) => reason,
        Ok(_) => error,
    })
}

/// The error for what is where the sidecar would be.
fn unusable(sidecar: &Path, error: Error) -> Error {
    let Error::Io { source, .. } = &error else {
        return error;
    };
    let kind = source.kind();
    let reason = match kind {
        ErrorKind::PermissionDenied => "permission denied. Run this as its owner".to_owned(),
        ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
            let found = match kind {
                ErrorKind::IsADirectory => "a folder",
                _ => "something that is not a regular file",
            };
            format!("expected a file, found {found}. Move it")
        }
        _ => return error,
    };
    let reason = std::io::Error::new(kind, format!("{reason}, or {WITHOUT}"));
    Error::io(Some(sidecar), "cannot open the parity sidecar", reason)
}
