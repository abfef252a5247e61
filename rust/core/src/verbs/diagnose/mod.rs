//! Diagnoses damage: for each damaged range a reason from a closed list, its evidence, and the neighbouring records.
//!
//! Diagnosing is a separate step after verifying, so sound files never pay for it. It reads the file's own bytes and
//! writes nothing. Its work is bounded: the number of ranges, the bytes read around each, and the bytes hashed in
//! total.

mod budget;
mod content;
mod excerpt;
mod flips;
mod neighbours;
mod reason;
mod sectors;
mod shift;
mod stale;

use std::sync::Arc;

use super::diagnosis::{Certainty, Diagnosis, Reason};
use super::{Report, verify};
use crate::engine::Format;
use crate::engine::candidate::Candidates;
use crate::error::Result;
use crate::format::by_name;
use crate::ledger::{Cause, Kind, Span};
use crate::record::Checked;
use crate::setters::setters;
use crate::source::{PatchedSource, Source};
use crate::walk::Options;
use budget::Budget;
use excerpt::Excerpt;
use reason::Explanation;

/// The largest file, in bytes, that is verified with all proposals applied. That takes another pass.
const MAX_CONFIRMED_BYTES: u64 = 1 << 30;

/// The limits of a diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiagnoseOptions {
    /// How many damaged ranges are diagnosed, from the first on.
    pub ranges: usize,
    /// How many bytes may be hashed or decoded in trials, over all ranges.
    pub work_bytes: u64,
}

setters!(DiagnoseOptions {
    ranges: usize;
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
    let spans: Vec<Span> = report.damage.iter().take(how.ranges).copied().collect();
    if spans.is_empty() {
        return Ok(Vec::new());
    }
    // What is restored is known. What is not is diagnosed in the file that it would be part of.
    let source = &report.as_it_was_read(source);
    let options = options.for_ledger().format(report.format);
    let around = neighbours::around(source, &options, &spans, progress)?;
    let mut case = Case {
        source,
        format: by_name(report.format.name)?,
        options: &options,
        report,
        budget: Budget::new(how.work_bytes),
        searched: Budget::new(how.work_bytes),
        candidates: None,
    };
    let whole_file = case.whole_file()?;
    if whole_file.is_none() {
        case.candidates = case.format.candidates(source, &options)?;
    }
    let mut found = Vec::with_capacity(spans.len());
    for (span, (before, after)) in spans.into_iter().zip(around) {
        options.poll()?;
        let explanation = match &whole_file {
            _ if span.kind == Kind::Repaired => reason::restorable(&span),
            Some(explanation) => explanation.clone(),
            None => case.explain(&span)?,
        };
        found.push(Diagnosis {
            span,
            reason: explanation.reason,
            certainty: explanation.certainty,
            evidence: explanation.evidence,
            before,
            after,
            repairs: explanation.repairs,
        });
    }
    confirm(source, &options, &mut found)?;
    Ok(found)
}

/// The file whose ranges are diagnosed.
struct Case<'a> {
    source: &'a Arc<dyn Source>,
    format: &'static Format,
    options: &'a Options,
    report: &'a Report,
    budget: Budget,
    /// The budget of searches for whole records in damaged ranges. Each search is charged its worst case, which it
    /// hardly ever needs.
    searched: Budget,
    /// `None` if the file has no checksums to prove anything.
    candidates: Option<Box<dyn Candidates>>,
}

impl Case<'_> {
    /// A diagnosis of the whole file: the key, the dialect, or another program's file.
    fn whole_file(&self) -> Result<Option<Explanation>> {
        if self.report.wrong_key() {
            return Ok(Some(Explanation::new(
                Reason::WrongKey,
                Certainty::Likely,
                "no checksum in the file matches, and the structure is sound to its end",
            )));
        }
        if let Some(found) = content::other_dialect(self.source, self.options, self.format)? {
            return Ok(Some(found));
        }
        if self.report.records > 0 {
            return Ok(None);
        }
        content::other_file(self.source, self.options, self.format)
    }

    /// Diagnoses one range: first by checksums, then by the look of its bytes, then by its kind.
    fn explain(&mut self, span: &Span) -> Result<Explanation> {
        let has_checksums = self.candidates.is_some();
        if let Some(found) = reason::of_cause(span, has_checksums) {
            return Ok(found);
        }
        if let Some(found) = shift::short(self.source.len(), span) {
            return Ok(found);
        }
        if let Some(found) = self.by_proof(span)? {
            return Ok(found);
        }
        let excerpt = Excerpt::around(&**self.source, span)?;
        if let Some(found) = sectors::constant(&excerpt, span) {
            return Ok(found);
        }
        if let Some(candidates) = &self.candidates
            && candidates.reads_alone()
            && let Some(found) = stale::explain(self.options, &excerpt, span, &mut self.searched)?
        {
            return Ok(found);
        }
        let by_bytes = content::other_bytes(&excerpt, span)
            .or_else(|| sectors::duplicated(&excerpt, span))
            .or_else(|| match &self.candidates {
                Some(candidates) => shift::unaligned(&**candidates, &excerpt, span),
                None => None,
            });
        if let Some(found) = by_bytes {
            return Ok(found);
        }
        let is_last = self
            .report
            .damage
            .iter()
            .all(|other| other.start <= span.start);
        if span.kind == Kind::TornTail
            && is_last
            && let Some(found) = self.torn(&excerpt, span)?
        {
            return Ok(found);
        }
        if let Some(candidates) = &mut self.candidates
            && candidates.reads_alone()
            && let Some(found) = shift::missing(&mut **candidates, span)?
        {
            return Ok(found);
        }
        Ok(self.unexplained(span))
    }

    /// A diagnosis of a torn tail by where the file ends, if that is within a unit. Of a file that is appended to only what its writer
    /// would remove is an interrupted write.
    fn torn(&self, excerpt: &Excerpt, span: &Span) -> Result<Option<Explanation>> {
        if let Some(unfinished) = self.format.unfinished {
            let follows = self.report.records > 0;
            if !(follows && unfinished(&**self.source, self.options, span)?) {
                return Ok(None);
            }
        }
        let index = self.format.index;
        let beyond = index.map(|index| (index.beyond)(&**self.source, self.options));
        Ok(Some(match beyond.transpose()?.flatten() {
            Some(at) => shift::known_by_index(self.source.len(), at),
            None => shift::torn(self.format, excerpt, span),
        }))
    }

    /// A diagnosis that a checksum proves: flipped bits, moved sectors, inserted bytes, moved units.
    fn by_proof(&mut self, span: &Span) -> Result<Option<Explanation>> {
        let Some(candidates) = &mut self.candidates else {
            return Ok(None);
        };
        let (source, budget) = (&**self.source, &mut self.budget);
        let repairs = flips::repairs(source, &mut **candidates, span, budget)?;
        if !repairs.is_empty() {
            return Ok(Some(flips::explanation(repairs)));
        }
        for candidate in &mut candidates.candidates(span)? {
            let bytes = candidate.read(source)?;
            // A unit that is verified unchanged was refused for another reason than its bytes.
            if !candidate.by_checksum || (candidate.check)(&bytes).end.is_some() {
                continue;
            }
            self.options.poll()?;
            let mut found = shift::line_ends(source, candidate, budget)?;
            if found.is_none() {
                found = shift::inserted(source, candidate, span, budget)?;
            }
            if found.is_none() {
                found = sectors::moved(source, candidate, span, budget)?;
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        for misplaced in candidates.misplaced(span)? {
            let found = shift::misplaced(misplaced, source.len(), budget)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn unexplained(&self, span: &Span) -> Explanation {
        let evidence = if self.report.checked == Checked::Structure {
            "the file has no checksums that could prove what the bytes were"
        } else if self.budget.is_spent() {
            "the damage is so dense that the search for its cause was ended"
        } else if span.cause == Some(Cause::SearchLimit) {
            "later damage was not diagnosed"
        } else {
            "no single flipped bit and no moved, zeroed or copied sector explains it"
        };
        Explanation::unknown(evidence)
    }
}

/// Verifies the file with all proposals applied. Undiagnosed ranges that are sound then are consequences of the others.
fn confirm(source: &Arc<dyn Source>, options: &Options, found: &mut [Diagnosis]) -> Result<()> {
    let repairs = found.iter().flat_map(|diagnosis| &diagnosis.repairs);
    let patches: Vec<_> = repairs.map(|repair| (repair.offset, repair.new)).collect();
    if patches.is_empty() || source.len() > MAX_CONFIRMED_BYTES {
        return Ok(());
    }
    let all = if patches.len() > 1 {
        "with all proposals"
    } else {
        "then"
    };
    let patched = Arc::new(PatchedSource::new(source.clone(), patches));
    let report = verify(patched, options, |_| Ok(()))?;
    for diagnosis in found {
        let Span { start, end, .. } = diagnosis.span;
        let mut left = report.damage.iter();
        let left = left.find(|span| span.start < end && start < span.end);
        match (diagnosis.reason, left) {
            (Reason::FlippedBit, Some(left)) => {
                let from = left.start.max(start);
                let rest = format!("; from {from} on it stays damaged");
                diagnosis.evidence.push_str(&rest);
            }
            (Reason::FlippedBit, None) if report.is_sound() => {
                diagnosis.evidence.push_str("; the whole file is sound ");
                diagnosis.evidence.push_str(all);
            }
            (Reason::Unknown, None) if !report.truncated => {
                diagnosis.reason = Reason::Consequence;
                diagnosis.certainty = Some(Certainty::Proven);
                diagnosis.evidence =
                    "the range is sound once the bits that are proposed elsewhere are flipped back"
                        .to_owned();
            }
            _ => {}
        }
    }
    Ok(())
}
