//! zstd frames (RFC 8878): decodes one frame in pieces, or makes one at once. Only this module compresses.
//!
//! A frame is valid only if it has a content checksum, needs no dictionary, and asks for a window of at most
//! [`MAX_WINDOW_BYTES`]. Contexts are reused for all frames.

use std::fmt;

use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, ErrorCode, InBuffer, OutBuffer, ResetDirective,
    compress_bound, get_error_name,
};

use crate::cursor::Cursor;

/// The largest window that a frame may ask for, in bytes.
const MAX_WINDOW_BYTES: u64 = 1 << MAX_WINDOW_LOG;
const MAX_WINDOW_LOG: u32 = 27;
/// The most bytes in a frame's header.
pub(crate) const MAX_HEAD_BYTES: usize = 18;
/// zstd's error in one-shot decoding of a frame with more content than it states (`ZSTD_error_dstSize_tooSmall`, 70).
const MORE_THAN_STATED: ErrorCode = ErrorCode::MAX - 69;
/// The first bytes of a frame.
pub(crate) const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// A context larger than this many bytes is dropped after the frame.
const KEPT_CONTEXT_BYTES: usize = 16 << 20;

/// Why bytes are not one valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadFrame {
    /// In words.
    Reason(&'static str),
    /// It needs this dictionary.
    Dictionary(u64),
    /// It asks for a window of so many bytes.
    Window(u64),
    /// It does not decode: zstd's reason.
    Undecodable(ErrorCode),
    /// So many bytes follow it.
    Followed(u64),
}

impl BadFrame {
    /// Its content is not what the frame states. The error is zstd's own, so that it does not depend on which check
    /// failed first.
    pub(crate) const CORRUPT: Self =
        Self::Reason("a zstd frame that does not decode (Data corruption detected)");
}

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Reason(reason) => f.write_str(reason),
            Self::Dictionary(id) => write!(f, "a zstd frame that needs the dictionary {id}"),
            Self::Window(bytes) => write!(
                f,
                "a zstd frame that asks for a window of {bytes} bytes, more than {MAX_WINDOW_BYTES}"
            ),
            Self::Undecodable(code) => {
                let name = get_error_name(code);
                write!(f, "a zstd frame that does not decode ({name})")
            }
            Self::Followed(bytes) => write!(f, "a zstd frame followed by {bytes} bytes"),
        }
    }
}

/// The fields of a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    /// How many bytes of content the frame states, if it does. The number is untrusted.
    pub(crate) content_bytes: Option<u64>,
}

impl FrameHead {
    /// Checks the header of a frame that begins with `bytes`: its first [`MAX_HEAD_BYTES`], or all there are.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BadFrame> {
        let mut cursor = Cursor::new(bytes);
        match cursor.array() {
            Some(&MAGIC) => {}
            Some([low, 0x2a, 0x4d, 0x18]) if low >> 4 == 5 => {
                return Err(BadFrame::Reason("a skippable zstd frame"));
            }
            _ => return Err(BadFrame::Reason("not a zstd frame")),
        }
        Self::parse_fields(cursor).ok_or(BadFrame::Reason("a zstd frame cut off in its header"))?
    }

    /// The fields after the magic; `None` if the bytes end too early.
    fn parse_fields(mut cursor: Cursor<'_>) -> Option<Result<Self, BadFrame>> {
        let descriptor = cursor.u8()?;
        let single_segment = descriptor >> 5 & 1 == 1;
        let mut window_bytes = None;
        if !single_segment {
            let window = cursor.u8()?;
            let base = 1_u64 << (10 + (window >> 3));
            window_bytes = Some(base + base / 8 * u64::from(window & 7));
        }
        let dictionary = little_endian(cursor.run(match descriptor & 3 {
            3 => 4,
            flag => usize::from(flag),
        })?);
        let content = match (descriptor >> 6, single_segment) {
            (0, false) => None,
            (0, true) => Some(little_endian(cursor.run(1)?)),
            (1, _) => Some(little_endian(cursor.run(2)?) + 256),
            (2, _) => Some(little_endian(cursor.run(4)?)),
            _ => Some(little_endian(cursor.run(8)?)),
        };
        // A single segment's window is its content, whose length it states.
        let window_bytes = window_bytes.or(content);
        Some(if descriptor >> 2 & 1 == 0 {
            Err(BadFrame::Reason("a zstd frame without content checksum"))
        } else if dictionary != 0 {
            Err(BadFrame::Dictionary(dictionary))
        } else if let Some(window_bytes) = window_bytes.filter(|bytes| *bytes > MAX_WINDOW_BYTES) {
            Err(BadFrame::Window(window_bytes))
        } else {
            Ok(Self {
                content_bytes: content,
            })
        })
    }
}

/// Decodes at most eight bytes as a little-endian number.
fn little_endian(bytes: &[u8]) -> u64 {
    let number = |number, byte: &u8| number << 8 | u64::from(*byte);
    bytes.iter().rev().fold(0, number)
}

/// The outcome of decoding a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How many bytes of the input were used.
    pub(crate) consumed: usize,
    /// Whether the frame is complete and its checksum matches.
    pub(crate) ended: bool,
}

/// Decodes frames, one after the other, each in pieces of any size.
#[derive(Default)]
pub(crate) struct Decoder {
    context: Option<DCtx<'static>>,
}

impl Decoder {
    /// Begins a frame, and forgets an incomplete one.
    pub(crate) fn begin(&mut self) -> Result<(), BadFrame> {
        if let Some(context) = &mut self.context
            && context.sizeof() <= KEPT_CONTEXT_BYTES
        {
            context
                .reset(ResetDirective::SessionOnly)
                .map_err(BadFrame::Undecodable)?;
            return Ok(());
        }
        self.context = None;
        let mut context = DCtx::try_create()
            .ok_or(BadFrame::Reason("a zstd frame that there is no memory for"))?;
        context
            .set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))
            .map_err(BadFrame::Undecodable)?;
        self.context = Some(context);
        Ok(())
    }

    /// Decodes the next bytes of the frame. Content is appended to `out` up to its capacity, which is not changed.
    /// Without room or input nothing may be consumed: call again with more of either.
    pub(crate) fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Progress, BadFrame> {
        let context = self
            .context
            .as_mut()
            .ok_or(BadFrame::Reason("not a zstd frame"))?;
        let filled = out.len();
        let mut input = InBuffer::around(input);
        let mut out = OutBuffer::around_pos(out, filled);
        let left = context
            .decompress_stream(&mut out, &mut input)
            .map_err(|code| match code {
                MORE_THAN_STATED => BadFrame::CORRUPT,
                code => BadFrame::Undecodable(code),
            })?;
        Ok(Progress {
            consumed: input.pos(),
            ended: left == 0,
        })
    }
}

/// Encodes frames with a content checksum.
pub(crate) struct Encoder {
    context: CCtx<'static>,
}

impl Encoder {
    /// An encoder of this compression level; `None` if zstd has no such level, or no memory.
    pub(crate) fn new(level: i32) -> Option<Self> {
        if !zstd::compression_level_range().contains(&level) {
            return None;
        }
        let mut context = CCtx::try_create()?;
        context
            .set_parameter(CParameter::CompressionLevel(level))
            .and_then(|_| context.set_parameter(CParameter::ChecksumFlag(true)))
            .ok()?;
        Some(Self { context })
    }

    /// Replaces `out` with the frame of `content`.
    pub(crate) fn encode(&mut self, content: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        out.clear();
        out.try_reserve(compress_bound(content.len()))
            .map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        self.context
            .compress2(out, content)
            .map(|_| ())
            .map_err(|code| std::io::Error::other(get_error_name(code)))
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

/// The most bytes that frames of `content_bytes` bytes of content can have.
pub(crate) fn bound(content_bytes: usize) -> usize {
    compress_bound(content_bytes)
}
