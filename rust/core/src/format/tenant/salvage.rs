//! Salvages the good blocks of a damaged segment (version 1: its good partitions): writes a new table of contents
//! and the blocks. Each block keeps the CRC-32 that verified it.

use super::front::{COUNT_BYTES, Segment};
use super::layout::{BLOCK_HEADER_BYTES, ENTRY_BYTES, TocEntry, file_header, v1_entry};
use super::toc::{TOC_START, V1_ENTRY_BYTES, V2_ENTRY_BYTES};
use super::walk::{TenantScan, TenantWalk};
use super::{VERSION_1, VERSION_2};
use crate::bug::OrBug;
use crate::cursor::fields;
use crate::engine::Salvage;
use crate::engine::candidate::read_piece;
use crate::engine::salvage::Entries;
use crate::error::Result;
use crate::output::Spool;
use crate::walk::{Step, Walk};

/// How much of the table of contents is written at once.
const PIECE_BYTES: usize = 1 << 16;

pub(super) fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let segment = Segment::open(salvage.source(), salvage.options())?;
    let walk = TenantWalk::new(TenantScan::of_blocks(&segment));
    let mut good = Good::find(salvage, walk)?;
    good.write_front(salvage)?;
    let mut tenants = Entries::<4>::new(&mut good.tenants)?;
    let (mut blocks, mut partition) = (Entries::new(&mut good.blocks)?, None);
    while let Some(bytes) = blocks.next()? {
        let block = TocEntry::parse(fields::<_, ENTRY_BYTES>(&bytes));
        if partition.replace(block.partition) != Some(block.partition) {
            let number = tenants.next()?.or_bug("a number for each partition")?;
            salvage.put(&number, block.offset.checked_sub(COUNT_BYTES))?;
        }
        salvage.carry(block.offset..block.offset + block.length)?;
    }
    Ok(())
}

/// What is known of all good blocks. In version 1 all blocks of a partition are treated as one.
struct Good {
    version: u16,
    /// Their entries, as far as the blocks do not contain them, and where they are now.
    blocks: Spool,
    /// The number of tenants of each partition.
    tenants: Spool,
    count: u32,
    partitions: u32,
    /// The length of the table of contents, from its first entry to its CRC-32.
    toc_bytes: u64,
    /// Where the first block (version 1: the first partition) was.
    first: Option<u64>,
}

impl Good {
    fn find(salvage: &mut Salvage<'_>, mut walk: TenantWalk) -> Result<Self> {
        let version = match walk.scan().on.input.front.version {
            VERSION_1 => VERSION_1,
            _ => VERSION_2, // also if nothing can be read
        };
        let mut found = Self {
            version,
            blocks: salvage.aside()?,
            tenants: salvage.aside()?,
            count: 0,
            partitions: 0,
            toc_bytes: match version {
                VERSION_1 => 0,
                _ => COUNT_BYTES,
            },
            first: None,
        };
        let mut partition = None::<(u32, u32)>;
        while walk.step()? == Step::More {
            let step = &walk.scan().on.found;
            let good = match version {
                VERSION_1 => &[],
                _ => step.good.as_slice(),
            };
            for good in good {
                let bytes = V2_ENTRY_BYTES + u64::from(good.tenant_len);
                found.add(&good.fields, bytes, good.offset);
                match &mut partition {
                    Some((id, tenants)) if *id == good.partition => *tenants += 1,
                    last => found.end_partition(last.replace((good.partition, 1))),
                }
            }
            // A truncated partition keeps the tenants that are whole, and gets their number.
            for good in &step.partitions {
                let blocks = TocEntry {
                    offset: good.offset + COUNT_BYTES,
                    length: good.length - COUNT_BYTES,
                    ..good.fields
                };
                found.add(&blocks, V1_ENTRY_BYTES, good.offset);
                found.end_partition(Some((good.partition, good.messages)));
            }
            found.blocks.flush_if_full()?;
            found.tenants.flush_if_full()?;
            salvage.surveyed(walk.offset())?;
        }
        found.end_partition(partition);
        Ok(found)
    }

    /// Adds a block whose entry will have this length. `start` is where it begins, or its header.
    fn add(&mut self, block: &TocEntry, entry_bytes: u64, start: u64) {
        self.first.get_or_insert(start);
        self.count = self.count.saturating_add(1); // at most as many as the file names
        self.toc_bytes += entry_bytes;
        block.head(self.blocks.buffer());
        block.tail(self.blocks.buffer());
    }

    fn end_partition(&mut self, partition: Option<(u32, u32)>) {
        if let Some((_, tenants)) = partition {
            self.partitions = self.partitions.saturating_add(1);
            let out = self.tenants.buffer();
            out.extend_from_slice(&tenants.to_be_bytes());
        }
    }

    /// Writes what comes before the first partition.
    fn write_front(&mut self, salvage: &mut Salvage<'_>) -> Result<()> {
        let source = salvage.source();
        let mut front = Front {
            until: match self.first {
                Some(first) => first,
                None => source.len(),
            },
            salvage,
            piece: Vec::new(),
            crc: crc32fast::Hasher::new(),
        };
        file_header(&mut front.piece, self.version, self.count);
        front.put(0)?;
        let mut offset = TOC_START + self.toc_bytes + COUNT_BYTES;
        let (mut blocks, mut partition) = (Entries::new(&mut self.blocks)?, None);
        while let Some(bytes) = blocks.next()? {
            let (block, start) = (TocEntry::parse(fields::<_, ENTRY_BYTES>(&bytes)), offset);
            if partition.replace(block.partition) != Some(block.partition) {
                offset += COUNT_BYTES;
            }
            let entry = TocEntry { offset, ..block };
            offset += block.length;
            if self.version == VERSION_1 {
                v1_entry(&mut front.piece, block.partition, start, offset - start);
                front.put(PIECE_BYTES)?;
                continue;
            }
            entry.head(&mut front.piece);
            // The block's own tenant ID, which its CRC-32 covers.
            let mut at = block.offset + BLOCK_HEADER_BYTES;
            let end = at + u64::from(block.tenant_len);
            while at < end {
                let piece = at..end.min(at + PIECE_BYTES as u64);
                read_piece(&*source, &piece, &mut front.piece)?;
                front.put(PIECE_BYTES)?;
                at = piece.end;
            }
            entry.tail(&mut front.piece);
            front.put(PIECE_BYTES)?;
        }
        if self.version != VERSION_1 {
            front.put(0)?;
            let crc = front.crc.clone().finalize();
            front.piece.extend_from_slice(&crc.to_be_bytes());
        }
        let partitions = self.partitions.to_be_bytes();
        front.piece.extend_from_slice(&partitions);
        front.put(0)
    }
}

/// The bytes before the first block or partition, written piece by piece.
struct Front<'a, 'b> {
    salvage: &'a mut Salvage<'b>,
    /// Where the first block or partition was. From there on nothing belongs to a front.
    until: u64,
    piece: Vec<u8>,
    /// The CRC-32 of everything written so far.
    crc: crc32fast::Hasher,
}

impl Front<'_, '_> {
    /// Writes the piece if it has at least so many bytes.
    fn put(&mut self, least: usize) -> Result<()> {
        if self.piece.len() >= least {
            self.crc.update(&self.piece);
            self.salvage.put_in_front(&self.piece, self.until)?;
            self.piece.clear();
        }
        Ok(())
    }
}
