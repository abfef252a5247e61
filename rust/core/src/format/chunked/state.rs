//! The state of a walk between two steps.

use serde::{Deserialize, Serialize};

use super::part::Portion;
use super::resync::Cost;
use crate::ledger::{Fate, Span};

/// What a [`Carry`](crate::format::Carry) holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The offset of what comes next: a chunk if it is aligned, else padding.
    pub(super) at: u64,
    /// The message offset behind the last good chunk's last record.
    pub(super) end: u64,
    /// How many records of the chunk at `at` have been given out or passed over.
    pub(super) given: u64,
    /// Whether the CRC of any header was right.
    pub(super) checked: bool,
    /// What is to become of damage up to the next good chunk, where that is known.
    pub(super) fate: Option<Fate>,
    /// What searching has cost.
    pub(super) cost: Cost,
    /// Damage up to `at` that might still grow.
    pub(super) held: Option<Span>,
    /// Whether to end at the first header behind the wanted offsets, unless damage makes it doubtful.
    #[serde(default)]
    pub(super) hasty: bool,
    /// The part that this walk is of.
    pub(super) portion: Option<Portion>,
    /// That walk has ended: where it began may be in front of the part's end, if nothing in it is its own or is wanted.
    #[serde(default)]
    pub(super) is_over: bool,
    /// Whether the last chunk in front of `at` was good, so that a part may end here.
    pub(super) stands: bool,
}
