//! What a damaged range may have been: bytes that a checksum would prove if a guess at them were right.

use std::ops::Range;

use crate::bug::OrBug;
use crate::error::Result;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// What trying one guess came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    /// Where what checks ends, as an absolute offset; `None` where it does not check.
    pub(crate) end: Option<u64>,
    /// How many bytes were hashed or decoded.
    pub(crate) work: u64,
}

impl Trial {
    /// Nothing had to be hashed to see that the guess is wrong.
    pub(crate) const NOTHING: Self = Self { end: None, work: 0 };
}

/// Tells whether bytes would check if they stood in place of the suspect's own.
pub(crate) type Check = Box<dyn FnMut(&[u8]) -> Trial>;

/// One thing that a damaged range may have been, and what would prove it.
pub(crate) struct Suspect {
    /// What it is, for a person: `record`, `chunk header`.
    pub(crate) what: &'static str,
    /// Where it is, or where what is known of its end allows it to be.
    pub(crate) body: Range<u64>,
    /// Other bytes that its checksum is of, or is: an index entry, a stored checksum.
    pub(crate) elsewhere: Vec<Range<u64>>,
    /// Of so many bytes of the body each bit is worth trying.
    pub(crate) tried: usize,
    /// Bytes of the body that are tried last: a bit in them may make up for one elsewhere.
    pub(crate) tried_last: Range<usize>,
    /// How many bytes it has, by its own lengths where these are plausible.
    pub(crate) stated: Option<usize>,
    /// Whether a checksum is what proves it.
    pub(crate) by_checksum: bool,
    /// Tries bytes: those of the body, and behind them those of `elsewhere`.
    pub(crate) check: Check,
}

impl Suspect {
    /// Something of this length that `check` proves by a checksum. Every bit of it is worth trying.
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
        }
    }

    /// Bytes that have to be zero.
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

    /// The bytes that `check` takes, as they are in the file.
    pub(crate) fn read(&self, source: &dyn Source) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        read_piece(source, &self.body, &mut bytes)?;
        for piece in &self.elsewhere {
            read_piece(source, piece, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Where in the file each byte stands whose bits are worth trying, and its place in what `check` takes.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, u64)> + use<> {
        let body = self.body.clone();
        let len = saturating_usize(body.end.saturating_sub(body.start));
        let elsewhere = self.elsewhere.clone().into_iter().flatten();
        let of_body = (0..self.tried.min(len)).zip(body);
        let last = self.tried_last.clone();
        let first = of_body.clone().filter({
            let last = last.clone();
            move |(place, _)| !last.contains(place)
        });
        let of_last = of_body.filter(move |(place, _)| last.contains(place));
        first.chain((len..).zip(elsewhere)).chain(of_last)
    }
}

/// Something that the file says stands at an offset at which it does not.
pub(crate) struct Misplaced {
    /// What it is, for a person.
    pub(crate) what: &'static str,
    /// Where the file says that it begins.
    pub(crate) offset: u64,
    /// Whether it stands at another offset.
    pub(crate) check: Box<dyn FnMut(u64) -> Result<Trial>>,
}

/// Finds what damaged ranges of one file may have been. Nothing is changed.
pub(crate) trait Suspects {
    /// What the range may have been, or have begun with. Empty where no checksum would tell, or where finding out takes too much.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn suspects(&mut self, span: &Span) -> Result<Vec<Suspect>>;

    /// What should stand in the range, or what entries in it point at, if an index or table of contents says where: the first few.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn misplaced(&mut self, span: &Span) -> Result<Vec<Misplaced>> {
        let _ = span;
        Ok(Vec::new())
    }

    /// Whether a file is its records one behind the other and nothing else, so that any part of it can be read as a file.
    fn reads_alone(&self) -> bool {
        false
    }

    /// What the offsets at which things begin are multiples of.
    fn alignment(&self) -> u64 {
        1
    }

    /// Whether something with a right checksum begins at `bytes`, wherever they stand. Asked only where that is not at any offset.
    fn begins(&self, bytes: &[u8]) -> bool {
        let _ = bytes;
        false
    }
}

/// How many things one range is explained by, at most: the first that it holds, and the ones behind.
pub(crate) const MAX_MISPLACED: usize = 3;

/// The longest thing of which every bit is tried, in bytes. What is longer takes too long, and a CRC-32 would be right by
/// chance too often: of this many bits, once in 131,072 times.
pub(crate) const MAX_TRIED_BYTES: u64 = 4 << 10;

/// The longest thing of which the bits of its lengths are tried, in bytes.
pub(crate) const MAX_LENGTHS_TRIED_BYTES: u64 = 256 << 10;

/// Reads a piece that lies within the source.
pub(crate) fn read_piece(source: &dyn Source, piece: &Range<u64>, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let len = saturating_usize(piece.end.saturating_sub(piece.start));
    out.resize(start.saturating_add(len), 0);
    let added = out.get_mut(start..);
    source.read_exact_at(piece.start, added.or_bug("the bytes that were added")?)
}
