//! Stretches of the index that were read, so that looking around in one place of it takes one read.

use super::layout::{ENTRY_BYTES, Entry};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// The block that was read last of all those that share a place.
#[derive(Debug, Default)]
struct Block {
    /// Its number; what it holds, if anything, is of that.
    number: u64,
    bytes: Vec<u8>,
}

/// Some blocks of the index of a file that is not in memory.
#[derive(Debug, Default)]
pub(super) struct IndexBlocks(Vec<Block>);

impl IndexBlocks {
    /// Entry number `number` of an index of `count` entries, which the file is long enough for; the terminator for `count`.
    /// `None` where there is none of that number.
    pub(super) fn entry(
        &mut self,
        source: &dyn Source,
        number: u64,
        count: u64,
    ) -> Result<Option<Entry>> {
        if self.0.is_empty() {
            self.0.resize_with(LIMITS.max_index_blocks, Block::default);
        }
        let wanted = number / LIMITS.index_block_entries;
        let place = saturating_usize(wanted % LIMITS.max_index_blocks as u64);
        let Some(block) = self.0.get_mut(place) else {
            return Ok(None);
        };
        if block.number != wanted || block.bytes.is_empty() {
            let first = wanted * LIMITS.index_block_entries;
            let entries = count
                .saturating_add(1)
                .saturating_sub(first)
                .min(LIMITS.index_block_entries);
            let len = saturating_usize(entries * ENTRY_BYTES as u64);
            block.number = wanted;
            block.bytes.resize(len, 0);
            let read = source.read_exact_at(first * ENTRY_BYTES as u64, &mut block.bytes);
            if let Err(error) = read {
                block.bytes.clear();
                return Err(error);
            }
        }
        let within = saturating_usize(number % LIMITS.index_block_entries);
        let entries = block.bytes.as_chunks::<ENTRY_BYTES>().0;
        Ok(entries.get(within).map(Entry::parse))
    }
}
