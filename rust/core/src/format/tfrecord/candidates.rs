//! What a damaged range may have been: a record.

use std::sync::Arc;

use super::layout::{CRC_BYTES, HEADER_BYTES, Header, difference, header};
use crate::engine::candidate::{
    Candidate, Candidates, MAX_LENGTHS_TRIED_BYTES, MAX_TRIED_BYTES, Syndrome, Trial, read_piece,
};
use crate::error::Result;
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;

pub(super) struct TfRecords(pub(super) Arc<dyn Source>);

impl Candidates for TfRecords {
    fn candidates(&mut self, span: &Span) -> Result<Vec<Candidate>> {
        let piece = span.start..span.end.min(span.start + MAX_LENGTHS_TRIED_BYTES);
        let mut bytes = Vec::new();
        read_piece(&*self.0, &piece, &mut bytes)?;
        let (at, len) = (piece.start, bytes.len());
        let begin = Header::parse(&bytes);
        let total = |own: &Header| saturating_usize(own.total());
        let whole = begin.as_ref().map(total).filter(|total| *total <= len);
        // A length that its own checksum proves is right, also where bytes after it are missing.
        let stated = whole.or_else(|| begin.filter(Header::is_proven).as_ref().map(total));
        // Of a record that is long, or does not fit, only the header is tried.
        let tried = whole.filter(|total| *total as u64 <= MAX_TRIED_BYTES);
        let data = whole.map(|total| HEADER_BYTES..total.saturating_sub(CRC_BYTES));
        let check = move |bytes: &[u8]| match header(bytes, bytes.len() as u64) {
            // It is whole.
            Ok(Some(header)) => Trial {
                end: (difference(bytes) == 0).then(|| at + header.total()),
                work: header.length,
            },
            _ => Trial::NOTHING,
        };
        Ok(vec![Candidate {
            tried: match tried {
                Some(total) => total,
                None => HEADER_BYTES.min(len),
            },
            stated,
            syndrome: data.map(|data| Syndrome::new(Syndrome::CRC32C, data, difference)),
            ..Candidate::new("record", piece, check)
        }])
    }
}
