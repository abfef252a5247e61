//! The good part of a damaged file, on its way to a new one: what every format's `salvage` writes through.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Options, Step, Walk};
use crate::cursor::fields;
use crate::error::{Error, Result};
use crate::output::Spool;
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source, Window};

/// How much is copied between two looks at whether to stop.
const PIECE_BYTES: usize = 1 << 20;
/// A run as it is put aside: three `u64`.
const RUN_BYTES: usize = 24;

/// Writes what is good of a file to a new one.
pub(crate) type SalvageFile = fn(&mut Salvage<'_>) -> Result<()>;

/// Bytes that the file and the one made of it have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where they begin in the file.
    pub(crate) input: u64,
    /// Where they begin in the new file.
    pub(crate) output: u64,
    pub(crate) len: u64,
}

impl Run {
    /// Where they end in the file.
    pub(crate) const fn input_end(&self) -> u64 {
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

/// A new file that is being made of what is good of another, from its beginning to its end.
///
/// It keeps account of where each byte that it carries over has gone, so that whoever has this file and the bytes that were
/// left behind can put the first one together again. Runs that touch in both files become one and are copied at once.
pub(crate) struct Salvage<'a> {
    source: Arc<dyn Source>,
    options: &'a Options,
    renumber: bool,
    out: &'a mut dyn Write,
    /// What the new file will be called, for errors, and for the folder in which things are put aside.
    path: PathBuf,
    /// The length of the new file so far, with the run that is not copied yet.
    len: u64,
    /// The run that came last, which the next one may lengthen.
    last: Option<Run>,
    runs: Spool,
    /// How many bytes the runs have.
    carried: u64,
    window: Window,
    /// The file is looked at once before anything of it is copied.
    looks_first: bool,
    progress: &'a mut dyn FnMut(u64) -> Result<()>,
}

impl<'a> Salvage<'a> {
    /// Begins the file that will be `path` by writing it to `out`. `progress` is told how many bytes of the source are done.
    ///
    /// # Errors
    /// [`Error::Io`] where nothing can be put aside in its folder.
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
            runs: Spool::create(path)?,
            carried: 0,
            window: Window::default(),
            looks_first: false,
            progress,
        })
    }

    /// Tells how far the file has been looked at, by those that do that before they copy anything of it.
    pub(crate) fn looked(&mut self, offset: u64) -> Result<()> {
        self.looks_first = true;
        (self.progress)(offset / 2)
    }

    /// The file.
    pub(crate) fn source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    /// How it is read: whatever its damage, without bodies.
    pub(crate) const fn options(&self) -> &'a Options {
        self.options
    }

    /// Whether messages may get other numbers where one in front of them is lost.
    pub(crate) const fn renumbers(&self) -> bool {
        self.renumber
    }

    /// A place for what is known before it is its turn.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn aside(&self) -> Result<Spool> {
        Spool::create(&self.path)
    }

    /// Appends bytes of the file as they are. What is carried over ascends.
    ///
    /// # Errors
    /// [`Error::Io`], also where the ranges do not ascend, which they do in a file that nobody changes meanwhile;
    /// [`Error::Interrupted`].
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

    /// Carries over what a walk from the beginning of the file finds sound.
    ///
    /// # Errors
    /// As [`carry`](Self::carry) and [`Walk::step`].
    pub(crate) fn carry_sound(&mut self, walk: &mut dyn Walk) -> Result<()> {
        while walk.step()? == Step::More {
            for span in walk.spans().iter().filter(|span| !span.is_damage()) {
                self.carry(span.start..span.end)?;
            }
        }
        Ok(())
    }

    /// Appends bytes that are new, `instead` saying where their like began in the file. Where it stands there just so, it is
    /// carried over.
    ///
    /// # Errors
    /// As [`carry`](Self::carry).
    pub(crate) fn put(&mut self, bytes: &[u8], instead: Option<u64>) -> Result<()> {
        if let Some(start) = instead.filter(|start| *start >= self.carried_to())
            && self.stands_at(start, bytes)?
        {
            return self.carry(start..start + bytes.len() as u64);
        }
        self.copy_last()?;
        self.write(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Appends bytes of the front of a file, whose like stood at the same place, in front of `until`.
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

    /// Where the next run can begin.
    fn carried_to(&self) -> u64 {
        self.last.as_ref().map_or(0, Run::input_end)
    }

    fn stands_at(&mut self, start: u64, bytes: &[u8]) -> Result<bool> {
        let end = start.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.source.len()) {
            return Ok(false);
        }
        self.window
            .load(&*self.source, start, bytes.len(), PIECE_BYTES)?;
        Ok(self.window.bytes(&*self.source, start).starts_with(bytes))
    }

    /// Copies the run that came last, unless that has been done.
    fn copy_last(&mut self) -> Result<()> {
        let Some(run) = self.last.filter(|run| run.len > 0) else {
            return Ok(());
        };
        let (source, options, mut at) = (self.source.clone(), self.options, run.input);
        each_piece(&*source, options, at..run.input_end(), |piece| {
            self.write(piece)?;
            at += piece.len() as u64;
            let looked = if self.looks_first { source.len() } else { at };
            (self.progress)(at / 2 + looked / 2)
        })?;
        let bytes = run.to_bytes();
        self.runs.buffer().extend_from_slice(bytes.as_flattened());
        self.runs.flush_if_full()?;
        self.carried += run.len;
        // What is left of it says up to where the file has been carried over.
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
        Error::io(
            Some(&self.path),
            format!("cannot write the {} bytes so far", self.len),
            error,
        )
    }
}

/// Gives `take` the bytes of a range piece by piece, with a look at whether to stop before each.
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

/// Entries of `N` bytes that were put aside, one after the other.
pub(crate) struct Entries<const N: usize> {
    source: FileSource,
    window: Window,
    at: u64,
}

impl<const N: usize> Entries<N> {
    /// From the first on.
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

/// What was carried over.
pub(crate) struct Carried {
    /// In order, as [`Runs`] reads them.
    pub(crate) runs: Spool,
    /// How many bytes they have.
    pub(crate) bytes: u64,
}

/// The runs that were carried over, one after the other.
pub(crate) struct Runs(Entries<RUN_BYTES>);

impl Runs {
    /// Of what [`Salvage::finish`] gave.
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
