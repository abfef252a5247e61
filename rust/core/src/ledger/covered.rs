//! The ranges of a file that were read, and the spans at their ends: where two ranges meet, two spans can be one.

use serde::{Deserialize, Serialize};

use super::Span;

/// A range with spans in file order. A pruned walk leaves gaps in it, and no other part reads those either.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CoveredRange {
    first: Span,
    last: Span,
}

/// Ranges that were read: of one walk in the order in which it read them, of several walks in file order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Covered(Vec<CoveredRange>);

impl Covered {
    /// Adds the next spans of a walk.
    pub(crate) fn extend(&mut self, spans: &[Span]) {
        for run in spans.chunk_by(|span, next| span.end <= next.start) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                continue;
            };
            match self.0.last_mut() {
                Some(range) if range.last.end <= first.start => range.last = *last,
                _ => self.0.push(CoveredRange {
                    first: *first,
                    last: *last,
                }),
            }
        }
    }

    /// Adds the ranges of a walk of another part of the file. Returns the spans that were merged from two.
    pub(crate) fn merge(&mut self, other: &Self) -> Vec<Span> {
        let mut all = std::mem::take(&mut self.0);
        all.extend_from_slice(&other.0);
        all.sort_by_key(|range| range.first.start);
        let mut joined = Vec::new();
        for next in all {
            match self.0.last_mut() {
                Some(last) if last.last.end == next.first.start => {
                    joined.extend(last.append(&next))
                }
                _ => self.0.push(next),
            }
        }
        joined
    }
}

impl CoveredRange {
    /// Adds the range after this one. If its first span and the last one here are one, returns the merged span.
    fn append(&mut self, next: &Self) -> Option<Span> {
        let (before, behind) = (self.last, next.first);
        if !before.goes_on_in(&behind) {
            self.last = next.last;
            return None;
        }
        let span = Span {
            end: behind.end,
            ..before
        };
        if self.first == before {
            self.first = span;
        }
        self.last = if next.last == behind { span } else { next.last };
        Some(span)
    }
}
