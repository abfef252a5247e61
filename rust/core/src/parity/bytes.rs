//! The bytes of a file and its sidecar, and what is known of those of a band: which are proven, and those that differ from the file's.
//! Bytes after the end of either file are missing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::layout::Set;
use crate::bug::OrBug;
use crate::checksum::batch::{Batch, Key};
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// About how many bytes are read, hashed and encoded at a time. They stay in the second cache.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// A file and its sidecar.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    pub(super) file: &'a dyn Source,
    pub(super) file_bytes: u64,
    pub(super) sidecar: &'a dyn Source,
}

impl fmt::Debug for Files<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("file", &self.file.path())
            .field("file_bytes", &self.file_bytes)
            .field("sidecar", &self.sidecar.path())
            .finish()
    }
}

impl<'a> Files<'a> {
    /// A file and its sidecar.
    #[must_use]
    pub fn new(file: &'a dyn Source, sidecar: &'a dyn Source) -> Self {
        Self {
            file,
            file_bytes: file.len(),
            sidecar,
        }
    }

    /// As if the file ended after this many bytes, if it has more.
    #[must_use]
    pub fn with_file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = self.file_bytes.min(bytes);
        self
    }

    /// Puts the bytes of the file from `start` on into `buffer`, and zeros in place of missing ones.
    pub(super) fn read_file(&self, start: u64, buffer: &mut [u8]) -> Result<()> {
        let left = saturating_usize(self.file_bytes.saturating_sub(start));
        let (there, missing) = buffer.split_at_mut(left.min(buffer.len()));
        missing.fill(0);
        if there.is_empty() {
            return Ok(());
        }
        self.file.read_exact_at(start, there)
    }

    /// Confirms that neither was replaced by another file meanwhile. Nothing is said of them before.
    pub(super) fn confirm(&self) -> Result<()> {
        self.file.confirm()?;
        self.sidecar.confirm()
    }

    /// The bytes of the sidecar from `start` to `end`, as far as they are there.
    pub(super) fn read_sidecar(&self, start: u64, end: u64) -> Result<Vec<u8>> {
        let len = end.min(self.sidecar.len()).saturating_sub(start);
        let mut bytes = vec![0; saturating_usize(len)];
        if !bytes.is_empty() {
            self.sidecar.read_exact_at(start, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Whether a byte of the file is not zero.
    pub(super) fn has_content(&self) -> Result<bool> {
        let mut piece = vec![0; saturating_usize(self.file_bytes.min(PIECE_BYTES as u64))];
        for start in (0..self.file_bytes).step_by(PIECE_BYTES) {
            self.read_file(start, &mut piece)?;
            if piece.iter().any(|byte| *byte != 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Hashes blocks of a band.
pub(super) struct BlockHasher {
    set: Set,
    band: u64,
    batch: Batch,
    keys: Vec<Key>,
    extents: Vec<(usize, usize)>,
}

impl BlockHasher {
    pub(super) fn new(set: Set, band: u64) -> Self {
        Self {
            set,
            band,
            batch: Batch::new(),
            keys: Vec::new(),
            extents: Vec::new(),
        }
    }

    /// The hashes of adjacent blocks, whose entries begin at number `first`.
    pub(super) fn hash(&mut self, first: usize, blocks: &[u8], block_bytes: usize) -> Vec<u64> {
        let count = blocks.len() / block_bytes;
        let keys = (first..first + count).map(|entry| self.set.key(self.band, entry));
        self.keys.clear();
        self.keys.extend(keys);
        self.extents.clear();
        let extents = (0..count).map(|block| (block * block_bytes, block_bytes));
        self.extents.extend(extents);
        let mut hashes = Vec::with_capacity(count);
        self.batch
            .hash_keyed(&self.keys, blocks, &self.extents, &mut hashes);
        hashes
    }
}

/// What is known of a band of the file. Offsets are within the band.
#[derive(Debug, Default)]
pub(super) struct KnownBytes {
    /// Proven ranges by their start. They do not touch.
    ranges: BTreeMap<usize, usize>,
    /// Bytes in place of the file's, by their start. They do not overlap.
    patches: BTreeMap<usize, Vec<u8>>,
    /// Where frames of the band end, ascending.
    ends: Vec<usize>,
}

impl KnownBytes {
    /// Nothing yet, of a band whose frames end there, ascending.
    pub(super) fn of_ends(ends: Vec<usize>) -> Self {
        Self {
            ends,
            ..Self::default()
        }
    }

    /// Where the longest frame ends that ends inside of a range.
    pub(super) fn end_inside(&self, range: &Range<usize>) -> Option<usize> {
        let before = self.ends.partition_point(|end| *end < range.end);
        let end = self.ends.get(..before)?.last();
        end.copied().filter(|end| *end > range.start)
    }

    /// Adds a range whose bytes, as they are in place, are proven.
    pub(super) fn add(&mut self, range: Range<usize>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        while let Some((known_start, known_end)) = self.ranges.range(..=end).next_back() {
            let (known_start, known_end) = (*known_start, *known_end);
            if known_end < start {
                break;
            }
            (start, end) = (start.min(known_start), end.max(known_end));
            self.ranges.remove(&known_start);
        }
        self.ranges.insert(start, end);
    }

    /// Whether all bytes of a range are proven.
    pub(super) fn covers(&self, range: &Range<usize>) -> bool {
        let before = self.ranges.range(..=range.start).next_back();
        before.is_some_and(|(_, end)| *end >= range.end)
    }

    /// The proven ranges that end after `start`, cut there.
    pub(super) fn ranges_from(&self, start: usize) -> impl Iterator<Item = Range<usize>> {
        let before = self.ranges.range(..start).next_back();
        let cut = before.filter(|(_, end)| **end > start);
        let cut = cut.map(|(_, end)| start..*end);
        let rest = self.ranges.range(start..);
        cut.into_iter().chain(rest.map(|(start, end)| *start..*end))
    }

    /// Puts computed bytes in place and adds their range. Bytes that are proven already stay: what a superseded frame
    /// tells must not replace what the current one verified.
    pub(super) fn put(&mut self, start: usize, bytes: &[u8]) {
        let end = start + bytes.len();
        let mut gaps = Vec::new();
        let mut at = start;
        for range in self.ranges_from(start) {
            if range.start >= end {
                break;
            }
            if at < range.start {
                gaps.push(at..range.start);
            }
            at = at.max(range.end);
        }
        if at < end {
            gaps.push(at..end);
        }
        for gap in gaps {
            let part = bytes.get(gap.start - start..gap.end - start);
            self.replace(gap.start, part.or_bug_default("bytes of the range"));
        }
        self.add(start..end);
    }

    /// Puts bytes in place, whatever was known of them.
    pub(super) fn replace(&mut self, start: usize, bytes: &[u8]) {
        let end = start + bytes.len();
        while let Some((old_start, _)) = self.overlapping(&(start..end)) {
            let Some(old) = self.patches.remove(&old_start) else {
                break;
            };
            if let Some(before) = start.checked_sub(old_start).and_then(|len| old.get(..len))
                && !before.is_empty()
            {
                self.patches.insert(old_start, before.to_vec());
            }
            if let Some(after) = old.get(end.saturating_sub(old_start)..)
                && old_start + old.len() > end
            {
                self.patches.insert(end, after.to_vec());
            }
        }
        self.patches.insert(start, bytes.to_vec());
    }

    /// The last patch that has bytes of a range.
    fn overlapping(&self, range: &Range<usize>) -> Option<(usize, &[u8])> {
        let (start, bytes) = self.patches.range(..range.end).next_back()?;
        (start + bytes.len() > range.start).then_some((*start, bytes))
    }

    /// Whether bytes of a range were put in place.
    pub(super) fn has_patch(&self, range: &Range<usize>) -> bool {
        self.overlapping(range).is_some()
    }

    /// Whether all bytes from `start` to `end` were put in place.
    fn is_patched(&self, range: Range<usize>) -> bool {
        let mut end = range.end;
        while end > range.start {
            match self.overlapping(&(range.start..end)) {
                Some((start, bytes)) if start + bytes.len() >= end => end = start,
                _ => return false,
            }
        }
        true
    }

    /// Reads bytes of the band, with what was put in place. Missing bytes are zeros.
    pub(super) fn read(
        &self,
        files: &Files<'_>,
        band_start: u64,
        start: usize,
        buffer: &mut [u8],
    ) -> Result<()> {
        files.read_file(band_start + start as u64, buffer)?;
        let end = start + buffer.len();
        let first = self.overlapping(&(start..start + 1));
        let from = first.map_or(start, |(patch_start, _)| patch_start.min(start));
        for (patch_start, bytes) in self.patches.range(from..end) {
            let within = (*patch_start).max(start)..(patch_start + bytes.len()).min(end);
            let target = buffer.get_mut(within.start - start..within.end.saturating_sub(start));
            let source = bytes.get(within.start - patch_start..within.end - patch_start);
            if let (Some(target), Some(source)) = (target, source) {
                target.copy_from_slice(source);
            }
        }
        Ok(())
    }

    /// Whether a byte of a range is neither in the file nor put in place. `there` is how much of the band the file has.
    pub(super) fn is_missing(&self, range: &Range<usize>, there: usize) -> bool {
        range.end > there && !self.is_patched(range.start.max(there)..range.end)
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::source::BytesSource;

    proptest! {
        /// The same as with one number for each byte.
        #[test]
        fn what_is_known_is_as_byte_by_byte(
            steps in proptest::collection::vec((0usize..60, 1usize..20, 0u8..3, 1u8..), 0..30),
            there in 0usize..90,
        ) {
            let (mut known, mut proven, mut bytes) = (KnownBytes::default(), [false; 80], [None; 80]);
            for (start, len, step, byte) in steps {
                let range = start..start + len;
                let new = vec![byte; len];
                match step {
                    0 => known.add(range.clone()),
                    1 => known.put(start, &new),
                    _ => known.replace(start, &new),
                }
                for at in range {
                    if step == 2 || step == 1 && !proven[at] {
                        bytes[at] = Some(byte);
                    }
                    proven[at] |= step < 2;
                }
            }
            let file = BytesSource::new(vec![0xff; there]);
            let files = Files::new(&file, &file);
            for start in 0..80 {
                for end in start + 1..80 {
                    let range = start..end;
                    prop_assert_eq!(known.covers(&range), proven[range.clone()].iter().all(|is| *is));
                    prop_assert_eq!(known.has_patch(&range), bytes[range.clone()].iter().any(Option::is_some));
                    let is_missing = range.clone().any(|at| at >= there && bytes[at].is_none());
                    prop_assert_eq!(known.is_missing(&range, there), is_missing);
                    let mut buffer = vec![1; end - start];
                    known.read(&files, 0, start, &mut buffer).unwrap();
                    for (at, byte) in range.zip(buffer) {
                        let unknown = if at < there { 0xff } else { 0 };
                        prop_assert_eq!(byte, bytes[at].unwrap_or(unknown));
                    }
                }
                let ranges: Vec<_> = known.ranges_from(start).flatten().collect();
                let expected: Vec<_> = (start..80).filter(|at| proven[*at]).collect();
                prop_assert_eq!(ranges, expected);
            }
        }
    }
}
