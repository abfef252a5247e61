//! Reads what rules 15 and 16 need, and lets `judge` decide. Walks and look-ups share it.

use super::front::{Front, Segment};
use super::index::POLL_EVERY;
use super::judge::{self, Fault, Judged, Prior};
use super::layout::{Entry, Message, Parsed, UUID_BYTES};
use super::reader::Reader;
use super::run::{BatchLimit, Run};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::walk::Budget;

/// What the budget charges for a look at a message near the one before, and for one elsewhere, in bytes.
const NEAR_COST: u64 = 64;
const FAR_COST: u64 = 512;
/// A message that begins at most this far after the last one that was looked at costs no read.
const NEAR_BYTES: u64 = 4 << 10;

/// What searching has cost, and the position that the next look is measured from (a near look is cheap).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effort {
    /// Bytes hashed in vain.
    pub(super) budget: Budget,
    /// The beginning of the message that was looked at last.
    pub(super) looked_at: u64,
}

impl Effort {
    /// Restores the effort to `before`, because the work since then will be done again.
    pub(super) const fn restore(&mut self, before: Self) {
        self.budget.take_back(before.budget);
        self.looked_at = before.looked_at;
    }

    /// Returns the cost of a look at the message at `at`, and makes it the last one.
    fn look(&mut self, at: u64) -> u64 {
        let near = self.looked_at..=self.looked_at.saturating_add(NEAR_BYTES);
        self.looked_at = at;
        if near.contains(&at) {
            NEAR_COST
        } else {
            FAR_COST
        }
    }
}

/// The next entry that is evidence, as found by the last search for one.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    /// The search began with this entry.
    from: u64,
    /// The number and UUID of the evidence, if there is any.
    next: Option<(u64, [u8; UUID_BYTES])>,
}

/// Checks the messages of one file.
pub(super) struct Checker {
    pub(super) reader: Reader,
    /// Reads entries ahead of the ones being checked.
    scout: Reader,
    pub(super) front: Front,
    pub(super) effort: Effort,
    /// The cost of all looks of the current check.
    cost: u64,
    evidence: Option<Evidence>,
    /// Created on first use. A look-up needs none.
    pub(super) run: Option<Box<Run>>,
    pub(super) limit: BatchLimit,
}

impl Checker {
    /// Creates a checker. It opens two readers with `reader`.
    pub(super) fn new(segment: &Segment, reader: fn(&Segment) -> Reader) -> Self {
        Self {
            reader: reader(segment),
            scout: reader(segment),
            front: segment.front,
            effort: Effort::default(),
            cost: 0,
            evidence: None,
            run: None,
            limit: BatchLimit::FULL,
        }
    }

    /// The verdict on an entry's message at its own offset: rule 15 if its checksum is whole, else rule 16.
    pub(super) fn check(&mut self, entry: &Entry, prior: &Prior) -> Result<Judged<Message>> {
        if let Err(fault) = judge::in_bounds(&self.front, entry.offset) {
            return Ok(Err(fault));
        }
        self.cost = 0;
        let checked = match self.front.trailer_of(entry.number) {
            Some(_) => self.check_by_checksum(entry, prior)?,
            None => self.check_by_structure(entry, prior)?,
        };
        match checked {
            Ok(message) => self.limit.raise(message.header.total()),
            Err(_) => {
                self.effort.budget.affords(self.cost, self.front.len);
                self.effort.budget.spend(self.cost);
                self.limit.reset();
            }
        }
        Ok(checked)
    }

    /// Parses the message at `at`, and charges the look.
    fn look(&mut self, at: u64) -> Result<Parsed> {
        self.cost += self.effort.look(at);
        self.reader.header(at)
    }

    /// The check of a message whose checksum is whole in the file.
    fn check_by_checksum(&mut self, entry: &Entry, prior: &Prior) -> Result<Judged<Message>> {
        let message = match self.parse(entry, prior)? {
            Ok(message) => message,
            fault => return Ok(fault),
        };
        let verified = self.verify(&message)?;
        Ok(verified
            .and_then(|()| judge::ascends(&entry.uuid, prior))
            .map(|()| message))
    }

    /// Compares a message with its checksum, as far as the file has that.
    fn verify(&mut self, message: &Message) -> Result<Judged<()>> {
        let (stored, mask) = self.reader.checksum(message.number)?;
        if mask == 0 {
            return Ok(Ok(()));
        }
        let len = message.header.total();
        if !self.effort.budget.affords(len, self.front.len) {
            return Ok(Err(Fault::SearchLimit));
        }
        let computed = self.reader.hash(&message.uuid, message.position, len)? & mask;
        if computed == stored {
            return Ok(Ok(()));
        }
        self.effort.budget.spend(len);
        Ok(Err(Fault::Checksum { stored, computed }))
    }

    /// Whether an entry's message lies in the data, and matches its checksum, as far as the file has that.
    pub(super) fn is_checksum_right(&mut self, number: u64) -> Result<bool> {
        let entry = self.reader.entry(number)?;
        if !self.front.in_bounds(entry.offset) {
            return Ok(false);
        }
        if entry.offset == self.effort.looked_at {
            // The message is adjacent to the one before.
            self.reader.load_message(entry.offset, true, 0)?;
        }
        let parsed = self.reader.header(entry.offset)?;
        let Ok(message) = judge::message(&entry, parsed) else {
            return Ok(false);
        };
        self.effort.looked_at = message.end();
        Ok(self.verify(&message)?.is_ok())
    }

    /// The check of a message whose checksum is not, or not whole, in the file: by the entries around it.
    fn check_by_structure(&mut self, entry: &Entry, prior: &Prior) -> Result<Judged<Message>> {
        let number = entry.number;
        if let Err(fault) = judge::ascends(&entry.uuid, prior) {
            return Ok(Err(fault));
        }
        let next = self.next_evidence(number)?;
        if let Err(fault) = judge::not_ahead(&entry.uuid, next, prior) {
            return Ok(Err(fault));
        }
        let message = match self.parse(entry, prior)? {
            Ok(message) => message,
            fault => return Ok(fault),
        };
        if let Err(fault) = self.verify(&message)? {
            return Ok(Err(fault));
        }
        let (end, expected) = (message.end(), self.reader.beginning(number + 1)?);
        let next_fits = end != expected && self.does_next_fit(number, end)?;
        Ok(judge::confirmed(end, expected, next_fits).map(|()| message))
    }

    /// Parses the message at an entry's offset, unless it overlaps the one before.
    fn parse(&mut self, entry: &Entry, prior: &Prior) -> Result<Judged<Message>> {
        if let Err(fault) = judge::no_overlap(entry.offset, prior) {
            return Ok(Err(fault));
        }
        if self.effort.budget.is_exceeded(self.front.len) {
            return Ok(Err(Fault::SearchLimit));
        }
        Ok(judge::message(entry, self.look(entry.offset)?))
    }

    /// Whether the message at `end` ends where the entry after the next begins. The last entry has no next.
    fn does_next_fit(&mut self, number: u64, end: u64) -> Result<bool> {
        if number + 1 >= self.front.entries || end >= self.front.data_end {
            return Ok(false);
        }
        let expected = self.reader.beginning(number + 2)?;
        let parsed = self.look(end)?;
        Ok(parsed.is_ok_and(|header| end + header.total() == expected))
    }

    /// The UUID of the next entry after this one whose offset is in bounds and whose UUID is of version 6.
    fn next_evidence(&mut self, number: u64) -> Result<Option<[u8; UUID_BYTES]>> {
        let is_known = |known: &Evidence| {
            known.from <= number && known.next.is_none_or(|(next, _)| number < next)
        };
        if !self.evidence.as_ref().is_some_and(is_known) {
            let next = self.find_evidence(number + 1)?;
            self.evidence = Some(Evidence { from: number, next });
        }
        Ok(self.evidence.and_then(|known| Some(known.next?.1)))
    }

    fn find_evidence(&mut self, from: u64) -> Result<Option<(u64, [u8; UUID_BYTES])>> {
        for number in from..self.front.entries {
            if (number - from) % POLL_EVERY == POLL_EVERY - 1 {
                self.reader.options.poll()?;
            }
            // The next one or two entries are in the window already.
            let reader = match number <= from + 1 {
                true => &mut self.reader,
                false => &mut self.scout,
            };
            let entry = reader.entry(number)?;
            if judge::is_evidence(&self.front, &entry) {
                return Ok(Some((number, entry.uuid)));
            }
        }
        Ok(None)
    }

    /// Loads what is emitted of a message into the reader's window: its lengths and type, and its value if values
    /// are wanted. Returns how many bytes that is. The window moves only if they are not in it yet.
    ///
    /// # Errors
    /// [`Error::Limit`] for a message that is larger than may be emitted.
    pub(super) fn load_verified(&mut self, message: &Message) -> Result<u64> {
        let (position, total) = (message.position, message.header.total());
        self.reader.admit(message)?;
        let len = self.reader.emitted_bytes(message);
        if self.reader.in_window(position, len).is_some() {
            return Ok(len);
        }
        self.reader.load_whole(position, len)?;
        if self.reader.options.values {
            // Loads and hashes the bytes again, so that exactly the hashed bytes are emitted.
            let (stored, mask) = self.reader.checksum(message.number)?;
            if mask > 0 && self.reader.hash(&message.uuid, position, total)? & mask != stored {
                return Err(self.reader.changed(position));
            }
        }
        Ok(len)
    }

    /// Whether no earlier entry can keep the walk from returning this one, whose message is good at its own
    /// offset. With its checksum: the entry before has a smaller UUID. Without: the index ascends, and the message
    /// before ends where this one begins.
    pub(super) fn is_independent(&mut self, entry: &Entry) -> Result<bool> {
        let Some(before) = entry.number.checked_sub(1) else {
            return Ok(true);
        };
        let before = self.reader.entry(before)?;
        if self.front.trailer_of(entry.number).is_some() {
            return Ok(judge::is_alone(&entry.uuid, Some(before)));
        }
        if !self.front.in_bounds(before.offset) {
            return Ok(false);
        }
        let parsed = self.reader.header(before.offset)?;
        Ok(parsed.is_ok_and(|header| before.offset + header.total() == entry.offset))
    }

    /// Entry number `number`, read without moving the window of the check.
    pub(super) fn entry_elsewhere(&mut self, number: u64) -> Result<Entry> {
        self.scout.entry(number)
    }

    /// Checks up to `most` messages together, from entry `number` on. Returns the ones that [`check`](Self::check)
    /// would find good one after the other, as far as the window shows them directly after the last good one.
    pub(super) fn check_run(
        &mut self,
        number: u64,
        most: usize,
        prior: &Prior,
    ) -> Result<&[Message]> {
        let is_cheap = LIMITS.run_bytes as u64 <= self.effort.budget.left(self.front.len);
        let Some(trailer) = self.front.trailer_of(number).filter(|_| is_cheap) else {
            return Ok(&[]);
        };
        self.reader.checksum(number)?;
        let end = number.saturating_add(most as u64);
        let numbers = number..end.min(trailer.checksums);
        let run = self.run.get_or_insert_default();
        run.check(&self.reader, trailer, numbers, prior, &mut self.limit);
        Ok(&run.messages)
    }
}
