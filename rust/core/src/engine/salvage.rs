//! Copies the sound parts of a damaged file to a new one: what every format's `salvage` writes through.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ledger::Span;
use crate::output::Spool;
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source, Window};
use crate::walk::{Options, Step, Walk};

/// How much is copied between two polls for an interrupt.
const PIECE_BYTES: usize = 1 << 20;

/// Writes the sound parts of a file to a new one.
///
/// # Errors
/// - [`Error::Usage`] if the remaining bytes would change their meaning.
/// - [`Error::Io`] if the new file cannot be written.
/// - Those of [`Walk::step`].
pub(crate) type SalvageFile = fn(&mut Salvage<'_>) -> Result<()>;

/// What a salvage fills: the new file, with what is kept of the damaged one beside it.
pub(crate) trait Fill {
    /// Copies a range of the damaged file to the end of the new one. Ranges ascend.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Interrupted`].
    fn carry(&mut self, range: Range<u64>) -> Result<()>;

    /// Appends new bytes to the new file.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn put(&mut self, bytes: &[u8]) -> Result<()>;

    /// Reports how far the damaged file was surveyed, before anything is filled.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    fn surveyed(&mut self, offset: u64) -> Result<()>;
}

/// A new file with the sound parts of a damaged one, written from its beginning to its end.
///
/// Ranges that touch in both files are merged and copied at once.
pub(crate) struct Salvage<'a> {
    source: Arc<dyn Source>,
    options: &'a Options,
    renumber: bool,
    to: &'a mut dyn Fill,
    /// The path of the new file, for the folder of spools.
    path: &'a Path,
    /// The length of the new file so far, including the pending range.
    len: u64,
    /// The latest range, which is not copied yet and which the next one may extend. The next one may not begin before its end.
    pending: Range<u64>,
    window: Window,
}

impl<'a> Salvage<'a> {
    /// Begins the file that will be `path`.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        options: &'a Options,
        renumber: bool,
        path: &'a Path,
        to: &'a mut dyn Fill,
    ) -> Self {
        Self {
            source,
            options,
            renumber,
            to,
            path,
            len: 0,
            pending: 0..0,
            window: Window::default(),
        }
    }

    /// Reports how far the file was surveyed, for formats that do that before they copy.
    pub(crate) fn surveyed(&mut self, offset: u64) -> Result<()> {
        self.to.surveyed(offset)
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
        Spool::create(self.options.on(), self.path)
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
        if range.start < self.pending.end || range.end > self.source.len() {
            return Err(Error::changed(self.source.path(), "it"));
        }
        if range.start > self.pending.end {
            self.copy_pending()?;
            self.pending.start = range.start;
        }
        self.pending.end = range.end;
        self.len += range.end - range.start;
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
        if let Some(start) = instead.filter(|start| *start >= self.pending.end)
            && self.is_at(start, bytes)?
        {
            return self.carry(start..start + bytes.len() as u64);
        }
        self.copy_pending()?;
        self.len += bytes.len() as u64;
        self.to.put(bytes)
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
    pub(crate) fn finish(mut self) -> Result<()> {
        self.copy_pending()
    }

    fn is_at(&mut self, start: u64, bytes: &[u8]) -> Result<bool> {
        let end = start.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.source.len()) {
            return Ok(false);
        }
        let window = &mut self.window;
        Ok(window.exact(&*self.source, start, bytes.len(), PIECE_BYTES)? == bytes)
    }

    /// Copies the pending range, if there is one.
    fn copy_pending(&mut self) -> Result<()> {
        let Range { start, end } = self.pending;
        self.pending.start = end;
        if start == end {
            return Ok(());
        }
        self.to.carry(start..end)
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
