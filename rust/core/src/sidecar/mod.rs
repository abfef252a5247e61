//! Reading a file by its parity sidecar: what it restores, what is lost, and which records are affected.
//!
//! [`View`] is the file as it was covered. Every walk reads that, and [`Watching`] compares what it finds with the
//! sidecar: so formats know nothing of sidecars. What is damaged is told only once any damage was met. Then the whole
//! file is judged, and its own format says what it finds in the file as it is, and in the view.

mod affected;
mod trust;
mod view;
mod watching;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::bug::OrBug;
use crate::engine::{Format, Start, has_same_records};
use crate::error::{Damage, Error, Finding, Result};
use crate::ledger::{Cause, Kind, Span};
use crate::own::Own;
use crate::parity::{Bands, Refused, Report};
use crate::record::Checked;
use crate::source::Source;
use crate::spec::Filter;
use crate::walk::{Eof, Hits, Options, ParityCheck, Reading, Step, Walk, Watch};
use affected::Affected;
use trust::Trust;
use view::View;
use watching::Watching;

/// A file that is read by its parity sidecar. The [`Options`] that it is read with have it.
pub(crate) struct Check {
    bands: Arc<Bands>,
    format: &'static Format,
    /// How the file is read without it, to its end and past all damage.
    options: Options,
    trust: OnceLock<Trust>,
    affected: OnceLock<Affected>,
}

impl Check {
    /// Opens a file by its sidecar: gives the file as it was covered, and what checks that. `resolve` tells the format.
    ///
    /// # Errors
    /// [`Error::Io`], and those of `resolve`.
    pub(crate) fn open(
        file: Arc<dyn Source>,
        sidecar: Arc<dyn Source>,
        options: &Options,
        resolve: impl Fn(&dyn Source) -> Result<&'static Format>,
    ) -> Result<(Arc<dyn Source>, Arc<Self>)> {
        let bands = Arc::new(Bands::open(file, sidecar)?);
        // The beginning or the end of the file may be damaged. If the sidecar is of another state of it, the file tells.
        let format = match resolve(&View::covered(&bands)) {
            Err(Error::Format { .. }) => resolve(&**bands.file())?,
            format => format?,
        };
        let plain = options
            .clone()
            .without_parity()
            .format(format)
            .strict(false)
            .values(false)
            .repair(false)
            .prune(false)
            .eof(Eof::Final)
            .filter(Filter::default());
        let check = Arc::new(Self {
            bands,
            format,
            options: plain,
            trust: OnceLock::new(),
            affected: OnceLock::new(),
        });
        Ok((Arc::new(View::of(&check)?), check))
    }

    /// The format of the file.
    pub(crate) const fn format(&self) -> &'static Format {
        self.format
    }

    /// How records are checked that the format checks so.
    fn checked(&self, own: Checked) -> Checked {
        let is_known = self.bands.has_blocks() && self.bands.refused().is_none();
        match own {
            Checked::Structure if is_known => Checked::Parity,
            own => own,
        }
    }

    fn trust(&self) -> Result<&Trust> {
        if let Some(trust) = self.trust.get() {
            return Ok(trust);
        }
        // If two threads arrive at once, both use the one that is stored first.
        let trust = Trust::find(self)?;
        Ok(self.trust.get_or_init(|| trust))
    }

    fn affected(&self) -> Result<&Affected> {
        if let Some(affected) = self.affected.get() {
            return Ok(affected);
        }
        let affected = Affected::find(self)?;
        Ok(self.affected.get_or_init(|| affected))
    }

    /// Walks a source past all damage. `look` is called after each step.
    ///
    /// Ranges from `until` on need not be seen. They come in order if the file is appended to: then the walk ends there.
    fn walk(
        &self,
        source: Arc<dyn Source>,
        until: Option<u64>,
        mut look: impl FnMut(&dyn Walk) -> Result<()>,
    ) -> Result<Checked> {
        let until = until.filter(|_| self.format.is_appended_to());
        let mut walk = self.format.open(source, &self.options, Start::Beginning)?;
        while walk.step()? == Step::More {
            look(&*walk)?;
            let run = walk.record_run().map(|run| run.start);
            let start = run.or_else(|| walk.spans().last().map(|span| span.start));
            if until.is_some_and(|until| start.is_some_and(|start| start >= until)) {
                break;
            }
        }
        Ok(walk.checked())
    }

    /// Whether a unit has the same records in the file as it is and as it was covered, which their own checksums prove in both. Then it
    /// speaks against neither.
    fn restores_the_same(&self, unit: &Span) -> Result<bool> {
        let covered = Arc::new(View::covered(&self.bands));
        let files = [self.bands.file().clone(), covered];
        has_same_records(files, self.format, &self.options, unit)
    }

    /// The first damage that the format itself finds in the file as it was covered.
    fn first_of_format(&self) -> Result<Option<Box<Damage>>> {
        let options = self.options.clone().strict(true);
        let view = Arc::new(View::settled(self)?);
        let mut walk = match self.format.open(view, &options, Start::Beginning) {
            Err(Error::Damage(damage)) => return Ok(Some(damage)),
            walk => walk?,
        };
        loop {
            match walk.step() {
                Ok(Step::More) => {}
                Ok(Step::Wait | Step::Done) => return Ok(None),
                Err(Error::Damage(damage)) => return Ok(Some(damage)),
                Err(error) => return Err(error),
            }
        }
    }

    /// The error for a range that is not as it was covered.
    fn damage(&self, span: &Span) -> Box<Damage> {
        let Span {
            start, end, cause, ..
        } = *span;
        let (expected, actual) = match span.kind {
            Kind::Repaired => (
                format!("the bytes that the parity sidecar has from {start} to {end}"),
                "others",
            ),
            _ => (
                "a block that the parity sidecar proves or restores".to_owned(),
                "one that it does not",
            ),
        };
        let finding = Finding::Parity {
            cause: cause.or_bug_value("a cause of damage", Cause::ChecksumMismatch),
            expected,
            actual: actual.to_owned(),
        };
        Box::new(Damage::new(self.bands.file().path(), start, finding))
    }

    /// Whether the format's own checksums decide alone: the sidecar is probably that of another file.
    fn is_left_to(&self, own: Checked) -> bool {
        self.bands.refused() == Some(Refused::AnotherFile) && own == Checked::Checksum
    }

    /// The same before the file is walked. One that is appended to has its checksums in its records, and no file has them without.
    fn is_left_to_records(&self) -> bool {
        self.format.is_appended_to() && self.is_left_to(self.format.checked)
    }
}

impl Own for Check {}

impl ParityCheck for Check {
    fn sidecar(&self) -> Option<&Path> {
        self.bands.sidecar().path()
    }

    fn file(&self) -> &Arc<dyn Source> {
        self.bands.file()
    }

    fn check_source(&self, source: &dyn Source) -> Result<()> {
        if source.covered() == Some(Arc::as_ptr(&self.bands).addr()) {
            return Ok(());
        }
        let name = |path: Option<&Path>| crate::error::name(&path.map(Path::to_path_buf));
        Err(Error::Usage(format!(
            "expected the source that {} was opened as with its parity sidecar, found another one of {}: read each source with the options that were made with it",
            name(self.file().path()),
            name(source.path())
        )))
    }

    fn refused(&self) -> Option<Refused> {
        self.bands.refused()
    }

    fn report(&self) -> Result<Report> {
        self.bands.report(|| self.options.poll())
    }

    fn is_of_an_earlier_state(&self) -> Result<bool> {
        Ok(self.trust()?.is_of_an_earlier_state)
    }

    fn is_known_to_be_of_an_earlier_state(&self) -> Result<bool> {
        Ok(self.bands.is_damaged() && self.trust()?.is_of_an_earlier_state)
    }
}

impl Watch for Check {
    fn watch(self: Arc<Self>, walk: Box<dyn Walk>, reading: Reading) -> Box<dyn Walk> {
        Box::new(Watching::new(walk, self, reading))
    }

    fn judge_hits(&self, hits: Hits, reading: Reading) -> Result<Hits> {
        self.judged(hits, reading)
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParityCheck")
            .field("sidecar", &self.bands.sidecar().path())
            .finish_non_exhaustive()
    }
}

/// The ranges of a sorted list, which do not overlap, that overlap the bytes from `start` to `end`.
fn overlapping(spans: &[Span], start: u64, end: u64) -> &[Span] {
    let first = spans.partition_point(|own| own.end <= start);
    let last = spans.partition_point(|own| own.start < end);
    spans
        .get(first..last.max(first))
        .or_bug_default("ranges of the list")
}
