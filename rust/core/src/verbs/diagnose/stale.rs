//! Whole records that check within damage: older ones that were there before, or the same ones once more.

use std::sync::Arc;

use super::budget::Budget;
use super::reason::Explanation;
use super::region::Region;
use crate::bug::OrBug;
use crate::cursor::Cursor;
use crate::engine::{Options, Start, Step};
use crate::error::{Error, Result};
use crate::format::open;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::BytesSource;
use crate::verbs::diagnosis::Neighbour;
use crate::verbs::diagnosis::{Certainty, Reason};

/// How many bytes of a record are looked for elsewhere.
const PROBE_BYTES: usize = 64;

/// How much of a range is searched for records behind its beginning.
const MAX_SEARCHED: usize = 16 << 10;

/// Reads the damaged bytes as a file of their own: as far as they check from the first byte on, or else, as far as `budget` allows
/// for the worst, where they check again.
pub(super) fn explain(
    options: &Options,
    region: &Region,
    span: &Span,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    let bytes = region.of(span);
    let strict = options.clone().strict(true);
    let mut found = read(bytes, &strict)?;
    let searched = Cursor::new(bytes).run_up_to(MAX_SEARCHED);
    // Every byte could begin a record that reaches to the end, and is hashed in vain.
    let worst = (searched.len() as u64).saturating_mul(searched.len() as u64) / 2;
    if found.is_none() && budget.afford(worst) {
        found = read(searched, options)?;
    }
    let Some((first, count)) = found else {
        return Ok(None);
    };
    let place = saturating_usize(first.position);
    let at = span.start + first.position;
    let records = match count {
        1 => "one record that checks".to_owned(),
        count => format!("{count} records that check"),
    };
    let probe = bytes.get(place..).or_bug("a record within these bytes")?;
    let probe = Cursor::new(probe).run_up_to(PROBE_BYTES);
    Ok(Some(match elsewhere(region, at, probe) {
        Some(other) => Explanation::new(
            Reason::DuplicatedRecords,
            Certainty::Likely,
            format!("{records}, the first at {at}; the same bytes stand at {other}"),
        ),
        None => Explanation::new(
            Reason::StaleData,
            Certainty::Likely,
            format!("{records}, the first at {at}, but not after those in front"),
        ),
    }))
}

/// The first record of these bytes, and how many there are, up to the damage if reading strictly.
fn read(bytes: &[u8], options: &Options) -> Result<Option<(Neighbour, u64)>> {
    let alone = Arc::new(BytesSource::new(bytes.to_vec()));
    let format = options.format.or_bug("a format that is known by now")?;
    let places = format.identifying_places(options);
    let (mut first, mut count) = (None, 0);
    let mut walk = open(alone, options, Start::Beginning)?;
    loop {
        match walk.step() {
            Ok(Step::More) => {}
            Ok(_) | Err(Error::Damage(_)) => break,
            Err(error) => return Err(error),
        }
        let rows = walk.rows();
        if first.is_none() && !rows.is_empty() {
            first = Some(Neighbour::of(&*rows, 0, format, &places));
        }
        count += rows.len() as u64;
    }
    Ok(first.map(|first| (first, count)))
}

/// Where else these bytes stand nearby.
fn elsewhere(region: &Region, at: u64, probe: &[u8]) -> Option<u64> {
    if probe.is_empty() {
        return None;
    }
    let places = region.bytes.windows(probe.len()).enumerate();
    let mut same = places.filter(|(_, bytes)| *bytes == probe);
    same.find_map(|(place, _)| {
        let other = region.start + place as u64;
        (other != at).then_some(other)
    })
}
