//! What a repair changes: ranges of the file and of its sidecar, with their old and their new bytes.

use std::cmp::Ordering;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::PIECE_BYTES;
use super::manifest::{Piece, Place};
use crate::bug::OrBug;
use crate::checksum::{Key, hash};
use crate::disk::{DiskRef, Handle};
use crate::engine::{Options, each_piece};
use crate::error::{Error, Result};
use crate::output::{InPlace, NewFile, Spool};
use crate::parity::Change;
use crate::source::{FileSource, Source};

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
    /// Whether a frame is encoded anew that does not begin where it did.
    is_moved: bool,
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
            is_moved: false,
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
            Change::Frame { start } => {
                self.is_moved |= self.sidecar_bytes != start;
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

    /// The length of the repaired sidecar.
    pub(super) const fn sidecar_len(&self) -> u64 {
        self.sidecar_bytes
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

    /// Whether the parts of the sidecar that stay are where they were, and how long it is then.
    fn in_place(&self) -> Option<u64> {
        let mut at = 0;
        if self.is_moved {
            return None;
        }
        for part in &self.parts {
            match part {
                Part::Kept { start, end } if *start == at => at = *end,
                Part::Kept { .. } => return None,
                Part::New { start, end } => at += end - start,
            }
        }
        Some(at)
    }

    /// What changes in the sidecar.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn sidecar(&mut self, old: &dyn Source) -> Result<SidecarPlan> {
        let Some(len) = self.in_place() else {
            return Ok(SidecarPlan::Anew);
        };
        let (mut ranges, mut at, mut buffer) = (Vec::new(), 0, Vec::new());
        for part in &self.parts {
            let (mut from, end) = match part {
                Part::Kept { end, .. } => {
                    at = *end;
                    continue;
                }
                Part::New { start, end } => (*start, *end),
            };
            while from < end {
                let left =
                    usize::try_from(end - from).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
                self.bytes.read(from, left, &mut buffer)?;
                let there = old.len().saturating_sub(at);
                let there =
                    usize::try_from(there).map_or(buffer.len(), |there| there.min(buffer.len()));
                let mut own = vec![0; there];
                old.read_exact_at(at, &mut own)?;
                let changed = buffer.get(..there).or_bug("bytes that were read")?;
                let differing = differing(&own, changed);
                let added = (there < buffer.len()).then_some((there, buffer.len()));
                ranges.extend(
                    differing
                        .into_iter()
                        .chain(added)
                        .map(|(start, end)| Range {
                            start: at + start as u64,
                            len: end - start,
                            at: from + start as u64,
                        }),
                );
                at += buffer.len() as u64;
                from += buffer.len() as u64;
            }
        }
        Ok(SidecarPlan::InPlace { ranges, len })
    }

    /// Writes the new sidecar, whole.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn write_sidecar(&self, old: &dyn Source, new: &mut NewFile) -> Result<()> {
        let path = new.path().to_path_buf();
        let failed = |error| Error::io(Some(&path), "cannot write the new sidecar", error);
        let mut out: BufWriter<Handle> = BufWriter::new(new.file().another());
        let mut buffer = Vec::new();
        for part in &self.parts {
            match *part {
                Part::Kept { start, end } => {
                    each_piece(old, &Options::default(), start..end, |bytes| {
                        out.write_all(bytes).map_err(failed)
                    })?;
                }
                Part::New { mut start, end } => {
                    while start < end {
                        let left = usize::try_from(end - start)
                            .map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
                        self.bytes.read(start, left, &mut buffer)?;
                        out.write_all(&buffer).map_err(failed)?;
                        start += left as u64;
                    }
                }
            }
        }
        out.flush().map_err(failed)
    }

    /// Writes ranges to their places.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn apply(&self, ranges: &[Range], file: &InPlace) -> Result<()> {
        let mut buffer = Vec::new();
        for range in ranges {
            self.read(range, &mut buffer)?;
            file.write(&buffer, range.start)?;
        }
        Ok(())
    }

    /// Adds the old bytes of ranges to `old`, and describes them.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn keep(
        &self,
        place: Place,
        ranges: &[Range],
        source: &FileSource,
        old: &mut Kept,
        give: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        for range in ranges {
            self.read(range, &mut buffer)?;
            let new_hash = hash(&Key::DEFAULT, &buffer);
            // A range is either all there or all missing.
            if range.start >= source.len() {
                buffer.clear();
            } else {
                source.read_exact_at(range.start, &mut buffer)?;
            }
            let piece = Piece::new(place, range.start, range.end(), new_hash);
            give(old.add(piece, &buffer)?)?;
        }
        Ok(())
    }
}

/// Old bytes that are kept.
pub(super) struct Kept {
    out: BufWriter<Handle>,
    path: PathBuf,
    len: u64,
}

impl Kept {
    pub(super) fn new(file: &mut NewFile) -> Self {
        Self {
            path: file.path().to_path_buf(),
            out: BufWriter::new(file.file().another()),
            len: 0,
        }
    }

    pub(super) fn add(&mut self, piece: Piece, bytes: &[u8]) -> Result<Piece> {
        let path = &self.path;
        let failed = |error| Error::io(Some(path), "cannot write the bytes to keep", error);
        self.out.write_all(bytes).map_err(failed)?;
        let piece = piece.kept(self.len, bytes.len() as u64, hash(&Key::DEFAULT, bytes));
        self.len += bytes.len() as u64;
        Ok(piece)
    }

    pub(super) fn finish(mut self) -> Result<()> {
        let path = &self.path;
        let failed = |error| Error::io(Some(path), "cannot write the bytes to keep", error);
        self.out.flush().map_err(failed)
    }
}

/// How a sidecar is repaired (rule 19).
pub(super) enum SidecarPlan {
    /// Ranges of it change, and perhaps its length.
    InPlace { ranges: Vec<Range>, len: u64 },
    /// It is written anew.
    Anew,
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
