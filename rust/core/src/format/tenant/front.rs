//! The front of a file: magic, version, table of contents and number of partitions. Read once when the file is
//! opened.

use std::sync::Arc;

use super::layout::file_header;
use super::toc::{Entries, Entry, STATED_START, TOC_START, V1_ENTRY_BYTES, VERSION_START};
use super::{MAGIC, VERSION_1, VERSION_2};
use crate::cursor::fields;
use crate::engine::salvage::each_piece;
use crate::error::Result;
use crate::ledger::Cause;
use crate::limits::LIMITS;
use crate::record::Checked;
use crate::source::{Source, read_array};
use crate::walk::Options;
use crate::walk::indexed::{self, Fields};

/// The length of the number of partitions, and of the number of tenants before a partition's first block.
pub(super) const COUNT_BYTES: u64 = 4;
/// How many entries are read between two polls of the interrupt.
const POLL_ENTRIES: u64 = 4096;
/// How many bytes of entries are hashed at once.
const HASHED_BYTES: usize = 4096;

/// The fields of the front, and how far they can be trusted.
#[derive(Clone, Debug, Default)]
pub(super) struct Front {
    /// The length of the file.
    pub(super) len: u64,
    /// The version that the file is read as.
    pub(super) version: u16,
    /// The version in the file.
    pub(super) stated_version: u16,
    /// The magic in the file.
    pub(super) magic: u32,
    /// The number of entries in the file.
    pub(super) stated: u32,
    /// How many entries are read. Version 1: by the number that is used. Version 2: those that fit.
    pub(super) entries: u64,
    /// Where the number of partitions is. `None` if the table does not fit.
    pub(super) toc_end: Option<u64>,
    /// Version 2: the stored CRC-32, and the computed one of the bytes before it.
    pub(super) stored_crc: u32,
    pub(super) computed_crc: u32,
    /// The cause of the whole file, or of everything before the first good block, if the front is damaged.
    pub(super) broken: Option<Cause>,
    /// Whether nothing in the file can be read.
    pub(super) refused: bool,
    /// How many partitions the entries name: adjacent entries with the same ID are one.
    pub(super) partitions: u64,
    /// The number of partitions in the file.
    pub(super) partitions_found: Option<u32>,
    /// The last entry whose block does not begin after the one of the entry before it. From there on the entries
    /// name blocks in file order.
    pub(super) disorder: Option<u64>,
    /// Whether (partition, tenant) ascend from entry to entry (version 1: partition).
    pub(super) ascending: bool,
    /// The last entry whose block (version 1: partition) begins before the end of the file.
    pub(super) last_within: Option<u64>,
    /// The bytes through the last entry, if they are few enough.
    pub(super) kept: Arc<[u8]>,
}

impl Front {
    /// Reads the front, but no more than `limit` bytes of a table of version 2. A longer table is treated as one
    /// that does not fit. Each entry of a table that is too large to keep is read once here, and once by the walk.
    pub(super) fn read(source: &dyn Source, options: &Options, limit: u64) -> Result<Self> {
        let mut front = Self {
            len: source.len(),
            broken: Some(Cause::TruncatedHeader),
            refused: true,
            ascending: true,
            ..Self::default()
        };
        if front.len < TOC_START {
            return Ok(front);
        }
        let head: [u8; 10] = read_array(source, 0)?;
        (front.magic, front.version, front.stated) = fields(&head);
        front.stated_version = front.version;
        match front.version {
            VERSION_1 => front.read_v1(source, options)?,
            VERSION_2 => front.read_v2(source, options, limit)?,
            _ if front.magic == MAGIC => {
                // Rule 21: of an unknown version, unless the table's CRC-32 shows that it was version 2.
                let mut as_v2 = Self {
                    version: VERSION_2,
                    ..front.clone()
                };
                as_v2.read_v2(source, options, limit)?;
                if as_v2.is_sound() {
                    return Ok(as_v2);
                }
                front.broken = Some(Cause::UnsupportedVersion);
            }
            _ => front.broken = Some(Cause::BadMagic),
        }
        Ok(front)
    }

    /// Version 1: the number of entries is used if the data it leads to agrees, else the number that other fields
    /// agree on.
    fn read_v1(&mut self, source: &dyn Source, options: &Options) -> Result<()> {
        let first_offset = match source.len() >= TOC_START + V1_ENTRY_BYTES {
            true => Some(u64::from_be_bytes(read_array(source, TOC_START + 4)?)),
            false => None,
        };
        let end = |entries: u64| TOC_START + V1_ENTRY_BYTES * entries;
        let agrees = |entries: u64| -> Result<bool> {
            let found = self.count_at(source, end(entries))?;
            Ok(found.is_some_and(|found| u64::from(found) == entries))
        };
        let stated = u64::from(self.stated);
        let by_offset = first_offset
            .and_then(|offset| offset.checked_sub(end(0) + COUNT_BYTES))
            .filter(|bytes| bytes % V1_ENTRY_BYTES == 0)
            .map(|bytes| bytes / V1_ENTRY_BYTES)
            .filter(|entries| u32::try_from(*entries).is_ok());
        let entries = if by_offset == Some(stated) || agrees(stated)? {
            stated
        } else {
            match by_offset {
                Some(entries) if entries > 0 && agrees(entries)? => entries,
                _ => stated,
            }
        };
        if end(entries) > self.len {
            self.broken = Some(Cause::LengthOutOfBounds);
            return Ok(());
        }
        self.broken = None;
        self.refused = false;
        self.toc_end = Some(end(entries));
        self.entries = entries;
        self.partitions_found = self.count_at(source, end(entries))?;
        let (mut cursor, mut last) = (self.from(options, self.place()), None);
        while let Some(entry) = cursor.next(source)? {
            self.add_entry(source, last.as_ref(), &entry)?;
            last = Some(entry);
            if cursor.left.is_multiple_of(POLL_ENTRIES) {
                options.poll()?;
            }
        }
        self.partitions = entries;
        Ok(())
    }

    /// Version 2: the table of contents is sound if the magic matches, it fits, and its CRC-32 matches.
    fn read_v2(&mut self, source: &dyn Source, options: &Options, limit: u64) -> Result<()> {
        self.refused = false;
        // What is not hashed yet: all bytes, as long as they are few enough to be kept.
        let (mut bytes, mut keep) = (Vec::new(), source.as_slice().is_none());
        file_header(&mut bytes, self.version, self.stated);
        // The magic as it is in the file, right or wrong.
        bytes.splice(..4, self.magic.to_be_bytes());
        let (mut crc, mut last) = (crc32fast::Hasher::new(), None::<Entry>);
        self.entries = self.stated.into();
        let mut cursor = self.from(options, self.place());
        self.entries = 0;
        while let Some(entry) = cursor.next(source)?.filter(|entry| entry.end <= limit) {
            entry.fields.head(&mut bytes);
            match entry.tenant.bytes() {
                Some(tenant) => bytes.extend_from_slice(tenant),
                None => {
                    crc.update(&bytes);
                    bytes.clear();
                    let name = entry.tenant.at..entry.tenant.at + u64::from(entry.tenant.len);
                    each_piece(source, options, name, |piece| {
                        crc.update(piece);
                        Ok(())
                    })?;
                    keep = false;
                }
            }
            entry.fields.tail(&mut bytes);
            keep &= entry.end <= LIMITS.kept_toc_bytes;
            if !keep && bytes.len() >= HASHED_BYTES {
                crc.update(&bytes);
                bytes.clear();
            }
            self.add_entry(source, last.as_ref(), &entry)?;
            last = Some(entry);
            self.entries += 1;
            if self.entries.is_multiple_of(POLL_ENTRIES) {
                options.poll()?;
            }
        }
        crc.update(&bytes);
        self.end_v2(source, cursor.at, crc.finalize())?;
        if keep {
            self.kept = bytes.into();
        }
        Ok(())
    }

    /// Updates what is known of all entries by one entry.
    fn add_entry(
        &mut self,
        source: &dyn Source,
        last: Option<&Entry>,
        entry: &Entry,
    ) -> Result<()> {
        if entry.offset < self.len {
            self.last_within = Some(entry.at);
        }
        let Some(last) = last else {
            self.partitions = 1;
            return Ok(());
        };
        if entry.offset < last.block_end() {
            self.disorder = Some(entry.at);
        }
        self.partitions += u64::from(entry.partition != last.partition);
        self.ascending &= entry.is_after(source, last)?;
        Ok(())
    }

    /// Version 2: finishes the table, whose entries end at `end` and have this CRC-32.
    fn end_v2(&mut self, source: &dyn Source, end: u64, crc: u32) -> Result<()> {
        let is_all = self.entries == u64::from(self.stated);
        let stored = if is_all {
            self.count_at(source, end)?
        } else {
            None
        };
        if let Some(stored) = stored {
            (self.stored_crc, self.computed_crc) = (stored, crc);
            self.toc_end = Some(end + COUNT_BYTES);
            self.partitions_found = self.count_at(source, end + COUNT_BYTES)?;
        }
        self.broken = if self.magic != MAGIC {
            Some(Cause::BadMagic)
        } else if stored.is_none() {
            Some(Cause::LengthOutOfBounds)
        } else if self.stored_crc != self.computed_crc {
            Some(Cause::HeaderChecksumMismatch)
        } else {
            None
        };
        Ok(())
    }

    /// The u32 at `at`. `None` if the file ends before it.
    fn count_at(&self, source: &dyn Source, at: u64) -> Result<Option<u32>> {
        if self.len.saturating_sub(at) < COUNT_BYTES {
            return Ok(None);
        }
        Ok(Some(u32::from_be_bytes(read_array(source, at)?)))
    }

    /// Where the first entry is, and how many there are.
    pub(super) const fn place(&self) -> (u64, u64) {
        (TOC_START, self.entries)
    }

    /// The `left` entries from the one at `at` on.
    pub(super) fn from(&self, options: &Options, place: (u64, u64)) -> Entries {
        Entries::new(self.version, place, options.window_bytes, self.kept.clone())
    }

    /// How the messages of this version are checked.
    pub(super) const fn checked(&self) -> Checked {
        match self.version {
            VERSION_1 => Checked::Structure,
            _ => Checked::Checksum,
        }
    }

    /// Whether the table of contents can be trusted, as far as this version allows.
    pub(super) const fn is_sound(&self) -> bool {
        self.broken.is_none()
    }

    /// Where the first block (version 1: the first partition) can begin.
    pub(super) fn first_block(&self) -> u64 {
        match self.toc_end {
            Some(end) if self.version == VERSION_1 => end + COUNT_BYTES,
            Some(end) if self.is_sound() => end + 2 * COUNT_BYTES,
            _ => TOC_START,
        }
    }

    /// Whether a block can begin at `at`.
    pub(super) fn in_bounds(&self, at: u64) -> bool {
        (self.first_block()..self.len).contains(&at)
    }

    /// The end of the ranges that only a whole walk can decide: after the number of partitions.
    pub(super) fn end(&self) -> u64 {
        match self.toc_end {
            Some(end) if self.is_sound() => (end + COUNT_BYTES).min(self.len),
            _ => 0,
        }
    }

    /// The ranges of the front. `None` if only what follows it shows where it ends.
    pub(super) fn fields(&self) -> Option<Fields> {
        let toc_end = self.toc_end.filter(|_| self.is_sound())?;
        let magic = (self.magic != MAGIC).then_some(Cause::BadMagic);
        let is_mended = self.stated_version != self.version;
        let version = is_mended.then_some(Cause::UnsupportedVersion);
        let count = self.is_count_wrong().then_some(Cause::CountMismatch);
        let partitions = match self.partitions_found {
            Some(found) if u64::from(found) == self.partitions => None,
            Some(_) => Some(Cause::CountMismatch),
            None => Some(Cause::TruncatedHeader),
        };
        Some(Fields {
            len: self.len,
            before: vec![
                (VERSION_START, magic),
                (STATED_START, version),
                (TOC_START, count),
            ],
            after: [(toc_end, None), (self.end(), partitions)],
        })
    }

    /// Whether the front alone shows damage.
    pub(super) fn is_damaged(&self) -> bool {
        !self.is_sound()
            || self
                .fields()
                .is_some_and(|fields| fields.first_damage().is_some())
    }

    /// Whether the number of entries is wrong, or claims more than there is.
    pub(super) fn is_count_wrong(&self) -> bool {
        let stated = u64::from(self.stated);
        self.version == VERSION_1 && stated != self.entries || self.ends_after_toc()
    }

    /// Whether the file ends after the table of contents, and no entry shows that.
    pub(super) fn ends_after_toc(&self) -> bool {
        self.entries == 0 && self.toc_end == Some(self.len)
    }
}

pub(super) type Segment = indexed::Segment<Arc<Front>>;

impl Segment {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Ok(Self {
            front: Arc::new(Front::read(&*source, options, u64::MAX)?),
            options: options.clone(),
            source,
        })
    }

    /// The entries, from the first on.
    pub(super) fn entries(&self) -> Entries {
        self.front.from(&self.options, self.front.place())
    }
}
