//! What a sidecar says of a file (rules 9 and 13), and the bytes that repair it (rule 18).

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::band::JudgedBand;
use super::bytes::{Files, KnownBytes, PIECE_BYTES};
use super::encode::{Change, Encoding};
use super::frames::Frames;
use super::judge::{BlockProof, Judged};
use super::ledger::{
    Blocks, Content, FileKind, FileSpan, LostRange, SidecarKind, SidecarRange, SidecarSpan,
    WorstGroup, file_ledger, gaps, lost_ranges, sidecar_ranges,
};
use crate::error::{Error, Result};
use crate::saturating::saturating_usize;
use crate::setters::setters;
use crate::words::words;

/// How a file is judged.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    force: bool,
}

setters!(Options {
    /// Judge also a file of which no block is sound: it may be another file.
    force: bool;
});

words! {
    /// What a sidecar says of a file and of itself, as a whole.
    Outcome {
        /// Nothing is damaged.
        Sound = "sound",
        /// All damage can be repaired.
        Repaired = "repaired",
        /// Bytes are lost, or cannot be verified any more.
        Lost = "lost",
        /// The sidecar cannot be that of the file.
        Refused = "refused",
    }
}

words! {
    /// Why a sidecar was refused.
    Refused {
        /// It is not empty and has no frame.
        NoFrame = "no_frame",
        /// No block of the file is sound, and the file is not all zeros: this is another file.
        AnotherFile = "another_file",
    }
}

/// A frame of a sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FrameSpan {
    /// Where it begins in the sidecar.
    pub start: u64,
    /// Where it ends in the sidecar. That may be after the end of the sidecar.
    pub end: u64,
    /// The number of its band.
    pub band: u64,
    /// The bytes of the band that it covers.
    pub len: u64,
    /// The bytes of a block.
    pub block_bytes: usize,
    /// The number of groups.
    pub groups: usize,
}

/// What a sidecar says of a file and of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The result as a whole.
    pub outcome: Outcome,
    /// Why it was refused, if it was.
    pub refused: Option<Refused>,
    /// The file's ledger: from 0 to its end, or to where it was covered.
    pub file: Vec<FileSpan>,
    /// The sidecar's ledger.
    #[doc(hidden)] // public for the Python extension
    pub sidecar: Vec<SidecarSpan>,
    /// All frames of the sidecar, superseded ones too.
    #[doc(hidden)]
    pub frames: Vec<FrameSpan>,
    /// The group with the most damage, if there is any.
    #[doc(hidden)] // public for the Python extension
    pub worst: Option<WorstGroup>,
    /// The lost ranges of the file's ledger, each with the worst of its groups.
    pub lost: Vec<LostRange>,
}

/// What to do about a sidecar without any frame that was named.
pub(crate) const NAME_ANOTHER: &str =
    "it is none, or nothing of it is left: name another with `sidecar`";

/// The error for a sidecar without any frame.
pub(crate) fn no_frame(sidecar: Option<&Path>, next: &'static str) -> Error {
    Error::Format {
        path: sidecar.map(Path::to_path_buf),
        message: "expected a frame in the sidecar, found none".to_owned(),
        next: Some(next),
    }
}

impl Report {
    /// The first range of the file that has a cause.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn first_damage(&self) -> Option<&FileSpan> {
        self.file.iter().find(|span| span.cause.is_some())
    }
}

/// Reads a file and its sidecar, and says what is damaged. It writes nothing.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if bytes cannot be read. Damage is in the report.
pub fn verify(files: Files<'_>, options: Options) -> Result<Report> {
    Inspection::new(&files, options)?.report(&mut |_, _| Ok(()))
}

/// The frames of a sidecar, before their bands are judged.
pub(super) struct Inspection<'a> {
    pub(super) files: &'a Files<'a>,
    pub(super) frames: Arc<Frames>,
    pub(super) ranges: Arc<[SidecarRange]>,
    pub(super) refused: Option<Refused>,
}

impl<'a> Inspection<'a> {
    pub(super) fn new(files: &'a Files<'a>, options: Options) -> Result<Self> {
        let frames = Frames::find(files)?;
        let ranges = sidecar_ranges(files, &frames)?;
        let mut inspection = Self {
            files,
            frames: Arc::new(frames),
            ranges: ranges.into(),
            refused: None,
        };
        inspection.refused = inspection.refuse(options)?;
        Ok(inspection)
    }

    /// Rule 9.
    fn refuse(&self, options: Options) -> Result<Option<Refused>> {
        let Some(set) = self.frames.set.filter(|_| !self.frames.all.is_empty()) else {
            return Ok((!self.files.sidecar.is_empty()).then_some(Refused::NoFrame));
        };
        if options.force {
            return Ok(None);
        }
        let mut has_current = false;
        for frame in self.frames.current() {
            has_current = true;
            let mut judged = Judged::open(self.files, set, *frame)?;
            judged.verify_data(&KnownBytes::default(), true)?;
            if judged.data.contains(&BlockProof::Hash) {
                return Ok(None);
            }
        }
        let is_another = has_current && self.files.has_content()?;
        Ok(is_another.then_some(Refused::AnotherFile))
    }

    /// Whether the sidecar has bytes that may be what is left of a frame.
    pub(super) fn has_corrupt(&self) -> bool {
        self.ranges.iter().any(SidecarRange::is_corrupt)
    }

    /// The ranges of the file that are in no block of a current frame.
    pub(super) fn gaps(&self) -> Vec<FileSpan> {
        gaps(self.files, &self.frames, self.has_corrupt())
    }

    /// Judges the band of a current frame.
    pub(super) fn judge(&self, range: &SidecarRange) -> Result<Option<JudgedBand<'a>>> {
        let is_refused = self.refused.is_some();
        match (range.content, self.frames.set) {
            (Content::Frame(frame), Some(set)) if frame.is_current => {
                JudgedBand::judge(self.files, &self.frames, set, frame, is_refused).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Judges all bands, in the order of their current frames in the sidecar. `see` gets each range of the sidecar, and
    /// its band if it is a current frame.
    fn report(
        &self,
        see: &mut dyn FnMut(&SidecarRange, Option<&JudgedBand<'_>>) -> Result<()>,
    ) -> Result<Report> {
        let (mut blocks, mut sidecar) = (Blocks::default(), Vec::new());
        let mut worst: Option<WorstGroup> = None;
        for range in self.ranges.iter() {
            let band = self.judge(range)?;
            if let Some(band) = &band {
                blocks.add(&band.blocks);
                worst = WorstGroup::worse(worst, band.worst());
            }
            sidecar.push(range.span(band.as_ref()));
            see(range, band.as_ref())?;
        }
        self.sum_up(blocks, sidecar, worst)
    }

    /// The report, when all bands are judged: the ranges of the file that are in blocks, and those of the sidecar.
    pub(super) fn sum_up(
        &self,
        blocks: Blocks,
        sidecar: Vec<SidecarSpan>,
        worst: Option<WorstGroup>,
    ) -> Result<Report> {
        self.files.confirm()?;
        let file = file_ledger(blocks.spans, self.gaps());
        Ok(Report {
            lost: lost_ranges(&file, blocks.lost),
            outcome: self.outcome(&file, &sidecar),
            refused: self.refused,
            file,
            sidecar,
            frames: self.frame_spans(),
            worst,
        })
    }

    /// Rule 13.
    fn outcome(&self, file: &[FileSpan], sidecar: &[SidecarSpan]) -> Outcome {
        let lost = [FileKind::Lost, FileKind::Unverified];
        let mut causes = file.iter().map(|span| span.cause);
        if self.refused.is_some() {
            Outcome::Refused
        } else if file.iter().any(|span| lost.contains(&span.kind))
            || sidecar.iter().any(|span| span.kind == SidecarKind::Lost)
        {
            Outcome::Lost
        } else if causes.any(|cause| cause.is_some())
            || sidecar.iter().any(|span| span.cause.is_some())
        {
            Outcome::Repaired
        } else {
            Outcome::Sound
        }
    }

    fn frame_spans(&self) -> Vec<FrameSpan> {
        let spans = self.frames.all.iter().filter_map(|frame| {
            let geometry = frame.geometry(&self.frames.set?);
            Some(FrameSpan {
                start: frame.start,
                end: frame.end,
                band: frame.band,
                len: u64::from(frame.len),
                block_bytes: geometry.block_bytes,
                groups: geometry.groups,
            })
        });
        spans.collect()
    }
}

/// Gives the changes that repair a file and its sidecar, and reports what was damaged. If the report is a refusal,
/// there are no changes.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if bytes cannot be read; errors of `give`. What was given until then is right.
pub fn repair(
    files: Files<'_>,
    options: Options,
    give: &mut dyn FnMut(Change<'_>) -> Result<()>,
) -> Result<Report> {
    let inspection = Inspection::new(&files, options)?;
    if inspection.refused.is_some() {
        return inspection.report(&mut |_, _| Ok(()));
    }
    let gaps = inspection.gaps();
    let keeps_all = gaps.iter().any(|span| span.kind == FileKind::Unverified);
    inspection.report(&mut |range, band| {
        if let Some(band) = band {
            give_blocks(band, give)?;
            if band.kind == SidecarKind::Repaired {
                return give_frame(band, give);
            }
        }
        let end = range.end.min(files.sidecar.len());
        match range.content {
            Content::Corrupt | Content::TornTail if !keeps_all => Ok(()),
            _ => give(Change::Kept {
                start: range.start,
                end,
            }),
        }
    })
}

/// Gives the repaired blocks of a band.
fn give_blocks(
    band: &JudgedBand<'_>,
    give: &mut dyn FnMut(Change<'_>) -> Result<()>,
) -> Result<()> {
    let current = &band.current;
    let mut bytes = Vec::new();
    let spans = band.blocks.spans.iter();
    for span in spans.filter(|span| span.kind == FileKind::Repaired) {
        for offset in (span.start..span.end).step_by(PIECE_BYTES) {
            bytes.resize(saturating_usize(span.end - offset).min(PIECE_BYTES), 0);
            let within = saturating_usize(offset - current.band_start);
            band.known
                .read(current.files, current.band_start, within, &mut bytes)?;
            give(Change::File {
                offset,
                bytes: &bytes,
            })?;
        }
    }
    Ok(())
}

/// Gives the frame of a band, encoded anew.
fn give_frame(band: &JudgedBand<'_>, give: &mut dyn FnMut(Change<'_>) -> Result<()>) -> Result<()> {
    let current = &band.current;
    let head = current.frame.head(current.set, false);
    Encoding::default().frame(
        &head,
        &mut |start, buffer| {
            band.known
                .read(current.files, current.band_start, start, buffer)
        },
        give,
    )
}
