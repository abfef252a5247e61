//! Finds where damage ends.

use super::judge::{checksum, crc_in, crc_of, structure};
use super::layout::{HEADER_BYTES, Header};
use crate::engine::{Budget, Options, follows_plausibly};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};

/// Where damage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Before a verified record.
    Followed(u64),
    /// At the end of the file.
    Nothing,
    /// The search budget ended here.
    Limit(u64),
}

/// The windows of a search, which leave the scan's own window where it is.
#[derive(Default)]
pub(super) struct Search {
    probe: Window,
    looks: Window,
    bodies: Window,
}

/// One search.
pub(super) struct Resync<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) options: &'a Options,
    /// How many bytes a record may have.
    pub(super) allowed: u64,
    pub(super) search: &'a mut Search,
    pub(super) budget: &'a mut Budget,
}

impl Resync<'_> {
    /// Where the damage at `start` ends. Its own length is tried first. If that leads to a verified record or to
    /// the end of the file, bytes within its body that look like a record are not taken for one.
    pub(super) fn end(&mut self, start: u64) -> Result<End> {
        let len = self.source.len();
        if let Some(header) = self.header_at(start)? {
            let end = start + header.total();
            if end == len {
                return Ok(End::Nothing);
            }
            if let Some(next) = self.header_at(end)? {
                match self.is_verified(end, &next)? {
                    Some(true) => return Ok(End::Followed(end)),
                    Some(false) => {}
                    None => return Ok(End::Limit(end)),
                }
            }
        }
        let mut at = start + 1;
        let mut want = LIMITS.first_search_piece_bytes;
        while at + (HEADER_BYTES as u64) <= len {
            self.options.poll()?;
            let left = saturating_usize(len - at);
            want = LIMITS.search_piece_bytes.min(want.saturating_mul(2));
            let piece = left.min(want.max(HEADER_BYTES));
            self.search.probe.load(self.source, at, piece, piece)?;
            let places = piece - HEADER_BYTES + 1;
            for place in 0..places as u64 {
                let at = at + place;
                let bytes = self.search.probe.bytes(self.source, at);
                let Some(header) = structure(bytes, len - at, self.allowed).record() else {
                    continue;
                };
                match self.is_verified(at, &header)? {
                    Some(true) => return Ok(End::Followed(at)),
                    Some(false) => {}
                    None => return Ok(End::Limit(at)),
                }
            }
            at += places as u64;
        }
        Ok(End::Nothing)
    }

    /// Whether this header's record is verified. `None` if the search budget does not allow hashing it.
    fn is_verified(&mut self, at: u64, header: &Header) -> Result<Option<bool>> {
        let len = self.source.len();
        let (source, looks, allowed) = (self.source, &mut self.search.looks, self.allowed);
        if self.budget.wants_plausible(header.total()) {
            let end_of = |at| {
                let header = header_at(source, looks, (at, allowed))?;
                Ok(header.map(|header| at + header.total()))
            };
            if !follows_plausibly(at + header.total(), len, end_of)? {
                return Ok(Some(false));
            }
        }
        let before = *self.budget;
        if !self.budget.try_spend(header.total(), len) {
            return Ok(None);
        }
        let bytes = self.search.probe.bytes(self.source, at);
        let computed = match crc_in(bytes, header) {
            Some(computed) => computed,
            None => crc_of(
                self.source,
                self.options,
                &mut self.search.bodies,
                (at, header),
            )?,
        };
        let is_verified = checksum(header, computed).is_ok();
        if is_verified {
            self.budget.take_back(before);
        }
        Ok(Some(is_verified))
    }

    fn header_at(&mut self, at: u64) -> Result<Option<Header>> {
        header_at(self.source, &mut self.search.looks, (at, self.allowed))
    }
}

/// The header at this offset, if its record lies within the file and is at most as long as allowed.
fn header_at(
    source: &dyn Source,
    window: &mut Window,
    (at, allowed): (u64, u64),
) -> Result<Option<Header>> {
    let left = source.len().saturating_sub(at);
    let piece = saturating_usize(left).min(HEADER_BYTES);
    window.load(source, at, piece, piece)?;
    Ok(structure(window.bytes(source, at), left, allowed).record())
}
