//! Extending a sidecar when its file grew (rules 15 and 16).

use super::bytes::{Files, KnownBytes};
use super::encode::{Change, Encoding, head, reading};
use super::frames::{Frame, Frames};
use super::judge::{BlockProof, Judged};
use super::layout::{Head, Set};
use super::ledger::{Cause, Content, SidecarRange};
use super::report::{Inspection, Options, verify};
use crate::error::{Error, Finding, Result};

/// What became of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extended {
    /// The changes make up the new sidecar.
    Done,
    /// The sidecar is damaged and the file is proven. There are no changes: [repair](super::repair()) the files, as
    /// they were given here, and extend again.
    RepairFirst,
    /// The sidecar has no frame. There are no changes.
    NoFrame,
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
        let last = frames.current().last();
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
/// [`Error::Damage`] if what is there does not verify, and so must not be encoded anew; [`Error::Usage`] if the file has fewer bytes;
/// [`Error::Io`] if bytes cannot be read; errors of `give`.
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
    let last = inspection.frames.current().last().copied();
    let Some((set, last)) = inspection.frames.set.zip(last) else {
        return Ok(Extended::NoFrame);
    };
    if !may_extend(&inspection, &set, &last, end)? {
        return Ok(Extended::RepairFirst);
    }
    let added = added(&set, &last, end);
    let is_replaced = added.first().is_some_and(|head| head.band == last.band);
    for range in kept(&inspection, &last, is_replaced, &added) {
        give(Change::Kept {
            start: range.start,
            end: range.end,
        })?;
    }
    let mut encoding = Encoding::default();
    for head in added {
        encoding.frame(&head, &mut reading(files.file, &head), give)?;
    }
    files.confirm()?;
    Ok(Extended::Done)
}

/// Rule 15: whether a sidecar is extended now; `false` if it has to be repaired first.
///
/// # Errors
/// [`Error::Damage`] if it is not extended at all: what did not verify must not be encoded anew.
fn may_extend(inspection: &Inspection<'_>, set: &Set, last: &Frame, end: u64) -> Result<bool> {
    let (files, frames) = (inspection.files, &inspection.frames);
    let refused = |start, cause: Cause, expected: String, actual: &str| {
        let finding = Finding::Parity {
            cause: cause.in_ledger(),
            expected,
            actual: actual.to_owned(),
        };
        Err(Error::damage(files.file.path(), start, finding))
    };
    let covered = frames.greatest_covered();
    if covered > end {
        let actual = match files.file.len().saturating_sub(end) {
            0 => format!("the end of the file after {end}"),
            rest => {
                format!("{end}, and then {rest} bytes of unused space or of an incomplete record")
            }
        };
        let expected = format!("at least the {covered} bytes that were covered");
        return refused(end, Cause::Truncated, expected, &actual);
    }
    let mut current = frames.current();
    let is_cut = current.any(|frame| frame.is_cut(set, files.sidecar.len()));
    if is_cut || inspection.has_corrupt() {
        let report = verify(*files, Options::default())?;
        let mut damaged = report.file.iter();
        let Some((span, cause)) = damaged.find_map(|span| Some((span, span.cause?))) else {
            return Ok(false);
        };
        let expected = format!("bytes up to {} as they were covered", span.end);
        let actual = match cause {
            Cause::Truncated => "that they are missing",
            Cause::Unreferenced => "nothing that can verify them",
            Cause::ChecksumMismatch => "bytes that nothing in the sidecar verifies",
        };
        return refused(span.start, cause, expected, actual);
    }
    let gaps = inspection.gaps();
    if let Some(gap) = gaps.iter().find(|gap| gap.start < covered) {
        let expected = format!("a frame for bytes up to {}, which were covered", gap.end);
        return refused(gap.start, Cause::Unreferenced, expected, "none");
    }
    let mut judged = Judged::open(files, *set, *last)?;
    judged.verify_data(&KnownBytes::default(), false)?;
    let mut proofs = judged.data.iter();
    let Some(block) = proofs.position(|proof| *proof != BlockProof::Hash) else {
        return Ok(true);
    };
    let start = judged.band_start + judged.geometry.block(block).start as u64;
    let expected = "the block as it was covered".to_owned();
    refused(start, Cause::ChecksumMismatch, expected, "other bytes")
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
        let frames = inspection.frames.current().copied();
        kept.extend(frames.filter(is_current).map(SidecarRange::of));
    }
    kept
}
