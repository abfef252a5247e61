//! Messages that stand one behind the other as the index says, checked together: nearly all of a good segment.

use super::judge::{self, Claim, Prior};
use super::layout::{CHECKSUM_BYTES, ENTRY_BYTES, Entry, Header, Message, UUID_BYTES};
use crate::checksum::Key;
use crate::checksum::batch::Batch;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::uuid6;

/// A pattern needs a constant.
const ENOUGH_MESSAGES: usize = LIMITS.enough_run_messages;

/// What a run is collected from.
pub(super) struct Stretch<'a> {
    /// The number of the first entry.
    pub(super) number: u64,
    pub(super) entries: &'a [[u8; ENTRY_BYTES]],
    /// Their checksums, of which some may be missing at the end.
    pub(super) checksums: &'a [[u8; CHECKSUM_BYTES]],
    /// What is at hand of the data behind the last good message, behind so many bytes of what is in front of it.
    pub(super) bytes: &'a [u8],
    pub(super) lead: usize,
    /// How much data there is behind it.
    pub(super) left: u64,
    pub(super) prior: Prior,
}

/// How many bytes may be hashed together: as many as were found good since the last failure. So what a failure makes worthless
/// is never more than what was good before it, and hostile files stay linear.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust(usize);

impl Trust {
    /// Before anything failed.
    pub(super) const FULL: Self = Self(LIMITS.run_bytes);

    /// Something failed.
    pub(super) const fn lose(&mut self) {
        self.0 = 0;
    }

    /// So many bytes were found good.
    pub(super) fn gain(&mut self, bytes: u64) {
        let bytes = saturating_usize(bytes);
        self.0 = self.0.saturating_add(bytes).min(LIMITS.run_bytes);
    }
}

/// Messages that are checked together, and what that takes.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) messages: Vec<Message>,
    stored: Vec<u64>,
    /// What is hashed of each: its UUID, and where it is.
    uuids: Vec<[u8; UUID_BYTES]>,
    extents: Vec<(usize, usize)>,
    /// How many bytes that is of all.
    bytes: usize,
    hashes: Vec<u64>,
    batch: Batch,
}

impl Run {
    /// Collects messages as long as each lies whole in what is at hand, and stands where the one before it ends, its
    /// UUID behind that one's. Keeps those in front of the first whose checksum is wrong.
    pub(super) fn check(&mut self, key: &Key, stretch: &Stretch<'_>, trust: &mut Trust) {
        self.collect(stretch, *trust);
        self.batch.hash_headed(
            key,
            &self.uuids,
            stretch.bytes,
            &self.extents,
            &mut self.hashes,
        );
        let pairs = self.stored.iter().zip(&self.hashes);
        let good = pairs.take_while(|(stored, hash)| stored == hash).count();
        if good < self.messages.len() {
            self.messages.truncate(good);
            trust.lose();
        } else {
            trust.gain(self.bytes as u64);
        }
        debug_assert!(self.is_judged_good(stretch.prior));
    }

    /// Whether each of the messages is good by the rules, one behind the other.
    fn is_judged_good(&self, mut prior: Prior) -> bool {
        let computed = self.stored.iter().zip(&self.hashes);
        let mut claims = self.messages.iter().zip(computed);
        claims.all(|(message, (stored, computed))| {
            let (message, stored) = (*message, *stored);
            let judged = judge::no_overlap(message.position, &prior)
                .and_then(|()| Claim { message, stored }.judge(*computed, &prior));
            prior = Prior {
                last: Some(message.uuid),
                end: message.end(),
            };
            judged.is_ok()
        })
    }

    fn collect(&mut self, stretch: &Stretch<'_>, trust: Trust) {
        self.messages.clear();
        self.stored.clear();
        self.uuids.clear();
        self.extents.clear();
        self.bytes = 0;
        let Stretch {
            number,
            bytes,
            lead,
            left,
            prior,
            ..
        } = *stretch;
        let (mut at, mut last) = (0_usize, prior.last);
        let pairs = stretch.entries.iter().zip(stretch.checksums);
        for (number, (entry, stored)) in (number..).zip(pairs).take(LIMITS.run_messages) {
            let entry = Entry::parse(number, entry);
            let Entry { uuid, offset, .. } = entry;
            let position = prior.end + at as u64;
            let ascends = last.is_none_or(|last| uuid > last) && uuid6::is_v6(&uuid);
            let (rest, left) = (bytes.get(lead + at..).unwrap_or_default(), left - at as u64);
            let header = match Header::parse(rest, left) {
                Ok(header) if ascends && offset == position => header,
                _ => break,
            };
            let room = match self.messages.len() {
                ..ENOUGH_MESSAGES => trust.0,
                _ => trust.0.min(LIMITS.near_run_bytes),
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
    }
}
