//! Emits the records of a verified chunk, a bounded number at a time.

use super::layout::{Header, RECORD_HEADER_BYTES, decode_record};
use super::payload::Content;
use super::records::{Bounds, ContentRecord};
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::walk::stream::Input;

/// A verified chunk whose records are being emitted.
pub(super) struct Emitting {
    pub(super) position: u64,
    pub(super) header: Header,
    /// How many of its records are done.
    pub(super) done: u64,
    /// How many were done when this began. They are skipped.
    skipped: u64,
    /// Where the next record begins in the buffered content.
    next: usize,
}

impl Emitting {
    /// For a chunk whose content is in the buffer.
    pub(super) const fn new(position: u64, header: Header) -> Self {
        Self {
            position,
            header,
            done: 0,
            skipped: 0,
            next: 0,
        }
    }

    /// Skips this many records, which were emitted before.
    pub(super) const fn skip(&mut self, records: u64) {
        self.skipped = records;
    }

    /// Whether all records are done.
    pub(super) const fn is_done(&self) -> bool {
        self.done >= self.header.records as u64
    }

    /// Makes `rows` the next records that match the filter, as positions in `content`. Empty if there are no more.
    pub(super) fn next(
        &mut self,
        input: &Input,
        bounds: &Bounds,
        content: &Content,
        rows: &mut Vec<ContentRecord>,
    ) -> Result<()> {
        rows.clear();
        if !bounds.overlaps(self.header.start, self.header.end()) {
            self.done = self.header.records.into();
        }
        let mut bytes = 0;
        while rows.len() < LIMITS.chunked_step_rows && !self.is_done() {
            let header = content.bytes.get(self.next..).and_then(<[u8]>::first_chunk);
            let header = header.or_bug("as many records as were counted")?;
            let (timestamp, parsed) = decode_record(header);
            let number = saturating_usize(self.done);
            let len = content.lengths.get(number).copied().unwrap_or(parsed);
            let offset = self.header.start.saturating_add_unsigned(self.done);
            let wanted = self.done >= self.skipped && bounds.contains(offset, timestamp);
            let start = self.next + RECORD_HEADER_BYTES;
            let mut taken = 0;
            if wanted && input.options.values {
                match self.room(input, offset, len, rows.is_empty(), &mut bytes)? {
                    Some(len) => taken = len,
                    None => return Ok(()),
                }
            }
            self.next = start.saturating_add(saturating_usize(len));
            if wanted {
                rows.push(ContentRecord {
                    offset,
                    timestamp,
                    start,
                    len: taken,
                });
            }
            self.done += 1;
        }
        Ok(())
    }

    /// The length of the next record's body, which matches the filter. `None` if it is left to the next step.
    /// `bytes` is the total length of this step's bodies.
    fn room(
        &self,
        input: &Input,
        offset: i64,
        len: u32,
        is_first: bool,
        bytes: &mut usize,
    ) -> Result<Option<usize>> {
        let needed = u64::from(len) + RECORD_HEADER_BYTES as u64;
        let too_large = needed > input.options.record_bytes;
        let len = saturating_usize(len);
        *bytes += len;
        if !is_first && (too_large || *bytes > LIMITS.chunked_step_bytes) {
            return Ok(None);
        }
        if too_large {
            let what = format!(
                "the record of message offset {offset} in the chunk at offset {}",
                self.position
            );
            return Err(Error::record_too_large(
                input.source.path(),
                what,
                needed,
                input.options.record_bytes,
            ));
        }
        Ok(Some(len))
    }
}
