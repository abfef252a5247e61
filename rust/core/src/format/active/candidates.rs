//! What a damaged range of a segment may have been: a record, or unused space.

use std::ops::Range;
use std::sync::Arc;

use super::judge::{Fault, key_of, record, structure, version};
use super::layout::{CHECKSUM_BYTES, MAX_HEADER_BYTES, UUID_BYTES};
use crate::engine::candidate::{
    Candidate, Candidates, MAX_LENGTHS_TRIED_BYTES, MAX_TRIED_BYTES, Trial, read_piece,
};
use crate::error::Result;
use crate::ledger::Span;
use crate::source::Source;
use crate::walk::Options;

/// Damage at the end of the data ends after its last nonzero byte. The record may end this many bytes later.
const TRAILING_ZEROS: u64 = CHECKSUM_BYTES as u64;

pub(super) struct Active {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
}

impl Candidates for Active {
    fn candidates(&mut self, span: &Span) -> Result<Vec<Candidate>> {
        let end = span
            .end
            .saturating_add(TRAILING_ZEROS)
            .min(self.source.len());
        let piece = span.start..end.min(span.start.saturating_add(MAX_LENGTHS_TRIED_BYTES));
        let mut bytes = Vec::new();
        read_piece(&*self.source, &piece, &mut bytes)?;
        let mut candidates = vec![self.record(&bytes, piece)];
        // A zero UUID begins unused space.
        let zeros = span.end.saturating_add(UUID_BYTES as u64);
        let unused = self.first_nonzero(span)?..zeros.min(self.source.len());
        let is_long = unused.end.saturating_sub(span.start) >= UUID_BYTES as u64;
        if is_long && unused.end - unused.start <= MAX_TRIED_BYTES {
            candidates.push(Candidate::zeros("unused space", unused));
        }
        Ok(candidates)
    }
}

impl Active {
    /// Where the bytes of a range begin that are not zero.
    fn first_nonzero(&self, span: &Span) -> Result<u64> {
        let mut piece = Vec::new();
        let mut at = span.start;
        while at < span.end {
            piece.clear();
            let end = span.end.min(at + MAX_LENGTHS_TRIED_BYTES);
            read_piece(&*self.source, &(at..end), &mut piece)?;
            if let Some(place) = piece.iter().position(|byte| *byte != 0) {
                return Ok(at + place as u64);
            }
            at = end;
        }
        Ok(span.end)
    }

    /// The record that may begin with these bytes.
    fn record(&self, bytes: &[u8], piece: Range<u64>) -> Candidate {
        let plausible = |uuid: &[u8; UUID_BYTES]| version(*uuid).is_ok();
        let stated = match structure(bytes, bytes.len() as u64) {
            Ok(header) => header.map(|header| header.total()),
            Err(Fault::TooLong { needed, .. }) => {
                bytes.first_chunk().is_some_and(plausible).then_some(needed)
            }
            Err(_) => None,
        };
        let stated = stated.and_then(|total| usize::try_from(total).ok());
        // If a record's lengths do not fit, only the lengths can be wrong.
        let lengths = MAX_HEADER_BYTES.min(bytes.len());
        let whole = stated.filter(|total| *total as u64 <= MAX_TRIED_BYTES.min(bytes.len() as u64));
        let (keys, at) = (self.options.keys.clone(), piece.start);
        let check = move |bytes: &[u8]| {
            let record = record(bytes, bytes.len() as u64);
            let Some(header) = record.filter(|header| version(header.uuid).is_ok()) else {
                return Trial::NOTHING;
            };
            let hashed = header.split(bytes);
            let checks = hashed.is_some_and(|hashed| key_of(&keys, hashed).is_some());
            Trial {
                end: checks.then_some(at + header.total()),
                work: header.hashed().saturating_mul(keys.len() as u64),
            }
        };
        Candidate {
            tried: match whole {
                Some(total) => total.max(lengths),
                None => lengths,
            },
            stated,
            ..Candidate::new("record", piece, check)
        }
    }
}
