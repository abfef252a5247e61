//! What walks of files with an index in front share: sealed segments and tenant segments.
//!
//! An index, or table of contents, can only be verified by what its entries name. So a walk takes entry by entry, and its ledger
//! ([`Ranges`]) has two parts: ranges of the data in file order, with gaps that no entry's unit takes, and after them those of the front,
//! in which damaged entries are marked. A strict walk that meets damage goes on without records, since the first damage in the file may
//! be a mark.

use std::sync::Arc;

use super::{Advance, Options};
use crate::ledger::{Cause, Kind, Span, Tiling, whole_kind};
use crate::limits::LIMITS;
use crate::source::Source;

/// Marks entries that were not followed. No damaged entry has this cause.
const NOT_FOLLOWED: Cause = Cause::Unreferenced;

/// One open segment: its bytes, its options, and what its front says.
#[derive(Clone)]
pub(crate) struct Segment<F> {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) options: Options,
    pub(crate) front: F,
}

impl<F: Clone> Segment<F> {
    /// The same segment with other options.
    pub(crate) fn with(&self, options: Options) -> Self {
        Self {
            options,
            ..self.clone()
        }
    }
}

/// Where a field of the front ends, and its damage.
type Field = (u64, Option<Cause>);

/// The front of a file: what is before the entries, and from the entries on. These are sound but for their marks.
#[derive(Debug)]
pub(crate) struct Fields {
    /// The length of the file.
    pub(crate) len: u64,
    pub(crate) before: Vec<Field>,
    pub(crate) after: [Field; 2],
}

impl Fields {
    /// The offset before which ranges come last.
    const fn end(&self) -> u64 {
        self.after[1].0
    }

    fn kind(&self, (end, cause): Field) -> Kind {
        kind(cause, end == self.len)
    }

    fn lay(&self, fields: &[Field], tiling: &mut Tiling, out: &mut Vec<Span>) {
        for field in fields {
            tiling.cover(field.0, self.kind(*field), field.1, out);
        }
    }

    /// The first damaged field. An empty one shows nothing.
    pub(crate) fn first_damage(&self) -> Option<Span> {
        let (mut tiling, mut spans) = (Tiling::default(), Vec::new());
        self.lay(&self.before, &mut tiling, &mut spans);
        self.lay(&self.after, &mut tiling, &mut spans);
        tiling.finish(&mut spans);
        spans.into_iter().find(Span::is_damage)
    }
}

/// The ranges found so far. `O` is what a strict error needs to know of a damaged one.
#[derive(Debug, Default)]
pub(crate) struct Ranges<O> {
    /// The ranges of the latest step.
    pub(crate) spans: Vec<Span>,
    /// Those of the data.
    tiling: Tiling,
    /// Whether the data's first range is known.
    begun: bool,
    /// The data's first range, if it joins the front's last one.
    joint: Option<Span>,
    /// Before this, only damaged ranges of the data are emitted.
    emitted_until: u64,
    /// The first damage, and what an error says about it.
    first: Option<(Span, O)>,
    /// `None` if the front is left out.
    front: Option<Fields>,
    /// Of a part: where its entries begin.
    start: Option<u64>,
    /// Where they end, unless that is the end of the front.
    end: Option<u64>,
    /// The damaged entries, as ranges of bytes. They come in the order of the index, except for those that turn out to have lost their
    /// bytes only when later ones are known.
    marks: Vec<Note>,
    /// Once all ranges of the data were emitted: those of the front so far, and which mark comes next.
    laid: Option<(Tiling, usize)>,
}

impl<O: Default> Ranges<O> {
    /// Creates empty ranges. The first one of the data begins at `at`.
    pub(crate) fn new(front: Option<Fields>, at: u64) -> Self {
        Self {
            tiling: Tiling::resume(at, None),
            front,
            ..Self::default()
        }
    }

    /// Sets the entry at which the front of a part begins.
    pub(crate) const fn begin_part(&mut self, start: u64) {
        self.start = Some(start);
    }

    /// Sets the entry before which the front of a part ends.
    pub(crate) const fn end_part(&mut self, entry: u64) {
        self.end = Some(entry);
    }

    /// Whether the front is reported after the data.
    pub(crate) const fn has_front(&self) -> bool {
        self.front.is_some()
    }

    /// Leaves the front out, and the damage of its fields.
    pub(crate) fn leave_front(&mut self) {
        (self.front, self.first) = (None, None);
    }

    /// Leaves out an entry that is not followed: whether it is right is unknown.
    pub(crate) fn leave_entry(&mut self, start: u64, end: u64) {
        if self.front.is_some() {
            let cause = NOT_FOLLOWED;
            Note { start, end, cause }.add_to(&mut self.marks);
        }
    }

    /// Continues at `at`. What is before it has not been read.
    pub(crate) fn skip_to(&mut self, at: u64) {
        if at != self.at() {
            self.flush();
            self.tiling = Tiling::resume(at, None);
        }
    }

    /// Commits the data's pending range, because what comes next does not touch it.
    pub(crate) fn flush(&mut self) {
        let before = self.spans.len();
        self.tiling.finish(&mut self.spans);
        self.settle(before);
    }

    /// An earlier walk emitted the good ranges before `until`, but did not store which. So this walk emits no good ranges there.
    pub(crate) const fn leave_good(&mut self, until: u64) {
        self.emitted_until = until;
    }

    /// The offset before which ranges come last.
    pub(crate) fn front_end(&self) -> u64 {
        match &self.front {
            Some(front) => front.end(),
            None => 0,
        }
    }

    /// The end of the data's known ranges.
    pub(crate) const fn at(&self) -> u64 {
        self.tiling.end()
    }

    /// The first damage that is known, and what an error says about it.
    pub(crate) const fn first_damage(&self) -> Option<&(Span, O)> {
        self.first.as_ref()
    }

    /// Whether damage at `offset` would be the first that is known.
    pub(crate) fn is_first(&self, offset: u64) -> bool {
        self.first
            .as_ref()
            .is_none_or(|(first, _)| offset < first.start)
    }

    /// Notes the damage of the fields of the front.
    pub(crate) fn note_fields(&mut self, origin: O) {
        if let Some(span) = self.front.as_ref().and_then(Fields::first_damage) {
            self.note(span, origin);
        }
    }

    fn note(&mut self, span: Span, origin: O) {
        if self.is_first(span.start) {
            self.first = Some((span, origin));
        }
    }

    /// Covers the whole file with one range, because nothing in it can be read. That of an empty file is empty.
    pub(crate) fn refuse(&mut self, len: u64, cause: Cause, origin: O) {
        let span = damaged(0, len, whole_kind(cause, true), cause);
        self.front = None;
        self.tiling = Tiling::resume(len, None);
        self.first = Some((span, origin));
        self.spans.push(span);
    }

    /// Covers the data's bytes up to `end`.
    pub(crate) fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>, origin: O) {
        let start = self.at();
        if end <= start {
            return;
        }
        if let Some(cause) = cause {
            self.note(damaged(start, end, kind, cause), origin);
        }
        let before = self.spans.len();
        self.tiling.cover(end, kind, cause, &mut self.spans);
        self.settle(before);
    }

    /// Covers adjacent records that end at these ascending offsets. Nothing is held back, so the range before
    /// them must not join the front's last one.
    pub(crate) fn cover_records(&mut self, ends: impl Iterator<Item = u64>) {
        self.tiling.cover_records(ends, &mut self.spans);
    }

    /// Holds back or drops the new ranges, from this index on, that must not be emitted.
    fn settle(&mut self, place: usize) {
        self.hold_first(place);
        let until = self.emitted_until;
        if until > 0 {
            for mut span in self.spans.split_off(place) {
                if !span.is_damage() {
                    // Only as much of a range was emitted as had been read of it.
                    span.start = span.start.max(until);
                }
                self.spans
                    .extend(Some(span).filter(|span| span.start < span.end));
            }
        }
    }

    /// Holds back the data's first range if it joins the front's last one.
    fn hold_first(&mut self, place: usize) {
        let Some(first) = self.spans.get(place).filter(|_| !self.begun) else {
            return;
        };
        self.begun = true;
        // The front's last range may be another part's.
        let Some(front) = self.front.as_ref().filter(|_| self.start.is_none()) else {
            return;
        };
        let last = front.after[1];
        let joins = (first.start, first.kind, first.cause) == (last.0, front.kind(last), last.1);
        if joins && first.kind.joins() {
            self.joint = Some(self.spans.remove(place));
        }
    }

    /// Marks damaged entries. A walk that began within the file cannot judge entries.
    pub(crate) fn mark(&mut self, start: u64, end: u64, cause: Cause, origin: O) {
        if self.front.is_none() {
            return;
        }
        self.note(damaged(start, end, Kind::Corrupt, cause), origin);
        Note { start, end, cause }.add_to(&mut self.marks);
    }

    /// Whether all ranges of the data were emitted.
    pub(crate) const fn is_at_front(&self) -> bool {
        self.laid.is_some()
    }

    /// Emits the data's pending range, and then the front's ranges, some with each call.
    pub(crate) fn emit_front(&mut self) -> Advance {
        let is_new = self.laid.is_none();
        if is_new {
            self.flush();
            // Nearly always they are in order: nothing is moved, and it takes no memory.
            self.marks
                .sort_unstable_by_key(|mark| (mark.start, mark.end));
        }
        let (start, out) = (self.start.unwrap_or(0), &mut self.spans);
        let most = out.len() + LIMITS.front_step_spans;
        let begin = || (Tiling::resume(start, None), 0);
        let (tiling, next) = self.laid.get_or_insert_with(begin);
        let Some(front) = &self.front else {
            return Advance::End;
        };
        if is_new {
            front.lay(&front.before, tiling, out);
        }
        while let Some(mark) = self.marks.get(*next) {
            *next += 1;
            tiling.cover(mark.start, Kind::Header, None, out);
            if mark.cause == NOT_FOLLOWED {
                tiling.finish(out);
                *tiling = Tiling::resume(mark.end, None);
            } else {
                tiling.cover(mark.end, Kind::Corrupt, Some(mark.cause), out);
            }
            if out.len() >= most {
                return Advance::Full;
            }
        }
        match self.end {
            Some(end) => tiling.cover(end, Kind::Header, None, out),
            None => front.lay(&front.after, tiling, out),
        }
        if let Some(joint) = self.joint {
            tiling.cover(joint.end, joint.kind, joint.cause, out);
        }
        tiling.finish(out);
        Advance::End
    }
}

const fn damaged(start: u64, end: u64, kind: Kind, cause: Cause) -> Span {
    let cause = Some(cause);
    Span {
        start,
        end,
        kind,
        cause,
    }
}

/// The kind of a range of a file that is written whole. Without a cause it is a sound part of the front.
pub(crate) fn kind(cause: Option<Cause>, at_end: bool) -> Kind {
    match cause {
        Some(cause) => whole_kind(cause, at_end),
        None => Kind::Header,
    }
}

/// A pending range and its cause. Its unit, bytes or entries, depends on the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Where it begins.
    pub(crate) start: u64,
    /// Where it ends.
    pub(crate) end: u64,
    pub(crate) cause: Cause,
}

impl Note {
    /// Appends it to others. With the last one it is merged if they are adjacent and have the same cause.
    pub(crate) fn add_to(self, notes: &mut Vec<Self>) {
        match notes.last_mut() {
            Some(last) if last.end == self.start && last.cause == self.cause => {
                last.end = self.end;
            }
            _ => notes.push(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_in_the_order_of_the_index_and_those_that_touch_are_one() {
        let mut ranges = Ranges::new(None, 0);
        ranges.front = Some(Fields {
            len: 4000,
            before: vec![(0, None)],
            after: [(3500, None), (3600, None)],
        });
        for run in [2000, 1000, 0] {
            for start in (run..run + 900).step_by(10) {
                ranges.mark(start, start + 10, Cause::ChecksumMismatch, ());
            }
        }
        assert_eq!(ranges.marks.len(), 3);
        while ranges.emit_front() != Advance::End {}
        let spans = ranges.spans.iter();
        let ends: Vec<_> = spans.map(|span| (span.end, span.is_damage())).collect();
        let damaged = [900, 1900, 2900].map(|end| (end, true));
        let sound = [1000, 2000, 3600].map(|end| (end, false));
        let expected = damaged.into_iter().zip(sound);
        assert!(ends.into_iter().eq(expected.flat_map(<[_; 2]>::from)));
    }
}
