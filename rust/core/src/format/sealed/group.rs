//! Looks up several UUIDs in turns, in a segment that is in memory. Their waits for memory overlap.

use super::check::Checker;
use super::front::Front;
use super::judge::{self, Candidate, Prior};
use super::layout::{ENTRY_BYTES, Entry, Header, Message, UUID_BYTES};
use super::proof::{Answer, IndexProof};
use super::search::{Near, Search};
use crate::bug::OrBug;
use crate::checksum::batch::Batch;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::prefetch::{CACHE_LINE_BYTES, prefetch_read, prefetch_run};
use crate::saturating::saturating_usize;

/// The most bytes of a message to prefetch before its length is known.
const MAX_AHEAD_BYTES: usize = 512;

/// The state of a group of look-ups. It is reused, to save allocations.
#[derive(Debug, Default)]
pub(super) struct Group {
    searches: Vec<Search>,
    found: Vec<SearchResult>,
    /// Offsets to prefetch next. They are collected first: work between two requests would let the processor have
    /// fewer in flight, since each may wait for its address to be translated.
    ahead: Vec<usize>,
    /// UUIDs and their messages, adjacent, and the extent of each.
    bytes: Vec<u8>,
    extents: Vec<(usize, usize)>,
    candidates: Vec<(usize, Candidate)>,
    batch: Batch,
    hashes: Vec<u64>,
    /// The length of the last message, in bytes.
    usual: usize,
}

/// The result of one search.
#[derive(Clone, Copy, Debug)]
struct SearchResult {
    /// The entry that has the UUID, if one has.
    entry: Option<Entry>,
    /// Its message, if it is good for certain.
    good: Option<Message>,
}

/// A segment in memory.
#[derive(Clone, Copy)]
struct Memory<'a> {
    bytes: &'a [u8],
    /// The index, without its terminator.
    entries: &'a [[u8; ENTRY_BYTES]],
}

impl<'a> Memory<'a> {
    fn new(bytes: &'a [u8], entries: u64) -> Self {
        let all = bytes.as_chunks().0;
        Self {
            bytes,
            entries: all
                .get(..place(entries))
                .or_bug_default("an index within the file"),
        }
    }

    fn entry(&self, number: u64) -> Option<Entry> {
        let entry = self.entries.get(place(number))?;
        Some(Entry::parse(number, entry))
    }

    /// The bytes from an offset on.
    fn from(&self, offset: u64) -> &'a [u8] {
        self.bytes
            .get(place(offset)..)
            .or_bug_default("an offset within the file")
    }

    /// Prefetches the bytes at these offsets, and clears the list.
    fn prefetch(&self, offsets: &mut Vec<usize>) {
        offsets
            .iter()
            .for_each(|offset| prefetch_read(self.bytes, *offset));
        offsets.clear();
    }
}

/// An offset of the file as an index into memory. Saturates if it is too large.
fn place(at: u64) -> usize {
    saturating_usize(at)
}

impl Group {
    /// Looks up these UUIDs, at most [`Limits::lookup_group`](crate::limits::Limits::lookup_group), in the segment
    /// `bytes`. Passes each result to `take`, in their order.
    pub(super) fn find(
        &mut self,
        proof: &IndexProof,
        checker: &mut Checker,
        bytes: &[u8],
        uuids: &[[u8; UUID_BYTES]],
        mut take: impl FnMut(&mut Checker, Answer) -> Result<()>,
    ) -> Result<()> {
        let front = &proof.segment.front;
        let memory = Memory::new(bytes, front.entries);
        self.search(proof, memory, uuids)?;
        self.fetch(front, memory);
        self.check_short(front, memory);
        for SearchResult { entry, good } in &self.found {
            let answer = match good {
                Some(message) => Answer::Hit(*message),
                None => proof.examine(checker, *entry)?,
            };
            take(checker, answer)?;
        }
        Ok(())
    }

    /// Searches for all of them in turns, one look each.
    fn search(
        &mut self,
        proof: &IndexProof,
        memory: Memory<'_>,
        uuids: &[[u8; UUID_BYTES]],
    ) -> Result<()> {
        self.searches.clear();
        if let (Some(table), [_, _, ..]) = (proof.table(), uuids) {
            uuids.iter().for_each(|uuid| table.prefetch(uuid));
        }
        self.ahead.clear();
        for uuid in uuids {
            let (search, near) = proof.search(uuid, |number| Ok(memory.entry(number)))?;
            prefetch_next(&search, &mut self.ahead);
            self.searches.push(search);
            if let ([_], Some(near)) = (uuids, near) {
                self.prefetch_target(&proof.segment.front, near);
            }
        }
        while !self.ahead.is_empty() {
            memory.prefetch(&mut self.ahead);
            for search in &mut self.searches {
                if let Some(place) = search.place()
                    && let Some(seen) = memory.entry(place)
                {
                    search.saw(&seen.uuid);
                    prefetch_next(search, &mut self.ahead);
                }
            }
        }
        Ok(())
    }

    /// Prefetches the likely target of a search that is about to end: where the message and its checksum should
    /// be, and their neighbours.
    fn prefetch_target(&mut self, front: &Front, Near { number, offset }: Near) {
        let usual = self.usual.min(MAX_AHEAD_BYTES / 3);
        let from = place(offset).saturating_sub(usual);
        let lines = (from..from.saturating_add(3 * usual + 1)).step_by(CACHE_LINE_BYTES);
        self.ahead.extend(lines);
        let checksum = front.trailer.map(|trailer| trailer.checksum_at(number));
        self.ahead.extend(checksum.map(place));
    }

    /// Prefetches the messages of the entries that were found.
    fn fetch(&mut self, front: &Front, memory: Memory<'_>) {
        self.found.clear();
        for search in &self.searches {
            let entry = memory.entry(search.answer());
            let entry = entry.filter(|entry| entry.uuid == *search.target());
            if let Some(entry) = &entry {
                let number = entry.number;
                let checksum = front.trailer.map(|trailer| trailer.checksum_at(number));
                self.ahead.push(place(entry.offset));
                self.ahead.extend(checksum.map(place));
            }
            self.found.push(SearchResult { entry, good: None });
        }
        memory.prefetch(&mut self.ahead);
        let usual = self.usual.min(MAX_AHEAD_BYTES);
        for entry in self.found.iter().filter_map(|found| found.entry) {
            // The first cache line was prefetched before.
            let after = place(entry.offset).saturating_add(CACHE_LINE_BYTES);
            prefetch_run(memory.bytes, after, usual.saturating_sub(CACHE_LINE_BYTES));
        }
    }

    /// Verifies short messages together. A message that is not certainly good is left to be checked by itself.
    fn check_short(&mut self, front: &Front, memory: Memory<'_>) {
        self.bytes.clear();
        self.extents.clear();
        self.candidates.clear();
        let Some(trailer) = front.trailer else {
            return;
        };
        for (row, found) in self.found.iter().enumerate() {
            let is_checked =
                |entry: &Entry| front.in_bounds(entry.offset) && entry.number < trailer.checksums;
            let Some(entry) = found.entry.filter(is_checked) else {
                continue;
            };
            let (rest, left) = (memory.from(entry.offset), front.data_end - entry.offset);
            let parsed = Header::parse(rest, left);
            let checksum = memory.from(trailer.checksum_at(entry.number));
            if let (Ok(message), Some(stored)) = (
                judge::message(&entry, parsed),
                Cursor::new(checksum).u64_be(),
            ) && message.header.total() <= LIMITS.copied_bytes
                && let Some(bytes) = rest.get(..place(message.header.total()))
            {
                self.usual = bytes.len();
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&entry.uuid);
                self.bytes.extend_from_slice(bytes);
                self.extents.push((start, UUID_BYTES + self.usual));
                self.candidates.push((row, Candidate { message, stored }));
            }
        }
        self.batch
            .hash(&front.key, &self.bytes, &self.extents, &mut self.hashes);
        let nothing = Prior::nothing(front);
        for ((row, candidate), computed) in self.candidates.iter().zip(&self.hashes) {
            if let Ok(message) = candidate.judge(*computed, &nothing)
                && let before = message.number.checked_sub(1)
                && judge::is_alone(
                    &message.uuid,
                    before.and_then(|before| memory.entry(before)),
                )
                && let Some(found) = self.found.get_mut(*row)
            {
                found.good = Some(message);
            }
        }
    }
}

/// Adds the offset that a search looks at next.
fn prefetch_next(search: &Search, ahead: &mut Vec<usize>) {
    let offset = |number: u64| place(number).saturating_mul(ENTRY_BYTES);
    ahead.extend(search.place().map(offset));
}
