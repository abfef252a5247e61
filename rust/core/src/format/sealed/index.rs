//! The index as a whole: its number of entries, its hash, and reading it in pieces.

use std::ops::Range;

use super::layout::{ENTRY_BYTES, Entry, MAGIC, MIN_MESSAGE_BYTES};
use crate::checksum::{Incremental, Key};
use crate::cursor::fields;
use crate::engine::Options;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::uuid6;

/// How many entries are read between two polls of the interrupt.
pub(super) const POLL_EVERY: u64 = 1 << 12;

const ENTRY: u64 = ENTRY_BYTES as u64;
/// The bytes after the last entry.
pub(super) const TERMINATOR: [u8; ENTRY_BYTES] = [0; ENTRY_BYTES];
/// The length of an index without entries and the trailer's fixed part.
const EMPTY_BYTES: u64 = 56;

/// The number of entries, if it can be determined (rule 13). The file is at least one entry long. In a sound file
/// that takes a look at its two ends.
pub(super) fn count_entries(source: &dyn Source, options: &Options) -> Result<Option<u64>> {
    match count_at_ends(source)? {
        EntryCount::Count(count) => Ok(Some(count)),
        EntryCount::Unproven(count) if all_version_6(source, options, count)? => Ok(Some(count)),
        _ => first_terminator(source, options),
    }
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

/// Uses the trailer's count, else entry 0's offset.
pub(super) fn count_at_ends(source: &dyn Source) -> Result<EntryCount> {
    let len = source.len();
    let first = read_array::<ENTRY_BYTES>(source, 0)?;
    let offset = Entry::parse(0, &first).offset;
    let is_terminator = |at| Ok(read_array::<ENTRY_BYTES>(source, at)? == TERMINATOR);
    if len >= EMPTY_BYTES && read_array(source, len - 8)? == MAGIC {
        let count = u64::from_be_bytes(read_array(source, len - 24)?);
        let least = count
            .checked_mul(MIN_MESSAGE_BYTES)
            .and_then(|bytes| bytes.checked_add(EMPTY_BYTES));
        if least.is_some_and(|least| least <= len)
            && (offset == ENTRY * (count + 1) || is_terminator(ENTRY * count)?)
        {
            return Ok(EntryCount::Count(count));
        }
    }
    if first == TERMINATOR {
        return Ok(EntryCount::Count(0));
    }
    if !offset.is_multiple_of(ENTRY) || offset < 2 * ENTRY || offset > len {
        return Ok(EntryCount::Nothing);
    }
    let count = offset / ENTRY - 1;
    Ok(if is_terminator(offset - ENTRY)? {
        EntryCount::Count(count)
    } else {
        EntryCount::Unproven(count)
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
        let place = entries.iter().position(|entry| *entry == TERMINATOR);
        count += place.unwrap_or(entries.len()) as u64;
        found = place.is_some();
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

/// The index hash: of the entries before this offset, of these bytes as the terminator there, and of the checksums
/// in this range.
pub(super) fn index_hash(
    source: &dyn Source,
    options: &Options,
    key: &Key,
    terminator: (u64, [u8; ENTRY_BYTES]),
    checksums: Range<u64>,
) -> Result<u64> {
    let mut hasher = Incremental::new(key);
    let mut add = |bytes: &[u8]| {
        hasher.update(bytes);
        true
    };
    each_piece(source, options, 0, terminator.0, &mut add)?;
    add(&terminator.1);
    each_piece(source, options, checksums.start, checksums.end, &mut add)?;
    Ok(hasher.finish())
}

/// The `N` bytes at `at`. The caller makes sure that they are within the source.
pub(super) fn read_array<const N: usize>(source: &dyn Source, at: u64) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    source.read_exact_at(at, &mut bytes)?;
    Ok(bytes)
}
