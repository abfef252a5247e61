//! Opens a segment: finds its trailer (rule 14), chooses the file's key, and where a walk begins: at the first entry,
//! where another walk stopped, or at a message in the middle.

use std::ops::Range;
use std::sync::Arc;

use super::check::Checker;
use super::front::{Front, POLL_EVERY, Segment, TERMINATOR, count_entries, last_magic};
use super::layout::{
    ENTRY_BYTES, Entry, Header, LENGTHS_BYTES, MAX_HEADER_BYTES, Message, UUID_BYTES,
};
use super::reader::Reader;
use super::trailer::{Trailer, trailer_bytes};
use super::walk::{EntryRange, ScanState, SealedScan, SealedWalk};
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::ledger::Cause;
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::{Source, read_array};
use crate::spec::Filter;
use crate::walk::{Begin, Budget, Options, Step, Walk, cannot_resume};

const ENTRY: u64 = ENTRY_BYTES as u64;

/// Begins a walk of a segment.
///
/// # Errors
/// [`Error::Usage`] if the start is not valid for this file.
pub(super) fn walk(
    source: Arc<dyn Source>,
    options: &Options,
    start: Begin<'_>,
) -> Result<SealedWalk> {
    let part = match start {
        Begin::Part(part) => Some(part.plan()?),
        _ => None,
    };
    let segment = Segment::open_in(source, options, part.as_ref())?;
    let mut scan = SealedScan::new(&segment, segment.state(start)?);
    scan.keep_to_part()?;
    Ok(scan.into_walk())
}

impl Segment {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Self::open_in(source, options, None)
    }

    /// The same, to read a part of it. Chooses one of the keys: the first whose key check is in the file, else the first
    /// under which the index hash matches or any message is verified.
    fn open_in(
        source: Arc<dyn Source>,
        options: &Options,
        part: Option<&EntryRange>,
    ) -> Result<Self> {
        let mut segments = Vec::new();
        for key in &options.keys {
            let segment = Self::under(source.clone(), options, key, part)?;
            let trailer = segment.front.trailer;
            let is_certain = trailer.is_some_and(|trailer| trailer.key_check_is_right);
            if options.keys.len() == 1 || is_certain {
                return Ok(segment);
            }
            segments.push(segment);
        }
        // The key check is damaged, no key matches, or there is no trailer, in which case the key does not matter.
        for segment in &segments {
            // Only a checksum can prove a trailer without a key check.
            let trailer = segment.front.trailer;
            let is_proven = trailer.is_some_and(|trailer| trailer.key_check_is_cut());
            if is_proven || segment.is_index_hash_right()? {
                return Ok(segment.clone());
            }
        }
        for segment in &segments {
            let has_trailer = segment.front.trailer.is_some();
            if has_trailer && segment.walk_to(Filter::default(), |_| true)?.is_some() {
                return Ok(segment.clone());
            }
        }
        segments.into_iter().next().ok_or_else(|| {
            Error::Usage("no key was given: give at least one to verify records".to_owned())
        })
    }

    /// Reads the front of a file under this key.
    fn under(
        source: Arc<dyn Source>,
        options: &Options,
        key: &Key,
        part: Option<&EntryRange>,
    ) -> Result<Self> {
        let len = source.len();
        let front = Front {
            len,
            entries: 0,
            data_start: len,
            data_end: len,
            key: *key,
            terminator_is_zero: true,
            trailer: None,
            searched: Budget::default(),
            unreadable: None,
        };
        let mut segment = Self {
            source,
            options: options.clone(),
            front,
        };
        let (source, front) = (&*segment.source, &mut segment.front);
        if len < ENTRY_BYTES as u64 {
            front.unreadable = Some(Cause::TruncatedHeader);
            return Ok(segment);
        }
        let Some(entries) = count_entries(source, options)? else {
            front.unreadable = Some(Cause::BadTerminator);
            return Ok(segment);
        };
        front.entries = entries;
        let terminator = front.entry_at(entries);
        front.data_start = terminator + ENTRY_BYTES as u64;
        front.terminator_is_zero = read_array(source, terminator)? == TERMINATOR;
        match part {
            Some(part) => segment.take_trailer(part)?,
            None => segment.locate_trailer()?,
        }
        Ok(segment)
    }

    /// The first message for which `is_sought` is true, found by a walk that continues after damage.
    pub(super) fn walk_to(
        &self,
        filter: Filter,
        mut is_sought: impl FnMut(&Message) -> bool,
    ) -> Result<Option<Message>> {
        // Without values: other messages may be larger than the limit for those.
        let options = self.options.for_ledger().filter(filter);
        let mut walk = self.with(options).whole().into_walk();
        while walk.step()? == Step::More {
            let mut messages = walk.scan().messages.iter().copied();
            if let Some(found) = messages.find(&mut is_sought) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A scan of the whole segment.
    pub(super) fn whole(&self) -> SealedScan {
        SealedScan::new(self, self.beginning())
    }

    /// The state before the first entry.
    pub(super) fn beginning(&self) -> ScanState {
        ScanState::before(0, self.front.data_start)
    }

    /// The state at the start of a walk.
    fn state(&self, start: Begin<'_>) -> Result<ScanState> {
        match start {
            Begin::Beginning => Ok(self.beginning()),
            Begin::Offset(offset) => {
                let found = match self.find(offset)? {
                    Some(message) => Some(message),
                    // Its entry may name another offset.
                    None => self.walk_to(Filter::default(), |good| good.position == offset)?,
                };
                let message = found.ok_or_else(|| {
                    Error::Usage(format!(
                        "cannot start at offset {offset}: no good message begins there. Start at the position of a record, or at 0"
                    ))
                })?;
                Ok(ScanState {
                    // Any UUID before it will do, so that it ascends.
                    last: before(&message.uuid),
                    ..ScanState::before(message.number, message.position)
                })
            }
            Begin::Part(part) => self.in_part(part.plan()?),
            Begin::Carry(_) => Err(cannot_resume("sealed")),
        }
    }

    /// The message at `offset`, if an entry names that offset and the walk certainly returns it.
    fn find(&self, offset: u64) -> Result<Option<Message>> {
        let mut found = None;
        let survey = self.survey(|entry| {
            if entry.offset == offset {
                found = found.or(Some(*entry));
            }
        })?;
        let is_searchable = self.front.checked() == Checked::Checksum || survey.ascends;
        let Some(entry) = found.filter(|_| is_searchable) else {
            return Ok(None);
        };
        let mut checker = Checker::new(self, Reader::sequential);
        let found = checker.in_place(entry.number)?;
        Ok(match found {
            Some(message) if checker.is_independent(&message)? => Some(message),
            _ => None,
        })
    }
}

/// The greatest UUID below this one.
fn before(uuid: &[u8; UUID_BYTES]) -> Option<[u8; UUID_BYTES]> {
    let before = u128::from_be_bytes(*uuid).checked_sub(1);
    before.map(u128::to_be_bytes)
}

impl Segment {
    /// Finds the trailer. Before, the data extends to the end of the file.
    fn locate_trailer(&mut self) -> Result<()> {
        let last = last_message(&*self.source, self.front.entries)?;
        let first = last.as_ref().map(|last| last.end);
        if self.is_trailer_at(first)? {
            return Ok(());
        }
        let second = self.place_after_neighbour()?;
        if second != first && self.is_trailer_at(second)? {
            return Ok(());
        }
        let front = self.front;
        let (len, entries) = (front.len, front.entries);
        // If the last message ends with the file, only an index hash can prove a trailer. It proves the last entry too.
        let least = match last {
            Some(last) if last.end == len && entries > 0 => last.start + LENGTHS_BYTES,
            _ => front.data_start,
        };
        if least + trailer_bytes(entries) > len {
            return Ok(());
        }
        let end = last_magic(&*self.source)?.unwrap_or(len);
        let start = end.checked_sub(trailer_bytes(entries));
        let Some(start) = start.filter(|start| *start >= least) else {
            return Ok(());
        };
        let trailer = Trailer::read(&*self.source, &front.key, entries, start)?;
        let is_likely = trailer.is_very_likely() && ![first, second].contains(&Some(len));
        self.put_trailer(trailer, |segment| {
            Ok(is_likely || segment.is_index_hash_right()?)
        })
        .map(|_| ())
    }

    /// Takes the trailer that was found when this part was planned. [`EntryRange::fits`] compares it.
    fn take_trailer(&mut self, part: &EntryRange) -> Result<()> {
        let (front, start) = (self.front, part.trailer);
        if (front.data_start..front.len).contains(&start) {
            let trailer = Trailer::read(&*self.source, &front.key, front.entries, start)?;
            self.put_trailer(trailer, |_| Ok(true))?;
            self.front.searched = part.searched;
        }
        Ok(())
    }

    /// Whether the trailer begins where messages end (rule 14a).
    fn is_trailer_at(&mut self, start: Option<u64>) -> Result<bool> {
        let front = self.front;
        let Some(start) = start.filter(|start| *start < front.len) else {
            return Ok(false);
        };
        let trailer = Trailer::read(&*self.source, &front.key, front.entries, start)?;
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
