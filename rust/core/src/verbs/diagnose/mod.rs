//! Diagnoses damage: for each damaged range a reason from a closed list, its evidence, and the neighbouring records.
//!
//! Diagnosing is a separate step after verifying, so sound files never pay for it. It reads the file's own bytes and
//! writes nothing. Its work is bounded: the number of ranges, the bytes read around each, and the bytes hashed in
//! total.

mod budget;
mod content;
mod excerpt;
mod flips;
mod hypotheses;
mod neighbours;
mod places;
mod reason;
mod sectors;
mod shift;
mod stale;
mod undone;
mod whole;

use std::cmp::Reverse;
use std::sync::Arc;

use super::Report;
use super::diagnosis::{Certainty, Diagnosis, Edit, Reason};
use crate::engine::candidate::Candidates;
use crate::engine::{Format, Stated};
use crate::error::Result;
use crate::format::by_name;
use crate::ledger::{Cause, Kind, Span, Summary};
use crate::parity::ProtectedSource;
use crate::setters::setters;
use crate::source::{Source, data_end};
use crate::walk::Options;
use budget::Budget;
use excerpt::Excerpt;
use hypotheses::{Damaged, HYPOTHESES};
use reason::Explanation;
use undone::{Undone, confirm};

/// The sectors of how many ranges may be in each other's place, from the first range on.
const MAX_SWAPPED: usize = 8;

/// The limits of a diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiagnoseOptions {
    #[doc(hidden)] // public for the Python extension and tests
    pub ranges: usize,
    #[doc(hidden)] // public for the Python extension and tests
    pub work_bytes: u64,
}

setters!(DiagnoseOptions {
    /// How many damaged ranges are diagnosed, from the first on.
    ranges: usize;
    /// How many bytes may be hashed or decoded in trials, over all ranges.
    work_bytes: u64;
});

impl DiagnoseOptions {
    /// How many ranges are diagnosed by default.
    #[doc(hidden)] // public for the Python extension
    pub const RANGES: usize = 100;
}

impl Default for DiagnoseOptions {
    fn default() -> Self {
        Self {
            ranges: Self::RANGES,
            work_bytes: 1 << 30,
        }
    }
}

/// Diagnoses the first damaged ranges of a file that was verified with these options. Reads the file once more, up to
/// the record after the last of these ranges. If single bits are proposed, reads it again to verify the repaired file.
/// `progress` is called at intervals with how many bytes of the first pass are done. An error that it returns ends the
/// diagnosis.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
pub fn diagnose(
    source: &Arc<dyn Source>,
    options: &Options,
    report: &Report,
    how: &DiagnoseOptions,
    progress: impl FnMut(u64) -> Result<()>,
) -> Result<Vec<Diagnosis>> {
    let Summary {
        records, damage, ..
    } = &report.summary;
    let spans: Vec<Span> = damage.iter().take(how.ranges).copied().collect();
    if spans.is_empty() {
        return Ok(Vec::new());
    }
    let stored = match ProtectedSource::of(&**source) {
        Some(protected) => protected.file().len(),
        None => source.len(),
    };
    // What is restored is known. What is not is diagnosed in the file that it would be part of.
    let source = &report.as_it_was_read(source);
    let options = options.for_ledger().format(report.format);
    let around = neighbours::around(source, &options, &spans, progress)?;
    let mut case = Case {
        source,
        stored,
        format: by_name(report.format.name)?,
        options: &options,
        report,
        budget: Budget::new(how.work_bytes),
        searched: Budget::new(how.work_bytes),
        compared: Budget::new(how.work_bytes),
        data_end: data_end(&**source, || options.poll())?,
        tried: Budget::new(how.work_bytes),
        undone: Undone {
            records: *records,
            left: damage.iter().map(|own| own.start..own.end).collect(),
            changes: Vec::new(),
            is_sound: false,
        },
        candidates: None,
        stated: None,
        ends: Vec::new(),
    };
    let whole_file = case.whole_file()?;
    if whole_file.is_none() {
        case.candidates = (case.format.candidates)(source, &options)?;
        for own in damage.iter().take(MAX_SWAPPED) {
            case.ends.extend(sectors::ends(&**source, own)?);
        }
    }
    let stated = case.format.stated.filter(|_| whole_file.is_none());
    case.stated = stated
        .map(|stated| stated(source, &options))
        .transpose()?
        .flatten();
    let front = case.front();
    // What happened to an index, or at the end, explains damage elsewhere. Else the longest range tells most.
    let mut order: Vec<_> = spans.into_iter().zip(around).collect();
    if whole_file.is_none() {
        order.sort_by_key(|(span, _)| {
            let is_new = span.cause != Some(Cause::OutOfOrder);
            let place = (case.is_by_index(span), span.start >= front);
            (place, is_new, Reverse(span.len()), span.start)
        });
    }
    let mut found: Vec<Diagnosis> = Vec::with_capacity(order.len());
    for (span, (before, after)) in order {
        options.poll()?;
        let main = found.iter().find(|own| own.ranges.contains(&span));
        let explanation = match (&whole_file, main) {
            _ if span.kind == Kind::Repaired => reason::restorable(&span),
            (_, Some(main)) => reason::follows_from(main),
            (Some(explanation), _) => explanation.clone(),
            (None, None) => case.explain(&span, after.is_none(), &mut found)?,
        };
        let ranges = match explanation.reason {
            _ if whole_file.is_some() => damage.clone(),
            Reason::Consequence | Reason::Unknown => vec![span],
            _ => case.ranges(&span, &explanation),
        };
        found.push(explanation.diagnosis(span, ranges, before, after));
    }
    // What was undone last explains also what was explained otherwise before: all of it, if the file is sound.
    let gave_way = |own: &Edit| {
        let mut changes = case.undone.changes.iter();
        changes
            .any(|(at, _)| at.start < own.end && own.start < at.end && *at != (own.start..own.end))
    };
    if let Some(main) = found.iter().rfind(|own| !own.edits.is_empty()).cloned() {
        let is_other = |own: &&mut Diagnosis| match own.edits.is_empty() {
            true => case.undone.is_sound,
            false => own.edits.iter().any(gave_way),
        };
        for own in found.iter_mut().filter(is_other) {
            own.follow_from(&main);
        }
    }
    found.sort_by_key(|own| (own.span.start, own.span.end));
    confirm(source, &options, *records, &mut found)?;
    Ok(found)
}

/// The file whose ranges are diagnosed.
struct Case<'a> {
    source: &'a Arc<dyn Source>,
    /// How many bytes the file has without those that only its sidecar has.
    stored: u64,
    format: &'static Format,
    options: &'a Options,
    report: &'a Report,
    budget: Budget,
    /// The budget of searches for whole records in damaged ranges. Each search is charged its worst case, which it
    /// hardly ever needs.
    searched: Budget,
    /// The budget of looking in the file for bytes that it has twice.
    compared: Budget,
    /// Where the last byte that is not zero ends.
    data_end: u64,
    /// The budget of verifying the file with something undone.
    tried: Budget,
    undone: Undone,
    /// `None` if the file has no checksums to prove anything.
    candidates: Option<Box<dyn Candidates>>,
    /// What its index or table of contents states.
    stated: Option<Stated>,
    /// The sectors where the first ranges begin and end: what belongs in one may be in another.
    ends: Vec<Excerpt>,
}

impl Case<'_> {
    /// A diagnosis of the whole file: the key, the dialect, another program's file, or a transformation of all of it.
    fn whole_file(&mut self) -> Result<Option<Explanation>> {
        if self.report.summary.wrong_key() {
            return Ok(Some(Explanation::new(
                Reason::WrongKey,
                Certainty::Likely,
                "no checksum in the file matches, and the structure is sound to its end",
            )));
        }
        if let Some(found) = content::other_dialect(self)? {
            return Ok(Some(found));
        }
        if let Some(found) = whole::transformed(self)? {
            return Ok(Some(found));
        }
        if self.report.summary.records > 0 {
            return Ok(None);
        }
        content::other_file(self)
    }

    /// Diagnoses one range: by the first hypothesis that explains it. `is_last`: no sound record follows. `found` are those that
    /// were diagnosed before.
    fn explain(
        &mut self,
        span: &Span,
        is_last: bool,
        found: &mut [Diagnosis],
    ) -> Result<Explanation> {
        let mut range = Damaged::new(span, is_last, found);
        for hypothesis in HYPOTHESES {
            if let Some(found) = hypothesis(self, &mut range)? {
                return Ok(found);
            }
        }
        self.unexplained(span)
    }

    /// Whether a range is damaged by what an index or table of contents says of it.
    fn is_by_index(&self, span: &Span) -> bool {
        let is_of_index = matches!(
            span.cause,
            Some(
                Cause::OffsetOutOfBounds
                    | Cause::IndexDisagrees
                    | Cause::Unreferenced
                    | Cause::CountMismatch
                    | Cause::HeaderChecksumMismatch
            )
        );
        is_of_index && !self.format.is_appended_to()
    }

    /// The end of what the file has in front of its data, as its index states.
    fn front(&self) -> u64 {
        match self.stated {
            Some(stated) => stated.front,
            None => 0,
        }
    }

    /// Whether a range is what a file that was cut off leaves: its last bytes, or else the entries of what came after them.
    fn is_cut_off(&self, span: &Span) -> bool {
        let ends = |own: &Span| own.end == self.source.len() && !self.is_by_index(own);
        let is_beyond = span.cause == Some(Cause::OffsetOutOfBounds) && self.is_by_index(span);
        ends(span) || is_beyond && !self.report.summary.damage.iter().any(ends)
    }

    /// The damaged ranges around this one that follow each other without a sound record between them.
    fn adjacent(&self, span: &Span) -> &[Span] {
        let all = &self.report.summary.damage;
        // Less than a unit's alignment is padding.
        let gap = match &self.candidates {
            Some(candidates) => candidates.alignment(),
            None => 1,
        };
        let mut groups = all.chunk_by(|own, next| next.start < own.end.saturating_add(gap));
        groups
            .find(|group| group.contains(span))
            .unwrap_or_default()
    }
}
