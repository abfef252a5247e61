//! What may have happened to one damaged range: hypotheses in the order in which they are tried. First what its cause and the file's
//! length say and what checksums prove, then what is known of the ranges around it, then the look of its bytes, then its kind.

use std::ops::Range;
use std::sync::Arc;

use super::excerpt::Excerpt;
use super::reason::{self, Explanation};
use super::undone::is_left_of;
use super::{Case, content, flips, places, sectors, shift, stale};
use crate::error::Result;
use crate::ledger::{Cause, Kind, Span};
use crate::record::Checked;
use crate::source::{Fill, Source, View};
use crate::verbs::diagnosis::{Certainty, Diagnosis, Missing, Reason};

/// How many ranges around a sector that hides others are looked at for what belongs there.
const MAX_NEAR: usize = 4;

/// The fewest bytes of a record or chunk that a checksum proves: those of an empty TFRecord.
const MIN_UNIT_BYTES: u64 = 16;

/// A damaged range whose cause is looked for.
pub(super) struct Damaged<'a> {
    span: &'a Span,
    /// No sound record follows.
    is_last: bool,
    /// The diagnoses of other ranges.
    found: &'a mut [Diagnosis],
    /// What may be inserted or missing before a unit that is not where it belongs.
    shifted: Option<Explanation>,
    excerpt: Option<Excerpt>,
}

impl<'a> Damaged<'a> {
    pub(super) const fn new(span: &'a Span, is_last: bool, found: &'a mut [Diagnosis]) -> Self {
        Self {
            span,
            is_last,
            found,
            shifted: None,
            excerpt: None,
        }
    }

    /// Its bytes and those around it, read once.
    fn excerpt(&mut self, source: &dyn Source) -> Result<&Excerpt> {
        let excerpt = match self.excerpt.take() {
            Some(excerpt) => excerpt,
            None => Excerpt::around(source, self.span)?,
        };
        Ok(self.excerpt.insert(excerpt))
    }
}

/// Explains a range as one thing that may have happened to it. `None` if that explains nothing.
type Hypothesis = fn(&mut Case<'_>, &mut Damaged<'_>) -> Result<Option<Explanation>>;

pub(super) const HYPOTHESES: &[Hypothesis] = &[
    |case, own| Ok(reason::of_cause(own.span, case.candidates.is_some())),
    |case, own| {
        let by = "its log says that it was on the disk";
        Ok(shift::short(case.source.len(), own.span.end, by))
    },
    |case, own| case.by_bits(own.span),
    retried,
    |case, own| case.by_place(own),
    proven,
    |_, own| Ok(own.shifted.take().map(Explanation::unweighed)),
    |case, own| Ok(reason::beside(own.found, own.span, case.adjacent(own.span))),
    cut_off,
    restored_shorter,
    zeroed_tail,
    |case, own| {
        let (source, span) = (&**case.source, own.span);
        sectors::constant(source, own.excerpt(source)?, span)
    },
    verified,
    |case, own| {
        let span = own.span;
        Ok(content::other_bytes(own.excerpt(&**case.source)?, span))
    },
    |case, own| case.duplicated(own.span),
    torn,
    too_short,
    foreign,
    cut_out,
    missing,
    |case, own| case.changed(own.span),
];

/// A write that was cut short and made again.
fn retried(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    if !case.format.is_appended_to() || own.is_last {
        return Ok(None);
    }
    let Some(found) = shift::retried(&**case.source, own.span)? else {
        return Ok(None);
    };
    let best = case.best(vec![found.clone()])?;
    Ok(best.or(Some(found.unweighed())))
}

/// What a checksum proves of one record, which may also be another's beginning or end. What happened, the file shows.
fn proven(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    let proven = case.by_proof(own.span)?;
    let Some(found) = proven.first().cloned() else {
        return Ok(None);
    };
    if found.changes.is_empty() {
        return Ok(Some(found));
    }
    let is_weighed = case.tried.affords(case.source.len());
    let best = case.best(proven)?;
    let untried = "not tried: verifying the file with it undone";
    Ok(best.or_else(|| (!is_weighed).then(|| found.unweighed().but(untried))))
}

/// A file that ends before what its index has.
fn cut_off(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    let len = case.source.len();
    let beyond = case.stated.filter(|own| own.end > len);
    let stated = beyond.filter(|_| case.is_cut_off(own.span));
    let records = case.report.summary.records;
    Ok(stated.map(|stated| shift::known_by_index(len, stated, records)))
}

/// A file that is shorter than its sidecar covers.
fn restored_shorter(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    let last = case.adjacent(own.span).last();
    let last = last.filter(|_| case.stored < case.source.len());
    let by = "its parity sidecar covers it";
    Ok(last.and_then(|last| shift::short(case.stored, last.end, by)))
}

/// Zeros to the end of a file in place of what was written.
fn zeroed_tail(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    // Before a log's mark all was on the disk.
    let bound = case.source.bound();
    let is_promised = bound.is_some_and(|bound| case.data_end < bound.offset);
    let was_written = !case.format.is_appended_to() || is_promised;
    let len = case.source.len();
    Ok(sectors::zeroed_tail(
        len,
        case.data_end,
        own.span,
        was_written,
    ))
}

/// Records that are whole within the range: older ones, others, or the same once more.
fn verified(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    if !case.reads_alone() {
        return Ok(None);
    }
    let span = own.span;
    let excerpt = own.excerpt(&**case.source)?;
    let Some(found) = stale::explain(case.options, excerpt, span, &mut case.searched)? else {
        return Ok(None);
    };
    if let Some(copied) = case.duplicated(span)? {
        return Ok(Some(copied));
    }
    let is_stale = found.reason == Reason::StaleData;
    let whole = match is_stale && own.is_last && case.format.is_appended_to() {
        true => places::concatenated(case, span)?,
        false => None,
    };
    Ok(whole.or(Some(found)))
}

/// A torn tail by where the file ends, if that is within a unit. Of a file that is appended to only what its writer would remove is an
/// interrupted write.
fn torn(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    let mut all = case.report.summary.damage.iter();
    let is_last_damage = all.all(|other| other.start <= own.span.start);
    if own.span.kind != Kind::TornTail || !is_last_damage {
        return Ok(None);
    }
    if let Some(unfinished) = case.format.unfinished {
        let follows = case.report.summary.records > 0;
        if !(follows && unfinished(&**case.source, case.options, own.span)?) {
            return Ok(None);
        }
    }
    let span = own.span;
    let excerpt = own.excerpt(&**case.source)?;
    let found = shift::torn(case.format, case.source.len(), excerpt, span);
    // Of a file that grows, its index may not know the last ones.
    let stated = case.stated.filter(|_| !case.format.is_appended_to());
    let all = stated.and_then(|stated| stated.records);
    let has_all = all == Some(case.report.summary.records);
    let none = Missing {
        bytes: 0,
        records: Some(0),
    };
    Ok(Some(Explanation {
        missing: has_all.then_some(none),
        ..found
    }))
}

/// Bytes that are too few for any unit, and so in the place of none.
fn too_short(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    let span = own.span;
    if !case.reads_alone() || span.len() >= MIN_UNIT_BYTES {
        return Ok(None);
    }
    let evidence = format!(
        "{} from {} on: no unit is as short, and what is beside is sound without",
        shift::bytes_of(span.len()),
        span.start
    );
    let against = "what is left of a record that is gone would look the same";
    let found = Explanation::new(Reason::InsertedBytes, Certainty::Likely, evidence);
    let found = found.but(against).without(span.start..span.end);
    let found = Explanation {
        missing: Some(Missing {
            bytes: 0,
            records: Some(0),
        }),
        ..found
    };
    Ok(case.best(vec![found.clone()])?.or(Some(found)))
}

/// A sector of unknown bytes.
fn foreign(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    if case.report.summary.records == 0 {
        return Ok(None);
    }
    Ok(sectors::foreign(case.adjacent(own.span), case.source.len()))
}

/// A unit of which bytes at its beginning are missing: with others put in, its lengths lead to the next sound one.
fn cut_out(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    let span = own.span;
    let work = span.len().saturating_mul(shift::MAX_CUT_OUT);
    // Where nothing follows, no length says that bytes are missing.
    if !case.reads_alone()
        || own.is_last
        || span.kind != Kind::Corrupt
        || span.len() > sectors::LARGE
        || !case.searched.afford(work)
    {
        return Ok(None);
    }
    for missing in 1..=shift::MAX_CUT_OUT {
        let change = (span.start..span.start, Fill::Zeros(missing));
        let view: Arc<dyn Source> = Arc::new(View::new(case.source.clone(), vec![change]));
        let Some(mut candidates) = (case.format.candidates)(&view, case.options)? else {
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

/// A unit that is not as long as it states.
fn missing(case: &mut Case<'_>, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
    match &mut case.candidates {
        Some(candidates) if case.format.is_appended_to() && !own.is_last => {
            shift::missing(&mut **candidates, own.span)
        }
        _ => Ok(None),
    }
}

impl Case<'_> {
    /// Whether any section of the file can be read as a file: what is appended to consists of records alone.
    fn reads_alone(&self) -> bool {
        self.candidates.is_some() && self.format.is_appended_to()
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
    fn by_place(&mut self, own: &mut Damaged<'_>) -> Result<Option<Explanation>> {
        let span = own.span;
        own.shifted = self.by_index(span)?;
        if !is_left_of(&self.undone.left, span) {
            return Ok(None);
        }
        // Older records at the end of a file that is appended to may be another file's, or just older.
        if !self.format.is_appended_to()
            && let Some(found) = places::concatenated(self, span)?
        {
            return Ok(Some(found));
        }
        let mut proposals = places::added(self, span)?;
        // What is there twice, too much or missing moves all that follows, of which the longest range is not always the first.
        let front = self.front();
        let is_open = |own: &&Span| {
            let is_of_data = own.start >= front && !self.is_by_index(own);
            is_of_data && is_left_of(&self.undone.left, own)
        };
        let near = self.adjacent(span).first().filter(is_open);
        let all = &self.report.summary.damage;
        let firsts = near.into_iter().chain(all.iter().find(is_open));
        let mut firsts: Vec<_> = firsts.filter(|own| *own != span).copied().collect();
        firsts.dedup();
        for first in firsts {
            proposals.extend(places::repeated(self, &first)?);
            proposals.extend(self.by_index(&first)?);
        }
        proposals.extend(places::repeated(self, span)?);
        proposals.extend(own.shifted.clone());
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
                places::with_origin(self, found).map(Some)
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

    /// A diagnosis by where a unit belongs, and where it is.
    fn by_index(&mut self, span: &Span) -> Result<Option<Explanation>> {
        let follows = self.adjacent(span).first() != Some(span);
        let Some(candidates) = &mut self.candidates else {
            return Ok(None);
        };
        let len = self.source.len();
        for misplaced in candidates.misplaced(span, follows)? {
            let found = shift::misplaced(misplaced, span, len, &mut self.budget)?;
            if found.is_some() {
                return Ok(found);
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

    pub(super) fn unexplained(&mut self, span: &Span) -> Result<Explanation> {
        let untried = self.untried(span)?;
        let evidence = if self.report.summary.checked == Checked::Structure {
            "the file has no checksums that could prove what the bytes were"
        } else if self.budget.is_spent() {
            "the damage is so dense that the search for its cause was ended"
        } else if !untried.is_empty() {
            "nothing that was tried explains it"
        } else {
            "nothing that was tried explains it: single flipped bits, sectors that are zeroed, there twice or moved by up to 128 KiB, and up to 4 KiB inserted"
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
