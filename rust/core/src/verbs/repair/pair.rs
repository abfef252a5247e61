//! The file and its sidecar: the old ones, opened, locked if they are to be replaced, and replaced; and the new ones, which are begun
//! once something changes, as copies with what is repaired written over them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Job, damaged_name};
use crate::disk::{DiskRef, Stat};
use crate::engine::each_piece;
use crate::error::{Error, Result};
use crate::output::{LockedFile, NewFile};
use crate::parity::Change;
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source as _};
use crate::text;
use crate::verbs::paths::led_to;
use crate::verbs::protect::{Assembly, to_read, to_write};

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
    fn refuse_taken(&self, disk: &DiskRef) -> Result<()> {
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

/// How much the file system is asked to copy at a time.
const COPIED_BYTES: usize = 64 << 20;

pub(super) struct New<'a> {
    job: &'a Job<'a>,
    pair: &'a Pair,
    pub(super) file: Option<NewFile>,
    pub(super) sidecar: Option<NewFile>,
    /// What the sidecar is put together with.
    assembly: Assembly<'a>,
    /// How many bytes of the file changed or were added.
    pub(super) changed: u64,
}

impl<'a> New<'a> {
    /// Begins the files that go to another path.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn begin(job: &'a Job<'a>, pair: &'a Pair) -> Result<Self> {
        let old = Some(pair.sidecar.again()?.up_to(pair.sidecar.len()));
        let assembly = match &pair.old {
            Some((_, sidecar)) => {
                let path = sidecar.file.path();
                Assembly::changed(job.options, [path; 2], old, true)
            }
            None => {
                let paths = [job.path, job.target[1]];
                Assembly::changed(job.options, paths, old, false).begun()?
            }
        };
        let mut new = Self {
            job,
            pair,
            file: None,
            sidecar: None,
            assembly,
            changed: 0,
        };
        if pair.old.is_none() {
            new.begin_file()?;
        }
        Ok(new)
    }

    /// Makes a change.
    ///
    /// # Errors
    /// [`Error::Usage`] if the old file cannot be kept; [`Error::Io`]; [`Error::Interrupted`].
    pub(super) fn add(&mut self, change: Change<'_>) -> Result<()> {
        match change {
            Change::File { offset, bytes } => self.write_to_file(offset, bytes),
            change => self.assembly.add(change),
        }
    }

    /// Ends both.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(super) fn finish(&mut self) -> Result<()> {
        self.sidecar = self.assembly.complete()?;
        if let (Some(_), Some((_, old))) = (&self.sidecar, &self.pair.old) {
            old.refuse_taken(self.job.disk)?;
        }
        let (Some(file), Some((old, _))) = (&mut self.file, &self.pair.old) else {
            return Ok(());
        };
        let action = "cannot give it the permissions and the time of the old file";
        let set = file.file().set_like(&old.file.handle());
        set.map_err(|error| Error::io(Some(self.job.path), action, error))
    }

    /// The repaired file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn repaired(&self) -> Result<FileSource> {
        of_either(self.file.as_ref(), &self.pair.file)
    }

    /// Its sidecar.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn repaired_sidecar(&self) -> Result<FileSource> {
        of_either(self.sidecar.as_ref(), &self.pair.sidecar)
    }

    fn create(&self, target: &Path, old: Option<&Old>) -> Result<NewFile> {
        let job = self.job;
        let Some(old) = old else {
            return NewFile::create_like(job.disk, target, false, job.path);
        };
        old.refuse_taken(job.disk)?;
        NewFile::create_like(job.disk, old.file.path(), true, old.file.path())
    }

    /// Begins the new file as a copy of the old one.
    fn begin_file(&mut self) -> Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let old = self.pair.old.as_ref().map(|(file, _)| file);
        let (mut new, old) = (self.create(self.job.target[0], old)?, &self.pair.file);
        let (from, to, mut at) = (old.handle(), new.file().another(), 0);
        let failed = |error| unwritten(&new, error);
        while at < old.len() {
            self.job.options.poll()?;
            let len = saturating_usize(old.len() - at).min(COPIED_BYTES);
            match to.copy_from(&from, at, len).map_err(failed)? {
                0 => break,
                copied => at += copied as u64,
            }
        }
        each_piece(old, self.job.options, at..old.len(), |bytes| {
            to.write_all_at(bytes, at).map_err(failed)?;
            at += bytes.len() as u64;
            Ok(())
        })?;
        self.file = Some(new);
        Ok(())
    }

    fn write_to_file(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let there = self.pair.file.len().saturating_sub(offset);
        let mut old = vec![0; saturating_usize(there).min(bytes.len())];
        self.pair.file.read_exact_at(offset, &mut old)?;
        let differs = old.iter().zip(bytes).filter(|(old, new)| old != new);
        self.changed += (differs.count() + bytes.len() - old.len()) as u64;
        self.begin_file()?;
        let Some(new) = &mut self.file else {
            return Ok(());
        };
        let written = new.file().write_all_at(bytes, offset);
        written.map_err(|error| unwritten(new, error))
    }
}

fn of_either(new: Option<&NewFile>, old: &FileSource) -> Result<FileSource> {
    match new {
        Some(new) => new.source(),
        None => Ok(old.again()?.up_to(old.len())),
    }
}

/// What was not done, and what to do next.
fn unwritten(new: &NewFile, error: std::io::Error) -> Error {
    let action = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "cannot write the repaired file, which needs as much space as the damaged one: free some, or name a destination on another disk. Nothing was changed"
        }
        _ => "cannot write the repaired file",
    };
    Error::io(Some(new.path()), action, error)
}
