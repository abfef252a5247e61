//! Adjacent messages, in the order of the index, checked together: nearly all of a sound segment.

use std::ops::Range;

use super::judge::{self, Candidate, Prior};
use super::layout::{Entry, Header, Message, UUID_BYTES};
use super::reader::Reader;
use super::trailer::Trailer;
use crate::checksum::batch::Batch;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::uuid6;

/// A pattern needs a constant.
const ENOUGH_MESSAGES: usize = LIMITS.enough_run_messages;

/// The batch limit: how many bytes may be hashed together. It is as many as were found good since the last
/// failure. So a failure never wastes more hashing than what was good before it, and hostile files take linear
/// time.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimit(usize);

impl BatchLimit {
    /// The limit before any failure.
    pub(super) const FULL: Self = Self(LIMITS.run_bytes);

    /// Resets the limit after a failure.
    pub(super) const fn reset(&mut self) {
        self.0 = 0;
    }

    /// Raises the limit by bytes that were found good.
    pub(super) fn raise(&mut self, bytes: u64) {
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
    pub(super) fn check(
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
            let (rest, left) = (bytes.get(lead + at..).unwrap_or_default(), left - at as u64);
            let header = match Header::parse(rest, left) {
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
