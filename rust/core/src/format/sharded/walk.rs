//! The scan: from record to record, and after damage from the next verified one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::judge::{Fault, Structure, allowed, checksum, crc_in, crc_of, structure};
use super::layout::{HEADER_BYTES, Header};
use super::resync::{End, Resync, Search};
use super::rows::{Record, ShardedRows};
use crate::engine::{Advance, Budget, Carry, Driver, Eof, Options, Scan, Start, check_start};
use crate::error::{Damage, Error, Result};
use crate::ledger::{Cause, Fate, Kind, Span, Tiling};
use crate::limits::LIMITS;
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};

/// The state in a [`Carry`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    /// The offset of the next record.
    at: u64,
    /// Whether any record was verified.
    verified: bool,
    budget: Budget,
    /// Damage up to `at` that may still grow.
    pending: Option<Span>,
}

pub(super) struct ShardedScan {
    source: Arc<dyn Source>,
    options: Options,
    allowed: u64,
    state: State,
    window: Window,
    search: Search,
    tiling: Tiling,
    /// The records of this step, whose bytes are in the window from `base` on.
    records: Vec<Record>,
    base: u64,
    spans: Vec<Span>,
}

/// Walks one file.
pub(super) type ShardedWalk = Driver<ShardedScan>;

impl ShardedWalk {
    pub(super) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        start: Start<'_>,
    ) -> Result<Self> {
        ShardedScan::new(source, options, start).map(Self::new)
    }
}

impl ShardedScan {
    fn new(source: Arc<dyn Source>, options: &Options, start: Start<'_>) -> Result<Self> {
        let state = match start {
            Start::Carry(carry) => carry.state("a sharded file")?,
            Start::Growth(growth) => return Err(growth.unplanned()),
            Start::Offset(at) => State {
                at,
                ..State::default()
            },
            // A file has one part, the whole.
            Start::Beginning | Start::Part(_) => State::default(),
        };
        check_start(state.at, &*source)?;
        Ok(Self {
            window: Window::default(),
            search: Search::default(),
            tiling: Tiling::resume(state.at, state.pending),
            records: Vec::new(),
            base: state.at,
            spans: Vec::new(),
            options: options.clone(),
            allowed: allowed(options),
            source,
            state,
        })
    }

    /// The record here, if it is verified. `None` if it is not whole in the window.
    fn next_in_window(&self) -> std::result::Result<Option<Record>, Fault> {
        let at = self.state.at;
        let bytes = self.window.bytes(&*self.source, at);
        let header = match structure(bytes, self.source.len() - at, self.allowed) {
            Structure::Record(header) => header,
            Structure::Bad(fault) => return Err(fault),
            Structure::NeedMore => return Ok(None),
        };
        match crc_in(bytes, &header) {
            Some(computed) => checksum(&header, computed).map(|()| Some(Record { at, header })),
            None => Ok(None),
        }
    }

    /// Commits a verified record. Returns whether the step must end before it.
    fn take(&mut self, record: Record) -> Result<bool> {
        let total = record.header.total();
        if self.options.values && total > self.options.record_bytes {
            if !self.records.is_empty() {
                return Ok(true);
            }
            return Err(Error::record_too_large(
                self.source.path(),
                format!("the record at offset {}", record.at),
                total,
                self.options.record_bytes,
            ));
        }
        self.state.verified = true;
        self.cover(record.end(), Kind::Record, None);
        self.records.push(record);
        Ok(false)
    }

    /// Handles a record that is not whole in the window. It is hashed in pieces, so that a false length costs no
    /// memory.
    fn advance_singly(&mut self) -> Result<Advance> {
        let (at, len) = (self.state.at, self.source.len());
        let header = match structure(self.window.bytes(&*self.source, at), len - at, self.allowed) {
            Structure::Record(header) => header,
            Structure::Bad(fault) => return self.damage(fault),
            // The window holds a header, or the end of the file.
            Structure::NeedMore => return Err(self.changed()),
        };
        let computed = self.crc_of(&header)?;
        if let Err(fault) = checksum(&header, computed) {
            return self.damage(fault);
        }
        let is_given = self.options.values && header.total() <= self.options.record_bytes;
        if is_given {
            let Ok(whole) = usize::try_from(header.total()) else {
                return Err(self.changed());
            };
            // Loads and hashes the bytes again, so that exactly the hashed bytes are emitted.
            self.window.load(&*self.source, at, whole, whole)?;
            let again = crc_in(self.window.bytes(&*self.source, at), &header);
            if again != Some(computed) {
                return Err(self.changed());
            }
        }
        self.take(Record { at, header })?;
        Ok(Advance::Full)
    }

    fn crc_of(&mut self, header: &Header) -> Result<u32> {
        let mut pieces = Window::default();
        crc_of(
            &*self.source,
            &self.options,
            &mut pieces,
            (self.state.at, header),
        )
    }

    /// Handles damage here.
    fn damage(&mut self, fault: Fault) -> Result<Advance> {
        let is_growing = self.options.eof == Eof::Growing;
        let hashed = match fault {
            Fault::Checksum { hashed, .. } => hashed,
            Fault::TooLarge { .. } => 0,
            // A record that is being written. Records within it are its body.
            _ if is_growing => return Ok(Advance::Wait),
            Fault::Truncated { .. } | Fault::TooLong { .. } => 0,
        };
        if self.options.strict && !is_growing {
            return Err(self.damage_error(fault));
        }
        let budget = self.state.budget;
        self.state.budget.spend(hashed);
        let end = Resync {
            source: &*self.source,
            options: &self.options,
            allowed: self.allowed,
            search: &mut self.search,
            budget: &mut self.state.budget,
        }
        .end(self.state.at)?;
        if end == End::Nothing && is_growing {
            self.state.budget = budget;
            return Ok(Advance::Wait);
        }
        if self.options.strict {
            return Err(self.damage_error(fault));
        }
        let (cause, len) = (fault.finding().cause(), self.source.len());
        match end {
            End::Followed(end) => self.cover(end, Kind::Corrupt, Some(cause)),
            End::Limit(end) => {
                self.cover(end, Kind::Corrupt, Some(cause));
                self.cover(len, Kind::Corrupt, Some(Cause::SearchLimit));
            }
            End::Nothing => {
                let kind = match fault {
                    // Not a torn tail: all of it may be there.
                    Fault::TooLarge { .. } => Kind::Corrupt,
                    _ => Fate::of_tail(self.state.verified).kind(cause),
                };
                self.cover(len, kind, Some(cause));
            }
        }
        Ok(Advance::On)
    }

    fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
        self.state.at = end;
    }

    fn damage_error(&self, fault: Fault) -> Error {
        let damage = Damage::new(self.source.path(), self.state.at, fault.finding());
        Error::Damage(Box::new(damage))
    }

    fn changed(&self) -> Error {
        let what = format!("the record at offset {}", self.state.at);
        Error::changed(self.source.path(), &what)
    }
}

impl Scan for ShardedScan {
    type Rows<'a> = ShardedRows<'a>;

    fn options(&self) -> &Options {
        &self.options
    }

    fn begin_step(&mut self) -> Result<()> {
        self.records.clear();
        self.spans.clear();
        Ok(())
    }

    fn advance(&mut self) -> Result<Advance> {
        let (at, len) = (self.state.at, self.source.len());
        if at >= len {
            return Ok(self.options.eof.reached());
        }
        let head = saturating_usize(len - at).min(HEADER_BYTES);
        self.window
            .load(&*self.source, at, head, self.options.window_bytes)?;
        self.base = at;
        let stop = loop {
            match self.next_in_window() {
                Ok(Some(record)) => {
                    if self.take(record)? {
                        return Ok(Advance::Full);
                    }
                    let read = self.state.at - self.base;
                    let is_full = self.records.len() >= LIMITS.step_rows
                        || read >= self.options.window_bytes as u64
                        || self.state.at >= len;
                    if is_full {
                        return Ok(Advance::On);
                    }
                }
                stop => break stop,
            }
        };
        if !self.records.is_empty() {
            // The next step meets this again, after the records before it are emitted.
            return Ok(Advance::Full);
        }
        match stop {
            Ok(_) => self.advance_singly(),
            Err(fault) => self.damage(fault),
        }
    }

    fn finish(&mut self) {
        self.tiling.finish(&mut self.spans);
    }

    fn has_found(&self) -> bool {
        !self.records.is_empty() || !self.spans.is_empty()
    }

    fn rows(&self) -> ShardedRows<'_> {
        ShardedRows {
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
