//! The walk: hops from buffer to buffer and decodes each. After one that does not decode, continues only if the
//! framing proves itself (rule 6). Large messages are read in pieces, before memory is allocated for them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::keys::KeyTable;
use super::layout::{Body, Bytes, MAX_UINT_BYTES, Reader, Stop};
use super::message::{Frame, Message, Record, dangling_finding};
use super::rows::{Bodies, Large, OplogRows};
use crate::bug::OrBug;
use crate::error::{Error, Finding, Result};
use crate::ledger::Fate;
use crate::limits::LIMITS;
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::walk::input::Input;
use crate::walk::stream::{self, End, Framed, Point, Stream, Unit};
use crate::walk::{
    Advance, Begin, Driver, OffsetNumbering, Opening, Options, Scan, UnprovenPolicy,
};

/// How many lengths are followed between two polls of the interrupt.
const HOPS_AT_ONCE: usize = 1 << 16;

/// What a [`Carry`](crate::walk::Carry) has of an oplog. It grows with the keys of a `draft-1.1` oplog, because any later message may refer
/// to them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The next message's sequence number.
    pub(super) seq: u64,
    /// The offset up to which the lengths are proven to lead from one buffer to the next, none of them 0.
    pub(super) chain_end: u64,
    /// The keys declared so far.
    pub(super) keys: KeyTable,
}

pub(super) struct Oplog {
    unproven: UnprovenPolicy,
    large: Option<Large>,
}

type OplogScan = Stream<Oplog>;

/// Walks one oplog.
pub(super) type OplogWalk = Driver<OplogScan>;

impl OplogWalk {
    pub(super) fn open<'a>(
        source: Arc<dyn Source>,
        options: &Options,
        opening: impl Into<Opening<'a>>,
    ) -> Result<Self> {
        let opening = opening.into();
        let unit = Oplog {
            unproven: opening.unproven,
            large: None,
        };
        let (begin, offset) = match opening.begin {
            Begin::Offset(offset) => (Begin::Beginning, Some(offset)),
            begin => (begin, None),
        };
        let point = Point::of(begin, Oplog::FILE, State::default())?;
        let mut scan = Stream::new(source, options, point, unit)?;
        if scan.state.seq > scan.at() {
            // A carry may come from anywhere, and each message has a byte at least.
            return Err(Error::Usage(format!(
                "no message {} begins at offset {}: read from the beginning",
                scan.state.seq,
                scan.at()
            )));
        }
        if let Some(offset) = offset {
            scan.skip_to(offset, opening.numbering)?;
        }
        Ok(Self::new(scan))
    }
}

impl OplogScan {
    /// Continues where a message begins. Its sequence number, and the keys that it may refer to, depend on the
    /// messages before it, so those are read.
    fn skip_to(&mut self, offset: u64, numbering: OffsetNumbering) -> Result<()> {
        if numbering == OffsetNumbering::Any && !self.input.options.dialect.refers_back() {
            self.go_to(offset);
            return Ok(());
        }
        let lenient = self.input.options.clone().strict(false).values(false);
        let asked = std::mem::replace(&mut self.input.options, lenient);
        while self.at() < offset {
            self.input.options.poll()?;
            self.begin_step()?;
            match self.advance_until(offset)? {
                Advance::On | Advance::Full => {}
                Advance::Wait | Advance::End => break,
            }
        }
        self.begin_step()?;
        if self.at() != offset {
            return Err(Error::Usage(format!(
                "cannot start at offset {offset}: no message begins there. Start at the position of a record, or at 0"
            )));
        }
        self.go_to(offset);
        self.input.options = asked;
        Ok(())
    }
}

/// Whether a file ends inside a buffer. Otherwise the buffer does not decode.
const fn is_cut(finding: &Finding) -> bool {
    matches!(finding, Finding::Truncated { .. } | Finding::TooLong { .. })
}

impl Unit for Oplog {
    type State = State;
    type Record = Record;
    type Fault = Finding;
    type Rows<'a> = OplogRows<'a>;

    const FILE: &'static str = "an oplog";
    const NAME: &'static str = "message";
    const CHECKED: Checked = Checked::Structure;

    fn advance(scan: &mut OplogScan) -> Result<Advance> {
        scan.advance_until(u64::MAX)
    }

    fn end(scan: &mut OplogScan, finding: &Finding) -> Result<End> {
        let len = scan.input.len();
        if is_cut(finding) {
            return Ok(End::Last(len, Fate::Torn));
        }
        let waits = scan.input.is_growing() && scan.unit.unproven == UnprovenPolicy::SoundPrefix;
        let next = if waits { None } else { scan.next_if_proven()? };
        Ok(match next {
            Some(next) => End::Followed(next),
            None => End::Last(len, Fate::Corrupt),
        })
    }

    fn pass(scan: &mut OplogScan, finding: &Finding) {
        // One that does not decode has a number.
        scan.state.seq += u64::from(!is_cut(finding));
    }

    fn begin_step(&mut self) -> Result<()> {
        let unread = self.large.take().and_then(Large::into_failure);
        unread.map_or(Ok(()), Err)
    }

    fn rows(scan: &OplogScan) -> OplogRows<'_> {
        let bodies = match &scan.unit.large {
            Some(large) => Bodies::Large(large),
            None => Bodies::From(scan.base, scan.input.bytes(scan.base)),
        };
        OplogRows {
            records: &scan.records,
            bodies,
            values: scan.input.options.values,
            keys: &scan.state.keys,
        }
    }
}

impl Framed for Oplog {
    type Header = Frame;

    const HEADER_BYTES: usize = MAX_UINT_BYTES;

    #[inline(always)]
    fn header(bytes: &[u8], left: u64) -> std::result::Result<Option<Frame>, Finding> {
        Frame::parse(bytes, left)
    }

    fn total(frame: Frame) -> u64 {
        frame.total()
    }

    fn is_loaded(_: &Options, frame: Frame) -> bool {
        frame.total() <= LIMITS.unverified_bytes
    }

    #[inline(always)]
    fn judge(
        scan: &mut OplogScan,
        Frame { head, len }: Frame,
    ) -> std::result::Result<(), stream::Stop<Finding>> {
        let (at, start) = (scan.at(), scan.at() + head);
        let (dialect, seq, keys) = (
            scan.input.options.dialect,
            Some(scan.state.seq),
            &scan.state.keys,
        );
        let held = scan.input.bytes(start).get(..saturating_usize(len));
        let read = match held {
            Some(bytes) => Record::read(Body::new(bytes), len, dialect, seq, keys),
            None => {
                let input = &mut scan.input;
                Record::read(Pieces { input, start }, len, dialect, seq, keys)
            }
        };
        match read {
            Ok(mut record) => {
                (record.position, record.head) = (at, head);
                scan.records.push(record);
                Ok(())
            }
            Err(Stop::Fault(fault)) => Err(stream::Stop::Fault(Box::new(fault.finding))),
            Err(Stop::Error(error)) => Err(stream::Stop::Error(error)),
        }
    }

    #[inline]
    fn flaw(scan: &OplogScan, _: Frame) -> Option<Finding> {
        let dangling = scan.records.last()?.dangling.as_deref()?;
        Some(dangling_finding(dangling))
    }

    #[inline]
    fn commit(scan: &mut OplogScan, frame: Frame) -> Result<()> {
        let record = scan.records.last().or_bug("the message that was judged")?;
        if let Some(keys) = record.message.keys() {
            let (table, start) = (&mut scan.state.keys, record.start());
            table.begin(scan.state.seq, keys.len, scan.input.path())?;
            let keys = start.saturating_add(keys.at)..start.saturating_add(keys.end());
            scan.input.pieces(keys, |piece| table.extend(piece))?;
        }
        let total = frame.total();
        if total > LIMITS.unverified_bytes
            && (scan.input.bytes(record.position).len() as u64) < total
        {
            scan.unit.large = Some(Large::new(&scan.input, record.clone()));
        }
        scan.state.seq += 1;
        Ok(())
    }
}

impl OplogScan {
    /// Where the buffer after a corrupt one begins, if reading may continue there: the corrupt one is not empty,
    /// the next one decodes, and the lengths from there, none of them 0, lead exactly to the end of the file.
    fn next_if_proven(&mut self) -> Result<Option<u64>> {
        let Some(frame) = self.frame(self.at())? else {
            return Err(self.changed());
        };
        let (next, dialect) = (self.at() + frame.total(), self.input.options.dialect);
        if frame.len == 0 || next >= self.input.len() {
            return Ok(None);
        }
        let Some(Frame { head, len }) = self.frame(next)? else {
            return Ok(None);
        };
        match Message::read(&mut Reader::new(self.pieces(next + head), 0, len), dialect) {
            Ok(_) => Ok(self.lengths_lead_to_the_end(next)?.then_some(next)),
            Err(Stop::Fault(_)) => Ok(None),
            Err(Stop::Error(error)) => Err(*error),
        }
    }

    /// Follows the lengths from `start` on. What was proven once is not followed again.
    fn lengths_lead_to_the_end(&mut self, start: u64) -> Result<bool> {
        let file = self.input.len();
        let mut at = self.state.chain_end.max(start);
        let mut hops = 0_usize;
        while at < file {
            hops += 1;
            if hops.is_multiple_of(HOPS_AT_ONCE) {
                self.input.options.poll()?;
            }
            match self.frame(at)? {
                Some(frame) if frame.len > 0 => at += frame.total(),
                _ => {
                    if self.input.is_growing() {
                        self.state.chain_end = at;
                    }
                    return Ok(false);
                }
            }
        }
        self.state.chain_end = at;
        Ok(true)
    }

    /// The frame there, if it is whole.
    fn frame(&mut self, at: u64) -> Result<Option<Frame>> {
        let left = self.input.len().saturating_sub(at);
        let head = saturating_usize(left).min(MAX_UINT_BYTES);
        match Frame::parse(self.pieces(at).load(0, head)?, left) {
            Ok(frame) => Ok(frame),
            Err(_) => Ok(None),
        }
    }

    fn pieces(&mut self, start: u64) -> Pieces<'_> {
        let input = &mut self.input;
        Pieces { input, start }
    }
}

/// The bytes of a file from an offset on, so that adjacent short messages are read once.
pub(super) struct Pieces<'a> {
    pub(super) input: &'a mut Input,
    /// Where the message begins, in bytes from the beginning of the file.
    pub(super) start: u64,
}

impl Pieces<'_> {
    /// The bytes from here on, at least `min` of them.
    pub(super) fn load(&mut self, at: u64, min: usize) -> Result<&[u8]> {
        let offset = self.start.saturating_add(at);
        self.input.ahead(offset, min, LIMITS.oplog_piece_bytes)
    }
}

impl Bytes for Pieces<'_> {
    fn run(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let bytes = self.load(at, len)?;
        bytes.get(..len).or_bug("as many bytes as were loaded")
    }
}
