//! The index as a whole: its number of entries, its hash, and reading it in pieces.

use std::ops::Range;

use super::layout::{ENTRY_BYTES, Entry, MAGIC, MIN_MESSAGE_BYTES};
use crate::checksum::{Incremental, Key};
use crate::cursor::fields;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::uuid6;
use crate::walk::Options;

/// How many entries are read between two polls of the interrupt.
pub(super) const POLL_EVERY: u64 = 1 << 12;

const ENTRY: u64 = ENTRY_BYTES as u64;
/// The bytes after the last entry.
pub(super) const TERMINATOR: [u8; ENTRY_BYTES] = [0; ENTRY_BYTES];
/// The length of an index without entries and the trailer's fixed part.
const EMPTY_BYTES: u64 = 56;

/// Where the last magic is sought: in this many bytes at the end of the file.
const MAGIC_WITHIN_BYTES: u64 = 1 << 20;

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
