//! The table of contents: its entries in turn, read in windows.

use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

use super::VERSION_1;
use super::layout::{ENTRY_BYTES, HEAD_BYTES, Name, TAIL_BYTES, TocEntry};
use crate::bug::OrBug;
use crate::cursor::fields;
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};

/// Where the version is, after the magic, and the number of entries after it.
pub(super) const VERSION_START: u64 = 4;
pub(super) const STATED_START: u64 = 6;
/// Where the first entry begins: after magic, version and number of entries.
pub(super) const TOC_START: u64 = 10;
/// The length of partition ID, offset and length.
pub(super) const V1_ENTRY_BYTES: u64 = 20;
/// The length of an entry of version 2 without its tenant ID.
pub(super) const V2_ENTRY_BYTES: u64 = ENTRY_BYTES as u64;
/// The length of what comes before the tenant ID.
pub(super) const V2_HEAD_BYTES: u64 = HEAD_BYTES as u64;

/// One entry of the table of contents, or a block or partition that is described like one. The entries of version 1 have no tenant,
/// messages and CRC, and what they name has no place in the table.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Where the entry begins.
    pub(super) at: u64,
    /// Where it ends.
    pub(super) end: u64,
    pub(super) tenant: Name,
    pub(super) fields: TocEntry,
}

impl Entry {
    /// The entry of version 2 at `at` with these fields and this tenant.
    pub(super) fn new(at: u64, fields: TocEntry, tenant: Name) -> Self {
        let end = at + V2_ENTRY_BYTES + u64::from(fields.tenant_len);
        Self {
            at,
            end,
            tenant,
            fields,
        }
    }

    /// Rule 22, last check: whether (partition, tenant) is greater than that of the entry of another block.
    pub(super) fn is_after(&self, source: &dyn Source, other: &Self) -> Result<bool> {
        Ok(match self.partition.cmp(&other.partition) {
            Ordering::Equal => other.tenant.compare(source, &self.tenant)? == Ordering::Less,
            order => order == Ordering::Greater,
        })
    }
}

impl Deref for Entry {
    type Target = TocEntry;

    fn deref(&self) -> &TocEntry {
        &self.fields
    }
}

/// Iterates over the entries. Never reads past the table if the number of entries is right.
#[derive(Debug, Default)]
pub(super) struct Entries {
    version: u16,
    /// Where the next entry begins.
    pub(super) at: u64,
    /// How many entries are left, if their number is right.
    pub(super) left: u64,
    /// The next entry, if it was peeked at.
    peeked: Option<Entry>,
    window_bytes: usize,
    window: Window,
    /// The file's first bytes, if they are in memory.
    kept: Arc<[u8]>,
}

impl Entries {
    /// The `left` entries from the one at `at` on. `kept` are the file's first bytes, as far as they are in
    /// memory.
    pub(super) fn new(
        version: u16,
        (at, left): (u64, u64),
        window_bytes: usize,
        kept: Arc<[u8]>,
    ) -> Self {
        Self {
            version,
            at,
            left,
            window_bytes,
            kept,
            ..Self::default()
        }
    }

    /// Makes this entry the only one that is left.
    pub(super) fn only(&mut self, entry: Entry) {
        (self.at, self.left, self.peeked) = (entry.at, 1, Some(entry));
    }

    /// The `len` bytes at `at`, which lie within the source.
    fn load<'a>(&'a mut self, source: &'a dyn Source, at: u64, len: u64) -> Result<&'a [u8]> {
        let (start, end) = (saturating_usize(at), saturating_usize(at + len));
        if let Some(kept) = self.kept.get(start..end) {
            return Ok(kept);
        }
        // Every remaining entry has at least this many bytes, so nothing after the table is read.
        let want = self.left.saturating_mul(self.least_bytes());
        let want = saturating_usize(want.saturating_sub(at - self.at)).min(self.window_bytes);
        self.window.exact(source, at, saturating_usize(len), want)
    }

    /// The same as [`load`](Self::load), for as many bytes as the array has.
    fn array<'a, const N: usize>(
        &'a mut self,
        source: &'a dyn Source,
        at: u64,
    ) -> Result<&'a [u8; N]> {
        let bytes = self.load(source, at, N as u64)?;
        bytes.first_chunk().or_bug("as many bytes as were loaded")
    }

    /// The minimum length of an entry in bytes.
    const fn least_bytes(&self) -> u64 {
        match self.version {
            VERSION_1 => V1_ENTRY_BYTES,
            _ => V2_ENTRY_BYTES,
        }
    }

    /// The next entry. `None` after the last, or if the next one would extend past the end of the file.
    pub(super) fn next(&mut self, source: &dyn Source) -> Result<Option<Entry>> {
        self.peek(source)?;
        Ok(self.pass())
    }

    /// Peeks at the next entry.
    pub(super) fn peek(&mut self, source: &dyn Source) -> Result<Option<&Entry>> {
        if self.peeked.is_none() && self.left > 0 {
            self.peeked = self.read(source)?;
            if self.peeked.is_none() {
                self.left = 0;
            }
        }
        Ok(self.peeked.as_ref())
    }

    /// Advances past the entry that was peeked at.
    #[inline]
    pub(super) fn pass(&mut self) -> Option<Entry> {
        let passed = self.peeked.take()?;
        (self.at, self.left) = (passed.end, self.left - 1);
        Some(passed)
    }

    /// The entry at `at`. `None` if it would extend past the end of the file.
    fn read(&mut self, source: &dyn Source) -> Result<Option<Entry>> {
        let (at, available) = (self.at, source.len().saturating_sub(self.at));
        if available < self.least_bytes() {
            return Ok(None);
        }
        if self.version == VERSION_1 {
            let (partition, offset, length) = fields(self.array::<20>(source, at)?);
            let fields = TocEntry {
                partition,
                offset,
                length,
                ..TocEntry::default()
            };
            return Ok(Some(Entry {
                at,
                end: at + V1_ENTRY_BYTES,
                tenant: Name::empty(),
                fields,
            }));
        }
        let head = *self.array::<HEAD_BYTES>(source, at)?;
        let (_, tenant_len): (u32, u32) = fields(&head);
        let (tenant_at, tenant_bytes) = (at + V2_HEAD_BYTES, u64::from(tenant_len));
        if available < V2_ENTRY_BYTES + tenant_bytes {
            return Ok(None);
        }
        let tenant = Name::new(tenant_at, tenant_len, |_| {
            Ok(self.load(source, tenant_at, tenant_bytes)?.into())
        })?;
        let tail = self.array::<TAIL_BYTES>(source, tenant_at + tenant_bytes)?;
        let fields = TocEntry::parse((&head, tail));
        Ok(Some(Entry::new(at, fields, tenant)))
    }
}

/// The position of a scan in the table of contents.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) entries: Entries,
    /// The same entries, iterated separately to look ahead. Each is read once, however often it is looked at.
    pub(super) ahead: Entries,
    /// The partition of the entry before the next one.
    pub(super) before: Option<u32>,
}

impl Table {
    /// Advances past the current entry. Returns its place, like [`place`](Self::place).
    pub(super) fn pass(&mut self) -> Option<(u64, u64)> {
        let place = self.place();
        let passed = self.entries.pass();
        self.before = passed.as_ref().map(|entry| entry.partition);
        passed.map(|_| place)
    }

    /// Where the current entry is, and how many are left from there on.
    pub(super) const fn place(&self) -> (u64, u64) {
        (self.entries.at, self.entries.left)
    }

    /// Skips all entries that are left.
    pub(super) fn end(&mut self) {
        self.entries.pass();
        self.entries.left = 0;
    }

    /// Looks ahead to the first entry after `entry`, unless the look-ahead has passed that already.
    pub(super) fn ahead_of(&mut self, source: &dyn Source, entry: &Entry) -> Result<&mut Entries> {
        while let Some(next) = self.ahead.peek(source)?
            && next.at <= entry.at
        {
            self.ahead.pass();
        }
        Ok(&mut self.ahead)
    }

    /// How many entries the partition has whose first one is the current one, `entry`. `None` for its other entries.
    pub(super) fn partition_begins(
        &mut self,
        source: &dyn Source,
        entry: &Entry,
    ) -> Result<Option<u64>> {
        if self.before == Some(entry.partition) {
            return Ok(None);
        }
        let ahead = self.ahead_of(source, entry)?;
        let mut entries = 1;
        while ahead
            .peek(source)?
            .is_some_and(|next| next.partition == entry.partition)
        {
            ahead.pass();
            entries += 1;
        }
        Ok(Some(entries))
    }
}
