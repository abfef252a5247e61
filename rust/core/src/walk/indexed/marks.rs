//! The damaged entries of an index.

use super::notes::{Note, Notes, Place};
use crate::error::Result;
use crate::ledger::Cause;

/// Damaged entries, as byte ranges of the table. They come in the order of the table, except for those that turn
/// out to have lost their bytes only when later ones are known. These are in order too, unless the entries are out
/// of order; of those no more are pending than claims may be.
#[derive(Debug, Default)]
pub(super) struct Marks {
    in_order: Notes,
    late: Notes,
    others: Vec<Note>,
}

/// The position in the marks.
#[derive(Debug, Default)]
pub(super) struct Next {
    in_order: Source,
    late: Source,
    other: usize,
}

/// One of the sequences: how far it was read, and the last mark that was read and not returned yet.
#[derive(Debug, Default)]
struct Source {
    place: Place,
    pending: Option<Note>,
}

impl Source {
    fn look(&mut self, notes: &Notes) -> Result<Option<u64>> {
        if self.pending.is_none() {
            self.pending = notes.next(&mut self.place)?;
        }
        Ok(self.pending.map(|note| note.start))
    }
}

impl Marks {
    pub(super) fn push(&mut self, start: u64, end: u64, cause: Cause) -> Result<()> {
        let note = Note { start, end, cause };
        if start >= self.in_order.end() {
            return self.in_order.push(note);
        }
        if start >= self.late.end() {
            return self.late.push(note);
        }
        self.others.push(note);
        Ok(())
    }

    /// Prepares for reading, after the last mark was added.
    pub(super) fn sort(&mut self) {
        self.others.sort_by_key(|note| note.start);
    }

    /// The next mark in the order of the table.
    pub(super) fn next(&self, next: &mut Next) -> Result<Option<Note>> {
        let in_order = next.in_order.look(&self.in_order)?;
        let late = next.late.look(&self.late)?;
        let other = self.others.get(next.other).copied();
        let starts = [in_order, late, other.map(|note| note.start)];
        let Some(least) = starts.into_iter().flatten().min() else {
            return Ok(None);
        };
        if in_order == Some(least) {
            return Ok(next.in_order.pending.take());
        }
        if late == Some(least) {
            return Ok(next.late.pending.take());
        }
        next.other += 1;
        Ok(other)
    }
}
