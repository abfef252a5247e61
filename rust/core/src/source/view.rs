//! Sources that show another one otherwise: with changes, where some bytes give way to others, only its beginning, or with how far it
//! has to reach.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::{Bound, Source, check_within, passed_on};
use crate::error::Result;
use crate::saturating::saturating_usize;

/// What stands in the place of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// So many zeros; with none of them the range is taken out.
    Zeros(u64),
    /// One byte.
    Byte(u8),
    /// The bytes of the source at another offset, and how many.
    From(u64, u64),
}

impl Fill {
    /// How many bytes it is.
    pub(crate) const fn len(self) -> u64 {
        match self {
            Self::Zeros(bytes) | Self::From(_, bytes) => bytes,
            Self::Byte(_) => 1,
        }
    }
}

/// A range of a file that gives way to other bytes.
pub(crate) type Change = (Range<u64>, Fill);

/// Another source with some ranges changed, without a copy of its bytes.
pub(crate) struct View {
    source: Arc<dyn Source>,
    /// Where each piece begins here, and what it is: a range of the source, or a fill.
    pieces: Vec<(u64, Piece)>,
    len: u64,
}

enum Piece {
    Own(Range<u64>),
    /// In the place of what began at this offset of the source.
    Filled(u64, Fill),
}

impl Piece {
    const fn len(&self) -> u64 {
        match self {
            Self::Own(range) => range.end.saturating_sub(range.start),
            Self::Filled(_, fill) => fill.len(),
        }
    }
}

impl View {
    /// The source with these changes. Of changes that overlap the one that begins first is made.
    pub(crate) fn new(source: Arc<dyn Source>, mut changes: Vec<Change>) -> Self {
        changes.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut pieces, mut len, mut at) = (Vec::new(), 0, 0);
        let mut push = |piece: Piece| {
            let bytes = piece.len();
            if bytes > 0 {
                pieces.push((len, piece));
                len += bytes;
            }
        };
        let end = source.len();
        for (range, fill) in changes {
            if range.start < at || range.end > end {
                continue;
            }
            push(Piece::Own(at..range.start));
            push(Piece::Filled(range.start, fill));
            at = range.end;
        }
        push(Piece::Own(at..end));
        Self {
            source,
            pieces,
            len,
        }
    }

    /// The number of the piece with this offset, or of the last one before it.
    fn piece_at(&self, offset: u64) -> usize {
        let behind = self.pieces.partition_point(|(start, _)| *start <= offset);
        behind.saturating_sub(1)
    }

    /// Where in the source an offset of the view comes from; for filled bytes where they begin.
    pub(crate) fn origin(&self, offset: u64) -> u64 {
        match self.pieces.get(self.piece_at(offset)) {
            Some((start, Piece::Own(range))) => range.start + offset.saturating_sub(*start),
            Some((_, Piece::Filled(at, _))) => *at,
            None => 0,
        }
    }
}

impl Source for View {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        let (mut at, mut rest) = (offset, buffer);
        for (start, piece) in self.pieces.iter().skip(self.piece_at(offset)) {
            if rest.is_empty() {
                break;
            }
            let from = at - start;
            let bytes = saturating_usize(piece.len() - from).min(rest.len());
            let (part, behind) = rest.split_at_mut(bytes);
            match piece {
                Piece::Own(range) => self.source.read_exact_at(range.start + from, part)?,
                Piece::Filled(_, Fill::Zeros(_)) => part.fill(0),
                Piece::Filled(_, Fill::Byte(byte)) => part.fill(*byte),
                Piece::Filled(_, Fill::From(at, _)) => {
                    self.source.read_exact_at(at + from, part)?;
                }
            }
            at += bytes as u64;
            rest = behind;
        }
        Ok(())
    }

    /// That of the source, unless offsets have moved.
    fn bound(&self) -> Option<Bound> {
        let is_same = self.len == self.source.len();
        self.source.bound().filter(|_| is_same)
    }

    passed_on!(other);
}

/// The first bytes of another source, for instance of a file that grew after it was listed.
pub struct CappedSource {
    source: Arc<dyn Source>,
    len: u64,
}

impl CappedSource {
    /// At most the first `len` bytes of `source`.
    #[must_use]
    pub fn new(source: Arc<dyn Source>, len: u64) -> Self {
        let len = len.min(source.len());
        Self { source, len }
    }
}

impl Source for CappedSource {
    fn len(&self) -> u64 {
        self.len
    }

    passed_on!();

    fn as_slice(&self) -> Option<&[u8]> {
        self.source.as_slice()?.get(..saturating_usize(self.len))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        self.source.read_exact_at(offset, buffer)
    }

    fn read_again_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        self.source.read_again_at(offset, buffer)
    }

    fn bound(&self) -> Option<Bound> {
        self.source.bound().filter(|bound| bound.offset <= self.len)
    }
}

/// A file of a log, of which is known how far it is filled with records.
pub(crate) struct BoundSource {
    source: Arc<dyn Source>,
    bound: Bound,
}

impl BoundSource {
    /// All of the file.
    pub(crate) fn whole(source: Arc<dyn Source>, bound: Bound) -> Self {
        Self { source, bound }
    }

    /// The file up to there. What is after it was not written yet, or may be taken back.
    pub(crate) fn up_to(source: Arc<dyn Source>, bound: Bound) -> Self {
        Self::whole(Arc::new(CappedSource::new(source, bound.offset)), bound)
    }
}

impl Source for BoundSource {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.source.read_exact_at(offset, buffer)
    }

    fn read_again_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.source.read_again_at(offset, buffer)
    }

    passed_on!();

    fn bound(&self) -> Option<Bound> {
        Some(self.bound)
    }
}

/// The same bytes, which are not compared with a parity sidecar.
pub(crate) fn uncompared(source: &Arc<dyn Source>) -> Arc<dyn Source> {
    match source.by_sidecar() {
        None => source.clone(),
        Some(_) => Arc::new(View::new(source.clone(), Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::BytesSource;

    #[test]
    fn changes_are_read_at_any_offset() -> Result<()> {
        let source = Arc::new(BytesSource::new(&b"0123456789"[..]));
        let changes = vec![
            (2..4, Fill::Zeros(0)),
            (5..5, Fill::Zeros(3)),
            (8..9, Fill::Byte(b'x')),
            (10..10, Fill::Zeros(1)),
            (10..10, Fill::From(3, 2)),
        ];
        let view = View::new(source, changes);
        let expected = [&b"014\0\0\0"[..], b"567x9\0", b"34"].concat();
        assert_eq!(view.len(), expected.len() as u64);
        for start in 0..expected.len() {
            for end in start..=expected.len() {
                let mut found = vec![0xff; end - start];
                view.read_exact_at(start as u64, &mut found)?;
                assert_eq!(found, expected.get(start..end).unwrap_or_default());
            }
        }
        let origins: Vec<_> = (0..14).map(|at| view.origin(at)).collect();
        assert_eq!(origins, [0, 1, 4, 5, 5, 5, 5, 6, 7, 8, 9, 10, 10, 10]);
        assert!(view.read_exact_at(14, &mut [0]).is_err());
        Ok(())
    }
}
