//! Candidates: what a damaged range may have been before the damage. A checksum proves a candidate.

use std::ops::Range;

use crate::bug::OrBug;
use crate::error::Result;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// The outcome of trying one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    /// The absolute offset where the verified unit ends; `None` if it is not verified.
    pub(crate) end: Option<u64>,
    /// How many bytes were hashed or decoded.
    pub(crate) work: u64,
}

impl Trial {
    /// Refuted without hashing.
    pub(crate) const NOTHING: Self = Self { end: None, work: 0 };
}

/// Tries whether other bytes in the candidate's place would be verified.
pub(crate) type Check = Box<dyn FnMut(&[u8]) -> Trial>;

/// A candidate: one unit that a damaged range may have been, and how to prove it.
pub(crate) struct Candidate {
    /// A name for people: `record`, `chunk header`.
    pub(crate) what: &'static str,
    /// Its range, or the range that the known part of its end allows.
    pub(crate) body: Range<u64>,
    /// Ranges outside the body that its checksum covers or is stored in, such as an index entry.
    pub(crate) elsewhere: Vec<Range<u64>>,
    /// How many bytes of the body have their bits flipped, from its start.
    pub(crate) tried: usize,
    /// Bytes of the body that are flipped last: a flip there could compensate one elsewhere.
    pub(crate) tried_last: Range<usize>,
    /// Its length in bytes by its own length fields, if these are plausible.
    pub(crate) stated: Option<usize>,
    /// Whether a checksum proves it.
    pub(crate) by_checksum: bool,
    /// Tries bytes: those of the body, followed by those of `elsewhere`.
    pub(crate) check: Check,
    /// Where a CRC proves it: what tells the flipped bit, however many there are.
    pub(crate) syndrome: Option<Syndrome>,
}

/// A CRC-32 tells which single bit is flipped: by the difference between what is stored and what is computed, which depends on
/// the bit's distance from the end alone.
pub(crate) struct Syndrome {
    /// The polynomial, its bits in reverse order.
    polynomial: u32,
    /// What the CRC covers of the bytes that `check` takes.
    covered: Range<usize>,
    difference: Difference,
}

type Difference = Box<dyn Fn(&[u8]) -> u32>;

impl Syndrome {
    pub(crate) const CRC32: u32 = 0xedb8_8320;
    pub(crate) const CRC32C: u32 = 0x82f6_3b78;

    /// `difference` is that of all bytes that `check` takes, with the bytes `covered` at the end of what its CRC is over.
    pub(crate) fn new(
        polynomial: u32,
        covered: Range<usize>,
        difference: impl Fn(&[u8]) -> u32 + 'static,
    ) -> Self {
        Self {
            polynomial,
            covered,
            difference: Box::new(difference),
        }
    }

    /// The index of the byte and the bit that explain the difference, if one bit does.
    pub(crate) fn flipped(&self, bytes: &[u8]) -> Option<(usize, u32)> {
        let difference = (self.difference)(bytes);
        // That of the last byte's highest bit; each bit before it is one more step of the register.
        let mut register = self.polynomial;
        for place in self.covered.clone().rev() {
            for bit in (0..8).rev() {
                if register == difference {
                    return Some((place, bit));
                }
                let carry = if register & 1 == 1 {
                    self.polynomial
                } else {
                    0
                };
                register = register >> 1 ^ carry;
            }
        }
        None
    }
}

impl Candidate {
    /// Returns a candidate of this range that `check` proves by a checksum. All of its bits are flipped.
    pub(crate) fn new(
        what: &'static str,
        body: Range<u64>,
        check: impl FnMut(&[u8]) -> Trial + 'static,
    ) -> Self {
        let len = saturating_usize(body.end.saturating_sub(body.start));
        Self {
            what,
            body,
            elsewhere: Vec::new(),
            tried: len,
            tried_last: 0..0,
            stated: Some(len),
            by_checksum: true,
            check: Box::new(check),
            syndrome: None,
        }
    }

    /// Returns a candidate of bytes that must be zero.
    pub(crate) fn zeros(what: &'static str, body: Range<u64>) -> Self {
        let end = body.end;
        let check = move |bytes: &[u8]| Trial {
            end: bytes.iter().all(|byte| *byte == 0).then_some(end),
            work: 0,
        };
        Self {
            by_checksum: false,
            ..Self::new(what, body, check)
        }
    }

    /// A range that must have exactly these bytes.
    pub(crate) fn exact(
        what: &'static str,
        body: Range<u64>,
        right: impl AsRef<[u8]> + 'static,
    ) -> Self {
        let end = body.end;
        Self::new(what, body, move |bytes| Trial {
            end: (bytes == right.as_ref()).then_some(end),
            work: 0,
        })
    }

    /// How many bytes its body has.
    pub(crate) const fn len(&self) -> u64 {
        self.body.end.saturating_sub(self.body.start)
    }

    /// Whether it is all of a range by its own length, so that only its bytes can be wrong.
    pub(crate) fn is_whole(&self, span: &Span) -> bool {
        let end = |stated| self.body.start.saturating_add(stated as u64);
        self.by_checksum && self.body.start >= span.start && self.stated.map(end) == Some(span.end)
    }

    /// Whether a single flipped bit would have been found.
    pub(crate) fn is_tried(&self) -> bool {
        self.syndrome.is_some() || self.tried as u64 >= self.len()
    }

    /// Reads the bytes that `check` takes, as they are in the file.
    pub(crate) fn read(&self, source: &dyn Source) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        read_piece(source, &self.body, &mut bytes)?;
        for piece in &self.elsewhere {
            read_piece(source, piece, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Each byte whose bits are flipped: its index in what `check` takes, and its offset in the file.
    pub(crate) fn places(&self) -> Vec<(usize, u64)> {
        let len = saturating_usize(self.len());
        let of_body = (0..self.tried.min(len)).zip(self.body.clone());
        let (last, first): (Vec<_>, Vec<_>) =
            of_body.partition(|(place, _)| self.tried_last.contains(place));
        let elsewhere = (len..).zip(self.elsewhere.iter().cloned().flatten());
        first.into_iter().chain(elsewhere).chain(last).collect()
    }
}

/// A unit that is not where it belongs.
pub(crate) struct Misplaced {
    /// A name for people.
    pub(crate) what: &'static str,
    /// Where it belongs: by an index or table of contents, by the unit before it, or by the alignment of units.
    pub(crate) offset: u64,
    /// What would look the same; empty if it is known where it belongs.
    pub(crate) against: String,
    /// Tries whether the unit is at another offset.
    pub(crate) check: Box<dyn FnMut(u64) -> Result<Trial>>,
}

/// Finds candidates for damaged ranges of one file. It changes nothing.
pub(crate) trait Candidates {
    /// Candidates for the unit that the range was or began with. Empty if there is no checksum to prove them, or if it
    /// would take too long.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn candidates(&mut self, span: &Span) -> Result<Vec<Candidate>>;

    /// The first few units that an index or table of contents places in the range, or that damaged entries in the range
    /// point at; or the first unit from the range on that is where none may begin. `follows`: a damaged range is right before this one,
    /// so that what it begins with may not be in its place itself.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn misplaced(&mut self, span: &Span, follows: bool) -> Result<Vec<Misplaced>> {
        let _ = (span, follows);
        Ok(Vec::new())
    }

    /// The alignment of the offsets at which units begin.
    fn alignment(&self) -> u64 {
        1
    }
}

/// The most units that one range is explained by: the first in it, and those after it.
pub(crate) const MAX_MISPLACED: usize = 3;

/// The longest unit of which every bit is flipped, in bytes. A longer one takes too long, and a CRC-32 would match by
/// chance too often: for this many bits, once in 131,072 units.
pub(crate) const MAX_TRIED_BYTES: u64 = 4 << 10;

/// The longest unit of which a CRC tells the flipped bit, in bytes.
pub(crate) const MAX_SYNDROME_BYTES: u64 = 16 << 20;

/// The longest unit of which the bits of its lengths are flipped, in bytes.
pub(crate) const MAX_LENGTHS_TRIED_BYTES: u64 = 256 << 10;

/// Appends the bytes of a range, which must lie within the source.
pub(crate) fn read_piece(source: &dyn Source, piece: &Range<u64>, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let len = saturating_usize(piece.end.saturating_sub(piece.start));
    out.resize(start.saturating_add(len), 0);
    let added = out.get_mut(start..);
    source.read_exact_at(piece.start, added.or_bug("the bytes that were added")?)
}
