//! Renumbers messages: if a message is dropped, later ones get smaller numbers, and numbers that refer to them
//! must follow.
//!
//! | dialect | what counts messages |
//! |---|---|
//! | `draft`, `draft-1.1` | `checkpointer`: this many messages back |
//! | `draft-1.1` | `seq` of each clock entry: the message that declares a key |
//! | `autobase` | each checkpointer and pointer: this many messages back; `batch`: this many messages on, this one included |
//!
//! Lengths in clocks, heads and checkpoints, and blocks in traces, count other oplogs and views. They stay.

use super::layout::compact::{Bytes, Counted, Counts, Run, put_uint};
use super::pieces::Pieces;
use crate::error::Result;
use crate::spec::Dialect;

/// The numbers of the dropped messages, ascending: 8 bytes of memory each.
#[derive(Debug, Default)]
pub(super) struct Dropped(Vec<u64>);

impl Dropped {
    /// Adds one after all others.
    pub(super) fn push(&mut self, seq: u64) {
        self.0.push(seq);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many are before message `seq`.
    fn before(&self, seq: u64) -> u64 {
        self.0.partition_point(|own| *own < seq) as u64
    }

    fn contains(&self, seq: u64) -> bool {
        self.0.binary_search(&seq).is_ok()
    }

    /// The first one from message `first` through message `last`.
    fn within(&self, first: u64, last: u64) -> Option<u64> {
        let next = self.0.partition_point(|own| *own < first);
        self.0.get(next).copied().filter(|own| *own <= last)
    }
}

/// A number to be replaced. The new one is smaller, and so takes no more bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    /// Where it is, relative to the beginning of the message.
    pub(super) run: Run,
    value: u64,
}

impl Edit {
    /// The bytes of the new number, in its shortest form.
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

/// A message that is being read, and the changes that it needs.
pub(super) struct Renumbering<'a> {
    pub(super) pieces: Pieces<'a>,
    pub(super) dropped: &'a Dropped,
    pub(super) dialect: Dialect,
    /// The message's own number.
    pub(super) seq: u64,
    /// The changes found so far, in the order of the message: 32 bytes of memory each.
    pub(super) edits: &'a mut Vec<Edit>,
    /// Why the first number that cannot follow cannot.
    pub(super) refusal: &'a mut Option<String>,
}

impl Renumbering<'_> {
    /// What a number becomes, or why that cannot be determined.
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
                "{what} leads {distance} messages back, before the first one"
            ));
        };
        if self.dropped.contains(target) {
            return Err(format!(
                "{what} leads to message {target}, which is damaged"
            ));
        }
        Ok(distance - (before - self.dropped.before(target)))
    }

    /// In `autobase` the last message of a batch has 1, the one before it 2, so that many more must follow. In the
    /// drafts a position in a batch does not depend on the others.
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
                // The length of a frame comes before what changed within it.
                let is_before = |edit: &Edit| edit.run.at < counted.run.at;
                let place = self.edits.partition_point(is_before);
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
