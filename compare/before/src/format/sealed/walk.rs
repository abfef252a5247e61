//! The walk: entry by entry in the order of the index, each message checked where its entry says that it is, and, where it
//! is not there, directly behind the last good one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::check::{Checker, Fault, POLL_EVERY, Prior, handed_out};
use super::front::Front;
use super::part::Progress;
use super::ranges::FrontRanges;
use super::reader::Reader;
use super::rows::SealedRows;
use super::{Entry, Message, Parsed, UUID_BYTES};
use crate::error::{Damage, Error, Result};
use crate::format::notes::{Note, Notes};
use crate::format::{Carry, Checked, Options, Rows, Start, Step, Types, UuidBounds, Walk};
use crate::ledger::{Cause, Kind, Span, Tiling};
use crate::limits::LIMITS;
use crate::source::Source;
use crate::uuid6;

/// What a [`Carry`] holds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// The file's length and number of entries, so that a carry of another file is refused.
    pub(super) size: u64,
    pub(super) entries: u64,
    /// The first entry of this walk.
    pub(super) from: u64,
    /// The entry that comes next.
    pub(super) next: u64,
    /// The last good message's UUID.
    pub(super) last: Option<[u8; UUID_BYTES]>,
    /// Where the last good message ends; before the first, where the data begins.
    pub(super) end: u64,
    /// Whether any message counted.
    pub(super) counted: bool,
    /// Bytes hashed in vain.
    pub(super) spent: u64,
    /// Where a message was looked for in vain behind the last good one.
    pub(super) tried: Option<u64>,
    /// Whether looking for one there would have taken more than may be hashed in vain.
    pub(super) exhausted: bool,
    /// Entries since the last good one that have no message.
    pub(super) failed: Notes,
    /// Entries in front of those that are damage. Notes are counted in entries.
    pub(super) marks: Notes,
    /// Once all ranges behind the index have been given: up to which entry those of the index are to be, and up to which offset
    /// they have been.
    pub(super) front: Option<(u64, u64)>,
    pub(super) ended: bool,
    /// The part that this walk is of.
    pub(super) part: Option<Progress>,
    /// Whether the entry before the next one has its message where it says, so that a part may end here.
    pub(super) stands: bool,
}

impl State {
    pub(super) fn prior(&self) -> Prior {
        Prior {
            last: self.last,
            end: self.end,
        }
    }
}

pub(super) struct SealedWalk {
    pub(super) options: Options,
    pub(super) bounds: UuidBounds,
    types: Types,
    pub(super) checker: Checker,
    pub(super) state: State,
    pub(super) tiling: Tiling,
    pub(super) messages: Vec<Message>,
    pub(super) spans: Vec<Span>,
    /// The ranges of the index that are being given.
    pub(super) front_ranges: Option<FrontRanges>,
    pub(super) suspects_key: bool,
    /// The index hash of what is in the file, once it is known.
    pub(super) index_hash: Option<u64>,
    /// Damage was met reading strictly: the walk only goes on to learn which is the first in the file.
    pub(super) runs_on: bool,
    /// The first damage in the file, as far as it has been looked for.
    pub(super) first: Option<Damage>,
}

/// What one advance came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    On,
    /// What comes next would push the messages that this step has out of the window, or is damage that ends the reading.
    Full,
    End,
}

impl SealedWalk {
    pub(super) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        start: Start<'_>,
    ) -> Result<Self> {
        let front = Front::open(&source, options)?;
        let state = State::at(&source, &front, options, start)?;
        let mut walk = Self::new(source, options, front, state);
        walk.keep_to_part()?;
        Ok(walk)
    }

    /// A walk of a file whose front is known.
    pub(super) fn new(
        source: Arc<dyn Source>,
        options: &Options,
        front: Front,
        state: State,
    ) -> Self {
        let reader = Reader::sequential(source.clone(), options);
        let scout = Reader::sequential(source, options);
        let mut checker = Checker::new(reader, scout, front);
        checker.spent = state.spent;
        checker.peak = state.part.map_or(0, |part| part.peak);
        Self {
            options: options.clone(),
            bounds: UuidBounds::of(&options.wanted),
            types: Types::of(&options.wanted),
            checker,
            tiling: Tiling::resume(state.end, None),
            state,
            messages: Vec::new(),
            spans: Vec::new(),
            front_ranges: None,
            suspects_key: false,
            index_hash: None,
            runs_on: false,
            first: None,
        }
    }

    pub(super) const fn front(&self) -> &Front {
        &self.checker.front
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.checker.reader.source
    }

    /// Goes on by one entry.
    pub(super) fn advance(&mut self) -> Result<Advance> {
        let front = *self.front();
        if self.stops_at_damage() && !front.terminator_is_zero && self.state.from == 0 {
            return self.meet_damage();
        }
        let number = self.state.next;
        if number >= front.entries {
            return self.finish();
        }
        if self.is_behind_part()? {
            self.end_part()?;
            self.begin_front(number);
            return Ok(Advance::End);
        }
        if number.is_multiple_of(POLL_EVERY) {
            self.options.poll()?;
        }
        if self.state.exhausted {
            self.fail(number, Some(Fault::SearchLimit))?;
            return Ok(Advance::On);
        }
        let entry = self.checker.reader.entry_and_next(number, front.entries)?;
        if !self.messages.is_empty() {
            if !self.has_at_hand(entry.offset) {
                return Ok(Advance::Full);
            }
        } else if entry.offset == self.state.end && front.in_bounds(entry.offset) {
            let body = self.needs_bodies();
            self.checker
                .reader
                .bring(entry.offset, front.data_end, body)?;
        }
        if entry.offset == self.state.end
            && let Some(advance) = self.advance_run(number)?
        {
            return Ok(advance);
        }
        let before = (self.checker.spent, self.state.tried, self.state.exhausted);
        let prior = self.state.prior();
        let own = self.checker.check(number, &entry, entry.offset, &prior)?;
        let (found, fault) = match own {
            Ok(message) => (Some(message), None),
            Err(fault) => (self.try_behind(number, &entry, &prior)?, Some(fault)),
        };
        let is_damage =
            fault.is_some() || found.is_some_and(|message| message.position != prior.end);
        let advance = if is_damage && self.stops_at_damage() {
            (self.checker.spent, self.state.tried, self.state.exhausted) = before;
            return self.meet_damage();
        } else if let Some(message) = found {
            self.commit(&entry, message, fault)?
        } else {
            self.fail(number, fault)?;
            Advance::On
        };
        if advance == Advance::Full {
            (self.checker.spent, self.state.tried, self.state.exhausted) = before;
        }
        Ok(advance)
    }

    /// Goes on by several entries, if their messages stand one behind the other and are good.
    fn advance_run(&mut self, number: u64) -> Result<Option<Advance>> {
        let most = self.left_of_part(LIMITS.sealed_step_rows.saturating_sub(self.spans.len()));
        let prior = self.state.prior();
        let run = self.checker.check_run(number, most, &prior)?;
        let (Some(first), Some(last)) = (run.first().copied(), run.last().copied()) else {
            return Ok(None);
        };
        // They ascend, so those between the first and the last are wanted where these are; and all of them are longer than any.
        let are_wanted =
            !self.runs_on && self.bounds.contains(&first.uuid) && self.bounds.contains(&last.uuid);
        let too_large =
            self.options.values && last.end() - first.position > self.options.max_record_bytes;
        if !are_wanted || too_large {
            let run = run.to_vec();
            for message in run {
                let entry = Entry {
                    uuid: message.uuid,
                    offset: message.position,
                };
                let advance = self.commit(&entry, message, None)?;
                if advance != Advance::On {
                    return Ok(Some(advance));
                }
            }
            return Ok(Some(Advance::On));
        }
        let given = self.messages.len();
        self.messages.extend_from_slice(run);
        self.close_gap(first.position)?;
        let run = self.messages.get(given..).unwrap_or_default();
        self.tiling
            .cover_records(run.iter().map(Message::end), &mut self.spans);
        self.follow(&last);
        if !self.types.are_all() {
            let (reader, types) = (&self.checker.reader, &self.types);
            let run = self.messages.split_off(given);
            let is_wanted =
                |own: &Message| types.contain(own.type_bytes(reader.bytes(own.position)));
            self.messages.extend(run.into_iter().filter(is_wanted));
        }
        Ok(Some(Advance::On))
    }

    /// Goes on behind a good message.
    fn follow(&mut self, message: &Message) {
        self.checker.looked_at(message.position);
        self.state.last = Some(message.uuid);
        self.state.end = message.end();
        self.state.counted = true;
        self.state.next = message.number + 1;
        self.state.stands = true;
    }

    /// Whether the bodies of messages are read: to hash them, or to hand them out.
    fn needs_bodies(&self) -> bool {
        self.front().trailer.is_some() || self.options.values
    }

    /// Whether looking at what stands at `offset` leaves the window where it is.
    fn has_at_hand(&self, offset: u64) -> bool {
        let front = self.front();
        if !front.in_bounds(offset) {
            return true;
        }
        let reader = &self.checker.reader;
        match reader.held_header(offset, front.data_end) {
            Some(Parsed::Message(header)) if self.needs_bodies() => {
                reader.held(offset, header.total()).is_some()
            }
            Some(_) => true,
            None => false,
        }
    }

    /// The message of an entry that failed at its own offset, if it stands directly behind the last good one.
    fn try_behind(&mut self, number: u64, entry: &Entry, prior: &Prior) -> Result<Option<Message>> {
        let place = prior.end;
        if entry.offset == place {
            return Ok(None);
        }
        if let Some(trailer) = self.front().trailer {
            let ascends = prior.last.is_none_or(|last| entry.uuid > last);
            let is_worth_hashing =
                trailer.key_check_is_right && uuid6::is_v6(&entry.uuid) && ascends;
            if !is_worth_hashing || self.state.tried == Some(place) {
                return Ok(None);
            }
            self.state.tried = Some(place);
        }
        let checked = self.checker.check(number, entry, place, prior)?;
        if checked == Err(Fault::SearchLimit) {
            self.exhaust_part()?;
            self.state.exhausted = true;
        }
        Ok(checked.ok())
    }

    /// Notes that an entry has no message.
    fn fail(&mut self, number: u64, fault: Option<Fault>) -> Result<()> {
        let cause = fault.map_or(Cause::Unreferenced, Fault::cause);
        // Where too much was hashed in vain, all that are left fail.
        let count = match cause {
            Cause::SearchLimit => {
                self.exhaust_part()?;
                self.front().entries - number
            }
            _ => 1,
        };
        self.state.stands = false;
        self.state.next = number + count;
        self.state.failed.push(Note {
            start: number,
            end: number + count,
            cause,
        })
    }

    /// Takes in a message that counts, found although its entry has this fault.
    fn commit(&mut self, entry: &Entry, message: Message, fault: Option<Fault>) -> Result<Advance> {
        let is_past = !self.runs_on && self.bounds.is_past(&message.uuid);
        let is_wanted = !self.runs_on
            && self.bounds.contains(&message.uuid)
            && self.checker.reader.has_type(&message, &self.types)?;
        if is_wanted && !self.keep(&message)? {
            return Ok(Advance::Full);
        }
        self.close_gap(message.position)?;
        if is_past {
            self.end_part()?;
            self.begin_front(self.state.next);
            return Ok(Advance::End);
        }
        if fault.is_some() {
            self.mark_moved(entry, &message)?;
        }
        self.tiling
            .cover(message.end(), Kind::Record, None, &mut self.spans);
        self.follow(&message);
        self.state.stands = fault.is_none();
        if is_wanted {
            self.messages.push(message);
        }
        Ok(Advance::On)
    }

    /// Makes sure that what is handed out of a message is in the window. `false` where it cannot be before what this step has
    /// already was given out.
    fn keep(&mut self, message: &Message) -> Result<bool> {
        let reader = &self.checker.reader;
        let is_held = reader
            .held(message.position, handed_out(message, &self.options))
            .is_some();
        let is_too_large =
            self.options.values && message.header.total() > self.options.max_record_bytes;
        if (is_too_large || !is_held) && self.has_output() {
            return Ok(false);
        }
        self.checker.bring_checked(message, &self.options)?;
        Ok(true)
    }

    /// Whether this step has found anything.
    pub(super) fn has_output(&self) -> bool {
        !self.messages.is_empty() || !self.spans.is_empty()
    }

    /// Whether this step has as much as one should have.
    fn is_enough(&self, began_at: u64) -> bool {
        self.spans.len() >= LIMITS.sealed_step_rows
            || !self.spans.is_empty()
                && self.state.end.saturating_sub(began_at) >= self.options.window_bytes as u64
    }
}

impl Walk for SealedWalk {
    fn step(&mut self) -> Result<Step> {
        self.options.poll()?;
        self.messages.clear();
        self.spans.clear();
        if let Some(damage) = &self.first {
            return Err(Error::Damage(Box::new(damage.clone())));
        }
        if let Some(cause) = self.front().unreadable.filter(|_| !self.state.ended) {
            return self.give_up(cause);
        }
        let began_at = self.state.end;
        while !self.state.ended {
            if self.state.front.is_some() {
                self.state.ended = !self.give_front()?;
                break;
            }
            match self.advance()? {
                Advance::End if self.state.front.is_some() => {}
                Advance::End => self.state.ended = true,
                Advance::Full => break,
                Advance::On if self.is_enough(began_at) => break,
                Advance::On => {}
            }
        }
        self.state.spent = self.checker.spent;
        if let Some(part) = &mut self.state.part {
            part.peak = self.checker.peak;
        }
        Ok(if self.has_output() {
            Step::More
        } else {
            Step::Done
        })
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        let reader = &self.checker.reader;
        Box::new(SealedRows {
            messages: &self.messages,
            bytes_of: |_, message: &Message| reader.bytes(message.position),
        })
    }

    fn spans(&self) -> &[Span] {
        &self.spans
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

    fn offset(&self) -> u64 {
        if self.state.ended {
            self.front().len
        } else {
            self.state.end
        }
    }

    fn carry(&self) -> Carry {
        // A struct of numbers always has a JSON form.
        Carry(serde_json::to_string(&self.state).unwrap_or_default())
    }

    fn suspects_key(&self) -> bool {
        self.suspects_key
    }
}
