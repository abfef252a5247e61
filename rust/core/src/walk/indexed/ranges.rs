//! The ranges of a walk: those of the data in file order, and those of the front after the walk has decided what they are.

use super::notes::{Marks, Next};
use crate::error::Result;
use crate::ledger::{Cause, Kind, Span, Tiling, whole_kind};
use crate::limits::LIMITS;
use crate::walk::Advance;

/// Marks entries that were not followed. No damaged entry has this cause.
const NOT_FOLLOWED: Cause = Cause::Unreferenced;

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
#[derive(Debug)]
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
    /// The damaged entries.
    marks: Marks,
    /// Once all ranges of the data were emitted: those of the front so far, and which mark comes next.
    laid: Option<(Tiling, Next)>,
}

impl<O> Ranges<O> {
    /// Creates empty ranges. The first one of the data begins at `at`.
    pub(crate) fn new(front: Option<Fields>, at: u64) -> Self {
        Self {
            spans: Vec::new(),
            tiling: Tiling::resume(at, None),
            begun: false,
            joint: None,
            emitted_until: 0,
            first: None,
            front,
            start: None,
            end: None,
            marks: Marks::default(),
            laid: None,
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

    /// Leaves the front out, and the damage of its fields.
    pub(crate) fn leave_front(&mut self) {
        (self.front, self.first) = (None, None);
    }

    /// Leaves out an entry that is not followed: whether it is right is unknown.
    pub(crate) fn leave_entry(&mut self, start: u64, end: u64) -> Result<()> {
        match self.front {
            Some(_) => self.marks.push(start, end, NOT_FOLLOWED),
            None => Ok(()),
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
        self.front.as_ref().map_or(0, Fields::end)
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
        let span = Span {
            start: 0,
            end: len,
            kind: whole_kind(cause, true),
            cause: Some(cause),
        };
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
        if cause.is_some() {
            let span = Span {
                start,
                end,
                kind,
                cause,
            };
            self.note(span, origin);
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
    pub(crate) fn mark(&mut self, start: u64, end: u64, cause: Cause, origin: O) -> Result<()> {
        if self.front.is_none() {
            return Ok(());
        }
        let span = Span {
            start,
            end,
            kind: Kind::Corrupt,
            cause: Some(cause),
        };
        self.note(span, origin);
        self.marks.push(start, end, cause)
    }

    /// Whether all ranges of the data were emitted.
    pub(crate) const fn is_at_front(&self) -> bool {
        self.laid.is_some()
    }

    /// Emits the data's pending range, and then the front's ranges, some with each call.
    pub(crate) fn emit_front(&mut self) -> Result<Advance> {
        let is_new = self.laid.is_none();
        if is_new {
            self.flush();
            self.marks.sort();
        }
        let (start, out) = (self.start.unwrap_or(0), &mut self.spans);
        let most = out.len() + LIMITS.front_step_spans;
        let begin = || (Tiling::resume(start, None), Next::default());
        let (tiling, next) = self.laid.get_or_insert_with(begin);
        let Some(front) = &self.front else {
            return Ok(Advance::End);
        };
        if is_new {
            front.lay(&front.before, tiling, out);
        }
        loop {
            let mark = match self.marks.next(next) {
                // What was found is emitted first. The next step meets the error again.
                Err(_) if !out.is_empty() => return Ok(Advance::Full),
                mark => mark?,
            };
            let Some(mark) = mark else {
                match self.end {
                    Some(end) => tiling.cover(end, Kind::Header, None, out),
                    None => front.lay(&front.after, tiling, out),
                }
                if let Some(joint) = self.joint {
                    tiling.cover(joint.end, joint.kind, joint.cause, out);
                }
                tiling.finish(out);
                return Ok(Advance::End);
            };
            tiling.cover(mark.start, Kind::Header, None, out);
            if mark.cause == NOT_FOLLOWED {
                tiling.finish(out);
                *tiling = Tiling::resume(mark.end, None);
            } else {
                tiling.cover(mark.end, Kind::Corrupt, Some(mark.cause), out);
            }
            if out.len() >= most {
                return Ok(Advance::Full);
            }
        }
    }
}

/// The kind of a range of a file that is written whole. Without a cause it is a sound part of the front.
pub(crate) fn kind(cause: Option<Cause>, at_end: bool) -> Kind {
    cause.map_or(Kind::Header, |cause| whole_kind(cause, at_end))
}
