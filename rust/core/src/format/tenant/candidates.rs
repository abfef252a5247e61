//! What a damaged range of a segment of version 2 may have been: the table of contents, a block, a number.

use std::sync::Arc;

use super::front::{COUNT_BYTES, Front, Segment};
use super::probe::block_crc_of;
use super::toc::Entry;
use super::{VERSION_1, VERSION_2};
use crate::cursor::Cursor;
use crate::engine::Stated;
use crate::engine::candidate::{
    Candidate, Candidates, MAX_MISPLACED, MAX_SYNDROME_BYTES, MAX_TRIED_BYTES, Misplaced, Syndrome,
    Trial, read_piece,
};
use crate::error::Result;
use crate::ledger::{Cause, Span};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{BytesSource, Source};
use crate::walk::Options;

pub(super) struct Tenant(Segment);

impl Tenant {
    /// `None` if the segment has no checksums.
    pub(super) fn open(source: &Arc<dyn Source>, options: &Options) -> Result<Option<Self>> {
        let segment = Segment::open(source.clone(), options)?;
        let has_checksums = segment.front.version != VERSION_1;
        Ok(has_checksums.then_some(Self(segment)))
    }
}

/// What the table of contents states: where its last block ends, and how many messages there are.
pub(super) fn stated(source: &Arc<dyn Source>, options: &Options) -> Result<Option<Stated>> {
    let segment = Segment::open(source.clone(), options)?;
    let mut entries = segment.entries();
    let is_read = segment.front.is_sound() && entries.left <= LIMITS.candidate_entries;
    let Some(front) = segment.front.toc_end.filter(|_| is_read) else {
        return Ok(None);
    };
    let (mut end, mut records) = (0, 0);
    while let Some(entry) = entries.next(&*segment.source)? {
        end = entry.block_end().max(end);
        records += u64::from(entry.messages);
    }
    Ok(Some(Stated {
        end,
        // Those of version 1 do not say how many each block has.
        records: (segment.front.version != VERSION_1).then_some(records),
        front,
    }))
}

impl Candidates for Tenant {
    fn candidates(&mut self, span: &Span) -> Result<Vec<Candidate>> {
        if !self.0.front.is_sound() {
            return match span.start {
                0 => self.table(),
                _ => Ok(Vec::new()),
            };
        }
        if span.cause == Some(Cause::CountMismatch) && span.len() == COUNT_BYTES {
            return self.count(span);
        }
        if span.cause == Some(Cause::UnsupportedVersion) {
            // The table of contents is sound as one of version 2.
            let range = span.start..span.end;
            let version = VERSION_2.to_be_bytes();
            return Ok(vec![Candidate::exact("version", range, version)]);
        }
        let entries = self.entries_within(span, 1)?;
        let short = entries
            .iter()
            .filter(|entry| entry.length <= MAX_SYNDROME_BYTES);
        Ok(short.map(block).collect())
    }

    fn misplaced(&mut self, span: &Span, _: bool) -> Result<Vec<Misplaced>> {
        // Other causes concern a wrong entry, or a block that is whole.
        let is_elsewhere = matches!(
            span.cause,
            Some(Cause::ChecksumMismatch | Cause::LengthOutOfBounds)
        );
        if !self.0.front.is_sound() || !is_elsewhere {
            return Ok(Vec::new());
        }
        let entries = self.entries_within(span, MAX_MISPLACED)?;
        let short = entries
            .into_iter()
            .filter(|entry| entry.length <= MAX_SYNDROME_BYTES);
        Ok(short.map(|entry| self.moved(entry)).collect())
    }
}

/// Whether a block has the CRC-32 that its entry states.
fn block_checks(entry: &Entry, at: u64, bytes: &[u8]) -> Trial {
    let crc = block_crc_of(entry.partition, bytes);
    Trial {
        end: (crc == entry.crc).then_some(at + bytes.len() as u64),
        work: bytes.len() as u64,
    }
}

/// The block of an entry of a sound table of contents.
fn block(entry: &Entry) -> Candidate {
    let entry = entry.clone();
    let body = entry.offset..entry.block_end();
    let (own, len) = (entry.clone(), saturating_usize(entry.length));
    let difference = move |bytes: &[u8]| block_crc_of(own.partition, bytes) ^ own.crc;
    let tried = match entry.length {
        0..=MAX_TRIED_BYTES => len,
        _ => 0,
    };
    let check = move |bytes: &[u8]| block_checks(&entry, entry.offset, bytes);
    Candidate {
        tried,
        syndrome: Some(Syndrome::new(Syndrome::CRC32, 0..len, difference)),
        ..Candidate::new("block", body, check)
    }
}

impl Tenant {
    /// The first entries that lie in the range, or whose blocks touch it and lie within the file.
    fn entries_within(&self, span: &Span, most: usize) -> Result<Vec<Entry>> {
        let (mut entries, mut found) = (self.0.entries(), Vec::new());
        entries.left = entries.left.min(LIMITS.candidate_entries);
        while found.len() < most
            && let Some(entry) = entries.next(&*self.0.source)?
        {
            let is_it = entry.at >= span.start && entry.at < span.end;
            let touches = entry.offset < span.end && span.start < entry.block_end();
            if (is_it || touches) && entry.block_end() <= self.0.front.len {
                found.push(entry);
            }
        }
        Ok(found)
    }

    /// The block of an entry, wherever it is.
    fn moved(&self, entry: Entry) -> Misplaced {
        let (source, mut bytes) = (self.0.source.clone(), Vec::new());
        Misplaced {
            what: "block",
            offset: entry.offset,
            against: String::new(),
            check: Box::new(move |at| {
                let end = at.saturating_add(entry.length);
                // Two numbers that the entry has as well begin a block, which may be long.
                bytes.clear();
                read_piece(&*source, &(at..source.len().min(at + 8)), &mut bytes)?;
                let mut head = Cursor::new(&bytes);
                let numbers = (head.u32_be(), head.u32_be());
                let is_head = numbers == (Some(entry.messages), Some(entry.tenant.len));
                if end > source.len() || !is_head {
                    return Ok(Trial::NOTHING);
                }
                bytes.clear();
                read_piece(&*source, &(at..end), &mut bytes)?;
                Ok(block_checks(&entry, at, &bytes))
            }),
        }
    }

    /// The front, from the magic to the table's CRC-32.
    fn table(&self) -> Result<Vec<Candidate>> {
        let len = self.0.front.toc_end.unwrap_or(MAX_TRIED_BYTES);
        if len > MAX_SYNDROME_BYTES {
            return Ok(Vec::new());
        }
        let crc = len.saturating_sub(COUNT_BYTES)..len;
        let options = self.0.options.clone().interrupt(None);
        let hashed = 0..saturating_usize(crc.start);
        let difference = {
            let end = hashed.end;
            move |bytes: &[u8]| {
                let mut rest = Cursor::new(bytes);
                let own = crc32fast::hash(rest.run_up_to(end));
                rest.u32_be().map_or(0, |stored| own ^ stored)
            }
        };
        let check = move |bytes: &[u8]| {
            let source = BytesSource::new(bytes);
            // A buffer can always be read.
            let front = Front::read(&source, &options, u64::MAX).ok();
            let end = front
                .filter(|front| front.version == VERSION_2 && front.is_sound())
                .and_then(|front| front.toc_end);
            Trial { end, work: len }
        };
        // Of a long one only the stored CRC-32 is tried: the other bits its syndrome tells.
        let (body, tried, elsewhere) = match len {
            0..=MAX_TRIED_BYTES => {
                let body = 0..self.0.front.len.min(MAX_TRIED_BYTES);
                (body.clone(), len.min(body.end), Vec::new())
            }
            _ => (0..crc.start, 0, vec![crc]),
        };
        Ok(vec![Candidate {
            tried: saturating_usize(tried),
            elsewhere,
            syndrome: Some(Syndrome::new(Syndrome::CRC32, hashed, difference)),
            ..Candidate::new("table of contents", body, check)
        }])
    }

    /// The number of partitions, or a partition's number of tenants before a block. The table of contents implies
    /// both.
    fn count(&self, span: &Span) -> Result<Vec<Candidate>> {
        let expected = if self.0.front.toc_end == Some(span.start) {
            Some(self.0.front.partitions)
        } else {
            self.tenants_from(span.end)?
        };
        let Some(expected) = expected.and_then(|count| u32::try_from(count).ok()) else {
            return Ok(Vec::new());
        };
        let (range, count) = (span.start..span.end, expected.to_be_bytes());
        Ok(vec![Candidate::exact("count", range, count)])
    }

    /// How many tenants the partition has whose first block begins here. `None` if the table of contents is too
    /// long to read to the end of the partition.
    fn tenants_from(&self, offset: u64) -> Result<Option<u64>> {
        let mut entries = self.0.entries();
        let most = entries.left.min(LIMITS.candidate_entries);
        let is_whole = most == entries.left;
        entries.left = most;
        let mut found = None::<(u32, u64)>;
        while let Some(entry) = entries.next(&*self.0.source)? {
            match &mut found {
                Some((partition, tenants)) if *partition == entry.partition => *tenants += 1,
                Some((_, tenants)) => return Ok(Some(*tenants)),
                None if entry.offset == offset => found = Some((entry.partition, 1)),
                None => {}
            }
        }
        Ok(found.map(|(_, tenants)| tenants).filter(|_| is_whole))
    }
}
