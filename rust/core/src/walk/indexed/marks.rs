//! The damaged entries of an index.

use super::notes::{Note, Notes, Place};
use crate::error::Result;
use crate::ledger::Cause;

/// Damaged entries, as byte ranges of the index. They come in its order, except for those that turn out to have lost their bytes only
/// when later ones are known. These are in order too, unless the entries are out of order; of those no more are pending than claims may
/// be.
#[derive(Debug, Default)]
pub(super) struct Marks {
    in_order: [Notes; 2],
    others: Vec<Note>,
}

/// The position in the marks: of each sequence in order how far it was read, and the mark that was read last if it was not returned yet.
#[derive(Debug, Default)]
pub(super) struct Next {
    in_order: [(Place, Option<Note>); 2],
    other: usize,
}

impl Marks {
    pub(super) fn push(&mut self, start: u64, end: u64, cause: Cause) -> Result<()> {
        let note = Note { start, end, cause };
        let mut in_order = self.in_order.iter_mut();
        match in_order.find(|notes| start >= notes.end()) {
            Some(notes) => notes.push(note),
            None => {
                match self.others.last_mut() {
                    Some(last) if last.end == start && last.cause == cause => last.end = end,
                    _ => self.others.push(note),
                }
                Ok(())
            }
        }
    }

    /// Prepares for reading, after the last mark was added.
    pub(super) fn sort(&mut self) {
        self.others.sort_by_key(|note| note.start);
    }

    /// The next mark in the order of the index.
    pub(super) fn next(&self, next: &mut Next) -> Result<Option<Note>> {
        let (mut least, mut from) = (self.others.get(next.other).copied(), None);
        let in_order = self.in_order.iter().zip(&mut next.in_order);
        for (notes, (place, pending)) in in_order.rev() {
            if pending.is_none() {
                *pending = notes.next(place)?;
            }
            if let Some(note) = *pending
                && least.is_none_or(|least| note.start <= least.start)
            {
                (least, from) = (Some(note), Some(pending));
            }
        }
        match from {
            Some(pending) => *pending = None,
            None => next.other += 1,
        }
        Ok(least)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn entries_out_of_order_that_touch_are_one_mark() {
        let mut marks = Marks::default();
        for run in [2000, 1000, 0] {
            for start in (run..run + 1000).step_by(10) {
                marks
                    .push(start, start + 10, Cause::ChecksumMismatch)
                    .unwrap();
            }
        }
        assert_eq!(marks.others.len(), 1);
        marks.sort();
        let mut next = Next::default();
        let read = std::iter::from_fn(|| marks.next(&mut next).unwrap());
        let read: Vec<_> = read.map(|note| (note.start, note.end)).collect();
        assert_eq!(read, [(0, 1000), (1000, 2000), (2000, 3000)]);
    }
}
