//! What a scan reads with, and how it examines places where a block or partition may be, with bounded work:
//! lengths are followed from field to field, content is skipped, and checksums are computed in pieces.

use std::sync::Arc;

use super::front::{Front, Segment};
use super::layout::{
    BLOCK_HEADER_BYTES, Decoder, HEAD_BYTES, Name, Shape, TAIL_BYTES, TocEntry, read_name,
};
use super::toc::{Entries, Table, V2_ENTRY_BYTES, V2_HEAD_BYTES};
use crate::bug::OrBug;
use crate::cursor::fields;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::walk::{Budget, Options};

/// How much is hashed between two polls of the interrupt.
const PIECE_BYTES: u64 = 1 << 20;
/// What the budget charges for decoding a field, in bytes: if the next one is near, and if it must be fetched. At
/// most twice the bytes that are skipped, so that one block can always be afforded.
const NEAR_COST: u64 = 8;
pub(super) const FAR_COST: u64 = 1024;
/// After content of at most this length the next field is near.
pub(super) const NEAR_BYTES: u64 = 4 << 10;
/// The longest tenant ID that is tried or searched after.
pub(super) const MOST_TENANT_BYTES: u32 = 65_535;
/// What a window has after a successful load.
pub(super) const LOADED: &str = "as many bytes as were loaded";
/// How many fields are decoded between two polls of the interrupt.
const POLL_FIELDS: u32 = 1 << 16;

/// The result of decoding a block at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    Block(Shape),
    /// A field, length or content extends past the end.
    Beyond,
    /// The budget did not suffice.
    Unaffordable,
}

/// How far the bytes of a block are known to be the ones that were verified.
#[derive(Debug, Default)]
pub(super) enum Checks {
    /// Not at all. They are verified before the first is emitted.
    #[default]
    Unknown,
    /// All of them, piece by piece: the length of each but the last, their CRC-32s, and the range that is in the window
    /// and verified. A block that was verified in the window is one piece, whose CRC-32 is not needed.
    Verified {
        size: u64,
        crcs: Vec<u32>,
        right: (u64, u64),
    },
}

/// The CRC-32 of bytes that were read piece by piece, that of each piece, and the block that they decode to.
pub(super) struct Hashed {
    pub(super) crc: crc32fast::Hasher,
    pub(super) checks: Checks,
    pub(super) decoder: Decoder,
}

impl Hashed {
    /// Hashes and decodes the `len` bytes at `at`.
    pub(super) fn read(
        source: &dyn Source,
        options: &Options,
        window: &mut Window,
        at: u64,
        len: u64,
    ) -> Result<Self> {
        let size = (options.window_bytes as u64)
            .max(len.div_ceil(LIMITS.block_pieces))
            .max(1);
        let (mut whole, mut crcs) = (crc32fast::Hasher::new(), Vec::new());
        let (mut decoder, mut done, mut polled) = (Decoder::default(), 0, 0);
        while done < len {
            if done >= polled {
                options.poll()?;
                polled = done + PIECE_BYTES;
            }
            let want = saturating_usize(size.min(len - done));
            let bytes = window.exact(source, at + done, want, want)?;
            let mut crc = crc32fast::Hasher::new();
            crc.update(bytes);
            whole.combine(&crc);
            crcs.push(crc.finalize());
            decoder.feed(bytes);
            done += want as u64;
        }
        let right = (0, 0);
        Ok(Self {
            crc: whole,
            checks: Checks::Verified { size, crcs, right },
            decoder,
        })
    }
}

/// What a scan reads from: the file and its front, with its windows, and the budget spent.
pub(super) struct Input {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
    pub(super) front: Arc<Front>,
    /// The window that contains the rows.
    pub(super) data: Window,
    fields: Window,
    pieces: Window,
    /// The window for searching entries in a table that is not sound.
    entry_window: Window,
    /// Bytes hashed, and fields decoded, in vain.
    pub(super) budget: Budget,
    decoded: u32,
}

impl Input {
    pub(super) fn new(segment: &Segment) -> Self {
        Self {
            source: segment.source.clone(),
            options: segment.options.clone(),
            front: segment.front.clone(),
            data: Window::default(),
            fields: Window::default(),
            pieces: Window::default(),
            entry_window: Window::default(),
            budget: Budget::default(),
            decoded: 0,
        }
    }

    pub(super) fn segment(&self) -> Segment {
        Segment {
            source: self.source.clone(),
            options: self.options.clone(),
            front: self.front.clone(),
        }
    }

    /// The `left` entries from the one at `at` on.
    pub(super) fn entries(&self, at: u64, left: u64) -> Entries {
        self.front.from(&self.options, (at, left))
    }

    /// A table of these entries. `before` is the partition of the entry before them.
    pub(super) fn table(&self, at: u64, left: u64, before: Option<u32>) -> Table {
        Table {
            entries: self.entries(at, left),
            ahead: self.entries(at, left),
            before,
        }
    }

    /// Whether a block of this length is verified in memory.
    pub(super) fn fits_window(&self, len: u64) -> bool {
        len <= LIMITS
            .whole_block_windows
            .saturating_mul(self.options.window_bytes as u64)
    }

    /// The tenant ID of a block of this shape at `at`, from the window if it is there.
    pub(super) fn name(&self, at: u64, shape: &Shape) -> Result<Name> {
        let name_at = at + BLOCK_HEADER_BYTES;
        let held = self.data.bytes(&*self.source, name_at);
        Name::new(name_at, shape.tenant_len, |len| match held.get(..len) {
            Some(bytes) => Ok(bytes.into()),
            None => read_name(&*self.source, name_at, len),
        })
    }

    /// Whether this many bytes may be tried in vain. Records the attempt.
    pub(super) fn affords(&mut self, bytes: u64) -> bool {
        self.budget.affords(bytes, self.front.len)
    }

    pub(super) fn changed(&self) -> Error {
        Error::changed(self.source.path(), "it")
    }

    /// The u32 at `at`, which lies within the source.
    pub(super) fn u32_at(&mut self, at: u64) -> Result<u32> {
        // The bytes of a block that was just verified are in the window.
        if let Some(bytes) = self.data.bytes(&*self.source, at).first_chunk() {
            return Ok(u32::from_be_bytes(*bytes));
        }
        let field = self.field(at, 4)?.first_chunk();
        Ok(u32::from_be_bytes(*field.or_bug(LOADED)?))
    }

    /// The tenant ID of `len` bytes at `at`, which lie within the source.
    pub(super) fn name_at(&mut self, at: u64, len: u32) -> Result<Name> {
        Name::new(at, len, |len| Ok(self.field(at, len)?.into()))
    }

    /// The `len` bytes at `at`. Fields may be anywhere.
    fn field(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let ahead = LIMITS.tenant_fields_ahead_bytes;
        self.fields.exact_wary(&*self.source, at, len, ahead)
    }

    /// The length of the tenant ID that an entry at `at` states. The field lies within the source.
    pub(super) fn entry_tenant_len(&mut self, at: u64) -> Result<u32> {
        let (_, tenant_len): (u32, u32) = fields(&self.entry_head(at)?);
        Ok(tenant_len)
    }

    fn entry_head(&mut self, at: u64) -> Result<[u8; HEAD_BYTES]> {
        let head = self.of_entry(at, V2_HEAD_BYTES)?.first_chunk();
        Ok(*head.or_bug(LOADED)?)
    }

    /// The fields of an entry at `at` that ends at `limit` at the latest, with a tenant ID as long as it states or as
    /// given.
    pub(super) fn entry_at(
        &mut self,
        at: u64,
        tenant_len: Option<u32>,
        limit: u64,
    ) -> Result<Option<TocEntry>> {
        let end = limit.min(self.front.len);
        let Some(room) = end.checked_sub(at + V2_ENTRY_BYTES) else {
            return Ok(None);
        };
        let tenant_len = match tenant_len {
            Some(tenant_len) => tenant_len,
            None => self.entry_tenant_len(at)?,
        };
        if room < u64::from(tenant_len) {
            return Ok(None);
        }
        let head = self.entry_head(at)?;
        let len = V2_ENTRY_BYTES + u64::from(tenant_len);
        let tail = match tenant_len {
            ..=MOST_TENANT_BYTES => self.of_entry(at, len)?,
            _ => self.field(at + len - TAIL_BYTES as u64, TAIL_BYTES)?,
        };
        let fields = TocEntry::parse((&head, tail.last_chunk().or_bug(LOADED)?));
        Ok(Some(TocEntry {
            tenant_len,
            ..fields
        }))
    }

    /// The tenant ID of that entry.
    pub(super) fn entry_name(&mut self, at: u64, tenant_len: u32) -> Result<Name> {
        Name::new(at + V2_HEAD_BYTES, tenant_len, |len| {
            let bytes = self.of_entry(at, V2_HEAD_BYTES + len as u64)?;
            let name = bytes.get(bytes.len() - len..);
            Ok(name.or_bug(LOADED)?.into())
        })
    }

    /// The `len` bytes at `at`, of an entry that is searched for. Going from place to place reads them once.
    fn of_entry(&mut self, at: u64, len: u64) -> Result<&[u8]> {
        let (len, most) = (saturating_usize(len), 4 * LIMITS.tenant_fields_ahead_bytes);
        self.entry_window.exact_wary(&*self.source, at, len, most)
    }

    /// Decodes the block at `at` up to `end`, at a cost of at most `affordable`. Returns the result and the cost.
    pub(super) fn decode(&mut self, at: u64, end: u64, affordable: u64) -> Result<(Decoded, u64)> {
        let (mut decoder, mut cost) = (Decoder::default(), 0_u64);
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
            let field = self.u32_at(at + decoder.offset())?;
            decoder.feed(&field.to_be_bytes());
            self.decoded = self.decoded.wrapping_add(1);
            if self.decoded.is_multiple_of(POLL_FIELDS) {
                self.options.poll()?;
            }
        }
        Ok((Decoded::Block(decoder.shape()), cost))
    }

    /// Hashes and decodes the `len` bytes at `at`.
    pub(super) fn hash(&mut self, at: u64, len: u64) -> Result<Hashed> {
        Hashed::read(&*self.source, &self.options, &mut self.pieces, at, len)
    }

    /// Hashes and decodes the block of `len` bytes at `at`: in the window if it fits, else piece by piece.
    pub(super) fn check(
        &mut self,
        partition: u32,
        at: u64,
        len: u64,
    ) -> Result<(u32, Decoder, Checks)> {
        if !self.fits_window(len) {
            let hashed = self.hash(at, len)?;
            let crc = block_crc(partition, &hashed.crc);
            return Ok((crc, hashed.decoder, hashed.checks));
        }
        let block = self.data.bytes(&*self.source, at);
        let block = block.get(..saturating_usize(len)).or_bug(LOADED)?;
        let mut decoder = Decoder::default();
        decoder.feed(block);
        let checks = Checks::Verified {
            size: len,
            crcs: Vec::new(),
            right: (at, at + len),
        };
        Ok((block_crc_of(partition, block), decoder, checks))
    }
}

/// The CRC-32 of the partition's ID and a block's bytes, computed from that of the bytes.
pub(super) fn block_crc(partition: u32, bytes: &crc32fast::Hasher) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&partition.to_be_bytes());
    crc.combine(bytes);
    crc.finalize()
}

/// The same, computed from the bytes.
pub(super) fn block_crc_of(partition: u32, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&partition.to_be_bytes());
    crc.update(bytes);
    crc.finalize()
}
