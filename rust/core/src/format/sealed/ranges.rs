//! The ledger: records and gaps as the walk goes, the trailer at its end, and then the index. A strict walk that
//! meets damage runs on, without records, to find the first damage in the file.

use super::front::{Front, POLL_EVERY};
use super::judge::Fault;
use super::layout::{ENTRY_BYTES, Message};
use super::walk::SealedScan;
use crate::error::{Damage, Error, Finding, Result};
use crate::ledger::{Cause, Kind, whole_kind};
use crate::spec::UuidBounds;
use crate::walk::indexed::Note;
use crate::walk::{Advance, Budget, Scan};

impl SealedScan {
    /// Covers the gap between the last good message and `until`, where the next one begins or the data ends. Marks
    /// the entries that failed in between.
    pub(super) fn close_gap(&mut self, until: u64) -> Result<()> {
        let gap = self.state.end..until;
        if gap.is_empty() && self.state.failed.is_empty() {
            return Ok(());
        }
        let failed = std::mem::take(&mut self.state.failed);
        if !gap.is_empty() {
            let first = failed.first();
            let cause = match first {
                Some(note) => note.cause,
                None => Cause::Unreferenced,
            };
            let finding = match first {
                _ if !self.is_first(gap.start) => None,
                Some(note) => Some(self.explain(note.start, note.cause)?),
                None => Some(unreferenced(gap.end - gap.start)),
            };
            let kind = whole_kind(cause, until == self.front().len);
            self.ranges.cover(until, kind, Some(cause), finding);
        }
        for note in failed {
            if gap.is_empty() {
                self.mark(note)?;
                continue;
            }
            for number in note.start..note.end {
                if number.is_multiple_of(POLL_EVERY) {
                    self.segment.options.poll()?;
                }
                if self.is_entry_at_fault(number, note.cause)
                    || !gap.contains(&self.checker.entry_elsewhere(number)?.offset)
                {
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

    /// Whether this cause means that the entry itself is wrong, whatever it points at. Unknown with its checksum.
    fn is_entry_at_fault(&self, number: u64, cause: Cause) -> bool {
        self.front().trailer_of(number).is_none()
            && matches!(cause, Cause::BadUuid | Cause::OutOfOrder)
    }

    /// Marks entries as damage. One walk marks them in the order of the index.
    fn mark(&mut self, note: Note) -> Result<()> {
        let [start, end] = [note.start, note.end].map(|number| self.front().entry_at(number));
        let finding = match self.is_first(start) {
            true => Some(self.explain(note.start, note.cause)?),
            false => None,
        };
        self.ranges.mark(start, end, note.cause, finding);
        Ok(())
    }

    /// Marks an entry whose message was found elsewhere than at its offset.
    pub(super) fn mark_moved(&mut self, stated: u64, message: &Message) {
        let cause = Cause::IndexDisagrees;
        let start = self.front().entry_at(message.number);
        let finding = Finding::Number {
            cause,
            what: "the offset in an index entry",
            expected: message.position,
            actual: stated,
        };
        let end = start + ENTRY_BYTES as u64;
        self.ranges.mark(start, end, cause, Some(finding));
    }

    /// After the last entry: covers the rest of the data, the trailer, and the index.
    pub(super) fn finish(&mut self) -> Result<Advance> {
        let front = *self.front();
        let trailer = self.trailer_finding()?;
        let trailer_end = front.trailer.map_or(front.len, |trailer| trailer.end);
        let is_damage = front.unreadable.is_some()
            || trailer.is_some()
            || self.state.end < front.data_end
            || trailer_end < front.len
            || !self.state.failed.is_empty();
        if is_damage && self.stops_at_damage() {
            return self.meet_damage();
        }
        let refused = match (front.unreadable, front.trailer) {
            (Some(cause), _) => Some(front.unreadable_finding(cause)),
            (None, Some(trailer)) if self.is_wrong_key() => Some(trailer.wrong_key(&front.key)),
            (None, _) => None,
        };
        if let Some(finding) = refused {
            self.ranges
                .refuse(front.len, finding.cause(), Some(finding));
            return Ok(Advance::End);
        }
        self.close_gap(front.data_end)?;
        // Without a trailer the data ends with the file.
        let cause = trailer.as_ref().map(Finding::cause);
        let kind = cause.map_or(Kind::Trailer, |cause| whole_kind(cause, true));
        self.ranges.cover(trailer_end, kind, cause, trailer);
        let (kind, cause) = (Kind::Corrupt, Some(Cause::Unreferenced));
        let finding = unreferenced(front.len - trailer_end);
        self.ranges.cover(front.len, kind, cause, Some(finding));
        self.begin_front(front.entries)
    }

    /// What is wrong with the trailer. Hashes the index, once.
    fn trailer_finding(&mut self) -> Result<Option<Finding>> {
        let Some(trailer) = self.front().trailer else {
            return Ok(None);
        };
        if self.index_hash.is_none() {
            self.index_hash = self.segment.survey(|_| {})?.hash;
        }
        let Front { key, entries, .. } = self.front();
        Ok(trailer.finding(key, *entries, self.index_hash))
    }

    /// Whether the file looks as it would under another key.
    fn is_wrong_key(&self) -> bool {
        let front = self.front();
        let stored = front.trailer.and_then(|trailer| trailer.index_hash());
        let is_index_right = stored.is_some() && stored == self.index_hash;
        !self.state.is_any_good() && front.may_be_under_another_key() && !is_index_right
    }

    /// Whether the next damage ends the walk.
    pub(super) const fn stops_at_damage(&self) -> bool {
        self.segment.options.strict && !self.is_silent
    }

    /// Handles damage ahead. If this step has found anything before it, that is emitted first, and the next step
    /// meets it again.
    pub(super) fn meet_damage(&mut self) -> Result<Advance> {
        if self.has_found() {
            return Ok(Advance::Full);
        }
        self.is_silent = true;
        self.bounds = UuidBounds::default();
        if self.state.from == 0 {
            self.ranges.note_fields(Some(bad_terminator()));
        }
        self.seek_first()
    }

    /// Continues until the first damage in the file is known.
    pub(super) fn seek_first(&mut self) -> Result<Advance> {
        let terminator = self.front().entry_at(self.front().entries);
        loop {
            let advance = self.advance_entry()?;
            self.ranges.spans.clear();
            // Entries are marked in their order, and before everything else. Only a wrong key can come before
            // those.
            let first = self.ranges.first_damage();
            let is_settled = first.is_some_and(|(first, _)| first.start < terminator)
                && (self.state.is_any_good() || !self.front().may_be_under_another_key());
            if advance == Advance::End || is_settled {
                return Err(self.raised());
            }
        }
    }

    /// Whether damage at `offset` may be the first in the file: that one is being sought, and none before `offset` is known.
    fn is_first(&self, offset: u64) -> bool {
        self.is_silent && self.ranges.is_first(offset)
    }

    /// What is wrong with an entry that failed with this cause since the last good message. Checks it once more.
    fn explain(&mut self, number: u64, cause: Cause) -> Result<Finding> {
        let (prior, front) = (self.state.prior(), *self.front());
        let entry = self.checker.entry_elsewhere(number)?;
        if cause == Cause::SearchLimit {
            return Ok(Fault::SearchLimit.finding(&front, &entry, &prior));
        }
        let before = self.checker.effort;
        self.checker.effort.budget = Budget::default();
        let checked = self.checker.check(&entry, &prior)?;
        self.checker.effort = before;
        match checked {
            Err(fault) => Ok(fault.finding(&front, &entry, &prior)),
            Ok(message) => Err(self.checker.reader.changed(message.position)),
        }
    }

    /// The error of the first damage. If there is none any more, of a file that has changed.
    fn raised(&self) -> Error {
        let Some((span, Some(finding))) = self.ranges.first_damage() else {
            return self.checker.reader.changed(self.state.end);
        };
        Error::Damage(Box::new(Damage {
            wrong_key: span.cause == Some(Cause::WrongKey),
            ..Damage::new(self.source().path(), span.start, finding.clone())
        }))
    }
}

fn unreferenced(len: u64) -> Finding {
    Finding::words(
        Cause::Unreferenced,
        "adjacent messages, each with its entry in the index",
        format!("{len} bytes that no entry accounts for"),
    )
}

/// The damage of a terminator.
fn bad_terminator() -> Finding {
    Finding::words(
        Cause::BadTerminator,
        format!("{ENTRY_BYTES} zero bytes after the last entry of the index"),
        "other bytes",
    )
}
