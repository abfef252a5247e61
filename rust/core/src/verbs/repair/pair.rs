//! The file and its sidecar: opened, locked if they are to be replaced, and replaced.

use std::path::{Path, PathBuf};

use super::{Job, damaged_name};
use crate::disk::{DiskRef, Stat};
use crate::error::{Error, Result};
use crate::output::{LockedFile, NewFile};
use crate::source::FileSource;
use crate::text;
use crate::verbs::paths::led_to;
use crate::verbs::protect::{to_read, to_write};

/// The two files.
pub(super) struct Pair {
    pub(super) file: FileSource,
    pub(super) sidecar: FileSource,
    /// If they are to be replaced.
    pub(super) old: Option<(Old, Old)>,
}

impl Pair {
    /// Opens both, and locks them if they are to be replaced.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn open(job: &Job<'_>) -> Result<Self> {
        if job.repairing.destination.is_some() {
            let file = FileSource::open_on(job.disk, job.path)?;
            let sidecar = to_read(job.disk, job.sidecar)?.ok_or_else(|| job.no_sidecar())?;
            return Ok(Self {
                file,
                sidecar,
                old: None,
            });
        }
        let sidecar = to_write(job.disk, job.sidecar)?;
        let file = LockedFile::open(job.disk, job.path)?.ok_or_else(|| job.gone(job.path))?;
        let sidecar = sidecar.ok_or_else(|| job.no_sidecar())?;
        // What is appended from here on is seen as a change.
        let file = Old::new(job.disk, job.path, file)?;
        let sidecar = Old::new(job.disk, job.sidecar, sidecar)?;
        Ok(Self {
            file: file.file.source()?,
            sidecar: sidecar.file.source()?,
            old: Some((file, sidecar)),
        })
    }
}

/// A file that is to be replaced. It is locked against other writers until it is.
pub(super) struct Old {
    pub(super) file: LockedFile,
    pub(super) before: Stat,
    /// The name that it gets.
    damaged: PathBuf,
}

impl Old {
    fn new(disk: &DiskRef, path: &Path, file: LockedFile) -> Result<Self> {
        Ok(Self {
            before: file.stat()?,
            damaged: damaged_name(&led_to(disk, path)),
            file,
        })
    }

    /// Refuses to go on if the name that it gets is that of another file. It may have it already: the repair that gave it was
    /// interrupted.
    ///
    /// # Errors
    /// [`Error::Usage`]; [`Error::Io`].
    pub(super) fn refuse_taken(&self, disk: &DiskRef) -> Result<()> {
        if !disk.is_taken(&self.damaged) || self.file.is_at(&self.damaged)? {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{}: the damaged file would get this name, and there is a file already, probably of an earlier repair. Nothing was changed. Move it elsewhere, or remove it, and repair again",
            text::path(&self.damaged)
        )))
    }

    /// Puts a new file in its place. Returns its own name then.
    ///
    /// # Errors
    /// [`Error::Io`]; also if it changed since it was opened.
    pub(super) fn replace(&self, new: NewFile) -> Result<PathBuf> {
        new.replace(&self.file, &self.before, &self.damaged)?;
        Ok(self.damaged.clone())
    }
}
