//! Behind damage: where it ends, found with bounded work.

use super::hop;
use super::judge::{Extent, believed};
use super::layout::{ALIGNMENT, HEADER_BYTES, align};
use super::payload::{Decoding, Piece};
use super::walk::ChunkedScan;
use crate::error::Result;
use crate::ledger::tail_end;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::data_end;

/// Where damage ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) end: u64,
    /// Whether the search budget ended there.
    pub(super) limited: bool,
}

/// What trying a payload under a damaged header came to.
enum Trial {
    Whole,
    Not,
    Limit,
}

impl ChunkedScan {
    /// The offset behind the last byte of the file that is not zero. Looked for once.
    pub(super) fn data_end(&mut self) -> Result<u64> {
        if let Some(end) = self.data_end {
            return Ok(end);
        }
        let options = &self.input.options;
        let end = data_end(&*self.input.source, || options.poll())?;
        Ok(*self.data_end.insert(end))
    }

    /// Where the damage at `at` ends.
    pub(super) fn reach(&mut self, at: u64, extent: Extent) -> Result<Reach> {
        let len = self.input.source.len();
        let found = |end| Reach {
            end,
            limited: false,
        };
        let header = match extent {
            Extent::Known(end) => return Ok(found(end)),
            Extent::Tail => return Ok(found(self.tail_end()?)),
            Extent::Search(header) => header,
        };
        if let Some(header) = header {
            let end = header.payload_end(at);
            if header.length > 0 && end <= len {
                match self.try_payload(at, end)? {
                    Trial::Whole => return Ok(found(align(end).min(len))),
                    Trial::Not => {}
                    // The header is damaged whatever follows.
                    Trial::Limit => {
                        let end = (at + ALIGNMENT).min(len);
                        return Ok(Reach { end, limited: true });
                    }
                }
            }
        }
        let next = self.find_header(at + ALIGNMENT)?;
        Ok(found(match next {
            Some(next) => next,
            None => self.tail_end()?,
        }))
    }

    /// Where the last data's block ends: zeros behind it are unused space.
    fn tail_end(&mut self) -> Result<u64> {
        let data_end = self.data_end()?;
        Ok(tail_end(data_end, ALIGNMENT, self.input.source.len()))
    }

    /// The next header at `from` or behind it whose CRC is right.
    fn find_header(&mut self, from: u64) -> Result<Option<u64>> {
        let (source, len) = (self.input.source.clone(), self.input.source.len());
        let data_end = self.data_end()?;
        let (mut at, mut want) = (from, LIMITS.first_search_piece_bytes);
        // No header of zeros checks.
        while at < data_end {
            self.input.options.poll()?;
            let left = saturating_usize(len - at);
            self.probe
                .load(&*source, at, left.min(HEADER_BYTES), want)?;
            let bytes = self.probe.bytes(&*source, at);
            let bytes = bytes.get(..LIMITS.search_piece_bytes).unwrap_or(bytes);
            let mut place = 0;
            while let Some(header) = bytes.get(place..place + HEADER_BYTES) {
                if believed(header).is_some() {
                    return Ok(Some(at + place as u64));
                }
                place = place.saturating_add(ALIGNMENT_BYTES);
            }
            // Where fewer bytes than a header are left, no header follows.
            if place == 0 {
                return Ok(None);
            }
            at += place as u64;
            want = LIMITS.search_piece_bytes.min(want * 2);
        }
        Ok(None)
    }

    /// Whether exactly the bytes behind the damaged header at `at`, up to `end`, are one good frame.
    fn try_payload(&mut self, at: u64, end: u64) -> Result<Trial> {
        let share = if at < self.state.twice_until { 2 } else { 1 };
        let allowed = self.state.budget.left(self.input.source.len()) / share;
        if self.state.budget.wants_plausible(end - at) && !self.follows_plausibly(align(end))? {
            return Ok(Trial::Not);
        }
        self.giving = None; // the decoder is for this now
        let start = at + HEADER_BYTES as u64;
        let Ok(mut decoding) = Decoding::begin(&mut self.input, start, end)? else {
            return Ok(Trial::Not);
        };
        let mut content = Vec::with_capacity(LIMITS.trial_piece_bytes);
        let mut produced = 0;
        let (trial, work) = loop {
            content.clear();
            let piece = decoding.more(&mut self.input, &mut content)?;
            produced += content.len() as u64;
            // Blocks of nothing cost as well.
            let work = produced.max(end - start - decoding.left());
            match piece {
                _ if work > allowed => break (Trial::Limit, allowed),
                Piece::More => {}
                Piece::End => break (Trial::Whole, work),
                Piece::Bad(_) => break (Trial::Not, work),
            }
        };
        self.state.budget.spend(work.saturating_mul(share));
        Ok(trial)
    }

    /// Whether at `at` there is what may follow a chunk: two headers whose CRC is right, unused space, or the end.
    fn follows_plausibly(&mut self, mut at: u64) -> Result<bool> {
        let data_end = self.data_end()?;
        for _ in 0..2 {
            if at >= data_end {
                return Ok(true);
            }
            match hop::read(&*self.input.source, at)?.believed() {
                Some(header) => at = align(header.payload_end(at)),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "it is 0x80")]
pub(super) const ALIGNMENT_BYTES: usize = ALIGNMENT as usize;
