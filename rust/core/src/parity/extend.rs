//! Extending a sidecar when its file grew (rules 15 and 16).

use std::fmt;

use super::bytes::{Files, KnownBytes};
use super::encode::{Change, Encoding, head, reading};
use super::frames::{Frame, Frames};
use super::judge::{BlockProof, Judged};
use super::layout::{Head, Set};
use super::ledger::{Cause, Content, FileSpan, SidecarRange};
use super::report::{Inspection, Options, verify};
use crate::error::{Error, Result};

/// What became of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// The changes make up the new sidecar.
    Done,
    /// The sidecar is damaged and the file is proven. There are no changes: [repair](super::repair()) the files, as
    /// they were given here, and extend again.
    RepairFirst,
    /// There are no changes.
    Refused(Refusal),
}

/// Why a sidecar is not extended: what did not verify must not be encoded anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The sidecar has no frame.
    NoFrame,
    /// The file was covered further than it is to be covered now.
    CoveredMore {
        /// How far it was covered.
        covered: u64,
        /// How far it is to be covered.
        end: u64,
        /// The length of the file. After `end` it has what is not to be covered, such as unused space.
        file_bytes: u64,
    },
    /// This range of the file is damaged.
    Damaged(FileSpan),
    /// Nothing can verify this range of the file, which was covered.
    Unverified(FileSpan),
    /// The block from this offset of the file on does not verify, and the band that it is in would be encoded anew.
    BlockDiffers(u64),
}

impl Refusal {
    /// Where in the file, and what was expected and found there. `None` if the sidecar itself is refused.
    #[must_use]
    pub fn damage(&self) -> Option<RefusedDamage> {
        let found = |start, cause, expected: String, actual: &str| {
            let actual = actual.to_owned();
            RefusedDamage {
                start,
                cause,
                expected,
                actual,
            }
        };
        match self {
            Self::NoFrame => None,
            Self::CoveredMore {
                covered,
                end,
                file_bytes,
            } => Some(found(
                *end,
                Cause::Truncated,
                format!("at least the {covered} bytes that were covered"),
                &match file_bytes - end {
                    0 => format!("the end of the file after {end}"),
                    rest => format!(
                        "{end}, and then {rest} bytes of unused space or of an incomplete record"
                    ),
                },
            )),
            Self::Damaged(span) => Some(found(
                span.start,
                span.cause.unwrap_or(Cause::ChecksumMismatch),
                format!("bytes up to {} as they were covered", span.end),
                match span.cause {
                    Some(Cause::Truncated) => "that they are missing",
                    Some(Cause::Unreferenced) => "nothing that can verify them",
                    _ => "bytes that nothing in the sidecar verifies",
                },
            )),
            Self::Unverified(span) => Some(found(
                span.start,
                Cause::Unreferenced,
                format!("a frame for bytes up to {}, which were covered", span.end),
                "none",
            )),
            Self::BlockDiffers(offset) => Some(found(
                *offset,
                Cause::ChecksumMismatch,
                "the block as it was covered".to_owned(),
                "other bytes",
            )),
        }
    }
}

/// The damage of a file for which a sidecar is not extended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedDamage {
    /// Where it begins in the file.
    pub start: u64,
    /// Its cause.
    pub cause: Cause,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub actual: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.damage() {
            None => f.write_str("expected a frame in the sidecar, found none"),
            Some(damage) => write!(
                f,
                "expected {} at offset {}, found {}",
                damage.expected, damage.start, damage.actual
            ),
        }
    }
}

/// How far a sidecar covers a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// What all frames have in common.
    pub set: Set,
    /// The bytes of the file that were covered by the last extension (C).
    pub covered: u64,
    /// Where the last band that has a frame begins in the file.
    pub band_start: u64,
    /// The bytes of that band that the frame covers (L).
    pub band_covered: u64,
}

impl Coverage {
    /// Reads it. `None` if the sidecar has no frame of a band of the file.
    ///
    /// # Errors
    /// [`Error::Io`] if the sidecar cannot be read.
    pub fn read(files: Files<'_>) -> Result<Option<Self>> {
        let frames = Frames::find(&files)?;
        let last = frames.current().last().map(|(_, frame)| *frame);
        let coverage = frames.set.zip(last).map(|(set, last)| Self {
            set,
            covered: frames.greatest_covered(),
            band_start: set.band_start(last.band),
            band_covered: u64::from(last.len),
        });
        Ok(coverage)
    }

    /// The bytes that were covered by the last extension, if the last band's frame reaches to there.
    pub(crate) fn whole(&self) -> Option<u64> {
        (self.band_start + self.band_covered == self.covered).then_some(self.covered)
    }

    /// Whether the last band is not complete, has grown by less than 1/16 of what is covered of it, and is still the
    /// last band if the file is to be covered up to `end`. Extending it would write its frame again for little.
    #[must_use]
    pub fn is_near(&self, end: u64) -> bool {
        let band_end = self.band_start + self.set.parameters.band_bytes();
        let covered = self.band_start + self.band_covered;
        let tail = end.saturating_sub(covered);
        end < band_end && tail.saturating_mul(16) < self.band_covered
    }
}

/// Gives the changes that make a sidecar cover the first `end` bytes of a file, which grew. Only bands that are not
/// covered yet, or only in part, are read. The sidecar is not empty.
///
/// # Errors
/// [`Error::Usage`] if the file has fewer bytes; [`Error::Io`] if bytes cannot be read; errors of `give`.
pub fn extend(
    files: Files<'_>,
    end: u64,
    give: &mut dyn FnMut(Change<'_>) -> Result<()>,
) -> Result<Extended> {
    if end > files.file_bytes {
        return Err(Error::Usage(format!(
            "expected a file of at least {end} bytes to protect, found {}",
            files.file_bytes
        )));
    }
    let files = files.with_file_bytes(end);
    // It is refused below for better reasons than that it may be another file.
    let inspection = Inspection::new(&files, Options::default().force(true))?;
    let Some(set) = inspection.frames.set else {
        return Ok(Extended::Refused(Refusal::NoFrame));
    };
    let Some(last) = inspection.frames.current().last().map(|(_, frame)| *frame) else {
        return Ok(Extended::Refused(Refusal::NoFrame));
    };
    if let Some(refusal) = refusal(&inspection, &set, &last, end)? {
        return Ok(refusal);
    }
    let added = added(&set, &last, end);
    let is_replaced = added.first().is_some_and(|head| head.band == last.band);
    for range in kept(&inspection, &last, is_replaced, &added) {
        give(Change::Kept {
            start: range.start,
            end: range.end,
        })?;
    }
    let mut encoding = Encoding::new(set);
    for head in added {
        encoding.frame(&head, &mut reading(files.file, &head), give)?;
    }
    files.confirm()?;
    Ok(Extended::Done)
}

/// Rule 15: why a sidecar is not extended, at least not yet.
fn refusal(
    inspection: &Inspection<'_>,
    set: &Set,
    last: &Frame,
    end: u64,
) -> Result<Option<Extended>> {
    let (files, frames) = (inspection.files, &inspection.frames);
    let covered = frames.greatest_covered();
    if covered > end {
        return Ok(Some(Extended::Refused(Refusal::CoveredMore {
            covered,
            end,
            file_bytes: files.file.len().max(end),
        })));
    }
    let mut current = frames.current();
    let is_cut = current.any(|(_, frame)| frame.is_cut(set, files.sidecar.len()));
    if is_cut || inspection.has_corrupt() {
        let report = verify(*files, Options::default())?;
        return Ok(Some(match report.first_damage() {
            Some(span) => Extended::Refused(Refusal::Damaged(*span)),
            None => Extended::RepairFirst,
        }));
    }
    let gaps = inspection.gaps();
    if let Some(gap) = gaps.iter().find(|gap| gap.start < covered) {
        return Ok(Some(Extended::Refused(Refusal::Unverified(*gap))));
    }
    let mut judged = Judged::open(files, *set, *last)?;
    judged.verify_data(&KnownBytes::default(), false)?;
    let differs = judged
        .data
        .iter()
        .position(|proof| *proof != BlockProof::Hash);
    Ok(differs.map(|block| {
        let offset = judged.band_start + judged.geometry.block(block).start as u64;
        Extended::Refused(Refusal::BlockDiffers(offset))
    }))
}

/// The heads of the frames to add.
fn added(set: &Set, last: &Frame, end: u64) -> Vec<Head> {
    let mut added = Vec::new();
    let mut band = last.band;
    while let Some(head) = head(*set, band, end) {
        if band > last.band || head.len > last.len {
            added.push(head);
        }
        band += 1;
    }
    added
}

/// The ranges of the sidecar that stay. Those of a sidecar that is written anew (rule 16) are its current frames.
fn kept(
    inspection: &Inspection<'_>,
    last: &Frame,
    is_replaced: bool,
    added: &[Head],
) -> Vec<SidecarRange> {
    let sidecar_bytes = inspection.files.sidecar.len();
    let is_current =
        |frame: &Frame| frame.is_current && !(is_replaced && frame.start == last.start);
    let mut kept = inspection.ranges.to_vec();
    // A torn tail, or a superseded last frame that reaches over the end.
    kept.retain(|range| match range.content {
        Content::Frame(frame) => is_current(&frame) || range.end <= sidecar_bytes,
        Content::Corrupt | Content::TornTail => false,
    });
    let frames = kept.iter().filter_map(|range| match range.content {
        Content::Frame(frame) => Some((is_current(&frame), range.end - range.start)),
        Content::Corrupt | Content::TornTail => None,
    });
    let new = added
        .iter()
        .map(|head| (true, head.geometry().frame_bytes() as u64));
    let (mut current, mut superseded) = (0, 0);
    for (is_current, bytes) in frames.chain(new) {
        *(if is_current {
            &mut current
        } else {
            &mut superseded
        }) += bytes;
    }
    if superseded > current {
        kept.clear();
        let frames = inspection.frames.current().map(|(_, frame)| *frame);
        kept.extend(frames.filter(is_current).map(|frame| SidecarRange {
            start: frame.start,
            end: frame.end,
            content: Content::Frame(frame),
        }));
    }
    kept
}
