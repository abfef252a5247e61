//! The state of a walk between two steps, and of the part that it reads.

use serde::{Deserialize, Serialize};

use super::front::Front;
use super::judge::Prior;
use super::layout::{ENTRY_AND_CHECKSUM, Message, UUID_BYTES};
use super::trailer::Foot;
use crate::walk::Budget;
use crate::walk::indexed::Notes;

/// The state of a walk.
#[derive(Debug)]
pub(super) struct State {
    /// The first entry of this walk.
    pub(super) from: u64,
    /// The next entry.
    pub(super) next: u64,
    /// The last good message's UUID.
    pub(super) last: Option<[u8; UUID_BYTES]>,
    /// Where the last good message ends. Before the first: where the data begins.
    pub(super) end: u64,
    /// Where the message before this walk begins, if it was looked at.
    pub(super) looked_at: u64,
    /// Whether a message was tried directly after the last good one.
    pub(super) after_last: AfterLast,
    /// Entries since the last good one that have no message. The notes are numbered in entries.
    pub(super) failed: Notes,
    pub(super) ended: bool,
    /// The part that this walk reads.
    pub(super) part: Option<Progress>,
    /// Whether the entry before the next one has its message at its offset, so that a part may end here.
    pub(super) in_place: bool,
}

/// What is known of the place after the last good message, where a message may be whose entry names another
/// offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AfterLast {
    #[default]
    Untried,
    /// A message was tried at this place in vain.
    Tried(u64),
    /// The search budget did not allow trying one.
    Exhausted,
}

impl State {
    /// The state before entry number `next`, whose message begins at or after `end`.
    pub(super) fn before(next: u64, end: u64) -> Self {
        Self {
            from: next,
            next,
            last: None,
            looked_at: 0,
            end,
            after_last: AfterLast::default(),
            failed: Default::default(),
            ended: false,
            part: None,
            in_place: false,
        }
    }

    /// The state after a good message.
    pub(super) fn after(message: &Message) -> Self {
        Self {
            last: Some(message.uuid),
            looked_at: message.position,
            ..Self::before(message.number + 1, message.end())
        }
    }

    /// Whether any message was good, here or before this walk.
    pub(super) const fn is_any_good(&self) -> bool {
        self.last.is_some() || self.from > 0
    }

    pub(super) fn prior(&self) -> Prior {
        Prior {
            last: self.last,
            end: self.end,
        }
    }
}

/// A span of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryRange {
    /// The trailer's fixed part, so that a part of another file is refused.
    pub(super) foot: Foot,
    /// Where the trailer begins, and what finding it has cost: no part searches it again.
    pub(super) trailer: u64,
    pub(super) searched: Budget,
    /// The first entry.
    pub(super) from: u64,
    /// The entry after the last.
    pub(super) until: u64,
}

/// The progress of a walk of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) range: EntryRange,
    /// Where its first message begins or can begin.
    pub(super) start: u64,
}

impl EntryRange {
    /// Whether it fits this file.
    pub(super) fn fits(&self, front: &Front) -> bool {
        front
            .trailer
            .is_some_and(|trailer| trailer.foot == self.foot)
            && self.from < self.until
            && self.until <= front.entries
    }
}

/// How many bytes of the file this many entries take, if their messages lie between these offsets.
pub(super) const fn extent(entries: u64, start: u64, end: u64) -> u64 {
    end.saturating_sub(start)
        .saturating_add(entries.saturating_mul(ENTRY_AND_CHECKSUM as u64))
}
