//! Judging a frame: which blocks of its band are proven (rules 5 to 7), and the frame itself (rule 10).

use std::cmp::Reverse;
use std::ops::Range;

use super::bytes::{BlockHasher, Files, PIECE_BYTES};
use super::frames::{Frame, Frames};
use super::known::KnownBytes;
use super::layout::{ENTRY_BYTES, Geometry, HEAD_BYTES, Head, Set};
use super::ledger::{
    Blocks, Cause, Content, FileKind, FileSpan, LostRange, SidecarKind, SidecarRange, SidecarSpan,
    WorstGroup, push,
};
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
    pub(super) hasher: BlockHasher,
    /// Where the band begins in the file.
    pub(super) band_start: u64,
    /// How many bytes of the band the file has.
    pub(super) file_there: usize,
    /// The bytes of the band that both heads cover. If one head is that of another frame of the band, which covers less or more, an
    /// entry of the last block may be that of fewer bytes, and zeros in place of the others.
    agreed: usize,
    /// The entries of both tables, as far as they are there.
    tables: [Vec<u64>; 2],
    /// The data blocks, up to the last one with an entry. If that is not the last block, the frame is cut off inside
    /// of its first table and has no parity.
    pub(super) data: Vec<BlockProof>,
    /// Whether parity blocks verify, as far as they are there.
    pub(super) parity: Vec<bool>,
    /// The hashes of data blocks as they were in place when they were proven, or were read at last if nothing proved them.
    pub(super) hashes: Vec<u64>,
}

impl<'a> Judged<'a> {
    /// Reads the tables of a frame.
    pub(super) fn open(files: &'a Files<'a>, set: Set, frame: Frame) -> Result<Self> {
        let geometry = frame.geometry(&set);
        let band_start = set.band_start(frame.band);
        let mut judged = Self {
            files,
            set,
            frame,
            geometry,
            hasher: BlockHasher::new(set, frame.band),
            band_start,
            file_there: saturating_usize(files.file_bytes.saturating_sub(band_start)),
            agreed: geometry.len,
            tables: [Vec::new(), Vec::new()],
            data: Vec::new(),
            parity: Vec::new(),
            hashes: Vec::new(),
        };
        let table_bytes = geometry.entries() * ENTRY_BYTES;
        let starts = [HEAD_BYTES, geometry.second_front() + HEAD_BYTES];
        for (table, start) in judged.tables.iter_mut().zip(starts) {
            let bytes = read_frame(files, &frame, start..start + table_bytes)?;
            let entries = bytes.as_chunks::<ENTRY_BYTES>().0;
            table.extend(entries.iter().map(|entry| u64::from_be_bytes(*entry)));
        }
        judged.agreed = judged.find_agreed()?;
        let [first, second] = &judged.tables;
        let seen = first.len().max(second.len());
        judged.data = vec![BlockProof::None; seen.min(geometry.blocks)];
        judged.hashes = vec![0; judged.data.len()];
        let there = frame.end.min(files.sidecar.len());
        let parity_start = frame.start + geometry.front_bytes() as u64;
        let there = saturating_usize(there.saturating_sub(parity_start)) / geometry.block_bytes;
        judged.parity = vec![false; there.min(geometry.parity_blocks())];
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
    pub(super) fn is_agreed(&self, block: usize) -> bool {
        self.geometry.block(block).end <= self.agreed
    }

    /// Whether the entry that proves a computed block may be that of a shorter frame of the band, which was written to this one's
    /// place. It has a hash of fewer bytes of the file, and zeros as padding.
    pub(super) fn may_be_shorter(
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
        Ok(!(is_of_both
            && self.has_head(0, false)?
            && self.has_head(self.geometry.second_front(), true)?))
    }

    /// Whether a hash is that of an entry, in either table.
    pub(super) fn is_entry(&self, entry: usize, hash: u64) -> bool {
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
                    if let (Some(proof), Some(own)) =
                        (self.data.get_mut(block), self.hashes.get_mut(block))
                        && *proof == BlockProof::None
                    {
                        *own = hash;
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
    fn hash_unlisted(&mut self) -> Result<()> {
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
                if let Some(own) = self.parity.get_mut(first + index) {
                    *own = is_verified;
                }
            }
            first = end;
        }
        Ok(())
    }

    /// Parity blocks as they are stored.
    pub(super) fn read_parity(&self, blocks: Range<usize>) -> Result<Vec<u8>> {
        let (front, bytes) = (self.geometry.front_bytes(), self.geometry.block_bytes);
        let range = front + blocks.start * bytes..front + blocks.end * bytes;
        read_frame(self.files, &self.frame, range)
    }

    /// Whether a data block is not proven. Those after the last entry are not, unless superseded frames prove them.
    pub(super) fn has_open_data(&self) -> bool {
        self.data.len() < self.geometry.blocks || self.data.contains(&BlockProof::None)
    }

    /// Adds all proven blocks to what is known.
    fn tell(&self, known: &mut KnownBytes) {
        for (block, proof) in self.data.iter().enumerate() {
            if *proof != BlockProof::None {
                known.add(self.geometry.block(block));
            }
        }
    }

    /// Rule 7 for the current frame, when superseded ones were judged.
    fn judge_again(&mut self, known: &mut KnownBytes) -> Result<()> {
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
    fn is_sound(&self) -> Result<bool> {
        let proven = [BlockProof::Hash, BlockProof::None];
        Ok(self.data.iter().all(|proof| proven.contains(proof))
            && self.parity.iter().all(|is_verified| *is_verified)
            && self.is_as_written()?)
    }

    /// Whether all of the frame is there, its heads have the bytes that its fields give, and its tables are equal.
    pub(super) fn is_as_written(&self) -> Result<bool> {
        let is_whole = !self.frame.is_cut(&self.set, self.files.sidecar.len());
        let [first, second] = &self.tables;
        Ok(is_whole
            && first == second
            && self.has_head(0, false)?
            && self.has_head(self.geometry.second_front(), true)?)
    }

    /// The entries of the first table.
    pub(super) fn take_table(&mut self) -> Vec<u64> {
        let [first, _] = &mut self.tables;
        std::mem::take(first)
    }

    fn has_head(&self, start: usize, is_second: bool) -> Result<bool> {
        let found = read_frame(self.files, &self.frame, start..start + HEAD_BYTES)?;
        Ok(found == self.frame.head(self.set, is_second).bytes())
    }

    /// How many blocks of each group do not verify.
    fn damaged_of_groups(&self) -> Vec<usize> {
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
}

/// A band whose current frame was judged.
pub(super) struct JudgedBand<'a> {
    pub(super) current: Judged<'a>,
    pub(super) known: KnownBytes,
    /// What its frame is: sound, repaired or lost.
    pub(super) kind: SidecarKind,
    /// How many blocks of each group do not verify.
    damaged: Vec<usize>,
}

impl<'a> JudgedBand<'a> {
    /// Judges a current frame. If the sidecar was refused, that is by rule 5 alone, and none of the data blocks verifies: nothing of
    /// the file is read.
    pub(super) fn judge(
        files: &'a Files<'a>,
        frames: &Frames,
        set: Set,
        frame: Frame,
        is_refused: bool,
    ) -> Result<Self> {
        let mut known = KnownBytes::of_ends(frames.ends(frame.band));
        let mut current = Judged::open(files, set, frame)?;
        if !is_refused {
            current.verify_data(&known, false)?;
        }
        current.verify_parity()?;
        let damaged = current.damaged_of_groups();
        if !is_refused && current.has_open_data() {
            current.compute(&mut known, false)?;
        }
        if !is_refused && current.has_open_data() {
            current.tell(&mut known);
            let mut is_superseding = false;
            if frames.superseded(frame.band).next().is_some() {
                current.hash_unlisted()?;
            }
            for superseded in frames.superseded(frame.band) {
                let mut older = Judged::open(files, set, *superseded)?;
                older.verify_data(&known, false)?;
                if older.has_open_data() {
                    older.verify_parity()?;
                    older.compute(&mut known, false)?;
                }
                older.tell(&mut known);
                is_superseding = true;
            }
            if is_superseding {
                current.judge_again(&mut known)?;
            }
        }
        Self::with_state(current, known, damaged)
    }

    /// Judges a current frame all of whose data blocks were proven by its entries.
    pub(super) fn judge_proven(files: &'a Files<'a>, set: Set, frame: Frame) -> Result<Self> {
        let mut current = Judged::open(files, set, frame)?;
        current.data.fill(BlockProof::Hash);
        current.verify_parity()?;
        let damaged = current.damaged_of_groups();
        Self::with_state(current, KnownBytes::default(), damaged)
    }

    /// Rule 10.
    fn with_state(current: Judged<'a>, known: KnownBytes, damaged: Vec<usize>) -> Result<Self> {
        let mut band = Self {
            kind: SidecarKind::Sound,
            current,
            known,
            damaged,
        };
        if !band.current.is_sound()? {
            let has_lost = band.current.has_open_data() && {
                let mut lost = false;
                band.runs(&mut |_, kind| {
                    lost |= kind == FileKind::Lost;
                    Ok(())
                })?;
                lost
            };
            band.kind = if has_lost {
                SidecarKind::Lost
            } else {
                SidecarKind::Repaired
            };
        }
        Ok(band)
    }

    /// The group with the most blocks that do not verify, if there are any.
    pub(super) fn worst(&self) -> Option<WorstGroup> {
        self.worst_among(0..self.damaged.len())
    }

    /// The same of the groups that have blocks of a range of bytes within the band.
    pub(super) fn worst_of(&self, range: &Range<usize>) -> Option<WorstGroup> {
        let geometry = &self.current.geometry;
        let first = range.start / geometry.block_bytes;
        let end = range.end.div_ceil(geometry.block_bytes);
        // Of a longer range, each group has a block.
        let end = end.min(first + geometry.groups);
        self.worst_among((first..end).map(|block| block % geometry.groups))
    }

    /// Of groups with the same damage, the first one.
    fn worst_among(&self, groups: impl Iterator<Item = usize>) -> Option<WorstGroup> {
        let damaged = |group: usize| Some((group, *self.damaged.get(group)?));
        let worst = groups
            .filter_map(damaged)
            .max_by_key(|(group, damaged)| (*damaged, Reverse(*group)));
        let (group, damaged) = worst.filter(|(_, damaged)| *damaged > 0)?;
        Some(WorstGroup {
            band: self.current.frame.band,
            group,
            damaged,
            parity: self.current.geometry.parity,
        })
    }

    /// Rule 8: gives the data blocks of the band in order, as ranges of bytes within the band that each are of one
    /// kind: sound, repaired or lost. A range of lost blocks may be as long as a head claims; it costs nothing.
    pub(super) fn runs(
        &self,
        give: &mut dyn FnMut(Range<usize>, FileKind) -> Result<()>,
    ) -> Result<()> {
        let geometry = &self.current.geometry;
        for (block, proof) in self.current.data.iter().enumerate() {
            let kind = match proof {
                BlockProof::None => FileKind::Lost,
                _ => self.kind_of_known(block)?,
            };
            give(geometry.block(block), kind)?;
        }
        // After the last entry only superseded frames prove anything.
        let mut at = self.current.data.len();
        let bytes = geometry.block_bytes;
        for range in self.known.ranges_from(at * bytes) {
            let first = range.start.div_ceil(bytes).max(at);
            let end = if range.end >= geometry.len {
                geometry.blocks
            } else {
                range.end / bytes
            };
            if first < end && at < geometry.blocks {
                if at < first {
                    give(at * bytes..first * bytes, FileKind::Lost)?;
                }
                for block in first..end {
                    give(geometry.block(block), self.kind_of_known(block)?)?;
                }
                at = end;
            }
        }
        if at < geometry.blocks {
            give(at * bytes..geometry.len, FileKind::Lost)?;
        }
        Ok(())
    }

    /// The ranges of a band's data blocks.
    pub(super) fn blocks(&self) -> Result<Blocks> {
        let mut blocks = Blocks::default();
        let current = &self.current;
        self.runs(&mut |range, kind| {
            let (start, end) = (range.start as u64, range.end as u64);
            // Of many lost blocks, the first ones may be there and others not.
            let bytes = current.geometry.block_bytes;
            let there = (current.file_there / bytes * bytes).min(range.end);
            let there = if current.file_there >= range.end {
                end
            } else {
                (there as u64).max(start)
            };
            let parts = [
                (start, there, Cause::ChecksumMismatch),
                (there, end, Cause::Truncated),
            ];
            for (start, end, cause) in parts {
                let span = FileSpan {
                    start: current.band_start + start,
                    end: current.band_start + end,
                    kind,
                    cause: (kind != FileKind::Sound).then_some(cause),
                };
                push(&mut blocks.spans, span);
            }
            if kind == FileKind::Lost {
                blocks.lose(LostRange {
                    start: current.band_start + start,
                    end: current.band_start + end,
                    worst: self.worst_of(&range),
                });
            }
            Ok(())
        })?;
        Ok(blocks)
    }

    fn kind_of_known(&self, block: usize) -> Result<FileKind> {
        let range = self.current.geometry.block(block);
        if range.end > self.current.file_there {
            return Ok(FileKind::Repaired);
        }
        if !self.known.has_patch(&range) {
            return Ok(FileKind::Sound);
        }
        let (files, start) = (self.current.files, self.current.band_start);
        let (mut old, mut new) = (vec![0; range.len()], vec![0; range.len()]);
        files.read_file(start + range.start as u64, &mut old)?;
        self.known.read(files, start, range.start, &mut new)?;
        Ok(if old == new {
            FileKind::Sound
        } else {
            FileKind::Repaired
        })
    }
}

impl SidecarRange {
    /// Its place in the ledger. A current frame was judged.
    pub(super) fn span(&self, judged: Option<&JudgedBand<'_>>) -> SidecarSpan {
        let (kind, cause) = match (self.content, judged) {
            (Content::Corrupt, _) => (SidecarKind::Corrupt, Some(Cause::Unreferenced)),
            (Content::TornTail, _) => (SidecarKind::TornTail, Some(Cause::Unreferenced)),
            (Content::Frame(_), None) => (SidecarKind::Superseded, None),
            (Content::Frame(frame), Some(band)) => {
                let current = &band.current;
                let is_cut = frame.is_cut(&current.set, current.files.sidecar.len());
                let cause = if is_cut {
                    Cause::Truncated
                } else {
                    Cause::ChecksumMismatch
                };
                let is_sound = band.kind == SidecarKind::Sound;
                (band.kind, (!is_sound).then_some(cause))
            }
        };
        SidecarSpan {
            start: self.start,
            end: self.end,
            kind,
            cause,
        }
    }
}

/// The bytes of a frame, from and to offsets within it, as far as they are there.
fn read_frame(files: &Files<'_>, frame: &Frame, range: Range<usize>) -> Result<Vec<u8>> {
    let start = frame.start + range.start as u64;
    let end = frame.start + range.end as u64;
    files.read_sidecar(start, end.min(frame.end))
}
