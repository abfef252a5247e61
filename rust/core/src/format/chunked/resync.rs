//! Finds where damage ends, with bounded work.

use std::ops::Range;

use super::hop;
use super::judge::{Extent, verified};
use super::layout::{ALIGNMENT, HEADER_BYTES, Header, align};
use super::payload::{Decoding, Piece};
use super::walk::{ChunkedScan, Next};
use crate::error::Result;
use crate::ledger::{Fate, tail_end};
use crate::limits::LIMITS;
use crate::walk::follows_plausibly;
use crate::walk::input::Search;
use crate::walk::stream::End;

/// The result of trying a payload under a damaged header.
enum Trial {
    Whole,
    Not,
    Limit,
}

impl ChunkedScan {
    /// Rule 27: where the damage at `at` ends: at an offset, whatever follows, or with the search budget. Trying a payload takes the
    /// decoder from the chunk that is being emitted.
    pub(super) fn reach(&mut self, at: u64, extent: Extent) -> Result<End> {
        let len = self.input.len();
        let header = match extent {
            Extent::Known(end) => return Ok(End::Followed(end)),
            Extent::Tail => return Ok(End::Followed(self.tail_end()?)),
            Extent::Search(header) => header,
        };
        let end_of = |header: Header| header.payload_end(at);
        let end = header.filter(|header| header.length > 0).map(end_of);
        if let Some(end) = end.filter(|end| *end <= len) {
            match self.try_payload(at..end)? {
                Trial::Whole => return Ok(End::Followed(align(end).min(len))),
                Trial::Not => {}
                // The header is damaged whatever follows.
                Trial::Limit => return Ok(End::Limit((at + ALIGNMENT).min(len))),
            }
        }
        Ok(End::Followed(match self.find_header(at + ALIGNMENT)? {
            Some(next) => next,
            None => self.tail_end()?,
        }))
    }

    /// Reads ahead from `at` after damage, to see whether a good chunk follows. The walk meets it again, so
    /// nothing of it is kept.
    pub(super) fn look_ahead(&mut self, mut at: u64) -> Result<Fate> {
        let budget = self.budget;
        self.state.twice_until = u64::MAX;
        let fate = loop {
            match self.examine(at, self.state.end)? {
                Ok(Next::End | Next::Unused) => {
                    break Fate::of_tail(self.state.verified);
                }
                Ok(Next::Chunk(_)) => break Fate::Corrupt,
                Ok(Next::Padding(end)) => at = end,
                Err(fault) => match self.reach(at, fault.extent(at, self.input.len()))? {
                    End::Followed(end) => at = end,
                    _ => break Fate::Corrupt,
                },
            }
        };
        // The search that ended at `at` is made again too.
        self.state.twice_until = at.saturating_add(1);
        self.budget = budget;
        Ok(fate)
    }

    /// Where the last block of data ends. Zeros after it are unused space.
    fn tail_end(&self) -> Result<u64> {
        Ok(tail_end(
            self.input.data_end()?,
            ALIGNMENT,
            self.input.len(),
        ))
    }

    /// The next header at or after `from` whose CRC matches.
    fn find_header(&mut self, from: u64) -> Result<Option<u64>> {
        // A header of zeros never verifies.
        let mut search = Search::new(from, self.input.data_end()?);
        let find = |bytes: &[u8], places: usize, _| {
            let mut places = (0..places).step_by(ALIGNMENT_BYTES);
            let found = places.find(|place| bytes.get(*place..).and_then(verified).is_some());
            found.map(|place| (place, ()))
        };
        let found = search.next(&mut self.input, HEADER_BYTES, ALIGNMENT_BYTES, find)?;
        Ok(found.map(|(at, ())| at))
    }

    /// Whether exactly the bytes after the damaged header at the beginning of `range` are one good frame.
    fn try_payload(&mut self, range: Range<u64>) -> Result<Trial> {
        let Range { start: at, end } = range;
        let share = if at < self.state.twice_until { 2 } else { 1 };
        let allowed = self.budget.left(self.input.len()) / share;
        if self.budget.wants_plausible(end - at) {
            let data_end = self.input.data_end()?;
            let end_of = |at| {
                let header = hop::read(&**self.input.source(), at)?.verified();
                Ok(header.map(|header| align(header.payload_end(at))))
            };
            if !follows_plausibly(align(end), data_end, end_of)? {
                return Ok(Trial::Not);
            }
        }
        let input = &mut self.input;
        self.unit.emitting = None; // the decoder is used for this now
        let start = at + HEADER_BYTES as u64;
        let decoder = &mut self.unit.content.decoder;
        let Ok(mut decoding) = Decoding::begin(input, decoder, start, end)? else {
            return Ok(Trial::Not);
        };
        let mut content = Vec::with_capacity(LIMITS.trial_piece_bytes);
        let mut produced = 0;
        let (trial, work) = loop {
            content.clear();
            let piece = decoding.more(input, decoder, &mut content)?;
            produced += content.len() as u64;
            // Empty blocks cost as well.
            let work = produced.max(end - start - decoding.left());
            match piece {
                _ if work > allowed => break (Trial::Limit, allowed),
                Piece::More => {}
                Piece::End => break (Trial::Whole, work),
                Piece::Bad(_) => break (Trial::Not, work),
            }
        };
        self.budget.spend(work.saturating_mul(share));
        Ok(trial)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "it is 0x80")]
pub(super) const ALIGNMENT_BYTES: usize = ALIGNMENT as usize;
