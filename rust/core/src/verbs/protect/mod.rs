//! Makes or extends the parity sidecar beside a file, and opens it. A sidecar that is there and cannot be read is an error: without it
//! the file would be read as if it had none.

mod sidecar;
mod verified;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Report;
use super::paths::{led_to, refuse_same, suffixed};
use super::stages::{CountingSource, Stages};
use crate::bug::OrBug;
use crate::disk::DiskRef;
use crate::error::{Error, Result};
use crate::output::LockedFile;
use crate::parity::{self, Coverage, Extended, Files, Parameters, Set};
use crate::setters::setters;
use crate::source::{FileSource, Source, Unchanged};
use crate::walk::Options;
use crate::words::words;
pub(super) use sidecar::Assembly;
use verified::VerifiedFile;

/// The suffix of a sidecar after the name of its file.
pub(super) const SUFFIX: &str = ".par";

/// How a file is read without its sidecar, whatever command met it.
const WITHOUT: &str = "read the file without it (`sidecar` none)";

/// The number of passes over the file: verify, encode.
const STAGES: u64 = 2;

/// The path of a file's parity sidecar, if none is named: the file's with `.par` appended.
#[must_use]
pub(super) fn default_sidecar(path: &Path) -> PathBuf {
    suffixed(path, SUFFIX)
}

/// The path of the sidecar that a file of this name is read by, if none is named. Of a link it is the one beside the
/// link if that is there, and else the one beside the file that the link leads to: what is covered lies there.
#[must_use]
pub fn find_sidecar(path: &Path, options: &Options) -> PathBuf {
    sidecar_of(options.on(), path, None)
}

/// The path of a file's sidecar: the one that is named, or else the one to [find](find_sidecar).
pub(super) fn sidecar_of(disk: &DiskRef, path: &Path, named: Option<&Path>) -> PathBuf {
    let beside = default_sidecar(path);
    match named {
        Some(named) => named.to_path_buf(),
        None if disk.is_taken(&beside) => beside,
        None => default_sidecar(&led_to(disk, path)),
    }
}

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
pub(super) fn to_read(disk: &DiskRef, sidecar: &Path) -> Result<Option<FileSource>> {
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
pub(super) fn to_write(disk: &DiskRef, sidecar: &Path) -> Result<Option<LockedFile>> {
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

/// Options of protecting a file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProtectOptions {
    pub(crate) sidecar: Option<PathBuf>,
    parameters: Option<Parameters>,
    as_it_is: bool,
    lazy: bool,
    raw: bool,
}

setters!(ProtectOptions {
    /// Where the sidecar is. `None` is the file's name with `.par` appended, or for a link [what it leads to](find_sidecar).
    sidecar: Option<PathBuf>, from;
    /// How the file is divided. `None` is what an existing sidecar has, and [`Parameters::DEFAULT`] for a new one.
    parameters: Option<Parameters>, from;
    /// Whether to begin a new sidecar for the file as it is, damaged or not. An existing sidecar is replaced.
    as_it_is: bool;
    /// Whether to leave the last band as it is until it has grown by 1/16 of what is covered of it.
    lazy: bool;
    /// Whether the file has no format: nothing is verified before it is covered, and all of it is covered.
    raw: bool;
});

words! {
    /// What became of a sidecar.
    SidecarChange {
        /// There was none, or it was replaced because the file was to be protected as it is.
        Created = "created",
        /// Frames were appended, or a torn tail was cut off.
        Extended = "extended",
        /// It was written anew, because it had more superseded bytes than others.
        Rewritten = "rewritten",
        /// It covers the file already.
        Unchanged = "unchanged",
    }
}

/// A file that is protected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Protected {
    /// The sidecar.
    pub sidecar: PathBuf,
    /// What became of it.
    pub change: SidecarChange,
    /// Whether it was damaged, and repaired before that.
    pub healed: bool,
    /// How the file is divided.
    pub parameters: Parameters,
    /// The bytes of the file.
    pub size: u64,
    /// The bytes of the file that are covered, from its beginning.
    pub covered: u64,
    /// The bytes of the sidecar.
    pub sidecar_bytes: u64,
    /// Where what was verified by its own format begins: 0 if that is all of it. What was covered before is not verified
    /// again where that is not needed.
    pub verified_from: u64,
    /// The report on the file by its own format, from there on. `None` if it was not verified by one.
    pub report: Option<Report>,
}

/// Makes the parity sidecar of a file, or extends it if the file has grown. `progress` is called at intervals with how
/// many bytes of the file are done, over both passes together. An error that it returns ends the work.
///
/// First the file is verified by its own format, and a damaged one is refused. What is covered are the bytes that were verified: if they
/// are others when they are read again, that is an error. The file is never written to. It is covered
/// whole, except for unused space or a torn tail at its end, if its format is one that is appended to. What is covered
/// must not change afterwards: append to the file, then protect it again.
///
/// Protecting again costs what was appended. Only that is verified by the format, from the last record before it on, and
/// of what is covered the last band alone is compared with its hashes, because it is encoded anew. Damage in bands before
/// it stays as detectable as it was, and is not reported: [`verify`](crate::verbs::verify) does that. A file is verified
/// whole if its format has no checksums (but not if nothing was appended), or if no sound record ends where it is covered to.
///
/// A new sidecar appears complete and synced. On Unix it may be read and written by those who may the file, and by no others. Frames are appended so that at every moment,
/// also after a loss of power, the sidecar has complete frames and then perhaps a torn tail, which counts for nothing.
/// A damaged sidecar is repaired first if the file is proven.
///
/// # Errors
/// - [`Error::Damage`] if the file is damaged, by its format or by what an existing sidecar covers.
/// - [`Error::Format`] if the file's format is unknown, or if the sidecar is none.
/// - [`Error::Usage`] if an existing sidecar has other parameters, or if sidecar and file are the same.
/// - [`Error::Io`]; also if the file changes meanwhile, or another writer has the sidecar open.
/// - [`Error::Limit`], [`Error::Interrupted`].
pub fn protect(
    path: impl AsRef<Path>,
    options: &Options,
    protection: &ProtectOptions,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Protected> {
    let path = path.as_ref();
    let disk = options.on();
    let sidecar = sidecar_of(disk, path, protection.sidecar.as_deref());
    refuse_same(
        disk,
        &[("the file", Some(path)), ("its sidecar", Some(&sidecar))],
    )?;
    let old = to_write(disk, &sidecar)?;
    let file = FileSource::open_on(disk, path)?;
    // What a sidecar says of bytes must not outlive them.
    file.sync()?;
    // What is encoded is what was verified.
    let file: Arc<dyn Source> = Arc::new(Unchanged::new(file));
    let mut stages = Stages::new(file.len(), STAGES, &mut progress);
    let coverage = match &old {
        Some(old) if !protection.as_it_is => Coverage::read(Files::new(&*file, &old.source()?))?,
        _ => None,
    };
    let tell = |done| stages.tell(done);
    let verified = VerifiedFile::verify(&file, options, protection, coverage.as_ref(), tell)?;
    stages.next();
    let mut job = Job {
        options,
        path,
        file: CountingSource::new(&*file, options),
        sidecar: &sidecar,
        protection,
        stages: &mut stages,
    };
    let mut protected = match old {
        Some(old) if !protection.as_it_is && old.len()? > 0 => job.extend(old, verified.end)?,
        old => job.create(old.as_ref(), verified.end)?,
    };
    (protected.verified_from, protected.report) = (verified.start, verified.report);
    stages.finish()?;
    Ok(protected)
}

/// The parameters of all steps.
struct Job<'a, 'b> {
    options: &'a Options,
    path: &'a Path,
    file: CountingSource<'a>,
    sidecar: &'a Path,
    protection: &'a ProtectOptions,
    stages: &'a mut Stages<'b>,
}

impl Job<'_, '_> {
    /// Writes a new sidecar, in place of `old` if there is one.
    fn create(&mut self, old: Option<&LockedFile>, end: u64) -> Result<Protected> {
        let parameters = self.protection.parameters.unwrap_or(Parameters::DEFAULT);
        let path = old.map_or(self.sidecar, LockedFile::path);
        let mut assembly = Assembly::anew(self.options, [self.path, path], old)?;
        let (file, stages) = (&self.file, &mut *self.stages);
        parity::protect(file, end, Set::random(parameters), &mut |bytes| {
            assembly.add(parity::Change::New(bytes))?;
            stages.tell(file.read())
        })?;
        let change = assembly.finish()?;
        self.protected(change, false, parameters, end)
    }

    /// Extends a sidecar that is not empty.
    fn extend(&mut self, mut old: LockedFile, end: u64) -> Result<Protected> {
        let mut healed = false;
        loop {
            let source = old.source()?;
            let files = Files::new(&self.file, &source).with_file_bytes(end);
            let Some(coverage) = Coverage::read(files)? else {
                return Err(self.no_frame());
            };
            let parameters = coverage.set.parameters;
            self.check_parameters(parameters)?;
            let is_near = self.protection.lazy && coverage.is_near(end);
            let end = match is_near {
                true => coverage.covered.min(end),
                false => end,
            };
            let files = files.with_file_bytes(end);
            let mut assembly = Assembly::of(self.options, self.path, &old)?;
            let (file, stages) = (&self.file, &mut *self.stages);
            let extended = parity::extend(files, end, &mut |change| {
                assembly.add(change)?;
                stages.tell(file.read())
            })?;
            match extended {
                Extended::Done => {
                    let change = assembly.finish()?;
                    return self.protected(change, healed, parameters, end);
                }
                Extended::NoFrame => return Err(self.no_frame()),
                Extended::RepairFirst if healed => {
                    return None.or_bug("a sidecar that is not to be repaired again");
                }
                Extended::RepairFirst => {
                    drop(assembly);
                    self.heal(&old, files)?;
                    healed = true;
                    // It may have been written anew.
                    drop(old);
                    let again = to_write(self.options.on(), self.sidecar)?;
                    old = again.ok_or_else(|| {
                        let error = std::io::ErrorKind::NotFound.into();
                        Error::io(Some(self.sidecar), "the sidecar was removed", error)
                    })?;
                }
            }
        }
    }

    /// Repairs a sidecar whose file is proven.
    fn heal(&self, old: &LockedFile, files: Files<'_>) -> Result<()> {
        let mut assembly = Assembly::anew(self.options, [self.path, old.path()], Some(old))?;
        parity::repair(files, parity::Options::default(), &mut |change| {
            assembly.add(change)
        })?;
        assembly.finish().map(drop)
    }

    fn check_parameters(&self, found: Parameters) -> Result<()> {
        let expected = self.protection.parameters;
        if expected.is_none_or(|expected| expected == found) {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{}: the sidecar has the profile {found}, which cannot be changed: leave the profile out, or begin a new sidecar with `as_it_is`",
            crate::text::path(self.sidecar)
        )))
    }

    fn no_frame(&self) -> Error {
        let next = "it is none, or nothing of it is left: begin a new one with `as_it_is`, or name another with `sidecar`";
        parity::no_frame(Some(self.sidecar), next)
    }

    fn protected(
        &self,
        change: SidecarChange,
        healed: bool,
        parameters: Parameters,
        covered: u64,
    ) -> Result<Protected> {
        let stat = self.options.on().stat(self.sidecar, true);
        let stat = stat.map_err(|error| Error::io(Some(self.sidecar), "cannot stat", error))?;
        Ok(Protected {
            sidecar: self.sidecar.to_path_buf(),
            change,
            healed,
            parameters,
            size: self.file.len(),
            covered,
            sidecar_bytes: stat.len,
            verified_from: 0,
            report: None,
        })
    }
}
