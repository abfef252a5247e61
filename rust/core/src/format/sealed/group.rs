//! Looking for several UUIDs in turns in a segment that is in memory: what each waits for from there, all of a group wait for
//! together.

use super::check::{Checker, Claim, Fault};
use super::lookup::{SealedLookup, Sought};
use super::search::Search;
use super::{ENTRY_BYTES, Entry, Message, UUID_BYTES};
use crate::checksum::{hash, hash_many};
use crate::error::Result;
use crate::prefetch::prefetch_read;

/// How many are looked for in turns: more than a processor can wait for at once.
pub(super) const GROUP: usize = 32;
/// A longer message is hashed where it lies, and not copied behind its UUID to be hashed with others.
const MAX_COPIED_BYTES: u64 = 2 << 10;
const LINE_BYTES: usize = 64;
/// How much of a message is asked for before its length is known, at most.
const MAX_AHEAD_BYTES: usize = 512;

/// What looking for several takes, kept from one time to the next.
#[derive(Debug, Default)]
pub(super) struct Group {
    searches: Vec<Search>,
    /// UUIDs and their messages, one behind the other, and where each is.
    bytes: Vec<u8>,
    extents: Vec<(usize, usize)>,
    claims: Vec<(usize, Claim)>,
    hashes: Vec<u64>,
    /// For each search the entry that it came to, and what that was found to be.
    entries: Vec<(u64, Option<Entry>)>,
    checked: Vec<Checked>,
    /// How long the last message was.
    usual: usize,
}

/// What checking an entry's message came to; nothing where there is no entry, or nothing yet.
type Checked = Option<std::result::Result<Message, Fault>>;

fn place(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// Entry number `number` of those that `index` begins with.
fn entry(index: &[u8], number: u64) -> Option<Entry> {
    let entries = index.as_chunks::<ENTRY_BYTES>().0;
    entries.get(place(number)).map(Entry::parse)
}

fn prefetch_entry(index: &[u8], number: u64) {
    prefetch_read(index, place(number).saturating_mul(ENTRY_BYTES));
}

impl Group {
    /// Looks for these UUIDs, at most [`GROUP`], in the segment that `bytes` are, and hands what that comes to to `take`, in
    /// their order.
    pub(super) fn find(
        &mut self,
        lookup: &SealedLookup,
        checker: &mut Checker,
        bytes: &[u8],
        uuids: &[[u8; UUID_BYTES]],
        mut take: impl FnMut(&mut Checker, Sought) -> Result<()>,
    ) -> Result<()> {
        let index = bytes
            .get(..place(lookup.front.entry_at(lookup.front.entries)))
            .unwrap_or_default();
        self.search(lookup, index, uuids)?;
        self.fetch(lookup, index, bytes);
        self.check(lookup, checker, bytes)?;
        for ((number, entry), checked) in self.entries.iter().zip(&self.checked) {
            let sought = lookup.conclude(checker, *number, entry.zip(*checked))?;
            take(checker, sought)?;
        }
        Ok(())
    }

    /// Searches for all of them, a look each in turns.
    fn search(
        &mut self,
        lookup: &SealedLookup,
        index: &[u8],
        uuids: &[[u8; UUID_BYTES]],
    ) -> Result<()> {
        self.searches.clear();
        if let (Some(table), [_, _, ..]) = (lookup.table(), uuids) {
            uuids.iter().for_each(|uuid| table.prefetch(uuid));
        }
        for uuid in uuids {
            let search = lookup.search(uuid, |number| Ok(entry(index, number)))?;
            if let Some(place) = search.place() {
                prefetch_entry(index, place);
            }
            self.searches.push(search);
        }
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for search in &mut self.searches {
                let Some(seen) = search.place().and_then(|place| entry(index, place)) else {
                    continue;
                };
                search.saw(&seen.uuid);
                if let Some(next) = search.place() {
                    prefetch_entry(index, next);
                    goes_on = true;
                }
            }
        }
        Ok(())
    }

    /// Asks for the messages of the entries that were found.
    fn fetch(&mut self, lookup: &SealedLookup, index: &[u8], bytes: &[u8]) {
        self.entries.clear();
        for search in &self.searches {
            let number = search.answer();
            let found = entry(index, number).filter(|entry| entry.uuid == *search.wanted());
            self.entries.push((number, found));
            let Some(found) = found else { continue };
            let start = place(found.offset);
            for ahead in (0..self.usual.clamp(LINE_BYTES, MAX_AHEAD_BYTES)).step_by(LINE_BYTES) {
                prefetch_read(bytes, start.saturating_add(ahead));
            }
            if let Some(trailer) = &lookup.front.trailer {
                prefetch_read(bytes, place(trailer.checksum_at(number)));
            }
            prefetch_entry(index, number.saturating_sub(1));
        }
    }

    /// Checks the messages: short ones together.
    fn check(&mut self, lookup: &SealedLookup, checker: &mut Checker, bytes: &[u8]) -> Result<()> {
        let prior = lookup.nothing_before();
        self.bytes.clear();
        self.extents.clear();
        self.claims.clear();
        self.checked.clear();
        for (number, entry) in &self.entries {
            let Some(entry) = entry else {
                self.checked.push(None);
                continue;
            };
            checker.spent = 0; // what other look-ups hashed in vain is not this one's
            let Some(trailer) = &lookup.front.trailer else {
                let checked = checker.check(*number, entry, entry.offset, &prior)?;
                self.checked.push(Some(checked));
                continue;
            };
            let claim = match checker.claim(trailer, *number, entry, entry.offset, &prior)? {
                Ok(claim) => claim,
                Err(fault) => {
                    self.checked.push(Some(Err(fault)));
                    continue;
                }
            };
            let Message {
                position, header, ..
            } = claim.message;
            let start = place(position);
            let message = bytes.get(start..start.saturating_add(place(header.total())));
            self.usual = place(header.total());
            match message.filter(|_| header.total() <= MAX_COPIED_BYTES) {
                Some(message) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(&entry.uuid);
                    self.bytes.extend_from_slice(message);
                    self.extents.push((start, UUID_BYTES + message.len()));
                    self.claims.push((self.checked.len(), claim));
                    self.checked.push(None);
                }
                None => {
                    let checked = checker.check(*number, entry, entry.offset, &prior)?;
                    self.checked.push(Some(checked));
                }
            }
        }
        let key = &lookup.front.key;
        if let [_] = self.claims.as_slice() {
            self.hashes.clear();
            self.hashes.push(hash(key, &self.bytes));
        } else {
            hash_many(key, &self.bytes, &self.extents, &mut self.hashes);
        }
        for ((row, claim), computed) in self.claims.iter().zip(&self.hashes) {
            if let Some(checked) = self.checked.get_mut(*row) {
                *checked = Some(claim.judge(*computed, &prior));
            }
        }
        Ok(())
    }
}
