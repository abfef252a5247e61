//! Looking at places where a block or partition might stand, with bounded work: lengths are followed from field to field, content
//! is passed over, and checksums are computed in pieces.

use super::block::{BLOCK_HEADER_BYTES, Decoder, Name, Shape};
use crate::bug::OrBug;
use crate::engine::Budget;
use crate::engine::Options;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};

/// How much is hashed between two looks at whether to stop.
const PIECE_BYTES: u64 = 1 << 20;
/// What decoding a field counts as, in bytes: where the next one is near, and where it has to be fetched. Never more than twice the bytes that are passed, so that one block can always be afforded.
const NEAR_COST: u64 = 8;
pub(super) const FAR_COST: u64 = 1024;
/// Content up to this long leaves the next field near.
pub(super) const NEAR_BYTES: u64 = 4 << 10;
/// What a window has whose loading did not fail.
pub(super) const LOADED: &str = "as many bytes as were loaded";
/// How many fields are decoded between two looks at whether to stop.
const POLL_FIELDS: u32 = 1 << 16;

/// What a block at some place decodes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    Block(Shape),
    /// A field, length or content reaches beyond the end.
    Beyond,
    /// The budget did not suffice.
    Unaffordable,
}

/// A block's CRC-32, that of each of its pieces, and what it decodes to.
pub(super) struct Pieces {
    pub(super) crc: crc32fast::Hasher,
    /// The length of each piece but the last.
    pub(super) size: u64,
    pub(super) crcs: Vec<u32>,
    pub(super) decoder: Decoder,
}

/// The windows that are read through, and what has been spent.
#[derive(Debug, Default)]
pub(super) struct Probe {
    fields: Window,
    pieces: Window,
    /// Bytes hashed, and fields decoded, in vain.
    pub(super) budget: Budget,
    decoded: u32,
}

impl Probe {
    /// The u32 at `at`, which lies within the source.
    pub(super) fn u32_at(&mut self, source: &dyn Source, at: u64) -> Result<u32> {
        self.fields
            .load_wary(source, at, 4, LIMITS.tenant_fields_ahead_bytes)?;
        let bytes = self.fields.bytes(source, at).first_chunk();
        Ok(u32::from_be_bytes(*bytes.or_bug(LOADED)?))
    }

    /// The tenant ID of `len` bytes at `at`, which lie within the source.
    pub(super) fn name_at(&mut self, source: &dyn Source, at: u64, len: u32) -> Result<Name> {
        Name::new(at, len, |len| {
            self.fields
                .load_wary(source, at, len, LIMITS.tenant_fields_ahead_bytes)?;
            let bytes = self.fields.bytes(source, at).get(..len);
            Ok(bytes.or_bug(LOADED)?.into())
        })
    }

    /// Decodes the block at `at` up to `end`, spending at most `affordable`. Gives what it decodes to, and what that cost.
    pub(super) fn decode(
        &mut self,
        source: &dyn Source,
        options: &Options,
        at: u64,
        end: u64,
        affordable: u64,
    ) -> Result<(Decoded, u64)> {
        let (mut decoder, mut cost) = (Decoder::new(), 0_u64);
        while !decoder.is_done() {
            let left = end.saturating_sub(at + decoder.offset());
            if decoder.content() > left {
                return Ok((Decoded::Beyond, cost));
            }
            cost += if decoder.content() < NEAR_BYTES {
                NEAR_COST
            } else {
                FAR_COST
            };
            decoder.pass();
            if decoder.is_done() {
                break;
            }
            if end - (at + decoder.offset()) < 4 {
                return Ok((Decoded::Beyond, cost));
            }
            if cost > affordable {
                return Ok((Decoded::Unaffordable, cost));
            }
            let field = self.u32_at(source, at + decoder.offset())?;
            decoder.feed(&field.to_be_bytes());
            self.decoded = self.decoded.wrapping_add(1);
            if self.decoded.is_multiple_of(POLL_FIELDS) {
                options.poll()?;
            }
        }
        Ok((Decoded::Block(decoder.shape()), cost))
    }

    /// Hashes and decodes the `len` bytes at `at`.
    pub(super) fn hash(
        &mut self,
        source: &dyn Source,
        options: &Options,
        at: u64,
        len: u64,
    ) -> Result<Pieces> {
        let size = (options.window_bytes as u64)
            .max(len.div_ceil(LIMITS.block_pieces))
            .max(1);
        let mut pieces = Pieces {
            crc: crc32fast::Hasher::new(),
            size,
            crcs: Vec::new(),
            decoder: Decoder::new(),
        };
        let (mut done, mut polled) = (0, 0);
        while done < len {
            if done >= polled {
                options.poll()?;
                polled = done + PIECE_BYTES;
            }
            let want = saturating_usize(size.min(len - done));
            let bytes = self.pieces.exact(source, at + done, want, want)?;
            let mut crc = crc32fast::Hasher::new();
            crc.update(bytes);
            pieces.crc.combine(&crc);
            pieces.crcs.push(crc.finalize());
            pieces.decoder.feed(bytes);
            done += want as u64;
        }
        Ok(pieces)
    }
}

/// The CRC-32 of the partition's ID and a block's bytes, from that of the bytes.
pub(super) fn block_crc(partition: u32, bytes: &crc32fast::Hasher) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&partition.to_be_bytes());
    crc.combine(bytes);
    crc.finalize()
}

/// The same, from the bytes.
pub(super) fn block_crc_of(partition: u32, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&partition.to_be_bytes());
    crc.update(bytes);
    crc.finalize()
}

/// The tenant ID of a block of this shape.
pub(super) fn tenant_of(source: &dyn Source, at: u64, shape: &Shape) -> Result<Name> {
    Name::read(source, at + BLOCK_HEADER_BYTES, shape.tenant_len)
}
