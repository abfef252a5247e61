//! What a scan of a sequence of units reads, and its search for the next unit.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::{Eof, Options};
use crate::error::{Finding, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Bound, Source, Window, data_end};

/// What a scan reads: the only place where a scan's bytes come from. A format asks for ranges, and is fed them.
pub(crate) struct Input {
    pub(super) source: Arc<dyn Source>,
    pub(crate) options: Options,
    /// Where the scan is. It holds the step's records.
    pub(super) window: Window,
    /// What is read ahead of that, by searches and to judge a unit that the window does not hold.
    ahead: Window,
    /// Pieces of units that are read once.
    pieces: Window,
    /// What follows candidates of searches.
    looks: Window,
    /// How far the units have to reach, in a file of a log.
    pub(crate) bound: Option<Bound>,
    data_end: DataEnd,
}

impl Input {
    pub(crate) fn new(source: Arc<dyn Source>, options: Options) -> Self {
        Self {
            bound: source.bound(),
            source,
            options,
            window: Window::default(),
            ahead: Window::default(),
            pieces: Window::default(),
            looks: Window::default(),
            data_end: DataEnd::default(),
        }
    }

    /// The length of the file in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.source.len()
    }

    /// The path or name of the file, for errors.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.source.path()
    }

    /// The bytes of the window from `at` on.
    pub(crate) fn bytes(&self, at: u64) -> &[u8] {
        self.window.bytes(&*self.source, at)
    }

    /// At least `min` bytes from `at` on. The caller makes sure that the file has them.
    pub(crate) fn load(&mut self, at: u64, min: usize) -> Result<&[u8]> {
        self.load_up_to(at, min, self.options.window_bytes)
    }

    /// The same, reading up to `want` bytes if it must read.
    pub(super) fn load_up_to(&mut self, at: u64, min: usize, want: usize) -> Result<&[u8]> {
        self.window.load(&*self.source, at, min, want)?;
        Ok(self.bytes(at))
    }

    /// Reads the window ahead up to this offset only, as long as nothing past it is asked for.
    pub(crate) const fn read_ahead_until(&mut self, offset: u64) {
        self.window.read_ahead_until(offset);
    }

    /// At least `min` bytes from `at` on, and the window stays where it is. Reads up to `want` bytes if it must read. The caller makes
    /// sure that the file has them.
    pub(crate) fn ahead(&mut self, at: u64, min: usize, want: usize) -> Result<&[u8]> {
        if self.bytes(at).len() >= min {
            return Ok(self.bytes(at));
        }
        if self.ahead.bytes(&*self.source, at).len() < min {
            self.options.poll()?;
            self.ahead.load(&*self.source, at, min, want)?;
        }
        Ok(self.ahead.bytes(&*self.source, at))
    }

    /// The `len` bytes from `at` on, if the window has them or they were read ahead.
    pub(crate) fn seen(&self, at: u64, len: usize) -> Option<&[u8]> {
        let held = self.bytes(at).get(..len);
        held.or_else(|| self.ahead.bytes(&*self.source, at).get(..len))
    }

    /// Passes the bytes of a range to `take`, a piece after the other: a length that the file states costs no memory.
    pub(crate) fn pieces(&mut self, range: Range<u64>, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            if at > range.start {
                self.options.poll()?;
            }
            let piece = saturating_usize(range.end - at).min(LIMITS.search_piece_bytes);
            match self.seen(at, piece) {
                Some(bytes) => take(bytes),
                None => take(self.pieces.exact(&*self.source, at, piece, piece)?),
            }
            at += piece as u64;
        }
        Ok(())
    }

    /// The bytes from `at` on, after a candidate of a search: `min` of them, or the rest of the file. Neighbouring candidates share what
    /// is read.
    pub(crate) fn look(&mut self, at: u64, min: usize) -> Result<&[u8]> {
        let left = self.len() - at;
        if self.looks.bytes(&*self.source, at).len() < saturating_usize(left).min(min) {
            let skip = at % LIMITS.look_piece_bytes;
            let want = saturating_usize((skip + LIMITS.look_piece_bytes).min(skip + left));
            self.looks.load(&*self.source, at - skip, want, want)?;
        }
        Ok(self.looks.bytes(&*self.source, at))
    }

    /// The `N` bytes at `at`, which are read by themselves unless they were seen.
    pub(crate) fn array<const N: usize>(&self, at: u64) -> Result<[u8; N]> {
        if let Some(bytes) = self.seen(at, N).and_then(<[u8]>::first_chunk) {
            return Ok(*bytes);
        }
        let mut bytes = [0; N];
        self.source.read_exact_at(at, &mut bytes)?;
        Ok(bytes)
    }

    /// The offset after the last nonzero byte of the file.
    pub(crate) fn data_end(&self) -> Result<u64> {
        self.data_end.of(&*self.source, &self.options)
    }

    /// The file, for what is read of it by itself, or on first use: by then the scan may have gone on.
    pub(crate) const fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Whether what is wrong at an offset is damage.
    pub(super) fn counts(&self, at: u64) -> bool {
        self.bound.is_none_or(|bound| bound.counts(at))
    }

    /// Whether damage at an offset ends a walk.
    pub(crate) fn raises(&self, at: u64) -> bool {
        self.options.strict && self.counts(at)
    }

    /// What is missing from an offset on, if the file ends before what it has to reach.
    pub(super) fn cut_at(&self, at: u64) -> Option<Finding> {
        let len = self.len();
        let is_cut = |bound: &Bound| at < bound.offset && len < bound.offset;
        Some(self.bound.filter(is_cut)?.cut(len))
    }

    pub(crate) fn is_growing(&self) -> bool {
        self.options.eof == Eof::Growing
    }
}

/// The offset after the last nonzero byte of a file. Found once, on first use.
#[derive(Debug, Default)]
pub(crate) struct DataEnd(OnceLock<u64>);

impl DataEnd {
    /// That offset in `source`, which must be the same each time.
    pub(crate) fn of(&self, source: &dyn Source, options: &Options) -> Result<u64> {
        if let Some(end) = self.0.get() {
            return Ok(*end);
        }
        let end = data_end(source, || options.poll())?;
        Ok(*self.0.get_or_init(|| end))
    }
}

/// A search for what may be the header of a unit, byte by byte or where units may begin.
pub(crate) struct Search {
    /// Where it goes on.
    pub(crate) at: u64,
    /// No header begins from here on.
    end: u64,
    polled: u64,
    want: usize,
}

impl Search {
    /// Searches from one offset to another.
    pub(crate) const fn new(at: u64, end: u64) -> Self {
        Self {
            at,
            end,
            polled: at,
            want: LIMITS.first_search_piece_bytes,
        }
    }

    /// The next place where `find` finds something, and what it found; the search goes on `step` bytes later. `find` gets bytes of which
    /// the first few are places, how many, and how many bytes the file has from the first on. After each place there is the longest
    /// `header`, or the rest of the file.
    pub(crate) fn next<T>(
        &mut self,
        input: &mut Input,
        header: usize,
        step: usize,
        find: impl Fn(&[u8], usize, u64) -> Option<(usize, T)>,
    ) -> Result<Option<(u64, T)>> {
        while self.at < self.end {
            if self.at >= self.polled {
                input.options.poll()?;
                self.polled = self.at + LIMITS.search_piece_bytes as u64;
            }
            let left = input.len() - self.at;
            let bytes = input.ahead(self.at, saturating_usize(left).min(header), self.want)?;
            // A header may continue in the next bytes, so the last bytes are searched again together with those.
            let whole = match bytes.len() as u64 == left {
                true => bytes.len(),
                false => bytes.len() - header + 1,
            };
            let places = whole.min(LIMITS.search_piece_bytes);
            if let Some((place, found)) = find(bytes, places, left) {
                let at = self.at + place as u64;
                self.at = at + step as u64;
                return Ok(Some((at, found)));
            }
            self.at += places.next_multiple_of(step) as u64;
            self.want = LIMITS.search_piece_bytes.min(self.want * 2);
        }
        Ok(None)
    }
}
