//! Pending ranges of an index or table of contents, each with a cause. A walk collects them until it can emit them.
//! Each takes few bytes, and many spill to a temporary file. Those of damaged entries are marks.

use crate::bug::OrBug;
use crate::cause::Cause;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::output::Spool;

/// The longest encoding of a note: two numbers with seven bits in each byte, and the cause.
const MAX_NOTE_BYTES: usize = 2 * 10 + 1;

/// A pending range and its cause. Its unit, bytes or entries, depends on the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Where it begins.
    pub(crate) start: u64,
    /// Where it ends.
    pub(crate) end: u64,
    pub(crate) cause: Cause,
}

/// Pending ranges, ascending. Adjacent ones with the same cause are merged.
#[derive(Debug)]
pub(crate) struct Notes {
    spool: Spool,
    /// The end of the last one in the spool.
    spooled: u64,
    /// The last one. It may still grow, so it is not in the spool.
    last: Option<Note>,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            spool: Spool::aside(),
            spooled: 0,
            last: None,
        }
    }
}

impl Notes {
    /// Appends a note.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if many notes spill and the temporary file cannot be written.
    pub(crate) fn push(&mut self, note: Note) -> Result<()> {
        match &mut self.last {
            Some(last) if last.end == note.start && last.cause == note.cause => {
                last.end = note.end;
            }
            last => {
                if let Some(last) = last.replace(note) {
                    let out = self.spool.buffer();
                    put(out, last.start.saturating_sub(self.spooled));
                    put(out, last.end.saturating_sub(last.start));
                    let code = Cause::ALL.iter().position(|cause| *cause == last.cause);
                    let code = code.and_then(|code| code.try_into().ok());
                    out.push(code.or_bug("a cause with a number")?);
                    self.spooled = last.end;
                    self.spool.flush_if_full()?;
                }
            }
        }
        Ok(())
    }

    /// The end of the last one; 0 if there are none.
    pub(crate) fn end(&self) -> u64 {
        self.last.map_or(0, |last| last.end)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Returns the note at `place` and moves `place` to the next.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if they cannot be read.
    pub(crate) fn next(&self, place: &mut Place) -> Result<Option<Note>> {
        if place.read >= self.spool.len() {
            let last = self.last.filter(|last| last.start >= place.end);
            place.end = u64::MAX;
            return Ok(last);
        }
        let cached = place.bytes.get(place.used..).unwrap_or_default();
        if cached.len() < MAX_NOTE_BYTES {
            place.used = 0;
            self.spool
                .read(place.read, LIMITS.notes_read_bytes, &mut place.bytes)?;
        }
        let mut at = place.used;
        let skip = take(&place.bytes, &mut at);
        let len = take(&place.bytes, &mut at);
        let code = place.bytes.get(at).copied().unwrap_or_default();
        at += 1;
        let start = place.end.saturating_add(skip);
        let end = start.saturating_add(len);
        place.read += (at - place.used) as u64;
        (place.used, place.end) = (at, end);
        let cause = Cause::ALL.get(usize::from(code)).copied();
        Ok(cause.map(|cause| Note { start, end, cause }))
    }
}

/// A reading position among the notes.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The offset in the spool.
    read: u64,
    /// The end of the previous note.
    end: u64,
    bytes: Vec<u8>,
    used: usize,
}

/// Appends a number, seven bits in each byte, the lowest first.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Reads the number at `at`, and moves `at` past it.
fn take(bytes: &[u8], at: &mut usize) -> u64 {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = bytes.get(*at).copied().unwrap_or_default();
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

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

    const CAUSES: [Cause; 3] = [Cause::ChecksumMismatch, Cause::WrongKey, Cause::OutOfOrder];

    /// Every third note touches the one before and has its cause.
    fn many(count: u64) -> (Notes, Vec<Note>) {
        let (mut notes, mut plain, mut at) = (Notes::default(), Vec::<Note>::new(), 0_u64);
        for number in 0..count {
            let start = at + if number % 3 == 0 { 0 } else { number * number };
            at = start + 1 + number % 300;
            let cause = CAUSES.into_iter().cycle().nth((number / 3 % 3) as usize);
            let note = Note {
                start,
                end: at,
                cause: cause.unwrap_or(Cause::WrongKey),
            };
            assert!(notes.push(note).is_ok());
            match plain.last_mut() {
                Some(last) if last.end == note.start && last.cause == note.cause => {
                    last.end = note.end;
                }
                _ => plain.push(note),
            }
        }
        (notes, plain)
    }

    #[test]
    fn notes_come_back_as_they_were_put_also_from_a_file() {
        // The last count needs more than a spool's buffer.
        for count in [0, 1, 2, 3, 50, 300_000] {
            let (notes, plain) = many(count);
            assert_eq!(notes.is_empty(), plain.is_empty());
            assert_eq!(notes.end(), plain.last().map_or(0, |last| last.end));
            let mut place = Place::default();
            let read = std::iter::from_fn(|| notes.next(&mut place).transpose());
            assert_eq!(read.collect::<Result<Vec<_>>>().ok(), Some(plain));
        }
    }

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
