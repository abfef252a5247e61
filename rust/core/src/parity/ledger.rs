//! The ledgers of a file and its sidecar (rules 11 and 12).

use serde::{Deserialize, Serialize};

use super::bytes::Files;
use super::frames::{Frame, Frames};
use super::layout::HEAD_BYTES;
use crate::error::Result;
use crate::ledger::overlapping;
use crate::words::{self, words};

words! {
    /// Why a range of a file or of its sidecar is damaged.
    Cause {
        /// A hash, a head or a table is not as it was written.
        ChecksumMismatch = "checksum_mismatch",
        /// Bytes are missing.
        Truncated = "truncated",
        /// No frame has or covers these bytes.
        Unreferenced = "unreferenced",
    }
}

impl Cause {
    /// What ledgers and errors of any format call it.
    pub(super) const fn in_ledger(self) -> words::Cause {
        match self {
            Self::ChecksumMismatch => words::Cause::ChecksumMismatch,
            Self::Truncated => words::Cause::LengthOutOfBounds,
            Self::Unreferenced => words::Cause::Unreferenced,
        }
    }
}

words! {
    /// The kind of a range of a file.
    FileKind {
        /// Proven, and as it was protected.
        Sound = "sound",
        /// Damaged or missing, and known from the sidecar.
        Repaired = "repaired",
        /// Damaged or missing.
        Lost = "lost",
        /// It was covered, or may have been, and nothing can verify it now.
        Unverified = "unverified",
        /// It was never covered.
        Uncovered = "uncovered",
    }
}

words! {
    /// The kind of a range of a sidecar.
    SidecarKind {
        /// A current frame, as it was written.
        Sound = "sound",
        /// A frame that another one replaces. It is used only where that one is damaged.
        Superseded = "superseded",
        /// A damaged current frame that can be encoded anew.
        Repaired = "repaired",
        /// A damaged current frame of which a block of the file is lost.
        Lost = "lost",
        /// Bytes of no frame.
        Corrupt = "corrupt",
        /// Bytes of no frame at the end: an interrupted extension.
        TornTail = "torn_tail",
    }
}

/// A range of a file: bytes `start` to `end`, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileSpan {
    /// The first byte.
    pub start: u64,
    /// The offset after the last byte. It may be after the end of the file.
    pub end: u64,
    /// The kind of the range.
    pub kind: FileKind,
    /// Why it is damaged; `None` if it is not.
    pub cause: Option<Cause>,
}

/// The group of blocks with the most damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorstGroup {
    /// The band that it is in.
    pub band: u64,
    /// Its number in the band.
    pub group: usize,
    /// How many of its blocks do not verify, parity included: as many parity blocks it needs.
    pub damaged: usize,
    /// How many parity blocks it has.
    pub parity: usize,
}

impl WorstGroup {
    /// The one of two with more damage.
    pub(super) fn worse(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let damaged = |group: Option<Self>| group.map(|group| group.damaged);
        match damaged(other) > damaged(one) {
            true => other,
            false => one,
        }
    }
}

/// A range of a file that is [`Lost`](FileKind::Lost): bytes `start` to `end`, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LostRange {
    /// The first byte.
    pub start: u64,
    /// The offset after the last byte. It may be after the end of the file.
    pub end: u64,
    /// Of the groups that its blocks are in, the one with the most damage. `None` if no frame has blocks of it.
    #[doc(hidden)] // public for the Python extension
    pub worst: Option<WorstGroup>,
}

/// A range of a sidecar: bytes `start` to `end`, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SidecarSpan {
    /// The first byte.
    pub start: u64,
    /// The offset after the last byte. It may be after the end of the sidecar.
    pub end: u64,
    /// The kind of the range.
    pub kind: SidecarKind,
    /// Why it is damaged; `None` if it is not.
    pub cause: Option<Cause>,
}

/// Adds a range. Touching ranges of the same kind and cause become one.
pub(super) fn push(spans: &mut Vec<FileSpan>, span: FileSpan) {
    if span.start >= span.end {
        return;
    }
    match spans.last_mut() {
        Some(last)
            if last.end == span.start && (last.kind, last.cause) == (span.kind, span.cause) =>
        {
            last.end = span.end;
        }
        _ => spans.push(span),
    }
}

/// What became of a band's data blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    /// Their ranges, in order.
    pub(super) spans: Vec<FileSpan>,
    /// Those of lost ones, with the worst of their groups.
    pub(super) lost: Vec<LostRange>,
}

impl Blocks {
    /// A band whose blocks are all sound.
    pub(super) fn sound(start: u64, end: u64) -> Self {
        Self {
            spans: vec![FileSpan {
                start,
                end,
                kind: FileKind::Sound,
                cause: None,
            }],
            lost: Vec::new(),
        }
    }

    /// Adds those of another band.
    pub(super) fn add(&mut self, other: &Self) {
        self.spans.extend_from_slice(&other.spans);
        self.lost.extend_from_slice(&other.lost);
    }

    pub(super) fn lose(&mut self, range: LostRange) {
        match self.lost.last_mut() {
            Some(last) if last.end == range.start => {
                last.end = range.end;
                last.worst = WorstGroup::worse(last.worst, range.worst);
            }
            _ => self.lost.push(range),
        }
    }
}

/// The lost ranges of a ledger, each with the worst of the groups that it has blocks of.
pub(super) fn lost_ranges(ledger: &[FileSpan], mut blocks: Vec<LostRange>) -> Vec<LostRange> {
    blocks.sort_by_key(|range| range.start);
    let lost = ledger.iter().filter(|span| span.kind == FileKind::Lost);
    let ranges = lost.map(|span| {
        let within = overlapping(
            &blocks,
            |range| range.start..range.end,
            &(span.start..span.end),
        )
        .iter();
        LostRange {
            start: span.start,
            end: span.end,
            worst: within.fold(None, |worst, range| WorstGroup::worse(worst, range.worst)),
        }
    });
    ranges.collect()
}

/// The ranges of the file that are in no block of a current frame, in order. They end where the ledger does.
pub(super) fn gaps(files: &Files<'_>, frames: &Frames, has_corrupt: bool) -> Vec<FileSpan> {
    let covered = frames.greatest_covered();
    let end = files.file_bytes.max(covered);
    let blocks = frames.current().filter_map(|frame| {
        let start = frames.set?.band_start(frame.band);
        Some((start, start + u64::from(frame.len)))
    });
    let (mut spans, mut at) = (Vec::new(), 0);
    for (start, block_end) in blocks.chain([(end, end)]) {
        while at < start {
            // Where the file ends, and where what was covered does, kinds change.
            let limits = [covered, files.file_bytes].into_iter();
            let end = limits.filter(|limit| *limit > at).fold(start, u64::min);
            let (kind, cause) = if at >= files.file_bytes {
                (FileKind::Lost, Some(Cause::Truncated))
            } else if at < covered || has_corrupt {
                (FileKind::Unverified, Some(Cause::Unreferenced))
            } else {
                (FileKind::Uncovered, None)
            };
            let span = FileSpan {
                start: at,
                end,
                kind,
                cause,
            };
            push(&mut spans, span);
            at = end;
        }
        at = at.max(block_end);
    }
    spans
}

/// Puts the ranges of bands and those between them in order.
pub(super) fn file_ledger(mut spans: Vec<FileSpan>, gaps: Vec<FileSpan>) -> Vec<FileSpan> {
    spans.extend(gaps);
    spans.sort_by_key(|span| span.start);
    let mut ledger = Vec::new();
    spans.into_iter().for_each(|span| push(&mut ledger, span));
    ledger
}

/// A range of a sidecar: a frame, or bytes of none.
#[derive(Clone, Copy, Debug)]
pub(super) struct SidecarRange {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) content: Content,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Frame(Frame),
    Corrupt,
    TornTail,
}

/// The ranges of a sidecar, in order.
pub(super) fn sidecar_ranges(files: &Files<'_>, frames: &Frames) -> Result<Vec<SidecarRange>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    for frame in &frames.all {
        if at < frame.start {
            ranges.push(SidecarRange {
                start: at,
                end: frame.start,
                content: Content::Corrupt,
            });
        }
        ranges.push(SidecarRange::of(*frame));
        at = frame.end;
    }
    if at < files.sidecar.len() {
        let first = files.read_sidecar(at, at + HEAD_BYTES as u64)?;
        let is_torn = !frames.all.is_empty() && first.iter().all(|byte| *byte == 0);
        ranges.push(SidecarRange {
            start: at,
            end: files.sidecar.len(),
            content: if is_torn {
                Content::TornTail
            } else {
                Content::Corrupt
            },
        });
    }
    Ok(ranges)
}

impl SidecarRange {
    pub(super) const fn of(frame: Frame) -> Self {
        Self {
            start: frame.start,
            end: frame.end,
            content: Content::Frame(frame),
        }
    }

    /// Whether these are bytes of no frame that may be what is left of one.
    pub(super) fn is_corrupt(&self) -> bool {
        matches!(self.content, Content::Corrupt)
    }
}
