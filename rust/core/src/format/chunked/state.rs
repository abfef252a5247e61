//! The state of a walk between two steps.

use serde::{Deserialize, Serialize};

use super::layout::ALIGNMENT;
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
    /// Where the walk ends.
    pub(super) until: Until,
}

/// Where a walk ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Until {
    /// With the file.
    #[default]
    End,
    /// At the first header behind the wanted offsets, unless damage makes it doubtful.
    Wanted,
    /// With the part that it is of, behind whose end the next one begins if the last chunk in front of it was good.
    Part {
        portion: Portion,
        follows_good: bool,
    },
    /// Here: it was of a part. Where it began may be in front of the part's end, if nothing in it is its own or is wanted.
    Here,
}

impl State {
    /// In a part, the last chunk in front of `at` is good or not.
    pub(super) const fn follow(&mut self, good: bool) {
        if let Until::Part { follows_good, .. } = &mut self.until {
            *follows_good = good;
        }
    }

    /// Whether the part ends here, in a file of `len` bytes: the next one begins.
    pub(super) fn is_behind_part(&self, len: u64) -> bool {
        matches!(self.until, Until::Part { portion, follows_good: true }
            if self.at.is_multiple_of(ALIGNMENT) && (portion.until..len).contains(&self.at))
    }
}
