//! The ranges of an index or table of contents, which come last: only the walk through what it points at shows them.

use super::Span;
use crate::error::Result;
use crate::limits::LIMITS;

/// Has `lay` append ranges, which says whether there are more, until there are enough for a step. Gives whether there are more.
///
/// Those in front of `given` were given before, by a walk that this one goes on with. It becomes where the last one ends.
///
/// # Errors
/// Those of `lay`.
pub(crate) fn lay_last(
    given: &mut u64,
    spans: &mut Vec<Span>,
    mut lay: impl FnMut(&mut Vec<Span>) -> Result<bool>,
) -> Result<bool> {
    let (before, mut more) = (spans.len(), true);
    while more && spans.len() < before + LIMITS.front_step_spans {
        let first = spans.len();
        more = lay(spans)?;
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
