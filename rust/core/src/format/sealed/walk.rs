//! The walk: entry by entry in the order of the index. Each message is checked at its entry's offset, and, if that
//! fails, directly after the last good message.

use serde::{Deserialize, Serialize};

use super::check::{Checker, Effort};
use super::front::{Front, POLL_EVERY, Segment};
use super::judge::{self, Fault, Prior};
use super::layout::{ENTRY_AND_CHECKSUM, Entry, Header, Message, UUID_BYTES};
use super::reader::Reader;
use super::rows::SealedRows;
use super::trailer::Foot;
use crate::error::{Finding, Result};
use crate::ledger::{Cause, Span};
use crate::limits::LIMITS;
use crate::record::Checked;
use crate::source::Source;
use crate::spec::{Types, UuidBounds};
use crate::walk::indexed::{Note, Ranges};
use crate::walk::{Advance, Budget, Driver, Options, Scan};

pub(super) struct SealedScan {
    pub(super) segment: Segment,
    pub(super) bounds: UuidBounds,
    types: Types,
    pub(super) checker: Checker,
    pub(super) state: ScanState,
    pub(super) ranges: Ranges<Option<Finding>>,
    pub(super) messages: Vec<Message>,
    /// Where the step began.
    began_at: u64,
    /// The index hash of the file's bytes, once it is computed.
    pub(super) index_hash: Option<u64>,
    /// A strict walk has met damage, and only continues to find the first damage in the file.
    pub(super) is_silent: bool,
}

/// Walks one sealed segment.
pub(super) type SealedWalk = Driver<SealedScan>;

impl SealedScan {
    /// A scan of a segment from this state on.
    pub(super) fn new(segment: &Segment, state: ScanState) -> Self {
        let mut checker = Checker::new(segment, Reader::sequential);
        checker.effort = Effort {
            budget: segment.front.searched,
            looked_at: state.looked_at,
        };
        let mut ranges = Ranges::new(segment.front.fields(), state.end);
        ranges.begin_part(segment.front.entry_at(state.from));
        Self {
            segment: segment.clone(),
            bounds: UuidBounds::of(&segment.options.filter),
            types: Types::of(&segment.options.filter),
            checker,
            ranges,
            state,
            messages: Vec::new(),
            began_at: 0,
            index_hash: None,
            is_silent: false,
        }
    }

    /// The walk of this scan.
    pub(super) const fn into_walk(self) -> SealedWalk {
        let ended = self.state.ended;
        Driver::resume(self, ended)
    }

    pub(super) const fn front(&self) -> &Front {
        &self.segment.front
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.segment.source
    }

    /// Advances by one entry.
    pub(super) fn advance_entry(&mut self) -> Result<Advance> {
        let front = *self.front();
        if self.stops_at_damage() && !front.terminator_is_zero && self.state.from == 0 {
            return self.meet_damage();
        }
        let number = self.state.next;
        if number >= front.entries {
            return self.finish();
        }
        if self.is_past_part()? {
            return self.begin_front(number);
        }
        if number.is_multiple_of(POLL_EVERY) {
            self.segment.options.poll()?;
        }
        if self.state.after_last == AfterLast::Exhausted {
            return self.fail(number, Fault::SearchLimit);
        }
        // The two after it say where its message and the next one end.
        let entry = self.checker.reader.entry_in_view(number, 3)?;
        if !self.messages.is_empty() {
            if !self.has_at_hand(entry.offset) {
                return Ok(Advance::Full);
            }
        } else if entry.offset == self.state.end && front.in_bounds(entry.offset) {
            let body = self.needs_bodies();
            self.checker.reader.load_message(entry.offset, body, 0)?;
        }
        if entry.offset == self.state.end
            && let Some(advance) = self.advance_run(number)?
        {
            return Ok(advance);
        }
        let before = (self.checker.effort, self.state.after_last);
        let prior = self.state.prior();
        let found = match self.checker.check(&entry, &prior)? {
            Ok(message) => Ok((message, None)),
            Err(fault) => {
                let moved = self.try_after_last(&entry, &prior)?;
                moved
                    .map(|message| (message, Some(entry.offset)))
                    .ok_or(fault)
            }
        };
        let is_sound = matches!(found, Ok((message, None)) if message.position == prior.end);
        if !is_sound && self.stops_at_damage() {
            self.restore(before);
            return self.meet_damage();
        }
        let advance = match found {
            Ok((message, elsewhere)) => self.commit(message, elsewhere)?,
            Err(fault) => self.fail(number, fault)?,
        };
        if advance == Advance::Full {
            self.restore(before);
        }
        Ok(advance)
    }

    /// Restores the effort and the knowledge from before some checks, because they will be made again.
    const fn restore(&mut self, (effort, after_last): (Effort, AfterLast)) {
        self.checker.effort.restore(effort);
        self.state.after_last = after_last;
    }

    /// Advances by several entries, if their messages are adjacent and good.
    fn advance_run(&mut self, number: u64) -> Result<Option<Advance>> {
        let given = self.ranges.spans.len();
        let most = self.left_of_part(LIMITS.sealed_step_rows.saturating_sub(given));
        let prior = self.state.prior();
        let run = self.checker.check_run(number, most, &prior)?;
        let (Some(first), Some(last)) = (run.first().copied(), run.last().copied()) else {
            return Ok(None);
        };
        // UUIDs ascend, so if the first and the last match, all between them do. Together they are at least as
        // long as each.
        let are_wanted = !self.is_silent
            && self.types.are_all()
            && self.bounds.contains(&first.uuid)
            && self.bounds.contains(&last.uuid);
        let too_large = self.segment.options.values
            && last.end() - first.position > self.segment.options.record_bytes;
        if !are_wanted || too_large {
            let run = run.to_vec();
            for message in run {
                let advance = self.commit(message, None)?;
                if advance != Advance::On {
                    return Ok(Some(advance));
                }
            }
            return Ok(Some(Advance::On));
        }
        let given = self.messages.len();
        self.messages.extend_from_slice(run);
        self.close_gap(first.position)?;
        let run = self.messages.iter().skip(given);
        self.ranges.cover_records(run.map(Message::end));
        self.follow(&last);
        Ok(Some(Advance::On))
    }

    /// Continues after a good message.
    fn follow(&mut self, message: &Message) {
        self.checker.effort.looked_at = message.position;
        self.state.last = Some(message.uuid);
        self.state.end = message.end();
        self.state.next = message.number + 1;
        self.state.in_place = true;
    }

    /// Whether the bodies of messages are read: to hash or to emit them.
    fn needs_bodies(&self) -> bool {
        self.front().trailer.is_some() || self.segment.options.values
    }

    /// Whether reading at `offset` leaves the window where it is.
    fn has_at_hand(&self, offset: u64) -> bool {
        let front = self.front();
        if !front.in_bounds(offset) {
            return true;
        }
        let reader = &self.checker.reader;
        let is_held = |header: Header| reader.in_window(offset, header.total()).is_some();
        match reader.header_in_window(offset) {
            Some(Ok(header)) => !self.needs_bodies() || is_held(header),
            parsed => parsed.is_some(),
        }
    }

    /// The message of an entry that failed at its own offset, if it is good directly after the last good one.
    fn try_after_last(&mut self, entry: &Entry, prior: &Prior) -> Result<Option<Message>> {
        let place = prior.end;
        if entry.offset == place {
            return Ok(None);
        }
        if let Some(trailer) = self.front().trailer_of(entry.number) {
            let is_worth_hashing =
                !trailer.key_check_is_wrong() && judge::ascends(&entry.uuid, prior).is_ok();
            if !is_worth_hashing || self.state.after_last == AfterLast::Tried(place) {
                return Ok(None);
            }
            self.state.after_last = AfterLast::Tried(place);
        }
        let moved = Entry {
            offset: place,
            ..*entry
        };
        let checked = self.checker.check(&moved, prior)?;
        if checked == Err(Fault::SearchLimit) {
            self.exhaust_part()?;
            self.state.after_last = AfterLast::Exhausted;
        }
        Ok(checked.ok())
    }

    /// Records that an entry has no message, and continues.
    fn fail(&mut self, number: u64, fault: Fault) -> Result<Advance> {
        let cause = fault.cause();
        // Once the search budget is used up, all entries left fail.
        let count = match cause {
            Cause::SearchLimit => {
                self.exhaust_part()?;
                self.front().entries - number
            }
            _ => 1,
        };
        self.state.in_place = false;
        self.state.next = number + count;
        let end = number + count;
        let start = number;
        Note { start, end, cause }.add_to(&mut self.state.failed);
        Ok(Advance::On)
    }

    /// Commits a good message. `elsewhere` is the offset that its entry states, if the message was found somewhere
    /// else.
    fn commit(&mut self, message: Message, elsewhere: Option<u64>) -> Result<Advance> {
        let is_past = !self.is_silent && self.bounds.is_past(&message.uuid);
        let is_wanted = !self.is_silent
            && self.bounds.contains(&message.uuid)
            && self.checker.reader.has_type(&message, &self.types)?;
        if is_wanted && !self.load_emitted(&message)? {
            return Ok(Advance::Full);
        }
        self.close_gap(message.position)?;
        if is_past {
            return self.begin_front(self.state.next);
        }
        if let Some(stated) = elsewhere {
            self.mark_moved(stated, &message);
        }
        self.ranges.cover_records(std::iter::once(message.end()));
        self.follow(&message);
        self.state.in_place = elsewhere.is_none();
        if is_wanted {
            self.messages.push(message);
        }
        Ok(Advance::On)
    }

    /// Loads what is emitted of a message into the window. `false` if the window must first emit what this step
    /// has found.
    fn load_emitted(&mut self, message: &Message) -> Result<bool> {
        let reader = &self.checker.reader;
        let (at, len) = (message.position, reader.emitted_bytes(message));
        let is_ready = reader.in_window(at, len).is_some() && reader.admit(message).is_ok();
        if is_ready || self.has_found() {
            return Ok(is_ready);
        }
        self.checker.load_verified(message)?;
        Ok(true)
    }
}

impl Scan for SealedScan {
    type Rows<'a> = SealedRows<'a, &'a Reader>;

    fn options(&self) -> &Options {
        &self.segment.options
    }

    fn begin_step(&mut self) -> Result<()> {
        self.messages.clear();
        self.ranges.spans.clear();
        self.began_at = self.state.end;
        Ok(())
    }

    fn advance(&mut self) -> Result<Advance> {
        if self.is_silent {
            return self.seek_first();
        }
        if !self.ranges.is_at_front() {
            // Entries are small, so several advance before the driver is asked again.
            let advance = loop {
                match self.advance_entry() {
                    Ok(Advance::On) if !self.is_enough() => {}
                    advance => break advance?,
                }
            };
            if advance != Advance::End {
                return Ok(advance);
            }
        }
        Ok(self.ranges.emit_front())
    }

    fn finish(&mut self) {}

    fn has_found(&self) -> bool {
        !self.messages.is_empty() || !self.ranges.spans.is_empty()
    }

    fn is_enough(&self) -> bool {
        self.ranges.spans.len() >= LIMITS.sealed_step_rows
            || !self.ranges.spans.is_empty()
                && self.state.end.saturating_sub(self.began_at)
                    >= self.segment.options.window_bytes as u64
    }

    fn rows(&self) -> SealedRows<'_, &Reader> {
        SealedRows {
            messages: &self.messages,
            bodies: &self.checker.reader,
        }
    }

    fn spans(&self) -> &[Span] {
        &self.ranges.spans
    }

    fn front_end(&self) -> u64 {
        match self.front().unreadable {
            Some(_) => 0,
            None => self.front().data_start,
        }
    }

    fn checked(&self) -> Checked {
        self.front().checked()
    }

    fn offset(&self, ended: bool) -> u64 {
        if ended {
            self.front().len
        } else {
            self.state.end
        }
    }

    fn suspects_key(&self) -> bool {
        let first = self.ranges.first_damage();
        first.is_some_and(|(span, _)| span.cause == Some(Cause::WrongKey))
    }
}

/// The state of a walk.
#[derive(Debug, Default)]
pub(super) struct ScanState {
    /// The first entry of this walk.
    pub(super) from: u64,
    /// The next entry.
    pub(super) next: u64,
    /// The last good message's UUID.
    pub(super) last: Option<[u8; UUID_BYTES]>,
    /// Where the last good message ends. Before the first: where the data begins.
    pub(super) end: u64,
    /// Where the message before this walk begins, if it was looked at.
    pub(super) looked_at: u64,
    /// Whether a message was tried directly after the last good one.
    pub(super) after_last: AfterLast,
    /// Entries since the last good one that have no message. The notes are numbered in entries.
    pub(super) failed: Vec<Note>,
    pub(super) ended: bool,
    /// The part that this walk reads.
    pub(super) part: Option<Progress>,
    /// Whether the entry before the next one has its message at its offset, so that a part may end here.
    pub(super) in_place: bool,
}

/// What is known of the place after the last good message, where a message may be whose entry names another
/// offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AfterLast {
    #[default]
    Untried,
    /// A message was tried at this place in vain.
    Tried(u64),
    /// The search budget did not allow trying one.
    Exhausted,
}

impl ScanState {
    /// The state before entry number `next`, whose message begins at or after `end`.
    pub(super) fn before(next: u64, end: u64) -> Self {
        Self {
            from: next,
            next,
            end,
            ..Self::default()
        }
    }

    /// The state after a good message.
    pub(super) fn after(message: &Message) -> Self {
        Self {
            last: Some(message.uuid),
            looked_at: message.position,
            in_place: true,
            ..Self::before(message.number + 1, message.end())
        }
    }

    /// Whether any message was good, here or before this walk.
    pub(super) const fn is_any_good(&self) -> bool {
        self.last.is_some() || self.from > 0
    }

    pub(super) fn prior(&self) -> Prior {
        Prior {
            last: self.last,
            end: self.end,
        }
    }
}

/// A span of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryRange {
    /// The trailer's fixed part, so that a part of another file is refused.
    pub(super) foot: Foot,
    /// Where the trailer begins, and what finding it has cost: no part searches it again.
    pub(super) trailer: u64,
    pub(super) searched: Budget,
    /// The first entry.
    pub(super) from: u64,
    /// The entry after the last.
    pub(super) until: u64,
}

/// The progress of a walk of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) range: EntryRange,
    /// Where its first message begins or can begin.
    pub(super) start: u64,
}

impl EntryRange {
    /// Whether it fits this file.
    pub(super) fn fits(&self, front: &Front) -> bool {
        front
            .trailer
            .is_some_and(|trailer| trailer.foot == self.foot)
            && self.from < self.until
            && self.until <= front.entries
    }
}

/// How many bytes of the file this many entries take, if their messages lie between these offsets.
pub(super) const fn extent(entries: u64, start: u64, end: u64) -> u64 {
    end.saturating_sub(start)
        .saturating_add(entries.saturating_mul(ENTRY_AND_CHECKSUM as u64))
}
