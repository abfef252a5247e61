//! What walks of files with an index in front share: sealed segments and tenant segments.
//!
//! An index, or table of contents, can only be verified by what its entries name. So a walk takes entry by entry, and its ledger
//! ([`Ranges`]) has two parts: ranges of the data in file order, with gaps that no entry's unit takes, and after them those of the front,
//! in which damaged entries are marked. A strict walk that meets damage goes on without records, since the first damage in the file may
//! be a mark.

use std::sync::Arc;

use super::{Advance, Options};
use crate::bug::OrBug;
use crate::error::Result;
use crate::ledger::{Cause, Kind, Span, Tiling, whole_kind};
use crate::limits::LIMITS;
use crate::output::Spool;
use crate::source::Source;

/// Marks entries that were not followed. No damaged entry has this cause.
const NOT_FOLLOWED: Cause = Cause::Unreferenced;

/// The longest encoding of a note: two numbers with seven bits in each byte, and the cause.
const MAX_NOTE_BYTES: usize = 2 * 10 + 1;

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

/// A pending range and its cause. Its unit, bytes or entries, depends on the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Where it begins.
    pub(crate) start: u64,
    /// Where it ends.
    pub(crate) end: u64,
    pub(crate) cause: Cause,
}

/// Pending ranges, ascending. Adjacent ones with the same cause are merged.
#[derive(Debug)]
pub(crate) struct Notes {
    spool: Spool,
    /// The end of the last one in the spool.
    spooled: u64,
    /// The last one. It may still grow, so it is not in the spool.
    last: Option<Note>,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            spool: Spool::aside(),
            spooled: 0,
            last: None,
        }
    }
}

impl Notes {
    /// Appends a note.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if many notes spill and the temporary file cannot be written.
    pub(crate) fn push(&mut self, note: Note) -> Result<()> {
        match &mut self.last {
            Some(last) if last.end == note.start && last.cause == note.cause => {
                last.end = note.end;
            }
            last => {
                if let Some(last) = last.replace(note) {
                    let out = self.spool.buffer();
                    put(out, last.start.saturating_sub(self.spooled));
                    put(out, last.end.saturating_sub(last.start));
                    let code = Cause::ALL.iter().position(|cause| *cause == last.cause);
                    let code = code.and_then(|code| code.try_into().ok());
                    out.push(code.or_bug("a cause with a number")?);
                    self.spooled = last.end;
                    self.spool.flush_if_full()?;
                }
            }
        }
        Ok(())
    }

    /// The end of the last one; 0 if there are none.
    fn end(&self) -> u64 {
        self.last.map_or(0, |last| last.end)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Returns the note at `place` and moves `place` to the next.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if they cannot be read.
    pub(crate) fn next(&self, place: &mut Place) -> Result<Option<Note>> {
        if place.read >= self.spool.len() {
            let last = self.last.filter(|last| last.start >= place.end);
            place.end = u64::MAX;
            return Ok(last);
        }
        let cached = place.bytes.get(place.used..).unwrap_or_default();
        if cached.len() < MAX_NOTE_BYTES {
            place.used = 0;
            self.spool
                .read(place.read, LIMITS.notes_read_bytes, &mut place.bytes)?;
        }
        let mut at = place.used;
        let skip = take(&place.bytes, &mut at);
        let len = take(&place.bytes, &mut at);
        let code = place.bytes.get(at).copied().unwrap_or_default();
        at += 1;
        let start = place.end.saturating_add(skip);
        let end = start.saturating_add(len);
        place.read += (at - place.used) as u64;
        (place.used, place.end) = (at, end);
        let cause = Cause::ALL.get(usize::from(code)).copied();
        Ok(cause.map(|cause| Note { start, end, cause }))
    }
}

/// A reading position among the notes.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The offset in the spool.
    read: u64,
    /// The end of the previous note.
    end: u64,
    bytes: Vec<u8>,
    used: usize,
}

/// Appends a number, seven bits in each byte, the lowest first.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Reads the number at `at`, and moves `at` past it.
fn take(bytes: &[u8], at: &mut usize) -> u64 {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = bytes.get(*at).copied().unwrap_or_default();
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// Damaged entries, as byte ranges of the index. They come in its order, except for those that turn out to have lost their bytes only
/// when later ones are known. These are in order too, unless the entries are out of order; of those no more are pending than claims may
/// be.
#[derive(Debug, Default)]
struct Marks {
    in_order: [Notes; 2],
    others: Vec<Note>,
}

/// The position in the marks: of each sequence in order how far it was read, and the mark that was read last if it was not returned yet.
#[derive(Debug, Default)]
struct Next {
    in_order: [(Place, Option<Note>); 2],
    other: usize,
}

impl Marks {
    fn push(&mut self, start: u64, end: u64, cause: Cause) -> Result<()> {
        let note = Note { start, end, cause };
        let mut in_order = self.in_order.iter_mut();
        match in_order.find(|notes| start >= notes.end()) {
            Some(notes) => notes.push(note),
            None => {
                match self.others.last_mut() {
                    Some(last) if last.end == start && last.cause == cause => last.end = end,
                    _ => self.others.push(note),
                }
                Ok(())
            }
        }
    }

    /// Prepares for reading, after the last mark was added.
    fn sort(&mut self) {
        self.others.sort_by_key(|note| note.start);
    }

    /// The next mark in the order of the index.
    fn next(&self, next: &mut Next) -> Result<Option<Note>> {
        let (mut least, mut from) = (self.others.get(next.other).copied(), None);
        let in_order = self.in_order.iter().zip(&mut next.in_order);
        for (notes, (place, pending)) in in_order.rev() {
            if pending.is_none() {
                *pending = notes.next(place)?;
            }
            if let Some(note) = *pending
                && least.is_none_or(|least| note.start <= least.start)
            {
                (least, from) = (Some(note), Some(pending));
            }
        }
        match from {
            Some(pending) => *pending = None,
            None => next.other += 1,
        }
        Ok(least)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const CAUSES: [Cause; 3] = [Cause::ChecksumMismatch, Cause::WrongKey, Cause::OutOfOrder];

    /// Every third note touches the one before and has its cause.
    fn many(count: u64) -> (Notes, Vec<Note>) {
        let (mut notes, mut plain, mut at) = (Notes::default(), Vec::<Note>::new(), 0_u64);
        for number in 0..count {
            let start = at + if number % 3 == 0 { 0 } else { number * number };
            at = start + 1 + number % 300;
            let cause = CAUSES.into_iter().cycle().nth((number / 3 % 3) as usize);
            let note = Note {
                start,
                end: at,
                cause: cause.unwrap_or(Cause::WrongKey),
            };
            assert!(notes.push(note).is_ok());
            match plain.last_mut() {
                Some(last) if last.end == note.start && last.cause == note.cause => {
                    last.end = note.end;
                }
                _ => plain.push(note),
            }
        }
        (notes, plain)
    }

    #[test]
    fn notes_come_back_as_they_were_put_also_from_a_file() {
        // The last count needs more than a spool's buffer.
        for count in [0, 1, 2, 3, 50, 300_000] {
            let (notes, plain) = many(count);
            assert_eq!(notes.is_empty(), plain.is_empty());
            assert_eq!(notes.end(), plain.last().map_or(0, |last| last.end));
            let mut place = Place::default();
            let read = std::iter::from_fn(|| notes.next(&mut place).transpose());
            assert_eq!(read.collect::<Result<Vec<_>>>().ok(), Some(plain));
        }
    }

    #[test]
    fn entries_out_of_order_that_touch_are_one_mark() {
        let mut marks = Marks::default();
        for run in [2000, 1000, 0] {
            for start in (run..run + 1000).step_by(10) {
                marks
                    .push(start, start + 10, Cause::ChecksumMismatch)
                    .unwrap();
            }
        }
        assert_eq!(marks.others.len(), 1);
        marks.sort();
        let mut next = Next::default();
        let read = std::iter::from_fn(|| marks.next(&mut next).unwrap());
        let read: Vec<_> = read.map(|note| (note.start, note.end)).collect();
        assert_eq!(read, [(0, 1000), (1000, 2000), (2000, 3000)]);
    }
}
