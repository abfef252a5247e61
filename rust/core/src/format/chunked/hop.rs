//! Reading headers alone, and hopping from one to the next over what is between them.

use std::sync::OnceLock;

use super::judge::{self, Fault, Head};
use super::layout::{HEADER_BYTES, Header, Item, align};
use crate::engine::Options;
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::{Source, data_end};

/// What stands at `at`.
pub(super) fn read(source: &dyn Source, at: u64) -> Result<Head> {
    let len = source.len();
    let left = saturating_usize(len.saturating_sub(at));
    let mut bytes = [0; HEADER_BYTES];
    let (bytes, _) = bytes.split_at_mut(left.min(HEADER_BYTES));
    source.read_exact_at(at, bytes)?;
    Ok(judge::structure(at, bytes, len))
}

/// Where in `log` an item's chunk is, if its header stands where the item says.
pub(super) fn chunk_of(item: Item, log: &dyn Source) -> Result<Option<u64>> {
    let Some(place) = judge::place(item, log.len()) else {
        return Ok(None);
    };
    let head = read(log, place)?;
    Ok(judge::agrees(item, head).then_some(place))
}

/// The offset behind the last byte of a file that is not zero: looked for once, where somebody asks.
#[derive(Debug, Default)]
pub(super) struct DataEnd(OnceLock<u64>);

impl DataEnd {
    /// That offset of `source`, which is the same each time.
    pub(super) fn of(&self, source: &dyn Source, options: &Options) -> Result<u64> {
        if let Some(end) = self.0.get() {
            return Ok(*end);
        }
        let end = data_end(source, || options.poll())?;
        Ok(*self.0.get_or_init(|| end))
    }
}

/// A place between two chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    /// Where the next chunk begins.
    pub(super) at: u64,
    /// The message offset behind the one before.
    pub(super) end: u64,
}

/// What stands behind a gap, by its header alone.
pub(super) enum Hop {
    /// A chunk.
    Chunk(Header),
    /// Nothing but unused space.
    End,
    /// Damage.
    Fault(Fault),
}

impl Gap {
    /// The gap behind the chunk at `at`.
    pub(super) const fn behind(header: Header, at: u64) -> Self {
        Self {
            at: align(header.payload_end(at)),
            end: header.end(),
        }
    }

    /// Looks at the header behind the gap. Where zeros stand there, `data_end` is asked for the offset behind the last byte of
    /// the file that is not zero.
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

    /// Whether what stands behind the gap fits what the header in front of it says: the next chunk, or nothing. A header tells of
    /// message offsets that are not there only if its payload is damaged, and then hardly ever so that the next one fits.
    pub(super) fn is_borne_out(
        self,
        source: &dyn Source,
        data_end: impl FnOnce() -> Result<u64>,
    ) -> Result<bool> {
        let hop = self.hop(source, data_end)?;
        Ok(matches!(hop, Hop::Chunk(_) | Hop::End))
    }
}
