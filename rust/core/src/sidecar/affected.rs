//! Which records are affected by what is restored or lost, and what of a look-up's hits remains.

use std::sync::Arc;

use super::trust::join;
use super::view::View;
use super::{Check, Trust, overlapping};
use crate::error::{Error, Result};
use crate::ledger::{Cause, Kind, RecordRun, Span};
use crate::record::Checked;
use crate::walk::{Hits, Reading, Unproven};

/// The bytes of records, or of units of records, that are affected. Touching units are one range.
#[derive(Default)]
pub(super) struct Affected {
    /// Those with bytes that are restored.
    pub(super) restored: Vec<Span>,
    /// Those that nothing proves.
    pub(super) unproven: Vec<Span>,
    /// The first bytes of the file that nothing proves, if there are any.
    pub(super) first_unproven: Option<Span>,
}

/// What a walk of the view finds where bytes are lost.
#[derive(Default)]
struct Lost {
    /// Sound units, which checksums may prove.
    units: Vec<Span>,
    /// The first bytes of anything else that is sound by itself.
    first_other: Option<Span>,
    /// The first byte that says where records are after it, or whose they are.
    header: Option<u64>,
}

impl Affected {
    /// Walks the view.
    pub(super) fn find(check: &Check) -> Result<Self> {
        if check.is_left_to_records() {
            return Ok(Self::default());
        }
        let trust = check.trust()?;
        let (mut restored, mut lost) = (Vec::new(), Lost::default());
        let view = Arc::new(View::settled(check)?);
        let checked = check.walk(view, trust.until(), |walk| {
            if walk.record_run().is_some_and(|run| !trust.meets(&run)) {
                return Ok(());
            }
            // A record that is emitted although something of it is missing has a cause.
            let is_whole = |span: &&Span| span.cause.is_none() || span.kind.is_unit();
            for span in walk.spans().iter().filter(is_whole) {
                let unit = Span {
                    kind: Kind::Corrupt,
                    cause: Some(Cause::ChecksumMismatch),
                    ..*span
                };
                if span.kind.is_unit() && trust.restores(span) {
                    join(&mut restored, unit);
                }
                lost.look(span, unit, overlapping(&trust.lost, span.start, span.end));
            }
            Ok(())
        })?;
        restored.sort_by_key(|span| span.start);
        let mut affected = Self {
            restored,
            ..Self::default()
        };
        if !check.is_left_to(checked) {
            affected.judge(check, lost, checked);
        }
        Ok(affected)
    }

    /// Whether any record of a run is affected.
    pub(super) fn meets(&self, run: &RecordRun) -> bool {
        let meets = |spans| !overlapping(spans, run.start, run.end).is_empty();
        meets(&self.restored) || meets(&self.unproven)
    }

    /// The first restored bytes from a record on, if its unit has any. They may be before it if the record is not the
    /// first of the unit.
    pub(super) fn restored_at<'a>(&self, trust: &'a Trust, position: u64) -> Option<&'a Span> {
        let unit = overlapping(&self.restored, position, position.saturating_add(1)).first()?;
        let after = overlapping(&trust.restored, position, unit.end).first();
        after.or_else(|| overlapping(&trust.restored, unit.start, unit.end).last())
    }

    /// The unproven bytes that a record is in.
    pub(super) fn unproven_at(&self, position: u64) -> Option<&Span> {
        overlapping(&self.unproven, position, position.saturating_add(1)).first()
    }

    /// Decides what of the lost bytes is proven all the same.
    fn judge(&mut self, check: &Check, lost: Lost, checked: Checked) {
        self.first_unproven = lost.first_other;
        if checked == Checked::Checksum {
            return;
        }
        let mut units = lost.units;
        units.sort_by_key(|span| span.start);
        // Where nothing proves which records are there, or what those before a record were, none is given from there on.
        let first = units.first().filter(|_| check.format.marks_damage);
        let from = lost.header.into_iter().chain(first.map(|unit| unit.start));
        if let Some(start) = from.min() {
            units.retain(|unit| unit.start < start);
            units.push(Span {
                start,
                end: u64::MAX,
                kind: Kind::Corrupt,
                cause: Some(Cause::ChecksumMismatch),
            });
        }
        let first_unit = units.first().copied();
        self.unproven = units;
        let firsts = self.first_unproven.into_iter().chain(first_unit);
        self.first_unproven = firsts.min_by_key(|span| span.start);
    }
}

impl Lost {
    fn look(&mut self, span: &Span, unit: Span, hit: &[Span]) {
        if span.kind.is_unit() {
            if !hit.is_empty() {
                join(&mut self.units, unit);
            }
        } else if let Some(first) = hit.first() {
            let first = Span {
                start: first.start.max(span.start),
                end: first.end.min(span.end),
                ..*first
            };
            if span.kind == Kind::Header && self.header.is_none_or(|own| first.start < own) {
                self.header = Some(first.start);
            }
            if self.first_other.is_none_or(|own| first.start < own.start) {
                self.first_other = Some(first);
            }
        }
    }
}

impl Check {
    /// What of a look-up's hits remains, as `judge_hits` gives it.
    pub(super) fn judged(&self, mut hits: Hits, reading: Reading) -> Result<Hits> {
        if !self.bands.is_damaged() {
            return Ok(hits);
        }
        let (trust, affected) = (self.trust()?, self.affected()?);
        let mut places = std::mem::take(&mut hits.places);
        {
            let sets: Vec<_> = hits.sets.iter().map(|set| set.rows()).collect();
            for place in &mut places {
                let found = place.and_then(|(set, row)| Some(sets.get(set)?.position(row)));
                let restored = found
                    .and_then(|at| affected.restored_at(trust, at))
                    .filter(|_| !reading.repairs);
                let unproven = found.and_then(|at| affected.unproven_at(at));
                let Some(left_out) = unproven.or(restored) else {
                    continue;
                };
                if reading.strict {
                    return Err(Error::Damage(self.damage(left_out)));
                }
                *place = None;
                hits.unproven = Some(Unproven::Damage);
            }
        }
        // Where records are lost, one that was not found may have been among them.
        if let Some(lost) = affected.unproven.first()
            && places.contains(&None)
        {
            if reading.strict {
                return Err(Error::Damage(self.damage(lost)));
            }
            hits.unproven = Some(Unproven::Damage);
        }
        hits.places = places;
        Ok(hits)
    }
}
