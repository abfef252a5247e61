//! What a damaged range of a segment may have been: a record, or unused space.

use std::ops::Range;
use std::sync::Arc;

use super::layout::{CHECKSUM_BYTES, Header, MAX_HEADER_BYTES, Parsed};
use crate::checksum::hash;
use crate::cursor::Cursor;
use crate::engine::Options;
use crate::engine::suspect::{
    MAX_LENGTHS_TRIED_BYTES, MAX_TRIED_BYTES, Suspect, Suspects, Trial, read_piece,
};
use crate::error::{Finding, Result};
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::uuid6;

/// Damage that reaches the end of the data ends behind its last byte that is not zero; the record may end so much later.
const TRAILING_ZEROS: u64 = CHECKSUM_BYTES as u64;

pub(super) struct ActiveSuspects {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
}

impl Suspects for ActiveSuspects {
    fn reads_alone(&self) -> bool {
        true
    }

    fn suspects(&mut self, span: &Span) -> Result<Vec<Suspect>> {
        let end = span
            .end
            .saturating_add(TRAILING_ZEROS)
            .min(self.source.len());
        let piece = span.start..end.min(span.start.saturating_add(MAX_LENGTHS_TRIED_BYTES));
        let mut bytes = Vec::new();
        read_piece(&*self.source, &piece, &mut bytes)?;
        let mut suspects = vec![self.record(&bytes, piece)];
        if span.len() <= MAX_TRIED_BYTES {
            suspects.push(Suspect::zeros("unused space", span.start..span.end));
        }
        Ok(suspects)
    }
}

impl ActiveSuspects {
    /// The record that may begin where these bytes do.
    fn record(&self, bytes: &[u8], piece: Range<u64>) -> Suspect {
        let plausible = bytes.first_chunk().is_some_and(uuid6::is_v6);
        let stated = match Header::parse(bytes, bytes.len() as u64) {
            Parsed::Record(header) => Some(header.total()),
            Parsed::Bad(Finding::TooLong { needed, .. }) if plausible => Some(needed),
            _ => None,
        };
        let stated = stated.and_then(|total| usize::try_from(total).ok());
        // Of a record whose lengths do not fit only the lengths can be what is wrong.
        let lengths = MAX_HEADER_BYTES.min(bytes.len());
        let whole = stated.filter(|total| *total as u64 <= MAX_TRIED_BYTES.min(bytes.len() as u64));
        let (keys, at) = (self.options.keys.clone(), piece.start);
        let check = move |bytes: &[u8]| {
            let Parsed::Record(header) = Header::parse(bytes, bytes.len() as u64) else {
                return Trial::NOTHING;
            };
            if !uuid6::is_v6(&header.uuid) {
                return Trial::NOTHING;
            }
            let mut cursor = Cursor::new(bytes);
            let hashed = saturating_usize(header.hashed());
            let body = cursor.run(hashed).unwrap_or_default();
            let stored = cursor.u64_be();
            let checks = keys.iter().any(|key| stored == Some(hash(key, body)));
            Trial {
                end: checks.then_some(at + header.total()),
                work: header.hashed().saturating_mul(keys.len() as u64),
            }
        };
        Suspect {
            tried: whole.unwrap_or(lengths).max(lengths),
            stated,
            ..Suspect::new("record", piece, check)
        }
    }
}
