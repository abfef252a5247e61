//! Reads ahead: large messages before memory is allocated for them, and the framing after a corrupt one.

use super::draft::{Reference, Scope};
use super::layout::compact::{Bytes, MAX_UINT_BYTES, Read, Reader, Stop};
use super::message::{Frame, Message, Record, dangling_finding};
use super::rows::{Large, changed};
use super::walk::OplogScan;
use crate::bug::OrBug;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::walk::{Advance, Eof, Options};

/// How many lengths are followed between two polls of the interrupt.
const HOPS_AT_ONCE: usize = 1 << 16;

impl OplogScan {
    /// Handles a message that does not fit into the window.
    pub(super) fn advance_large(&mut self, head: u64, len: u64) -> Result<Advance> {
        let position = self.state.at;
        let total = saturating_usize(head.saturating_add(len));
        if total as u64 <= LIMITS.unverified_bytes {
            // At least a window, so that the buffer keeps its size.
            let want = self.options.window_bytes;
            self.window.load(&*self.source, position, total, want)?;
            return Ok(Advance::On);
        }
        let (message, dangling) = match self.read_in_pieces(position + head, len) {
            Ok(read) => read,
            Err(Stop::Error(error)) => return Err(*error),
            Err(Stop::Fault(fault)) => return self.corrupt(*fault),
        };
        if let Some((place, reference)) = dangling
            && self.options.strict
        {
            return Err(self.damage_error(dangling_finding(place, reference)));
        }
        let record = Record {
            position,
            head,
            len,
            seq: Some(self.state.seq),
            dangling: dangling.is_some(),
            message,
        };
        if self.options.values {
            if total as u64 > self.options.record_bytes || total == usize::MAX {
                return Err(self.too_large(&record));
            }
            // Loads and decodes the bytes again, so that exactly these bytes are emitted.
            self.window.load(&*self.source, position, total, total)?;
            return Ok(Advance::On);
        }
        self.store_keys(&record)?;
        self.take(record.clone());
        self.large = Some(Large::new(
            self.source.clone(),
            record,
            self.options.record_bytes,
        ));
        Ok(Advance::On)
    }

    /// Reads the message whose first byte is at `start`. Also returns its first dangling reference.
    fn read_in_pieces(
        &mut self,
        start: u64,
        len: u64,
    ) -> Read<(Message, Option<(u64, Reference)>)> {
        let dialect = self.options.dialect;
        let message = Message::read(&mut self.pieces(start).reader(len), dialect)?;
        let Some((references, clock)) = message.references() else {
            return Ok((message, None));
        };
        let scope = Scope {
            seq: Some(self.state.seq),
            keys: &self.state.keys,
        };
        let pieces = Pieces {
            source: &*self.source,
            options: &self.options,
            window: &mut self.search,
            start,
        };
        let mut reader = Reader::new(pieces, clock.at, len);
        let dangling = references.dangling(&mut reader, scope)?;
        Ok((message, dangling))
    }

    fn store_keys(&mut self, record: &Record) -> Result<()> {
        let Some(keys) = record.message.keys() else {
            return Ok(());
        };
        let mut piece = Vec::new();
        let path = self.source.path();
        self.state.keys.begin(self.state.seq, keys.len, path)?;
        let mut at = keys.at;
        while at < keys.end() {
            self.options.poll()?;
            let len = (keys.end() - at).min(LIMITS.keys_ahead_bytes);
            piece.resize(saturating_usize(len), 0);
            self.source
                .read_exact_at(record.start().saturating_add(at), &mut piece)?;
            self.state.keys.extend(&piece);
            at += len;
        }
        Ok(())
    }

    fn pieces(&mut self, start: u64) -> Pieces<'_> {
        Pieces {
            source: &*self.source,
            options: &self.options,
            window: &mut self.search,
            start,
        }
    }

    /// Where the buffer after a corrupt one begins, if reading may continue there: the corrupt one is not empty,
    /// the next one decodes, and the lengths from there, none of them 0, lead exactly to the end of the file.
    pub(super) fn next_if_proven(&mut self) -> Result<Option<u64>> {
        let position = self.state.at;
        let (Frame::Whole { head, len }, file) = (self.frame(position)?, self.source.len()) else {
            return Err(changed(&*self.source, position));
        };
        let next = position + head + len;
        if len == 0 || next >= file {
            return Ok(None);
        }
        let decodes = match self.frame(next)? {
            Frame::Whole { head, len } => {
                let dialect = self.options.dialect;
                match Message::read(&mut self.pieces(next + head).reader(len), dialect) {
                    Ok(_) => true,
                    Err(Stop::Fault(_)) => false,
                    Err(Stop::Error(error)) => return Err(*error),
                }
            }
            _ => false,
        };
        Ok((decodes && self.lengths_lead_to_the_end(next)?).then_some(next))
    }

    /// Follows the lengths from `start` on. What was proven once is not followed again.
    fn lengths_lead_to_the_end(&mut self, start: u64) -> Result<bool> {
        let file = self.source.len();
        let mut at = self.state.chain_end.max(start);
        let mut hops = 0_usize;
        while at < file {
            hops += 1;
            if hops.is_multiple_of(HOPS_AT_ONCE) {
                self.options.poll()?;
            }
            match self.frame(at)? {
                Frame::Whole { head, len } if len > 0 => at += head + len,
                _ => {
                    if self.options.eof == Eof::Growing {
                        self.state.chain_end = at;
                    }
                    return Ok(false);
                }
            }
        }
        self.state.chain_end = at;
        Ok(true)
    }

    fn frame(&mut self, at: u64) -> Result<Frame> {
        let left = self.source.len().saturating_sub(at);
        let head = saturating_usize(left).min(MAX_UINT_BYTES);
        self.pieces(at)
            .load(0, head)
            .map(|bytes| Frame::parse(bytes, left))
    }
}

/// The bytes of a source from an offset on, through a window that is reused, so that adjacent short messages are
/// read once.
pub(super) struct Pieces<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) options: &'a Options,
    pub(super) window: &'a mut Window,
    /// Where the message begins, in bytes from the beginning of the file.
    pub(super) start: u64,
}

impl<'a> Pieces<'a> {
    /// A reader of the message of `len` bytes that begins there. The source must have all of them.
    pub(super) const fn reader(self, len: u64) -> Reader<Pieces<'a>> {
        Reader::new(self, 0, len)
    }

    /// The bytes from here on, at least `min` of them.
    pub(super) fn load(&mut self, at: u64, min: usize) -> Result<&[u8]> {
        let offset = self.start.saturating_add(at);
        if self.window.bytes(self.source, offset).len() < min {
            self.options.poll()?;
            self.window
                .load(self.source, offset, min, LIMITS.oplog_piece_bytes)?;
        }
        Ok(self.window.bytes(self.source, offset))
    }
}

impl Bytes for Pieces<'_> {
    fn run(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let bytes = self.load(at, len)?;
        bytes.get(..len).or_bug("as many bytes as were loaded")
    }
}
