//! The window: the range of a source that a walk works on. Each byte is read once, so the returned bytes are those that
//! were hashed. A window also finds where the data of a source ends.

use super::Source;
use crate::bug::OrBug;
use crate::error::Result;
use crate::saturating::saturating_usize;

/// A sliding window over a source. For a source in memory it is a slice. For others it owns a buffer; to load more, the
/// unread tail moves to its front, so no byte is read twice.
#[derive(Debug)]
pub(crate) struct Window {
    start: u64,
    buffer: Vec<u8>,
    /// How many bytes were requested since the last jump.
    run: usize,
    /// Reading ahead stops before this offset.
    ahead_until: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            start: 0,
            buffer: Vec::new(),
            run: 0,
            ahead_until: u64::MAX,
        }
    }
}

/// The smallest read after a jump.
const JUMP_BYTES: usize = 64;
/// How much memory a window keeps after it was cleared.
const KEPT_BYTES: usize = 16 << 10;
/// A read up to this far after the window is not a jump.
const NEAR_BYTES: u64 = 4 << 10;

impl Window {
    /// Sets the limit of reading ahead, as long as no byte past it is requested: those belong to another reader.
    pub(crate) const fn read_ahead_until(&mut self, offset: u64) {
        self.ahead_until = offset;
    }

    /// Makes at least `min` bytes from `at` on available, and reads up to `want` if it must read. The caller ensures
    /// that `at + min` is within the source.
    pub(crate) fn load(
        &mut self,
        source: &dyn Source,
        at: u64,
        min: usize,
        want: usize,
    ) -> Result<()> {
        if source.as_slice().is_some() || self.held(at).len() >= min {
            return Ok(());
        }
        let held = self.held(at).len();
        let up_to = |end: u64| saturating_usize(end.saturating_sub(at));
        let want = want
            .min(if at < self.ahead_until {
                up_to(self.ahead_until)
            } else {
                usize::MAX
            })
            .max(min)
            .min(up_to(source.len()));
        let kept = self.buffer.len() - held;
        self.buffer.copy_within(kept.., 0);
        // Only new bytes are zeroed, because the buffer keeps its size while it slides.
        self.buffer.resize(want, 0);
        self.buffer.shrink_to(want.saturating_mul(2));
        self.start = at;
        let unread = self.buffer.get_mut(held..);
        let unread = unread.or_bug("room for more than was in the window")?;
        let result = source.read_exact_at(at + held as u64, unread);
        if result.is_err() {
            self.buffer.clear();
        }
        result
    }

    /// As [`load`](Self::load), for reading in an order that the file chooses. It reads ahead at most `most` bytes, and
    /// at most as many as were requested since the last jump. So reads stay in proportion to requests.
    pub(crate) fn load_wary(
        &mut self,
        source: &dyn Source,
        at: u64,
        min: usize,
        most: usize,
    ) -> Result<()> {
        if source.as_slice().is_some() {
            return Ok(());
        }
        if self.held(at).len() < min {
            let end = self.start + self.buffer.len() as u64;
            if !(self.start..=end.saturating_add(NEAR_BYTES)).contains(&at) {
                self.run = 0;
            }
            let ahead = self.run.saturating_mul(2).max(JUMP_BYTES).min(most);
            self.load(source, at, min, ahead)?;
        }
        self.run = self.run.saturating_add(min);
        Ok(())
    }

    /// [Loads](Self::load) `len` bytes from `at` on and returns them.
    pub(crate) fn exact<'a>(
        &'a mut self,
        source: &'a dyn Source,
        at: u64,
        len: usize,
        want: usize,
    ) -> Result<&'a [u8]> {
        self.load(source, at, len, want)?;
        let bytes = self.bytes(source, at).get(..len);
        bytes.or_bug("as many bytes as were loaded")
    }

    /// As [`exact`](Self::exact), read as [`load_wary`](Self::load_wary) does.
    pub(crate) fn exact_wary<'a>(
        &'a mut self,
        source: &'a dyn Source,
        at: u64,
        len: usize,
        most: usize,
    ) -> Result<&'a [u8]> {
        self.load_wary(source, at, len, most)?;
        let bytes = self.bytes(source, at).get(..len);
        bytes.or_bug("as many bytes as were loaded")
    }

    /// As [`exact`](Self::exact), for as many bytes as the array has.
    pub(crate) fn exact_array<'a, const N: usize>(
        &'a mut self,
        source: &'a dyn Source,
        at: u64,
        want: usize,
    ) -> Result<&'a [u8; N]> {
        let bytes = self.exact(source, at, N, want)?;
        bytes.first_chunk().or_bug("as many bytes as were loaded")
    }

    /// The available bytes from `at` on. Empty if `at` is outside the window.
    pub(crate) fn bytes<'a>(&'a self, source: &'a dyn Source, at: u64) -> &'a [u8] {
        match source.as_slice() {
            Some(slice) => slice.get(saturating_usize(at)..).unwrap_or_default(),
            None => self.held(at),
        }
    }

    /// Clears the window, and keeps only a little memory for the next reads.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.run = 0;
    }

    fn held(&self, at: u64) -> &[u8] {
        at.checked_sub(self.start)
            .and_then(|skip| self.buffer.get(saturating_usize(skip)..))
            .unwrap_or_default()
    }
}

const PIECE_BYTES: usize = 1 << 20;

/// The `N` bytes at `at`. The caller makes sure that they are within the source.
pub(crate) fn read_array<const N: usize>(source: &dyn Source, at: u64) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    source.read_exact_at(at, &mut bytes)?;
    Ok(bytes)
}

/// The offset after the last byte that is not zero. Reads backwards from the end, piece by piece, and calls `poll`
/// before each.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), and those of `poll`.
pub(crate) fn data_end(source: &dyn Source, poll: impl FnMut() -> Result<()>) -> Result<u64> {
    data_end_after(source, 0, poll)
}

/// The same, without looking at what is before `first`; `first` if all bytes from there on are zero.
///
/// # Errors
/// As [`data_end`].
pub(crate) fn data_end_after(
    source: &dyn Source,
    first: u64,
    mut poll: impl FnMut() -> Result<()>,
) -> Result<u64> {
    let mut window = Window::default();
    let mut end = source.len();
    while end > first {
        poll()?;
        let piece = saturating_usize(end - first).min(PIECE_BYTES);
        let start = end - piece as u64;
        let bytes = window.exact(source, start, piece, piece)?;
        match data_len(bytes) {
            0 => {}
            len => return Ok(start + len as u64),
        }
        end = start;
    }
    Ok(first)
}

/// The length of bytes without zeros at their end.
pub(super) fn data_len(bytes: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let mut end = bytes.len();
    for block in bytes.rchunks(BLOCK) {
        // Folding uses whole vectors. Only the one block with a nonzero byte is searched byte by byte.
        if block.iter().fold(0, |all, byte| all | byte) != 0 {
            let zeros = block.iter().rev().take_while(|byte| **byte == 0).count();
            return end - zeros;
        }
        end -= block.len();
    }
    end
}
