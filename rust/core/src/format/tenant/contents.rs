//! The partitions and tenants of a segment, from its table of contents if that can be trusted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::VERSION_1;
use super::front::Segment;
use super::toc::Entry;
use super::walk::{TenantScan, TenantWalk};
use crate::error::Result;
use crate::source::Source;
use crate::walk::{Options, Step, Walk};

/// The messages of one tenant in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where the block begins in the file.
    pub position: u64,
    /// The partition's ID.
    pub partition: u32,
    /// The tenant's ID.
    pub tenant: Vec<u8>,
    /// The number of messages.
    pub messages: u32,
}

/// The content of a segment, without its messages.
#[derive(Clone, Debug)]
pub struct Contents {
    blocks: Vec<Block>,
    partitions: Vec<u32>,
    proven: bool,
}

impl Contents {
    /// Reads the table of contents. In version 1, whose table names no tenants, and if the table is damaged, walks the
    /// whole file.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) if the file had to be walked and `options` are strict.
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn read(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        let segment = Segment::open(source, options)?;
        if !segment.front.leads_directly() || segment.front.version == VERSION_1 {
            return Self::walk(&segment);
        }
        let (mut blocks, mut entries) = (Vec::new(), segment.entries());
        while let Some(entry) = entries.next(&*segment.source)? {
            blocks.push(block(&*segment.source, &entry)?);
        }
        let mut partitions: Vec<_> = blocks.iter().map(|block| block.partition).collect();
        partitions.dedup();
        Ok(Self {
            blocks,
            partitions,
            proven: true,
        })
    }

    /// Collects the blocks by a walk.
    fn walk(segment: &Segment) -> Result<Self> {
        let segment = segment.with(segment.options.clone().values(false));
        let mut walk = TenantWalk::new(TenantScan::of_blocks(&segment));
        let (mut blocks, mut partitions) = (Vec::new(), BTreeSet::new());
        loop {
            let step = walk.step()?;
            let found = &walk.scan().on.found;
            for good in &found.good {
                blocks.push(block(&*segment.source, good)?);
            }
            let good = found.good.iter().chain(&found.partitions);
            partitions.extend(good.map(|good| good.partition));
            if step != Step::More {
                break;
            }
        }
        Ok(Self {
            blocks,
            partitions: partitions.into_iter().collect(),
            proven: false,
        })
    }

    /// The blocks, in the order of the file.
    #[must_use]
    #[doc(hidden)]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The partitions' IDs, ascending. In version 1 also of partitions without tenants.
    #[must_use]
    pub fn partitions(&self) -> &[u32] {
        &self.partitions
    }

    /// The tenants' IDs of all partitions, ascending and distinct.
    #[must_use]
    pub fn tenants(&self) -> Vec<&[u8]> {
        let tenants: BTreeSet<_> = self
            .blocks
            .iter()
            .map(|block| block.tenant.as_slice())
            .collect();
        tenants.into_iter().collect()
    }

    /// Whether a checksum proves that these are all blocks.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.proven
    }
}

/// All blocks that reading keeps, despite any damage, in the order of the file. Includes blocks without messages.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
pub fn blocks(source: Arc<dyn Source>, options: &Options) -> Result<Vec<Block>> {
    let segment = Segment::open(source, &options.clone().strict(false))?;
    let mut contents = Contents::walk(&segment)?;
    Ok(std::mem::take(&mut contents.blocks))
}

/// The tenant's block that an entry describes.
fn block(source: &dyn Source, entry: &Entry) -> Result<Block> {
    Ok(Block {
        position: entry.offset,
        partition: entry.partition,
        tenant: entry.tenant.load(source)?.to_vec(),
        messages: entry.messages,
    })
}
