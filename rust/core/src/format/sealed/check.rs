//! Reads what rules 15 and 16 need, and lets `judge` decide. Walks and look-ups share it. Adjacent messages, in the
//! order of the index, are checked together: nearly all of a sound segment.

use std::ops::Range;

use super::front::{Front, POLL_EVERY, Segment};
use super::judge::{self, Candidate, Fault, Judged, Prior};
use super::layout::{Entry, Header, Message, Parsed, UUID_BYTES};
use super::reader::Reader;
use super::trailer::Trailer;
use crate::checksum::batch::Batch;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::uuid6;
use crate::walk::Budget;

/// What the budget charges for a look at a message near the one before, and for one elsewhere, in bytes.
const NEAR_COST: u64 = 64;
const FAR_COST: u64 = 512;
/// A message that begins at most this far after the last one that was looked at costs no read.
const NEAR_BYTES: u64 = 4 << 10;

/// A pattern needs a constant.
const ENOUGH_MESSAGES: usize = LIMITS.enough_run_messages;

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
        if !self.front.in_bounds(entry.offset) {
            return Ok(Err(Fault::OutOfBounds));
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

    /// Whether no earlier entry can keep the walk from returning this message, which is good at its own offset. With its checksum: the entry before has a smaller UUID. Without: the index ascends, and the message
    /// before ends where this one begins.
    pub(super) fn is_independent(&mut self, message: &Message) -> Result<bool> {
        let Some(before) = message.number.checked_sub(1) else {
            return Ok(true);
        };
        let before = self.reader.entry(before)?;
        if self.front.trailer_of(message.number).is_some() {
            return Ok(judge::is_alone(&message.uuid, Some(before)));
        }
        if !self.front.in_bounds(before.offset) {
            return Ok(false);
        }
        let parsed = self.reader.header(before.offset)?;
        Ok(parsed.is_ok_and(|header| before.offset + header.total() == message.position))
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

/// The batch limit: how many bytes may be hashed together. It is as many as were found good since the last
/// failure. So a failure never wastes more hashing than what was good before it, and hostile files take linear
/// time.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimit(usize);

impl BatchLimit {
    /// The limit before any failure.
    const FULL: Self = Self(LIMITS.run_bytes);

    /// Resets the limit after a failure.
    const fn reset(&mut self) {
        self.0 = 0;
    }

    /// Raises the limit by bytes that were found good.
    fn raise(&mut self, bytes: u64) {
        let bytes = saturating_usize(bytes);
        self.0 = self.0.saturating_add(bytes).min(LIMITS.run_bytes);
    }
}

/// Messages that are checked together, and reused buffers.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) messages: Vec<Message>,
    stored: Vec<u64>,
    /// What is hashed of each: its UUID, and its extent.
    uuids: Vec<[u8; UUID_BYTES]>,
    extents: Vec<(usize, usize)>,
    /// How many bytes are hashed in total.
    bytes: usize,
    hashes: Vec<u64>,
    batch: Batch,
}

impl Run {
    /// Collects messages of these entries from the window. Each must lie whole in the window of emitted messages,
    /// begin where the one before ends, and have a greater UUID. Keeps the ones before the first whose checksum
    /// does not match.
    fn check(
        &mut self,
        reader: &Reader,
        trailer: &Trailer,
        numbers: Range<u64>,
        prior: &Prior,
        batch_limit: &mut BatchLimit,
    ) {
        let bytes = self.collect(reader, trailer, numbers, prior, *batch_limit);
        let (key, hashes) = (&reader.front.key, &mut self.hashes);
        self.batch
            .hash_headed(key, &self.uuids, bytes, &self.extents, hashes);
        let pairs = self.stored.iter().zip(&self.hashes);
        let good = pairs.take_while(|(stored, hash)| stored == hash).count();
        if good < self.messages.len() {
            self.messages.truncate(good);
            batch_limit.reset();
        } else {
            batch_limit.raise(self.bytes as u64);
        }
        debug_assert!(self.is_judged_good(*prior));
    }

    /// Whether `judge` finds each of the messages good, one after the other.
    fn is_judged_good(&self, mut prior: Prior) -> bool {
        let computed = self.stored.iter().zip(&self.hashes);
        let mut candidates = self.messages.iter().zip(computed);
        candidates.all(|(message, (stored, computed))| {
            let (message, stored) = (*message, *stored);
            let judged = judge::no_overlap(message.position, &prior)
                .and_then(|()| Candidate { message, stored }.judge(*computed, &prior));
            prior = Prior {
                last: Some(message.uuid),
                end: message.end(),
            };
            judged.is_ok()
        })
    }

    /// Collects messages. Returns the bytes that their extents are relative to.
    fn collect<'a>(
        &mut self,
        reader: &'a Reader,
        trailer: &Trailer,
        numbers: Range<u64>,
        prior: &Prior,
        batch_limit: BatchLimit,
    ) -> &'a [u8] {
        self.messages.clear();
        self.stored.clear();
        self.uuids.clear();
        self.extents.clear();
        self.bytes = 0;
        let number = numbers.start;
        // Some checksums may be missing at the end.
        let checksums = reader.checksums_in_view(trailer.checksum_at(number));
        let pairs = reader.entries_in_view(numbers).iter().zip(checksums);
        let (lead, bytes) = reader.bytes_led(prior.end);
        let left = reader.front.data_end.saturating_sub(prior.end);
        let (mut at, mut last) = (0_usize, prior.last);
        for (number, (entry, stored)) in (number..).zip(pairs).take(LIMITS.run_messages) {
            let Entry { uuid, offset, .. } = Entry::parse(number, entry);
            let position = prior.end + at as u64;
            let ascends = last.is_none_or(|last| uuid > last) && uuid6::is_v6(&uuid);
            let Some(rest) = bytes.get(lead + at..) else {
                break;
            };
            let header = match Header::parse(rest, left - at as u64) {
                Ok(header) if ascends && offset == position => header,
                _ => break,
            };
            let room = match self.messages.len() {
                ..ENOUGH_MESSAGES => batch_limit.0,
                _ => batch_limit.0.min(LIMITS.near_run_bytes),
            };
            let room = room.saturating_sub(self.bytes + UUID_BYTES);
            let len = saturating_usize(header.total());
            let Some(message) = rest.get(..len).filter(|_| len <= room) else {
                break;
            };
            self.uuids.push(uuid);
            self.extents.push((lead + at, message.len()));
            self.bytes += UUID_BYTES + message.len();
            self.stored.push(u64::from_be_bytes(*stored));
            self.messages.push(Message {
                number,
                uuid,
                position,
                header,
            });
            last = Some(uuid);
            at += message.len();
        }
        bytes
    }
}
