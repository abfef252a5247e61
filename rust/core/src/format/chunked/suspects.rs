//! What a damaged range of a log may have been: a chunk's header, its payload, padding.

use std::ops::Range;
use std::sync::Arc;

use super::header::{ALIGNMENT, HEADER_BYTES, Header, Look, align};
use super::payload::{Checked, Input, check};
use crate::compress::Decoder;
use crate::error::Result;
use crate::format::Options;
use crate::format::suspect::{MAX_TRIED_BYTES, Suspect, Suspects, Trial, read_piece};
use crate::ledger::{Cause, Span};
use crate::source::{BytesSource, Source, Window};

/// The most content of a chunk whose payload is guessed at, in bytes.
const MAX_CONTENT_BYTES: u64 = 1 << 20;
/// A zstd frame's descriptor, which says what the bytes behind it mean: with a wrong content size taken for a window size, which
/// is never wrong, the frame decodes as well.
const DESCRIPTOR: Range<usize> = 4..5;
/// What a guess costs at least, as decoding so many bytes.
const LEAST_WORK: u64 = 256;

pub(super) struct ChunkedSuspects {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
}

impl Suspects for ChunkedSuspects {
    fn reads_alone(&self) -> bool {
        true
    }

    fn suspects(&mut self, span: &Span) -> Result<Vec<Suspect>> {
        if span.cause == Some(Cause::NonzeroPadding) {
            return Ok(vec![Suspect::zeros("padding", span.start..span.end)]);
        }
        let (at, len) = (span.start, self.source.len());
        if len.saturating_sub(at) < HEADER_BYTES as u64 {
            return Ok(Vec::new());
        }
        let mut suspects = Vec::new();
        match Look::read(&*self.source, at)?.checked() {
            Some(header) => {
                let end = header.payload_end(at);
                if u64::from(header.length) <= MAX_TRIED_BYTES && end <= len {
                    suspects.push(self.payload(header, at, end)?);
                }
            }
            None => suspects.push(header_suspect(at, len)),
        }
        if span.len() <= MAX_TRIED_BYTES && !at.is_multiple_of(ALIGNMENT) {
            suspects.push(Suspect::zeros("padding", span.start..span.end));
        }
        Ok(suspects)
    }

    fn alignment(&self) -> u64 {
        ALIGNMENT
    }

    fn begins(&self, bytes: &[u8]) -> bool {
        // Far enough from the end of any file: whether the payload fits is another question.
        matches!(Look::at(0, bytes, u64::MAX), Look::Sound(_))
    }
}

/// A header whose CRC-32 would be right.
fn header_suspect(at: u64, len: u64) -> Suspect {
    let check = move |bytes: &[u8]| Trial {
        end: match Look::at(at, bytes, len) {
            Look::Sound(header) => Some(align(header.payload_end(at)).min(len)),
            _ => None,
        },
        work: HEADER_BYTES as u64,
    };
    Suspect::new("chunk header", at..at + HEADER_BYTES as u64, check)
}

impl ChunkedSuspects {
    /// A payload that would be what its header says.
    fn payload(&self, header: Header, at: u64, end: u64) -> Result<Suspect> {
        let options = Options {
            max_chunk_bytes: MAX_CONTENT_BYTES,
            limit_chunk_bytes: MAX_CONTENT_BYTES,
            window_bytes: usize::MAX,
            ..self.options.clone()
        };
        let start = at + HEADER_BYTES as u64;
        let mut head = Vec::new();
        read_piece(&*self.source, &(at..start), &mut head)?;
        let (after, mut content) = (align(end).min(self.source.len()), Vec::new());
        let mut input = Input {
            source: self.source.clone(),
            options,
            window: Window::default(),
            decoder: Decoder::default(),
            lengths: Vec::new(),
        };
        let check = move |bytes: &[u8]| {
            input.source = Arc::new(BytesSource::new([head.as_slice(), bytes].concat()));
            // A content beyond the limit is none that can be proven here.
            let checked = check(&mut input, &header, 0, &mut content);
            let is_good = matches!(checked, Ok(Checked::Whole | Checked::Large(_)));
            Trial {
                end: is_good.then_some(after),
                work: LEAST_WORK + bytes.len() as u64 + content.len() as u64,
            }
        };
        Ok(Suspect {
            tried_last: DESCRIPTOR,
            ..Suspect::new("chunk payload", start..end, check)
        })
    }
}
