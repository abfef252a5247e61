//! The state of a walk between two steps.

use serde::{Deserialize, Serialize};

use super::layout::ALIGNMENT;
use super::part::ChunkRange;
use super::resync::Cost;
use crate::ledger::{Fate, Span};

/// The state in a [`Carry`](crate::format::Carry).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The offset of what comes next: a chunk if it is aligned, else padding.
    pub(super) at: u64,
    /// The message offset after the last record of the last good chunk.
    pub(super) end: u64,
    /// How many records of the chunk at `at` were emitted or skipped.
    pub(super) emitted: u64,
    /// Whether any header's CRC matched.
    pub(super) verified: bool,
    /// The fate of damage up to the next good chunk, if it is known.
    pub(super) fate: Option<Fate>,
    /// What searching has cost.
    pub(super) cost: Cost,
    /// Damage up to `at` that may still grow.
    pub(super) pending: Option<Span>,
    /// Where the walk ends.
    pub(super) until: Until,
}

/// Where a walk ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Until {
    /// With the file.
    #[default]
    End,
    /// At the first header after the wanted offsets, unless damage makes it doubtful.
    Filter,
    /// With the part. The next part begins after its end if the last chunk before that was good.
    Part {
        range: ChunkRange,
        follows_good: bool,
    },
    /// Here, for a part. It may begin before the part's end, if nothing in it is its own or matches the filter.
    Here,
}

impl State {
    /// Records, for a part, whether the last chunk before `at` is good.
    pub(super) const fn follow(&mut self, good: bool) {
        if let Until::Part { follows_good, .. } = &mut self.until {
            *follows_good = good;
        }
    }

    /// Whether the part ends here, where the next one begins. The file has `len` bytes.
    pub(super) fn is_past_part(&self, len: u64) -> bool {
        matches!(self.until, Until::Part { range, follows_good: true }
            if self.at.is_multiple_of(ALIGNMENT) && (range.until..len).contains(&self.at))
    }
}
