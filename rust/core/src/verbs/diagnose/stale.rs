//! Whole records that check within damage: older ones that were there before, or the same ones once more.

use std::sync::Arc;

use super::neighbours::Neighbour;
use super::reason::{Certainty, Finding, Reason};
use super::region::Region;
use crate::error::Result;
use crate::format::{Options, Start, Step, open};
use crate::ledger::Span;
use crate::source::BytesSource;

/// How many bytes of a record are looked for elsewhere.
const PROBE_BYTES: usize = 64;

/// Reads the damaged bytes as a file of their own.
pub(super) fn explain(options: &Options, region: &Region, span: &Span) -> Result<Option<Finding>> {
    let bytes = region.of(span);
    let alone = Arc::new(BytesSource::new(bytes.to_vec()));
    let columns = options.format.map(|format| format.columns(options));
    let columns = columns.unwrap_or_default();
    let (mut count, mut first) = (0_u64, None::<Neighbour>);
    let mut walk = open(alone, options, Start::Beginning)?;
    while walk.step()? == Step::More {
        let rows = walk.rows();
        if first.is_none() && !rows.is_empty() {
            first = Some(Neighbour::of(&*rows, 0, columns));
        }
        count += rows.len() as u64;
    }
    let Some(first) = first else {
        return Ok(None);
    };
    let place = usize::try_from(first.position).unwrap_or(usize::MAX);
    let at = span.start + first.position;
    let records = match count {
        1 => "one record that checks".to_owned(),
        count => format!("{count} records that check"),
    };
    let probe = bytes.get(place..).unwrap_or_default();
    let probe = probe.get(..PROBE_BYTES).unwrap_or(probe);
    Ok(Some(match elsewhere(region, at, probe) {
        Some(other) => Finding::new(
            Reason::DuplicatedRecords,
            Certainty::Likely,
            format!("{records}, the first at {at}; the same bytes stand at {other}"),
        ),
        None => Finding::new(
            Reason::StaleData,
            Certainty::Likely,
            format!("{records}, the first at {at}, but not after those in front"),
        ),
    }))
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
