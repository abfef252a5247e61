//! Judging a band by all its frames: the ranges of the file that it makes (rule 8), and what its current frame is in the sidecar
//! (rule 10).

use std::cmp::Reverse;
use std::ops::Range;

use super::bytes::{Files, KnownBytes};
use super::frames::{Frame, Frames};
use super::judge::{BlockProof, Judged};
use super::layout::Set;
use super::ledger::{
    Blocks, Cause, Content, FileKind, FileSpan, LostRange, SidecarKind, SidecarRange, SidecarSpan,
    WorstGroup, push,
};
use crate::error::Result;

/// A band whose current frame was judged.
pub(super) struct JudgedBand<'a> {
    pub(super) current: Judged<'a>,
    pub(super) known: KnownBytes,
    /// What its frame is: sound, repaired or lost.
    pub(super) kind: SidecarKind,
    /// The ranges of its data blocks.
    pub(super) blocks: Blocks,
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
        let mut superseded = frames.superseded(frame.band).peekable();
        if !is_refused && current.has_open_data() && superseded.peek().is_some() {
            current.tell(&mut known);
            current.hash_unlisted()?;
            for superseded in superseded {
                let mut older = Judged::open(files, set, *superseded)?;
                older.verify_data(&known, false)?;
                if older.has_open_data() {
                    older.verify_parity()?;
                    older.compute(&mut known, false)?;
                }
                older.tell(&mut known);
            }
            current.judge_again(&mut known)?;
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
            blocks: Blocks::default(),
            current,
            known,
            damaged,
        };
        band.blocks = band.find_blocks()?;
        if !band.current.is_sound()? {
            band.kind = match band.blocks.lost.is_empty() {
                true => SidecarKind::Repaired,
                false => SidecarKind::Lost,
            };
        }
        Ok(band)
    }

    /// The group with the most blocks that do not verify, if there are any.
    pub(super) fn worst(&self) -> Option<WorstGroup> {
        self.worst_among(0..self.damaged.len())
    }

    /// The same of the groups that have blocks of a range of bytes within the band.
    fn worst_of(&self, range: &Range<usize>) -> Option<WorstGroup> {
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
    fn runs(&self, mut give: impl FnMut(Range<usize>, FileKind)) -> Result<()> {
        let geometry = &self.current.geometry;
        for (block, proof) in self.current.data.iter().enumerate() {
            let kind = match proof {
                BlockProof::None => FileKind::Lost,
                _ => self.kind_of_known(block)?,
            };
            give(geometry.block(block), kind);
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
                    give(at * bytes..first * bytes, FileKind::Lost);
                }
                for block in first..end {
                    give(geometry.block(block), self.kind_of_known(block)?);
                }
                at = end;
            }
        }
        if at < geometry.blocks {
            give(at * bytes..geometry.len, FileKind::Lost);
        }
        Ok(())
    }

    /// The ranges of a band's data blocks.
    fn find_blocks(&self) -> Result<Blocks> {
        let mut blocks = Blocks::default();
        let current = &self.current;
        self.runs(|range, kind| {
            let (start, end) = (range.start as u64, range.end as u64);
            // Of many lost blocks, the first ones may be there and others not.
            let bytes = current.geometry.block_bytes;
            let there = match current.file_there {
                there if there >= range.end => end,
                there => ((there / bytes * bytes) as u64).max(start),
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
