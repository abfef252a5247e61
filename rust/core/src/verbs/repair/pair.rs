//! A file and its sidecar, to change.

use std::io::ErrorKind;
use std::path::Path;

use super::Job;
use crate::error::{Error, Result};
use crate::output::InPlace;

/// The two files, open for writing.
pub(super) struct Pair {
    pub(super) file: InPlace,
    pub(super) sidecar: InPlace,
}

impl Pair {
    /// Opens both.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn open(job: &Job<'_>) -> Result<Self> {
        let open = |path: &Path| {
            let gone = || Error::io(Some(path), "cannot open", ErrorKind::NotFound.into());
            InPlace::open(job.disk, path)?.ok_or_else(gone)
        };
        Ok(Self {
            sidecar: open(job.sidecar)?,
            file: open(job.path)?,
        })
    }
}
