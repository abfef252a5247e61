//! Writes the sound part of a damaged file to a new one, and the rest to a quarantine: every byte is kept, and none is
//! made up.

mod manifest;
mod sorting;
mod undo;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diagnosis::Reason;
use super::paths::{refuse_same, suffixed};
use super::stages::Stages;
use super::{DiagnoseOptions, Report, diagnose, verify};
use crate::bug::OrBug;
use crate::disk::DiskRef;
use crate::engine::{Format, IfExists, Salvage, each_piece};
use crate::error::{Error, Result, name};
use crate::format::resolve;
use crate::ledger::Kind;
use crate::output::{NewFile, commit_together};
use crate::setters::setters;
use crate::source::{FileSource, Source, Window};
use crate::text;
use crate::walk::{Eof, Options};
use manifest::{Header, How, Id, Manifest, write_line};
use sorting::{Sorted, Sorting, unwritten};
pub use undo::undo_recover;
use undo::{Parts, hash};

/// The number of passes over the file: verify, sort, verify the copy, compare with what is restored.
const STAGES: u64 = 4;

/// The suffix of a quarantine after the name of the recovered file.
const QUARANTINE: &str = ".quarantine";
/// The suffix of a manifest after the name of its quarantine.
const MANIFEST: &str = ".manifest.jsonl";

/// The default path of a recovered file's quarantine.
fn default_quarantine(recovered: &Path) -> PathBuf {
    suffixed(recovered, QUARANTINE)
}

/// The path of a quarantine's manifest.
fn manifest_of(quarantine: &Path) -> PathBuf {
    suffixed(quarantine, MANIFEST)
}

/// Options of a recovery.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecoverOptions {
    pub(crate) quarantine: Option<PathBuf>,
    if_exists: IfExists,
    #[doc(hidden)] // public for the Python extension and tests
    pub force: bool,
    #[doc(hidden)] // public for the Python extension and tests
    pub renumber: bool,
}

setters!(RecoverOptions {
    /// Where the bytes that are not in the new file go. `None` is the new file's name with `.quarantine` appended. A
    /// quarantine is written only if it has bytes. The manifest is beside it, with `.manifest.jsonl` appended to its
    /// name.
    quarantine: Option<PathBuf>, from;
    /// Whether existing files are an error or replaced. They cannot be appended to.
    if_exists: IfExists;
    /// Whether to recover also a file in which no record was verified.
    force: bool;
    /// Whether to renumber the messages of an oplog if one before them is lost, and rewrite references to them. Records
    /// of other formats have no numbers that depend on earlier ones: this option changes nothing for them.
    renumber: bool;
});

/// The result of a recovery.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// The report on the damaged file.
    pub source: Report,
    /// The report on the new one. It has as many records, and no damage that was not there before.
    pub output: Report,
    /// How many bytes of the damaged file are in the new one.
    pub carried: u64,
    /// How many bytes are in the quarantine.
    pub quarantined: u64,
    /// The quarantine, if there is one.
    pub quarantine: Option<PathBuf>,
    /// The manifest with the place of each byte, if there is a quarantine.
    pub manifest: Option<PathBuf>,
    /// The index of the new file, if it has one.
    pub index: Option<PathBuf>,
}

impl Recovered {
    /// Whether anything in the file was damaged. The damaged bytes are lost, except an index, which is made anew.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        !self.source.is_sound()
    }
}

/// Writes the sound records of a file to a new one of the same format, with their checksums. All other bytes go to a
/// quarantine with a manifest, from which [`undo_recover`] restores the damaged file. `progress` is called at intervals
/// with how many bytes of the source are done, over all passes together. An error that it returns ends the recovery.
///
/// Before any file appears under its name, the new file is verified and the damaged one restored as a test. Then all of
/// them appear, synced. A sound file is copied unchanged.
///
/// # Errors
/// - [`Error::Usage`] if no record was verified, without [`force`](RecoverOptions::force).
/// - [`Error::Usage`] if messages would have to be renumbered, without [`renumber`](RecoverOptions::renumber), or cannot be.
/// - [`Error::Usage`] if two of the files are the same.
/// - [`Error::Io`]; also if one of the new files exists and is not to be replaced.
/// - [`Error::Limit`], [`Error::Format`], [`Error::Interrupted`].
pub fn recover(
    source: Arc<dyn Source>,
    options: &Options,
    destination: impl AsRef<Path>,
    recovery: &RecoverOptions,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Recovered> {
    let destination = destination.as_ref();
    let format = resolve(&*source, options)?;
    let options = options.for_ledger().format(format).eof(Eof::Final);
    let places = Places::new(&*source, format, &options, destination, recovery)?;
    let mut files = Files::create(options.on(), &places, recovery.if_exists.replaces()?)?;
    let mut stages = Stages::new(source.len(), STAGES, &mut progress);
    let report = verify(source.clone(), &options, |done| stages.tell(done))?;
    if !recovery.force {
        refuse_hopeless(&source, &options, &report)?;
    }
    let job = Job {
        source,
        format,
        options: &options,
        recovery,
        places: &places,
    };
    let sorted = job.sort(&report, &mut files, &mut stages)?;
    let recovered: Arc<dyn Source> = Arc::new(files.recovered.source()?);
    stages.next();
    let output = verify(recovered.clone(), &options, |done| stages.tell(done))?;
    job.compare(&report, &output)?;
    let is_same = job.describe(&*recovered, &sorted, &mut files, &mut stages)?;
    if let Some(index) = &mut files.index {
        write_index(format, recovered.clone(), &options, index)?;
    }
    stages.finish()?;
    drop(recovered);
    let has_quarantine = recovery.quarantine.is_some() || !is_same;
    commit_together(options.on(), files.in_order(has_quarantine))?;
    let named = |path: &Path| has_quarantine.then(|| path.to_path_buf());
    Ok(Recovered {
        source: report,
        output,
        carried: sorted.carried,
        quarantined: sorted.quarantined,
        quarantine: named(&places.quarantine),
        manifest: named(&places.manifest),
        index: places.index,
    })
}

/// The files to write.
#[derive(Clone, Debug)]
struct Places {
    recovered: PathBuf,
    quarantine: PathBuf,
    manifest: PathBuf,
    /// For formats with an index beside the file.
    index: Option<PathBuf>,
}

impl Places {
    /// Settles all paths.
    ///
    /// # Errors
    /// [`Error::Usage`] if two of them, or one of them and the source or its index, are the same file under any name.
    fn new(
        source: &dyn Source,
        format: &Format,
        options: &Options,
        recovered: &Path,
        recovery: &RecoverOptions,
    ) -> Result<Self> {
        let quarantine = match &recovery.quarantine {
            Some(quarantine) => quarantine.clone(),
            None => default_quarantine(recovered),
        };
        let has_index = match format.index {
            Some(index_file) => (index_file.is_there)(source, options)?,
            None => false,
        };
        let beside = |path: &Path| {
            format
                .index
                .and_then(|index_file| (index_file.beside)(path))
        };
        let index = match beside(recovered) {
            Some(index) => Some(index).filter(|_| has_index),
            None if has_index => {
                return Err(Error::Usage(format!(
                    "{} has the name of its own index: give the new file another extension",
                    text::path(recovered)
                )));
            }
            None => None,
        };
        let places = Self {
            recovered: recovered.to_path_buf(),
            manifest: manifest_of(&quarantine),
            quarantine,
            index,
        };
        let source_index = source.path().and_then(beside);
        refuse_same(
            options.on(),
            &[
                ("the file that is read", source.path()),
                (
                    "the index of the file that is read",
                    source_index.as_deref().filter(|_| has_index),
                ),
                ("the recovered file", Some(&places.recovered)),
                ("the quarantine", Some(&places.quarantine)),
                ("the manifest", Some(&places.manifest)),
                ("the index of the recovered file", places.index.as_deref()),
            ],
        )?;
        Ok(places)
    }
}

/// The files that are being written.
struct Files {
    recovered: NewFile,
    quarantine: NewFile,
    manifest: NewFile,
    index: Option<NewFile>,
}

impl Files {
    fn create(disk: &DiskRef, places: &Places, overwrite: bool) -> Result<Self> {
        let create = |path: &Path| NewFile::create(disk, path, overwrite);
        Ok(Self {
            recovered: create(&places.recovered)?,
            quarantine: create(&places.quarantine)?,
            manifest: create(&places.manifest)?,
            index: places.index.as_deref().map(create).transpose()?,
        })
    }

    /// The recovered file comes last: when it exists, the others do.
    fn in_order(self, has_quarantine: bool) -> Vec<NewFile> {
        let aside = [self.quarantine, self.manifest];
        let aside = aside.into_iter().filter(|_| has_quarantine);
        aside.chain(self.index).chain([self.recovered]).collect()
    }
}

/// The parameters of all steps.
struct Job<'a> {
    source: Arc<dyn Source>,
    format: &'static Format,
    options: &'a Options,
    recovery: &'a RecoverOptions,
    places: &'a Places,
}

impl Job<'_> {
    /// Writes the new file and the quarantine.
    fn sort(&self, report: &Report, files: &mut Files, stages: &mut Stages<'_>) -> Result<Sorted> {
        stages.next();
        let (source, options, places) = (self.source.clone(), self.options, self.places);
        let mut sorting = Sorting::new(source.clone(), options, places, files, stages)?;
        let renumber = self.recovery.renumber;
        let mut salvage = Salvage::new(source, options, renumber, &places.recovered, &mut sorting);
        if is_kept_whole(report) {
            salvage.carry(0..self.source.len())?;
        } else {
            (self.format.salvage)(&mut salvage)?;
        }
        salvage.finish()?;
        sorting.finish()
    }

    /// Checks that the new file has all sound records and no others.
    fn compare(&self, report: &Report, output: &Report) -> Result<()> {
        let is_as_good = output.summary.records == report.summary.records
            && output.summary.checked == report.summary.checked
            && is_kept_whole(output)
            && damaged_ranges(output) <= damaged_ranges(report);
        if is_as_good {
            return Ok(());
        }
        let action = format!(
            "the new file does not read back as expected, so it was removed: expected {} records by {}, found {} by {}, with {} damaged ranges. Check the disk and recover again",
            report.summary.records,
            report.summary.checked.as_str(),
            output.summary.records,
            output.summary.checked.as_str(),
            damaged_ranges(output)
        );
        let error = std::io::ErrorKind::InvalidData.into();
        Err(Error::io(Some(&self.places.recovered), action, error))
    }

    /// Writes the manifest, and checks that with it the new files restore the damaged one. Returns whether the new file
    /// equals the damaged one.
    fn describe(
        &self,
        recovered: &dyn Source,
        sorted: &Sorted,
        files: &mut Files,
        stages: &mut Stages<'_>,
    ) -> Result<bool> {
        let (places, options) = (self.places, self.options);
        let id = |path, source: &dyn Source| {
            let hash = hash(source, options, |_| Ok(()))?;
            Ok::<_, Error>(Id::new(path, source.len(), hash))
        };
        let quarantine = files.quarantine.source()?;
        let header = Header::new(
            self.how(),
            Id::new(self.source.path(), self.source.len(), sorted.hash),
            id(Some(&places.recovered), recovered)?,
            id(Some(&places.quarantine), &quarantine)?,
        );
        let failed = |error| unwritten(&places.manifest, error);
        let mut out = BufWriter::new(files.manifest.file());
        write_line(&mut out, &header).map_err(failed)?;
        let lines = &sorted.lines;
        each_piece(lines, options, 0..lines.len(), |bytes| {
            out.write_all(bytes).map_err(failed)
        })?;
        out.flush().map_err(failed)?;
        drop(out);
        let parts = Parts {
            recovered,
            quarantine: &quarantine,
            options,
        };
        prove(&*self.source, &parts, files.manifest.source()?, stages)?;
        Ok(header.recovered.is_of(self.source.len(), sorted.hash))
    }

    fn how(&self) -> How {
        let dialect = self.options.dialect.as_str();
        let has_dialects = self.format.reads_with("dialect");
        How {
            format: self.format.name.to_owned(),
            dialect: has_dialects.then(|| dialect.to_owned()),
            renumber: self.recovery.renumber,
            force: self.recovery.force,
        }
    }
}

/// Restores the damaged file as undoing would, and compares each byte with it.
fn prove(
    source: &dyn Source,
    parts: &Parts<'_>,
    manifest: FileSource,
    stages: &mut Stages<'_>,
) -> Result<()> {
    stages.next();
    let mut lines = Manifest::new(manifest);
    let (header, mut done, mut window) = (lines.header()?, 0, Window::default());
    parts.join(&mut lines, &header, |bytes| {
        if window.exact(source, done, bytes.len(), bytes.len())? != bytes {
            return Err(Error::changed(source.path(), "it"));
        }
        done += bytes.len() as u64;
        stages.tell(done)
    })
}

/// Whether nothing is to be dropped: any damage is in records that are emitted all the same.
fn is_kept_whole(report: &Report) -> bool {
    let mut rows = report.summary.totals.rows().iter();
    rows.all(|row| row.kind == Kind::Record || row.cause.is_none() && row.kind != Kind::Pending)
}

fn damaged_ranges(report: &Report) -> u64 {
    let rows = report.summary.totals.rows().iter();
    let damaged = rows.filter(|row| row.cause.is_some());
    damaged.map(|row| row.ranges).sum()
}

/// Refuses a file without sound records, with the cause that diagnosing it gives.
fn refuse_hopeless(source: &Arc<dyn Source>, options: &Options, report: &Report) -> Result<()> {
    let mut rows = report.summary.totals.rows().iter();
    let has_good = rows.any(|row| {
        let is_kept = row.cause.is_none() || row.kind == Kind::Record;
        is_kept && row.kind.is_unit()
    });
    if report.is_sound() || has_good && !report.summary.wrong_key() {
        return Ok(());
    }
    let how = DiagnoseOptions::default().ranges(1);
    let found = diagnose(source, options, report, &how, |_| Ok(()))?;
    let found = found.first().or_bug("a damaged range")?;
    let why = match found.reason {
        Reason::WrongKey => {
            "probably a wrong key. Nothing was written. Give the key that it was written with as `key`".to_owned()
        }
        Reason::OtherDialect => {
            "probably the wrong dialect. Nothing was written. Name it with `dialect`".to_owned()
        }
        reason => {
            let reason = reason.as_str().replace('_', " ");
            format!("{reason} ({}). Nothing was written", found.evidence)
        }
    };
    let name = name(&report.summary.path);
    Err(Error::Usage(format!(
        "{name}: no record in it was verified as {}: {why}; `force` recovers it all the same: everything goes to the quarantine",
        report.format.name
    )))
}

/// Writes the index of the recovered file, as its writer would have written it.
fn write_index(
    format: &Format,
    recovered: Arc<dyn Source>,
    options: &Options,
    index: &mut NewFile,
) -> Result<()> {
    let index_file = format.index.or_bug("an index of files that have one")?;
    let path = index.path().to_path_buf();
    let failed = |error| unwritten(&path, error);
    let mut out = BufWriter::new(index.file());
    (index_file.build)(recovered, options, &mut |bytes| {
        out.write_all(bytes).map_err(failed)
    })?;
    out.flush().map_err(failed)
}
