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
mod places;
mod reason;
mod sectors;
mod shift;
mod stale;
mod undone;
mod whole;

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use super::Report;
use super::diagnosis::{Certainty, Diagnosis, Edit, Reason};
use crate::engine::candidate::Candidates;
use crate::engine::{Format, Stated};
use crate::error::Result;
use crate::format::by_name;
use crate::ledger::{Cause, Kind, Span, Summary};
use crate::record::Checked;
use crate::setters::setters;
use crate::source::{Fill, Source, View, data_end};
use crate::walk::Options;
use budget::Budget;
use excerpt::Excerpt;
use reason::Explanation;
use undone::{Undone, confirm, is_left_of};

/// How many ranges around a sector that hides others are looked at for what belongs there.
const MAX_NEAR: usize = 4;

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
        case.candidates = case.format.candidates(source, &options)?;
        for own in damage.iter().take(MAX_SWAPPED) {
            case.ends.extend(sectors::ends(&**source, own)?);
        }
    }
    let stated = case.format.stated.filter(|_| whole_file.is_none());
    case.stated = stated
        .map(|stated| stated(source, &options))
        .transpose()?
        .flatten();
    let front = case.stated.map_or(0, |stated| stated.front);
    // What happened to an index, or at the end, explains damage elsewhere. Else the longest range tells most.
    let mut order: Vec<_> = spans.into_iter().zip(around).collect();
    order.sort_by_key(|(span, _)| {
        let is_front = span.start < front;
        let rank = match (case.is_by_index(span), is_front) {
            (false, true) => 0,
            (false, false) => 1,
            (true, true) => 2,
            (true, false) => 3,
        };
        let is_old = span.cause == Some(Cause::OutOfOrder);
        (rank, !is_old, Reverse(span.len()), span.start)
    });
    let mut found: Vec<Diagnosis> = Vec::with_capacity(order.len());
    for (span, (before, after)) in order {
        options.poll()?;
        let main = found.iter().find(|own| own.ranges.contains(&span));
        let explanation = match (&whole_file, main) {
            _ if span.kind == Kind::Repaired => reason::restorable(&span),
            (Some(explanation), _) => explanation.clone(),
            (None, Some(main)) => reason::follows_from(main),
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
        if let Some(found) = content::other_dialect(self.source, self.options, self.format)? {
            return Ok(Some(found));
        }
        if let Some(found) = whole::transformed(self)? {
            return Ok(Some(found));
        }
        if self.report.summary.records > 0 {
            return Ok(None);
        }
        content::other_file(self.source, self.options, self.format)
    }

    /// Diagnoses one range: first by checksums, then by what is `found` of those around it, then by the look of its bytes, then by its
    /// kind. `is_last`: no sound record follows.
    fn explain(
        &mut self,
        span: &Span,
        is_last: bool,
        found: &mut [Diagnosis],
    ) -> Result<Explanation> {
        let has_checksums = self.candidates.is_some();
        if let Some(found) = reason::of_cause(span, has_checksums) {
            return Ok(found);
        }
        if let Some(found) = shift::short(self.source.len(), span) {
            return Ok(found);
        }
        if let Some(found) = self.by_bits(span)? {
            return Ok(found);
        }
        if self.format.is_appended_to()
            && !is_last
            && let Some(found) = shift::retried(&**self.source, span)?
        {
            let whole = self.best(vec![found.clone()])?;
            return Ok(whole.unwrap_or_else(|| found.unweighed()));
        }
        let shifted = self.by_index(span)?;
        if let Some(found) = self.by_place(span, shifted.as_ref())? {
            return Ok(found);
        }
        let proven = self.by_proof(span)?;
        if let Some(found) = proven.first().cloned() {
            if found.changes.is_empty() {
                return Ok(found);
            }
            // A checksum proves one record, which may also be another's beginning or end. What happened, the file shows.
            let is_weighed = self.tried.affords(self.source.len());
            match self.best(proven)? {
                Some(found) => return Ok(found),
                None if !is_weighed => {
                    let untried = "not tried: verifying the file with it undone";
                    return Ok(found.unweighed().but(untried));
                }
                None => {}
            }
        }
        if let Some(found) = shifted {
            return Ok(found.unweighed());
        }
        if let Some(found) = reason::beside(found, span, self.adjacent(span)) {
            return Ok(found);
        }
        let beyond = self.stated.filter(|own| own.end > self.source.len());
        if let Some(stated) = beyond.filter(|_| self.is_cut_off(span)) {
            let records = self.report.summary.records;
            return Ok(shift::known_by_index(self.source.len(), stated, records));
        }
        let is_written_whole = !self.format.is_appended_to();
        let len = self.source.len();
        // Before a log's mark all was on the disk.
        let is_promised = self
            .source
            .bound()
            .is_some_and(|bound| self.data_end < bound.offset);
        let was_written = is_written_whole || is_promised;
        if let Some(found) = sectors::zeroed_tail(len, self.data_end, span, was_written) {
            return Ok(found);
        }
        let excerpt = Excerpt::around(&**self.source, span)?;
        if let Some(found) = sectors::constant(&**self.source, &excerpt, span)? {
            return Ok(found);
        }
        if let Some(candidates) = &self.candidates
            && candidates.reads_alone()
            && let Some(found) = stale::explain(self.options, &excerpt, span, &mut self.searched)?
        {
            let is_stale = found.reason == Reason::StaleData;
            if let Some(copied) = self.duplicated(span)? {
                return Ok(copied);
            }
            let whole = match is_stale && is_last && !is_written_whole {
                true => places::concatenated(self, span)?,
                false => None,
            };
            return Ok(whole.unwrap_or(found));
        }
        if let Some(found) = content::other_bytes(&excerpt, span) {
            return Ok(found);
        }
        if let Some(found) = self.duplicated(span)? {
            return Ok(found);
        }
        let all = &self.report.summary.damage;
        let is_last_damage = all.iter().all(|other| other.start <= span.start);
        if span.kind == Kind::TornTail
            && is_last_damage
            && let Some(found) = self.torn(&excerpt, span)?
        {
            return Ok(found);
        }
        if self.report.summary.records > 0
            && let Some(found) = sectors::foreign(self.adjacent(span), self.source.len())
        {
            return Ok(found);
        }
        // Where nothing follows, no length says that bytes are missing.
        let reads_alone = self
            .candidates
            .as_ref()
            .is_some_and(|own| own.reads_alone());
        if reads_alone && !is_last {
            if let Some(found) = self.cut_out(span)? {
                return Ok(found);
            }
            if let Some(candidates) = &mut self.candidates
                && let Some(found) = shift::missing(&mut **candidates, span)?
            {
                return Ok(found);
            }
        }
        if let Some(found) = self.changed(span)? {
            return Ok(found);
        }
        self.unexplained(span)
    }

    /// A diagnosis of a torn tail by where the file ends, if that is within a unit. Of a file that is appended to only what its writer
    /// would remove is an interrupted write.
    fn torn(&self, excerpt: &Excerpt, span: &Span) -> Result<Option<Explanation>> {
        if let Some(unfinished) = self.format.unfinished {
            let follows = self.report.summary.records > 0;
            if !(follows && unfinished(&**self.source, self.options, span)?) {
                return Ok(None);
            }
        }
        Ok(Some(shift::torn(self.format, excerpt, span)))
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

    /// A diagnosis by sectors that the file has twice.
    fn duplicated(&mut self, span: &Span) -> Result<Option<Explanation>> {
        let ranges = self.adjacent(span).to_vec();
        sectors::duplicated(&**self.source, &ranges, &mut self.compared)
    }

    /// A diagnosis by single bits, with which a checksum matches.
    fn by_bits(&mut self, span: &Span) -> Result<Option<Explanation>> {
        let Some(candidates) = &mut self.candidates else {
            return Ok(None);
        };
        let repairs = flips::repairs(&**self.source, &mut **candidates, span, &mut self.budget)?;
        Ok((!repairs.is_empty()).then(|| flips::explanation(repairs)))
    }

    /// A diagnosis by what may have happened at one place, if more records are verified with that undone.
    fn by_place(
        &mut self,
        span: &Span,
        shifted: Option<&Explanation>,
    ) -> Result<Option<Explanation>> {
        if !is_left_of(&self.undone.left, span) {
            return Ok(None);
        }
        // Older records at the end of a file that is appended to may be another file's, or just older.
        let is_written_whole = !self.format.is_appended_to();
        if is_written_whole && let Some(found) = places::concatenated(self, span)? {
            return Ok(Some(found));
        }
        let mut proposals = places::added(&**self.source, span, is_written_whole)?;
        // What is there twice, too much or missing moves all that follows, of which the longest range is not always the first.
        let front = self.stated.map_or(0, |stated| stated.front);
        let mut all = self.report.summary.damage.iter();
        let first = all.find(|own| {
            let is_of_data = own.start >= front && !self.is_by_index(own);
            is_of_data && is_left_of(&self.undone.left, own)
        });
        if let Some(first) = first.filter(|own| *own != span) {
            proposals.extend(places::repeated(&**self.source, first, &mut self.compared)?);
            proposals.extend(self.by_index(first)?);
        }
        proposals.extend(places::repeated(&**self.source, span, &mut self.compared)?);
        proposals.extend(shifted.cloned());
        if let Some(found) = self.best(proposals)? {
            return Ok(Some(found));
        }
        // A record that is newer than those after it hides all of these.
        let hides = |own: &Range<u64>| {
            let is_near = own.start <= span.end.saturating_add(places::NEAR_BYTES);
            is_near && span.start < own.end && own.end - own.start > 2 * places::NEAR_BYTES
        };
        if !self.undone.left.iter().any(hides) {
            return Ok(None);
        }
        let mut proposals = places::written_over(&**self.source, span)?;
        // What belongs there may be in another sector.
        let is_near = |own: &&Span| {
            let near = span.start.saturating_sub(places::NEAR_BYTES);
            near < own.end && own.start < span.start.saturating_add(places::NEAR_BYTES)
        };
        let all = self.report.summary.damage.iter();
        for own in all.filter(is_near).take(MAX_NEAR) {
            let proven = self.by_proof(own)?.into_iter();
            proposals.extend(proven.filter(|own| own.reason == Reason::MovedSector));
        }
        match self.best(proposals)? {
            Some(found) if found.reason == Reason::ForeignSector => {
                places::with_origin(&**self.source, found, &mut self.compared).map(Some)
            }
            found => Ok(found),
        }
    }

    /// Diagnoses of which a checksum proves one record: of line ends, or of inserted bytes and of a moved sector, which are to be weighed.
    fn by_proof(&mut self, span: &Span) -> Result<Vec<Explanation>> {
        let Some(candidates) = &mut self.candidates else {
            return Ok(Vec::new());
        };
        let (source, budget) = (&**self.source, &mut self.budget);
        for candidate in &mut candidates.candidates(span)? {
            let bytes = candidate.read(source)?;
            // A unit that is verified unchanged was refused for another reason than its bytes.
            if !candidate.by_checksum || (candidate.check)(&bytes).end.is_some() {
                continue;
            }
            self.options.poll()?;
            let mut found = shift::line_ends(source, candidate, budget)?;
            if found.is_none() {
                found = shift::lost_return(source, candidate, budget)?;
            }
            if let Some(found) = found {
                return Ok(vec![found]);
            }
            let inserted = shift::inserted(source, candidate, span, budget)?;
            let around = Excerpt::around(source, span)?;
            let places = std::iter::once(&around).chain(&self.ends);
            let moved = sectors::moved(source, candidate, places, budget)?;
            let proposals: Vec<_> = inserted.into_iter().chain(moved).collect();
            if !proposals.is_empty() {
                return Ok(proposals);
            }
        }
        Ok(Vec::new())
    }

    /// A diagnosis by where an index has a unit, and where it is.
    fn by_index(&mut self, span: &Span) -> Result<Option<Explanation>> {
        let Some(candidates) = &mut self.candidates else {
            return Ok(None);
        };
        let len = self.source.len();
        for misplaced in candidates.misplaced(span)? {
            let found = shift::misplaced(misplaced, span, len, &mut self.budget)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A diagnosis of a unit of which bytes at its beginning are missing: with others put in, its lengths lead to the next sound one.
    fn cut_out(&mut self, span: &Span) -> Result<Option<Explanation>> {
        let work = span.len().saturating_mul(shift::MAX_CUT_OUT);
        if span.kind != Kind::Corrupt || span.len() > sectors::LARGE || !self.searched.afford(work)
        {
            return Ok(None);
        }
        for missing in 1..=shift::MAX_CUT_OUT {
            let change = (span.start..span.start, Fill::Zeros(missing));
            let view: Arc<dyn Source> = Arc::new(View::new(self.source.clone(), vec![change]));
            let Some(mut candidates) = self.format.candidates(&view, self.options)? else {
                return Ok(None);
            };
            let longer = Span {
                end: span.end + missing,
                ..*span
            };
            let all = candidates.candidates(&longer)?;
            if let Some(own) = all.iter().find(|own| own.is_whole(&longer)) {
                return Ok(Some(shift::cut_out(own.what, span, missing)));
            }
        }
        Ok(None)
    }

    /// A diagnosis of one unit whose length is right, and whose neighbours are sound: bytes in it changed.
    fn changed(&mut self, span: &Span) -> Result<Option<Explanation>> {
        let is_alone = self.adjacent(span).len() == 1 && self.report.summary.records > 0;
        let is_of_bytes = matches!(
            span.cause,
            Some(Cause::ChecksumMismatch | Cause::PayloadInvalid)
        );
        let Some(candidates) = self.candidates.as_mut().filter(|_| is_alone && is_of_bytes) else {
            return Ok(None);
        };
        let all = candidates.candidates(span)?;
        let Some(own) = all.iter().find(|own| own.is_whole(span)) else {
            return Ok(None);
        };
        let more = match own.is_tried() {
            true => ", more than one bit of them",
            false => "",
        };
        let evidence = format!(
            "the {} at {} has its length, and what is beside it is sound: bytes in it changed{more}",
            own.what, own.body.start
        );
        let found = Explanation::new(Reason::ChangedBytes, Certainty::Likely, evidence);
        Ok(Some(found.but(self.untried(span)?)))
    }

    fn unexplained(&mut self, span: &Span) -> Result<Explanation> {
        let untried = self.untried(span)?;
        let evidence = if self.report.summary.checked == Checked::Structure {
            "the file has no checksums that could prove what the bytes were"
        } else if self.budget.is_spent() {
            "the damage is so dense that the search for its cause was ended"
        } else if span.cause == Some(Cause::SearchLimit) {
            "later damage was not diagnosed"
        } else if !untried.is_empty() {
            "nothing that was tried explains it"
        } else {
            "no single flipped bit, no sector that is zeroed, moved, copied or there twice, and no inserted bytes explain it"
        };
        Ok(Explanation::unknown(evidence).but(untried))
    }

    /// What was not tried to explain a range, and why.
    fn untried(&mut self, span: &Span) -> Result<String> {
        let mut untried = Vec::new();
        if let Some(candidates) = &mut self.candidates {
            let all = candidates.candidates(span)?;
            if let Some(own) = all.iter().find(|own| own.by_checksum && !own.is_tried()) {
                untried.push(format!(
                    "most bits of the {} at {}, of {} bytes",
                    own.what,
                    own.body.start,
                    own.len()
                ));
            }
        }
        let len = self.source.len();
        if !self.tried.affords(len) {
            untried.push(format!(
                "verifying the {len} bytes of the file once more with a change"
            ));
        }
        if !self.compared.affords(len.min(sectors::MAX_COMPARED)) {
            untried.push("looking in the file for bytes that it has twice".to_owned());
        }
        Ok(match untried.is_empty() {
            true => String::new(),
            false => format!("not tried: {}", untried.join("; ")),
        })
    }
}
