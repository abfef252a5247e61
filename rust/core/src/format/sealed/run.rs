//! Messages that stand one behind the other as the index says, checked together: nearly all of a good segment.

use super::check::Prior;
use super::reader::MAX_COPIED_BYTES;
use super::{CHECKSUM_BYTES, ENTRY_BYTES, Entry, Header, Message, Parsed, UUID_BYTES};
use crate::checksum::Key;
use crate::checksum::batch::Batch;
use crate::uuid6;

/// How many messages are checked together at most.
pub(super) const MAX_MESSAGES: usize = 512;
/// How many bytes they have together at most, their UUIDs among them: what the nearer caches hold.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// What a run is collected from.
pub(super) struct Stretch<'a> {
    /// The number of the first entry.
    pub(super) number: u64,
    pub(super) entries: &'a [[u8; ENTRY_BYTES]],
    /// Their checksums, of which some may be missing at the end.
    pub(super) checksums: &'a [[u8; CHECKSUM_BYTES]],
    /// What is at hand of the data behind the last good message, and how much there is.
    pub(super) bytes: &'a [u8],
    pub(super) left: u64,
    pub(super) prior: Prior,
}

/// Messages that are checked together, and what that takes.
#[derive(Debug)]
pub(super) struct Run {
    messages: Vec<Message>,
    stored: Vec<u64>,
    /// UUIDs and their messages, one behind the other, and where each is.
    joined: Vec<u8>,
    extents: Vec<(usize, usize)>,
    hashes: Vec<u64>,
    batch: Batch,
    /// How many bytes may be hashed together: as many as were found good since the last failure. So what a failure makes
    /// worthless is never more than what was good before it, and hostile files stay linear.
    trust: usize,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            stored: Vec::new(),
            joined: Vec::new(),
            extents: Vec::new(),
            hashes: Vec::new(),
            batch: Batch::new(),
            trust: MAX_BYTES,
        }
    }
}

impl Run {
    /// Nothing more is hashed together before enough was found good.
    pub(super) const fn distrust(&mut self) {
        self.trust = 0;
    }

    /// So many bytes were found good.
    pub(super) fn trust(&mut self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(MAX_BYTES);
        self.trust = self.trust.saturating_add(bytes).min(MAX_BYTES);
    }

    /// Collects messages as long as each is short, lies whole in what is at hand, and stands where the one before it ends, its
    /// UUID behind that one's. Keeps those in front of the first whose checksum is wrong.
    pub(super) fn check(&mut self, key: &Key, stretch: &Stretch<'_>) {
        self.collect(stretch);
        self.batch
            .hash(key, &self.joined, &self.extents, &mut self.hashes);
        let pairs = self.stored.iter().zip(&self.hashes);
        let good = pairs.take_while(|(stored, hash)| stored == hash).count();
        if good < self.messages.len() {
            self.messages.truncate(good);
            self.distrust();
        } else {
            self.trust(self.joined.len() as u64);
        }
    }

    fn collect(&mut self, stretch: &Stretch<'_>) {
        self.messages.clear();
        self.stored.clear();
        self.joined.clear();
        self.extents.clear();
        let Stretch {
            number,
            bytes,
            left,
            prior,
            ..
        } = *stretch;
        let (mut at, mut last) = (0_usize, prior.last);
        let pairs = stretch.entries.iter().zip(stretch.checksums);
        for (number, (entry, stored)) in (number..).zip(pairs).take(MAX_MESSAGES) {
            let Entry { uuid, offset } = Entry::parse(entry);
            let position = prior.end + at as u64;
            let ascends = last.is_none_or(|last| uuid > last) && uuid6::is_v6(&uuid);
            let (rest, left) = (bytes.get(at..).unwrap_or_default(), left - at as u64);
            let header = match Header::parse(rest, left) {
                Parsed::Message(header) if ascends && offset == position => header,
                _ => break,
            };
            let (start, room) = (self.joined.len(), self.trust - self.joined.len());
            let message = usize::try_from(header.total())
                .ok()
                .filter(|len| header.total() <= MAX_COPIED_BYTES && UUID_BYTES + len <= room)
                .and_then(|len| rest.get(..len));
            let Some(message) = message else {
                break;
            };
            self.joined.extend_from_slice(&uuid);
            self.joined.extend_from_slice(message);
            self.extents.push((start, UUID_BYTES + message.len()));
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

    /// The messages that were found good.
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }
}
