//! Blocks of a band, proven whenever they are read: the bytes that are given are those that were hashed, or were repaired.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use super::band::JudgedBand;
use super::bytes::{BlockHasher, Files, PIECE_BYTES};
use super::judge::Judged;
use super::layout::{Geometry, Set};
use super::ledger::FileKind;
use crate::bug::OrBug;
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::sync::Unpoisoned as _;

/// Of how many blocks the bytes are kept, at most 4 KiB each. Reads begin and end inside of blocks, and the next read often has the
/// rest of them.
const KEPT_BLOCKS: usize = 32;

/// What it takes to read bytes of a band: what proves its data blocks, and those that are repaired.
pub(super) struct Checks {
    set: Set,
    band: u64,
    /// Where the band begins in the file.
    start: u64,
    geometry: Geometry,
    /// The bytes of the band that the file has.
    there: usize,
    /// The hash of each block, without those at the end that nothing proves.
    hashes: Vec<u64>,
    /// The blocks that are given unproven, ascending: those that are lost, and those whose bytes are not taken from the file.
    unproven: Vec<Range<usize>>,
    patches: Vec<Patch>,
}

/// Adjacent bytes of a repaired block.
struct Patch {
    start: u64,
    bytes: Vec<u8>,
}

impl Checks {
    /// By a frame whose band was not judged. `None` if it is not as it was written: then the band has to be judged as a whole.
    pub(super) fn of_frame(judged: &mut Judged<'_>) -> Result<Option<Self>> {
        if !judged.is_as_written()? {
            return Ok(None);
        }
        let [mut hashes, _] = std::mem::take(&mut judged.tables);
        hashes.truncate(judged.geometry.blocks);
        Ok(Some(Self::new(judged, hashes)))
    }

    /// By what was found of a band. Also returns where bytes of repaired blocks differ from the file's, or are missing there: ascending,
    /// and they do not touch.
    pub(super) fn of_judged(band: &mut JudgedBand<'_>) -> Result<(Self, Vec<Range<u64>>)> {
        let (differing, patches) = repaired_bytes(band)?;
        let hashes = std::mem::take(&mut band.current.hashes);
        let (start, bytes) = (band.current.band_start, band.current.geometry.block_bytes);
        let spans = band.blocks.spans.iter();
        let unproven = spans.filter(|span| span.kind != FileKind::Sound);
        let unproven = unproven.map(|span| {
            let [first, end] = [span.start, span.end].map(|at| saturating_usize(at - start));
            first / bytes..end.div_ceil(bytes)
        });
        let mut checks = Self::new(&band.current, hashes);
        (checks.unproven, checks.patches) = (unproven.collect(), patches);
        Ok((checks, differing))
    }

    fn new(judged: &Judged<'_>, hashes: Vec<u64>) -> Self {
        Self {
            set: judged.set,
            band: judged.frame.band,
            start: judged.band_start,
            geometry: judged.geometry,
            there: judged.file_there,
            hashes,
            unproven: Vec::new(),
            patches: Vec::new(),
        }
    }

    /// The bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let patches = self.patches.iter().map(|patch| patch.bytes.len());
        self.hashes.len() * size_of::<u64>()
            + self.unproven.len() * size_of::<Range<usize>>()
            + patches.sum::<usize>()
    }

    /// Reads bytes of the band from an offset of the file on, and all blocks that they are in, with repaired blocks in their places. Zeros
    /// are read in place of missing bytes. Gives the first block that is not proven and has to be, if there is one: then the bytes are of no use.
    pub(super) fn read(
        &self,
        files: &Files<'_>,
        at: u64,
        bytes: &mut [u8],
        kept: &KeptBlocks,
    ) -> Result<Option<usize>> {
        let mut hasher = BlockHasher::new(self.set, self.band);
        let block_bytes = self.geometry.block_bytes;
        let range = at..at + bytes.len() as u64;
        let (mut left, mut at) = (&mut *bytes, at);
        while !left.is_empty() {
            let within = saturating_usize(at - self.start);
            let block = within / block_bytes;
            let skip = within % block_bytes;
            let whole = left.len().min(PIECE_BYTES.max(block_bytes)) / block_bytes * block_bytes;
            let len = if skip == 0 && whole > 0 {
                let part = left.get_mut(..whole).or_bug("no more than is left")?;
                files.read_file(at, part)?;
                if let Some(bad) = self.first_bad(&mut hasher, block, part) {
                    return Ok(Some(bad));
                }
                whole
            } else {
                let Some(proven) = self.block(files, block, &mut hasher, kept)? else {
                    return Ok(Some(block));
                };
                let proven = proven.get(skip..).or_bug("the rest of a block")?;
                let len = left.len().min(proven.len());
                let part = left.get_mut(..len).or_bug("no more than is left")?;
                part.copy_from_slice(proven.get(..len).or_bug("no more than the block has")?);
                len
            };
            at += len as u64;
            left = left.get_mut(len..).or_bug("no more than was left")?;
        }
        for patch in &self.patches {
            patch.apply(&range, bytes);
        }
        Ok(None)
    }

    /// A block with its padding, if it is proven or need not be.
    fn block(
        &self,
        files: &Files<'_>,
        block: usize,
        hasher: &mut BlockHasher,
        kept: &KeptBlocks,
    ) -> Result<Option<Arc<[u8]>>> {
        let range = self.geometry.block(block);
        let at = self.start + range.start as u64;
        if let Some(bytes) = kept.get(at) {
            return Ok(Some(bytes));
        }
        let mut bytes = vec![0; self.geometry.block_bytes];
        let there = bytes.get_mut(..range.len()).or_bug("a whole block")?;
        files.read_file(at, there)?;
        if self.first_bad(hasher, block, &bytes).is_some() {
            return Ok(None);
        }
        let bytes = Arc::<[u8]>::from(bytes);
        if self.is_required(block) {
            kept.put(at, bytes.clone());
        }
        Ok(Some(bytes))
    }

    /// The first of adjacent blocks that is not proven and has to be.
    fn first_bad(&self, hasher: &mut BlockHasher, first: usize, blocks: &[u8]) -> Option<usize> {
        let hashes = hasher.hash(first, blocks, self.geometry.block_bytes);
        let mut blocks = (first..).zip(hashes);
        let bad = blocks.find(|(block, hash)| {
            let is_proven = self.hashes.get(*block) == Some(hash)
                && self.geometry.block(*block).end <= self.there;
            !is_proven && self.is_required(*block)
        });
        bad.map(|(block, _)| block)
    }

    /// Whether a block has to be proven.
    fn is_required(&self, block: usize) -> bool {
        let before = self.unproven.partition_point(|range| range.start <= block);
        let range = before.checked_sub(1).and_then(|at| self.unproven.get(at));
        range.is_none_or(|range| range.end <= block)
    }
}

/// Where bytes of a band's repaired blocks differ from the file's, and these blocks.
fn repaired_bytes(band: &JudgedBand<'_>) -> Result<(Vec<Range<u64>>, Vec<Patch>)> {
    let (files, band_start) = (band.current.files, band.current.band_start);
    let (mut differing, mut patches) = (Vec::<Range<u64>>::new(), Vec::new());
    let mut old = Vec::new();
    let spans = band.blocks.spans.iter();
    for span in spans.filter(|span| span.kind == FileKind::Repaired) {
        let len = saturating_usize(span.end - span.start);
        let mut bytes = vec![0; len];
        let within = saturating_usize(span.start - band_start);
        band.known.read(files, band_start, within, &mut bytes)?;
        old.resize(len, 0);
        files.read_file(span.start, &mut old)?;
        for ((old, new), at) in old.iter().zip(&bytes).zip(span.start..) {
            if old == new && at < files.file_bytes {
                continue;
            }
            match differing.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => differing.push(at..at + 1),
            }
        }
        patches.push(Patch {
            start: span.start,
            bytes,
        });
    }
    Ok((differing, patches))
}

impl Patch {
    /// Puts its bytes into a buffer that has the bytes of a range.
    fn apply(&self, range: &Range<u64>, buffer: &mut [u8]) {
        let end = self.start + self.bytes.len() as u64;
        let (first, last) = (self.start.max(range.start), end.min(range.end));
        if first >= last {
            return;
        }
        let place = |start| saturating_usize(first - start)..saturating_usize(last - start);
        if let (Some(target), Some(source)) = (
            buffer.get_mut(place(range.start)),
            self.bytes.get(place(self.start)),
        ) {
            target.copy_from_slice(source);
        }
    }
}

/// Blocks that were proven, with their bytes: those that were read last of which a read needed only a part.
#[derive(Default)]
pub(super) struct KeptBlocks {
    /// By their offsets in the file.
    blocks: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
}

impl KeptBlocks {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<[u8]>)>> {
        self.blocks.lock().unpoisoned()
    }

    fn get(&self, at: u64) -> Option<Arc<[u8]>> {
        let blocks = self.lock();
        let found = blocks.iter().rev().find(|(start, _)| *start == at);
        found.map(|(_, bytes)| bytes.clone())
    }

    fn put(&self, at: u64, bytes: Arc<[u8]>) {
        let mut blocks = self.lock();
        if blocks.len() >= KEPT_BLOCKS {
            blocks.pop_front();
        }
        blocks.push_back((at, bytes));
    }
}

/// Which blocks of a band that was not judged were proven so far.
#[derive(Default)]
pub(super) struct Proven {
    /// Empty as long as none was.
    blocks: Vec<bool>,
    count: usize,
}

impl Proven {
    /// Adds blocks, and gives whether these are all that the band has.
    pub(super) fn add(&mut self, blocks: Range<usize>, all: usize) -> bool {
        self.blocks.resize(all, false);
        let added = self.blocks.iter_mut().take(blocks.end);
        for is_proven in added.skip(blocks.start) {
            self.count += usize::from(!std::mem::replace(is_proven, true));
        }
        self.count == all
    }

    /// Whether a block was proven.
    pub(super) fn has(&self, block: usize) -> bool {
        self.blocks.get(block) == Some(&true)
    }

    /// The first run of blocks from `first` on that were not proven, up to `end`.
    pub(super) fn open(&self, first: usize, end: usize) -> Range<usize> {
        let mut blocks = first..end;
        let Some(start) = blocks.find(|block| !self.has(*block)) else {
            return end..end;
        };
        let more = blocks.take_while(|block| !self.has(*block));
        start..start + 1 + more.count()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::parity::Parameters;
    use crate::source::BytesSource;

    #[test]
    fn few_blocks_are_kept() {
        let kept = KeptBlocks::default();
        for at in 0..100 {
            kept.put(at, Arc::from([0; 64]));
        }
        assert_eq!(kept.lock().len(), KEPT_BLOCKS);
        assert!(kept.get(99).is_some() && kept.get(0).is_none());
    }

    /// A block that nothing proved when it was read may be proven later, when its band is judged again.
    #[test]
    fn a_block_that_was_not_proven_is_not_kept() {
        let parameters = Parameters::new(64, 4, 2, 1).unwrap();
        let set = Set {
            id: [1; 8],
            parameters,
        };
        let (file, empty) = (BytesSource::new(vec![7; 200]), BytesSource::new(Vec::new()));
        let files = Files::new(&file, &empty);
        let checks = |unproven: Vec<Range<usize>>| Checks {
            set,
            band: 0,
            start: 0,
            geometry: Geometry::new(parameters, 200),
            there: 200,
            hashes: vec![0; 4],
            unproven,
            patches: Vec::new(),
        };
        let (kept, mut part) = (KeptBlocks::default(), [0; 10]);
        let mut read = |checks: Checks| checks.read(&files, 70, &mut part, &kept).unwrap();
        let lost = std::iter::once(1..2).collect();
        assert_eq!(read(checks(lost)), None);
        assert_eq!(read(checks(Vec::new())), Some(1));
    }
}
