//! Reads headers alone, and hops from one to the next.

use super::judge::{self, Fault, Head};
use super::layout::{HEADER_BYTES, Header, Item, align};
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// Reads the header at `at`.
pub(super) fn read(source: &dyn Source, at: u64) -> Result<Head> {
    let len = source.len();
    let left = saturating_usize(len.saturating_sub(at));
    let mut bytes = [0; HEADER_BYTES];
    let (bytes, _) = bytes.split_at_mut(left.min(HEADER_BYTES));
    source.read_exact_at(at, bytes)?;
    Ok(judge::structure(at, bytes, len))
}

/// The offset in `log` of an item's chunk, if its header is where the item says.
pub(super) fn chunk_of(item: Item, log: &dyn Source) -> Result<Option<u64>> {
    let Some(place) = judge::place(item, log.len()) else {
        return Ok(None);
    };
    let head = read(log, place)?;
    Ok(judge::agrees(item, head).then_some(place))
}

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

    /// Whether what follows the gap confirms the header before it: the next chunk fits, or nothing follows. A
    /// header states message offsets that do not exist only if its payload is damaged, and then the next one
    /// hardly ever fits.
    pub(super) fn is_confirmed(
        self,
        source: &dyn Source,
        data_end: impl FnOnce() -> Result<u64>,
    ) -> Result<bool> {
        let hop = self.hop(source, data_end)?;
        Ok(matches!(hop, Hop::Chunk(_) | Hop::End))
    }
}
