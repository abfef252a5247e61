//! Verifies every record of a file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::proof::proof;
use super::{ParityReport, Report};
use crate::engine::{Format, Start};
use crate::error::{Error, Result};
use crate::format::{by_name, open, resolve, split};
use crate::limits::LIMITS;
use crate::parity::ProtectedSource;
use crate::source::{Source, uncompared};
use crate::sync::{self, Receiver, Sender, Taken, fifo};
use crate::walk::{Interrupt, Options, Part, Step, part_bytes};

/// The largest part, in bytes, unless there would be too many.
const MOST_BYTES: u64 = 64 << 20;
/// How long to wait for threads between two polls for an interrupt and two calls of `progress`.
const WAIT: Duration = Duration::from_millis(50);

/// Verifies a file to its end, past all damage. `progress` is called at intervals with how many bytes are done. An
/// error that it returns ends the verification.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format), [`Error::Io`](crate::Error::Io),
/// [`Error::Interrupted`](crate::Error::Interrupted). Damage is not an error: it is in the report.
pub fn verify(
    source: Arc<dyn Source>,
    options: &Options,
    progress: impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    verify_in_parts(source, options, 1, u64::MAX, progress)
}

/// As [`verify`], with several threads, if the file has [parts](crate::format::split) of 1 MiB or more. The report is
/// the same. Each thread takes as much memory as one does: about 8 MiB.
///
/// Only the calling thread calls `progress`. The count begins again at 0 if the damage is of a kind that only one walk
/// of the whole file can attribute.
///
/// # Errors
/// As [`verify`]; [`Error::Io`](crate::Error::Io) also if no thread can be started.
pub fn verify_parallel(
    source: Arc<dyn Source>,
    options: &Options,
    threads: usize,
    progress: impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    let bytes = part_bytes(LIMITS.least_part_bytes, MOST_BYTES, source.len(), threads);
    verify_in_parts(source, options, threads, bytes, progress)
}

/// As [`verify_parallel`], in parts of about `bytes` bytes: tests have short files.
///
/// # Errors
/// As [`verify_parallel`].
#[doc(hidden)]
pub fn verify_in_parts(
    source: Arc<dyn Source>,
    options: &Options,
    threads: usize,
    bytes: u64,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    let format = resolve(&*source, options)?;
    let options = options.for_ledger().format(format);
    let parts = match threads {
        0 | 1 => Vec::new(),
        _ => split(source.clone(), &options, bytes)?,
    };
    if parts.len() > 1 {
        let stopped = Arc::default();
        let parts = Parts {
            source: &source,
            format,
            options: options.clone().interrupt(Interrupt::once(&stopped)),
            parts: &parts,
            next: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            stopped,
        };
        match parts.verify(&options, threads, &mut progress) {
            // A part's refusal or limit says nothing about the whole file.
            Err(Error::Usage(_) | Error::Limit { .. }) => {}
            done => return by_sidecar(done?, &source, &options, progress),
        }
    }
    let report = verify_whole(source.clone(), format, &options, &mut progress)?;
    by_sidecar(report, &source, &options, progress)
}

/// Adds what the sidecar says, if the file is read by one. If that is of an earlier state of the file, the report is on the file as it is.
fn by_sidecar(
    mut report: Report,
    source: &Arc<dyn Source>,
    options: &Options,
    progress: impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    let Some(protected) = ProtectedSource::of(&**source) else {
        return Ok(report);
    };
    let mut parity = ParityReport::of(&protected, options)?;
    let differences = protected.differences(&(0..u64::MAX), || options.poll())?;
    let (file, format) = (protected.file(), by_name(report.format.name)?);
    if !differences.restored.is_empty() {
        let changed = differences.restored.iter();
        let changed: Vec<_> = changed.map(|range| range.start..range.end).collect();
        let proof = proof([file, &uncompared(source)], &changed, format, options)?;
        parity.is_of_an_earlier_state = proof.against.is_some();
    }
    if parity.is_of_an_earlier_state {
        report = verify_whole(file.clone(), format, options, progress)?;
    }
    report.parity = Some(parity);
    Ok(report)
}

fn verify_whole(
    source: Arc<dyn Source>,
    format: &'static Format,
    options: &Options,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    let mut report = Report::of(format, &*source);
    let mut walk = open(source, options, Start::Beginning)?;
    while walk.step()? == Step::More {
        report.add(&*walk);
        progress(walk.offset())?;
    }
    report.note(&*walk);
    Ok(report)
}

/// Verifies a file of any kind by its parity sidecar, and the sidecar by the file, whatever format that has. `progress`
/// is called after each band with how many bytes of the file are done. An error that it returns ends the verification.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted). Damage is not an error: it is in
/// the report.
pub fn verify_parity(
    file: Arc<dyn Source>,
    sidecar: Arc<dyn Source>,
    options: &Options,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<ParityReport> {
    let bytes = file.len();
    let protected = ProtectedSource::open(file, sidecar)?;
    for covered in protected.covered() {
        let end = covered.end.min(bytes);
        protected.differences(&covered, || options.poll())?;
        progress(end)?;
    }
    let report = ParityReport::of(&protected, options)?;
    progress(bytes)?;
    Ok(report)
}

/// The error that a strict walk of a damaged file raises.
pub(super) fn first_damage(source: Arc<dyn Source>, options: &Options) -> Error {
    let strict = options.clone().strict(true);
    let path = source.path().map(Path::to_path_buf);
    let mut walk = match open(source, &strict, Start::Beginning) {
        Ok(walk) => walk,
        Err(error) => return error,
    };
    loop {
        match walk.step() {
            Ok(Step::More) => {}
            Ok(_) => return Error::changed(path.as_deref(), "it"),
            Err(error) => return error,
        }
    }
}

/// Parts of a file that several threads verify.
struct Parts<'a> {
    source: &'a Arc<dyn Source>,
    format: &'static Format,
    /// With an interrupt that stops the threads.
    options: Options,
    parts: &'a [Part],
    next: AtomicUsize,
    /// How many bytes are in a report.
    done: AtomicU64,
    stopped: Arc<AtomicBool>,
}

/// The number of a part, and the report on it.
type Verified = (usize, Result<Report>);

impl Parts<'_> {
    fn verify(
        &self,
        caller: &Options,
        threads: usize,
        progress: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<Report> {
        let (sender, found) = fifo(usize::MAX, self.parts.len());
        let sender = Arc::new(sender);
        sync::scope(|scope| {
            let mut begun = (0..threads.min(self.parts.len())).map(|_| {
                let sender = sender.clone();
                sync::spawn_scoped(scope, "seglake-verify", move || self.work(&sender))
            });
            let begun = begun.try_for_each(|begun| begun);
            // It ends with the last thread.
            drop(sender);
            let begun = begun
                .map_err(|error| Error::io(None, "cannot start a thread to verify with", error));
            let verified = begun.and_then(|()| self.collect(&found, caller, progress));
            self.stopped.store(true, Ordering::Release);
            verified
        })
    }

    /// Adds up what the threads found. Of errors, the first one in the file counts.
    fn collect(
        &self,
        found: &Receiver<Verified>,
        caller: &Options,
        progress: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<Report> {
        let mut report = Report::of(self.format, &**self.source);
        let mut failed: Option<Verified> = None;
        loop {
            match found.take(WAIT) {
                Taken::Item((_, Ok(part))) => report.merge(&part),
                Taken::Item((place, error)) => {
                    if failed.as_ref().is_none_or(|(first, _)| place < *first) {
                        failed = Some((place, error));
                    }
                }
                Taken::Empty => {}
                Taken::End => break,
            }
            caller.poll()?;
            progress(self.done.load(Ordering::Relaxed))?;
        }
        match failed {
            Some((_, error)) => error,
            None => Ok(report),
        }
    }

    /// Verifies parts until none is left, or one fails: then the others stop, too.
    fn work(&self, found: &Sender<Verified>) {
        while !self.stopped.load(Ordering::Acquire) {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = self.parts.get(place) else {
                return;
            };
            let report = self.read(part);
            let was_stopped = report.is_err() && self.stopped.swap(true, Ordering::AcqRel);
            // What stopped it is told by who did.
            if was_stopped && matches!(report, Err(Error::Interrupted)) {
                return;
            }
            let _ = found.put((place, report), 0); // it is received as long as threads run
        }
    }

    fn read(&self, part: &Part) -> Result<Report> {
        let mut report = Report::of(self.format, &**self.source);
        let mut walk = open(self.source.clone(), &self.options, Start::Part(part))?;
        while walk.step()? == Step::More {
            let before = report.summary.bytes;
            report.add(&*walk);
            self.done
                .fetch_add(report.summary.bytes - before, Ordering::Relaxed);
        }
        report.note(&*walk);
        Ok(report)
    }
}
