//! Goes through a segment by its headers alone: hops from one to the next, and splits the segment into parts.
//!
//! Only a segment whose headers all verify and ascend, from the first chunk to the end or to unused space, is
//! split. Then nothing is ever searched for, and whether a chunk is good does not depend on the ones before.
//! Damage before a good chunk never joins damage after it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::judge::{self, Fault, Head};
use super::layout::{ALIGNMENT, HEADER_BYTES, Header, Item, align};
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::{Source, data_end};
use crate::walk::{Options, part};

/// How many headers are read between two polls of the interrupt.
pub(super) const POLL_HEADERS: u64 = 1 << 10;

/// A place between two chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    /// Where the next chunk begins.
    pub(super) at: u64,
    /// The message offset after the chunk before.
    pub(super) end: u64,
}

/// What follows a gap, judged by its header alone.
pub(super) enum Hop {
    /// A chunk.
    Chunk(Header),
    /// Only unused space.
    End,
    /// Damage.
    Fault(Fault),
}

impl Gap {
    /// The gap after the chunk at `at`.
    pub(super) const fn after(header: Header, at: u64) -> Self {
        Self {
            at: align(header.payload_end(at)),
            end: header.end(),
        }
    }

    /// Reads the header after the gap. If it is zeros, calls `data_end` for the offset after the last nonzero byte
    /// of the file.
    pub(super) fn hop(
        self,
        source: &dyn Source,
        data_end: impl FnOnce() -> Result<u64>,
    ) -> Result<Hop> {
        if self.at >= source.len() {
            return Ok(Hop::End);
        }
        let judged = match read(source, self.at)? {
            Head::Sound(header) => judge::order(header, self.end).map(|()| Hop::Chunk(header)),
            Head::Zeros => judge::unused(self.at, data_end()?).map(|()| Hop::End),
            Head::Bad(fault) => Err(fault),
        };
        Ok(match judged {
            Ok(hop) => hop,
            Err(fault) => Hop::Fault(fault),
        })
    }
}

impl Hop {
    /// Whether this confirms the header before the gap: the next chunk fits, or nothing follows. A header states message offsets that
    /// do not exist only if its payload is damaged, and then the next one hardly ever fits.
    pub(super) const fn confirms(&self) -> bool {
        matches!(self, Self::Chunk(_) | Self::End)
    }
}

/// Reads the header at `at`.
pub(super) fn read(source: &dyn Source, at: u64) -> Result<Head> {
    let left = saturating_usize(source.len().saturating_sub(at));
    let mut bytes = [0; HEADER_BYTES];
    let (bytes, _) = bytes.split_at_mut(left.min(HEADER_BYTES));
    source.read_exact_at(at, bytes)?;
    Ok(judge::structure(at, bytes, source.len()))
}

/// The offset in `log` of an item's chunk, if its header is where the item says.
pub(super) fn chunk_of(item: Item, log: &dyn Source) -> Result<Option<u64>> {
    let Some(place) = judge::place(item, log.len()) else {
        return Ok(None);
    };
    let head = read(log, place)?;
    Ok(judge::agrees(item, head).then_some(place))
}

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
        let header = read(source, self.from)?.verified();
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
        match portions.last_mut() {
            Some(portion) if next.at - portion.from <= target => portion.last = at,
            portion => {
                if let Some(portion) = portion {
                    portion.until = at;
                }
                portions.push(ChunkRange {
                    before,
                    from: at,
                    start: header.start,
                    last: at,
                    until: len,
                });
            }
        }
        (before, gap) = (at, next);
    }
    let portions = portions.into_iter();
    Ok(portions
        .map(|range| part::PlannedPart::new(range.until - range.from, range))
        .collect())
}
