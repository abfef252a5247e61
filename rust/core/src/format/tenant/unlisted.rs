//! The scan of version 2 without a sound table of contents: an entry is proven by the block that it names (rule 23).

use serde::{Deserialize, Serialize};

use super::block_search::{BlockSearch, Good, Verdict};
use super::claims::{self, Origin};
use super::front::COUNT_BYTES;
use super::reading::Reading;
use super::toc::Entry;
use crate::engine::Advance;
use crate::error::Result;
use crate::ledger::{Cause, Kind};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Unlisted {
    pub(super) search: BlockSearch,
    /// Nothing is looked for in front of this: where a walk begins that begins within the file.
    pub(super) floor: u64,
}

impl Unlisted {
    pub(super) fn advance(&mut self, on: &mut Reading) -> Result<Advance> {
        let Some(entry) = on.peek()?.cloned() else {
            end(on);
            return Ok(Advance::End);
        };
        let found = match on.place.is_limited {
            true => None,
            false => match self.search.find(on, &entry, self.floor)? {
                Verdict::Full => return Ok(Advance::Full),
                Verdict::Good(good) => Some(good),
                Verdict::Failed(_) => None,
            },
        };
        on.place.table.pass();
        if let Some(good) = found {
            self.keep(on, &entry, good)?;
        } else if on.place.is_limited {
            end(on);
            return Ok(Advance::End);
        }
        Ok(Advance::On)
    }

    /// Takes in a good block.
    fn keep(&mut self, on: &mut Reading, entry: &Entry, good: Good) -> Result<()> {
        let (kind, cause) = match &on.place.last {
            None => (Kind::Corrupt, on.input.front.broken),
            Some((partition, _)) => {
                let gap = good.at.saturating_sub(on.ranges.at());
                if gap == COUNT_BYTES && *partition != entry.partition {
                    (Kind::Header, None)
                } else {
                    (Kind::Corrupt, Some(Cause::Unreferenced))
                }
            }
        };
        on.ranges.cover(good.at, kind, cause, Origin::None);
        on.ranges.cover(good.end(), Kind::Block, None, Origin::None);
        self.search.keep(on, entry, good)
    }
}

/// What is behind the last good block.
fn end(on: &mut Reading) {
    let broken = on.input.front.broken;
    let (kind, cause) = if on.place.is_limited {
        (Kind::Corrupt, Some(Cause::SearchLimit))
    } else if on.ranges.at() == 0 {
        (claims::kind(broken, true), broken)
    } else {
        (Kind::Corrupt, Some(Cause::Unreferenced))
    };
    on.ranges
        .cover(on.input.front.len, kind, cause, Origin::None);
}
