//! The record that a segment ends with, and which one another segment has in its place.

use std::sync::Arc;

use super::check::Checker;
use super::front::Segment;
use super::layout::Entry;
use super::reader::Reader;
use super::trailer::Trailer;
use crate::engine::position::{Extent, Numbered};
use crate::error::Result;
use crate::record::Checked;
use crate::source::Source;
use crate::uuid6;
use crate::walk::Options;

/// The record of the entry with this number; without one, of the last entry whose message is in the file. `None` if it is not
/// certain that a walk returns it, and no record after it.
pub(super) fn numbered(
    source: &Arc<dyn Source>,
    options: &Options,
    number: Option<u64>,
) -> Result<Option<Numbered>> {
    let segment = Segment::open(source.clone(), options)?;
    let (entries, is_sought) = (segment.front.entries, number.is_some());
    let has_checksums = segment.front.checked() == Checked::Checksum;
    let whole = match has_checksums {
        true => entries,
        false => whole(&segment)?,
    };
    let Some(number) = number.or(whole.checked_sub(1)).filter(|own| *own < whole) else {
        return Ok(None);
    };
    let mut checker = Checker::new(&segment, Reader::sparse);
    let mut entry = checker.entry_elsewhere(number)?;
    let is_torn = !has_checksums && number + 1 == whole;
    if is_torn && checker.reader.header(entry.offset)?.is_err() {
        // The file was cut off within it.
        let Some(number) = number.checked_sub(1) else {
            return Ok(None);
        };
        entry = checker.entry_elsewhere(number)?;
    }
    let Some(message) = checker.in_place(entry.number)? else {
        return Ok(None);
    };
    let is_last = message.number + 1 == entries;
    let ends_with_file = |own: Trailer| own.end == segment.front.len;
    Ok(Some(Numbered {
        number: message.number,
        uuid: message.uuid,
        place: Extent {
            at: message.position,
            nbytes: message.header.total(),
        },
        is_last,
        is_proven: is_sought
            && is_last
            && segment.front.trailer.is_some_and(ends_with_file)
            && segment.survey(|_| {})?.is_proven,
    }))
}

/// How many entries have their messages in a file without checksums, which may have been cut off after them. 0 if other entries
/// are damaged, so that it is not clear which messages a walk returns.
fn whole(segment: &Segment) -> Result<u64> {
    let (mut whole, mut is_clear, mut last) = (0, true, None::<Entry>);
    segment.survey(|entry| {
        let ascends = last.is_none_or(|last| last.uuid < entry.uuid && last.offset < entry.offset);
        let is_here = entry.offset < segment.front.data_end;
        if ascends && is_here && entry.number == whole && uuid6::is_v6(&entry.uuid) {
            whole += 1;
        } else {
            is_clear &= ascends && !is_here;
        }
        last = Some(*entry);
    })?;
    Ok(if is_clear { whole } else { 0 })
}
