//! What a damaged range may have been: a record.

use std::sync::Arc;

use super::layout::{CRC_BYTES, HEADER_BYTES, Header, difference, header, is_right};
use crate::engine::candidate::{
    Candidate, Candidates, MAX_LENGTHS_TRIED_BYTES, MAX_TRIED_BYTES, Syndrome, Trial, read_piece,
};
use crate::error::Result;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;

pub(super) struct TfRecords(pub(super) Arc<dyn Source>);

impl Candidates for TfRecords {
    fn reads_alone(&self) -> bool {
        true
    }

    fn candidates(&mut self, span: &Span) -> Result<Vec<Candidate>> {
        let piece = span.start..span.end.min(span.start + MAX_LENGTHS_TRIED_BYTES);
        let mut bytes = Vec::new();
        read_piece(&*self.0, &piece, &mut bytes)?;
        let (at, len) = (piece.start, bytes.len());
        let stated = Header::parse(&bytes).map(|header| saturating_usize(header.total()));
        let stated = stated.filter(|total| *total <= len);
        // Of a record that is long, or does not fit, only the header is tried.
        let tried = stated.filter(|total| *total as u64 <= MAX_TRIED_BYTES);
        let data = stated.map(|total| HEADER_BYTES..total.saturating_sub(CRC_BYTES));
        let check = move |bytes: &[u8]| match header(bytes, bytes.len() as u64) {
            Ok(Some(header)) => Trial {
                end: is_right(bytes, &header).then(|| at + header.total()),
                work: header.length,
            },
            _ => Trial::NOTHING,
        };
        Ok(vec![Candidate {
            tried: tried.unwrap_or(HEADER_BYTES.min(len)),
            stated,
            syndrome: data.map(|data| Syndrome::new(Syndrome::CRC32C, data, difference)),
            ..Candidate::new("record", piece, check)
        }])
    }
}
