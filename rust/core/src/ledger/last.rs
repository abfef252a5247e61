//! Emits the ranges of an index or table of contents, which come last: they can only be verified by the units that
//! entries name.

use super::Span;
use crate::error::Result;
use crate::limits::LIMITS;

/// Calls `emit` until there are enough ranges for a step, or no more. `emit` appends ranges and returns whether there are
/// more. Returns whether there are more.
///
/// Ranges before `given` were emitted by an earlier walk, from which this one resumed. `given` becomes the end of the
/// last range.
///
/// # Errors
/// Those of `emit`.
pub(crate) fn emit_last(
    given: &mut u64,
    spans: &mut Vec<Span>,
    mut emit: impl FnMut(&mut Vec<Span>) -> Result<bool>,
) -> Result<bool> {
    let (before, mut more) = (spans.len(), true);
    while more && spans.len() < before + LIMITS.front_step_spans {
        let first = spans.len();
        more = emit(spans)?;
        let old = |span: &Span| span.start < *given;
        let old = spans
            .get(first..)
            .unwrap_or_default()
            .iter()
            .take_while(|span| old(span))
            .count();
        spans.drain(first..first + old);
    }
    if let Some(last) = spans.get(before..).and_then(<[Span]>::last) {
        *given = last.end;
    }
    Ok(more)
}
