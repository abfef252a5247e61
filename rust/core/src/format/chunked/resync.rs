//! Finds where damage ends, with bounded work.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::emitting::Emitting;
use super::hop::{self, DataEnd};
use super::judge::{Extent, verified};
use super::layout::{ALIGNMENT, HEADER_BYTES, align};
use super::payload::{Decoding, Input, Piece};
use crate::cursor::Cursor;
use crate::error::Result;
use crate::ledger::tail_end;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::Window;
use crate::walk::{Budget, follows_plausibly};

/// Where damage ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) end: u64,
    /// Whether the search budget ended there.
    pub(super) limited: bool,
}

/// The result of trying a payload under a damaged header.
enum Trial {
    Whole,
    Not,
    Limit,
}

/// What the searches of a walk have cost so far (rule 34).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cost {
    /// Bytes decompressed in searches, charged to the budget.
    pub(super) budget: Budget,
    /// Before this offset each search is made twice, the first time to decide the fate of damage. It is charged
    /// twice.
    pub(super) twice_until: u64,
}

impl Cost {
    /// The cost for a scan that goes on at `at`. No search before that is made any more.
    pub(super) const fn from(self, at: u64) -> Self {
        let twice_until = if self.twice_until > at {
            self.twice_until
        } else {
            0
        };
        Self {
            twice_until,
            ..self
        }
    }
}

/// Finds where damage ends.
#[derive(Default)]
pub(super) struct Search {
    /// The window that headers are searched through.
    probe: Window,
    data_end: DataEnd,
}

impl Search {
    /// The offset after the last nonzero byte of the file.
    pub(super) fn data_end(&self, input: &Input) -> Result<u64> {
        self.data_end.of(&*input.source, &input.options)
    }

    /// Rule 27: where the damage at `at` ends. Trying a payload takes the decoder from the chunk that is being
    /// emitted.
    pub(super) fn reach(
        &mut self,
        input: &mut Input,
        emitting: &mut Option<Emitting>,
        cost: &mut Cost,
        at: u64,
        extent: Extent,
    ) -> Result<Reach> {
        let len = input.source.len();
        let found = |end| Reach {
            end,
            limited: false,
        };
        let header = match extent {
            Extent::Known(end) => return Ok(found(end)),
            Extent::Tail => return Ok(found(self.tail_end(input)?)),
            Extent::Search(header) => header,
        };
        if let Some(header) = header {
            let end = header.payload_end(at);
            if header.length > 0 && end <= len {
                match self.try_payload(input, emitting, cost, at..end)? {
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
        let next = self.find_header(input, at + ALIGNMENT)?;
        Ok(found(match next {
            Some(next) => next,
            None => self.tail_end(input)?,
        }))
    }

    /// Where the last block of data ends. Zeros after it are unused space.
    fn tail_end(&self, input: &Input) -> Result<u64> {
        let data_end = self.data_end(input)?;
        Ok(tail_end(data_end, ALIGNMENT, input.source.len()))
    }

    /// The next header at or after `from` whose CRC matches.
    fn find_header(&mut self, input: &Input, from: u64) -> Result<Option<u64>> {
        let (source, len) = (&*input.source, input.source.len());
        let data_end = self.data_end(input)?;
        let (mut at, mut want) = (from, LIMITS.first_search_piece_bytes);
        // A header of zeros never verifies.
        while at < data_end {
            input.options.poll()?;
            let left = saturating_usize(len - at);
            self.probe.load(source, at, left.min(HEADER_BYTES), want)?;
            let bytes = self.probe.bytes(source, at);
            let bytes = Cursor::new(bytes).run_up_to(LIMITS.search_piece_bytes);
            let mut place = 0;
            while let Some(header) = bytes.get(place..place + HEADER_BYTES) {
                if verified(header).is_some() {
                    return Ok(Some(at + place as u64));
                }
                place = place.saturating_add(ALIGNMENT_BYTES);
            }
            // Fewer bytes than a header are left, so no header follows.
            if place == 0 {
                return Ok(None);
            }
            at += place as u64;
            want = LIMITS.search_piece_bytes.min(want * 2);
        }
        Ok(None)
    }

    /// Whether exactly the bytes after the damaged header at the beginning of `range` are one good frame.
    fn try_payload(
        &self,
        input: &mut Input,
        emitting: &mut Option<Emitting>,
        cost: &mut Cost,
        range: Range<u64>,
    ) -> Result<Trial> {
        let Range { start: at, end } = range;
        let share = if at < cost.twice_until { 2 } else { 1 };
        let allowed = cost.budget.left(input.source.len()) / share;
        if cost.budget.wants_plausible(end - at) {
            let end_of = |at| {
                let header = hop::read(&*input.source, at)?.verified();
                Ok(header.map(|header| align(header.payload_end(at))))
            };
            if !follows_plausibly(align(end), self.data_end(input)?, end_of)? {
                return Ok(Trial::Not);
            }
        }
        *emitting = None; // the decoder is used for this now
        let start = at + HEADER_BYTES as u64;
        let Ok(mut decoding) = Decoding::begin(input, start, end)? else {
            return Ok(Trial::Not);
        };
        let mut content = Vec::with_capacity(LIMITS.trial_piece_bytes);
        let mut produced = 0;
        let (trial, work) = loop {
            content.clear();
            let piece = decoding.more(input, &mut content)?;
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
        cost.budget.spend(work.saturating_mul(share));
        Ok(trial)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "it is 0x80")]
pub(super) const ALIGNMENT_BYTES: usize = ALIGNMENT as usize;
