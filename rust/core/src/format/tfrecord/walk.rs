//! The scan: from record to record, and after damage from where "Where damage ends" in docs/formats/tfrecord.md says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::layout::{HEADER_BYTES, Header, data, header};
use crate::bug::OrBug;
use crate::cursor::Cursor;
use crate::error::{Error, Finding, Result};
use crate::ledger::{Cause, Fate, Kind, Span, Tiling};
use crate::limits::LIMITS;
use crate::own::Own;
use crate::record::{Checked, Rows, Value};
use crate::saturating::saturating_usize;
use crate::source::{Source, Window, data_end};
use crate::walk::{Advance, Begin, Budget, Carry, Driver, Eof, Options, Scan, check_start};

/// The state in a [`Carry`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    /// The offset of the next record.
    at: u64,
    /// Whether the length of any record was proven.
    proven: bool,
    budget: Budget,
    /// Damage up to `at` that may still grow.
    pending: Option<Span>,
}

pub(super) struct TfRecordScan {
    source: Arc<dyn Source>,
    options: Options,
    state: State,
    window: Window,
    /// The windows of a search, which leave the scan's own where it is.
    probe: Window,
    pieces: Window,
    tiling: Tiling,
    /// The records of this step: where each begins, and the length of its data. Their bytes are in the window from `base` on.
    records: Vec<(u64, u64)>,
    base: u64,
    spans: Vec<Span>,
}

/// Where damage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At this offset: where its own length says, or before a verified record.
    At(u64),
    /// At the end of the file.
    Nothing,
    /// The search budget ended here.
    Limit(u64),
}

/// Walks one file.
pub(super) type TfRecordWalk = Driver<TfRecordScan>;

impl TfRecordWalk {
    pub(super) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        start: Begin<'_>,
    ) -> Result<Self> {
        let mut state = State::default();
        match start {
            Begin::Carry(carry) => state = carry.state("a TFRecord file")?,
            Begin::Offset(at) => state.at = at,
            // A file has one part, the whole.
            Begin::Beginning | Begin::Part(_) => {}
        }
        check_start(state.at, &*source)?;
        let [window, probe, pieces] = Default::default();
        Ok(Self::new(TfRecordScan {
            window,
            probe,
            pieces,
            tiling: Tiling::resume(state.at, state.pending),
            records: Vec::new(),
            base: state.at,
            spans: Vec::new(),
            options: options.clone(),
            source,
            state,
        }))
    }
}

impl TfRecordScan {
    /// Handles damage here.
    fn damage(&mut self, finding: Finding) -> Result<Advance> {
        let (at, len, cause) = (self.state.at, self.source.len(), finding.cause());
        let is_growing = self.options.eof == Eof::Growing;
        let bytes = self.window.bytes(&*self.source, at);
        let compressed = compression(bytes).filter(|_| at == 0);
        let header = Header::parse(bytes);
        if self.options.strict && !is_growing && compressed.is_none() {
            return Err(Error::damage(self.source.path(), at, finding));
        }
        let budget = self.state.budget;
        let end = match (cause, header) {
            (Cause::ChecksumMismatch, Some(header)) => End::At(at + header.total()),
            (Cause::HeaderChecksumMismatch, Some(header)) => self.search(header)?,
            _ => End::Nothing,
        };
        self.state.proven |= header.is_some_and(|header| header.is_proven());
        let is_last = end == End::Nothing || end == End::At(len);
        let compressed = compressed.filter(|_| is_last && !self.state.proven);
        if is_last && is_growing && (compressed.is_none() || header.is_none()) {
            self.state.budget = budget;
            return Ok(Advance::Wait);
        }
        if let Some(how) = compressed {
            return Err(Error::Format {
                path: self.source.path().map(Into::into),
                message: format!("expected TFRecord records, found a file that {how} compressed"),
                next: Some("decompress it first, and read the result"),
            });
        }
        if self.options.strict {
            return Err(Error::damage(self.source.path(), at, finding));
        }
        let kind = match is_last {
            true => Fate::of_tail(self.state.proven).kind(cause),
            false => Kind::Corrupt,
        };
        let (damaged, rest) = match end {
            End::At(end) => (end, None),
            End::Limit(end) => (end, Some((Kind::Corrupt, Some(Cause::SearchLimit)))),
            // Zeros are not a record, so the first of them is damage if nothing else is there.
            End::Nothing => {
                let used = data_end(&*self.source, || self.options.poll())?;
                (used.max(at + 1), Some((Kind::Unused, None)))
            }
        };
        self.cover(damaged, kind, Some(cause));
        if let Some((kind, cause)) = rest {
            self.cover(len, kind, cause);
        }
        Ok(Advance::On)
    }

    /// Where the damage here ends, which begins with this header, whose length is not proven.
    fn search(&mut self, own: Header) -> Result<End> {
        let (start, source) = (self.state.at, self.source.clone());
        let (mut at, mut candidate) = (start, Some(own));
        loop {
            let left = source.len() - at;
            if let Some(header) = candidate.filter(|header| header.total() <= left) {
                let before = self.state.budget;
                if !self.state.budget.try_spend(header.length, source.len()) {
                    return Ok(End::Limit(at.max(start + HEADER_BYTES as u64)));
                }
                if data(&*source, &self.options, &mut self.pieces, (at, &header))?.is_none() {
                    self.state.budget.take_back(before);
                    // Only the header is damaged, or this is a record.
                    let is_own = at == start;
                    return Ok(End::At(if is_own { at + header.total() } else { at }));
                }
            }
            // What follows may be within the record of this header, which is still being written.
            if self.options.eof == Eof::Growing
                && candidate.is_some_and(|own| own.is_proven() && own.total() > left)
            {
                return Ok(End::Nothing);
            }
            at += u64::from(candidate.is_some());
            let left = saturating_usize(source.len() - at);
            if left < HEADER_BYTES {
                return Ok(End::Nothing);
            }
            self.options.poll()?;
            let most = LIMITS.search_piece_bytes.min(self.options.window_bytes);
            let piece = left.min(most.max(HEADER_BYTES));
            self.probe.load(&*source, at, HEADER_BYTES, piece)?;
            let bytes = self.probe.bytes(&*source, at);
            let bytes = Cursor::new(bytes).run_up_to(piece);
            let piece = bytes.len();
            let mut headers = bytes.windows(HEADER_BYTES).map(Header::parse);
            let place = headers.position(|header| header.is_some_and(|own| own.is_proven()));
            at += place.unwrap_or(piece - HEADER_BYTES + 1) as u64;
            candidate = place.and_then(|place| Header::parse(bytes.get(place..)?));
            self.state.proven |= candidate.is_some();
        }
    }

    fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
        self.state.at = end;
    }
}

/// How a file is compressed that begins with these bytes and has no header that checks.
fn compression(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] => Some("GZIP"),
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some("ZLIB"),
        _ => None,
    }
}

impl Scan for TfRecordScan {
    type Rows<'a> = TfRecordRows<'a>;

    fn options(&self) -> &Options {
        &self.options
    }

    fn begin_step(&mut self) -> Result<()> {
        self.records.clear();
        self.spans.clear();
        Ok(())
    }

    fn advance(&mut self) -> Result<Advance> {
        let (source, len) = (self.source.clone(), self.source.len());
        if self.state.at >= len {
            return Ok(self.options.eof.reached());
        }
        self.base = self.state.at;
        let head = saturating_usize(len - self.base).min(HEADER_BYTES);
        self.window
            .load(&*source, self.base, head, self.options.window_bytes)?;
        loop {
            let at = self.state.at;
            let held = self.window.bytes(&*source, at);
            let found = header(held, len - at);
            let is_held = matches!(&found, Ok(Some(own)) if own.total() <= held.len() as u64);
            // What does not follow the records of this step in the window is met again by the next step.
            let is_full = self.records.len() >= LIMITS.step_rows
                || at - self.base >= self.options.window_bytes as u64;
            if at > self.base && (is_full || !is_held) {
                return Ok(Advance::On);
            }
            let record = match found {
                Ok(header) => header.or_bug("a header that was loaded")?,
                Err(finding) => return self.damage(finding),
            };
            let most = self.options.record_bytes;
            let is_too_large = self.options.values && record.length > most;
            if self.options.values && !is_too_large && !is_held {
                // The length is proven, so as many bytes are there.
                let (whole, want) = (saturating_usize(record.total()), self.options.window_bytes);
                self.window.load(&*source, at, whole, want)?;
                continue;
            }
            let window = match is_held {
                true => &mut self.window,
                false => &mut self.pieces,
            };
            let fault = data(&*source, &self.options, window, (at, &record))?;
            match fault {
                None if !is_too_large => {}
                _ if at > self.base => return Ok(Advance::On),
                Some(finding) => return self.damage(finding),
                None => {
                    let (what, path) = (format!("the record at offset {at}"), source.path());
                    let needed = record.length;
                    return Err(Error::record_too_large(path, what, needed, most));
                }
            }
            self.state.proven = true;
            self.cover(at + record.total(), Kind::Record, None);
            self.records.push((at, record.length));
        }
    }

    fn finish(&mut self) {
        self.tiling.finish(&mut self.spans);
    }

    fn has_found(&self) -> bool {
        !self.records.is_empty() || !self.spans.is_empty()
    }

    fn rows(&self) -> TfRecordRows<'_> {
        TfRecordRows {
            base: self.base,
            bytes: self.window.bytes(&*self.source, self.base),
            records: &self.records,
        }
    }

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn checked(&self) -> Checked {
        Checked::Checksum
    }

    fn offset(&self, _: bool) -> u64 {
        self.state.at
    }

    fn carry(&self, _: bool) -> Option<Carry> {
        Some(Carry::of(&State {
            pending: self.tiling.pending(),
            ..self.state.clone()
        }))
    }
}

/// Records, each with where it begins and the length of its data, and the bytes of the file from `base` on.
pub(crate) struct TfRecordRows<'a> {
    base: u64,
    bytes: &'a [u8],
    records: &'a [(u64, u64)],
}

impl Own for TfRecordRows<'_> {}

#[allow(
    clippy::indexing_slicing,
    reason = "a row beyond the rows is the caller's mistake, as with any slice"
)]
impl Rows for TfRecordRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.records[row].0
    }

    fn value(&self, row: usize) -> &[u8] {
        let (at, length) = self.records[row];
        let data = self
            .bytes
            .get(saturating_usize(at - self.base) + HEADER_BYTES..);
        // Absent data was not asked for.
        let data = data.and_then(|data| data.get(..saturating_usize(length)));
        data.unwrap_or_default()
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        match column {
            0 => Value::Binary(self.value(row)),
            // What identifies it.
            _ => Value::Int64(self.position(row).cast_signed()),
        }
    }
}
