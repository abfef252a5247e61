//! What a damaged range of a segment may have been: a message, an index entry, the terminator, the trailer.

use std::ops::Range;
use std::sync::Arc;

use super::front::{Front, Segment};
use super::judge::{self, Candidate as Message, Prior};
use super::layout::{
    ENTRY_AND_CHECKSUM, ENTRY_BYTES, Entry, FOOT_BYTES, Header, LENGTHS_BYTES, MAX_HEADER_BYTES,
    UUID_BYTES,
};
use super::reader::Reader;
use super::trailer::{Foot, Trailer};
use crate::checksum::Incremental;
use crate::cursor::fields;
use crate::engine::Stated;
use crate::engine::candidate::{
    Candidate, Candidates, MAX_LENGTHS_TRIED_BYTES, MAX_MISPLACED, MAX_TRIED_BYTES, Misplaced,
    Trial, read_piece,
};
use crate::error::Result;
use crate::ledger::{Cause, Span};
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::{Source, read_array};
use crate::uuid6;
use crate::walk::Options;

/// How many entries are tried to explain one range.
const MAX_ENTRIES: u64 = 8;
/// How far apart entries are whose messages are looked for, as a power of two.
const MAX_STEP: u32 = 12;
/// How many entries in a row a search skips because their offsets are out of bounds.
const MAX_PASSED: u64 = 64;

pub(super) struct Sealed {
    segment: Segment,
    trailer: Trailer,
    reader: Reader,
}

impl Sealed {
    /// `None` if the segment lacks some of its checksums.
    pub(super) fn open(source: &Arc<dyn Source>, options: &Options) -> Result<Option<Self>> {
        let segment = Segment::open(source.clone(), options)?;
        let has_checksums = segment.front.checked() == Checked::Checksum;
        let trailer = segment.front.trailer.filter(|_| has_checksums);
        Ok(trailer.map(|trailer| Self {
            reader: Reader::sparse(&segment),
            segment,
            trailer,
        }))
    }
}

/// What the index states: where its last message begins, and how many there are.
pub(super) fn stated(source: &Arc<dyn Source>, options: &Options) -> Result<Option<Stated>> {
    if source.len() < ENTRY_BYTES as u64 {
        return Ok(None);
    }
    let first = Entry::parse(0, &read_array(&**source, 0)?);
    let entry_bytes = ENTRY_BYTES as u64;
    // A file that ends within its index: the first message follows the index, which has a terminator.
    if first.offset > source.len() && first.offset.is_multiple_of(entry_bytes) {
        return Ok(uuid6::is_v6(&first.uuid).then_some(Stated {
            end: first.offset,
            records: Some(first.offset / entry_bytes - 1),
            front: source.len(),
        }));
    }
    let segment = Segment::open(source.clone(), options)?;
    let records = segment.front.entries;
    let Some(last) = records.checked_sub(1) else {
        return Ok(None);
    };
    let end = Reader::sparse(&segment).entry(last)?.offset;
    Ok(Some(Stated {
        end: end.saturating_add(LENGTHS_BYTES),
        records: Some(records),
        front: segment.front.data_start,
    }))
}

impl Candidates for Sealed {
    fn candidates(&mut self, span: &Span) -> Result<Vec<Candidate>> {
        let front = self.segment.front;
        let (entries, terminator) = (front.entries, front.entry_at(front.entries));
        if span.start >= self.trailer.start {
            return self.foot(span);
        }
        if span.start == terminator {
            return Ok(vec![Candidate::zeros(
                "terminator",
                terminator..front.data_start,
            )]);
        }
        let mut candidates = Vec::new();
        if span.start < terminator {
            let first = span.start / ENTRY_BYTES as u64;
            for number in first..entries.min(first + MAX_ENTRIES) {
                if self.segment.front.entry_at(number) < span.end {
                    candidates.push(self.entry(number)?);
                }
            }
            return Ok(candidates);
        }
        let first = self.first_entry_from(span.start)?;
        for number in first..entries.min(first + MAX_ENTRIES) {
            let entry = self.reader.entry(number)?;
            if span.start <= entry.offset && entry.offset < span.end {
                candidates.push(self.message(&entry, span.end)?);
            }
        }
        Ok(candidates)
    }

    fn misplaced(&mut self, span: &Span, _: bool) -> Result<Vec<Misplaced>> {
        let entries = self.segment.front.entries;
        let mut found = Vec::new();
        // Other causes concern a wrong entry, or a message that is whole.
        let is_elsewhere = matches!(
            span.cause,
            Some(Cause::ChecksumMismatch | Cause::LengthOutOfBounds | Cause::IndexDisagrees)
        );
        if span.start >= self.trailer.start || !is_elsewhere {
            return Ok(found);
        }
        let is_of_index = span.start < self.segment.front.entry_at(entries);
        let first = match is_of_index {
            true => span.start / ENTRY_BYTES as u64,
            false => self.first_entry_from(span.start)?,
        };
        // One entry that disagrees with its message is wrong itself. If data has moved, the next one disagrees as
        // well.
        let witnesses = if is_of_index { 2 } else { 1 };
        let has_all = |number: &u64| number + witnesses <= entries;
        // The first ones may be missing themselves.
        let steps = (0..MAX_MISPLACED as u64).chain((2..=MAX_STEP).map(|step| 1 << step));
        let numbers = steps.map(|step| first.saturating_add(step));
        for number in numbers.take_while(has_all) {
            let offset = self.reader.entry(number)?.offset;
            let mut expected = Vec::new();
            for own in number..number + witnesses {
                let (stored, _) = self.reader.checksum(own)?;
                expected.push((self.reader.entry(own)?, stored));
            }
            let mut reader = Reader::sparse(&self.segment);
            let check = move |at: u64| {
                let mut all = Trial::NOTHING;
                for (entry, stored) in &expected {
                    let moved = entry.offset.wrapping_sub(offset);
                    let moved = Entry {
                        offset: at.wrapping_add(moved),
                        ..*entry
                    };
                    let trial = verify_in_place(&mut reader, &moved, *stored)?;
                    all.work += trial.work;
                    all.end = trial.end;
                    if trial.end.is_none() {
                        break;
                    }
                }
                Ok(all)
            };
            found.push(Misplaced {
                what: "message",
                offset,
                against: String::new(),
                check: Box::new(check),
            });
        }
        Ok(found)
    }
}

/// Whether an entry's message is verified at its offset.
fn verify_in_place(reader: &mut Reader, entry: &Entry, stored: u64) -> Result<Trial> {
    let front = reader.front;
    if !front.in_bounds(entry.offset) || !uuid6::is_v6(&entry.uuid) {
        return Ok(Trial::NOTHING);
    }
    let Ok(message) = judge::message(entry, reader.header(entry.offset)?) else {
        return Ok(Trial::NOTHING);
    };
    let work = message.header.total();
    if work > MAX_LENGTHS_TRIED_BYTES {
        return Ok(Trial::NOTHING);
    }
    let computed = reader.hash(&entry.uuid, entry.offset, work)?;
    Ok(trial(&front, Message { message, stored }, computed, work))
}

/// The result for a message whose checksum is `computed`, regardless of the ones before. Computing it took `work`.
fn trial(front: &Front, message: Message, computed: u64, work: u64) -> Trial {
    let judged = message.judge(computed, &Prior::nothing(front));
    let end = judged.ok().map(|message| message.end());
    Trial { end, work }
}

impl Sealed {
    /// The first entry whose message begins at or after `offset`. Skips offsets that are out of bounds. If wrong
    /// offsets mislead the search, nothing that is found verifies.
    fn first_entry_from(&mut self, offset: u64) -> Result<u64> {
        let (mut low, mut high) = (0, self.segment.front.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            let (mut number, mut is_before) = (middle, false);
            while number < high.min(middle + MAX_PASSED) {
                let found = self.reader.entry(number)?.offset;
                if self.segment.front.in_bounds(found) {
                    is_before = found < offset;
                    break;
                }
                number += 1;
            }
            if is_before {
                low = number + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn entry_range(&self, number: u64) -> Range<u64> {
        self.segment.front.entry_at(number)..self.segment.front.entry_at(number + 1)
    }

    fn checksum_range(&self, number: u64) -> Range<u64> {
        self.trailer.checksum_at(number)..self.trailer.checksum_at(number + 1)
    }

    /// The message of an entry, at its offset. It, its UUID or its checksum may be damaged.
    fn message(&mut self, entry: &Entry, span_end: u64) -> Result<Candidate> {
        let (number, data_end) = (entry.number, self.segment.front.data_end);
        let next = self.reader.beginning(number + 1)?;
        let start = entry.offset;
        let end = if start < next && next <= data_end {
            next
        } else {
            span_end
        };
        let piece = start..end.min(start.saturating_add(MAX_LENGTHS_TRIED_BYTES));
        let mut bytes = Vec::new();
        read_piece(&*self.segment.source, &piece, &mut bytes)?;
        let header = Header::parse(&bytes, bytes.len() as u64).ok();
        let stated = header.and_then(|header| usize::try_from(header.total()).ok());
        let (len, lengths) = (bytes.len(), MAX_HEADER_BYTES.min(bytes.len()));
        let whole = stated.filter(|total| *total as u64 <= MAX_TRIED_BYTES);
        let front = self.segment.front;
        let entry = *entry;
        let check = move |bytes: &[u8]| message_checks(&front, &entry, len, bytes);
        Ok(Candidate {
            elsewhere: vec![self.entry_range(number), self.checksum_range(number)],
            tried: match whole {
                Some(whole) => whole.max(lengths),
                None => lengths,
            },
            stated,
            ..Candidate::new("message", piece, check)
        })
    }

    /// An entry whose offset or UUID may be damaged. Its message is read from where it would point.
    fn entry(&mut self, number: u64) -> Result<Candidate> {
        let (stored, _) = self.reader.checksum(number)?;
        let mut reader = Reader::sparse(&self.segment);
        let range = self.entry_range(number);
        let end = range.end;
        let check = move |bytes: &[u8]| {
            let Some(entry) = bytes.first_chunk() else {
                return Trial::NOTHING;
            };
            let tried = verify_in_place(&mut reader, &Entry::parse(number, entry), stored);
            let Ok(Trial { end: found, work }) = tried else {
                return Trial::NOTHING; // unreadable bytes prove nothing
            };
            let end = found.map(|_| end);
            Trial { end, work }
        };
        Ok(Candidate::new("index entry", range, check))
    }

    /// The fixed part of the trailer.
    fn foot(&self, span: &Span) -> Result<Vec<Candidate>> {
        let Front { key, entries, .. } = &self.segment.front;
        let end = self.trailer.end;
        let is_whole = self.trailer.is_whole() && span.start < end;
        let index_hash = self.segment.survey(|_| {})?.hash;
        let Some(index_hash) =
            index_hash.filter(|_| is_whole && span.cause != Some(Cause::WrongKey))
        else {
            return Ok(Vec::new());
        };
        let right = Foot::new(key, *entries, index_hash).to_bytes();
        let foot = end - FOOT_BYTES as u64..end;
        Ok(vec![Candidate::exact("trailer", foot, right)])
    }
}

/// Whether a message of at most `len` bytes, its entry and its checksum, adjacent in `bytes`, fit together. The
/// entry must have the number and offset of `own`.
fn message_checks(front: &Front, own: &Entry, len: usize, bytes: &[u8]) -> Trial {
    let Some((piece, rest)) = bytes.split_at_checked(len) else {
        return Trial::NOTHING;
    };
    if let Some((entry, stored)) = rest.first_chunk::<ENTRY_AND_CHECKSUM>().map(fields)
        && let entry = Entry::parse(own.number, entry)
        && entry.offset == own.offset
        && uuid6::is_v6(&entry.uuid)
        && let parsed = Header::parse(piece, len as u64)
        && let Ok(message) = judge::message(&entry, parsed)
        && let Some(whole) = piece.get(..saturating_usize(message.header.total()))
    {
        let mut hasher = Incremental::new(&front.key);
        hasher.update(&entry.uuid);
        hasher.update(whole);
        let work = message.header.total() + UUID_BYTES as u64;
        return trial(front, Message { message, stored }, hasher.finish(), work);
    }
    Trial::NOTHING
}
