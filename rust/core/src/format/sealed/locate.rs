//! Finds the trailer (rule 14): where the messages end, or else in front of the last magic. In a sound file with a
//! trailer three short reads are enough.

use std::ops::Range;

use super::check::Checker;
use super::front::{Front, Segment};
use super::index::{POLL_EVERY, last_magic, read_array};
use super::layout::{ENTRY_BYTES, Entry, Header, LENGTHS_BYTES, MAX_HEADER_BYTES};
use super::reader::Reader;
use super::state::EntryRange;
use super::trailer::{Trailer, trailer_bytes};
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::Source;

const ENTRY: u64 = ENTRY_BYTES as u64;

impl Segment {
    /// Finds the trailer. Before, the data extends to the end of the file.
    pub(super) fn locate_trailer(&mut self) -> Result<()> {
        let last = last_message(&*self.source, self.front.entries)?;
        let first = last.as_ref().map(|last| last.end);
        if self.is_trailer_at(first)? {
            return Ok(());
        }
        let second = self.place_after_neighbour()?;
        if second != first && self.is_trailer_at(second)? {
            return Ok(());
        }
        let Front {
            len,
            entries,
            data_start,
            key,
            ..
        } = self.front;
        // If the last message ends with the file, only an index hash can prove a trailer. It proves the last entry too.
        let least = match last {
            Some(last) if last.end == len && entries > 0 => last.start + LENGTHS_BYTES,
            _ => data_start,
        };
        if least + trailer_bytes(entries) > len {
            return Ok(());
        }
        let end = last_magic(&*self.source)?.unwrap_or(len);
        let start = end.checked_sub(trailer_bytes(entries));
        let Some(start) = start.filter(|start| *start >= least) else {
            return Ok(());
        };
        let trailer = Trailer::read(&*self.source, &key, entries, start)?;
        let is_likely = trailer.is_very_likely() && ![first, second].contains(&Some(len));
        self.put_trailer(trailer, |segment| {
            Ok(is_likely || segment.is_index_hash_right()?)
        })
        .map(|_| ())
    }

    /// Takes the trailer that was found when this part was planned. [`EntryRange::fits`] compares it.
    pub(super) fn take_trailer(&mut self, part: &EntryRange) -> Result<()> {
        let Front {
            len, entries, key, ..
        } = self.front;
        if (self.front.data_start..len).contains(&part.trailer) {
            let trailer = Trailer::read(&*self.source, &key, entries, part.trailer)?;
            self.put_trailer(trailer, |_| Ok(true))?;
            self.front.searched = part.searched;
        }
        Ok(())
    }

    /// Whether the trailer begins where messages end (rule 14a).
    fn is_trailer_at(&mut self, start: Option<u64>) -> Result<bool> {
        let Front {
            len, entries, key, ..
        } = self.front;
        let Some(start) = start.filter(|start| *start < len) else {
            return Ok(false);
        };
        let trailer = Trailer::read(&*self.source, &key, entries, start)?;
        self.put_trailer(trailer, |segment| {
            Ok(trailer.is_likely()
                || segment.is_index_hash_right()?
                || segment.is_any_checksum_right(&trailer)?)
        })
    }

    /// Takes the trailer if `is_proven` is true of the segment with it.
    fn put_trailer(
        &mut self,
        trailer: Trailer,
        is_proven: impl FnOnce(&mut Self) -> Result<bool>,
    ) -> Result<bool> {
        self.front.trailer = Some(trailer);
        self.front.data_end = trailer.start;
        let is_proven = is_proven(self)?;
        if !is_proven {
            self.front.trailer = None;
            self.front.data_end = self.front.len;
        }
        Ok(is_proven)
    }

    /// Whether any checksum, as far as the file has it, is right. Charges the others to the search budget.
    fn is_any_checksum_right(&mut self, trailer: &Trailer) -> Result<bool> {
        let mut checker = Checker::new(self, Reader::sequential);
        checker.effort.budget = self.front.searched;
        let mut is_right = false;
        for number in 0..self.front.entries {
            if is_right || trailer.checksum_at(number) >= self.front.len {
                break;
            }
            if number.is_multiple_of(POLL_EVERY) {
                self.options.poll()?;
            }
            is_right = checker.is_checksum_right(number)?;
        }
        self.front.searched = checker.effort.budget;
        Ok(is_right)
    }

    /// The end of the message that begins where the message of the last entry but one ends. With one entry: where
    /// the data begins.
    fn place_after_neighbour(&self) -> Result<Option<u64>> {
        let (source, entries) = (&*self.source, self.front.entries);
        let start = match entries {
            0 => None,
            1 => Some(self.front.data_start),
            _ => end_of_message(source, entries, offset_of(source, entries - 2)?)?,
        };
        match start {
            Some(start) => end_of_message(source, entries, start),
            None => Ok(None),
        }
    }
}

/// The message of the last of these entries, at its own offset. Without entries: nothing, where the index ends.
pub(super) fn last_message(source: &dyn Source, entries: u64) -> Result<Option<Range<u64>>> {
    let Some(last) = entries.checked_sub(1) else {
        return Ok(Some(ENTRY..ENTRY));
    };
    let start = offset_of(source, last)?;
    let end = end_of_message(source, entries, start)?;
    Ok(end.map(|end| start..end))
}

fn offset_of(source: &dyn Source, number: u64) -> Result<u64> {
    let bytes = read_array(source, number * ENTRY)?;
    Ok(Entry::parse(number, &bytes).offset)
}

/// Where the message that begins at `start` ends, if it lies between an index of this many entries and the end of the
/// file.
fn end_of_message(source: &dyn Source, entries: u64, start: u64) -> Result<Option<u64>> {
    let left = source.len().saturating_sub(start);
    let mut bytes = [0; MAX_HEADER_BYTES];
    let Some(bytes) = bytes
        .get_mut(..saturating_usize(left).min(MAX_HEADER_BYTES))
        .filter(|bytes| !bytes.is_empty() && start >= (entries + 1) * ENTRY)
    else {
        return Ok(None);
    };
    source.read_exact_at(start, bytes)?;
    let header = Header::parse(bytes, left).ok();
    Ok(header.map(|header| start + header.total()))
}
