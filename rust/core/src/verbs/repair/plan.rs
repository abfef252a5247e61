//! What a repair changes: ranges of the file, with their new bytes, and the parts of the new sidecar.

use std::cmp::Ordering;
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::Path;

use crate::bug::OrBug;
use crate::disk::{DiskRef, Handle};
use crate::engine::each_piece;
use crate::error::{Error, Result};
use crate::output::{NewFile, Spool};
use crate::parity::Change;
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source};
use crate::walk::Options;

/// How much of a new sidecar is written at a time.
const PIECE_BYTES: usize = 1 << 20;
/// How much the file system is asked to copy at a time.
const COPIED_BYTES: usize = 64 << 20;

/// Bytes that differ are one range if fewer equal ones than this are between them.
const GAP_BYTES: usize = 64;

/// The new bytes of a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) len: usize,
    /// Where the new bytes are among those of the plan.
    pub(super) at: u64,
}

impl Range {
    pub(super) const fn end(&self) -> u64 {
        self.start + self.len as u64
    }
}

/// A part of the new sidecar.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// Bytes of the old one.
    Kept { start: u64, end: u64 },
    /// New bytes, by their place among those of the plan.
    New { start: u64, end: u64 },
}

/// The changes that a repair makes.
pub(super) struct Plan {
    /// New bytes of both files.
    bytes: Spool,
    /// The ranges of the file that change, in order.
    pub(super) file: Vec<Range>,
    /// The parts of the new sidecar, in order.
    parts: Vec<Part>,
    sidecar_bytes: u64,
}

impl Plan {
    /// An empty one. New bytes are in a file without a name beside `path`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn new(disk: &DiskRef, path: &Path) -> Result<Self> {
        Ok(Self {
            bytes: Spool::create(disk, path)?,
            file: Vec::new(),
            parts: Vec::new(),
            sidecar_bytes: 0,
        })
    }

    /// Adds a change. Of the file's, only bytes that differ are kept.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn add(&mut self, file: &dyn Source, change: Change<'_>) -> Result<()> {
        match change {
            Change::File { offset, bytes } => self.add_to_file(file, offset, bytes),
            Change::Kept { start, end } => {
                self.sidecar_bytes += end - start;
                match self.parts.last_mut() {
                    Some(Part::Kept { end: last, .. }) if *last == start => *last = end,
                    _ => self.parts.push(Part::Kept { start, end }),
                }
                Ok(())
            }
            Change::Head(bytes) | Change::New(bytes) => {
                let start = self.push(bytes)?;
                self.sidecar_bytes += bytes.len() as u64;
                let end = self.bytes.len();
                match self.parts.last_mut() {
                    Some(Part::New { end: last, .. }) if *last == start => *last = end,
                    _ => self.parts.push(Part::New { start, end }),
                }
                Ok(())
            }
        }
    }

    fn add_to_file(&mut self, file: &dyn Source, offset: u64, bytes: &[u8]) -> Result<()> {
        let there = file.len().saturating_sub(offset);
        let there = usize::try_from(there).map_or(bytes.len(), |there| there.min(bytes.len()));
        let (changed, added) = bytes.split_at(there);
        let mut old = vec![0; there];
        file.read_exact_at(offset, &mut old)?;
        for (start, end) in differing(&old, changed) {
            let new = changed.get(start..end).or_bug("a range of the block")?;
            self.add_range(offset + start as u64, new)?;
        }
        if !added.is_empty() {
            self.add_range(offset + there as u64, added)?;
        }
        Ok(())
    }

    fn add_range(&mut self, start: u64, bytes: &[u8]) -> Result<()> {
        let at = self.push(bytes)?;
        self.file.push(Range {
            start,
            len: bytes.len(),
            at,
        });
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<u64> {
        let at = self.bytes.len();
        self.bytes.buffer().extend_from_slice(bytes);
        self.bytes.flush_if_full()?;
        Ok(at)
    }

    /// Puts the ranges of the file in order: bands come in the order of their frames.
    pub(super) fn sort(&mut self) {
        self.file.sort_by_key(|range| range.start);
    }

    /// How many bytes of the file change or are added.
    pub(super) fn changed(&self) -> u64 {
        self.file.iter().map(|range| range.len as u64).sum()
    }

    /// The length of the repaired file.
    pub(super) fn file_len(&self, old: u64) -> u64 {
        self.file.last().map_or(old, |last| last.end().max(old))
    }

    /// The new bytes of a range of the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn read(&self, range: &Range, buffer: &mut Vec<u8>) -> Result<()> {
        self.bytes.read(range.at, range.len, buffer)?;
        match buffer.len().cmp(&range.len) {
            Ordering::Equal => Ok(()),
            _ => None.or_bug("all bytes of a range"),
        }
    }

    /// Whether the new sidecar is the old one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn keeps_sidecar(&self, old: &dyn Source) -> Result<bool> {
        let (mut at, mut own, mut is_same) = (0, Vec::new(), true);
        if self.sidecar_bytes != old.len() {
            return Ok(false);
        }
        for part in &self.parts {
            match *part {
                Part::Kept { start, end } if start == at => at = end,
                Part::Kept { .. } => return Ok(false),
                Part::New { start, end } => self.each_new(start, end, |bytes| {
                    own.resize(bytes.len(), 0);
                    old.read_exact_at(at, &mut own)?;
                    is_same &= own == bytes;
                    at += bytes.len() as u64;
                    Ok(())
                })?,
            }
        }
        Ok(is_same)
    }

    /// Writes the new sidecar, whole.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn write_sidecar(&self, old: &dyn Source, new: &mut NewFile) -> Result<()> {
        let path = new.path().to_path_buf();
        let failed = |error| Error::io(Some(&path), "cannot write the new sidecar", error);
        let mut out: BufWriter<Handle> = BufWriter::new(new.file().another());
        for part in &self.parts {
            let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(failed);
            match *part {
                Part::Kept { start, end } => {
                    each_piece(old, &Options::default(), start..end, &mut write)?;
                }
                Part::New { start, end } => self.each_new(start, end, &mut write)?,
            }
        }
        out.flush().map_err(failed)
    }

    /// Calls `take` with new bytes of the sidecar, piece by piece.
    fn each_new(
        &self,
        mut start: u64,
        end: u64,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        while start < end {
            let len = saturating_usize(end - start).min(PIECE_BYTES);
            self.bytes.read(start, len, &mut buffer)?;
            take(&buffer)?;
            start += len as u64;
        }
        Ok(())
    }

    /// Writes the repaired file: a copy of the old one, and the ranges that change over it.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Interrupted`].
    pub(super) fn write_file(
        &self,
        old: &FileSource,
        new: &mut NewFile,
        options: &Options,
    ) -> Result<()> {
        let path = new.path().to_path_buf();
        let failed = |error: std::io::Error| Error::io(Some(&path), unwritten(&error), error);
        let (from, to, mut at) = (old.handle(), new.file().another(), 0);
        while at < old.len() {
            options.poll()?;
            let len = saturating_usize(old.len() - at).min(COPIED_BYTES);
            match to.copy_from(&from, at, len).map_err(failed)? {
                0 => break,
                copied => at += copied as u64,
            }
        }
        each_piece(old, options, at..old.len(), |bytes| {
            to.write_all_at(bytes, at).map_err(failed)?;
            at += bytes.len() as u64;
            Ok(())
        })?;
        let mut buffer = Vec::new();
        for range in &self.file {
            self.read(range, &mut buffer)?;
            to.write_all_at(&buffer, range.start).map_err(failed)?;
        }
        Ok(())
    }
}

/// What was not done, and what to do next.
fn unwritten(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "cannot write the repaired file, which needs as much space as the damaged one: free some, or write it to another disk with `to`. Nothing was changed"
        }
        _ => "cannot write the repaired file",
    }
}

/// The ranges of two equally long slices that differ, those close to each other as one.
fn differing(old: &[u8], new: &[u8]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let pairs = old.iter().zip(new).enumerate();
    for (at, _) in pairs.filter(|(_, (old, new))| old != new) {
        match ranges.last_mut() {
            Some((_, end)) if at < *end + GAP_BYTES => *end = at + 1,
            _ => ranges.push((at, at + 1)),
        }
    }
    ranges
}
