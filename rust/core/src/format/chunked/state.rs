//! The state of a walk between two steps.

use serde::{Deserialize, Serialize};

use super::part::ChunkRange;
use crate::ledger::Fate;

/// What a [`Carry`](crate::walk::Carry) has of a chunked segment. Its offset is that of what comes next: a chunk if it is aligned, else
/// padding.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The message offset after the last record of the last good chunk.
    pub(super) end: u64,
    /// How many records of the next chunk were emitted or skipped.
    pub(super) emitted: u64,
    /// Whether any header's CRC matched.
    pub(super) verified: bool,
    /// The fate of damage up to the next good chunk, if it is known.
    pub(super) fate: Option<Fate>,
    /// Before this offset each search is made twice, the first time to decide the fate of damage. It is charged
    /// twice.
    pub(super) twice_until: u64,
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
