//! The good blocks of a damaged segment (version 1: its good partitions), behind a table of contents that is made anew, in
//! which each block has the CRC-32 that it was checked by.

use super::block::BLOCK_HEADER_BYTES;
use super::found::KeptPartition;
use super::front::COUNT_BYTES;
use super::layout::{TocEntry, file_header};
use super::toc::{TOC_START, V1_ENTRY_BYTES, V2_ENTRY_BYTES};
use super::walk::TenantWalk;
use super::{VERSION_1, VERSION_2};
use crate::bug::OrBug;
use crate::cursor::fields;
use crate::engine::salvage::Entries;
use crate::engine::suspect::read_piece;
use crate::engine::{Options, Salvage, Start, Step, Walk, Wanted};
use crate::error::Result;
use crate::output::Spool;

/// A partition as it is put aside: ID and number of tenants, where it begins, where it ends.
const PARTITION_BYTES: usize = 24;
/// A block as it is put aside: partition, tenant ID length, messages and CRC-32, where it begins, how long it is.
const BLOCK_BYTES: usize = 32;
/// How much of the table of contents is written at once.
const PIECE_BYTES: usize = 1 << 16;

pub(super) fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let options = Options {
        // No messages: which blocks are good is enough.
        wanted: Wanted {
            tenants: Some(Vec::new()),
            ..Wanted::default()
        },
        ..salvage.options().clone()
    };
    let walk = TenantWalk::open(salvage.source(), &options, Start::Beginning)?;
    if walk.scan().front().version == VERSION_1 {
        salvage_partitions(salvage, walk)
    } else {
        salvage_blocks(salvage, walk)
    }
}

/// Version 1. A partition that the file was cut in keeps the tenants that are whole, and gets their number.
fn salvage_partitions(salvage: &mut Salvage<'_>, mut walk: TenantWalk) -> Result<()> {
    let (mut kept, mut count, mut first) = (salvage.aside()?, 0_u32, None);
    while walk.step()? == Step::More {
        for partition in walk.scan().found().kept_partitions() {
            first.get_or_insert(partition.at);
            count = count.saturating_add(1); // at most as many as the file names
            let out = kept.buffer();
            out.extend_from_slice(&partition.partition.to_be_bytes());
            out.extend_from_slice(&partition.tenants.to_be_bytes());
            out.extend_from_slice(&partition.at.to_be_bytes());
            out.extend_from_slice(&partition.end.to_be_bytes());
        }
        kept.flush_if_full()?;
        salvage.looked(walk.offset())?;
    }
    let mut front = Front::new(salvage, first);
    file_header(&mut front.piece, VERSION_1, count);
    front.put()?;
    let mut offset = TOC_START + V1_ENTRY_BYTES * u64::from(count) + COUNT_BYTES;
    let mut partitions = Entries::new(&mut kept)?;
    while let Some(bytes) = partitions.next()? {
        let kept = KeptPartition::parse(&bytes);
        let entry = TocEntry {
            partition: kept.partition,
            tenant_len: 0,
            messages: 0,
            offset,
            length: kept.end - kept.at,
            crc: 0,
        };
        entry.head(&mut front.piece, VERSION_1);
        entry.tail(&mut front.piece, VERSION_1);
        offset += entry.length;
        front.put_if_full()?;
    }
    front.piece.extend_from_slice(&count.to_be_bytes());
    front.put()?;
    let mut partitions = Entries::new(&mut kept)?;
    while let Some(bytes) = partitions.next()? {
        let kept = KeptPartition::parse(&bytes);
        salvage.put(&kept.tenants.to_be_bytes(), Some(kept.at))?;
        salvage.carry(kept.at + COUNT_BYTES..kept.end)?;
    }
    Ok(())
}

impl KeptPartition {
    fn parse(bytes: &[u8; PARTITION_BYTES]) -> Self {
        let (partition, tenants, at, end) = fields(bytes);
        Self {
            partition,
            at,
            tenants,
            end,
        }
    }
}

/// A good block of version 2.
struct Block {
    partition: u32,
    tenant_len: u32,
    messages: u32,
    crc: u32,
    position: u64,
    len: u64,
}

impl Block {
    fn parse(bytes: &[u8; BLOCK_BYTES]) -> Self {
        let (partition, tenant_len, messages, crc, position, len) = fields(bytes);
        Self {
            partition,
            tenant_len,
            messages,
            crc,
            position,
            len,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        for number in [self.partition, self.tenant_len, self.messages, self.crc] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.position.to_be_bytes());
        out.extend_from_slice(&self.len.to_be_bytes());
    }
}

/// What is known of the good blocks when all have been seen.
struct Blocks {
    blocks: Spool,
    /// For each partition its number of tenants.
    tenants: Spool,
    count: u32,
    partitions: u32,
    /// The length of the table of contents' entries.
    entries_bytes: u64,
    /// Where the first block was.
    first: Option<u64>,
}

impl Blocks {
    fn find(salvage: &mut Salvage<'_>, mut walk: TenantWalk) -> Result<Self> {
        let mut found = Self {
            blocks: salvage.aside()?,
            tenants: salvage.aside()?,
            count: 0,
            partitions: 0,
            entries_bytes: 0,
            first: None,
        };
        let mut partition = None::<(u32, u32)>;
        while walk.step()? == Step::More {
            for kept in walk.scan().found().kept() {
                let Some((len, crc)) = kept.checked else {
                    continue;
                };
                found.add(&Block {
                    partition: kept.partition,
                    tenant_len: kept.tenant.len,
                    messages: kept.messages,
                    crc,
                    position: kept.position,
                    len,
                });
                match &mut partition {
                    Some((id, tenants)) if *id == kept.partition => *tenants += 1,
                    partition => found.end_partition(partition.replace((kept.partition, 1))),
                }
            }
            found.blocks.flush_if_full()?;
            found.tenants.flush_if_full()?;
            salvage.looked(walk.offset())?;
        }
        found.end_partition(partition);
        Ok(found)
    }

    fn add(&mut self, block: &Block) {
        self.first.get_or_insert(block.position);
        self.count = self.count.saturating_add(1); // at most as many as the file names
        self.entries_bytes += V2_ENTRY_BYTES + u64::from(block.tenant_len);
        block.put(self.blocks.buffer());
    }

    fn end_partition(&mut self, partition: Option<(u32, u32)>) {
        if let Some((_, tenants)) = partition {
            self.partitions = self.partitions.saturating_add(1);
            let out = self.tenants.buffer();
            out.extend_from_slice(&tenants.to_be_bytes());
        }
    }
}

/// Version 2.
fn salvage_blocks(salvage: &mut Salvage<'_>, walk: TenantWalk) -> Result<()> {
    let mut found = Blocks::find(salvage, walk)?;
    let source = salvage.source();
    let mut front = Front::new(salvage, found.first);
    file_header(&mut front.piece, VERSION_2, found.count);
    front.put()?;
    // Behind the table its CRC-32 and the number of partitions.
    let mut offset = TOC_START + found.entries_bytes + 2 * COUNT_BYTES;
    let mut partition = None;
    let mut blocks = Entries::new(&mut found.blocks)?;
    while let Some(bytes) = blocks.next()? {
        let block = Block::parse(&bytes);
        if partition.replace(block.partition) != Some(block.partition) {
            offset += COUNT_BYTES;
        }
        let entry = TocEntry {
            partition: block.partition,
            tenant_len: block.tenant_len,
            messages: block.messages,
            offset,
            length: block.len,
            crc: block.crc,
        };
        offset += block.len;
        entry.head(&mut front.piece, VERSION_2);
        // The block's own tenant ID: that is what its CRC-32 is of.
        let mut at = block.position + BLOCK_HEADER_BYTES;
        let end = at + u64::from(block.tenant_len);
        while at < end {
            let piece = at..end.min(at + PIECE_BYTES as u64);
            read_piece(&*source, &piece, &mut front.piece)?;
            front.put_if_full()?;
            at = piece.end;
        }
        entry.tail(&mut front.piece, VERSION_2);
        front.put_if_full()?;
    }
    front.put()?;
    let crc = front.crc.clone().finalize();
    front.piece.extend_from_slice(&crc.to_be_bytes());
    front
        .piece
        .extend_from_slice(&found.partitions.to_be_bytes());
    front.put()?;
    let mut tenants = Entries::<4>::new(&mut found.tenants)?;
    let (mut blocks, mut partition) = (Entries::new(&mut found.blocks)?, None);
    while let Some(bytes) = blocks.next()? {
        let block = Block::parse(&bytes);
        if partition.replace(block.partition) != Some(block.partition) {
            let number = tenants.next()?.or_bug("a number for each partition")?;
            salvage.put(&number, block.position.checked_sub(COUNT_BYTES))?;
        }
        salvage.carry(block.position..block.position + block.len)?;
    }
    Ok(())
}

/// What stands in front of the first block or partition, put together piece by piece.
struct Front<'a, 'b> {
    salvage: &'a mut Salvage<'b>,
    /// Where the first block or partition was: from there on nothing is part of a front.
    until: u64,
    piece: Vec<u8>,
    /// The CRC-32 of all that has been written.
    crc: crc32fast::Hasher,
}

impl<'a, 'b> Front<'a, 'b> {
    fn new(salvage: &'a mut Salvage<'b>, first: Option<u64>) -> Self {
        let until = first.unwrap_or_else(|| salvage.source().len());
        Self {
            salvage,
            until,
            piece: Vec::new(),
            crc: crc32fast::Hasher::new(),
        }
    }

    fn put_if_full(&mut self) -> Result<()> {
        if self.piece.len() >= PIECE_BYTES {
            self.put()
        } else {
            Ok(())
        }
    }

    fn put(&mut self) -> Result<()> {
        self.crc.update(&self.piece);
        self.salvage.put_in_front(&self.piece, self.until)?;
        self.piece.clear();
        Ok(())
    }
}
