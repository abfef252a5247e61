//! Finds where reading goes on after damage (rule 6).

use super::layout::compact::{MAX_UINT_BYTES, Stop};
use super::message::{Frame, Message};
use super::pieces::Pieces;
use super::walk::OplogScan;
use crate::error::Result;
use crate::saturating::saturating_usize;

/// How many lengths are followed between two polls of the interrupt.
const HOPS_AT_ONCE: usize = 1 << 16;

impl OplogScan {
    /// Where the buffer after a corrupt one begins, if reading may continue there: the corrupt one is not empty,
    /// the next one decodes, and the lengths from there, none of them 0, lead exactly to the end of the file.
    pub(super) fn next_if_proven(&mut self) -> Result<Option<u64>> {
        let Some(own) = self.frame(self.at())? else {
            return Err(self.changed());
        };
        let (next, dialect) = (self.at() + own.total(), self.input.options.dialect);
        if own.len == 0 || next >= self.input.len() {
            return Ok(None);
        }
        let Some(Frame { head, len }) = self.frame(next)? else {
            return Ok(None);
        };
        match Message::read(&mut self.pieces(next + head).reader(len), dialect) {
            Ok(_) => Ok(self.lengths_lead_to_the_end(next)?.then_some(next)),
            Err(Stop::Fault(_)) => Ok(None),
            Err(Stop::Error(error)) => Err(*error),
        }
    }

    /// Follows the lengths from `start` on. What was proven once is not followed again.
    fn lengths_lead_to_the_end(&mut self, start: u64) -> Result<bool> {
        let file = self.input.len();
        let mut at = self.own.chain_end.max(start);
        let mut hops = 0_usize;
        while at < file {
            hops += 1;
            if hops.is_multiple_of(HOPS_AT_ONCE) {
                self.input.options.poll()?;
            }
            match self.frame(at)? {
                Some(frame) if frame.len > 0 => at += frame.total(),
                _ => {
                    if self.input.is_growing() {
                        self.own.chain_end = at;
                    }
                    return Ok(false);
                }
            }
        }
        self.own.chain_end = at;
        Ok(true)
    }

    /// The frame there, if it is whole.
    fn frame(&mut self, at: u64) -> Result<Option<Frame>> {
        let left = self.input.len().saturating_sub(at);
        let head = saturating_usize(left).min(MAX_UINT_BYTES);
        let mut pieces = self.pieces(at);
        Ok(Frame::parse(pieces.load(0, head)?, left).unwrap_or_default())
    }

    fn pieces(&mut self, start: u64) -> Pieces<'_> {
        Pieces {
            source: &*self.input.source,
            options: &self.input.options,
            window: &mut self.unit.search,
            start,
        }
    }
}
