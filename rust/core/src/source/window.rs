//! The stretch of a source that a walk works on. Each byte is read once: what was hashed is what is returned.

use super::Source;
use crate::bug::OrBug;
use crate::error::Result;
use crate::saturating::saturating_usize;

/// A sliding window over a source. For sources in memory it is a plain slice; for others it owns a buffer whose unread
/// tail moves to its front when more is wanted, so no byte is read twice.
#[derive(Debug)]
pub(crate) struct Window {
    start: u64,
    buffer: Vec<u8>,
    /// How many bytes were asked for since reading last jumped.
    run: usize,
    /// Reading ahead stops in front of this offset.
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

/// The least that is read at once where reading jumps to and fro.
const JUMP_BYTES: usize = 64;
/// How much memory a window keeps that was forgotten.
const KEPT_BYTES: usize = 16 << 10;
/// Reading that goes on so near behind what is held does not jump.
const NEAR_BYTES: u64 = 4 << 10;

impl Window {
    /// Reads ahead up to this offset, and no further as long as nothing behind it is asked for: that belongs to somebody else.
    pub(crate) const fn read_ahead_until(&mut self, offset: u64) {
        self.ahead_until = offset;
    }

    /// Makes at least `min` bytes from `at` on available, reading up to `want` where it has to read at all.
    /// The caller has made sure that `at + min` is within the source.
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
        // Zeroing only what grows: the buffer keeps its size while it slides.
        self.buffer.resize(want, 0);
        self.buffer.shrink_to(want.saturating_mul(2));
        self.start = at;
        let unread = self.buffer.get_mut(held..);
        let unread = unread.or_bug("room for more than was held")?;
        let result = source.read_exact_at(at + held as u64, unread);
        if result.is_err() {
            self.buffer.clear();
        }
        result
    }

    /// As [`load`](Self::load), for reading in an order that the file chooses: reads ahead, up to `most` bytes, only as much
    /// as was asked for since reading last jumped. So what is read stays in proportion to what is asked for.
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

    /// [Loads](Self::load) `len` bytes from `at` on, and gives just these.
    pub(crate) fn exact<'a>(
        &'a mut self,
        source: &'a dyn Source,
        at: u64,
        len: usize,
        want: usize,
    ) -> Result<&'a [u8]> {
        self.load(source, at, len, want)?;
        self.bytes(source, at)
            .get(..len)
            .or_bug("as many bytes as were loaded")
    }

    /// As [`exact`](Self::exact), of as many bytes as the array has.
    pub(crate) fn exact_array<'a, const N: usize>(
        &'a mut self,
        source: &'a dyn Source,
        at: u64,
        want: usize,
    ) -> Result<&'a [u8; N]> {
        self.load(source, at, N, want)?;
        self.bytes(source, at)
            .first_chunk()
            .or_bug("as many bytes as were loaded")
    }

    /// The bytes from `at` on that are available: none where `at` is elsewhere.
    pub(crate) fn bytes<'a>(&'a self, source: &'a dyn Source, at: u64) -> &'a [u8] {
        match source.as_slice() {
            Some(slice) => slice.get(saturating_usize(at)..).unwrap_or_default(),
            None => self.held(at),
        }
    }

    /// Forgets what was read, and keeps no more memory than it takes to read a little again.
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
