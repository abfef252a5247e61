//! The bytes of a segment to fields and back: headers, entries of the table of contents, tenant IDs, and the only
//! decoder of a block's lengths.

use std::cmp::Ordering;
use std::sync::Arc;

use super::MAGIC;
use crate::cursor::{Cursor, fields};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// Appends magic, version and the number of entries of the table of contents.
pub(super) fn file_header(out: &mut Vec<u8>, version: u16, entries: u32) {
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&entries.to_be_bytes());
}

/// The length of an entry without its tenant ID: the bytes before and after it.
pub(super) const ENTRY_BYTES: usize = HEAD_BYTES + TAIL_BYTES;
/// Partition ID and tenant ID length.
pub(super) const HEAD_BYTES: usize = 8;
/// Number of messages, offset, length and CRC-32.
pub(super) const TAIL_BYTES: usize = 24;

/// The fields of an entry of version 2, without the tenant ID itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TocEntry {
    pub(super) partition: u32,
    pub(super) tenant_len: u32,
    pub(super) messages: u32,
    /// Where the block (version 1: the partition) begins.
    pub(super) offset: u64,
    /// How long it is in bytes.
    pub(super) length: u64,
    pub(super) crc: u32,
}

impl TocEntry {
    /// Parses the bytes before and after the tenant ID.
    pub(super) fn parse((head, tail): (&[u8; HEAD_BYTES], &[u8; TAIL_BYTES])) -> Self {
        let (partition, tenant_len) = fields(head);
        let (messages, offset, length, crc) = fields(tail);
        Self {
            partition,
            tenant_len,
            messages,
            offset,
            length,
            crc,
        }
    }

    /// Where the block ends if the entry is right. Saturates.
    pub(super) const fn block_end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Appends the bytes before the tenant ID.
    pub(super) fn head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.partition.to_be_bytes());
        out.extend_from_slice(&self.tenant_len.to_be_bytes());
    }

    /// Appends the bytes after the tenant ID.
    pub(super) fn tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.messages.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
        out.extend_from_slice(&self.crc.to_be_bytes());
    }
}

/// Appends an entry of version 1.
pub(super) fn v1_entry(out: &mut Vec<u8>, partition: u32, offset: u64, length: u64) {
    out.extend_from_slice(&partition.to_be_bytes());
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

/// Appends a block's number of messages and tenant ID length. The tenant ID and the messages follow.
pub(super) fn block_header(out: &mut Vec<u8>, messages: u32, tenant_len: u32) {
    out.extend_from_slice(&messages.to_be_bytes());
    out.extend_from_slice(&tenant_len.to_be_bytes());
}

/// The length of the number of messages and the tenant ID length.
pub(super) const BLOCK_HEADER_BYTES: u64 = 8;

/// A tenant ID: where it is, and its bytes unless it is too long to keep.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) at: u64,
    pub(super) len: u32,
    bytes: Option<Arc<[u8]>>,
}

impl Name {
    /// The tenant ID of `len` bytes at `at`, which the caller knows to lie within the source. `read` returns its
    /// bytes, if they are kept.
    pub(super) fn new(
        at: u64,
        len: u32,
        read: impl FnOnce(usize) -> Result<Arc<[u8]>>,
    ) -> Result<Self> {
        let short = usize::try_from(len)
            .ok()
            .filter(|_| len <= LIMITS.kept_tenant_bytes);
        let bytes = match short {
            Some(0) => Some(Arc::default()),
            Some(len) => Some(read(len)?),
            None => None,
        };
        Ok(Self { at, len, bytes })
    }

    /// A tenant ID without bytes.
    pub(super) fn empty() -> Self {
        Self {
            at: 0,
            len: 0,
            bytes: Some(Arc::default()),
        }
    }

    /// The bytes, if they are kept.
    pub(super) const fn bytes(&self) -> Option<&Arc<[u8]>> {
        self.bytes.as_ref()
    }

    /// Orders two tenant IDs by their bytes.
    pub(super) fn compare(&self, source: &dyn Source, other: &Self) -> Result<Ordering> {
        if let (Some(own), Some(other)) = (&self.bytes, &other.bytes) {
            return Ok(own.cmp(other));
        }
        let common = self.len.min(other.len);
        let (mut done, mut own_piece, mut other_piece) = (0, Vec::new(), Vec::new());
        while done < common {
            let piece = LIMITS.tenant_piece_bytes.min(common - done);
            for (name, buffer) in [(self, &mut own_piece), (other, &mut other_piece)] {
                buffer.resize(saturating_usize(piece), 0);
                source.read_exact_at(name.at + u64::from(done), buffer)?;
            }
            match own_piece.cmp(&other_piece) {
                Ordering::Equal => done += piece,
                unequal => return Ok(unequal),
            }
        }
        Ok(self.len.cmp(&other.len))
    }

    /// Whether the tenant ID has these bytes.
    pub(super) fn is(&self, source: &dyn Source, wanted: &[u8]) -> Result<bool> {
        if let Some(own) = &self.bytes {
            return Ok(**own == *wanted);
        }
        if u64::from(self.len) != wanted.len() as u64 {
            return Ok(false);
        }
        let (mut at, mut buffer) = (self.at, Vec::new());
        for piece in wanted.chunks(LIMITS.tenant_piece_bytes as usize) {
            buffer.resize(piece.len(), 0);
            source.read_exact_at(at, &mut buffer)?;
            if buffer != piece {
                return Ok(false);
            }
            at += piece.len() as u64;
        }
        Ok(true)
    }

    /// The bytes, read from the source if they are not kept.
    pub(super) fn load(&self, source: &dyn Source) -> Result<Arc<[u8]>> {
        if let Some(bytes) = &self.bytes {
            return Ok(bytes.clone());
        }
        read_name(source, self.at, saturating_usize(self.len))
    }
}

/// The bytes of a tenant ID, which lie within the source.
pub(super) fn read_name(source: &dyn Source, at: u64, len: usize) -> Result<Arc<[u8]>> {
    let mut bytes = vec![0; len];
    source.read_exact_at(at, &mut bytes)?;
    Ok(bytes.into())
}

/// The numbers of a decoded block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The number of messages.
    pub(super) messages: u32,
    /// The length of its tenant ID in bytes.
    pub(super) tenant_len: u32,
    /// The length of the whole block in bytes.
    pub(super) len: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Field {
    #[default]
    Messages,
    TenantLen,
    MessageLen,
    None,
}

/// Decodes a block's lengths from bytes that come in pieces of any size. Content may be skipped without its bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Decoder {
    /// The field that comes after the content that is left.
    next: Field,
    /// The bytes of a field that was cut by the end of a piece, and how many they are.
    partial: u32,
    partial_len: usize,
    /// How many bytes of content come first.
    skip: u64,
    messages: u32,
    tenant_len: u32,
    left: u32,
    /// How many bytes were decoded.
    len: u64,
}

impl Decoder {
    /// Whether the block is decoded to its end.
    pub(super) fn is_done(&self) -> bool {
        self.next == Field::None && self.skip == 0
    }

    /// How many bytes of content come next. Their values do not matter.
    pub(super) const fn content(&self) -> u64 {
        self.skip
    }

    /// Skips the content that comes next.
    pub(super) const fn pass(&mut self) {
        self.len += self.skip;
        self.skip = 0;
    }

    /// The offset in the block of the next field, after any content was skipped.
    pub(super) const fn offset(&self) -> u64 {
        self.len
    }

    /// Decodes the next piece. Ignores bytes after the block's end.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = Cursor::new(bytes);
        loop {
            let passed = rest.run_up_to(saturating_usize(self.skip)).len() as u64;
            self.skip -= passed;
            self.len += passed;
            if self.skip > 0 || self.next == Field::None {
                return;
            }
            if self.partial_len == 0
                && let Some(field) = rest.u32_be()
            {
                self.len += 4;
                self.take(field);
                continue;
            }
            for byte in rest.run_up_to(4 - self.partial_len) {
                self.partial = self.partial << 8 | u32::from(*byte);
                self.partial_len += 1;
                self.len += 1;
            }
            if self.partial_len < 4 {
                return;
            }
            self.partial_len = 0;
            self.take(self.partial);
        }
    }

    fn take(&mut self, value: u32) {
        match self.next {
            Field::Messages => {
                self.messages = value;
                self.left = value;
                self.next = Field::TenantLen;
                return;
            }
            Field::TenantLen => self.tenant_len = value,
            Field::MessageLen => self.left -= 1,
            Field::None => return,
        }
        self.skip = value.into();
        self.next = if self.left == 0 {
            Field::None
        } else {
            Field::MessageLen
        };
    }

    /// The numbers of the block, once it is decoded to its end.
    pub(super) const fn shape(&self) -> Shape {
        Shape {
            messages: self.messages,
            tenant_len: self.tenant_len,
            len: self.len,
        }
    }

    /// Whether the block ends exactly where a further message should begin.
    pub(super) fn is_between(&self) -> bool {
        self.next == Field::MessageLen && self.skip == 0 && self.partial_len == 0
    }
}
