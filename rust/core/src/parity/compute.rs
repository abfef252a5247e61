//! Computing data blocks from the others of their group (rule 6).

use parity_code::{Matrix, Multiplier};

use super::judge::{BlockProof, Judged};
use super::known::KnownBytes;
use crate::bug::OrBug;
use crate::error::Result;

/// The known blocks of a group, and those to compute. Both in ascending order.
#[derive(Default)]
struct Group {
    known: Vec<u8>,
    /// Of the known points, those whose blocks are stored: others are zeros.
    stored: Vec<u8>,
    wanted: Vec<u8>,
}

impl Judged<'_> {
    /// Rule 6: computes data blocks that are not proven, and puts the accepted ones in place. If this frame is judged
    /// once more, they replace what superseded frames told; else they replace nothing that is known.
    pub(super) fn compute(&mut self, known: &mut KnownBytes, again: bool) -> Result<()> {
        if self.data.len() < self.geometry.blocks || self.parity.is_empty() {
            return Ok(()); // without parity no group has as many known points as it needs
        }
        for number in 0..self.geometry.groups {
            let group = self.group(number);
            if !group.wanted.is_empty() && group.known.len() == self.geometry.data {
                self.compute_group(known, number, &group, again)?;
            }
        }
        Ok(())
    }

    /// The points of a group: the first k known ones.
    fn group(&self, number: usize) -> Group {
        let geometry = &self.geometry;
        let mut group = Group::default();
        for point in (0..=u8::MAX).take(geometry.data + geometry.parity) {
            let index = usize::from(point);
            let block = index.saturating_sub(geometry.data) * geometry.groups + number;
            let proof = self.data.get(index * geometry.groups + number);
            let (is_known, is_stored) = match proof.filter(|_| index < geometry.data) {
                Some(BlockProof::Hash | BlockProof::Superseded) => (true, true),
                Some(BlockProof::Equal) => (false, true),
                Some(BlockProof::None) => {
                    group.wanted.push(point);
                    (false, true)
                }
                None if index < geometry.data => (true, false),
                None => (self.parity.get(block) == Some(&true), true),
            };
            if is_known && group.known.len() < geometry.data {
                group.known.push(point);
                if is_stored {
                    group.stored.push(point);
                }
            }
        }
        group
    }

    fn compute_group(
        &mut self,
        known: &mut KnownBytes,
        number: usize,
        group: &Group,
        again: bool,
    ) -> Result<()> {
        let matrix = Matrix::interpolating(&group.known, &group.stored, &group.wanted)
            .or_bug("each point once")?;
        let block_bytes = self.geometry.block_bytes;
        let mut blocks = Vec::with_capacity(group.stored.len());
        for point in &group.stored {
            blocks.push(self.read_block(known, number, usize::from(*point))?);
        }
        let columns: Vec<_> = blocks.iter().map(Vec::as_slice).collect();
        let mut computed = vec![0; group.wanted.len() * block_bytes];
        let mut sums: Vec<_> = computed.chunks_mut(block_bytes).collect();
        Multiplier::new().add(&matrix, &columns, &mut sums);
        for (point, computed) in group.wanted.iter().zip(computed.chunks(block_bytes)) {
            let block = usize::from(*point) * self.geometry.groups + number;
            if !self.is_agreed(block) {
                continue;
            }
            let range = self.geometry.block(block);
            let hashes = self.hasher.hash(block, computed, block_bytes);
            let hash = *hashes.first().or_bug("the hash of a block")?;
            let proof = if self.is_entry(block, hash) {
                let bytes = computed.get(..range.len()).or_bug("a whole block")?;
                if self.may_be_shorter(known, block, bytes, hash)? {
                    continue;
                }
                if again {
                    known.replace(range.start, bytes);
                    known.add(range);
                } else {
                    known.put(range.start, bytes);
                }
                BlockProof::Hash
            } else if !known.is_missing(&range, self.file_there)
                && self.read_block(known, number, usize::from(*point))? == computed
            {
                BlockProof::Equal
            } else {
                continue;
            };
            *self.data.get_mut(block).or_bug("a block of the group")? = proof;
            *self.hashes.get_mut(block).or_bug("a block of the group")? = hash;
        }
        Ok(())
    }

    /// The block of a group at a point: data as it is in place, with padding, or parity without the set's ID.
    fn read_block(&self, known: &KnownBytes, group: usize, point: usize) -> Result<Vec<u8>> {
        let geometry = &self.geometry;
        if let Some(row) = point.checked_sub(geometry.data) {
            let block = row * geometry.groups + group;
            let mut parity = self.read_parity(block..block + 1)?;
            self.set.mask(&mut parity);
            return Ok(parity);
        }
        let range = geometry.block(point * geometry.groups + group);
        let mut bytes = vec![0; geometry.block_bytes];
        let there = bytes.get_mut(..range.len()).or_bug("a whole block")?;
        known.read(self.files, self.band_start, range.start, there)?;
        Ok(bytes)
    }
}
