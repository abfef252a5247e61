//! Copies the sound parts of a damaged file to a new one: what every format's `salvage` writes through.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cursor::fields;
use crate::error::{Error, Result};
use crate::ledger::Span;
use crate::output::Spool;
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source, Window};
use crate::walk::{Options, Step, Walk};

/// How much is copied between two polls for an interrupt.
const PIECE_BYTES: usize = 1 << 20;
/// The size of a run in the spool: three `u64`.
const RUN_BYTES: usize = 24;

/// Writes the sound parts of a file to a new one.
///
/// # Errors
/// - [`Error::Usage`] if the remaining bytes would change their meaning.
/// - [`Error::Io`] if the new file cannot be written.
/// - Those of [`Walk::step`].
pub(crate) type SalvageFile = fn(&mut Salvage<'_>) -> Result<()>;

/// A range of bytes that the damaged file and the new one share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where it begins in the damaged file.
    pub(crate) input: u64,
    /// Where it begins in the new file.
    pub(crate) output: u64,
    pub(crate) len: u64,
}

impl Run {
    /// Where it ends in the damaged file.
    const fn input_end(&self) -> u64 {
        self.input.saturating_add(self.len)
    }

    fn to_bytes(self) -> [[u8; 8]; 3] {
        [self.input, self.output, self.len].map(u64::to_be_bytes)
    }

    fn parse(bytes: &[u8; RUN_BYTES]) -> Self {
        let (input, output, len) = fields(bytes);
        Self { input, output, len }
    }
}

/// A new file with the sound parts of a damaged one, written from its beginning to its end.
///
/// It records where each carried byte went. So the damaged file can be restored from the new file and the bytes that
/// were left out. Runs that touch in both files are merged and copied at once.
pub(crate) struct Salvage<'a> {
    source: Arc<dyn Source>,
    options: &'a Options,
    renumber: bool,
    out: &'a mut dyn Write,
    /// The path of the new file, for errors and for the folder of spools.
    path: PathBuf,
    /// The length of the new file so far, including the run that is not copied yet.
    len: u64,
    /// The latest run, which the next one may extend.
    last: Option<Run>,
    runs: Spool,
    /// The total length of the runs.
    carried: u64,
    window: Window,
    /// Whether the file is surveyed once before anything is copied, so that progress is halved.
    surveys_first: bool,
    progress: &'a mut dyn FnMut(u64) -> Result<()>,
}

impl<'a> Salvage<'a> {
    /// Begins the file that will be `path` by writing it to `out`. `progress` gets how many bytes of the source are
    /// done.
    ///
    /// # Errors
    /// [`Error::Io`] if no spool can be created in its folder.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        options: &'a Options,
        renumber: bool,
        path: &Path,
        out: &'a mut dyn Write,
        progress: &'a mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Self> {
        Ok(Self {
            source,
            options,
            renumber,
            out,
            path: path.to_path_buf(),
            len: 0,
            last: None,
            runs: Spool::create(options.on(), path)?,
            carried: 0,
            window: Window::default(),
            surveys_first: false,
            progress,
        })
    }

    /// Reports how far the file was surveyed, for formats that do that before they copy.
    pub(crate) fn surveyed(&mut self, offset: u64) -> Result<()> {
        self.surveys_first = true;
        (self.progress)(offset / 2)
    }

    /// The damaged file.
    pub(crate) fn source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    /// The options to read it with: lenient, without bodies.
    pub(crate) const fn options(&self) -> &'a Options {
        self.options
    }

    /// Whether messages may be renumbered if one before them is lost.
    pub(crate) const fn renumbers(&self) -> bool {
        self.renumber
    }

    /// Returns a spool for data whose place in the output comes later.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn aside(&self) -> Result<Spool> {
        Spool::create(self.options.on(), &self.path)
    }

    /// Copies a range of the damaged file. Ranges must ascend.
    ///
    /// # Errors
    /// - [`Error::Io`]; also if the ranges do not ascend, which happens only if the file changes meanwhile.
    /// - [`Error::Interrupted`].
    pub(crate) fn carry(&mut self, range: Range<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (start, len) = (range.start, range.end - range.start);
        if start < self.carried_to() || range.end > self.source.len() {
            return Err(Error::changed(self.source.path(), "it"));
        }
        let output = self.len;
        match &mut self.last {
            Some(last) if last.input_end() == start && last.output + last.len == output => {
                last.len += len;
            }
            _ => {
                self.copy_last()?;
                self.last = Some(Run {
                    input: start,
                    output,
                    len,
                });
            }
        }
        self.len += len;
        Ok(())
    }

    /// Copies the ranges of a walk from the beginning of the file that `carried` chooses.
    ///
    /// # Errors
    /// As [`carry`](Self::carry) and [`Walk::step`].
    pub(crate) fn carry_those(
        &mut self,
        walk: &mut dyn Walk,
        carried: impl Fn(&Span) -> bool,
    ) -> Result<()> {
        while walk.step()? == Step::More {
            for span in walk.spans().iter().filter(|span| carried(span)) {
                self.carry(span.start..span.end)?;
            }
        }
        Ok(())
    }

    /// Appends new bytes. `instead` is where the bytes that they replace began in the damaged file. If the same bytes
    /// are there, they are carried.
    ///
    /// # Errors
    /// As [`carry`](Self::carry).
    pub(crate) fn put(&mut self, bytes: &[u8], instead: Option<u64>) -> Result<()> {
        if let Some(start) = instead.filter(|start| *start >= self.carried_to())
            && self.is_at(start, bytes)?
        {
            return self.carry(start..start + bytes.len() as u64);
        }
        self.copy_last()?;
        self.write(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Appends bytes of the front of a file, whose counterparts are at the same offset and before `until`.
    ///
    /// # Errors
    /// As [`carry`](Self::carry).
    pub(crate) fn put_in_front(&mut self, bytes: &[u8], until: u64) -> Result<()> {
        let fits = self.len.saturating_add(bytes.len() as u64) <= until;
        self.put(bytes, Some(self.len).filter(|_| fits))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// As [`carry`](Self::carry).
    pub(crate) fn finish(mut self) -> Result<Carried> {
        self.copy_last()?;
        let flushed = self.out.flush();
        flushed.map_err(|error| self.failed(error))?;
        Ok(Carried {
            runs: self.runs,
            bytes: self.carried,
        })
    }

    /// Where the next run may begin in the damaged file.
    fn carried_to(&self) -> u64 {
        match &self.last {
            Some(last) => last.input_end(),
            None => 0,
        }
    }

    fn is_at(&mut self, start: u64, bytes: &[u8]) -> Result<bool> {
        let end = start.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.source.len()) {
            return Ok(false);
        }
        let window = &mut self.window;
        Ok(window.exact(&*self.source, start, bytes.len(), PIECE_BYTES)? == bytes)
    }

    /// Copies the latest run, unless it is copied already.
    fn copy_last(&mut self) -> Result<()> {
        let Some(run) = self.last.filter(|run| run.len > 0) else {
            return Ok(());
        };
        let (source, options, mut at) = (self.source.clone(), self.options, run.input);
        each_piece(&*source, options, at..run.input_end(), |piece| {
            self.write(piece)?;
            at += piece.len() as u64;
            let surveyed = if self.surveys_first { source.len() } else { at };
            (self.progress)(at / 2 + surveyed / 2)
        })?;
        let bytes = run.to_bytes();
        self.runs.buffer().extend_from_slice(bytes.as_flattened());
        self.runs.flush_if_full()?;
        self.carried += run.len;
        // An empty run remains, to remember how far the file was carried.
        self.last = Some(Run {
            input: run.input_end(),
            output: run.output + run.len,
            len: 0,
        });
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write_all(bytes);
        written.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io(Some(&self.path), "cannot write the recovered file", error)
    }
}

/// Calls `take` with the bytes of a range, piece by piece. Polls for an interrupt before each piece.
///
/// # Errors
/// [`Error::Io`], [`Error::Interrupted`], and those of `take`.
pub(crate) fn each_piece(
    source: &dyn Source,
    options: &Options,
    range: Range<u64>,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (mut at, mut piece) = (range.start, Vec::new());
    while at < range.end {
        options.poll()?;
        let left = saturating_usize(range.end - at);
        piece.resize(left.min(PIECE_BYTES), 0);
        source.read_exact_at(at, &mut piece)?;
        take(&piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Entries of `N` bytes in a spool, one after the other.
pub(crate) struct Entries<const N: usize> {
    source: FileSource,
    window: Window,
    at: u64,
}

impl<const N: usize> Entries<N> {
    /// Begins at the first entry.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn new(aside: &mut Spool) -> Result<Self> {
        Ok(Self {
            source: aside.source()?,
            window: Window::default(),
            at: 0,
        })
    }

    /// The next one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn next(&mut self) -> Result<Option<[u8; N]>> {
        if self.at >= self.source.len() {
            return Ok(None);
        }
        let entry = self
            .window
            .exact_array(&self.source, self.at, PIECE_BYTES)?;
        self.at += N as u64;
        Ok(Some(*entry))
    }
}

/// The result of a salvage.
pub(crate) struct Carried {
    /// The runs in order, as [`Runs`] reads them.
    pub(crate) runs: Spool,
    /// The total length of the runs.
    pub(crate) bytes: u64,
}

/// The runs that were carried over, one after the other.
pub(crate) struct Runs(Entries<RUN_BYTES>);

impl Runs {
    /// Reads what [`Salvage::finish`] returned.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn new(mut runs: Spool) -> Result<Self> {
        Entries::new(&mut runs).map(Self)
    }

    /// The next run.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn next(&mut self) -> Result<Option<Run>> {
        Ok(self.0.next()?.as_ref().map(Run::parse))
    }
}
