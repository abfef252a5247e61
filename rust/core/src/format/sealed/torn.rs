//! A trailer that is cut off: found only where all of the file in front of it is as the writer left it.

use super::index::{POLL_EVERY, written_index_hash};
use super::layout::{CHECKSUM_BYTES, ENTRY_BYTES, FOOT_BYTES, MAGIC, Parsed};
use super::reader::Reader;
use super::trailer::{Foot, key_check, trailer_bytes};
use crate::checksum::Key;
use crate::engine::Options;
use crate::error::Result;
use crate::saturating::saturating_usize;

/// Where the data ends if what follows it is the beginning of the trailer that these messages would have. That takes a look at
/// the last message where it ends with the file, and at the first one's checksum where it does not.
pub(super) fn torn_trailer(
    reader: &mut Reader,
    options: &Options,
    key: &Key,
    entries: u64,
) -> Result<Option<u64>> {
    let len = reader.source.len();
    let data_start = (entries + 1) * ENTRY_BYTES as u64;
    let Some(data_end) = end_of_last(reader, entries, data_start, len)? else {
        return Ok(None);
    };
    if data_end >= len || len - data_end >= trailer_bytes(entries) {
        return Ok(None);
    }
    let mut at = data_start;
    for number in 0..entries {
        if number.is_multiple_of(POLL_EVERY) {
            reader.poll()?;
        }
        let entry = reader.entry(number, entries)?;
        if entry.offset != at || at >= len {
            return Ok(None);
        }
        reader.bring(at, len, false)?;
        let Parsed::Message(header) = reader.header(at, len)? else {
            return Ok(None);
        };
        let stored_at = data_end + number * CHECKSUM_BYTES as u64;
        if stored_at < len {
            let checksum = reader.hash(key, &entry.uuid, at, header.total())?;
            if !begins(reader, stored_at, &checksum.to_be_bytes())? {
                return Ok(None);
            }
        }
        at += header.total();
    }
    let foot_at = data_end + entries * CHECKSUM_BYTES as u64;
    if at != data_end || foot_at < len && !foot_begins(reader, options, key, entries, foot_at)? {
        return Ok(None);
    }
    Ok(Some(data_end))
}

/// Where the last message ends by its own entry and lengths; without messages, where the index does.
fn end_of_last(
    reader: &mut Reader,
    entries: u64,
    data_start: u64,
    len: u64,
) -> Result<Option<u64>> {
    let Some(last) = entries.checked_sub(1) else {
        return Ok(Some(data_start));
    };
    let at = reader.entry(last, entries)?.offset;
    if at < data_start || at >= len {
        return Ok(None);
    }
    Ok(match reader.header(at, len)? {
        Parsed::Message(header) => Some(at + header.total()),
        _ => None,
    })
}

/// Whether what there is of the file from `at` on, at most as much as `expected`, is how `expected` begins.
fn begins(reader: &Reader, at: u64, expected: &[u8]) -> Result<bool> {
    let left = saturating_usize(reader.source.len() - at);
    let mut found = [0; FOOT_BYTES];
    let Some(found) = found.get_mut(..left.min(expected.len())) else {
        return Ok(false);
    };
    reader.source.read_exact_at(at, found)?;
    Ok(expected.starts_with(found))
}

fn foot_begins(
    reader: &Reader,
    options: &Options,
    key: &Key,
    entries: u64,
    at: u64,
) -> Result<bool> {
    let checksums = at - entries * CHECKSUM_BYTES as u64;
    // The key check first: it costs nothing.
    let key_check = key_check(key);
    if !begins(reader, at, &key_check.to_be_bytes())? {
        return Ok(false);
    }
    let foot = Foot {
        key_check,
        count: entries,
        index_hash: written_index_hash(&*reader.source, options, key, entries, checksums)?,
        magic: MAGIC,
    };
    begins(reader, at, &foot.to_bytes())
}
