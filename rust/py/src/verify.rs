//! `verify`.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use seglake::format::Filter;
use seglake::{Error, verbs};

use crate::error::detached;
use crate::interrupt::keep;
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::numbers::{self, EXPLAINED, Explained};
use crate::options::Named;
use crate::parity::{AUTO, SidecarArgument};
use crate::read_options::{ReadArguments, thread_count};
use crate::remote::{Filesystem, StorageOptions};
use crate::report::Report;

/// How often progress is told.
const INTERVAL: Duration = Duration::from_millis(100);

/// What is called with how many bytes are done, and of how many.
pub(crate) type Progress = Py<PyAny>;

with_keywords! {
/// Reads a file to its end and checks every record; damage is in the report, not raised.
///
/// `progress(done, total)` is called now and then, and at the end, with bytes; what it raises ends the verifying.
///
/// explain: also find what damage probably comes from, for this many damaged ranges, the first ones; 0 or None for none. They are in
///     `report.diagnoses`: `reason` of each is what the damage comes from, `certainty` how sure that is, `evidence` why. A damaged
///     file is then read again as far as the last of them, and `progress` told of that as well.
/// threads: how many threads read a file that `Reader.split` can split. None: one for each core, 8 at most. The report is the
///     same. Where only one reading of the whole can tell what is damaged, that follows, and `progress` begins anew.
/// sidecar: the parity sidecar of the file: "auto" is the one beside a path of this machine, if there is one, as `protect` writes it; None is to read
///     without; else a path, URI, file object or buffer. What differs from what it covers is damage, also in files without
///     checksums (`checked` is then "parity"): of the kind "repaired" if `repair` can restore it. `report.parity` has the rest.
/// The others are as in `open`.
///
/// Raises FormatError where the format cannot be told, OSError where the file cannot be read, or the sidecar beside it may not be.
///
/// >>> report = seglake.verify("damaged.active")
/// >>> report.ok, report.records, report.damage
/// (False, 2, [Span(start=54, end=105, kind='corrupt', cause='checksum_mismatch')])
fn verify(source: &Bound<'_, PyAny>; VerifyArguments<'a> {
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    #[pyo3(from_py_with = numbers::explain)]
    explain: Option<Explained> = EXPLAINED,
    #[pyo3(from_py_with = numbers::threads)]
    threads: Option<usize> = None,
    sidecar: Option<SidecarArgument> = AUTO,
    memory_map: bool = false,
    options: Option<Named> = None,
    progress: Option<Progress> = None,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Report;
}

impl VerifyArguments<'_> {
    fn verify(self, source: &Bound<'_, PyAny>) -> PyResult<Report> {
        let py = source.py();
        let threads = thread_count(self.threads);
        let arguments = ReadArguments::new(self.format, self.key, self.options)
            .mmap(self.memory_map)
            .sidecar(self.sidecar)
            .within(source, self.filesystem, self.storage_options)?;
        let (given, _) = arguments.open(source)?;
        let (source, options) = (given.source, given.options);
        // Of a segment that was sealed since it was listed, all is verified: none of it can be taken back.
        let options = options.filter(Filter::default());
        let again = self
            .progress
            .as_ref()
            .map(|progress| progress.clone_ref(py));
        let tell = teller(self.progress, source.len());
        let explained = detached(py, || {
            let mut report = verbs::verify_parallel(source.clone(), &options, threads, tell)?;
            if let Some(ranges) = self.explain {
                let how = verbs::DiagnoseOptions::default().ranges(ranges);
                let tell = teller(again, source.len());
                report.diagnoses = verbs::diagnose(&source, &options, &report, &how, tell)?;
            }
            Ok(report)
        });
        explained.map(Report)
    }
}

/// Tells Python's `progress` now and then, and at the end, how many bytes of `total` are done.
pub(crate) fn teller(
    progress: Option<Progress>,
    total: u64,
) -> impl FnMut(u64) -> Result<(), Error> {
    let mut tell = telling(progress);
    move |done| tell(done, total)
}

/// The same where how many there are is known later.
pub(crate) fn telling(progress: Option<Progress>) -> impl FnMut(u64, u64) -> Result<(), Error> {
    let mut told = Instant::now();
    move |done, total| {
        let due = done >= total || told.elapsed() >= INTERVAL;
        let Some(progress) = progress.as_ref().filter(|_| due) else {
            return Ok(());
        };
        told = Instant::now();
        match Python::try_attach(|py| progress.call1(py, (done, total))) {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => {
                keep(error);
                Err(Error::Interrupted)
            }
            None => Ok(()), // the interpreter is ending: nobody is there to be told
        }
    }
}
