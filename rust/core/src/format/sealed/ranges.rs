//! The ledger: records and the gaps between them as the walk goes, the trailer when it is at its end, and then the index.

use super::front::Front;
use super::index::POLL_EVERY;
use super::layout::ENTRY_BYTES;
use super::layout::{Entry, Message};
use super::walk::SealedScan;
use crate::engine::Advance;
use crate::error::{Error, Finding, Result};
use crate::ledger::{Cause, Kind, Note, Place, Span, Tiling, lay_last, whole_kind};

impl SealedScan {
    /// Covers what lies between the last good message and `until`, where the next one begins or the data ends, and marks the
    /// entries that failed in between.
    pub(super) fn close_gap(&mut self, until: u64) -> Result<()> {
        let gap = self.state.end..until;
        let failed = std::mem::take(&mut self.state.failed);
        if !gap.is_empty() {
            let first = failed.first();
            let cause = first.map_or(Cause::Unreferenced, |note| note.cause);
            let kind = whole_kind(cause, until == self.front().len);
            if self.is_first(gap.start) {
                let finding = match first {
                    Some(note) => self.explain(note.start, note.cause)?,
                    None => unreferenced(gap.end - gap.start),
                };
                self.note(gap.start, finding);
            }
            self.tiling.cover(until, kind, Some(cause), &mut self.spans);
        }
        for note in failed.iter() {
            let note = note?;
            if gap.is_empty() || self.is_entry_at_fault(note.cause) {
                self.mark(note)?;
                continue;
            }
            for number in note.start..note.end {
                if number.is_multiple_of(POLL_EVERY) {
                    self.options.poll()?;
                }
                if !gap.contains(&self.checker.entry_elsewhere(number)?.offset) {
                    self.mark(Note {
                        start: number,
                        end: number + 1,
                        cause: note.cause,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Whether this cause says that the entry itself is wrong, whatever it points at. With a trailer that is not known.
    fn is_entry_at_fault(&self, cause: Cause) -> bool {
        self.front().trailer.is_none() && matches!(cause, Cause::BadUuid | Cause::OutOfOrder)
    }

    /// Marks entries as damage; those of one walk are marked in the order of the index.
    fn mark(&mut self, note: Note) -> Result<()> {
        let at = self.front().entry_at(note.start);
        if self.is_first(at) {
            let finding = self.explain(note.start, note.cause)?;
            self.note(at, finding);
        }
        self.state.marks.push(note)
    }

    /// Marks an entry whose message stands somewhere else than it says.
    pub(super) fn mark_moved(&mut self, entry: &Entry, message: &Message) -> Result<()> {
        let cause = Cause::IndexDisagrees;
        let at = self.front().entry_at(message.number);
        if self.is_first(at) {
            let finding = Finding::Number {
                cause,
                what: "the offset in an index entry",
                expected: message.position,
                actual: entry.offset,
            };
            self.note(at, finding);
        }
        self.state.marks.push(Note {
            start: message.number,
            end: message.number + 1,
            cause,
        })
    }

    /// Behind the last entry: the rest of the data, the trailer, and the index.
    pub(super) fn finish(&mut self) -> Result<Advance> {
        let front = *self.front();
        let trailer = self.trailer_finding()?;
        let is_torn = front.is_torn();
        let is_damage = trailer.is_some()
            || is_torn
            || self.state.end < front.data_end
            || !self.state.failed.is_empty();
        if is_damage && self.stops_at_damage() {
            return self.meet_damage();
        }
        if self.is_wrong_key(trailer.as_ref()) {
            self.cover_wrong_key();
            return Ok(Advance::End);
        }
        self.close_gap(front.data_end)?;
        if is_torn {
            if self.is_first(front.data_end) {
                self.note(front.data_end, torn_trailer(&front));
            }
            let cause = Cause::TruncatedTrailer;
            let kind = whole_kind(cause, true);
            self.tiling
                .cover(front.len, kind, Some(cause), &mut self.spans);
        }
        if front.trailer.is_some() {
            let cause = trailer.as_ref().map(Finding::cause);
            let kind = cause.map_or(Kind::Trailer, |_| Kind::Corrupt);
            if let Some(finding) = trailer.filter(|_| self.is_first(front.data_end)) {
                self.note(front.data_end, finding);
            }
            self.tiling.cover(front.len, kind, cause, &mut self.spans);
        }
        self.end_part()?;
        self.begin_front(front.entries);
        Ok(Advance::End)
    }

    /// What is wrong with the trailer. Hashes the index, once.
    fn trailer_finding(&mut self) -> Result<Option<Finding>> {
        let front = *self.front();
        let Some(trailer) = front.trailer else {
            return Ok(None);
        };
        let computed = match self.index_hash {
            Some(computed) => computed,
            None => front.index_hash(self.source(), &self.options, &trailer)?,
        };
        self.index_hash = Some(computed);
        Ok(trailer.finding(&front.key, front.entries, computed))
    }

    /// Whether all is as it would be under another key.
    fn is_wrong_key(&self, trailer: Option<&Finding>) -> bool {
        let front = self.front();
        let is_hash_wrong = || {
            let stored = front.trailer.map(|trailer| trailer.foot.index_hash);
            stored != self.index_hash
        };
        !self.state.counted
            && trailer.is_some()
            && front.may_be_under_another_key()
            && is_hash_wrong()
    }

    fn cover_wrong_key(&mut self) {
        let front = *self.front();
        self.suspects_key = true;
        if let Some(trailer) = front.trailer.filter(|_| self.runs_on) {
            // In the place of any damage to the index that was found.
            self.first = None;
            self.note(0, trailer.wrong_key(&front.key));
        }
        self.spans.push(Span {
            start: 0,
            end: front.len,
            kind: Kind::Corrupt,
            cause: Some(Cause::WrongKey),
        });
    }

    /// All behind the index is covered: what is left is the index up to the entry `until`, behind the last one with the
    /// terminator.
    pub(super) fn begin_front(&mut self, until: u64) {
        self.tiling.finish(&mut self.spans);
        self.state.front = Some((until, 0));
    }

    /// Gives the next ranges of the index. `false` where there are no more.
    pub(super) fn give_front(&mut self) -> Result<bool> {
        let front = *self.front();
        let Some((until, given)) = &mut self.state.front else {
            return Ok(false);
        };
        let begin = front.entry_at(self.state.from);
        // What an error leaves behind is laid anew from the beginning, and what was given is left out.
        let (mut tiling, mut place) = self
            .front_ranges
            .take()
            .unwrap_or_else(|| (Tiling::resume(begin, None), Place::default()));
        let more = lay_last(given, &mut self.spans, |out| {
            if let Some(note) = self.state.marks.next(&mut place)? {
                tiling.cover(front.entry_at(note.start), Kind::Header, None, out);
                let cause = Some(note.cause);
                tiling.cover(front.entry_at(note.end), Kind::Corrupt, cause, out);
                return Ok(true);
            }
            tiling.cover(front.entry_at(*until), Kind::Header, None, out);
            if *until == front.entries {
                let cause = (!front.terminator_is_zero).then_some(Cause::BadTerminator);
                let kind = cause.map_or(Kind::Header, |_| Kind::Corrupt);
                tiling.cover(front.data_start, kind, cause, out);
            }
            tiling.finish(out);
            Ok(false)
        })?;
        self.front_ranges = Some((tiling, place));
        Ok(more)
    }

    /// The one range of a file of which nothing can be read.
    pub(super) fn give_up(&mut self, cause: Cause) -> Result<Advance> {
        let front = *self.front();
        if self.stops_at_damage() {
            self.note(0, front.unreadable_finding(cause));
            return Err(self.raised());
        }
        // Not through a tiling: an empty file has an empty range.
        self.spans.push(Span {
            start: 0,
            end: front.len,
            kind: whole_kind(cause, true),
            cause: Some(cause),
        });
        Ok(Advance::End)
    }

    /// The error of the first damage, or, where there is none any more, of a file that has changed.
    pub(super) fn raised(&self) -> Error {
        match &self.first {
            Some(damage) => Error::Damage(Box::new(damage.clone())),
            None => self.checker.reader.changed(self.state.end),
        }
    }
}

fn unreferenced(len: u64) -> Finding {
    Finding::words(
        Cause::Unreferenced,
        "messages one behind the other, each with its entry in the index",
        format!("{len} bytes that no entry accounts for"),
    )
}

fn torn_trailer(front: &Front) -> Finding {
    Finding::Number {
        cause: Cause::TruncatedTrailer,
        what: "the trailer's length in bytes",
        expected: super::trailer::trailer_bytes(front.entries),
        actual: front.len - front.data_end,
    }
}

/// The terminator's damage.
pub(super) fn bad_terminator() -> Finding {
    Finding::words(
        Cause::BadTerminator,
        format!("{ENTRY_BYTES} zero bytes behind the last entry of the index"),
        "other bytes",
    )
}
