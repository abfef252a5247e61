//! A chunk's payload: decoded from the source piece by piece, and used only after all of it is verified. Its records,
//! counted as they come, and as rows.

use std::ops::Range;

use super::LIMIT_BYTES;
use super::judge::{BadPayload, Payload};
use super::layout::{HEADER_BYTES, Header, RECORD_HEADER_BYTES, decode_record};
use crate::bug::OrBug;
use crate::compress::{BadFrame, Decoder, FrameHead, MAX_HEAD_BYTES};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::private::Sealed;
use crate::record::{ColumnBuffer, Rows, Scalar, Value};
use crate::saturating::{saturating_bound, saturating_usize};
use crate::spec::Filter;
use crate::walk::input::Input;

/// The content of the chunk that was verified last, and what it is decoded with.
#[derive(Default)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    /// The body lengths of the first records. Each record's position depends on the length of the one before, so a
    /// pass over records mostly waits for memory. Emitting them need not wait for these.
    pub(super) lengths: Vec<u32>,
    pub(super) decoder: Decoder,
}

/// The error for a chunk at `position` whose content is larger than the options allow.
fn too_large(input: &Input, position: u64, needed: u64) -> Error {
    Error::Limit {
        path: input.path().map(Into::into),
        what: format!("the content of the chunk at offset {position}"),
        needed,
        option: "chunk_bytes",
        limit: input.options.bytes(&LIMIT_BYTES),
    }
}

/// The result of decoding one piece.
pub(super) enum Piece {
    /// There may be more.
    More,
    /// The frame is complete, its checksum matches, and nothing follows it.
    End,
    /// The payload is not exactly one good frame.
    Bad(BadFrame),
}

/// A frame that is being decoded. The bytes from `at` to `end` are left.
pub(super) struct Decoding {
    at: u64,
    end: u64,
    /// How many bytes of content are still to come, if the frame's header says how many there are and can be
    /// trusted.
    missing: Option<u64>,
}

impl Decoding {
    /// Begins with the frame from `start` to `end`.
    pub(super) fn begin(
        input: &mut Input,
        decoder: &mut Decoder,
        start: u64,
        end: u64,
    ) -> Result<std::result::Result<Self, BadFrame>> {
        let left = saturating_usize(end - start);
        // Small payloads are decoded at once, which zstd does without copying.
        let whole = left.min(input.options.window_bytes.min(LIMITS.whole_payload_bytes));
        let bytes = input.load(start, whole.max(left.min(MAX_HEAD_BYTES)))?;
        let head = Cursor::new(bytes).run_up_to(left.min(MAX_HEAD_BYTES));
        let begun = FrameHead::parse(head).and_then(|head| {
            decoder.begin()?;
            Ok(head)
        });
        Ok(begun.map(|head| Self {
            at: start,
            end,
            missing: head.content_bytes,
        }))
    }

    /// How many bytes of the payload are left to be decoded.
    pub(super) const fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Appends the next piece of content to `out`, up to its capacity.
    pub(super) fn more(
        &mut self,
        input: &mut Input,
        decoder: &mut Decoder,
        out: &mut Vec<u8>,
    ) -> Result<Piece> {
        if out.len() == out.capacity() {
            out.reserve(LIMITS.payload_output_bytes);
        }
        let before = out.len();
        loop {
            input.options.poll()?;
            let left = saturating_usize(self.left());
            let bytes = input.load(self.at, left.min(1))?;
            let bytes = Cursor::new(bytes).run_up_to(left.min(LIMITS.payload_input_bytes));
            let progress = match decoder.decode(bytes, out) {
                Ok(progress) => progress,
                Err(bad) => return Ok(Piece::Bad(bad)),
            };
            self.at += progress.consumed as u64;
            let fresh = (out.len() - before) as u64;
            if progress.ended {
                return Ok(self.end(fresh));
            }
            if fresh > 0 {
                if let Some(missing) = &mut self.missing {
                    let Some(left) = missing.checked_sub(fresh) else {
                        return Ok(Piece::Bad(BadFrame::CORRUPT));
                    };
                    *missing = left;
                }
                return Ok(Piece::More);
            }
            if progress.consumed == 0 {
                return Ok(Piece::Bad(BadFrame::Reason(if left == 0 {
                    "a zstd frame that is truncated"
                } else {
                    "a zstd frame that makes no progress"
                })));
            }
        }
    }

    /// The result for a frame that ends with `fresh` more bytes of content. When decoding in pieces, zstd does not
    /// check the stated size of a frame whose last block is empty. When decoding at once, it does. Both must give
    /// the same result.
    fn end(&self, fresh: u64) -> Piece {
        if self.missing.is_some_and(|missing| missing != fresh) {
            return Piece::Bad(BadFrame::CORRUPT);
        }
        match self.left() {
            0 => Piece::End,
            left => Piece::Bad(BadFrame::Followed(left)),
        }
    }
}

/// Rule 28: verifies the payload of this header's chunk at `at`. Its content is put into `into`.
///
/// # Errors
/// [`Error::Limit`] if the content is larger than the options allow.
pub(super) fn check(
    input: &mut Input,
    header: &Header,
    at: u64,
    into: &mut Content,
) -> Result<Payload> {
    let Content {
        bytes: content,
        lengths,
        decoder,
    } = into;
    lengths.clear();
    content.clear();
    content.shrink_to(LIMITS.kept_content_bytes);
    let limit = input.options.bytes(&LIMIT_BYTES);
    let mut decoding = match Decoding::begin(
        input,
        decoder,
        at + HEADER_BYTES as u64,
        header.payload_end(at),
    )? {
        Ok(decoding) => decoding,
        Err(bad) => return Ok(Err(BadPayload::Frame(bad))),
    };
    // One byte more than the limit shows that there is more.
    let most = saturating_usize(limit).saturating_add(1);
    let stated = decoding.missing;
    if let Some(stated) = stated {
        let trusted = stated.min(LIMITS.unverified_bytes);
        content.reserve_exact(saturating_usize(trusted).min(most));
    }
    let mut count = Count {
        stated: header.records,
        begun: 0,
        end: 0,
    };
    loop {
        if content.len() == content.capacity() {
            let room = content.len().max(LIMITS.payload_output_bytes);
            content.reserve_exact(room.min(most.saturating_sub(content.len())).max(1));
        }
        let piece = decoding.more(input, decoder, content)?;
        if !count.take(content, lengths) {
            return Ok(Err(BadPayload::MoreRecords));
        }
        let total = content.len() as u64;
        if total > limit {
            let needed = stated.into_iter().fold(total, u64::max);
            return Err(too_large(input, at, needed));
        }
        match piece {
            Piece::More => {}
            Piece::End => break,
            Piece::Bad(bad) => return Ok(Err(BadPayload::Frame(bad))),
        }
    }
    Ok(count.at_end(content.len() as u64))
}

/// Counts the records of a content that grows.
#[derive(Debug)]
struct Count {
    stated: u32,
    begun: u32,
    /// Where the last one that has begun ends.
    end: u64,
}

impl Count {
    /// Counts the records whose headers are in the content by now. Returns false as soon as there are bytes after the last stated
    /// record. Appends the body lengths of the first records to `lengths`.
    fn take(&mut self, content: &[u8], lengths: &mut Vec<u32>) -> bool {
        while self.begun < self.stated
            && let Some(rest) = content.get(saturating_usize(self.end)..)
            && let Some(header) = rest.first_chunk()
        {
            let (_, len) = decode_record(header);
            self.begun += 1;
            if lengths.len() < LIMITS.kept_lengths {
                lengths.push(len);
            }
            self.end += RECORD_HEADER_BYTES as u64 + u64::from(len);
        }
        self.begun < self.stated || content.len() as u64 <= self.end
    }

    /// Whether a content of `len` bytes has exactly the stated records.
    const fn at_end(&self, len: u64) -> Payload {
        if len < self.end {
            return Err(BadPayload::CutRecord(self.begun));
        }
        if self.begun == self.stated {
            return Ok(());
        }
        Err(match len == self.end {
            true => BadPayload::FewerRecords(self.begun),
            // Within its header.
            false => BadPayload::CutRecord(self.begun + 1),
        })
    }
}

/// The conditions of a [`Filter`] that a chunk can decide.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Message offsets.
    pub(super) offsets: Range<u64>,
    /// The least and the greatest time, in microseconds.
    times: (i64, i64),
}

impl Bounds {
    pub(super) fn of(filter: &Filter) -> Self {
        let number = |bound, none| match bound {
            Some(Scalar::Integer(number)) => number,
            _ => none,
        };
        // Offsets are at least 0 and below 2^63.
        let offset = |bound, none| saturating_bound(number(bound, none).max(0));
        let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
        let since = number(filter.least("timestamp"), least).max(least);
        let last = number(filter.end("timestamp"), most + 1)
            .saturating_sub(1)
            .min(most);
        Self {
            offsets: offset(filter.least("offset"), 0)..offset(filter.end("offset"), i128::MAX),
            times: match (since.try_into(), last.try_into()) {
                (Ok(since), Ok(last)) => (since, last),
                // No time is as late, or as early.
                _ => (i64::MAX, i64::MIN),
            },
        }
    }

    #[inline]
    pub(super) fn contains(&self, offset: i64, timestamp: i64) -> bool {
        let (first, last) = self.times;
        self.offsets.contains(&offset.cast_unsigned()) && timestamp >= first && timestamp <= last
    }

    /// Whether any of these message offsets is in bounds.
    pub(super) fn overlaps(&self, start: i64, end: u64) -> bool {
        self.offsets.start < end && !self.is_past(start)
    }

    /// Whether this message offset and all greater ones are past the bounds.
    pub(super) const fn is_past(&self, offset: i64) -> bool {
        offset.cast_unsigned() >= self.offsets.end
    }
}

/// A record of a good chunk, as a position in the buffered content.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContentRecord {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    pub(super) start: usize,
    pub(super) len: usize,
}

/// Records of one chunk.
pub(super) struct ChunkRows<'a> {
    /// The bytes of the chunk in the file.
    pub(super) chunk: &'a Range<u64>,
    pub(super) content: &'a [u8],
    pub(super) records: &'a [ContentRecord],
}

impl ChunkRows<'_> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn record(&self, row: usize) -> &ContentRecord {
        &self.records[row]
    }

    fn body(&self, record: &ContentRecord) -> &[u8] {
        let body = self.content.get(record.start..record.start + record.len);
        body.or_bug_default("a body within the content")
    }
}

impl Sealed for ChunkRows<'_> {}

impl Rows for ChunkRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, _: usize) -> u64 {
        self.chunk.start
    }

    fn end(&self, _: usize) -> u64 {
        self.chunk.end
    }

    fn value(&self, row: usize) -> &[u8] {
        self.body(self.record(row))
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        Some(self.record(row).timestamp)
    }

    fn times(&self) -> Option<(i64, i64)> {
        let first = self.records.first()?.timestamp;
        let times = self.records.iter().map(|record| record.timestamp);
        Some(times.fold((first, first), |(least, greatest), time| {
            (least.min(time), greatest.max(time))
        }))
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let record = self.record(row);
        match column {
            0 => Value::Int64(record.offset),
            1 => Value::Timestamp(record.timestamp),
            _ => Value::Binary(self.body(record)),
        }
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let records = self
            .records
            .get(rows)
            .or_bug_default("rows that there are")
            .iter();
        match column {
            0 => buffer.extend_int64(records.map(|record| record.offset)),
            1 => buffer.extend_int64(records.map(|record| record.timestamp)),
            _ => buffer.extend_bytes(records.map(|record| self.body(record))),
        }
    }
}
