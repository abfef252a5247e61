//! Planning the parts of a segment, from its index alone.

use std::sync::Arc;

use super::open;
use super::state::{Portion, extent};
use super::survey::survey_each;
use crate::engine::Options;
use crate::engine::part;
use crate::error::Result;
use crate::source::Source;

/// Splits a segment. Reads the index and the checksums once.
pub(super) fn split(
    source: &Arc<dyn Source>,
    options: &Options,
    target: u64,
) -> Result<Vec<part::Portion>> {
    let front = open::front(source, options)?;
    let Some(trailer) = front.trailer else {
        return Ok(Vec::new());
    };
    let first = (0, front.data_start);
    let (mut cuts, mut cut, mut last) = (vec![first], first, first);
    let mut visit = |number: u64, offset: u64| {
        let (began, start) = cut;
        if extent(number - began, start, offset) > target && last.0 > began {
            cut = last;
            cuts.push(cut);
        }
        last = (number, offset);
    };
    let survey = survey_each(&**source, options, &front, |number, entry| {
        visit(number, entry.offset);
    })?;
    visit(front.entries, front.data_end);
    // Under a key that is not given the hash cannot be told; that the index ascends is enough for parts to be exact.
    let is_sound = match survey.hash {
        Some(hash) if trailer.key_check_is_right => {
            trailer.finding(&front.key, front.entries, hash).is_none()
        }
        _ => trailer.count_is_right && trailer.magic_is_right,
    };
    if !survey.ascends || !is_sound || !front.terminator_is_zero {
        return Ok(Vec::new());
    }
    let ends = cuts.iter().skip(1).copied();
    let ends = ends.chain([(front.entries, front.data_end)]);
    let portion = |(&(from, start), (until, end)): (&(u64, u64), (u64, u64))| {
        let bytes = extent(until - from, start, end);
        let portion = Portion {
            foot: trailer.foot,
            from,
            until,
        };
        part::Portion::new(bytes, portion)
    };
    Ok(cuts.iter().zip(ends).map(portion).collect())
}
