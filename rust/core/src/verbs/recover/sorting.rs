//! Sorts every byte of a damaged file: bytes that were not carried over go to the quarantine.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::manifest::{Piece, Pieces, Place};
use crate::checksum::{Incremental, Key};
use crate::engine::{Run, Runs, each_piece};
use crate::error::{Error, Result};
use crate::ledger::Span;
use crate::source::Source;
use crate::verbs::Ledger;
use crate::walk::Options;

/// The result of sorting a file's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sorted {
    /// The hash of the whole file.
    pub(super) hash: u64,
    /// How many bytes are in the new file.
    pub(super) carried: u64,
    /// How many are in the quarantine.
    pub(super) quarantined: u64,
}

/// Reads a damaged file once more, from its beginning to its end.
pub(super) struct Sorting<'a, Q, M> {
    source: Arc<dyn Source>,
    options: &'a Options,
    /// Read only from the first byte on that was not carried over.
    ledger: Option<Ledger>,
    /// The range that the next byte may be in.
    span: Option<Span>,
    hasher: Incremental,
    quarantine: Q,
    pieces: Pieces<M>,
    /// The paths of the new files, for errors.
    quarantine_path: &'a Path,
    manifest_path: &'a Path,
    at: u64,
    quarantined: u64,
}

impl<'a, Q: Write, M: Write> Sorting<'a, Q, M> {
    /// Begins to sort. Writes bytes that are not in the new file to `quarantine`, and the place of every byte to
    /// `manifest`.
    pub(super) fn new(
        source: Arc<dyn Source>,
        options: &'a Options,
        (quarantine, quarantine_path): (Q, &'a Path),
        (manifest, manifest_path): (M, &'a Path),
    ) -> Self {
        Self {
            source,
            options,
            ledger: None,
            span: None,
            hasher: Incremental::new(&Key::DEFAULT),
            quarantine,
            pieces: Pieces::new(manifest),
            quarantine_path,
            manifest_path,
            at: 0,
            quarantined: 0,
        }
    }

    /// Sorts the whole file, of which `runs` were carried over.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Interrupted`], and those of `progress`.
    pub(super) fn sort(
        mut self,
        mut runs: Runs,
        mut progress: impl FnMut(u64) -> Result<()>,
    ) -> Result<Sorted> {
        while let Some(Run { input, output, len }) = runs.next()? {
            self.quarantine(input, &mut progress)?;
            self.note(input + len, Place::Recovered { at: output })?;
            self.read(input + len, false, &mut progress)?;
        }
        self.quarantine(self.source.len(), &mut progress)?;
        let flushed = self.quarantine.flush();
        flushed.map_err(|error| unwritten(self.quarantine_path, error))?;
        let path = self.manifest_path;
        let finished = self.pieces.finish();
        finished.map_err(|error| unwritten(path, error))?;
        Ok(Sorted {
            hash: self.hasher.finish(),
            carried: self.at - self.quarantined,
            quarantined: self.quarantined,
        })
    }

    /// Writes the bytes up to `end` to the quarantine, with kinds and causes from the ledger.
    fn quarantine(&mut self, end: u64, progress: &mut impl FnMut(u64) -> Result<()>) -> Result<()> {
        while self.at < end {
            let span = self.span_at(self.at)?;
            let until = span.end.min(end);
            let place = Place::Quarantine {
                at: self.quarantined,
                kind: span.kind,
                cause: span.cause,
            };
            self.note(until, place)?;
            self.quarantined += until - self.at;
            self.read(until, true, progress)?;
        }
        Ok(())
    }

    /// The range of the ledger that contains this byte.
    fn span_at(&mut self, at: u64) -> Result<Span> {
        loop {
            if let Some(span) = self.span.filter(|span| span.end > at) {
                return Ok(span);
            }
            let ledger = match &mut self.ledger {
                Some(ledger) => ledger,
                None => {
                    let ledger = Ledger::new(self.source.clone(), self.options)?;
                    self.ledger.insert(ledger)
                }
            };
            match ledger.next().transpose()? {
                Some(span) => self.span = Some(span),
                None => return Err(Error::changed(self.source.path(), "it")),
            }
        }
    }

    fn note(&mut self, end: u64, place: Place) -> Result<()> {
        let start = self.at;
        let added = self.pieces.add(Piece { start, end, place });
        added.map_err(|error| unwritten(self.manifest_path, error))
    }

    /// Reads on up to `end`.
    fn read(
        &mut self,
        end: u64,
        is_quarantined: bool,
        progress: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        each_piece(&*self.source, self.options, self.at..end, |bytes| {
            self.hasher.update(bytes);
            if is_quarantined {
                let written = self.quarantine.write_all(bytes);
                written.map_err(|error| unwritten(self.quarantine_path, error))?;
            }
            self.at += bytes.len() as u64;
            progress(self.at)
        })
    }
}

pub(super) fn unwritten(path: &Path, error: std::io::Error) -> Error {
    Error::io(Some(path), "cannot write", error)
}
