//! A file and its sidecar, to change.

use std::io::ErrorKind;
use std::path::Path;

use super::Job;
use crate::error::{Error, Result};
use crate::output::InPlace;
use crate::verbs::protect::to_write;

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
        let open = |path: &Path| InPlace::open(job.disk, path);
        let gone = || {
            let error = std::io::Error::new(ErrorKind::NotFound, "there is no such file");
            Error::io(Some(job.path), "cannot repair", error)
        };
        Ok(Self {
            sidecar: match to_write(job.disk, job.sidecar)? {
                Some(sidecar) => sidecar,
                None if open(job.path)?.is_none() => return Err(gone()),
                None => return Err(job.no_sidecar()),
            },
            file: open(job.path)?.ok_or_else(gone)?,
        })
    }
}
