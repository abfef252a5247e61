//! The scan: from record to record, and after damage from where "Where damage ends" in docs/formats/tfrecord.md says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::layout::{FRAMING_BYTES, HEADER_BYTES, Header, data, header};
use crate::error::{Error, Finding, Result};
use crate::ledger::{Cause, Fate};
use crate::private::Sealed;
use crate::record::{Checked, Rows, Value};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::walk::input::Search;
use crate::walk::stream::{End, Framed, Point, Stop, Stream, Unit};
use crate::walk::{Advance, Begin, Driver, Options};

/// What a [`Carry`](crate::walk::Carry) has of a TFRecord file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// Whether the length of any record was proven.
    proven: bool,
}

pub(super) struct TfRecord;

/// Walks one file.
pub(super) type TfRecordWalk = Driver<Stream<TfRecord>>;

impl TfRecordWalk {
    pub(super) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        begin: Begin<'_>,
    ) -> Result<Self> {
        let point = Point::of(begin, TfRecord::FILE, State::default())?;
        Stream::new(source, options, point, TfRecord).map(Self::new)
    }
}

impl Unit for TfRecord {
    type State = State;
    /// Where it begins, and the length of its data.
    type Record = (u64, u64);
    type Fault = Finding;
    type Rows<'a> = TfRecordRows<'a>;

    const FILE: &'static str = "a TFRecord file";
    const NAME: &'static str = "record";
    const CHECKED: Checked = Checked::Checksum;

    fn advance(scan: &mut Stream<Self>) -> Result<Advance> {
        scan.advance_until(u64::MAX)
    }

    fn looks_first(scan: &Stream<Self>) -> bool {
        compression(scan).is_some()
    }

    fn end(scan: &mut Stream<Self>, finding: &Finding) -> Result<End> {
        let (at, len) = (scan.at(), scan.input.len());
        let header = Header::parse(scan.input.bytes(at));
        let end = match (finding.cause(), header) {
            (Cause::ChecksumMismatch, Some(header)) => Some(End::Followed(at + header.total())),
            (Cause::HeaderChecksumMismatch, Some(header)) => scan.search(header)?,
            _ => None,
        };
        scan.state.proven |= header.is_some_and(|header| header.is_proven());
        let fate = Fate::of_tail(scan.state.proven);
        let end = match end {
            Some(End::Followed(end)) if end == len => End::Last(len, fate),
            Some(end) => return Ok(end),
            None => End::Nothing(fate),
        };
        let is_whole = header.is_some() || !scan.input.is_growing();
        match compression(scan).filter(|_| is_whole && !scan.state.proven) {
            None => Ok(end),
            Some(how) => Err(Error::Format {
                path: scan.input.path().map(Into::into),
                message: format!("expected TFRecord records, found a file that {how} compressed"),
                next: Some("decompress it first, and read the result"),
            }),
        }
    }

    fn rows(scan: &Stream<Self>) -> TfRecordRows<'_> {
        TfRecordRows {
            base: scan.base,
            bytes: scan.input.bytes(scan.base),
            records: &scan.records,
        }
    }
}

impl Framed for TfRecord {
    type Header = Header;

    const HEADER_BYTES: usize = HEADER_BYTES;

    #[inline(always)]
    fn header(bytes: &[u8], left: u64) -> std::result::Result<Option<Header>, Finding> {
        header(bytes, left)
    }

    fn total(header: Header) -> u64 {
        header.total()
    }

    fn size(header: Header) -> u64 {
        header.length
    }

    /// The length is proven, so as many bytes are there.
    fn is_loaded(options: &Options, header: Header) -> bool {
        options.values && header.length <= options.record_bytes
    }

    #[inline(always)]
    fn judge(scan: &mut Stream<Self>, header: Header) -> std::result::Result<(), Stop<Finding>> {
        let at = scan.at();
        if let Some(fault) = data(&mut scan.input, at, &header)? {
            return Err(Stop::Fault(Box::new(fault)));
        }
        scan.records.push((at, header.length));
        Ok(())
    }

    #[inline]
    fn commit(scan: &mut Stream<Self>, _: Header) -> Result<()> {
        scan.state.proven = true;
        Ok(())
    }
}

impl Stream<TfRecord> {
    /// Where the damage here ends, which begins with this header, whose length is not proven. `None` if nothing sound follows.
    fn search(&mut self, first: Header) -> Result<Option<End>> {
        let (start, len) = (self.at(), self.input.len());
        let mut search = Search::new(start + 1, len - HEADER_BYTES as u64 + 1);
        let (mut at, mut header) = (start, first);
        loop {
            let left = len - at;
            if header.total() <= left {
                let before = self.budget;
                if !self.budget.try_spend(header.length, len) {
                    return Ok(Some(End::Limit(at.max(start + HEADER_BYTES as u64))));
                }
                if data(&mut self.input, at, &header)?.is_none() {
                    self.budget.take_back(before);
                    // Only the header is damaged, or this is a record.
                    let end = if at == start { at + header.total() } else { at };
                    return Ok(Some(End::Followed(end)));
                }
            } else if self.input.is_growing() && header.is_proven() {
                // What follows may be within this record, which is still being written.
                return Ok(None);
            }
            (at, header) = match search.next(&mut self.input, HEADER_BYTES, 1, proven)? {
                Some(found) => found,
                None => return Ok(None),
            };
            self.state.proven = true;
        }
    }
}

/// The first of these places where a header whose length is proven begins.
fn proven(bytes: &[u8], places: usize, _: u64) -> Option<(usize, Header)> {
    let headers = bytes.windows(HEADER_BYTES).take(places).map(Header::parse);
    let mut headers = headers.enumerate();
    headers.find_map(|(place, header)| Some((place, header.filter(Header::is_proven)?)))
}

/// How a file is compressed that begins with these bytes and has no header that checks.
fn compression(scan: &Stream<TfRecord>) -> Option<&'static str> {
    match scan.input.bytes(0) {
        _ if scan.at() > 0 => None,
        [0x1f, 0x8b, ..] => Some("GZIP"),
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some("ZLIB"),
        _ => None,
    }
}

/// Records, each with where it begins and the length of its data, and the bytes of the file from `base` on.
pub(crate) struct TfRecordRows<'a> {
    base: u64,
    bytes: &'a [u8],
    records: &'a [(u64, u64)],
}

impl Sealed for TfRecordRows<'_> {}

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

    fn end(&self, row: usize) -> u64 {
        let (at, length) = self.records[row];
        at + length + FRAMING_BYTES
    }

    fn value(&self, row: usize) -> &[u8] {
        let (at, length) = self.records[row];
        let data = self
            .bytes
            .get(saturating_usize(at - self.base) + HEADER_BYTES..);
        match data.and_then(|data| data.get(..saturating_usize(length))) {
            Some(data) => data,
            // It was not asked for.
            None => &[],
        }
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        match column {
            0 => Value::Binary(self.value(row)),
            // What identifies it.
            _ => Value::Int64(self.position(row).cast_signed()),
        }
    }
}
