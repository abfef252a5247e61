//! A chunk's payload, decoded from the source piece by piece. It is used only after all of it is verified.

use super::LIMIT_BYTES;
use super::judge::{BadPayload, Payload};
use super::layout::{HEADER_BYTES, Header};
use super::records::Count;
use crate::bug::OrBug;
use crate::compress::{BadFrame, Decoder, FrameHead, MAX_HEAD_BYTES};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::walk::stream::Input;

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
        path: input.source.path().map(Into::into),
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
) -> Result<Payload<()>> {
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
    let stated = decoding.missing.unwrap_or_default();
    let trusted = stated.min(LIMITS.unverified_bytes);
    content.reserve_exact(saturating_usize(trusted).min(most));
    let mut count = Count::new(header.records);
    loop {
        if content.len() == content.capacity() {
            let room = content.len().max(LIMITS.payload_output_bytes);
            content.reserve_exact(room.min(most.saturating_sub(content.len())).max(1));
        }
        let before = content.len();
        let piece = decoding.more(input, decoder, content)?;
        let fresh = content.get(before..).or_bug("content that only grows")?;
        if !count.take(fresh, lengths) {
            return Ok(Err(BadPayload::MoreRecords));
        }
        let total = content.len() as u64;
        if total > limit {
            return Err(too_large(input, at, stated.max(total)));
        }
        match piece {
            Piece::More => {}
            Piece::End => break,
            Piece::Bad(bad) => return Ok(Err(BadPayload::Frame(bad))),
        }
    }
    Ok(count.at_end())
}
