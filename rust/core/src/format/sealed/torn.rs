//! Finds a trailer that is cut off, only if everything before it is as the writer left it.

use super::front::{Front, Segment};
use super::index::{POLL_EVERY, TERMINATOR, index_hash};
use super::layout::{CHECKSUM_BYTES, FOOT_BYTES};
use super::reader::Reader;
use super::trailer::{Foot, key_check, trailer_bytes};
use crate::error::Result;
use crate::saturating::saturating_usize;

/// Where the data ends, if what follows it is the beginning of the trailer that these messages would have. In
/// `segment` the data extends to the end of the file. Looks at the last message, and, unless that ends with the
/// file, at the first one's checksum.
pub(super) fn torn_trailer(segment: &Segment) -> Result<Option<u64>> {
    let Front {
        len,
        entries,
        data_start,
        ..
    } = segment.front;
    let mut reader = Reader::sequential(segment);
    let Some(data_end) = end_of_last(&mut reader, &segment.front)? else {
        return Ok(None);
    };
    if data_end >= len || len - data_end >= trailer_bytes(entries) {
        return Ok(None);
    }
    let mut at = data_start;
    for number in 0..entries {
        if number.is_multiple_of(POLL_EVERY) {
            reader.options.poll()?;
        }
        let entry = reader.entry(number)?;
        if entry.offset != at || at >= len {
            return Ok(None);
        }
        reader.load_message(at, false, 0)?;
        let Ok(header) = reader.header(at)? else {
            return Ok(None);
        };
        let stored_at = data_end + number * CHECKSUM_BYTES as u64;
        if stored_at < len {
            let checksum = reader.hash(&entry.uuid, at, header.total())?;
            if !begins(&reader, stored_at, &checksum.to_be_bytes())? {
                return Ok(None);
            }
        }
        at += header.total();
    }
    let foot_at = data_end + entries * CHECKSUM_BYTES as u64;
    let is_there =
        at == data_end && (foot_at >= len || foot_begins(segment, &reader, data_end, foot_at)?);
    Ok(is_there.then_some(data_end))
}

/// Where the last message ends by its entry and lengths. Without messages: where the index ends.
fn end_of_last(reader: &mut Reader, front: &Front) -> Result<Option<u64>> {
    let Some(last) = front.entries.checked_sub(1) else {
        return Ok(Some(front.data_start));
    };
    let at = reader.entry(last)?.offset;
    if !front.in_bounds(at) {
        return Ok(None);
    }
    let header = reader.header(at)?;
    Ok(header.ok().map(|header| at + header.total()))
}

/// Whether the file's bytes from `at` on, at most as many as `expected` has, are how `expected` begins.
fn begins(reader: &Reader, at: u64, expected: &[u8]) -> Result<bool> {
    let left = saturating_usize(reader.source.len() - at);
    let mut found = [0; FOOT_BYTES];
    let Some(found) = found.get_mut(..left.min(expected.len())) else {
        return Ok(false);
    };
    reader.source.read_exact_at(at, found)?;
    Ok(expected.starts_with(found))
}

/// Whether the fixed part that follows these checksums begins at `at`.
fn foot_begins(segment: &Segment, reader: &Reader, checksums: u64, at: u64) -> Result<bool> {
    let Front { key, entries, .. } = &segment.front;
    // The key check comes first: it costs nothing.
    if !begins(reader, at, &key_check(key).to_be_bytes())? {
        return Ok(false);
    }
    // What a writer would have hashed: a terminator of zeros, whatever the file has.
    let terminator = (segment.front.entry_at(*entries), TERMINATOR);
    let (source, options) = (&*segment.source, &segment.options);
    let hash = index_hash(source, options, key, terminator, checksums..at)?;
    begins(reader, at, &Foot::new(key, *entries, hash).to_bytes())
}
