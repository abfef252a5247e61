//! Repairs a file and its parity sidecar: new files take their places, or another path.

mod pair;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pair::{New, Old, Pair};

use super::paths::{refuse_same, suffixed};
use super::proof::Proofs;
use super::protect::{SUFFIX as SIDECAR_SUFFIX, default_sidecar, sidecar_of};
use super::stages::{CountingSource, Stages};
use super::verify;
use crate::disk::DiskRef;
use crate::error::{Error, Result, name};
use crate::format::{is_sidecar, of_sidecar, resolve};
use crate::output::{NewFile, commit_together};
use crate::parity::{
    self, Coverage, FileKind, Files, NAME_ANOTHER, Outcome, Refused, Report, SidecarKind,
};
use crate::setters::setters;
use crate::source::{FileSource, Source};
use crate::walk::Options;

/// The number of passes over the file: judge and write, verify by its format, read back.
const STAGES: u64 = 3;

/// The suffix of a damaged file that was replaced.
const SUFFIX: &str = ".damaged";

/// The name that a damaged file gets when a repaired one takes its place.
fn damaged_name(path: &Path) -> PathBuf {
    suffixed(path, SUFFIX)
}

/// What repairs of a file keep beside it: the damaged file, and its damaged sidecar.
pub(crate) fn kept_of(file: &Path) -> [PathBuf; 2] {
    [file.to_path_buf(), default_sidecar(file)].map(|path| damaged_name(&path))
}

/// The name of a file, if this is the name of what a repair of it keeps.
pub(crate) fn repaired_name(name: &str) -> Option<&str> {
    let damaged = name.strip_suffix(SUFFIX)?;
    damaged.strip_suffix(SIDECAR_SUFFIX).or(Some(damaged))
}

/// Options of a repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    pub(crate) sidecar: Option<PathBuf>,
    pub(crate) destination: Option<PathBuf>,
    pub(crate) force: bool,
    pub(crate) raw: bool,
}

setters!(RepairOptions {
    /// Where the sidecar is. `None` is the file's name with `.par` appended, or for a link
    /// [what it leads to](super::find_sidecar).
    sidecar: Option<PathBuf>, from;
    /// Where the repaired file goes, with its sidecar beside it; neither may be there. `None` puts both in the places of the
    /// damaged ones.
    destination: Option<PathBuf>, from;
    /// Whether to repair also a file of which no block is as it was protected, one that was modified after its sidecar,
    /// and records that their own checksums prove.
    force: bool;
    /// Whether the file has no format. Then no record is proven.
    raw: bool;
});

/// The result of a repair.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Repaired {
    /// The repaired file.
    pub path: PathBuf,
    /// Its sidecar.
    pub sidecar: PathBuf,
    /// What was found before. Ranges that are `repaired` in it are as they were protected now; `lost` and `unverified`
    /// ones are as they were found.
    pub report: Report,
    /// The report on the repaired file by its own format. `None` if it has none.
    pub verified: Option<super::Report>,
    /// How many bytes of the file changed or were added.
    pub changed: u64,
    /// Where the damaged file is now. `None` if it was not replaced.
    pub damaged: Option<PathBuf>,
    /// Where the damaged sidecar is now. `None` if it was not replaced.
    pub damaged_sidecar: Option<PathBuf>,
}

impl Repaired {
    /// Whether bytes could not be repaired, or cannot be verified any more, or are damaged by the file's own format: they
    /// were never covered, or were covered so. Under a key that is probably wrong, the format shows no damage.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        let verified = self.verified.as_ref();
        let is_left =
            verified.is_some_and(|report| !report.is_sound() && !report.summary.wrong_key());
        is_left || self.report.outcome == Outcome::Lost
    }

    /// The result as a whole. If it is sound or repaired, [`verify`] finds the file sound.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.is_lossy() {
            true => Outcome::Lost,
            false => self.report.outcome,
        }
    }
}

/// Repairs a file and its sidecar, each from the other. `progress` is called at intervals with how many bytes of the
/// file are done, over all passes together. An error that it returns ends the work.
///
/// The repaired file is written to a new one and read back. Then the damaged one gets the name `FILE.damaged`, and the new one its name,
/// permissions, owner where that may be set, and time of modification. So does the sidecar if it changes, after the file. To undo a
/// repair, rename `FILE.damaged` to `FILE`, and so the sidecar: what was appended since is in the repaired file alone. If nothing changes, nothing is written. Bytes that cannot be repaired
/// stay as they are. Other names of the file (hard links) keep the damaged one. There has to be space for a copy of the file, unless
/// the file system can share its bytes.
///
/// At every moment `FILE` or `FILE.damaged` is complete. A repair that was interrupted is run again. On a file system without hard
/// links there may be no `FILE` then: rename `FILE.damaged` to `FILE` before.
///
/// # Errors
/// - [`Error::Usage`] if the sidecar is probably that of another file, or of an earlier state of it, without
///   [`force`](RepairOptions::force); if two of the files are the same; if there is a `FILE.damaged` of an earlier repair.
/// - [`Error::Format`] if the sidecar is none.
/// - [`Error::Io`]; also if another writer has one of the files open.
/// - [`Error::Limit`], [`Error::Interrupted`].
pub fn repair(
    path: impl AsRef<Path>,
    options: &Options,
    repairing: &RepairOptions,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Repaired> {
    let path = path.as_ref();
    let disk = options.on();
    let sidecar = sidecar_of(disk, path, repairing.sidecar.as_deref());
    let new_sidecar = repairing.destination.as_deref().map(default_sidecar);
    refuse_same(
        disk,
        &[
            ("the file", Some(path)),
            ("its sidecar", Some(&sidecar)),
            ("the repaired file", repairing.destination.as_deref()),
            ("its sidecar", new_sidecar.as_deref()),
        ],
    )?;
    let to = repairing.destination.as_deref().zip(new_sidecar.as_deref());
    let job = Job {
        path,
        sidecar: &sidecar,
        target: to.map_or([path, &sidecar], <[_; 2]>::from),
        disk,
        options,
        repairing,
    };
    job.repair(&mut progress)
}

/// The parameters of all steps.
struct Job<'a> {
    path: &'a Path,
    sidecar: &'a Path,
    /// Where the new files go: the file, and its sidecar.
    target: [&'a Path; 2],
    disk: &'a DiskRef,
    options: &'a Options,
    repairing: &'a RepairOptions,
}

impl Job<'_> {
    fn repair(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Repaired> {
        let pair = Pair::open(self)?;
        let mut new = New::begin(self, &pair)?;
        let mut stages = Stages::new(pair.file.len(), STAGES, progress);
        let report = self.write(&pair, &mut new, &mut stages)?;
        if new.changed > 0 && !self.repairing.force {
            self.refuse(&pair, &new, &report)?;
        }
        let verified = self.verify(&new, &mut stages)?;
        stages.next();
        self.confirm(&new, &report, &mut stages)?;
        stages.finish()?;
        let [path, sidecar] = self.target;
        let mut repaired = Repaired {
            path: path.to_path_buf(),
            sidecar: sidecar.to_path_buf(),
            report,
            verified,
            changed: new.changed,
            damaged: None,
            damaged_sidecar: None,
        };
        let New { file, sidecar, .. } = new;
        let Some((old_file, old_sidecar)) = &pair.old else {
            let files = sidecar.into_iter().chain(file);
            commit_together(self.disk, files.collect())?;
            return Ok(repaired);
        };
        let replace = |old: &Old, new: Option<NewFile>| new.map(|new| old.replace(new)).transpose();
        // The file comes first: the sidecar can be repaired from a sound one, whatever else is damaged.
        repaired.damaged = replace(old_file, file)?;
        repaired.damaged_sidecar = replace(old_sidecar, sidecar)?;
        Ok(repaired)
    }

    fn judging(&self) -> parity::Options {
        parity::Options::default().force(self.repairing.force)
    }

    /// Judges both files, and writes what changes.
    fn write(&self, pair: &Pair, new: &mut New<'_>, stages: &mut Stages<'_>) -> Result<Report> {
        let watched = CountingSource::new(&pair.file, self.options);
        let files = Files::new(&watched, &pair.sidecar);
        let report = parity::repair(files, self.judging(), &mut |change| {
            new.add(change)?;
            stages.tell(watched.read())
        })?;
        self.check_refused(&report)?;
        new.finish()?;
        Ok(report)
    }

    /// Refuses a sidecar of an earlier state of the file.
    fn refuse(&self, pair: &Pair, new: &New<'_>, report: &Report) -> Result<()> {
        let proofs = match self.repairing.raw {
            true => None,
            false => Proofs::new(&pair.file, new.repaired()?, self.options)?,
        };
        let is_proven = match &proofs {
            Some(proofs) => proofs.refuse_proven(report)?,
            None => false,
        };
        let Some((file, sidecar)) = pair.old.as_ref().filter(|_| !is_proven) else {
            return Ok(());
        };
        let (Some(modified), Some(protected)) = (file.before.modified, sidecar.before.modified)
        else {
            return Ok(());
        };
        let coverage = Coverage::read(Files::new(&pair.file, &pair.sidecar))?;
        let is_longer = coverage.is_some_and(|coverage| pair.file.len() > coverage.covered);
        if is_longer || modified <= protected {
            return Ok(());
        }
        if let Some(proofs) = proofs
            && proofs.is_proven_once_repaired()?
        {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{}: the file has no checksums that prove it, and was modified after it was protected. Nothing was changed. If it was changed on purpose, protect it with `as_it_is`, which begins a new sidecar. If it is damaged, `force` repairs it all the same",
            name(&Some(self.path.to_path_buf()))
        )))
    }

    /// Verifies the repaired file by its own format, if it has one: what was never covered may be damaged.
    fn verify(&self, new: &New<'_>, stages: &mut Stages<'_>) -> Result<Option<super::Report>> {
        stages.next();
        if self.repairing.raw {
            return Ok(None);
        }
        let repaired = Arc::new(new.repaired()?);
        match resolve(&*repaired, self.options) {
            Err(Error::Format { .. }) => Ok(None),
            Err(error) => Err(error),
            Ok(_) => verify(repaired, self.options, |done| stages.tell(done)).map(Some),
        }
    }

    /// Reads the new files back.
    fn confirm(&self, new: &New<'_>, before: &Report, stages: &mut Stages<'_>) -> Result<()> {
        if new.file.is_none() && new.sidecar.is_none() {
            return Ok(());
        }
        let (file, sidecar) = (new.repaired()?, new.repaired_sidecar()?);
        let watched = CountingSource::new(&file, self.options);
        let files = Files::new(&watched, &sidecar);
        let after = parity::repair(files, self.judging(), &mut |_| stages.tell(watched.read()))?;
        self.check_repaired(self.target[0], before, &after)
    }

    /// The error if there is no file.
    fn gone(&self, path: &Path) -> Error {
        let damaged = damaged_name(path);
        let reason = match self.disk.is_taken(&damaged) {
            true => format!(
                "there is no such file, but {}: a repair was interrupted. Rename that to this, and repair again",
                crate::text::path(&damaged)
            ),
            false => "there is no such file".to_owned(),
        };
        let error = std::io::Error::new(ErrorKind::NotFound, reason);
        Error::io(Some(path), "cannot repair", error)
    }

    /// The error if there is no sidecar.
    fn no_sidecar(&self) -> Error {
        let file = FileSource::open_on(self.disk, self.path);
        if file.is_ok_and(|file| is_sidecar(&file).is_ok_and(|is| is)) {
            return of_sidecar(Some(self.path));
        }
        if self.disk.is_taken(&damaged_name(self.sidecar)) {
            return self.gone(self.sidecar);
        }
        let error = std::io::Error::new(
            ErrorKind::NotFound,
            "there is no such file. If the sidecar is elsewhere, name it with `sidecar`; without one, `seglake recover` writes what is sound to a new file",
        );
        let file = crate::text::path(self.path);
        let action =
            format!("expected the parity sidecar of {file}, as `seglake protect` writes it");
        Error::io(Some(self.sidecar), action, error)
    }

    /// The error for a sidecar that is refused.
    fn check_refused(&self, report: &Report) -> Result<()> {
        match report.refused {
            None => Ok(()),
            Some(Refused::NoFrame) => Err(parity::no_frame(Some(self.sidecar), NAME_ANOTHER)),
            Some(Refused::AnotherFile) => Err(Error::Usage(format!(
                "{}: no block of the file is as {} has it: this is probably the sidecar of another file. Nothing was changed. `force` repairs the file all the same",
                name(&Some(self.path.to_path_buf())),
                name(&Some(self.sidecar.to_path_buf()))
            ))),
        }
    }

    /// Checks that what was repaired reads back as that.
    fn check_repaired(&self, path: &Path, before: &Report, after: &Report) -> Result<()> {
        let lost = |report: &Report| -> u64 {
            let kinds = [FileKind::Lost, FileKind::Unverified];
            let lost = report.file.iter().filter(|span| kinds.contains(&span.kind));
            lost.map(|span| span.end - span.start).sum()
        };
        let is_left = after
            .file
            .iter()
            .any(|span| span.kind == FileKind::Repaired)
            || after
                .sidecar
                .iter()
                .any(|span| span.kind == SidecarKind::Repaired);
        if !is_left && lost(after) == lost(before) && after.refused.is_none() {
            return Ok(());
        }
        let action = "the file or its sidecar does not read back as it was repaired, so nothing was replaced: check the disk, then repair again";
        let error = ErrorKind::InvalidData.into();
        Err(Error::io(Some(path), action, error))
    }
}
