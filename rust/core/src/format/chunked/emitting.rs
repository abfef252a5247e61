//! Emits the records of a verified chunk, a bounded number at a time.

use super::layout::{HEADER_BYTES, Header, RECORD_HEADER_BYTES, decode_record};
use super::payload::{Decoding, Input, Piece, Pieces};
use super::records::{Bounds, Place};
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;

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
    /// How many bytes of the buffered content are verified.
    proven: usize,
    /// How many bytes of an unwanted body are still to be skipped.
    to_skip: u64,
    second: Option<SecondPass>,
}

/// A content that is decoded again because it was too large to keep. Each piece must be what it was in the first
/// pass.
struct SecondPass {
    decoding: Decoding,
    expected: Vec<u64>,
    seen: Pieces,
    /// Where the buffered content begins in the whole content.
    base: u64,
}

impl Emitting {
    /// For a chunk whose content is in the buffer.
    pub(super) const fn whole(position: u64, header: Header, content: &[u8]) -> Self {
        Self {
            position,
            header,
            done: 0,
            skipped: 0,
            next: 0,
            proven: content.len(),
            to_skip: 0,
            second: None,
        }
    }

    /// For a chunk whose content's pieces have these hashes.
    pub(super) fn large(
        input: &mut Input,
        position: u64,
        header: Header,
        expected: Vec<u64>,
    ) -> Result<Self> {
        let start = position + HEADER_BYTES as u64;
        let Ok(decoding) = Decoding::begin(input, start, header.payload_end(position))? else {
            return Err(input.changed(position));
        };
        let second = SecondPass {
            decoding,
            expected,
            seen: Pieces::new(input.buffered_bytes()),
            base: 0,
        };
        Ok(Self {
            second: Some(second),
            ..Self::whole(position, header, &[])
        })
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
        input: &mut Input,
        bounds: &Bounds,
        content: &mut Vec<u8>,
        rows: &mut Vec<Place>,
    ) -> Result<()> {
        rows.clear();
        if !bounds.overlaps(self.header.start, self.header.end()) {
            self.done = self.header.records.into();
        }
        loop {
            self.take_records(input, bounds, content, rows)?;
            if self.is_done() || !rows.is_empty() {
                return Ok(());
            }
            self.decode_more(input, content)?;
        }
    }

    /// Collects the records that are whole in the buffered content.
    fn take_records(
        &mut self,
        input: &Input,
        bounds: &Bounds,
        content: &[u8],
        rows: &mut Vec<Place>,
    ) -> Result<()> {
        let proven = content.get(..self.proven);
        let content = proven.or_bug("as much content as is known to be right")?;
        let mut bytes = 0;
        while rows.len() < LIMITS.chunked_step_rows && !self.is_done() {
            if self.to_skip > 0 {
                let pass = saturating_usize(self.to_skip);
                let pass = pass.min(content.len() - self.next.min(content.len()));
                self.next += pass;
                self.to_skip -= pass as u64;
            }
            let Some(header) = content.get(self.next..).and_then(<[u8]>::first_chunk) else {
                return Ok(());
            };
            let (timestamp, parsed) = decode_record(header);
            let number = saturating_usize(self.done);
            let len = input.lengths.get(number).copied().unwrap_or(parsed);
            let offset = self.header.start.saturating_add_unsigned(self.done);
            let wanted = self.done >= self.skipped && bounds.contains(offset, timestamp);
            let start = self.next + RECORD_HEADER_BYTES;
            let mut taken = 0;
            if wanted && input.options.values {
                let room = self.room(input, offset, len, rows.is_empty(), &mut bytes)?;
                match room.filter(|len| content.len() - start >= *len) {
                    Some(len) => (taken, self.next) = (len, start + len),
                    None => return Ok(()),
                }
            } else {
                (self.next, self.to_skip) = (start, len.into());
            }
            if wanted {
                rows.push(Place {
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

    /// Decodes the next piece in the second pass. Drops the content of records that are done.
    fn decode_more(&mut self, input: &mut Input, content: &mut Vec<u8>) -> Result<()> {
        let position = self.position;
        // The first pass counted the records, so those of a buffered content cannot end early.
        let Some(second) = &mut self.second else {
            return Err(input.changed(position));
        };
        content.drain(..self.next.min(content.len()));
        second.base += self.next as u64;
        (self.next, self.proven) = (0, 0);
        content.shrink_to(
            LIMITS
                .second_pass_bytes
                .max(content.len().saturating_mul(2)),
        );
        content.reserve(LIMITS.second_pass_bytes);
        let before = content.len();
        let piece = second.decoding.more(input, content)?;
        let fresh = content.get(before..);
        second.seen.take(fresh.or_bug("content that only grows")?);
        let mut complete = second.seen.complete();
        match piece {
            Piece::More => {}
            Piece::End => {
                second.seen.finish();
                complete = second.base + content.len() as u64;
            }
            Piece::Bad(_) => return Err(input.changed(position)),
        }
        let seen = &second.seen.hashes;
        if second.expected.get(..seen.len()) != Some(seen) {
            return Err(input.changed(position));
        }
        // Only whole pieces are proven. If a frame ends before its records do, the file has changed.
        let ended_early = matches!(piece, Piece::End) && seen.len() < second.expected.len();
        let proven = saturating_usize(complete.saturating_sub(second.base));
        self.proven = proven.min(content.len());
        if ended_early {
            return Err(input.changed(position));
        }
        Ok(())
    }
}
