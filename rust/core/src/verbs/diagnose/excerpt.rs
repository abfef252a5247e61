//! The bytes of a damaged range and around it, read once.

use std::ops::Range;

use crate::error::Result;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// How many bytes of a range are read.
const MAX_WITHIN_BYTES: u64 = 256 << 10;
/// How many bytes are read on either side: sectors are seldom moved or copied further.
const AROUND_BYTES: u64 = 128 << 10;

/// Bytes of a file and their offset.
pub(super) struct Excerpt {
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
}

impl Excerpt {
    /// Reads the beginning of a range and the bytes around it.
    pub(super) fn around(source: &dyn Source, span: &Span) -> Result<Self> {
        let start = span.start.saturating_sub(AROUND_BYTES);
        let end = span
            .start
            .saturating_add(span.len().min(MAX_WITHIN_BYTES) + AROUND_BYTES);
        let len = end.min(source.len()).saturating_sub(start);
        let mut bytes = vec![0; saturating_usize(len)];
        source.read_exact_at(start, &mut bytes)?;
        Ok(Self { start, bytes })
    }

    /// The end of the bytes, as an offset in the file.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The bytes of a range of the file, as far as they were read. Empty if the range ends before it begins.
    pub(super) fn get(&self, range: Range<u64>) -> &[u8] {
        let place = |at: u64| {
            let place = at.clamp(self.start, self.end()) - self.start;
            saturating_usize(place)
        };
        let range = place(range.start)..place(range.end);
        self.bytes.get(range).unwrap_or_default()
    }

    /// The bytes of a damaged range, as far as they were read.
    pub(super) fn of(&self, span: &Span) -> &[u8] {
        self.get(span.start..span.end)
    }
}
