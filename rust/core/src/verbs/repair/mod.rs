//! Repairs a file and its parity sidecar, in place or to another path.

mod apart;
mod in_place;
mod manifest;
mod pair;
mod plan;
mod proof;
mod undo;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use undo::{Undone, undo_repair};
pub(crate) use undo::{kept_of, repaired_name};

use plan::Plan;
use proof::Patched;
use serde::{Deserialize, Serialize};

use super::paths::refuse_same;
use super::protect::{default_sidecar, sidecar_of};
use super::stages::Stages;
use super::verify;
use super::watched::Watched;
use crate::disk::DiskRef;
use crate::engine::Options;
use crate::error::{Error, Result, name};
use crate::format::{is_sidecar, of_sidecar, resolve};
use crate::os_paths as paths;
use crate::parity::{self, Coverage, FileKind, Files, Outcome, Refused, Report, SidecarKind};
use crate::setters::setters;
use crate::source::{FileSource, Source};

/// The number of passes over the file: judge, verify by its format, read back.
const STAGES: u64 = 3;

/// How much is compared and written at a time. A range of a plan is not longer.
const PIECE_BYTES: usize = 1 << 20;

/// Options of a repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Repairing {
    /// Where the sidecar is. `None` is the file's name with `.par` appended, or for a link
    /// [what it leads to](super::find_sidecar).
    pub sidecar: Option<PathBuf>,
    /// Where the repaired file goes, with its sidecar beside it. `None` repairs both where they are.
    pub to: Option<PathBuf>,
    /// Whether to replace existing files at `to`. Otherwise they are an error.
    pub overwrite: bool,
    /// Where the replaced bytes go. `None` is the file's name with `.undo` appended, and a number if that is taken. For
    /// a link they are beside the file that it leads to.
    /// The manifest is beside it, with `.manifest.jsonl` appended to its name.
    pub undo: Option<PathBuf>,
    /// Whether to repair also a file of which no block is as it was protected, one that was modified after its sidecar,
    /// and records that their own checksums prove.
    pub force: bool,
    /// Whether the file has no format. Then no record is proven.
    pub raw: bool,
    /// Where the damage is, if that is known: from the first byte to the offset after the last one. Only the bands that have bytes of
    /// it are judged and repaired, and no more of the rest is read than tells which records have these bytes. If it begins after the end
    /// of a file that was cut off, what is missing before it is judged and repaired, too. `None` is all of the file, and so is a repair
    /// that was interrupted.
    pub range: Option<(u64, u64)>,
}

setters!(Repairing {
    sidecar: Option<PathBuf>, from;
    to: Option<PathBuf>, from;
    overwrite: bool;
    undo: Option<PathBuf>, from;
    force: bool;
    raw: bool;
    range: Option<(u64, u64)>, from;
});

/// The result of a repair.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Repaired {
    /// The repaired file.
    #[serde(with = "paths")]
    pub path: PathBuf,
    /// Its sidecar.
    #[serde(with = "paths")]
    pub sidecar: PathBuf,
    /// What was found before. Ranges that are `repaired` in it are as they were protected now; `lost` and `unverified`
    /// ones are as they were found.
    pub report: Report,
    /// The report on the repaired file by its own format. `None` if it was not verified by one: it has none, or only a
    /// [range](Repairing::range) was repaired.
    pub verified: Option<super::Report>,
    /// How many bytes of the file changed or were added.
    pub changed: u64,
    /// The replaced bytes, if any changed in place.
    #[serde(with = "paths::optional")]
    pub undo: Option<PathBuf>,
    /// The manifest that says where they belong.
    #[serde(with = "paths::optional")]
    pub manifest: Option<PathBuf>,
    /// Whether an earlier repair was interrupted, and this one completed it.
    pub continued: bool,
}

impl Repaired {
    /// Whether bytes could not be repaired, or cannot be verified any more, or are damaged by the file's own format: they
    /// were never covered, or were covered so. Under a key that is probably wrong, the format shows no damage.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        let verified = self.verified.as_ref();
        let is_left = verified.is_some_and(|report| !report.is_sound() && !report.wrong_key());
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
/// file are done, over both passes together. An error that it returns ends the work.
///
/// In place, the bytes that change are first kept in another file, synced, from which [`undo_repair`] restores both
/// files. Then the file is written, then the sidecar, and both are verified. Each byte is the old one or the right one
/// at every moment, so a repair that is interrupted does no harm: repair again, and it is completed. The file keeps the
/// time at which it was modified. Bytes that cannot be repaired stay as they are.
///
/// # Errors
/// - [`Error::Usage`] if the sidecar is probably that of another file, or of an earlier state of it, without
///   [`force`](Repairing::force); if two of the files are the same; if the [`range`](Repairing::range) has no byte of the file.
/// - [`Error::Format`] if the sidecar is none.
/// - [`Error::Io`]; also if another writer has one of the files open.
/// - [`Error::Limit`], [`Error::Interrupted`].
pub fn repair(
    path: &Path,
    options: &Options,
    repairing: &Repairing,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Repaired> {
    let sidecar = sidecar_of(options.on(), path, repairing.sidecar.as_deref());
    let new_sidecar = repairing.to.as_deref().map(default_sidecar);
    check_range(repairing.range)?;
    refuse_same(
        options.on(),
        &[
            ("the file", Some(path)),
            ("its sidecar", Some(&sidecar)),
            ("the repaired file", repairing.to.as_deref()),
            ("its sidecar", new_sidecar.as_deref()),
            ("the replaced bytes", repairing.undo.as_deref()),
        ],
    )?;
    let job = Job::new(path, &sidecar, options, repairing);
    match (&repairing.to, &new_sidecar) {
        (Some(to), Some(new_sidecar)) => job.repair_apart(to, new_sidecar, &mut progress),
        _ => job.repair_in_place(&mut progress),
    }
}

/// The range to judge of a file. What is restored after the end of one that was cut off would follow a hole of zeros, which pass for data
/// without the sidecar: so what is missing before it is judged as well, and restored or reported.
fn without_hole(
    (start, end): (u64, u64),
    file: &dyn Source,
    coverage: Option<&Coverage>,
) -> (u64, u64) {
    let is_covered = coverage.is_some_and(|coverage| start < coverage.covered);
    let start = if is_covered {
        start.min(file.len())
    } else {
        start
    };
    (start, end)
}

fn check_range(range: Option<(u64, u64)>) -> Result<()> {
    match range {
        Some((start, end)) if start >= end => Err(Error::Usage(format!(
            "expected a range that ends after it begins, found {start} to {end}"
        ))),
        _ => Ok(()),
    }
}

/// The parameters of all steps.
struct Job<'a> {
    path: &'a Path,
    sidecar: &'a Path,
    disk: &'a DiskRef,
    options: &'a Options,
    repairing: &'a Repairing,
}

impl<'a> Job<'a> {
    fn new(
        path: &'a Path,
        sidecar: &'a Path,
        options: &'a Options,
        repairing: &'a Repairing,
    ) -> Self {
        Self {
            path,
            sidecar,
            disk: options.on(),
            options,
            repairing,
        }
    }

    fn stages<'b>(
        &self,
        file: &dyn Source,
        progress: &'b mut dyn FnMut(u64) -> Result<()>,
    ) -> Stages<'b> {
        Stages::new(file.len(), STAGES, progress)
    }

    fn judging(&self, range: Option<(u64, u64)>) -> parity::Options {
        let judging = parity::Options::default().force(self.repairing.force);
        judging.range(range)
    }

    /// Judges both files, and plans what to change.
    fn judge(
        &self,
        plan: &mut Plan,
        file: &FileSource,
        watched: &Watched<'_>,
        sidecar: &FileSource,
        range: Option<(u64, u64)>,
        stages: &mut Stages<'_>,
    ) -> Result<Report> {
        let files = Files::new(watched, sidecar);
        let report = parity::repair(files, self.judging(range), &mut |change| {
            plan.add(file, change)?;
            stages.tell(watched.read())
        })?;
        self.check_refused(&report)?;
        if let Some((start, _)) = range
            && report.file.is_empty()
        {
            return Err(Error::Usage(format!(
                "{}: expected a range that begins before the end of the file ({} bytes) or of what was covered, found one that begins at {start}",
                name(&Some(self.path.to_path_buf())),
                file.len()
            )));
        }
        plan.sort();
        Ok(report)
    }

    /// Verifies the file as it will be by its own format, if it has one: what was never covered may be damaged.
    fn verify(
        &self,
        file: &FileSource,
        plan: &Arc<Plan>,
        range: Option<(u64, u64)>,
        stages: &mut Stages<'_>,
    ) -> Result<Option<super::Report>> {
        stages.next();
        if self.repairing.raw || range.is_some() {
            return Ok(None);
        }
        let repaired = Arc::new(Patched {
            file: file.again()?.up_to(file.len()),
            plan: plan.clone(),
        });
        match resolve(&*repaired, self.options) {
            Err(Error::Format { .. }) => Ok(None),
            Err(error) => Err(error),
            Ok(_) => verify(repaired, self.options, |done| stages.tell(done)).map(Some),
        }
    }

    /// The error if there is no sidecar.
    fn no_sidecar(&self) -> Error {
        let file = FileSource::open(self.disk, self.path);
        if file.is_ok_and(|file| is_sidecar(&file).is_ok_and(|is| is)) {
            return of_sidecar(Some(self.path));
        }
        let error = std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "there is no such file. If the sidecar is elsewhere, name it with `sidecar`; without one, `seglake recover` writes what is sound to a new file",
        );
        let file = crate::text::path(self.path);
        let action =
            format!("expected the parity sidecar of {file}, as `seglake protect` writes it");
        Error::io(Some(self.sidecar), action, error)
    }

    /// The error for a sidecar that is refused.
    fn check_refused(&self, report: &Report) -> Result<()> {
        let sidecar = Some(self.sidecar.to_path_buf());
        match report.refused {
            None => Ok(()),
            Some(Refused::NoFrame) => Err(Error::Format {
                path: sidecar,
                message: "expected a frame in the sidecar, found none".to_owned(),
                next: Some("it is none, or nothing of it is left: name another with `sidecar`"),
            }),
            Some(Refused::AnotherFile) => Err(Error::Usage(format!(
                "{}: no block of the file is as {} has it: this is probably the sidecar of another file. Nothing was changed. `force` repairs the file all the same",
                name(&Some(self.path.to_path_buf())),
                name(&sidecar)
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
        let action = "the file or its sidecar does not read back as it was repaired: check the disk, then repair again";
        let error = std::io::ErrorKind::InvalidData.into();
        Err(Error::io(Some(path), action, error))
    }
}
