//! A walk of the file as it was covered, compared with what the sidecar says of its bytes.

use std::sync::Arc;

use super::trust::join;
use super::{Affected, Check, Trust, overlapping};
use crate::error::{Damage, Error, Result};
use crate::ledger::{Cause, Kind, RecordRun, Span};
use crate::own::Own;
use crate::record::{Checked, Rows};
use crate::walk::{Carry, Reading, SelectedRows, Step, UnprovenPolicy, Walk};

/// Ranges that are restored are `repaired`, and lost ones `corrupt` unless a checksum of the format proves the record.
/// Records that are not proven are left out; in strict reading they, and any such range, are the error.
pub(super) struct Watching {
    walk: Box<dyn Walk>,
    check: Arc<Check>,
    reading: Reading,
    /// Where an index at the file's beginning ends that is still to be judged.
    unjudged_front: u64,
    /// What was made of the last step, if anything of it is damaged.
    seen: Option<Seen>,
    /// How many records of the last step are restored, given or not.
    repaired: u64,
    /// A damaged range that the next step may extend.
    held: Option<Span>,
    /// How the walk ended, when the last range was emitted after it.
    ended: Option<Step>,
    /// What every further step raises.
    failed: Option<Box<Damage>>,
}

#[derive(Default)]
struct Seen {
    spans: Vec<Span>,
    /// The rows that are given, ascending.
    rows: Vec<usize>,
    /// The first range that strict reading stops at.
    failure: Option<Span>,
}

impl Watching {
    pub(super) fn new(walk: Box<dyn Walk>, check: Arc<Check>, reading: Reading) -> Self {
        let unjudged_front = match walk.checked() {
            Checked::Structure if reading.is_whole => walk.front_end(),
            _ => 0,
        };
        Self {
            walk,
            check,
            reading,
            unjudged_front,
            seen: None,
            repaired: 0,
            held: None,
            ended: None,
            failed: None,
        }
    }

    /// Goes on by this until there is something to give.
    fn after(&mut self, next: fn(&mut dyn Walk) -> Result<Step>) -> Result<Step> {
        self.seen = None;
        self.repaired = 0;
        self.fail()?;
        if let Some(step) = self.ended {
            return Ok(step);
        }
        loop {
            let step = match next(&mut *self.walk) {
                Ok(step) => step,
                Err(error) => return Err(self.first_of(error)?),
            };
            if step == Step::More {
                self.look()?;
                let is_empty = |seen: &Seen| seen.spans.is_empty() && seen.rows.is_empty();
                if self.seen.as_ref().is_some_and(is_empty) {
                    self.seen = None;
                    self.fail()?;
                    continue;
                }
                return Ok(Step::More);
            }
            self.end()?;
            let Some(last) = self.held.take() else {
                return Ok(step);
            };
            self.ended = (step == Step::Done).then_some(step);
            self.seen = Some(Seen {
                spans: vec![last],
                ..Seen::default()
            });
            return Ok(Step::More);
        }
    }

    /// Looks at the walk's last step.
    fn look(&mut self) -> Result<()> {
        let run = self.walk.record_run();
        let (check, bands) = (self.check.clone(), &self.check.bands);
        // The walk reads an index as it goes. Bytes of it that are lost count from the first record on.
        bands.judge(0..std::mem::take(&mut self.unjudged_front))?;
        if let Some(run) = &run {
            bands.judge(run.start..run.end)?;
        } else {
            // Also bytes that the walk did not have to read.
            let mut runs = self
                .walk
                .spans()
                .chunk_by(|span, next| span.end == next.start);
            runs.try_for_each(|run| match run {
                [first, .., last] => bands.judge(first.start..last.end),
                [only] => bands.judge(only.start..only.end),
                [] => Ok(()),
            })?;
        }
        if !bands.is_damaged() {
            return Ok(());
        }
        let (trust, affected) = (check.trust()?, check.affected()?);
        if let Some(run) = run
            && self.held.is_none()
            && !trust.meets(&run)
            && !affected.meets(&run)
        {
            return Ok(());
        }
        if self.stops_at_unproven() {
            let unproven =
                |span: &Span| !overlapping(&affected.unproven, span.start, span.end).is_empty();
            let mut units = self.walk.spans().iter().filter(|span| span.kind.is_unit());
            let unit = units.find(|unit| unproven(unit)).map(|unit| Span {
                kind: Kind::Corrupt,
                cause: Some(Cause::ChecksumMismatch),
                ..*unit
            });
            self.failed = unit.map(|unit| self.check.damage(&unit));
            self.fail()?;
        }
        let mut seen = self.rows_of(trust, affected);
        let mut spans = std::mem::take(&mut seen.spans);
        spans.extend(self.held.take());
        for span in self.walk.spans() {
            self.divide(span, trust, affected, &mut spans, &mut seen.failure);
        }
        if let Some(last) = spans.pop_if(|last| last.is_damage() && last.kind.joins()) {
            self.held = Some(last);
        }
        seen.spans = spans;
        if self.reading.strict {
            self.stop(&mut seen, affected)?;
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// Which rows are given.
    fn rows_of(&mut self, trust: &Trust, affected: &Affected) -> Seen {
        let mut seen = Seen::default();
        let rows = self.walk.rows();
        for row in 0..rows.len() {
            let at = rows.position(row);
            let (restored, unproven) = (affected.restored_at(trust, at), affected.unproven_at(at));
            let left_out = unproven.or(restored.filter(|_| !self.reading.repairs));
            self.repaired += u64::from(restored.is_some() && unproven.is_none());
            match left_out {
                None => seen.rows.push(row),
                // Strict reading gives the rows before the first that it would leave out.
                Some(_) if self.reading.strict => {
                    seen.failure = left_out.copied();
                    break;
                }
                Some(_) => {}
            }
        }
        seen
    }

    /// Adds the ranges that a range of the walk becomes.
    fn divide(
        &self,
        span: &Span,
        trust: &Trust,
        affected: &Affected,
        spans: &mut Vec<Span>,
        failure: &mut Option<Span>,
    ) {
        let (own, sound) = (self.walk.checked(), span.cause.is_none());
        let mut parts = vec![*span];
        let mut fail = |bad: &Span| {
            failure.get_or_insert(*bad);
        };
        if span.kind.is_unit() {
            if !overlapping(&affected.unproven, span.start, span.end).is_empty() {
                parts = vec![Span {
                    kind: Kind::Corrupt,
                    cause: Some(Cause::ChecksumMismatch),
                    ..*span
                }];
                parts.iter().for_each(&mut fail);
            }
        } else if sound && !self.check.is_left_to(own) {
            let lost = overlapping(&trust.lost, span.start, span.end);
            parts = overlaid(&parts, lost);
            lost.iter().for_each(&mut fail);
        }
        let restored = overlapping(&trust.restored, span.start, span.end);
        if !self.reading.repairs {
            restored.iter().for_each(&mut fail);
        }
        for part in overlaid(&parts, restored) {
            join(spans, part);
        }
    }

    /// Ends strict reading at what is damaged. Rows and ranges before it are given first.
    fn stop(&mut self, seen: &mut Seen, affected: &Affected) -> Result<()> {
        let Some(met) = seen.failure else {
            return Ok(());
        };
        self.failed = Some(match self.first_by_sidecar(affected)? {
            Some(first) if self.reading.is_whole => self.or_before(&first)?,
            _ => self.check.damage(&met),
        });
        let rows = self.walk.rows();
        seen.rows.truncate(
            seen.rows
                .partition_point(|row| rows.position(*row) < met.start),
        );
        drop(rows);
        self.held = None;
        seen.spans
            .retain(|span| span.end <= met.start && !span.is_damage());
        if seen.rows.is_empty() && seen.spans.is_empty() {
            return self.fail();
        }
        Ok(())
    }

    /// Whether a record that nothing proves is an error in any case.
    fn stops_at_unproven(&self) -> bool {
        match self.reading.unproven {
            UnprovenPolicy::All => false,
            UnprovenPolicy::SoundPrefix => true,
            UnprovenPolicy::OwnSidecar => self.check.bands.refused().is_some(),
        }
    }

    /// At the end of a walk that stops at what nothing proves: bytes that are lost are no unfinished record.
    fn end(&mut self) -> Result<()> {
        if self.stops_at_unproven()
            && self.walk.checked() == Checked::Structure
            && self.check.bands.is_damaged()
        {
            let lost = &self.check.trust()?.lost;
            let first = overlapping(lost, self.walk.offset(), u64::MAX).first();
            self.failed = first.map(|first| self.check.damage(first));
        }
        self.fail()
    }

    fn fail(&self) -> Result<()> {
        match &self.failed {
            Some(damage) => Err(Error::Damage(damage.clone())),
            None => Ok(()),
        }
    }

    /// The first bytes of the file that are an error by its sidecar.
    fn first_by_sidecar(&self, affected: &Affected) -> Result<Option<Span>> {
        let restored = &self.check.trust()?.restored;
        // What is restored of it comes first, if that is an error, and else is none.
        let unproven = affected.first_unproven.and_then(|unproven| {
            let restored = overlapping(restored, unproven.start, unproven.end);
            let mut parts = overlaid(&[unproven], restored).into_iter();
            let first = parts.find(|part| part.kind != Kind::Repaired);
            first.or(Some(unproven))
        });
        let restored = restored.first().copied().filter(|_| !self.reading.repairs);
        Ok(restored
            .into_iter()
            .chain(unproven)
            .min_by_key(|span| span.start))
    }

    /// The damage that a range is, or what the format finds before it: of an index it learns only at its end.
    fn or_before(&self, first: &Span) -> Result<Box<Damage>> {
        let own = self.check.damage(first);
        if self.walk.front_end() == 0 {
            return Ok(own);
        }
        match self.check.first_of_format()? {
            Some(before) if before.offset < own.offset => Ok(before),
            _ => Ok(own),
        }
    }

    /// Of two errors the one that is first in the file.
    fn first_of(&mut self, error: Error) -> Result<Error> {
        let Error::Damage(damage) = &error else {
            return Ok(error);
        };
        if !self.reading.is_whole || !self.check.bands.is_damaged() {
            return Ok(error);
        }
        let first = self.first_by_sidecar(self.check.affected()?)?;
        match first.filter(|first| first.start <= damage.offset) {
            Some(first) => {
                let damage = self.check.damage(&first);
                self.failed = Some(damage.clone());
                Ok(Error::Damage(damage))
            }
            None => Ok(error),
        }
    }
}

/// The parts of adjacent ranges, with others in their places.
fn overlaid(parts: &[Span], with: &[Span]) -> Vec<Span> {
    let mut spans = Vec::with_capacity(parts.len());
    for part in parts {
        let mut at = part.start;
        for own in overlapping(with, part.start, part.end) {
            let (start, end) = (own.start.max(part.start), own.end.min(part.end));
            spans.push(Span {
                start: at,
                end: start,
                ..*part
            });
            spans.push(Span { start, end, ..*own });
            at = end;
        }
        spans.push(Span { start: at, ..*part });
    }
    spans.retain(|span| span.start < span.end);
    spans
}

impl Own for Watching {}

impl Walk for Watching {
    fn step(&mut self) -> Result<Step> {
        self.after(|walk| walk.step())
    }

    fn settle(&mut self) -> Result<Step> {
        self.after(|walk| walk.settle())
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        let rows = self.walk.rows();
        match &self.seen {
            Some(seen) if seen.rows.len() < rows.len() => Box::new(SelectedRows {
                rows,
                selected: &seen.rows,
            }),
            _ => rows,
        }
    }

    fn spans(&self) -> &[Span] {
        match &self.seen {
            Some(seen) => &seen.spans,
            None => self.walk.spans(),
        }
    }

    fn record_run(&self) -> Option<RecordRun> {
        match &self.seen {
            Some(_) => None,
            None => self.walk.record_run(),
        }
    }

    fn repaired(&self) -> u64 {
        self.repaired
    }

    fn front_end(&self) -> u64 {
        self.walk.front_end()
    }

    fn checked(&self) -> Checked {
        self.check.checked(self.walk.checked())
    }

    fn offset(&self) -> u64 {
        self.walk.offset()
    }

    fn carry(&self) -> Option<Carry> {
        self.walk.carry()
    }

    fn suspects_key(&self) -> bool {
        self.walk.suspects_key()
    }
}
