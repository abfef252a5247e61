//! Finds single flipped bits by trying all of them. The one after which the checksum matches is the cause.

use super::budget::Budget;
use super::reason::Explanation;
use crate::engine::candidate::{Candidate, Candidates};
use crate::error::Result;
use crate::ledger::Span;
use crate::source::Source;
use crate::verbs::diagnosis::{Certainty, Reason, Repair};

/// The most bits that repair one range. Adjacent damaged records are one range, each with a bit of its own.
const MAX_REPAIRS: usize = 16;

/// The bits that repair a range, or its beginning.
pub(super) fn repairs(
    source: &dyn Source,
    candidates: &mut dyn Candidates,
    span: &Span,
    budget: &mut Budget,
) -> Result<Vec<Repair>> {
    let mut found: Vec<Repair> = Vec::new();
    let mut rest = *span;
    while found.len() < MAX_REPAIRS && rest.start < rest.end {
        let mut next = None;
        for mut candidate in candidates.candidates(&rest)? {
            next = flipped(source, &mut candidate, budget)?;
            if next.is_some() {
                break;
            }
        }
        let Some(repair) = next else { break };
        // The next record may have a bit of its own. A repaired entry or checksum elsewhere does not move the position
        // in the range.
        let within = rest.start <= repair.start && repair.start < rest.end;
        rest.start = if within {
            repair.end.max(rest.start + 1)
        } else {
            rest.end
        };
        found.push(repair);
    }
    Ok(found)
}

/// The bit that verifies this candidate, if there is one.
fn flipped(
    source: &dyn Source,
    candidate: &mut Candidate,
    budget: &mut Budget,
) -> Result<Option<Repair>> {
    let mut bytes = candidate.read(source)?;
    budget.begin();
    // If the candidate is verified unchanged, no bit damaged it.
    match budget.attempt(candidate, &bytes) {
        Some(trial) if trial.end.is_none() => {}
        _ => return Ok(None),
    }
    let told = candidate.syndrome.as_ref();
    let told = told.and_then(|own| own.flipped(&bytes));
    if let Some((place, bit)) = told {
        let offset = candidate.body.start + place as u64;
        let found = with_bit(candidate, &mut bytes, place, offset, bit, budget);
        if let Some(Some(_)) = found {
            return Ok(found.flatten());
        }
    }
    for (place, offset) in candidate.places() {
        for bit in 0..8 {
            match with_bit(candidate, &mut bytes, place, offset, bit, budget) {
                Some(None) => {}
                found => return Ok(found.flatten()),
            }
        }
    }
    Ok(None)
}

/// Tries a candidate with a bit of the byte at `place` flipped, which is at `offset` in the file. `None`: there is no such byte, or the
/// budget is exhausted.
fn with_bit(
    candidate: &mut Candidate,
    bytes: &mut [u8],
    place: usize,
    offset: u64,
    bit: u32,
    budget: &mut Budget,
) -> Option<Option<Repair>> {
    let old = *bytes.get(place)?;
    let new = old ^ 1 << bit;
    *bytes.get_mut(place)? = new;
    let trial = budget.attempt(candidate, bytes);
    *bytes.get_mut(place)? = old;
    let end = trial?.end;
    Some(end.map(|end| Repair {
        offset,
        bit,
        old,
        new,
        checks: candidate.what.into(),
        start: candidate.body.start,
        end,
    }))
}

/// The explanation for repairs.
pub(super) fn explanation(repairs: Vec<Repair>) -> Explanation {
    let bits: Vec<_> = repairs
        .iter()
        .map(|repair| {
            let Repair {
                offset,
                bit,
                old,
                new,
                checks,
                start,
                ..
            } = repair;
            format!(
                "with bit {bit} of the byte at {offset} flipped back ({old:#04x} to {new:#04x}), the {checks} at {start} is verified"
            )
        })
        .collect();
    let evidence = bits.join("; ");
    Explanation {
        repairs,
        ..Explanation::new(Reason::FlippedBit, Certainty::Proven, evidence)
    }
}
