//! What is known of a segment before any message is read: the number of entries, where its index, data and trailer are,
//! and what one pass over the whole index proves.

use super::layout::{ENTRY_BYTES, Entry, MAGIC, MIN_MESSAGE_BYTES};
use super::trailer::Trailer;
use crate::checksum::{Incremental, Key};
use crate::cursor::fields;
use crate::error::{Finding, Result};
use crate::ledger::Cause;
use crate::limits::LIMITS;
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window, read_array};
use crate::uuid6;
use crate::walk::indexed::{self, Fields};
use crate::walk::{Budget, Options};

/// How many entries are read between two polls of the interrupt.
pub(super) const POLL_EVERY: u64 = 1 << 12;

const ENTRY: u64 = ENTRY_BYTES as u64;
/// The bytes after the last entry.
pub(super) const TERMINATOR: [u8; ENTRY_BYTES] = [0; ENTRY_BYTES];
/// The length of an index without entries and the trailer's fixed part.
const EMPTY_BYTES: u64 = 56;

/// Where the last magic is sought: in this many bytes at the end of the file.
const MAGIC_WITHIN_BYTES: u64 = 1 << 20;

/// The offsets of a segment's sections. In a sound file a few short reads find them, however many messages there
/// are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    /// The file's length.
    pub(super) len: u64,
    /// The number of entries.
    pub(super) entries: u64,
    /// Where the first message can begin: after the terminator.
    pub(super) data_start: u64,
    /// Where the data ends: before the trailer, else at the end of the file.
    pub(super) data_end: u64,
    /// The file's key.
    pub(super) key: Key,
    /// Whether the terminator is all zeros.
    pub(super) terminator_is_zero: bool,
    pub(super) trailer: Option<Trailer>,
    /// What finding the trailer has cost of the search budget.
    pub(super) searched: Budget,
    /// Why nothing in the file can be read, if so.
    pub(super) unreadable: Option<Cause>,
}

impl Front {
    /// The trailer, if it has the whole checksum of entry number `number`.
    pub(super) fn trailer_of(&self, number: u64) -> Option<&Trailer> {
        let trailer = self.trailer.as_ref();
        trailer.filter(|trailer| number < trailer.checksums)
    }

    /// Whether the file may be under another key, judged without the index hash.
    pub(super) fn may_be_under_another_key(&self) -> bool {
        let trailer = self.trailer.as_ref();
        trailer.is_some_and(Trailer::key_check_is_wrong)
    }

    /// The offset of an entry. After the last entry: of the terminator.
    pub(super) const fn entry_at(&self, number: u64) -> u64 {
        number * ENTRY_BYTES as u64
    }

    /// The ranges of the index and the terminator. `None` if the file has none.
    pub(super) fn fields(&self) -> Option<Fields> {
        let terminator = (!self.terminator_is_zero).then_some(Cause::BadTerminator);
        self.unreadable.is_none().then(|| Fields {
            len: self.len,
            before: Vec::new(),
            after: [
                (self.entry_at(self.entries), None),
                (self.data_start, terminator),
            ],
        })
    }

    /// Whether a message can begin at this offset.
    pub(super) const fn in_bounds(&self, offset: u64) -> bool {
        self.data_start <= offset && offset < self.data_end
    }

    pub(super) const fn checked(&self) -> Checked {
        match self.trailer {
            Some(trailer) if trailer.checksums == self.entries => Checked::Checksum,
            _ => Checked::Structure,
        }
    }

    /// Why nothing in the file can be read.
    pub(super) fn unreadable_finding(&self, cause: Cause) -> Finding {
        match cause {
            Cause::TruncatedHeader => Finding::Number {
                cause,
                what: "the least length of a sealed segment in bytes",
                expected: ENTRY_BYTES as u64,
                actual: self.len,
            },
            cause => Finding::words(
                cause,
                "24 zero bytes at a multiple of 24, after the entries of an index",
                "none in the whole file",
            ),
        }
    }
}

/// What one pass over the whole index proves, without reading messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// Every UUID is of version 6 and greater than the one before, and every offset is in bounds and greater than
    /// the one before. So a search among the entries finds every UUID that is there.
    pub(super) ascends: bool,
    /// The index hash, computed from the file's bytes. `None` if the file has none.
    pub(super) hash: Option<u64>,
    /// The index hash matches, so the entries are as they were written. False if the file has none.
    pub(super) is_proven: bool,
}

pub(super) type Segment = indexed::Segment<Front>;

impl Segment {
    /// Whether the trailer's index hash matches the file's bytes.
    pub(super) fn is_index_hash_right(&self) -> Result<bool> {
        let stored = self.front.trailer.and_then(|trailer| trailer.index_hash());
        Ok(stored.is_some() && self.survey(|_| {})?.is_proven)
    }

    /// Reads the index once, and passes each entry to `look`.
    pub(super) fn survey(&self, mut look: impl FnMut(&Entry)) -> Result<Survey> {
        let (source, options, front) = (&*self.source, &self.options, &self.front);
        let (mut ascends, mut last, mut numbers) = (true, None::<Entry>, 0..front.entries);
        let mut hasher = Incremental::new(&front.key);
        each_piece(source, options, 0, front.data_start, |bytes| {
            hasher.update(bytes);
            // The terminator follows the entries.
            for (entry, number) in bytes.as_chunks().0.iter().zip(&mut numbers) {
                let entry = Entry::parse(number, entry);
                look(&entry);
                ascends &= uuid6::is_v6(&entry.uuid)
                    && front.in_bounds(entry.offset)
                    && last.is_none_or(|last| last.uuid < entry.uuid && last.offset < entry.offset);
                last = Some(entry);
            }
            true
        })?;
        let mut survey = Survey {
            ascends,
            hash: None,
            is_proven: false,
        };
        if let Some(trailer) = front.trailer
            && let Some(stored) = trailer.index_hash()
        {
            let end = trailer.checksum_at(front.entries);
            each_piece(source, options, trailer.start, end, |bytes| {
                hasher.update(bytes);
                true
            })?;
            let hash = hasher.finish();
            survey.hash = Some(hash);
            survey.is_proven = hash == stored;
        }
        Ok(survey)
    }
}

/// The number of entries, if it can be determined (rule 13). The file is at least one entry long. In a sound file
/// that takes a look at its beginning and at its terminator.
pub(super) fn count_entries(source: &dyn Source, options: &Options) -> Result<Option<u64>> {
    match count_at_ends(source, last_magic)? {
        EntryCount::Count(count) => Ok(Some(count)),
        EntryCount::Unproven(count) if all_version_6(source, options, count)? => Ok(Some(count)),
        _ => first_terminator(source, options),
    }
}

/// The end of the last magic near the end of the file (E of rule 13).
pub(super) fn last_magic(source: &dyn Source) -> Result<Option<u64>> {
    if let Some(end) = final_magic(source)? {
        return Ok(Some(end));
    }
    let (len, mut window) = (source.len(), Window::default());
    let from = len.saturating_sub(MAGIC_WITHIN_BYTES);
    let piece = saturating_usize(len - from);
    let bytes = window.exact(source, from, piece, piece)?;
    let mut magics = bytes.windows(MAGIC.len());
    let place = magics.rposition(|bytes| bytes == MAGIC);
    Ok(place.map(|place| from + (place + MAGIC.len()) as u64))
}

/// The end of the file, if it ends with the magic.
pub(super) fn final_magic(source: &dyn Source) -> Result<Option<u64>> {
    let len = source.len();
    let Some(at) = len.checked_sub(MAGIC.len() as u64) else {
        return Ok(None);
    };
    Ok((read_array(source, at)? == MAGIC).then_some(len))
}

/// What the two ends of the file say about the number of entries.
pub(super) enum EntryCount {
    /// The number, confirmed by a terminator.
    Count(u64),
    /// The number by entry 0's offset, without a terminator before it.
    Unproven(u64),
    /// Neither says a number.
    Nothing,
}

/// Uses entry 0's offset, else the count in front of the magic that ends where `magic` says.
pub(super) fn count_at_ends(
    source: &dyn Source,
    magic: fn(&dyn Source) -> Result<Option<u64>>,
) -> Result<EntryCount> {
    let first = read_array::<ENTRY_BYTES>(source, 0)?;
    let offset = Entry::parse(0, &first).offset;
    let is_terminator = |at| Ok(read_array::<ENTRY_BYTES>(source, at)? == TERMINATOR);
    let fits = offset.is_multiple_of(ENTRY) && (2 * ENTRY..=source.len()).contains(&offset);
    if fits && is_terminator(offset - ENTRY)? {
        return Ok(EntryCount::Count(offset / ENTRY - 1));
    }
    if let Some(end) = magic(source)?.filter(|end| *end >= EMPTY_BYTES) {
        let count = u64::from_be_bytes(read_array(source, end - 24)?);
        if count <= (end - EMPTY_BYTES) / MIN_MESSAGE_BYTES
            && (is_terminator(ENTRY * count)? || count > 0 && offset == ENTRY * (count + 1))
        {
            return Ok(EntryCount::Count(count));
        }
    }
    Ok(match fits {
        _ if first == TERMINATOR => EntryCount::Count(0),
        true => EntryCount::Unproven(offset / ENTRY - 1),
        false => EntryCount::Nothing,
    })
}

fn all_version_6(source: &dyn Source, options: &Options, count: u64) -> Result<bool> {
    let mut all = true;
    each_piece(source, options, 0, count * ENTRY, |bytes| {
        let mut entries = bytes.as_chunks::<ENTRY_BYTES>().0.iter();
        all = entries.all(|entry| {
            let (uuid, _): (_, u64) = fields(entry);
            uuid6::is_v6(&uuid)
        });
        all
    })?;
    Ok(all)
}

/// The number of entries before the first terminator.
fn first_terminator(source: &dyn Source, options: &Options) -> Result<Option<u64>> {
    let (mut count, mut found) = (0, false);
    let whole = source.len() / ENTRY * ENTRY;
    each_piece(source, options, 0, whole, |bytes| {
        let entries = bytes.as_chunks::<ENTRY_BYTES>().0;
        let is_entry = |entry: &&[u8; ENTRY_BYTES]| **entry != TERMINATOR;
        let before = entries.iter().take_while(is_entry).count();
        count += before as u64;
        found = before < entries.len();
        !found
    })?;
    Ok(found.then_some(count))
}

/// Passes the bytes from `start` to `end` to `look` in pieces of whole entries, until it breaks.
pub(super) fn each_piece(
    source: &dyn Source,
    options: &Options,
    start: u64,
    end: u64,
    mut look: impl FnMut(&[u8]) -> bool,
) -> Result<()> {
    const { assert!(LIMITS.sealed_piece_bytes >= ENTRY_BYTES) };
    const WHOLE_ENTRIES: usize = LIMITS.sealed_piece_bytes / ENTRY_BYTES * ENTRY_BYTES;
    let (mut window, mut at) = (Window::default(), start);
    while at < end {
        options.poll()?;
        let piece = saturating_usize(end - at).min(WHOLE_ENTRIES);
        if !look(window.exact(source, at, piece, piece)?) {
            break;
        }
        at += piece as u64;
    }
    Ok(())
}
