//! Judging a frame: which blocks of its band are proven (rules 5 and 7), also by computing them from the others of their group (rule 6).

use std::ops::Range;

use parity_code::{Matrix, Multiplier};

use super::bytes::{BlockHasher, Files, KnownBytes, PIECE_BYTES};
use super::frames::Frame;
use super::layout::{ENTRY_BYTES, Geometry, HEAD_BYTES, Head, Set};
use crate::bug::OrBug;
use crate::error::Result;
use crate::saturating::saturating_usize;

/// How many blocks are read first where one that verifies is enough. Most often that is the first one.
const FIRST_BLOCKS: usize = 8;

/// What is known of a data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockProof {
    /// Neither verified nor accepted.
    None,
    /// Its hash, as it is in place, is that of an entry.
    Hash,
    /// It was computed, and its bytes in place are the same. Its entries are not there or damaged.
    Equal,
    /// Superseded frames prove each of its bytes.
    Superseded,
}

/// A frame that is judged.
pub(super) struct Judged<'a> {
    pub(super) files: &'a Files<'a>,
    pub(super) set: Set,
    pub(super) frame: Frame,
    pub(super) geometry: Geometry,
    hasher: BlockHasher,
    /// Where the band begins in the file.
    pub(super) band_start: u64,
    /// How many bytes of the band the file has.
    pub(super) file_there: usize,
    /// The bytes of the band that both heads cover. If one head is that of another frame of the band, which covers less or more, an
    /// entry of the last block may be that of fewer bytes, and zeros in place of the others.
    agreed: usize,
    /// The entries of both tables, as far as they are there.
    pub(super) tables: [Vec<u64>; 2],
    /// The data blocks, up to the last one with an entry. If that is not the last block, the frame is cut off inside
    /// of its first table and has no parity.
    pub(super) data: Vec<BlockProof>,
    /// Whether parity blocks verify, as far as they are there.
    parity: Vec<bool>,
    /// The hashes of data blocks as they were in place when they were proven, or were read at last if nothing proved them.
    pub(super) hashes: Vec<u64>,
}

impl<'a> Judged<'a> {
    /// Reads the tables of a frame.
    pub(super) fn open(files: &'a Files<'a>, set: Set, frame: Frame) -> Result<Self> {
        let geometry = frame.geometry(&set);
        let band_start = set.band_start(frame.band);
        let read_table = |front: usize| {
            let start = front + HEAD_BYTES;
            let end = start + geometry.entries() * ENTRY_BYTES;
            let bytes = read_frame(files, &frame, start..end)?;
            let entries = bytes.as_chunks::<ENTRY_BYTES>().0.iter();
            Result::Ok(entries.map(|entry| u64::from_be_bytes(*entry)).collect())
        };
        let tables: [Vec<u64>; 2] = [read_table(0)?, read_table(geometry.second_front())?];
        let seen = tables.iter().map(Vec::len).fold(0, usize::max);
        let seen = seen.min(geometry.blocks);
        let there = frame.end.min(files.sidecar.len());
        let parity_start = frame.start + geometry.front_bytes() as u64;
        let there = saturating_usize(there.saturating_sub(parity_start)) / geometry.block_bytes;
        let mut judged = Self {
            files,
            set,
            frame,
            geometry,
            hasher: BlockHasher::new(set, frame.band),
            band_start,
            file_there: saturating_usize(files.file_bytes.saturating_sub(band_start)),
            agreed: geometry.len,
            tables,
            data: vec![BlockProof::None; seen],
            parity: vec![false; there.min(geometry.parity_blocks())],
            hashes: vec![0; seen],
        };
        judged.agreed = judged.find_agreed()?;
        Ok(judged)
    }

    fn find_agreed(&self) -> Result<usize> {
        let mut agreed = self.geometry.len;
        for (start, is_second) in [(0, false), (self.geometry.second_front(), true)] {
            let bytes = read_frame(self.files, &self.frame, start..start + HEAD_BYTES)?;
            let head = bytes.first_chunk().and_then(Head::parse);
            let is_own = |head: &Head| {
                (head.set, head.is_second, head.band) == (self.set, is_second, self.frame.band)
            };
            if let Some(head) = head.filter(is_own) {
                agreed = agreed.min(saturating_usize(head.len));
            }
        }
        Ok(agreed)
    }

    /// Whether a block can be proven by its entries: both heads cover all of it.
    fn is_agreed(&self, block: usize) -> bool {
        self.geometry.block(block).end <= self.agreed
    }

    /// Whether the entry that proves a computed block may be that of a shorter frame of the band, which was written to this one's
    /// place. It has a hash of fewer bytes of the file, and zeros as padding.
    fn may_be_shorter(
        &self,
        known: &KnownBytes,
        block: usize,
        bytes: &[u8],
        hash: u64,
    ) -> Result<bool> {
        let range = self.geometry.block(block);
        let after = known
            .end_inside(&range)
            .and_then(|end| bytes.get(end - range.start..));
        if after.is_none_or(|after| after.iter().any(|byte| *byte != 0)) {
            return Ok(false);
        }
        let is_of_both = self
            .tables
            .iter()
            .all(|table| table.get(block) == Some(&hash));
        Ok(!(is_of_both && self.has_heads()?))
    }

    /// Whether a hash is that of an entry, in either table.
    fn is_entry(&self, entry: usize, hash: u64) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|table| table.get(entry) == Some(&hash))
    }

    /// Rule 5 for data blocks that are not proven, with what is known in place. Stops after the first piece of the file
    /// with a block that verifies, if only that is asked for.
    pub(super) fn verify_data(&mut self, known: &KnownBytes, is_first_enough: bool) -> Result<()> {
        let block_bytes = self.geometry.block_bytes;
        let most = (PIECE_BYTES / block_bytes).max(1);
        let mut piece = if is_first_enough {
            FIRST_BLOCKS.min(most)
        } else {
            most
        };
        let mut buffer = Vec::new();
        let mut first = 0;
        while first < self.data.len() {
            let end = (first + piece).min(self.data.len());
            piece = (piece * 2).min(most);
            let range = first * block_bytes..self.geometry.block(end - 1).end;
            let is_open = |proof: &BlockProof| *proof == BlockProof::None;
            let proofs = self.data.get(first..end).or_bug("blocks of the band")?;
            if proofs.iter().any(is_open) {
                buffer.resize((end - first) * block_bytes, 0);
                let (there, padding) = buffer.split_at_mut(range.len());
                known.read(self.files, self.band_start, range.start, there)?;
                padding.fill(0);
                let hashes = self.hasher.hash(first, &buffer, block_bytes);
                for (block, hash) in (first..end).zip(hashes) {
                    let is_verified = self.is_entry(block, hash)
                        && self.is_agreed(block)
                        && !known.is_missing(&self.geometry.block(block), self.file_there);
                    if let (Some(proof), Some(slot)) =
                        (self.data.get_mut(block), self.hashes.get_mut(block))
                        && *proof == BlockProof::None
                    {
                        *slot = hash;
                        if is_verified {
                            *proof = BlockProof::Hash;
                        }
                    }
                }
                let proofs = self.data.get(first..end).or_bug("blocks of the band")?;
                if is_first_enough && proofs.contains(&BlockProof::Hash) {
                    return Ok(());
                }
            }
            first = end;
        }
        Ok(())
    }

    /// Hashes the data blocks after the last one with an entry, as far as the file has them: superseded frames may prove them.
    pub(super) fn hash_unlisted(&mut self) -> Result<()> {
        let block_bytes = self.geometry.block_bytes;
        let there = self.file_there.min(self.geometry.len);
        let mut buffer = Vec::new();
        while self.hashes.len() * block_bytes < there {
            let first = self.hashes.len();
            let range = first * block_bytes..there.min(first * block_bytes + PIECE_BYTES);
            buffer.clear();
            buffer.resize(range.len().next_multiple_of(block_bytes), 0);
            let bytes = buffer
                .get_mut(..range.len())
                .or_bug("no more than a piece")?;
            let start = self.band_start + range.start as u64;
            self.files.read_file(start, bytes)?;
            let hashes = self.hasher.hash(first, &buffer, block_bytes);
            self.hashes.extend(hashes);
        }
        Ok(())
    }

    /// Rule 5 for parity blocks.
    pub(super) fn verify_parity(&mut self) -> Result<()> {
        let block_bytes = self.geometry.block_bytes;
        let piece = (PIECE_BYTES / block_bytes).max(1);
        let mut first = 0;
        while first < self.parity.len() {
            let end = (first + piece).min(self.parity.len());
            let bytes = self.read_parity(first..end)?;
            let entry = self.geometry.blocks + first;
            let hashes = self.hasher.hash(entry, &bytes, block_bytes);
            for (index, hash) in hashes.into_iter().enumerate() {
                let is_verified = self.is_entry(entry + index, hash);
                if let Some(proven) = self.parity.get_mut(first + index) {
                    *proven = is_verified;
                }
            }
            first = end;
        }
        Ok(())
    }

    /// Parity blocks as they are stored.
    fn read_parity(&self, blocks: Range<usize>) -> Result<Vec<u8>> {
        let (front, bytes) = (self.geometry.front_bytes(), self.geometry.block_bytes);
        let range = front + blocks.start * bytes..front + blocks.end * bytes;
        read_frame(self.files, &self.frame, range)
    }

    /// Whether a data block is not proven. Those after the last entry are not, unless superseded frames prove them.
    pub(super) fn has_open_data(&self) -> bool {
        self.data.len() < self.geometry.blocks || self.data.contains(&BlockProof::None)
    }

    /// Adds all proven blocks to what is known.
    pub(super) fn tell(&self, known: &mut KnownBytes) {
        for (block, proof) in self.data.iter().enumerate() {
            if *proof != BlockProof::None {
                known.add(self.geometry.block(block));
            }
        }
    }

    /// Rule 7 for the current frame, when superseded ones were judged.
    pub(super) fn judge_again(&mut self, known: &mut KnownBytes) -> Result<()> {
        self.verify_data(known, false)?;
        for block in 0..self.data.len() {
            let covered = known.covers(&self.geometry.block(block));
            if let Some(proof) = self.data.get_mut(block)
                && *proof == BlockProof::None
                && covered
            {
                *proof = BlockProof::Superseded;
            }
        }
        self.compute(known, true)
    }

    /// Whether everything of the frame is as it would be written now. Lost blocks are left aside.
    pub(super) fn is_sound(&self) -> Result<bool> {
        let proven = [BlockProof::Hash, BlockProof::None];
        Ok(self.data.iter().all(|proof| proven.contains(proof))
            && self.parity.iter().all(|is_verified| *is_verified)
            && self.is_as_written()?)
    }

    /// Whether all of the frame is there, its heads have the bytes that its fields give, and its tables are equal.
    pub(super) fn is_as_written(&self) -> Result<bool> {
        let is_whole = !self.frame.is_cut(&self.set, self.files.sidecar.len());
        let [first, second] = &self.tables;
        Ok(is_whole && first == second && self.has_heads()?)
    }

    fn has_heads(&self) -> Result<bool> {
        Ok(self.has_head(0, false)? && self.has_head(self.geometry.second_front(), true)?)
    }

    fn has_head(&self, start: usize, is_second: bool) -> Result<bool> {
        let found = read_frame(self.files, &self.frame, start..start + HEAD_BYTES)?;
        Ok(found == self.frame.head(self.set, is_second).bytes())
    }

    /// How many blocks of each group do not verify.
    pub(super) fn damaged_of_groups(&self) -> Vec<usize> {
        let geometry = &self.geometry;
        let mut damaged = vec![0usize; geometry.groups];
        let mut count = |block: usize, is_verified: bool| {
            if let Some(damaged) = damaged.get_mut(block % geometry.groups)
                && !is_verified
            {
                *damaged += 1;
            }
        };
        for (block, proof) in self.data.iter().enumerate() {
            count(block, *proof == BlockProof::Hash);
        }
        for (block, is_verified) in self.parity.iter().enumerate() {
            count(block, *is_verified);
        }
        // Of the blocks that are not there, each group has its share.
        let absent = [
            self.data.len()..geometry.blocks,
            self.parity.len()..geometry.parity_blocks(),
        ];
        for absent in absent {
            for (group, damaged) in damaged.iter_mut().enumerate() {
                let before = |end: usize| (end + geometry.groups - 1 - group) / geometry.groups;
                *damaged += before(absent.end) - before(absent.start);
            }
        }
        damaged
    }

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
        Multiplier::new().add(&matrix, 0, &columns, &mut sums);
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

/// The bytes of a frame, from and to offsets within it, as far as they are there.
fn read_frame(files: &Files<'_>, frame: &Frame, range: Range<usize>) -> Result<Vec<u8>> {
    let start = frame.start + range.start as u64;
    let end = frame.start + range.end as u64;
    files.read_sidecar(start, end.min(frame.end))
}

/// The known blocks of a group, and those to compute. Both in ascending order.
#[derive(Default)]
struct Group {
    known: Vec<u8>,
    /// Of the known points, those whose blocks are stored: others are zeros.
    stored: Vec<u8>,
    wanted: Vec<u8>,
}
