//! The walk: hops from buffer to buffer and decodes each. After one that does not decode, continues only if the
//! framing proves itself.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::draft::Scope;
use super::keys::KeyTable;
use super::layout::compact::{Body, Fault, MAX_UINT_BYTES, Stop};
use super::message::{Frame, Record, dangling_finding};
use super::rows::{Bodies, Large, OplogRows, changed};
use crate::error::{Error, Finding, Result};
use crate::ledger::{Kind, Span, Tiling};
use crate::limits::LIMITS;
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::walk::{
    Advance, Begin, Carry, Driver, Eof, OffsetNumbering, Opening, Options, Scan, UnprovenPolicy,
    check_start,
};

/// The state in a [`Carry`]. It grows with the keys of a `draft-1.1` oplog, because any later message may refer to
/// them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State<K = KeyTable> {
    /// The offset of the next buffer.
    pub(super) at: u64,
    /// The next message's sequence number.
    pub(super) seq: u64,
    /// The offset up to which the lengths are proven to lead from one buffer to the next, none of them 0.
    pub(super) chain_end: u64,
    /// The keys declared so far.
    pub(super) keys: K,
    /// Damage up to `at` that may still grow.
    pending: Option<Span>,
}

pub(super) struct OplogScan {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
    unproven: UnprovenPolicy,
    pub(super) state: State,
    pub(super) window: Window,
    /// For reading ahead, so that the window stays where it is.
    pub(super) search: Window,
    tiling: Tiling,
    pub(super) records: Vec<Record>,
    /// The offset of the first byte of the window that contains `records`.
    base: u64,
    pub(super) large: Option<Large>,
    spans: Vec<Span>,
}

/// Walks one oplog.
pub(super) type OplogWalk = Driver<OplogScan>;

impl OplogWalk {
    pub(super) fn open<'a>(
        source: Arc<dyn Source>,
        options: &Options,
        opening: impl Into<Opening<'a>>,
    ) -> Result<Self> {
        OplogScan::new(source, options, opening.into()).map(Self::new)
    }
}

impl OplogScan {
    fn new(source: Arc<dyn Source>, options: &Options, opening: Opening<'_>) -> Result<Self> {
        let state = match opening.begin {
            Begin::Carry(carry) => carry.state("an oplog")?,
            // An oplog has one part, the whole.
            Begin::Beginning | Begin::Offset(_) | Begin::Part(_) => State::default(),
        };
        check_start(state.at, &*source)?;
        if state.seq > state.at {
            // A carry may come from anywhere, and each message has a byte at least.
            return Err(Error::Usage(format!(
                "no message {} begins at offset {}: read from the beginning",
                state.seq, state.at
            )));
        }
        let walk = Self {
            window: Window::default(),
            search: Window::default(),
            tiling: Tiling::resume(state.at, state.pending),
            records: Vec::new(),
            base: state.at,
            large: None,
            spans: Vec::new(),
            options: options.clone(),
            unproven: opening.unproven,
            source,
            state,
        };
        match opening.begin {
            Begin::Offset(offset) => walk.skip_to(offset, opening.numbering),
            _ => Ok(walk),
        }
    }

    /// Continues where a message begins. Its sequence number, and the keys that it may refer to, depend on the
    /// messages before it, so those are read.
    fn skip_to(mut self, offset: u64, numbering: OffsetNumbering) -> Result<Self> {
        if numbering == OffsetNumbering::Any && !self.options.dialect.refers_back() {
            self.state.at = offset;
            self.tiling = Tiling::resume(offset, None);
            return Ok(self);
        }
        let lenient = self.options.clone().strict(false).values(false);
        let asked = std::mem::replace(&mut self.options, lenient);
        while self.state.at < offset {
            self.options.poll()?;
            self.forget();
            match self.advance_until(offset)? {
                Advance::On | Advance::Full => {}
                Advance::Wait | Advance::End => break,
            }
        }
        self.forget();
        if self.state.at != offset {
            return Err(Error::Usage(format!(
                "cannot start at offset {offset}: no message begins there. Start at the position of a record, or at 0"
            )));
        }
        self.tiling = Tiling::resume(offset, None);
        self.options = asked;
        Ok(self)
    }

    fn forget(&mut self) {
        self.records.clear();
        self.spans.clear();
        self.large = None;
    }

    /// Advances until something is found, or up to `limit`.
    fn advance_until(&mut self, limit: u64) -> Result<Advance> {
        let (at, len) = (self.state.at, self.source.len());
        if at >= len {
            return Ok(self.options.eof.reached());
        }
        let head = saturating_usize(len - at).min(MAX_UINT_BYTES);
        self.window
            .load(&*self.source, at, head, self.options.window_bytes)?;
        self.base = at;
        let first = loop {
            match self.next_in_window() {
                Ok(Some(record)) => {
                    if let Some(advance) = self.commit(record)? {
                        return Ok(advance);
                    }
                    let read = self.state.at - self.base;
                    let full = self.records.len() >= LIMITS.step_rows
                        || read >= self.options.window_bytes as u64
                        || self.state.at >= limit.min(len);
                    if full {
                        return Ok(Advance::On);
                    }
                }
                other => break other,
            }
        };
        if !self.records.is_empty() {
            // The next step meets this again, after the good messages before it are emitted.
            return Ok(Advance::Full);
        }
        match first {
            Ok(_) => self.advance_singly(),
            Err(Stop::Error(error)) => Err(*error),
            Err(Stop::Fault(fault)) => self.corrupt(*fault),
        }
    }

    /// The next message, if it lies whole in the window.
    fn next_in_window(&self) -> std::result::Result<Option<Record>, Stop> {
        let at = self.state.at;
        let bytes = self.window.bytes(&*self.source, at);
        let Frame::Whole { head, len } = Frame::parse(bytes, self.source.len() - at) else {
            return Ok(None);
        };
        let rest = bytes.get(saturating_usize(head)..);
        let Some(body) = rest.and_then(|rest| rest.get(..saturating_usize(len))) else {
            return Ok(None);
        };
        let (dialect, seq) = (self.options.dialect, Some(self.state.seq));
        let mut record = Record::read(Body::new(body), len, dialect, seq, &self.state.keys)?;
        (record.position, record.head) = (at, head);
        Ok(Some(record))
    }

    /// Commits a message that decodes and is in the window. Returns how the advance ends, if it ends there.
    fn commit(&mut self, record: Record) -> Result<Option<Advance>> {
        let total = record.end() - record.position;
        let too_large = self.options.values && total > self.options.record_bytes;
        let refused = record.dangling && self.options.strict;
        if (too_large || refused) && !self.records.is_empty() {
            return Ok(Some(Advance::Full));
        }
        if refused {
            let body = Body::new(self.window.bytes(&*self.source, record.start()));
            return Err(self.dangling_error(&record, body));
        }
        if too_large {
            return Err(self.too_large(&record));
        }
        if let Some(keys) = record.message.keys() {
            let body = Body::new(self.window.bytes(&*self.source, record.start()));
            let path = self.source.path();
            self.state.keys.begin(self.state.seq, keys.len, path)?;
            self.state.keys.extend(body.get(keys));
        }
        self.take(record);
        Ok(None)
    }

    /// Commits a message whose keys are in the table.
    pub(super) fn take(&mut self, record: Record) {
        self.cover(record.end(), Kind::Record, record.cause());
        self.state.seq += 1;
        self.records.push(record);
    }

    fn dangling_error(&self, record: &Record, body: Body<'_>) -> Error {
        let scope = Scope {
            seq: record.seq,
            keys: &self.state.keys,
        };
        match record.message.dangling(body, scope) {
            Ok(Some((place, reference))) => self.damage_error(dangling_finding(place, reference)),
            Ok(None) | Err(_) => changed(&*self.source, record.position),
        }
    }

    /// Handles what is not a buffer that fits into the window.
    fn advance_singly(&mut self) -> Result<Advance> {
        let (at, len) = (self.state.at, self.source.len());
        let available = len - at;
        match Frame::parse(self.window.bytes(&*self.source, at), available) {
            Frame::Truncated { needed } => self.torn(Finding::Truncated { needed, available }),
            Frame::TooLong { needed } => self.torn(Finding::TooLong { needed, available }),
            Frame::Whole { head, len } => self.advance_large(head, len),
            // The window holds the longest length, or the end of the file.
            Frame::NeedMore => Err(changed(&*self.source, at)),
        }
    }

    /// Handles a file that ends inside the buffer that begins here.
    fn torn(&mut self, finding: Finding) -> Result<Advance> {
        if self.options.eof == Eof::Growing {
            return Ok(Advance::Wait);
        }
        if self.options.strict {
            return Err(self.damage_error(finding));
        }
        let len = self.source.len();
        self.cover(len, Kind::TornTail, Some(finding.cause()));
        Ok(Advance::On)
    }

    /// Handles a whole buffer that does not decode.
    pub(super) fn corrupt(&mut self, fault: Fault) -> Result<Advance> {
        let growing = self.options.eof == Eof::Growing;
        if growing && self.unproven == UnprovenPolicy::SoundPrefix {
            return Ok(Advance::Wait);
        }
        if self.options.strict && !growing {
            return Err(self.damage_error(fault.finding()));
        }
        let goes_on = self.next_if_proven()?;
        if goes_on.is_none() && growing {
            return Ok(Advance::Wait);
        }
        if self.options.strict {
            return Err(self.damage_error(fault.finding()));
        }
        let end = goes_on.unwrap_or(self.source.len());
        self.cover(end, Kind::Corrupt, Some(fault.cause()));
        self.state.seq += 1;
        Ok(Advance::On)
    }

    fn cover(&mut self, end: u64, kind: Kind, cause: Option<crate::ledger::Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
        self.state.at = end.max(self.state.at);
    }

    pub(super) fn damage_error(&self, finding: Finding) -> Error {
        Error::damage(self.source.path(), self.state.at, finding)
    }

    pub(super) fn too_large(&self, record: &Record) -> Error {
        Error::record_too_large(
            self.source.path(),
            format!("the message at offset {}", record.position),
            record.end() - record.position,
            self.options.record_bytes,
        )
    }
}

impl Scan for OplogScan {
    type Rows<'a> = OplogRows<'a>;

    fn options(&self) -> &Options {
        &self.options
    }

    fn begin_step(&mut self) -> Result<()> {
        let unread = self.large.take().and_then(Large::into_failure);
        self.forget();
        unread.map_or(Ok(()), Err)
    }

    fn advance(&mut self) -> Result<Advance> {
        self.advance_until(u64::MAX)
    }

    fn finish(&mut self) {
        self.tiling.finish(&mut self.spans);
    }

    fn has_found(&self) -> bool {
        !self.records.is_empty() || !self.spans.is_empty()
    }

    fn rows(&self) -> OplogRows<'_> {
        let bodies = match &self.large {
            Some(large) => Bodies::Large(large),
            None => Bodies::From(self.base, self.window.bytes(&*self.source, self.base)),
        };
        OplogRows {
            records: &self.records,
            bodies,
            values: self.options.values,
            keys: &self.state.keys,
        }
    }

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn checked(&self) -> Checked {
        Checked::Structure
    }

    fn offset(&self, _: bool) -> u64 {
        self.state.at
    }

    fn carry(&self, _: bool) -> Option<Carry> {
        let State {
            at,
            seq,
            chain_end,
            ref keys,
            ..
        } = self.state;
        Some(Carry::of(&State {
            at,
            seq,
            chain_end,
            keys,
            pending: self.tiling.pending(),
        }))
    }
}
