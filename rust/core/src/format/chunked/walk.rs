//! The walk: header, payload, padding, header. Damage reaches as far as the rules say.

use std::ops::Range;
use std::sync::Arc;

use super::FORMAT;
use super::emitting::Emitting;
use super::hop::Gap;
use super::judge::{self, Extent, Fault, Head, Judged, Payload, structure};
use super::layout::{ALIGNMENT, HEADER_BYTES, Header, Item, align};
use super::payload::{Input, check};
use super::records::{Bounds, ChunkRows, Place};
use super::resync::{Reach, Search};
use super::state::{State, Until};
use crate::error::{Error, Result};
use crate::ledger::{Cause, Fate, Kind, Span, Tiling, is_refused};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::walk::{Advance, Carry, Driver, Eof, Options, Scan, check_start};

pub(super) struct ChunkedScan {
    pub(super) input: Input,
    pub(super) bounds: Bounds,
    pub(super) state: State,
    search: Search,
    /// The content of the chunk that is being emitted, or that was last verified.
    pub(super) content: Vec<u8>,
    /// The chunk of that content.
    pub(super) emitting: Option<Emitting>,
    tiling: Tiling,
    /// The bytes of the chunk that the records are in.
    chunk: Range<u64>,
    records: Vec<Place>,
    chunks: Vec<Item>,
    spans: Vec<Span>,
}

/// What is at an offset.
pub(super) enum Next {
    /// The file's end.
    End,
    /// Zeros to the file's end.
    Unused,
    /// The beginning of something that the file has not grown around yet.
    Growing,
    /// Zeros up to the next chunk, which end here.
    Padding(u64),
    /// A good chunk, which is now being emitted.
    Chunk(Header),
}

/// Walks one chunked segment.
pub(super) type ChunkedWalk = Driver<ChunkedScan>;

impl ChunkedScan {
    pub(super) fn from_state(
        source: Arc<dyn Source>,
        options: &Options,
        state: State,
    ) -> Result<Self> {
        check_start(state.at, &*source)?;
        let mut input = Input::new(source, options.clone());
        if let Until::Part { range, .. } = state.until {
            input.window.read_ahead_until(range.until);
        }
        Ok(Self {
            input,
            bounds: Bounds::of(&options.filter),
            tiling: Tiling::resume(state.at, state.pending),
            state,
            search: Search::default(),
            content: Vec::new(),
            emitting: None,
            chunk: 0..0,
            records: Vec::new(),
            chunks: Vec::new(),
            spans: Vec::new(),
        })
    }

    /// The walk of this scan.
    pub(super) const fn into_walk(self) -> ChunkedWalk {
        let is_over = matches!(self.state.until, Until::Here);
        Driver::resume(self, is_over)
    }

    /// The good chunks that the last step finished, as index items.
    pub(super) fn chunks(&self) -> &[Item] {
        &self.chunks
    }

    /// Examines `at`. The last good chunk ended with the message offset `end`.
    pub(super) fn examine(&mut self, at: u64, end: u64) -> Result<Judged<Next>> {
        let len = self.input.source.len();
        if at == len {
            return Ok(Ok(Next::End));
        }
        if !at.is_multiple_of(ALIGNMENT) {
            return self.examine_padding(at, align(at).min(len));
        }
        let head = self.head(at)?;
        self.state.verified |= head.verified().is_some();
        Ok(match head {
            Head::Zeros => {
                let data_end = self.search.data_end(&self.input)?;
                judge::unused(at, data_end).map(|()| Next::Unused)
            }
            Head::Bad(fault) => Err(fault),
            Head::Sound(header) => {
                let payload = self.check(header, at)?;
                judge::verdict(header, payload, end).map(|emitting| {
                    self.emitting = Some(emitting);
                    Next::Chunk(header)
                })
            }
        })
    }

    /// Reads the header at `at`.
    fn head(&mut self, at: u64) -> Result<Head> {
        let len = self.input.source.len();
        let left = saturating_usize(len - at);
        let bytes = self.input.load(at, left.min(HEADER_BYTES))?;
        Ok(structure(at, bytes, len))
    }

    fn examine_padding(&mut self, at: u64, end: u64) -> Result<Judged<Next>> {
        if self.input.options.eof == Eof::Growing && end < align(at) {
            return Ok(Ok(Next::Growing));
        }
        let len = saturating_usize(end - at);
        let input = &mut self.input;
        let ahead = input.options.window_bytes;
        let bytes = input.window.exact(&*input.source, at, len, ahead)?;
        Ok(judge::padding(at, bytes).map(|()| Next::Padding(end)))
    }

    /// Verifies the payload of the chunk at `at`. Afterwards its content is buffered and its records can be
    /// emitted.
    fn check(&mut self, header: Header, at: u64) -> Result<Payload<Emitting>> {
        self.emitting = None;
        let payload = check(&mut self.input, &header, at, &mut self.content)?;
        Ok(payload.map(|()| Emitting::new(at, header)))
    }

    /// Whether the walk ends after the wanted offsets, and the file has more.
    fn ends_early(&self) -> bool {
        matches!(self.state.until, Until::Filter) && self.state.at < self.input.source.len()
    }

    /// Whether such a walk ends here: after what is wanted, and not in doubt.
    fn is_past(&mut self) -> Result<bool> {
        let at = self.state.at;
        if !self.ends_early() || self.state.fate.is_some() || !at.is_multiple_of(ALIGNMENT) {
            return Ok(false);
        }
        let Head::Sound(header) = self.head(at)? else {
            return Ok(false);
        };
        let data_end = || self.search.data_end(&self.input);
        Ok(self.bounds.is_past(header.start)
            && Gap::after(header, at).is_confirmed(&*self.input.source, data_end)?)
    }

    /// Checks damage at `at`. Only files without damage that must be searched are split into parts.
    fn check_part(&mut self, at: u64, extent: Extent) -> Result<()> {
        // After a good chunk, padding can be damaged.
        if at.is_multiple_of(ALIGNMENT) {
            self.state.follow(false);
        }
        match extent {
            Extent::Tail | Extent::Search(_) if matches!(self.state.until, Until::Part { .. }) => {
                Err(self.input.changed(at))
            }
            Extent::Known(_) | Extent::Tail | Extent::Search(_) => Ok(()),
        }
    }

    /// Emits the next records of the current chunk.
    fn emit(&mut self) -> Result<()> {
        let Some(emitting) = &mut self.emitting else {
            return Err(self.input.changed(self.state.at));
        };
        if emitting.done < self.state.emitted {
            emitting.skip(self.state.emitted);
        }
        emitting.next(&self.input, &self.bounds, &self.content, &mut self.records)?;
        let (position, header, done) = (emitting.position, emitting.header, emitting.done);
        self.chunk = position..header.payload_end(position);
        if !emitting.is_done() {
            self.state.emitted = done;
            return Ok(());
        }
        self.emitting = None;
        self.state.emitted = 0;
        self.state.end = header.end();
        self.state.fate = None;
        self.state.follow(true);
        self.cover(self.chunk.end, Kind::Chunk, None);
        self.chunks.extend(Item::of(&header, position));
        Ok(())
    }

    /// Adds damage to the ledger, or raises it.
    fn damage(&mut self, fault: Fault) -> Result<Advance> {
        let (at, cause) = (self.state.at, fault.cause());
        let extent = fault.extent(at, self.input.source.len());
        self.check_part(at, extent)?;
        let options = &self.input.options;
        let (strict, growing) = (options.strict, options.eof == Eof::Growing);
        // A refused chunk that verifies is corrupt, whatever follows.
        let settled = is_refused(cause) && matches!(extent, Extent::Known(_));
        if strict && (settled || !growing) {
            return Err(self.damage_error(fault));
        }
        let before = self.state.cost;
        let reach = self.reach(at, extent)?;
        let fate = match self.state.fate {
            _ if settled || reach.limited => Fate::Corrupt,
            Some(fate) => fate,
            None => {
                let fate = self.look_ahead(reach.end)?;
                if growing && fate != Fate::Corrupt {
                    self.state.cost = before;
                    return Ok(Advance::Wait);
                }
                if strict {
                    return Err(self.damage_error(fault));
                }
                *self.state.fate.insert(fate)
            }
        };
        self.cover(reach.end, fate.kind(cause), Some(cause));
        if reach.limited {
            self.cover(
                self.input.source.len(),
                Kind::Corrupt,
                Some(Cause::SearchLimit),
            );
        }
        Ok(Advance::On)
    }

    /// Where the damage at `at` ends.
    fn reach(&mut self, at: u64, extent: Extent) -> Result<Reach> {
        let cost = &mut self.state.cost;
        self.search
            .reach(&mut self.input, &mut self.emitting, cost, at, extent)
    }

    /// Reads ahead from `at` after damage, to see whether a good chunk follows. The walk meets it again, so
    /// nothing of it is kept.
    fn look_ahead(&mut self, mut at: u64) -> Result<Fate> {
        let budget = self.state.cost.budget;
        self.state.cost.twice_until = u64::MAX;
        let fate = loop {
            match self.examine(at, self.state.end)? {
                Ok(Next::End | Next::Growing | Next::Unused) => {
                    break Fate::of_tail(self.state.verified);
                }
                Ok(Next::Chunk(_)) => break Fate::Corrupt,
                Ok(Next::Padding(end)) => at = end,
                Err(fault) => {
                    let extent = fault.extent(at, self.input.source.len());
                    let reach = self.reach(at, extent)?;
                    if reach.limited {
                        break Fate::Corrupt;
                    }
                    at = reach.end;
                }
            }
        };
        // The search that ended at `at` is made again too.
        self.state.cost.twice_until = at.saturating_add(1);
        self.state.cost.budget = budget;
        Ok(fate)
    }

    fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.tiling.cover(end, kind, cause, &mut self.spans);
        self.state.at = end.max(self.state.at);
    }

    fn damage_error(&self, fault: Fault) -> Error {
        let finding = fault.finding();
        Error::damage(self.input.source.path(), self.state.at, finding)
    }
}

impl Scan for ChunkedScan {
    type Rows<'a> = ChunkRows<'a>;

    fn options(&self) -> &Options {
        &self.input.options
    }

    fn begin_step(&mut self) -> Result<()> {
        self.records.clear();
        self.chunks.clear();
        self.spans.clear();
        Ok(())
    }

    fn advance(&mut self) -> Result<Advance> {
        let at = self.state.at;
        let growing = self.input.options.eof == Eof::Growing;
        if self.state.is_past_part(self.input.source.len()) {
            return Ok(Advance::End);
        }
        if let Some(emitting) = &self.emitting
            && emitting.position == at
        {
            // Checked before: on the way to it, or in an earlier step.
            if self.bounds.is_past(emitting.header.start) {
                return Ok(Advance::End);
            }
            self.emit()?;
            return Ok(Advance::On);
        }
        if self.is_past()? {
            return Ok(Advance::End);
        }
        let found = match self.examine(at, self.state.end)? {
            Ok(found) => found,
            Err(fault) => return self.damage(fault),
        };
        Ok(match found {
            Next::End | Next::Growing | Next::Unused if growing && !self.ends_early() => {
                Advance::Wait
            }
            Next::End | Next::Growing => Advance::End,
            Next::Unused => {
                self.cover(self.input.source.len(), Kind::Unused, None);
                Advance::End
            }
            Next::Padding(end) => {
                self.cover(end, Kind::Padding, None);
                Advance::On
            }
            Next::Chunk(header) if self.bounds.is_past(header.start) => Advance::End,
            Next::Chunk(_) => {
                self.emit()?;
                Advance::On
            }
        })
    }

    fn finish(&mut self) {
        self.tiling.finish(&mut self.spans);
    }

    fn has_found(&self) -> bool {
        !self.records.is_empty() || !self.spans.is_empty()
    }

    fn rows(&self) -> ChunkRows<'_> {
        ChunkRows {
            chunk: &self.chunk,
            content: &self.content,
            records: &self.records,
        }
    }

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn checked(&self) -> crate::record::Checked {
        FORMAT.checked
    }

    fn offset(&self, _: bool) -> u64 {
        self.state.at
    }

    fn carry(&self, ended: bool) -> Option<Carry> {
        let state = State {
            pending: self.tiling.pending(),
            cost: self.state.cost.from(self.state.at),
            until: match self.state.until {
                Until::Part { .. } if ended => Until::Here,
                until => until,
            },
            ..self.state.clone()
        };
        Some(Carry::of(&state))
    }
}
