//! What is restored and what is lost, with the causes that the file's own format gives, and whether the sidecar is of
//! this state of the file.

use super::{Check, overlapping};
use crate::error::Result;
use crate::ledger::{Cause, Kind, RecordRun, Span};
use crate::parity::{self, FileKind, FileSpan, Refused};
use crate::record::Checked;

/// What a sidecar says of its file.
#[derive(Default)]
pub(super) struct Trust {
    /// Whether it has other bytes for a record that its own checksum proves, or none that it knows for a file that proves
    /// itself. Then nothing is restored, and nothing is lost by it.
    pub(super) is_of_an_earlier_state: bool,
    /// The bytes that differ and are restored, each range with a cause. Ascending.
    pub(super) restored: Vec<Span>,
    /// What nothing can verify or restore. Ascending.
    pub(super) lost: Vec<Span>,
    /// Units with bytes that differ, and the same records as restored, which their own checksums prove. Ascending.
    alike: Vec<Span>,
}

impl Trust {
    /// Judges all bands. If bytes are restored or lost, walks the file as it is.
    pub(super) fn find(check: &Check) -> Result<Self> {
        let mut trust = Self::default();
        if check.is_left_to_records() {
            // Nothing is restored, and what the sidecar calls lost counts nowhere.
            return Ok(trust);
        }
        for found in check.bands.all(|| check.options.poll())? {
            trust.lost.extend(found.spans().iter().filter_map(lost));
            let differing = found.differing.iter();
            let spans = differing.map(|range| restored(range.start, range.end));
            spans.for_each(|span| join(&mut trust.restored, span));
        }
        trust
            .lost
            .extend(check.bands.gaps().iter().filter_map(lost));
        trust.lost.sort_by_key(|span| span.start);
        let is_another = check.bands.refused() == Some(Refused::AnotherFile);
        let is_sound = trust.restored.is_empty() && trust.lost.is_empty();
        if !is_sound && !is_another {
            trust.explain(check)?;
        }
        Ok(trust)
    }

    /// From where on no range of the file matters. What is lost says something of those after it, too.
    pub(super) fn until(&self) -> Option<u64> {
        let last = self.restored.last().filter(|_| self.lost.is_empty());
        last.map(|span| span.end)
    }

    /// Whether records of a unit change when its bytes are restored.
    pub(super) fn restores(&self, unit: &Span) -> bool {
        !overlapping(&self.restored, unit.start, unit.end).is_empty()
            && overlapping(&self.alike, unit.start, unit.end).is_empty()
    }

    /// Whether any byte of a run is restored or lost.
    pub(super) fn meets(&self, run: &RecordRun) -> bool {
        let meets = |spans| !overlapping(spans, run.start, run.end).is_empty();
        meets(&self.restored) || meets(&self.lost)
    }

    /// Finds the causes that the format gives, and records that it proves.
    fn explain(&mut self, check: &Check) -> Result<()> {
        let (mut causes, mut is_proven) = (Vec::new(), false);
        let mut own = OwnProof::new(check);
        let checked = check.walk(check.bands.file().clone(), self.until(), |walk| {
            if let Some(run) = walk.record_run() {
                own.see(&run.span(), &self.lost);
                is_proven |= !overlapping(&self.restored, run.start, run.end).is_empty();
                return Ok(());
            }
            for span in walk.spans() {
                own.see(span, &self.lost);
                own.see_restored(span, &self.restored);
                let hit = overlapping(&self.restored, span.start, span.end);
                if span.cause.is_none() {
                    if span.kind.is_unit() && !hit.is_empty() && !is_proven {
                        match check.restores_the_same(span)? {
                            true => self.alike.push(*span),
                            false => is_proven = true,
                        }
                    }
                    continue;
                }
                causes.extend(hit.iter().map(|own| Span {
                    start: own.start.max(span.start),
                    end: own.end.min(span.end),
                    kind: Kind::Repaired,
                    cause: span.cause,
                }));
            }
            Ok(())
        })?;
        let is_proven = is_proven || own.refutes(&self.lost);
        if is_proven && checked == Checked::Checksum {
            *self = Self {
                is_of_an_earlier_state: true,
                ..Self::default()
            };
            return Ok(());
        }
        causes.sort_by_key(|span| span.start);
        let mut explained = Vec::with_capacity(self.restored.len());
        for own in &self.restored {
            let mut at = own.start;
            for cause in overlapping(&causes, own.start, own.end) {
                join(&mut explained, restored(at, cause.start));
                join(&mut explained, *cause);
                at = cause.end;
            }
            join(&mut explained, restored(at, own.end));
        }
        self.restored = explained;
        Ok(())
    }
}

/// Whether a file that has checksums proves all of itself, also what the sidecar calls lost. Then the sidecar is that of
/// another state or file which has a block in common with it, or is damaged itself.
///
/// Two places prove nothing: unused space, which zeros make of records; and the end of a file that is appended to, which
/// may have been cut off between two records.
struct OwnProof {
    /// Whether all was proven so far.
    is_whole: bool,
    /// Whether a record was proven that has lost bytes, or is in a lost block.
    has_record: bool,
    /// Where nothing is proven from.
    end: u64,
}

impl OwnProof {
    fn new(check: &Check) -> Self {
        let is_complete = !check.format.is_appended_to();
        Self {
            is_whole: true,
            has_record: false,
            end: if is_complete {
                u64::MAX
            } else {
                check.bands.file().len()
            },
        }
    }

    /// Looks at the next range of a walk of the file as it is.
    fn see(&mut self, span: &Span, lost: &[Span]) {
        let is_hit = !overlapping(lost, span.start, span.end).is_empty();
        self.is_whole &= !span.is_damage() && (!is_hit || proves(span.kind));
        self.has_record |= is_hit && span.kind.is_unit();
    }

    /// The same of what is restored: unused space may be what zeros made of it.
    fn see_restored(&mut self, span: &Span, restored: &[Span]) {
        let is_hit = !overlapping(restored, span.start, span.end).is_empty();
        self.is_whole &= !is_hit || proves(span.kind);
    }

    /// Whether what is lost is not, by the file itself.
    fn refutes(&self, lost: &[Span]) -> bool {
        self.is_whole && self.has_record && lost.last().is_some_and(|last| last.end <= self.end)
    }
}

/// Whether a sound range of this kind proves its bytes, in a format that has checksums.
const fn proves(kind: Kind) -> bool {
    !matches!(kind, Kind::Unused | Kind::Unproven)
}

const fn restored(start: u64, end: u64) -> Span {
    Span {
        start,
        end,
        kind: Kind::Repaired,
        cause: Some(Cause::ChecksumMismatch),
    }
}

fn lost(span: &FileSpan) -> Option<Span> {
    let cause = match span.cause {
        Some(parity::Cause::Truncated) => Cause::LengthOutOfBounds,
        _ => Cause::ChecksumMismatch,
    };
    (span.kind == FileKind::Lost).then_some(Span {
        start: span.start,
        end: span.end,
        kind: Kind::Corrupt,
        cause: Some(cause),
    })
}

/// Adds a range. Touching ranges of the same kind and cause become one; an empty one is left out.
pub(super) fn join(spans: &mut Vec<Span>, span: Span) {
    if span.start >= span.end {
        return;
    }
    match spans.last_mut() {
        Some(last) if last.goes_on_in(&span) => last.end = span.end,
        _ => spans.push(span),
    }
}
