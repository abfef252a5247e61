//! What a walk knows between two steps, and the part that it is of.

use serde::{Deserialize, Serialize};

use super::check::Effort;
use super::front::Front;
use super::judge::Prior;
use super::layout::{ENTRY_AND_CHECKSUM, Message, UUID_BYTES};
use super::trailer::Foot;
use crate::ledger::Notes;

/// What a [`Carry`](crate::engine::Carry) holds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// The file's length and number of entries, so that a carry of another file is refused.
    pub(super) size: u64,
    pub(super) entries: u64,
    /// The first entry of this walk.
    pub(super) from: u64,
    /// The entry that comes next.
    pub(super) next: u64,
    /// The last good message's UUID.
    pub(super) last: Option<[u8; UUID_BYTES]>,
    /// Where the last good message ends; before the first, where the data begins.
    pub(super) end: u64,
    /// Whether any message counted.
    pub(super) counted: bool,
    /// What searching has cost.
    pub(super) effort: Effort,
    /// Whether a message was looked for behind the last good one.
    pub(super) behind: Behind,
    /// Entries since the last good one that have no message.
    pub(super) failed: Notes,
    /// Entries in front of those that are damage. Notes are counted in entries.
    pub(super) marks: Notes,
    /// Once all ranges behind the index have been given: up to which entry those of the index are to be, and up to which offset
    /// they have been.
    pub(super) front: Option<(u64, u64)>,
    pub(super) ended: bool,
    /// The part that this walk is of.
    pub(super) part: Option<Progress>,
    /// Whether the entry before the next one has its message where it says, so that a part may end here.
    pub(super) stands: bool,
}

/// What is known of the place behind the last good message, at which one may stand whose entry says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Behind {
    #[default]
    Untried,
    /// One was looked for at this place in vain.
    Tried(u64),
    /// Looking for one would have taken more than may be hashed in vain.
    Exhausted,
}

impl State {
    /// In front of entry number `next`, whose message begins at `end` or behind it.
    pub(super) fn before(front: &Front, next: u64, end: u64) -> Self {
        Self {
            size: front.len,
            entries: front.entries,
            from: next,
            next,
            last: None,
            end,
            counted: next > 0,
            effort: Default::default(),
            behind: Behind::default(),
            failed: Default::default(),
            marks: Default::default(),
            front: None,
            ended: false,
            part: None,
            stands: false,
        }
    }

    /// Behind a message that counts.
    pub(super) fn behind(front: &Front, message: &Message) -> Self {
        let mut state = Self::before(front, message.number + 1, message.end());
        state.last = Some(message.uuid);
        state.effort.looked_at = message.position;
        state
    }

    /// Whether it can be of a walk of this file.
    pub(super) fn fits(&self, front: &Front) -> bool {
        let is_in_front = self.size == front.len
            && self.entries == front.entries
            && self.from <= self.next
            && self.next <= front.entries
            && front.data_start <= self.end
            && self.end <= front.data_end
            && self.part.is_none_or(|part| part.portion.fits(front));
        let are_passed = |notes: &Notes| {
            let first = notes.first();
            first.is_none_or(|first| self.from <= first.start && notes.end() <= self.next)
        };
        is_in_front && are_passed(&self.marks) && are_passed(&self.failed)
    }

    pub(super) fn prior(&self) -> Prior {
        Prior {
            last: self.last,
            end: self.end,
        }
    }
}

/// A stretch of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Portion {
    /// What the trailer says, so that a part of another file is refused.
    pub(super) foot: Foot,
    /// The first entry.
    pub(super) from: u64,
    /// The entry behind the last.
    pub(super) until: u64,
}

/// How far the walk of a part is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) portion: Portion,
    /// Where its first message begins or can begin.
    pub(super) start: u64,
    /// The most that was hashed in vain, or would have been.
    pub(super) peak: u64,
}

impl Portion {
    /// Whether it can be one of this file.
    pub(super) fn fits(&self, front: &Front) -> bool {
        front
            .trailer
            .is_some_and(|trailer| trailer.foot == self.foot)
            && self.from < self.until
            && self.until <= front.entries
    }
}

/// How many bytes of the file so many entries take whose messages lie between these offsets.
pub(super) const fn extent(entries: u64, start: u64, end: u64) -> u64 {
    end.saturating_sub(start)
        .saturating_add(entries.saturating_mul(ENTRY_AND_CHECKSUM as u64))
}
