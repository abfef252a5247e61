//! Changes that undo damage, verified on a view of the file: how much they bring back, and which ranges they explain.

use std::ops::Range;
use std::sync::Arc;

use super::Case;
use super::reason::Explanation;
use crate::engine::Format;
use crate::error::{Error, Result};
use crate::ledger::Span;
use crate::source::{Change, Fill, Source, View};
use crate::verbs::diagnosis::{Certainty, Diagnosis, Reason, Repair};
use crate::verbs::{Report, verify};
use crate::walk::Options;

/// The largest file, in bytes, that is verified with all proposals applied. That takes another pass.
const MAX_CONFIRMED_BYTES: u64 = 1 << 30;

/// The file with what is explained so far undone.
pub(super) struct Undone {
    pub(super) records: u64,
    /// The ranges of the file that stay damaged.
    pub(super) left: Vec<Range<u64>>,
    pub(super) changes: Vec<Change>,
    /// Whether nothing of it is damaged, and nothing is lost.
    pub(super) is_sound: bool,
}

impl Case<'_> {
    /// The report on another source as one of this format. `None` if it is refused, or too long for what may still be tried.
    pub(super) fn try_source(&mut self, source: Arc<dyn Source>) -> Result<Option<Report>> {
        self.try_as(source, self.format)
    }

    pub(super) fn try_as(
        &mut self,
        source: Arc<dyn Source>,
        format: &'static Format,
    ) -> Result<Option<Report>> {
        if !self.tried.afford(source.len()) {
            return Ok(None);
        }
        match verify(source, &self.options.clone().format(format), |_| Ok(())) {
            Ok(report) => Ok(Some(report)),
            Err(
                Error::Format { .. } | Error::Usage(_) | Error::Limit { .. } | Error::Damage(_),
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Of these explanations the one with whose changes most records are verified, if these are more than without, or the file is
    /// sound. It is undone from now on.
    pub(super) fn best(&mut self, proposed: Vec<Explanation>) -> Result<Option<Explanation>> {
        let mut best: Option<(Explanation, Undone)> = None;
        let mut most = (self.undone.records, false);
        for mut explanation in proposed {
            self.options.poll()?;
            // What is explained otherwise in the same place gives way, if this is worth more.
            let meets = |(own, _): &&Change| {
                let mut new = explanation.changes.iter();
                new.any(|(at, _)| own.start < at.end && at.start < own.end)
            };
            let old = self.undone.changes.iter().filter(|own| !meets(own));
            let mut changes: Vec<_> = old.cloned().collect();
            let is_alone = changes.is_empty();
            changes.extend(explanation.changes.iter().cloned());
            let view = Arc::new(View::new(self.source.clone(), changes.clone()));
            let Some(report) = self.try_source(view.clone())? else {
                continue;
            };
            // With zeros in their place, bytes stay lost.
            let is_lost = |(_, fill): &Change| matches!(fill, Fill::Zeros(1..));
            let is_sound = report.is_sound() && !changes.iter().any(is_lost);
            let worth = (report.summary.records, is_sound);
            if worth <= most {
                continue;
            }
            let left = report.summary.damage.iter();
            let left = left.map(|own| view.origin(own.start)..view.origin(own.end));
            let left: Vec<_> = left.collect();
            // What is sound as it is stays so.
            let is_old = |own: &Range<u64>| {
                let mut old = self.report.summary.damage.iter();
                let mut places = explanation.changes.iter();
                old.any(|old| old.start <= own.end && own.start <= old.end)
                    || places.any(|(at, _)| at.start <= own.end && own.start <= at.end)
            };
            if !left.iter().all(is_old) {
                continue;
            }
            let undone = Undone {
                records: report.summary.records,
                left,
                changes,
                is_sound,
            };
            explanation.regained = report.summary.records - self.undone.records;
            explanation.is_sound = is_sound && is_alone;
            // What would look the same speaks against it, however sound the file is then.
            if explanation.is_sound && explanation.against.is_empty() {
                explanation.certainty = Some(Certainty::Proven);
            }
            best = Some((explanation, undone));
            most = worth;
        }
        Ok(best.map(|(explanation, undone)| {
            self.undone = undone;
            explanation
        }))
    }

    /// The damaged ranges that an explanation of one explains: those within the place where it happened, those that are sound
    /// with it undone, and what an index says of bytes that are missing.
    pub(super) fn ranges(&self, of: &Span, explanation: &Explanation) -> Vec<Span> {
        let place = explanation.place(of);
        let touches = |range: &Range<u64>| range.start <= place.end && place.start <= range.end;
        let left = self.undone.left.iter().filter(|own| !touches(own));
        let left: Vec<_> = left.cloned().collect();
        let is_undone = !explanation.changes.is_empty();
        let front = self.front();
        // An index that is damaged, or has more than the file, says wrong things of what is whole.
        let is_in_front = place.start < front || of.start == 0;
        let is_of_index =
            explanation.missing.is_some() || is_in_front && explanation.repairs.is_empty();
        let is_explained = |own: &Span| {
            let is_there = own.start < place.end && place.start < own.end;
            is_there
                || is_undone && !is_left_of(&left, own)
                || is_of_index && self.is_by_index(own)
                || explanation.reason == Reason::TextConversion
        };
        let all = self.report.summary.damage.iter();
        let all = all.filter(|own| *own == of || is_explained(own));
        all.copied().collect()
    }
}

/// Whether some of a range stays damaged.
pub(super) fn is_left_of(left: &[Range<u64>], own: &Span) -> bool {
    left.iter()
        .any(|left| left.start < own.end && own.start < left.end)
}

/// Verifies the file with all proposals applied; `records` is how many were sound before. Undiagnosed ranges that are sound then are
/// consequences of the others.
pub(super) fn confirm(
    source: &Arc<dyn Source>,
    options: &Options,
    records: u64,
    found: &mut [Diagnosis],
) -> Result<()> {
    let repairs = found.iter().flat_map(|diagnosis| &diagnosis.repairs);
    let flipped = |own: &Repair| (own.offset..own.offset + 1, Fill::Byte(own.new));
    let patches: Vec<_> = repairs.map(flipped).collect();
    if patches.is_empty() || source.len() > MAX_CONFIRMED_BYTES {
        return Ok(());
    }
    let count = patches.len();
    let all = if count > 1 {
        "with all proposals"
    } else {
        "then"
    };
    let patched = Arc::new(View::new(source.clone(), patches));
    let report = verify(patched, options, |_| Ok(()))?;
    for diagnosis in found {
        // Whose they are is known only where all bits are those of one range.
        if diagnosis.repairs.len() == count {
            diagnosis.regained = report.summary.records.saturating_sub(records);
        }
        let Span { start, end, .. } = diagnosis.span;
        let mut left = report.summary.damage.iter();
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
                diagnosis.is_sound = diagnosis.repairs.len() == count;
            }
            (Reason::Unknown, None) if !report.summary.truncated => {
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
