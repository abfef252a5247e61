//! What a damaged range of a log may have been: a chunk's header, its payload, padding.

use std::ops::Range;
use std::sync::Arc;

use super::judge::{self, Head, structure};
use super::layout::{ALIGNMENT, HEADER_BYTES, Header, Item, align};
use super::payload::{Content, check};
use super::{LIMIT_BYTES, hop, index};
use crate::engine::candidate::{
    Candidate, Candidates, MAX_TRIED_BYTES, Misplaced, Trial, read_piece,
};
use crate::error::{Error, Result};
use crate::ledger::{Cause, Span};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{BytesSource, Source};
use crate::walk::Options;
use crate::walk::input::Input;

/// The maximum content of a chunk whose payload is tried, in bytes.
const MAX_CONTENT_BYTES: u64 = 1 << 20;
/// The descriptor of a zstd frame, which says what the following bytes mean. If a flip turns a wrong content size
/// into a window size, which is never wrong, the frame decodes as well.
const DESCRIPTOR: Range<usize> = 4..5;
/// How far from where it belongs a chunk is looked for.
const MAX_SHIFTED_BYTES: u64 = 512 << 10;
/// The minimum cost of a trial, as decoded bytes: after an error, zstd does not say how much it had decoded.
const LEAST_WORK: u64 = 2 << 10;

pub(super) struct Chunked {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
}

impl Candidates for Chunked {
    fn candidates(&mut self, span: &Span) -> Result<Vec<Candidate>> {
        if span.cause == Some(Cause::NonzeroPadding) {
            return Ok(vec![Candidate::zeros("padding", span.start..span.end)]);
        }
        let (at, len) = (span.start, self.source.len());
        if len.saturating_sub(at) < HEADER_BYTES as u64 {
            return Ok(Vec::new());
        }
        let mut candidates = Vec::new();
        match hop::read(&*self.source, at)?.verified() {
            Some(header) => {
                let end = header.payload_end(at);
                if u64::from(header.length) <= MAX_CONTENT_BYTES && end <= len {
                    candidates.push(self.payload(header, at, end)?);
                }
            }
            None => candidates.push(header_candidate(at, len)),
        }
        if span.len() <= MAX_TRIED_BYTES && !at.is_multiple_of(ALIGNMENT) {
            candidates.push(Candidate::zeros("padding", span.start..span.end));
        }
        Ok(candidates)
    }

    fn misplaced(&mut self, span: &Span, follows: bool) -> Result<Vec<Misplaced>> {
        let found = self.indexed(span)?;
        if found.is_empty() {
            return self.unaligned(span, follows);
        }
        Ok(found)
    }

    fn alignment(&self) -> u64 {
        ALIGNMENT
    }
}

impl Chunked {
    /// The first chunks from the range on that an index has elsewhere.
    fn indexed(&self, span: &Span) -> Result<Vec<Misplaced>> {
        let Some(index) = index::find(&*self.source, &self.options) else {
            return Ok(Vec::new());
        };
        let (before, after) = index::around(&*index, span.start)?;
        // What an index says that is another log's, or an older one, is nothing about this one.
        let is_in_place = |item: Item| hop::chunk_of(item, &*self.source);
        if before.map(is_in_place).transpose()?.flatten().is_none() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for item in after {
            if is_in_place(item)?.is_some() {
                return Ok(Vec::new());
            }
            let source = self.source.clone();
            let check = move |at: u64| {
                let head = hop::read(&*source, at)?;
                let header = head.verified().filter(|_| judge::agrees(item, head));
                Ok(Trial {
                    end: header.map(|header| header.payload_end(at)),
                    work: HEADER_BYTES as u64,
                })
            };
            found.push(Misplaced {
                what: "chunk",
                offset: item.file_offset.cast_unsigned(),
                against: String::new(),
                check: Box::new(check),
            });
        }
        Ok(found)
    }
}

/// A header whose CRC-32 would match.
fn header_candidate(at: u64, len: u64) -> Candidate {
    let check = move |bytes: &[u8]| Trial {
        end: match structure(at, bytes, len) {
            Head::Sound(header) => Some(align(header.payload_end(at)).min(len)),
            _ => None,
        },
        work: HEADER_BYTES as u64,
    };
    Candidate::new("chunk header", at..at + HEADER_BYTES as u64, check)
}

impl Chunked {
    /// The first chunk after the beginning of the range, if it is not where one belongs: by the chunk that the range begins with, or,
    /// where that is none, by the offsets where chunks may begin.
    fn unaligned(&self, span: &Span, follows: bool) -> Result<Vec<Misplaced>> {
        let head = hop::read(&*self.source, span.start)?.verified();
        let head = head.filter(|_| !follows);
        let expected = head.map(|header| align(header.payload_end(span.start)));
        let first = span.start + 1;
        let from = match expected {
            Some(at) => first.max(at.saturating_sub(MAX_SHIFTED_BYTES)),
            None => first,
        };
        let end = self.source.len().min(from + 2 * MAX_SHIFTED_BYTES);
        let mut bytes = Vec::new();
        if from < end {
            read_piece(&*self.source, &(from..end), &mut bytes)?;
        }
        let mut places = bytes.windows(HEADER_BYTES);
        // Far enough from the end of any file: whether the payload fits is checked elsewhere.
        let found = places.position(|own| matches!(structure(0, own, u64::MAX), Head::Sound(_)));
        let Some(found) = found.map(|place| from + place as u64) else {
            return Ok(Vec::new());
        };
        let over = found % ALIGNMENT;
        let is_chunk = |at| Ok::<_, Error>(hop::read(&*self.source, at)?.verified().is_some());
        let (offset, against) = match expected {
            // One that is after its place, where one may begin, may follow others that are damaged.
            Some(at) if over == 0 && found >= at => return Ok(Vec::new()),
            Some(at) if at < self.source.len() && is_chunk(at)? => return Ok(Vec::new()),
            Some(at) => (at, String::new()),
            None if over == 0 => return Ok(Vec::new()),
            None => (
                (found + ALIGNMENT / 2) / ALIGNMENT * ALIGNMENT,
                format!(
                    "{over} bytes inserted, {} missing, {ALIGNMENT} more of either, or what is left of chunks that are gone would look the same",
                    ALIGNMENT - over
                ),
            ),
        };
        let check = move |at| {
            Ok(Trial {
                end: (at == found).then_some(at),
                work: 0,
            })
        };
        Ok(vec![Misplaced {
            what: "chunk",
            offset,
            against,
            check: Box::new(check),
        }])
    }

    /// A payload that would match its header.
    fn payload(&self, header: Header, at: u64, end: u64) -> Result<Candidate> {
        let options = self.options.clone();
        let options = options
            .window_bytes(usize::MAX)
            .set(LIMIT_BYTES.name, MAX_CONTENT_BYTES);
        let start = at + HEADER_BYTES as u64;
        let mut head = Vec::new();
        read_piece(&*self.source, &(at..start), &mut head)?;
        let (after, mut content) = (align(end).min(self.source.len()), Content::default());
        let check = move |bytes: &[u8]| {
            let tried = Arc::new(BytesSource::new([head.as_slice(), bytes].concat()));
            let mut input = Input::new(tried, options.clone());
            // zstd fills the buffer as far as it can before it returns, and does not report how much if it meets
            // an error.
            content.bytes.clear();
            content.bytes.shrink_to(LIMITS.payload_output_bytes);
            // A content beyond the limit cannot be proven here.
            let checked = check(&mut input, &header, 0, &mut content);
            let is_good = matches!(checked, Ok(Ok(_)));
            Trial {
                end: is_good.then_some(after),
                work: LEAST_WORK + bytes.len() as u64 + content.bytes.len() as u64,
            }
        };
        let tried = saturating_usize((end - start).min(MAX_TRIED_BYTES));
        Ok(Candidate {
            tried,
            tried_last: DESCRIPTOR,
            ..Candidate::new("chunk payload", start..end, check)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Kind;

    /// A payload of blocks of one repeated byte, 128 KiB each, followed by one of an undefined type.
    fn payload(blocks: usize) -> Vec<u8> {
        const WINDOW_OF_128_KIB: u8 = 7 << 3;
        const CHECKSUM: u8 = 0b100;
        let mut payload = [&crate::compress::MAGIC[..], &[CHECKSUM, WINDOW_OF_128_KIB]].concat();
        let repeated = [&((128_u32 << 10 << 3) | 0b10).to_le_bytes()[..3], b"a"].concat();
        payload.extend(repeated.repeat(blocks));
        payload.extend([0xff; 3]);
        payload
    }

    #[test]
    fn each_guess_costs_what_it_has_decoded() -> std::result::Result<(), Box<dyn std::error::Error>>
    {
        const BLOCKS: usize = 6;
        let payload = payload(BLOCKS);
        let header = Header {
            flags: 0,
            length: payload.len().try_into()?,
            start: 0,
            records: 1,
        };
        let source = Arc::new(BytesSource::new(
            [header.encode(), payload.clone()].concat(),
        ));
        let span = Span {
            start: 0,
            end: source.len(),
            kind: Kind::TornTail,
            cause: Some(Cause::PayloadInvalid),
        };
        let options = Options::default();
        let mut candidates = Chunked { source, options }.candidates(&span)?;
        let candidate = candidates.first_mut().ok_or("the payload is suspected")?;
        for _ in 0..3 {
            let trial = (candidate.check)(&payload);
            assert_eq!(trial.end, None);
            // The last piece is not reported.
            assert!(trial.work >= (BLOCKS as u64) << 16, "{trial:?}");
        }
        Ok(())
    }
}
