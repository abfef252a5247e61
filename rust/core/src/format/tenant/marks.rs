//! Which entries of the table of contents are damaged.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ledger::Cause;
use crate::ledger::{Note, Notes, Place};

/// Damaged entries, as stretches of the table in bytes. They come in the order of the table, but for those that turn out to
/// have lost their bytes only when later ones are known: these are in order too, unless the entries are in disorder, of
/// which no more are waited for than claims are.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Marks {
    in_order: Notes,
    late: Notes,
    others: Vec<Note>,
}

/// Which mark comes next.
#[derive(Debug, Default)]
pub(super) struct Next {
    in_order: Source,
    late: Source,
    other: usize,
}

/// One of the sequences: how far it was read, and the mark that was read last and not given yet.
#[derive(Debug, Default)]
struct Source {
    place: Place,
    held: Option<Note>,
}

impl Source {
    fn look(&mut self, notes: &Notes) -> Result<Option<u64>> {
        if self.held.is_none() {
            self.held = notes.next(&mut self.place)?;
        }
        Ok(self.held.map(|note| note.start))
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

    /// Makes ready to be read: no more are coming.
    pub(super) fn sort(&mut self) {
        self.others.sort_by_key(|note| note.start);
    }

    /// The next one in the order of the table.
    pub(super) fn next(&self, next: &mut Next) -> Result<Option<Note>> {
        let in_order = next.in_order.look(&self.in_order)?;
        let late = next.late.look(&self.late)?;
        let other = self.others.get(next.other).copied();
        let starts = [in_order, late, other.map(|note| note.start)];
        let Some(least) = starts.into_iter().flatten().min() else {
            return Ok(None);
        };
        if in_order == Some(least) {
            return Ok(next.in_order.held.take());
        }
        if late == Some(least) {
            return Ok(next.late.held.take());
        }
        next.other += 1;
        Ok(other)
    }
}
