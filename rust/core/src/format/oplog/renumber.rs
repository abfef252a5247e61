//! Numbers of messages within messages: where a message is dropped, the later ones get smaller numbers, and whatever counts by
//! numbers has to follow.
//!
//! | dialect | what counts messages |
//! |---|---|
//! | `draft`, `draft-1.1` | `checkpointer`: so many messages back |
//! | `draft-1.1` | `seq` of each clock entry: the message that declares a key |
//! | `autobase` | each checkpointer and pointer: so many messages back; `batch`: so many messages on, this one among them |
//!
//! Lengths in clocks, heads and checkpoints, and blocks in traces, count what is in other oplogs and in views: they stay.

use super::layout::compact::{Bytes, Counted, Counts, Run, put_uint};
use super::pieces::Pieces;
use crate::engine::Dialect;
use crate::error::Result;

/// The numbers of the messages that are dropped, ascending: 8 bytes of memory each.
#[derive(Debug, Default)]
pub(super) struct Dropped(Vec<u64>);

impl Dropped {
    /// Adds one behind all others.
    pub(super) fn push(&mut self, seq: u64) {
        self.0.push(seq);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many are in front of message `seq`.
    fn before(&self, seq: u64) -> u64 {
        self.0.partition_point(|own| *own < seq) as u64
    }

    fn contains(&self, seq: u64) -> bool {
        self.0.binary_search(&seq).is_ok()
    }

    /// The first from message `first` through message `last`.
    fn within(&self, first: u64, last: u64) -> Option<u64> {
        let next = self.0.partition_point(|own| *own < first);
        self.0.get(next).copied().filter(|own| *own <= last)
    }
}

/// A number of a message that another takes the place of. It is smaller, and so takes no more bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    /// Where it stands, counted from the message's beginning.
    pub(super) run: Run,
    value: u64,
}

impl Edit {
    /// The bytes of the new one: as few as it needs.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_uint(&mut bytes, self.value);
        bytes
    }

    /// How many bytes fewer they are.
    pub(super) fn saved(&self) -> u64 {
        self.run.len.saturating_sub(self.bytes().len() as u64)
    }
}

/// A message that is being read, and what has to change in it.
pub(super) struct Renumbering<'a> {
    pub(super) pieces: Pieces<'a>,
    pub(super) dropped: &'a Dropped,
    pub(super) dialect: Dialect,
    /// The message's own number.
    pub(super) seq: u64,
    /// What was found so far, in the order of the message: 32 bytes of memory each.
    pub(super) edits: &'a mut Vec<Edit>,
    /// The first number that cannot follow, and why.
    pub(super) refusal: &'a mut Option<String>,
}

impl Renumbering<'_> {
    /// What a number becomes, or why it cannot be told.
    fn follow(&self, counted: &Counted) -> std::result::Result<u64, String> {
        let Counted { what, value, .. } = *counted;
        match counted.counts {
            Counts::Back => self.back(what, value),
            Counts::Number if self.dropped.contains(value) => {
                Err(format!("{what} is {value}, a message that is damaged"))
            }
            Counts::Number => Ok(value - self.dropped.before(value)),
            Counts::Batch => self.batch(value),
            Counts::Frame => {
                let within = |edit: &&Edit| edit.run.at >= counted.run.end();
                let saved = self.edits.iter().filter(within).map(Edit::saved);
                Ok(value.saturating_sub(saved.sum()))
            }
        }
    }

    fn back(&self, what: &str, distance: u64) -> std::result::Result<u64, String> {
        let before = self.dropped.before(self.seq);
        if distance == 0 || before == 0 {
            return Ok(distance);
        }
        let Some(target) = self.seq.checked_sub(distance) else {
            return Err(format!(
                "{what} leads {distance} messages back, in front of the first one"
            ));
        };
        if self.dropped.contains(target) {
            return Err(format!(
                "{what} leads to message {target}, which is damaged"
            ));
        }
        Ok(distance - (before - self.dropped.before(target)))
    }

    /// In `autobase` the last message of a batch has 1, the one in front of it 2: so many more have to follow. In the drafts a
    /// place in a batch is that and no more, whatever becomes of the others.
    fn batch(&self, place: u64) -> std::result::Result<u64, String> {
        let last = match self.dialect {
            Dialect::Autobase => self.seq.saturating_add(place.saturating_sub(1)),
            Dialect::Draft | Dialect::Draft11 => self.seq,
        };
        match self.dropped.within(self.seq, last) {
            Some(lost) => Err(format!(
                "message {lost}, which is damaged, is of the same batch"
            )),
            None => Ok(place),
        }
    }
}

impl Bytes for Renumbering<'_> {
    fn run(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        self.pieces.run(at, len)
    }

    fn counted(&mut self, counted: Counted) {
        match self.follow(&counted) {
            Ok(value) if value != counted.value => {
                // The length of a frame stands in front of what changed within.
                let behind = |edit: &Edit| edit.run.at < counted.run.at;
                let place = self.edits.partition_point(behind);
                let run = counted.run;
                self.edits.insert(place, Edit { run, value });
            }
            Ok(_) => {}
            Err(why) => {
                self.refusal.get_or_insert(why);
            }
        }
    }
}
