//! Reading a file and its sidecar. Bytes after the end of either are missing.

use std::fmt;

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
        read(self.sidecar, start, end)
    }

    /// Whether a byte of the file is not zero.
    pub(super) fn has_content(&self) -> Result<bool> {
        let mut start = 0;
        let mut buffer = vec![0; saturating_usize(self.file_bytes.min(PIECE_BYTES as u64))];
        while start < self.file_bytes {
            let len = saturating_usize(self.file_bytes - start).min(buffer.len());
            let piece = buffer.get_mut(..len).or_bug("no more than a piece")?;
            self.file.read_exact_at(start, piece)?;
            if piece.iter().any(|byte| *byte != 0) {
                return Ok(true);
            }
            start += len as u64;
        }
        Ok(false)
    }
}

/// The bytes of a source from `start` to `end`, as far as they are there.
pub(super) fn read(source: &dyn Source, start: u64, end: u64) -> Result<Vec<u8>> {
    let len = end.min(source.len()).saturating_sub(start);
    let mut bytes = vec![0; saturating_usize(len)];
    if !bytes.is_empty() {
        source.read_exact_at(start, &mut bytes)?;
    }
    Ok(bytes)
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
