//! Detects a sealed segment by a few short reads.

use super::index::{EntryCount, TERMINATOR, count_at_ends, final_magic, read_array};
use super::layout::{ENTRY_BYTES, Entry, Header, MAX_HEADER_BYTES};
use super::locate::last_message;
use super::trailer::{Trailer, trailer_bytes};
use crate::engine::Likelihood;
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::uuid6;
use crate::walk::Options;

/// The trailer's key check under one of the keys makes it certain. Its magic and count make it likely. Without a
/// trailer, entry 0 makes it likely if its offset is after a terminator and leads to a message.
pub(super) fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    if source.len() < ENTRY_BYTES as u64 {
        return Ok(Likelihood::No);
    }
    let (EntryCount::Count(count) | EntryCount::Unproven(count)) =
        count_at_ends(source, final_magic)?
    else {
        return Ok(Likelihood::No);
    };
    let data_start = (count + 1) * ENTRY_BYTES as u64;
    let after_last = last_message(source, count)?.map(|last| last.end);
    // A file without a trailer may end with that of a value.
    let at_end = match after_last == Some(source.len()) {
        true => None,
        false => source.len().checked_sub(trailer_bytes(count)),
    };
    let places = [after_last, at_end.filter(|start| *start >= data_start)];
    let mut is_under_another_key = false;
    for (start, key) in places
        .into_iter()
        .flatten()
        .flat_map(|start| options.keys.iter().map(move |key| (start, key)))
    {
        let trailer = Trailer::read(source, key, count, start)?;
        if trailer.key_check_is_right && (trailer.is_very_likely() || Some(start) == after_last) {
            let reason = "the key check of its trailer matches".to_owned();
            return Ok(Likelihood::Certain(reason));
        }
        is_under_another_key |= trailer.is_very_likely();
    }
    if is_under_another_key {
        let reason = "it has a trailer with the magic and the count of its entries".to_owned();
        return Ok(Likelihood::Likely(reason));
    }
    let first = Entry::parse(0, &read_array(source, 0)?);
    let terminator = read_array(source, data_start - ENTRY_BYTES as u64)?;
    let is_index = count > 0
        && uuid6::is_v6(&first.uuid)
        && first.offset == data_start
        && terminator == TERMINATOR;
    if !is_index {
        return Ok(Likelihood::No);
    }
    let left = source.len() - data_start;
    let len = saturating_usize(left).min(MAX_HEADER_BYTES);
    let mut window = Window::default();
    let header = Header::parse(window.exact(source, data_start, len, len)?, left);
    let reason = "the first entry of its index names a message after a terminator";
    Ok(match header {
        Ok(_) => Likelihood::Likely(reason.to_owned()),
        Err(_) => Likelihood::No,
    })
}
