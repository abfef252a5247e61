//! Writing what is good of a damaged file to a new one, and the rest to a quarantine: nothing lost, nothing invented.

mod manifest;
mod places;
mod sorting;
mod stages;
mod undo;

use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use undo::undo_recover;

use super::{Report, verify};
use crate::bug::OrBug;
use crate::engine::{Carried, Eof, Filter, Format, Options, Runs, Salvage};
use crate::error::{Error, Result, name};
use crate::format::resolve;
use crate::ledger::Kind;
use crate::output::{NewFile, commit_together};
use crate::setters::setters;
use crate::source::{FileSource, Source};
use manifest::{Header, How, Manifest, Sum, write_line};
use places::Places;
use sorting::{Sorted, Sorting, unwritten};
use stages::Stages;
use undo::{Parts, hash};

/// How often the file is gone through: checking it, copying it, checking the copy, sorting, and putting it together again.
const STAGES: u64 = 5;

/// How a file is recovered.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Where the bytes go that are not in the new file. Beside it, with `.quarantine` behind its name, if that is `None`; and
    /// then only if there are any. The manifest is there too, with `.manifest.jsonl` behind that name.
    pub quarantine: Option<PathBuf>,
    /// Replace existing files. Otherwise they are an error.
    pub overwrite: bool,
    /// Recover also a file in which nothing checks.
    pub force: bool,
    /// Give the messages of an oplog other numbers where one in front of them is lost, and rewrite what refers to them. Records
    /// of other formats have no numbers that depend on those in front of them: nothing changes for them.
    pub renumber: bool,
}

setters!(Recovery {
    quarantine: Option<PathBuf>, from;
    overwrite: bool;
    force: bool;
    renumber: bool;
});

/// What was recovered.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// What was found in the damaged file.
    pub source: Report,
    /// What was found in the new one: as many records, none of them damaged that was not before.
    pub output: Report,
    /// How many bytes of the damaged file are in the new one.
    pub carried: u64,
    /// How many are in the quarantine.
    pub quarantined: u64,
    /// The quarantine, if there is one.
    pub quarantine: Option<PathBuf>,
    /// The manifest that says where each byte is, if there is a quarantine.
    pub manifest: Option<PathBuf>,
    /// The index of the new file, if it has one.
    pub index: Option<PathBuf>,
}

impl Recovered {
    /// Whether anything of the file was damaged: what that was is lost, or, where it was an index, is made anew.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        !self.source.is_sound()
    }
}

/// Writes the good records of a file to a new one of the same format, with the checksums that they had, and all other bytes to a
/// quarantine with a manifest, from which [`undo_recover`] makes the file again. `progress` is told again and again how many
/// bytes of the source are done, all passes together counting as one; its error ends the work.
///
/// The new file is read back, and the damaged one put together again to see that it can be, before any of them appears: then
/// all do, synced, and readable by their owner alone. A sound file is copied as it is.
///
/// # Errors
/// [`Error::Usage`] where nothing checks, without [`force`](Recovery::force); where messages would have to be renumbered,
/// without [`renumber`](Recovery::renumber), or cannot be; where two of the files are the same. [`Error::Io`], also where one
/// of them exists and is not to be overwritten; [`Error::Limit`]; [`Error::Format`]; [`Error::Interrupted`].
pub fn recover(
    source: Arc<dyn Source>,
    options: &Options,
    destination: &Path,
    recovery: &Recovery,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Recovered> {
    let format = resolve(&*source, options)?;
    let options = options
        .clone()
        .format(format)
        .strict(false)
        .values(false)
        .filter(Filter::default())
        .eof(Eof::Final);
    let places = Places::new(&*source, format, &options, destination, recovery)?;
    let mut files = Files::create(&places, recovery.overwrite)?;
    let mut stages = Stages::new(source.len(), STAGES, &mut progress);
    let report = verify(source.clone(), &options, |done| stages.tell(done))?;
    refuse_hopeless(&report, recovery)?;
    let job = Job {
        source,
        format,
        options: &options,
        recovery,
        places: &places,
    };
    let carried = job.carry(&report, &mut files, &mut stages)?;
    let recovered: Arc<dyn Source> = Arc::new(files.recovered.source()?);
    stages.next();
    let output = verify(recovered.clone(), &options, |done| stages.tell(done))?;
    job.compare(&report, &output)?;
    let (sorted, is_same) = job.sort(&*recovered, carried, &mut files, &mut stages)?;
    if let Some(index) = &mut files.index {
        write_index(format, recovered.clone(), &options, index)?;
    }
    stages.finish()?;
    drop(recovered);
    let has_quarantine = recovery.quarantine.is_some() || !is_same;
    commit_together(files.in_order(has_quarantine))?;
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

/// The files that are being written.
struct Files {
    recovered: NewFile,
    quarantine: NewFile,
    manifest: NewFile,
    index: Option<NewFile>,
}

impl Files {
    fn create(places: &Places, overwrite: bool) -> Result<Self> {
        let create = |path: &Path| NewFile::create(path, overwrite);
        Ok(Self {
            recovered: create(&places.recovered)?,
            quarantine: create(&places.quarantine)?,
            manifest: create(&places.manifest)?,
            index: places.index.as_deref().map(create).transpose()?,
        })
    }

    /// The recovered file last: once it is there, the others are.
    fn in_order(self, has_quarantine: bool) -> Vec<NewFile> {
        let aside = [self.quarantine, self.manifest];
        let aside = aside.into_iter().filter(|_| has_quarantine);
        aside.chain(self.index).chain([self.recovered]).collect()
    }
}

/// What every step has to know.
struct Job<'a> {
    source: Arc<dyn Source>,
    format: &'static Format,
    options: &'a Options,
    recovery: &'a Recovery,
    places: &'a Places,
}

impl Job<'_> {
    /// Writes the new file, and gives what of it is as it was.
    fn carry(
        &self,
        report: &Report,
        files: &mut Files,
        stages: &mut Stages<'_>,
    ) -> Result<Carried> {
        stages.next();
        let mut tell = |done| stages.tell(done);
        let mut out = BufWriter::new(files.recovered.file());
        let mut salvage = Salvage::new(
            self.source.clone(),
            self.options,
            self.recovery.renumber,
            &self.places.recovered,
            &mut out,
            &mut tell,
        )?;
        if is_kept_whole(report) {
            salvage.carry(0..self.source.len())?;
        } else {
            report.format.salvage(&mut salvage)?;
        }
        salvage.finish()
    }

    /// That the new file has all that was good, and nothing else.
    fn compare(&self, report: &Report, output: &Report) -> Result<()> {
        let is_as_good = output.records == report.records
            && output.checked == report.checked
            && is_kept_whole(output)
            && damaged_ranges(output) <= damaged_ranges(report);
        if is_as_good {
            return Ok(());
        }
        let action = format!(
            "what was written does not read back as what was good: {} records by {} were expected, and {} by {} found, with {} damaged ranges. Nothing is kept of it",
            report.records,
            report.checked.as_str(),
            output.records,
            output.checked.as_str(),
            damaged_ranges(output)
        );
        let error = std::io::ErrorKind::InvalidData.into();
        Err(Error::io(Some(&self.places.recovered), action, error))
    }

    /// Writes the quarantine and the manifest, and sees that they and the new file make the old one. Gives also whether the new
    /// file is the old one.
    fn sort(
        &self,
        recovered: &dyn Source,
        carried: Carried,
        files: &mut Files,
        stages: &mut Stages<'_>,
    ) -> Result<(Sorted, bool)> {
        let places = self.places;
        stages.next();
        let recovered_hash = hash(recovered, self.options, |_| Ok(()))?;
        let quarantined = self.source.len().saturating_sub(carried.bytes);
        let mut header = Header::new(
            self.how(),
            Sum::new(self.source.path(), self.source.len(), 0),
            Sum::new(Some(&places.recovered), recovered.len(), recovered_hash),
            Sum::new(Some(&places.quarantine), quarantined, 0),
        );
        let failed = |error| unwritten(&places.manifest, error);
        let mut lines = BufWriter::new(files.manifest.file());
        write_line(&mut lines, &header).map_err(failed)?;
        let sorting = Sorting::new(
            self.source.clone(),
            self.options,
            (BufWriter::new(files.quarantine.file()), &places.quarantine),
            (&mut lines, &places.manifest),
        );
        let sorted = sorting.sort(Runs::new(carried.runs)?, |done| stages.tell(done))?;
        let quarantine = files.quarantine.source()?;
        header.original.set_hash(sorted.hash);
        header
            .quarantine
            .set_hash(hash(&quarantine, self.options, |_| Ok(()))?);
        // As long as before: only the hashes have become known.
        lines.seek(SeekFrom::Start(0)).map_err(failed)?;
        write_line(&mut lines, &header).map_err(failed)?;
        lines.flush().map_err(failed)?;
        drop(lines);
        let parts = Parts {
            recovered,
            quarantine: &quarantine,
            options: self.options,
        };
        prove(&parts, files.manifest.source()?, stages)?;
        let is_same = recovered.len() == self.source.len() && recovered_hash == sorted.hash;
        Ok((sorted, is_same))
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

/// Puts the damaged file together again, as undoing would, to see that it can be.
fn prove(parts: &Parts<'_>, manifest: FileSource, stages: &mut Stages<'_>) -> Result<()> {
    stages.next();
    let mut lines = Manifest::new(manifest);
    let (header, mut done) = (lines.header()?, 0);
    parts.join(&mut lines, &header, |bytes| {
        done += bytes.len() as u64;
        stages.tell(done)
    })
}

/// Whether there is nothing to drop: all that is wrong, if anything is, is within records that are given out all the same.
fn is_kept_whole(report: &Report) -> bool {
    let mut damaged = report
        .totals
        .rows()
        .iter()
        .filter(|row| row.cause.is_some());
    damaged.all(|row| row.kind == Kind::Record)
}

fn damaged_ranges(report: &Report) -> u64 {
    let rows = report.totals.rows().iter();
    let damaged = rows.filter(|row| row.cause.is_some());
    damaged.map(|row| row.ranges).sum()
}

/// Refuses a file in which nothing is good: to whoever reads it in the wrong way every file is.
fn refuse_hopeless(report: &Report, recovery: &Recovery) -> Result<()> {
    let mut rows = report.totals.rows().iter();
    let has_good = rows.any(|row| {
        let is_kept = row.cause.is_none() || row.kind == Kind::Record;
        is_kept && matches!(row.kind, Kind::Record | Kind::Chunk | Kind::Block)
    });
    if recovery.force || report.is_sound() || has_good && !report.wrong_key() {
        return Ok(());
    }
    let takes = |option| report.format.reads_with(option);
    let why = if takes("key") {
        "probably a wrong key"
    } else if takes("dialect") {
        "probably the wrong dialect, or another format"
    } else {
        "probably another format"
    };
    let name = name(&report.path);
    Err(Error::Usage(format!(
        "{name}: nothing in it checks as {}: {why}. Nothing was written. force (--force) recovers it all the same: everything goes to the quarantine",
        report.format.name
    )))
}

/// The index of a file that was recovered, as its writer would have written it.
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
