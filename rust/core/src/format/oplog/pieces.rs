//! Messages that are read in pieces: before memory is allocated for large ones, and ahead of the walk.

use super::layout::compact::{Bytes, Reader};
use crate::bug::OrBug;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::source::{Source, Window};
use crate::walk::Options;

/// The bytes of a source from an offset on, through a window that is reused, so that adjacent short messages are
/// read once.
pub(super) struct Pieces<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) options: &'a Options,
    pub(super) window: &'a mut Window,
    /// Where the message begins, in bytes from the beginning of the file.
    pub(super) start: u64,
}

impl<'a> Pieces<'a> {
    /// A reader of the message of `len` bytes that begins there. The source must have all of them.
    pub(super) const fn reader(self, len: u64) -> Reader<Pieces<'a>> {
        Reader::new(self, 0, len)
    }

    /// The bytes from here on, at least `min` of them.
    pub(super) fn load(&mut self, at: u64, min: usize) -> Result<&[u8]> {
        let offset = self.start.saturating_add(at);
        if self.window.bytes(self.source, offset).len() < min {
            self.options.poll()?;
            self.window
                .load(self.source, offset, min, LIMITS.oplog_piece_bytes)?;
        }
        Ok(self.window.bytes(self.source, offset))
    }
}

impl Bytes for Pieces<'_> {
    fn run(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let bytes = self.load(at, len)?;
        bytes.get(..len).or_bug("as many bytes as were loaded")
    }
}
