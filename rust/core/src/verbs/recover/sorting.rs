//! Sorts every byte of a damaged file, once: sound bytes are copied to the new file, and all others to the quarantine.

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::manifest::{Piece, Pieces, Place};
use super::{Files, Places};
use crate::checksum::{Incremental, Key};
use crate::disk::Handle;
use crate::engine::{Fill, each_piece};
use crate::error::{Error, Result};
use crate::ledger::Span;
use crate::source::{FileSource, Source};
use crate::verbs::Ledger;
use crate::verbs::stages::Stages;
use crate::walk::Options;

/// The result of sorting a file's bytes.
#[derive(Debug)]
pub(super) struct Sorted {
    /// The hash of the whole file.
    pub(super) hash: u64,
    /// How many bytes are in the new file.
    pub(super) carried: u64,
    /// How many are in the quarantine.
    pub(super) quarantined: u64,
    /// The lines of the manifest after its header.
    pub(super) lines: FileSource,
}

/// Fills the new file and the quarantine, from the beginning of the damaged file to its end.
pub(super) struct Sorting<'a, 's> {
    source: Arc<dyn Source>,
    options: &'a Options,
    places: &'a Places,
    /// Read only from the first byte on that is not carried over.
    ledger: Option<Ledger>,
    /// The range that the next byte may be in.
    span: Option<Span>,
    hasher: Incremental,
    recovered: BufWriter<&'a mut Handle>,
    quarantine: BufWriter<&'a mut Handle>,
    pieces: Pieces,
    /// Where the next byte is in the damaged file.
    at: u64,
    /// The length of the new file.
    len: u64,
    quarantined: u64,
    /// Whether the file is surveyed once before anything is copied, so that progress is halved.
    surveys_first: bool,
    stages: &'a mut Stages<'s>,
}

impl<'a, 's> Sorting<'a, 's> {
    /// Begins to sort.
    ///
    /// # Errors
    /// [`Error::Io`] if no temporary file can be created beside the manifest.
    pub(super) fn new(
        source: Arc<dyn Source>,
        options: &'a Options,
        places: &'a Places,
        files: &'a mut Files,
        stages: &'a mut Stages<'s>,
    ) -> Result<Self> {
        Ok(Self {
            source,
            options,
            places,
            ledger: None,
            span: None,
            hasher: Incremental::new(&Key::DEFAULT),
            recovered: BufWriter::new(files.recovered.file()),
            quarantine: BufWriter::new(files.quarantine.file()),
            pieces: Pieces::create(options.on(), &places.manifest)?,
            at: 0,
            len: 0,
            quarantined: 0,
            surveys_first: false,
            stages,
        })
    }

    /// Puts what remains into the quarantine.
    ///
    /// # Errors
    /// As [`Fill::carry`].
    pub(super) fn finish(mut self) -> Result<Sorted> {
        self.quarantine(self.source.len())?;
        let flushed = self.recovered.flush();
        flushed.map_err(|error| unwritten_recovered(&self.places.recovered, error))?;
        let flushed = self.quarantine.flush();
        flushed.map_err(|error| unwritten(&self.places.quarantine, error))?;
        Ok(Sorted {
            hash: self.hasher.finish(),
            carried: self.at - self.quarantined,
            quarantined: self.quarantined,
            lines: self.pieces.finish()?,
        })
    }

    /// Writes the bytes up to `end` to the quarantine, with kinds and causes from the ledger.
    fn quarantine(&mut self, end: u64) -> Result<()> {
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
            self.read(until, true)?;
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
        self.pieces.add(Piece { start, end, place })
    }

    /// Reads on up to `end`, and copies that.
    fn read(&mut self, end: u64, is_quarantined: bool) -> Result<()> {
        let source = self.source.clone();
        each_piece(&*source, self.options, self.at..end, |bytes| {
            self.hasher.update(bytes);
            if is_quarantined {
                let written = self.quarantine.write_all(bytes);
                written.map_err(|error| unwritten(&self.places.quarantine, error))?;
            } else {
                self.put(bytes)?;
            }
            self.at += bytes.len() as u64;
            let surveyed = if self.surveys_first {
                source.len()
            } else {
                self.at
            };
            self.stages.tell(self.at / 2 + surveyed / 2)
        })
    }
}

impl Fill for Sorting<'_, '_> {
    fn carry(&mut self, range: Range<u64>) -> Result<()> {
        self.quarantine(range.start)?;
        self.note(range.end, Place::Recovered { at: self.len })?;
        self.read(range.end, false)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.len += bytes.len() as u64;
        let written = self.recovered.write_all(bytes);
        written.map_err(|error| unwritten_recovered(&self.places.recovered, error))
    }

    fn surveyed(&mut self, offset: u64) -> Result<()> {
        self.surveys_first = true;
        self.stages.tell(offset / 2)
    }
}

fn unwritten_recovered(path: &Path, error: std::io::Error) -> Error {
    Error::io(Some(path), "cannot write the recovered file", error)
}

pub(super) fn unwritten(path: &Path, error: std::io::Error) -> Error {
    Error::io(Some(path), "cannot write", error)
}
