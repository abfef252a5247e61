//! The bytes of a damaged range and around it, read once.

use std::ops::Range;

use crate::error::Result;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// How much of a range is looked at, in bytes.
const MAX_WITHIN_BYTES: u64 = 256 << 10;
/// How much is looked at on either side: sectors are seldom moved or copied further.
const AROUND_BYTES: u64 = 128 << 10;

/// Bytes of a file, and where they stand.
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
    /// The length of the file.
    pub(super) file_len: u64,
}

impl Region {
    /// The beginning of a range, and what is around it.
    pub(super) fn around(source: &dyn Source, span: &Span) -> Result<Self> {
        let file_len = source.len();
        let start = span.start.saturating_sub(AROUND_BYTES);
        let end = span
            .start
            .saturating_add(span.len().min(MAX_WITHIN_BYTES) + AROUND_BYTES);
        let len = end.min(file_len).saturating_sub(start);
        let mut bytes = vec![0; saturating_usize(len)];
        source.read_exact_at(start, &mut bytes)?;
        Ok(Self {
            start,
            bytes,
            file_len,
        })
    }

    /// Where the bytes end.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The bytes of a range of the file, as far as they are here; none of a range that ends before it begins.
    pub(super) fn get(&self, range: Range<u64>) -> &[u8] {
        let place = |at: u64| {
            let place = at.clamp(self.start, self.end()) - self.start;
            saturating_usize(place)
        };
        let range = place(range.start)..place(range.end);
        self.bytes.get(range).unwrap_or_default()
    }

    /// What of a damaged range is here.
    pub(super) fn of(&self, span: &Span) -> &[u8] {
        self.get(span.start..span.end)
    }
}
