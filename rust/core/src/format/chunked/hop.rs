//! Reading headers of a file, without what is between them.

use super::judge::{self, Head, order, structure};
use super::layout::{HEADER_BYTES, Header, Item, align};
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// What stands at `at`.
pub(super) fn read(source: &dyn Source, at: u64) -> Result<Head> {
    let len = source.len();
    let left = saturating_usize(len.saturating_sub(at));
    let mut bytes = [0; HEADER_BYTES];
    let (bytes, _) = bytes.split_at_mut(left.min(HEADER_BYTES));
    source.read_exact_at(at, bytes)?;
    Ok(structure(at, bytes, len))
}

/// Where in `log` an item's chunk is, if its header stands where the item says.
pub(super) fn chunk_of(item: Item, log: &dyn Source) -> Result<Option<u64>> {
    let Some(place) = judge::place(item, log.len()) else {
        return Ok(None);
    };
    let head = read(log, place)?;
    Ok(judge::agrees(item, head).then_some(place))
}

/// Whether what stands behind the chunk at `at` fits what its header says of it: the next chunk, zeros from where the
/// file's `data_end` is, or the end. A header tells of message offsets that are not there only if its payload is damaged,
/// and then hardly ever so that the next one fits.
pub(super) fn is_borne_out(
    header: Header,
    source: &dyn Source,
    at: u64,
    data_end: impl FnOnce() -> Result<u64>,
) -> Result<bool> {
    let next = align(header.payload_end(at));
    if next >= source.len() {
        return Ok(true);
    }
    Ok(match read(source, next)? {
        Head::Zeros => judge::unused(next, data_end()?).is_ok(),
        Head::Sound(next) => order(next, header.end()).is_ok(),
        Head::Bad(_) => false,
    })
}
