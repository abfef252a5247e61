//! The index as a whole: how many entries there are, its hash, and whether it ascends.

use super::front::Front;
use super::reader::read_array;
use super::{CHECKSUM_BYTES, ENTRY_BYTES, Entry, MAGIC, MIN_MESSAGE_BYTES};
use crate::checksum::{Incremental, Key};
use crate::engine::Options;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::uuid6;

const ENTRY: u64 = ENTRY_BYTES as u64;
const TERMINATOR: [u8; ENTRY_BYTES] = [0; ENTRY_BYTES];
/// An index of no entries, and the trailer's fixed part.
const EMPTY_BYTES: u64 = 56;

/// How many entries the index has, if anything tells; the file has at least one entry's length. In a sound file that takes
/// a look at its two ends.
pub(super) fn count_entries(source: &dyn Source, options: &Options) -> Result<Option<u64>> {
    match told(source)? {
        Told::Count(count) => Ok(Some(count)),
        Told::Unproven(count) if all_version_6(source, options, count)? => Ok(Some(count)),
        _ => first_terminator(source, options),
    }
}

/// What the file's two ends say about the number of entries.
pub(super) enum Told {
    /// The number.
    Count(u64),
    /// Entry 0's offset says so, but no terminator stands in front of it.
    Unproven(u64),
    /// Nothing.
    Nothing,
}

/// Asks the trailer's count, and then entry 0's offset.
pub(super) fn told(source: &dyn Source) -> Result<Told> {
    let len = source.len();
    let first = read_array::<ENTRY_BYTES>(source, 0)?;
    let offset = Entry::parse(&first).offset;
    let is_terminator = |at| Ok(read_array::<ENTRY_BYTES>(source, at)? == TERMINATOR);
    if len >= EMPTY_BYTES && read_array(source, len - 8)? == MAGIC {
        let count = u64::from_be_bytes(read_array(source, len - 24)?);
        let least = count
            .checked_mul(MIN_MESSAGE_BYTES)
            .and_then(|bytes| bytes.checked_add(EMPTY_BYTES));
        if least.is_some_and(|least| least <= len)
            && (offset == ENTRY * (count + 1) || is_terminator(ENTRY * count)?)
        {
            return Ok(Told::Count(count));
        }
    }
    if first == TERMINATOR {
        return Ok(Told::Count(0));
    }
    if !offset.is_multiple_of(ENTRY) || offset < 2 * ENTRY || offset > len {
        return Ok(Told::Nothing);
    }
    let count = offset / ENTRY - 1;
    Ok(if is_terminator(offset - ENTRY)? {
        Told::Count(count)
    } else {
        Told::Unproven(count)
    })
}

fn all_version_6(source: &dyn Source, options: &Options, count: u64) -> Result<bool> {
    let mut all = true;
    each_piece(source, options, 0, count * ENTRY, |bytes| {
        let mut entries = bytes.as_chunks::<ENTRY_BYTES>().0.iter();
        all = entries.all(|entry| uuid6::is_v6(&Entry::parse(entry).uuid));
        all
    })?;
    Ok(all)
}

/// The number of entries in front of the first terminator.
fn first_terminator(source: &dyn Source, options: &Options) -> Result<Option<u64>> {
    let (mut count, mut found) = (0, false);
    let whole = source.len() / ENTRY * ENTRY;
    each_piece(source, options, 0, whole, |bytes| {
        let entries = bytes.as_chunks::<ENTRY_BYTES>().0;
        let place = entries.iter().position(|entry| *entry == TERMINATOR);
        count += place.unwrap_or(entries.len()) as u64;
        found = place.is_some();
        !found
    })?;
    Ok(found.then_some(count))
}

/// Shows `look` the bytes from `start` to `end` in pieces of whole entries, until it has seen enough.
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
        window.load(source, at, piece, piece)?;
        let bytes = window.bytes(source, at).get(..piece).unwrap_or_default();
        if !look(bytes) {
            break;
        }
        at += piece as u64;
    }
    Ok(())
}

/// The index hash: of entries, terminator and checksums as they stand in the file.
pub(super) fn index_hash(
    source: &dyn Source,
    options: &Options,
    key: &Key,
    count: u64,
    checksums: u64,
) -> Result<u64> {
    let terminator = read_array(source, count * ENTRY)?;
    hash_with(source, options, key, count, checksums, &terminator)
}

/// The index hash that a writer would have written: with a terminator of zeros, whatever there is.
pub(super) fn written_index_hash(
    source: &dyn Source,
    options: &Options,
    key: &Key,
    count: u64,
    checksums: u64,
) -> Result<u64> {
    hash_with(source, options, key, count, checksums, &TERMINATOR)
}

fn hash_with(
    source: &dyn Source,
    options: &Options,
    key: &Key,
    count: u64,
    checksums: u64,
    terminator: &[u8; ENTRY_BYTES],
) -> Result<u64> {
    let mut hasher = Incremental::new(key);
    let mut add = |bytes: &[u8]| {
        hasher.update(bytes);
        true
    };
    each_piece(source, options, 0, count * ENTRY, &mut add)?;
    add(terminator);
    let end = checksums + count * CHECKSUM_BYTES as u64;
    each_piece(source, options, checksums, end, &mut add)?;
    Ok(hasher.finish())
}

/// What reading the whole index once, and none of the messages, proves about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// Every UUID is of version 6 and greater than the one before, every offset in bounds and greater than the one before: so
    /// a search among the entries finds each that is there.
    pub(super) ascends: bool,
    /// The index hash of what is in the file; `None` without a trailer.
    pub(super) hash: Option<u64>,
    /// It and the key check are right, so the entries are those that were written; false without a trailer.
    pub(super) is_proven: bool,
}

/// Reads the index once.
pub(super) fn survey(source: &dyn Source, options: &Options, front: &Front) -> Result<Survey> {
    survey_each(source, options, front, |_, _| {})
}

/// The same, and shows `look` each entry with its number on the way.
pub(super) fn survey_each(
    source: &dyn Source,
    options: &Options,
    front: &Front,
    mut look: impl FnMut(u64, &Entry),
) -> Result<Survey> {
    let (mut ascends, mut last, mut left) = (true, None::<Entry>, front.entries);
    let mut hasher = Incremental::new(&front.key);
    each_piece(source, options, 0, front.data_start, |bytes| {
        hasher.update(bytes);
        for entry in bytes.as_chunks().0.iter().map(Entry::parse) {
            if left == 0 {
                break; // the terminator
            }
            look(front.entries - left, &entry);
            left -= 1;
            ascends &= uuid6::is_v6(&entry.uuid)
                && front.in_bounds(entry.offset)
                && last.is_none_or(|last| last.uuid < entry.uuid && last.offset < entry.offset);
            last = Some(entry);
        }
        true
    })?;
    let Some(trailer) = &front.trailer else {
        return Ok(Survey {
            ascends,
            hash: None,
            is_proven: false,
        });
    };
    let end = trailer.checksum_at(front.entries);
    each_piece(source, options, trailer.start, end, |bytes| {
        hasher.update(bytes);
        true
    })?;
    let hash = hasher.finish();
    Ok(Survey {
        ascends,
        hash: Some(hash),
        is_proven: trailer.key_check_is_right && hash == trailer.foot.index_hash,
    })
}
