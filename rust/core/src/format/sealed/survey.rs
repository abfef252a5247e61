//! What reading the whole index proves: whether it ascends, and whether it is what was written.

use super::front::Front;
use super::index::each_piece;
use super::layout::Entry;
use crate::checksum::Incremental;
use crate::engine::Options;
use crate::error::Result;
use crate::source::Source;
use crate::uuid6;

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
