//! A chunk's payload, decoded from the source piece by piece. It is used only after all of it is verified.

use std::sync::Arc;

use super::judge::{BadPayload, Payload};
use super::layout::{HEADER_BYTES, Header};
use super::records::Count;
use super::{CHUNK_MEMORY_BYTES, LIMIT_BYTES};
use crate::bug::OrBug;
use crate::checksum::{Incremental, Key};
use crate::compress::{BadFrame, Decoder, FrameHead, MAX_HEAD_BYTES};
use crate::cursor::Cursor;
use crate::engine::Options;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};

/// What payloads are read with.
pub(super) struct Input {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
    pub(super) window: Window,
    pub(super) decoder: Decoder,
    /// The body lengths of the first records of the content that was verified last. Each record's position depends
    /// on the length of the one before, so a pass over records mostly waits for memory. A second pass need not
    /// wait for these.
    pub(super) lengths: Vec<u32>,
}

impl Input {
    pub(super) fn new(source: Arc<dyn Source>, options: Options) -> Self {
        Self {
            source,
            options,
            window: Window::default(),
            decoder: Decoder::default(),
            lengths: Vec::new(),
        }
    }

    /// At least `min` bytes from `at` on. The caller makes sure that the file has them.
    pub(super) fn load(&mut self, at: u64, min: usize) -> Result<&[u8]> {
        self.window
            .load(&*self.source, at, min, self.options.window_bytes)?;
        Ok(self.window.bytes(&*self.source, at))
    }

    /// The most bytes of a content that are buffered. Readers without bodies need less memory.
    pub(super) fn buffered_bytes(&self) -> u64 {
        match self.options.values {
            true => self.options.bytes(&CHUNK_MEMORY_BYTES),
            false => self
                .options
                .bytes(&CHUNK_MEMORY_BYTES)
                .min(LIMITS.unwanted_bytes),
        }
    }

    /// The error for a chunk at `position` whose content is larger than the options allow.
    fn too_large(&self, position: u64, needed: u64) -> Error {
        Error::Limit {
            path: self.source.path().map(Into::into),
            what: format!("the content of the chunk at offset {position}"),
            needed,
            option: "chunk_bytes",
            limit: self.options.bytes(&LIMIT_BYTES),
        }
    }

    /// The error for a file that changed while it was read.
    pub(super) fn changed(&self, position: u64) -> Error {
        Error::changed(
            self.source.path(),
            &format!("the chunk at offset {position}"),
        )
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
        start: u64,
        end: u64,
    ) -> Result<std::result::Result<Self, BadFrame>> {
        let left = saturating_usize(end - start);
        // Small payloads are decoded at once, which zstd does without copying.
        let whole = left.min(input.options.window_bytes.min(LIMITS.whole_payload_bytes));
        let bytes = input.load(start, whole.max(left.min(MAX_HEAD_BYTES)))?;
        let head = Cursor::new(bytes).run_up_to(left.min(MAX_HEAD_BYTES));
        let begun = FrameHead::parse(head).and_then(|head| {
            input.decoder.begin()?;
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
    pub(super) fn more(&mut self, input: &mut Input, out: &mut Vec<u8>) -> Result<Piece> {
        if out.len() == out.capacity() {
            out.reserve(LIMITS.payload_output_bytes);
        }
        let before = out.len();
        loop {
            input.options.poll()?;
            let left = saturating_usize(self.left());
            input.window.load(
                &*input.source,
                self.at,
                left.min(1),
                input.options.window_bytes,
            )?;
            let bytes = input.window.bytes(&*input.source, self.at);
            let bytes = Cursor::new(bytes).run_up_to(left.min(LIMITS.payload_input_bytes));
            let progress = match input.decoder.decode(bytes, out) {
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

/// Hashes of a content's pieces of one size, however it was cut: a second pass uses them to verify that it sees
/// the same.
pub(super) struct Pieces {
    size: u64,
    filled: u64,
    current: Incremental,
    pub(super) hashes: Vec<u64>,
}

impl Pieces {
    /// Creates pieces for a reader that buffers chunks of up to `chunk_memory_bytes`.
    pub(super) fn new(max_chunk_bytes: u64) -> Self {
        Self {
            size: max_chunk_bytes.clamp(4 << 10, 1 << 20),
            filled: 0,
            current: Incremental::new(&Key::DEFAULT),
            hashes: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = saturating_usize(self.size - self.filled);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.current.update(now);
            self.filled += now.len() as u64;
            bytes = later;
            if self.filled == self.size {
                self.finish();
            }
        }
    }

    /// Ends the last piece, unless it is empty.
    pub(super) fn finish(&mut self) {
        if self.filled > 0 {
            let fresh = Incremental::new(&Key::DEFAULT);
            self.hashes
                .push(std::mem::replace(&mut self.current, fresh).finish());
            self.filled = 0;
        }
    }

    /// The total length of the complete pieces.
    pub(super) const fn complete(&self) -> u64 {
        self.hashes.len() as u64 * self.size
    }
}

/// The result of verifying a good payload.
pub(super) enum Checked {
    /// It is good, and its content is in the buffer.
    Whole,
    /// It is good, but its content is too large to buffer. These are the hashes of its pieces.
    Large(Vec<u64>),
}

/// Rule 28: verifies the payload of this header's chunk at `at`. Its content is put into `content`.
///
/// # Errors
/// [`Error::Limit`] if the content is larger than the options allow.
pub(super) fn check(
    input: &mut Input,
    header: &Header,
    at: u64,
    content: &mut Vec<u8>,
) -> Result<Payload<Checked>> {
    input.lengths.clear();
    content.clear();
    content.shrink_to(LIMITS.kept_content_bytes);
    let max = input.buffered_bytes();
    let mut decoding =
        match Decoding::begin(input, at + HEADER_BYTES as u64, header.payload_end(at))? {
            Ok(decoding) => decoding,
            Err(bad) => return Ok(Err(BadPayload::Frame(bad))),
        };
    // One byte more than may be buffered shows that there is more.
    let most = saturating_usize(max).saturating_add(1);
    let stated = decoding.missing.unwrap_or_default();
    let trusted = stated.min(LIMITS.unverified_bytes);
    content.reserve_exact(saturating_usize(trusted).min(most));
    let mut count = Count::new(header.records);
    let mut pieces: Option<Pieces> = None;
    let mut total = 0_u64;
    loop {
        if pieces.is_none() && content.len() == content.capacity() {
            let room = content.len().max(LIMITS.payload_output_bytes);
            content.reserve_exact(room.min(most.saturating_sub(content.len())).max(1));
        }
        let before = content.len();
        let piece = decoding.more(input, content)?;
        let fresh = content.get(before..).or_bug("content that only grows")?;
        total += fresh.len() as u64;
        if !count.take(fresh, &mut input.lengths) {
            return Ok(Err(BadPayload::MoreRecords));
        }
        if total > input.options.bytes(&LIMIT_BYTES) {
            return Err(input.too_large(at, stated.max(total)));
        }
        if total > max {
            let pieces = pieces.get_or_insert_with(|| Pieces::new(max));
            pieces.take(content);
            content.clear();
            content.shrink_to(LIMITS.payload_input_bytes);
        }
        match piece {
            Piece::More => {}
            Piece::End => break,
            Piece::Bad(bad) => return Ok(Err(BadPayload::Frame(bad))),
        }
    }
    Ok(count.at_end().map(|()| match pieces {
        None => Checked::Whole,
        Some(mut pieces) => {
            pieces.finish();
            Checked::Large(pieces.hashes)
        }
    }))
}
