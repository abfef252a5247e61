//! What a damaged range may have been: a record.

use std::sync::Arc;

use super::judge::{checksum, crc_in, structure};
use super::layout::{HEADER_BYTES, Header};
use crate::engine::candidate::{
    Candidate, Candidates, MAX_LENGTHS_TRIED_BYTES, MAX_TRIED_BYTES, Trial, read_piece,
};
use crate::error::Result;
use crate::ledger::Span;
use crate::source::Source;

/// The bytes of a record's length.
const LENGTH_BYTES: usize = 4;

pub(super) struct Sharded {
    pub(super) source: Arc<dyn Source>,
}

impl Candidates for Sharded {
    fn reads_alone(&self) -> bool {
        true
    }

    fn candidates(&mut self, span: &Span) -> Result<Vec<Candidate>> {
        let piece = span.start..span.end.min(span.start + MAX_LENGTHS_TRIED_BYTES);
        let mut bytes = Vec::new();
        read_piece(&*self.source, &piece, &mut bytes)?;
        let stated = Header::parse(&bytes).and_then(|header| usize::try_from(header.total()).ok());
        // If a record's length does not fit, only the length can be wrong.
        let most = usize::try_from(MAX_TRIED_BYTES).unwrap_or(usize::MAX);
        let whole = stated.filter(|total| *total <= most.min(bytes.len()));
        let lengths = LENGTH_BYTES.min(bytes.len());
        let at = piece.start;
        let check = move |bytes: &[u8]| {
            let record = structure(bytes, bytes.len() as u64, u64::MAX).record();
            let Some(header) = record else {
                return Trial::NOTHING;
            };
            let computed = crc_in(bytes, &header);
            let is_right = computed.is_some_and(|crc| checksum(&header, crc).is_ok());
            Trial {
                end: is_right.then_some(at + header.total()),
                work: header.total(),
            }
        };
        Ok(vec![Candidate {
            tried: whole.unwrap_or(lengths),
            stated: stated.filter(|total| *total >= HEADER_BYTES),
            ..Candidate::new("record", piece, check)
        }])
    }
}
