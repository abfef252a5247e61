//! Reading by a parity sidecar: what a walk or a look-up finds in the file as it was covered is compared with what differs by now.

use std::ops::Range;
use std::sync::Arc;

use super::layers::{Layered, WalkLayer};
use super::{Begin, Hits, Opening, Options, SelectedRows, Step, Unproven, UnprovenPolicy, Walk};
use crate::bug::OrBug;
use crate::error::{Damage, Error, Finding, Result};
use crate::ledger::{Cause, Kind, RecordRun, Span, overlapping};
use crate::parity::{Differences, ProtectedSource, Refused};
use crate::record::{Checked, Rows};

/// How a file is read that is compared with its sidecar, and what that says of records.
pub(crate) struct Comparison {
    protected: Arc<ProtectedSource>,
    options: Options,
    /// What becomes of records that nothing proves, if reading is not strict.
    unproven: UnprovenPolicy,
    /// Whether the walk goes through the whole file, so that damage before what it met counts.
    is_whole: bool,
}

impl Comparison {
    pub(crate) fn new(
        protected: Arc<ProtectedSource>,
        options: &Options,
        opening: &Opening<'_>,
    ) -> Self {
        Self {
            protected,
            options: options.clone(),
            unproven: opening.unproven,
            is_whole: matches!(opening.begin, Begin::Beginning) && !options.prunes(),
        }
    }

    pub(crate) fn of_lookup(protected: Arc<ProtectedSource>, options: &Options) -> Self {
        Self {
            is_whole: false,
            ..Self::new(protected, options, &Opening::default())
        }
    }

    /// Looks at a range, once all damage before it was met. `None` if nothing of it is to be told.
    fn look(&self, checked: Checked, range: &Range<u64>) -> Result<Option<Differences>> {
        let mut found = self.protected.differences(range, || self.options.poll())?;
        let is_foreign = self.protected.refused() == Some(Refused::AnotherFile);
        if !self.protected.is_damaged() || is_foreign && checked == Checked::Checksum {
            return Ok(None);
        }
        let is_empty = found.restored.is_empty() && found.lost.is_empty();
        found.first_lost = match checked {
            Checked::Checksum => None,
            _ => self.protected.first_lost(|| self.options.poll())?,
        };
        let is_past_lost = found.first_lost.is_some_and(|first| first < range.end);
        Ok((!is_empty || is_past_lost).then_some(found))
    }

    /// The first range that a strict reading stops at.
    fn failure(&self, found: &Differences) -> Option<Span> {
        let restored = found.restored.first().filter(|_| !self.options.repair);
        let unproven = found
            .lost
            .iter()
            .find(|span| found.unproven(span.start, span.end).is_some());
        let first = restored.into_iter().chain(unproven);
        first.min_by_key(|span| span.start).copied()
    }

    /// The error for a range that is not as it was covered.
    fn damage(&self, span: &Span) -> Box<Damage> {
        let Span {
            start, end, cause, ..
        } = *span;
        let (expected, actual) = match (span.kind, self.protected.known_first_lost()) {
            (Kind::Repaired, _) => (
                format!("the bytes that the parity sidecar has from {start} to {end}"),
                "others".to_owned(),
            ),
            (_, Some(first)) if first < start => (
                "records up to here that the parity sidecar proves or restores".to_owned(),
                format!("that blocks are lost from offset {first} on"),
            ),
            _ => (
                "a block that the parity sidecar proves or restores".to_owned(),
                "one that it does not".to_owned(),
            ),
        };
        let finding = Finding::Parity {
            cause: cause.or_bug_value("a cause of damage", Cause::ChecksumMismatch),
            expected,
            actual,
        };
        Box::new(Damage::new(self.protected.file().path(), start, finding))
    }
}

impl Differences {
    fn restored_in(&self, start: u64, end: u64) -> &[Span] {
        overlapping(&self.restored, Span::range, &(start..end))
    }

    /// What a record or unit without checksums becomes that nothing proves.
    fn unproven(&self, start: u64, end: u64) -> Option<Span> {
        self.first_lost.filter(|first| *first < end).map(|_| Span {
            start,
            end,
            kind: Kind::Corrupt,
            cause: Some(Cause::ChecksumMismatch),
        })
    }
}

/// A walk of the file as it was covered. Ranges that are restored are `repaired`, and lost ones `corrupt` unless a checksum of the format
/// proves them. Records that are not proven are left out; in strict reading they, and any such range, are the error.
pub(crate) struct SidecarWalk {
    walk: Box<dyn Walk>,
    comparison: Comparison,
    /// Whether the bytes before the first record were looked at.
    has_begun: bool,
    /// What was made of the last step, if anything of it is damaged.
    seen: Option<Seen>,
    /// How many records of the last step are restored, given or not.
    repaired: u64,
    /// A damaged range that the next step may extend.
    held: Option<Span>,
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

impl SidecarWalk {
    /// Wraps a walk of a source, if that is read by its sidecar.
    pub(crate) fn around(walk: Box<dyn Walk>, comparison: Option<Comparison>) -> Box<dyn Walk> {
        let Some(comparison) = comparison else {
            return walk;
        };
        Box::new(Layered(Self {
            walk,
            comparison,
            has_begun: false,
            seen: None,
            repaired: 0,
            held: None,
            failed: None,
        }))
    }

    /// The walk reads an index as it goes. Bytes of it that are lost count from the first record on, if it has no checksums.
    fn begin(&mut self) -> Result<()> {
        let (front, checked) = (0..self.walk.front_end(), self.walk.checked());
        if !std::mem::replace(&mut self.has_begun, true) && checked == Checked::Structure {
            self.comparison.look(checked, &front)?;
        }
        Ok(())
    }

    /// Looks at the walk's last step.
    fn look(&mut self) -> Result<()> {
        let checked = self.walk.checked();
        // What is held back goes on, or comes before what is given.
        let (mut found, mut differs) = (Differences::default(), self.held.is_some());
        for range in self.ranges() {
            if let Some(more) = self.comparison.look(checked, &range)? {
                found.restored.extend(more.restored);
                found.lost.extend(more.lost);
                found.first_lost = more.first_lost;
                differs = true;
            }
        }
        if !differs {
            return Ok(());
        }
        for spans in [&mut found.restored, &mut found.lost] {
            spans.sort_by_key(|span| (span.start, span.end));
            spans.dedup();
        }
        self.judge(&found)
    }

    /// The ranges of the file that the last step is about, also those that the walk did not have to read.
    fn ranges(&self) -> Vec<Range<u64>> {
        let rows = self.walk.rows();
        let last = rows.len().checked_sub(1);
        let of_rows = last.map(|last| rows.position(0)..rows.end(last));
        let run = self.walk.record_run();
        let mut ranges: Vec<_> = run.map(|run| run.start..run.end).into_iter().collect();
        if run.is_none() {
            let spans = self.walk.spans();
            let runs = spans.chunk_by(|span, next| span.end == next.start);
            ranges.extend(runs.filter_map(|run| Some(run.first()?.start..run.last()?.end)));
        }
        let is_within = |rows: &Range<u64>, outer: &Range<u64>| {
            outer.start <= rows.start && rows.end <= outer.end
        };
        let of_rows = of_rows.filter(|range| !ranges.iter().any(|outer| is_within(range, outer)));
        ranges.extend(of_rows);
        ranges
    }

    /// Decides what becomes of the last step, of which this differs.
    fn judge(&mut self, found: &Differences) -> Result<()> {
        if self.stops_at_unproven() {
            let mut units = self.walk.spans().iter().filter(|span| span.kind.is_unit());
            let unproven = units.find_map(|unit| found.unproven(unit.start, unit.end));
            self.failed = unproven.map(|unit| self.comparison.damage(&unit));
            self.fail()?;
        }
        let mut seen = self.rows_of(found);
        let mut spans: Vec<_> = self.held.take().into_iter().collect();
        for span in self.walk.spans() {
            self.divide(span, found, &mut spans, &mut seen.failure);
        }
        if let Some(last) = spans.pop_if(|last| last.is_damage() && last.kind.joins()) {
            self.held = Some(last);
        }
        seen.spans = spans;
        if self.comparison.options.strict {
            self.stop(&mut seen)?;
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// Which rows are given.
    fn rows_of(&mut self, found: &Differences) -> Seen {
        let (mut seen, options) = (Seen::default(), &self.comparison.options);
        let rows = self.walk.rows();
        for row in 0..rows.len() {
            let (start, end) = (rows.position(row), rows.end(row));
            let restored = found.restored_in(start, end).first().copied();
            let unproven = found.unproven(start, end);
            self.repaired += u64::from(restored.is_some() && unproven.is_none());
            let left_out = unproven.or(restored.filter(|_| !options.repair));
            match left_out {
                None => seen.rows.push(row),
                // Strict reading gives the rows before the first that it would leave out.
                Some(_) if options.strict => {
                    seen.failure = left_out;
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
        found: &Differences,
        spans: &mut Vec<Span>,
        failure: &mut Option<Span>,
    ) {
        let mut parts = vec![*span];
        let mut fail = |bad: &Span| {
            if failure.is_none_or(|met| bad.start < met.start) {
                *failure = Some(*bad);
            }
        };
        let unproven = found.unproven(span.start, span.end);
        if let Some(unit) = unproven.filter(|_| span.kind.is_unit()) {
            fail(&unit);
            parts = vec![unit];
        } else if span.cause.is_none() && !self.proves(span.kind) {
            let lost = overlapping(&found.lost, Span::range, &span.range());
            parts = overlaid(&parts, lost);
            lost.iter().for_each(&mut fail);
        }
        let restored = found.restored_in(span.start, span.end);
        if !self.comparison.options.repair {
            restored.iter().for_each(&mut fail);
        }
        for part in overlaid(&parts, restored) {
            join(spans, part);
        }
    }

    /// Whether a sound range of this kind proves its bytes.
    fn proves(&self, kind: Kind) -> bool {
        self.walk.checked() == Checked::Checksum && !matches!(kind, Kind::Unused | Kind::Unproven)
    }

    /// Ends strict reading at what is damaged. Rows and ranges before it are given first.
    fn stop(&mut self, seen: &mut Seen) -> Result<()> {
        let Some(met) = seen.failure else {
            return Ok(());
        };
        // The ranges of an index come last.
        let before = self.failure_in(0..self.walk.front_end().min(met.start))?;
        self.failed = Some(self.comparison.damage(&before.unwrap_or(met)));
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
        match self.comparison.unproven {
            UnprovenPolicy::All => false,
            UnprovenPolicy::SoundPrefix => true,
            UnprovenPolicy::OwnSidecar => self.comparison.protected.refused().is_some(),
        }
    }

    /// At the end of a walk that stops at what nothing proves: bytes that are lost are no unfinished record.
    fn end(&mut self) -> Result<()> {
        if self.stops_at_unproven() && self.walk.checked() == Checked::Structure {
            let rest = self.walk.offset()..u64::MAX;
            let found = self.comparison.look(Checked::Structure, &rest)?;
            let first = found.as_ref().and_then(|found| found.lost.first());
            self.failed = first.map(|first| self.comparison.damage(first));
        }
        self.fail()
    }

    fn fail(&self) -> Result<()> {
        match &self.failed {
            Some(damage) => Err(Error::Damage(damage.clone())),
            None => Ok(()),
        }
    }

    /// The first range in this one that strict reading of a whole file stops at.
    fn failure_in(&mut self, range: Range<u64>) -> Result<Option<Span>> {
        if !self.comparison.is_whole || range.is_empty() {
            return Ok(None);
        }
        let found = self.comparison.look(self.walk.checked(), &range)?;
        Ok(found.and_then(|found| self.comparison.failure(&found)))
    }

    /// Of two errors the one that is first in the file: that of the walk, or what differs before it.
    fn first_of(&mut self, error: Error) -> Result<Error> {
        let Error::Damage(damage) = &error else {
            return Ok(error);
        };
        match self.failure_in(0..damage.offset.saturating_add(1))? {
            Some(first) => Ok(Error::Damage(self.comparison.damage(&first))),
            None => Ok(error),
        }
    }
}

/// The parts of adjacent ranges, with others in their places.
fn overlaid(parts: &[Span], with: &[Span]) -> Vec<Span> {
    let mut spans = Vec::with_capacity(parts.len());
    for part in parts {
        let mut at = part.start;
        for new in overlapping(with, Span::range, &part.range()) {
            let (start, end) = (new.start.max(part.start), new.end.min(part.end));
            spans.push(Span {
                start: at,
                end: start,
                ..*part
            });
            spans.push(Span { start, end, ..*new });
            at = end;
        }
        spans.push(Span { start: at, ..*part });
    }
    spans.retain(|span| span.start < span.end);
    spans
}

/// Adds a range. Touching ranges of the same kind and cause become one.
fn join(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.goes_on_in(&span) => last.end = span.end,
        _ => spans.push(span),
    }
}

impl WalkLayer for SidecarWalk {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        self.seen = None;
        self.repaired = 0;
        self.fail()?;
        loop {
            let step = match self.walk.step() {
                Ok(step) => step,
                Err(error) => return Err(self.first_of(error)?),
            };
            if step == Step::More {
                self.begin()?;
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
            self.seen = Some(Seen {
                spans: vec![last],
                ..Seen::default()
            });
            return Ok(Step::More);
        }
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

    fn checked(&self) -> Checked {
        match self.walk.checked() {
            Checked::Structure if self.comparison.protected.has_blocks() => Checked::Parity,
            checked => checked,
        }
    }
}

/// What of the records that a look-up found is given. Those that are not proven are not found; in strict reading they are the error.
/// `checked` says how records are checked, once anything of the file is damaged.
pub(crate) fn judge_hits(
    protected: Arc<ProtectedSource>,
    options: &Options,
    mut hits: Hits,
    checked: impl FnOnce() -> Result<Checked>,
) -> Result<Hits> {
    let sets: Vec<_> = hits.sets.iter().map(|set| set.rows()).collect();
    let range = |(set, row): (usize, usize)| {
        let rows = sets.get(set)?;
        Some(rows.position(row)..rows.end(row))
    };
    let ranges: Vec<_> = hits.places.iter().map(|hit| hit.and_then(range)).collect();
    drop(sets);
    for range in ranges.iter().flatten() {
        protected.differences(range, || options.poll())?;
    }
    if !protected.is_damaged() {
        return Ok(hits);
    }
    let checked = checked()?;
    let comparison = Comparison::of_lookup(protected, options);
    for (place, range) in hits.places.iter_mut().zip(ranges) {
        let looked = range.clone().unwrap_or(u64::MAX..u64::MAX);
        let Some(found) = comparison.look(checked, &looked)? else {
            continue;
        };
        // Where records are lost, one that was not found may have been among them.
        let at_lost = || found.first_lost.map(|first| first..first + 1);
        let Some(Range { start, end }) = range.or_else(at_lost) else {
            continue;
        };
        let restored = found.restored_in(start, end).first().copied();
        let restored = restored.filter(|_| !options.repair);
        let Some(span) = found.unproven(start, end).or(restored) else {
            continue;
        };
        if options.strict {
            return Err(Error::Damage(comparison.damage(&span)));
        }
        (*place, hits.unproven) = (None, Some(Unproven::Damage));
    }
    Ok(hits)
}
