//! Detects complete verified records within damage: older data, or duplicates.

use std::sync::Arc;

use super::budget::Budget;
use super::excerpt::Excerpt;
use super::reason::Explanation;
use crate::bug::OrBug;
use crate::cursor::Cursor;
use crate::engine::Start;
use crate::error::{Error, Result};
use crate::format::open;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::BytesSource;
use crate::verbs::diagnosis::{Certainty, Neighbour, Reason};
use crate::walk::{Options, Step};

/// How many bytes of a record are searched elsewhere.
const PROBE_BYTES: usize = 64;

/// How many bytes of a range are searched for records after its beginning.
const MAX_SEARCHED: usize = 16 << 10;

/// Reads the damaged bytes as a file of their own: as far as records are verified from the first byte on, or from the
/// next place where one is, if `budget` allows the worst case.
pub(super) fn explain(
    options: &Options,
    excerpt: &Excerpt,
    span: &Span,
    budget: &mut Budget,
) -> Result<Option<Explanation>> {
    let bytes = excerpt.of(span);
    let strict = options.clone().strict(true);
    let mut found = read(bytes, &strict)?;
    let searched = Cursor::new(bytes).run_up_to(MAX_SEARCHED);
    // In the worst case every byte begins a candidate that reaches to the end and is hashed without success.
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
        1 => "one verified record".to_owned(),
        count => format!("{count} verified records"),
    };
    let probe = bytes.get(place..).or_bug("a record within these bytes")?;
    let probe = Cursor::new(probe).run_up_to(PROBE_BYTES);
    Ok(Some(match elsewhere(excerpt, at, probe) {
        Some(other) => Explanation::new(
            Reason::DuplicatedRecords,
            Certainty::Likely,
            format!("{records}, the first at {at}; the same bytes are at {other}"),
        ),
        None => Explanation::new(
            Reason::StaleData,
            Certainty::Likely,
            format!("{records}, the first at {at}, not in order after the records before"),
        ),
    }))
}

/// The first record of these bytes, and their number up to the first damage in strict mode.
fn read(bytes: &[u8], options: &Options) -> Result<Option<(Neighbour, u64)>> {
    let alone = Arc::new(BytesSource::new(bytes.to_vec()));
    let format = options.format.or_bug("a format that is known by now")?;
    let places = format.identifying_places(options.dialect);
    let (mut first, mut count) = (None, 0);
    let mut walk = open(alone, options, Start::Beginning)?;
    loop {
        match walk.step() {
            Ok(Step::More) => {}
            // Bytes that begin like a compressed file are no file of the format.
            Ok(_) | Err(Error::Damage(_) | Error::Format { .. }) => break,
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

/// Where else nearby these bytes are.
fn elsewhere(excerpt: &Excerpt, at: u64, probe: &[u8]) -> Option<u64> {
    if probe.is_empty() {
        return None;
    }
    let places = excerpt.bytes.windows(probe.len()).enumerate();
    let mut same = places.filter(|(_, bytes)| *bytes == probe);
    same.find_map(|(place, _)| {
        let other = excerpt.start + place as u64;
        (other != at).then_some(other)
    })
}
