//! Numbers and IDs to bytes: the table of contents and the headers before messages.

use super::MAGIC;
use crate::cursor::fields;

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
#[derive(Clone, Copy, Debug)]
pub(super) struct TocEntry {
    pub(super) partition: u32,
    pub(super) tenant_len: u32,
    pub(super) messages: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) crc: u32,
}

impl TocEntry {
    /// Parses the bytes before and after the tenant ID.
    pub(super) fn parse(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let (partition, tenant_len, messages, offset, length, crc) = fields(bytes);
        Self {
            partition,
            tenant_len,
            messages,
            offset,
            length,
            crc,
        }
    }

    /// The same, if the tenant ID is between them.
    pub(super) fn around(head: &[u8; HEAD_BYTES], tail: &[u8; TAIL_BYTES]) -> Self {
        let mut bytes = [0; ENTRY_BYTES];
        let (front, back) = bytes.split_at_mut(HEAD_BYTES);
        front.copy_from_slice(head);
        back.copy_from_slice(tail);
        Self::parse(&bytes)
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
