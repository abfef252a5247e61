//! Parts of a segment: spans of chunks.
//!
//! Only a segment whose headers all verify and ascend, from the first chunk to the end or to unused space, is
//! split. Then nothing is ever searched for, and whether a chunk is good does not depend on the ones before.
//! Damage before a good chunk never joins damage after it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::hop::{self, Gap, Hop};
use super::layout::ALIGNMENT;
use crate::error::Result;
use crate::source::{Source, data_end};
use crate::walk::{Options, part};

/// How many headers are read between two polls of the interrupt.
pub(super) const POLL_HEADERS: u64 = 1 << 10;

/// A span of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChunkRange {
    /// Where the chunk before it begins. 0 for the first part.
    pub(super) before: u64,
    /// Where its first chunk begins, and the message offset in its header, so that a part of another file is
    /// refused.
    pub(super) from: u64,
    start: i64,
    /// Where its last chunk begins.
    pub(super) last: u64,
    /// Where the first chunk after it begins, or the end of the file.
    pub(super) until: u64,
}

impl ChunkRange {
    /// Whether this can be a part of a segment.
    pub(super) fn is_of(&self, source: &dyn Source) -> Result<bool> {
        let header = hop::read(source, self.from)?.verified();
        Ok(header.is_some_and(|header| header.start == self.start)
            && self.from.is_multiple_of(ALIGNMENT)
            && self.before.is_multiple_of(ALIGNMENT)
            && self.before <= self.from
            && self.last.is_multiple_of(ALIGNMENT)
            && (self.from..source.len()).contains(&self.last))
    }
}

/// Splits a segment. Reads each chunk's header, and the zeros at the end.
pub(super) fn split(
    source: &Arc<dyn Source>,
    options: &Options,
    target: u64,
) -> Result<Vec<part::PlannedPart>> {
    let len = source.len();
    let (mut portions, mut gap) = (Vec::<ChunkRange>::new(), Gap::default());
    let (mut before, mut polled) = (0, 0_u64);
    while gap.at < len {
        if polled.is_multiple_of(POLL_HEADERS) {
            options.poll()?;
        }
        polled += 1;
        let header = match gap.hop(&**source, || data_end(&**source, || options.poll()))? {
            Hop::Chunk(header) => header,
            Hop::End => break,
            Hop::Fault(_) => return Ok(Vec::new()),
        };
        let (at, next) = (gap.at, Gap::after(header, gap.at));
        if portions
            .last()
            .is_none_or(|last| next.at - last.from > target)
        {
            if let Some(last) = portions.last_mut() {
                last.until = at;
            }
            portions.push(ChunkRange {
                before,
                from: at,
                start: header.start,
                last: at,
                until: len,
            });
        }
        if let Some(own) = portions.last_mut() {
            own.last = at;
        }
        (before, gap) = (at, next);
    }
    let portions = portions.into_iter();
    Ok(portions
        .map(|range| part::PlannedPart::new(range.until - range.from, range))
        .collect())
}
