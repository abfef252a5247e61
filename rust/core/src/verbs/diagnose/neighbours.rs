//! Finds the sound records next to damaged ranges.

use std::sync::Arc;

use crate::bug::OrBug;
use crate::engine::Start;
use crate::error::Result;
use crate::format::open;
use crate::ledger::Span;
use crate::record::{RecordId, Rows};
use crate::source::Source;
use crate::spec::Spec;
use crate::verbs::diagnosis::Neighbour;
use crate::walk::{Options, Step};

impl Neighbour {
    pub(super) fn of(rows: &dyn Rows, row: usize, format: &Spec, places: &[usize]) -> Self {
        Self {
            position: rows.position(row),
            identifier: format.identifier,
            id: RecordId::of_row(rows, row, places),
            timestamp: rows.timestamp(row),
        }
    }
}

/// The records before and after a range.
pub(super) type Layered = (Option<Neighbour>, Option<Neighbour>);

/// The sound records before and after each of these ranges, which are in file order. Reads up to the record after the
/// last range.
pub(super) fn around(
    source: &Arc<dyn Source>,
    options: &Options,
    spans: &[Span],
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Vec<Layered>> {
    let format = options.format.or_bug("a format that is known by now")?;
    let places = format.identifying_places(options.dialect);
    let mut found: Vec<Layered> = vec![(None, None); spans.len()];
    let mut walk = open(source.clone(), options, Start::Beginning)?;
    // Records come in file order, so the ranges before this one are complete.
    let mut settled = 0;
    while settled < spans.len() && walk.step()? == Step::More {
        let rows = walk.rows();
        for (span, (before, after)) in spans.iter().zip(&mut found).skip(settled) {
            if let Some(row) = first_from(&*rows, span.start).checked_sub(1) {
                *before = Some(Neighbour::of(&*rows, row, format, &places));
            }
            let behind = first_from(&*rows, span.end);
            if behind < rows.len() && after.is_none() {
                *after = Some(Neighbour::of(&*rows, behind, format, &places));
            }
        }
        drop(rows);
        let left = found.iter().skip(settled);
        settled += left.take_while(|(_, after)| after.is_some()).count();
        progress(walk.offset())?;
    }
    Ok(found)
}

/// The first row at or after `offset`; the number of rows if there is none.
fn first_from(rows: &dyn Rows, offset: u64) -> usize {
    let (mut low, mut high) = (0, rows.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if rows.position(middle) < offset {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
