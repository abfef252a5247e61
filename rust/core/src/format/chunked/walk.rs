//! The walk: header, payload, padding, header, and the records of each verified chunk, a bounded number at a time.
//! Damage reaches as far as the rules say.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::FORMAT;
use super::hop::{ChunkRange, Gap};
use super::judge::{self, Extent, Fault, Head, Judged, structure};
use super::layout::{
    ALIGNMENT, HEADER_BYTES, Header, Item, RECORD_HEADER_BYTES, align, decode_record,
};
use super::payload::{Bounds, ChunkRows, Content, ContentRecord, check};
use crate::bug::OrBug;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::ledger::{Fate, Kind, is_refused};
use crate::limits::LIMITS;
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::walk::input::Input;
use crate::walk::stream::{End, Point, Stream, Unit};
use crate::walk::{Advance, Driver, Options};

pub(super) struct Chunked {
    pub(super) bounds: Bounds,
    /// The content of the chunk that is being emitted, or that was last verified.
    pub(super) content: Content,
    /// The chunk of that content.
    pub(super) emitting: Option<Emitting>,
    /// The bytes of the chunk that the records are in.
    chunk: Range<u64>,
    chunks: Vec<Item>,
}

/// What is at an offset.
pub(super) enum Next {
    /// The file's end, or the beginning of padding that the file has not grown around yet.
    End,
    /// Zeros to the file's end.
    Unused,
    /// Zeros up to the next chunk, which end here.
    Padding(u64),
    /// A good chunk, which is now being emitted.
    Chunk(Header),
}

pub(super) type ChunkedScan = Stream<Chunked>;

/// Walks one chunked segment.
pub(super) type ChunkedWalk = Driver<ChunkedScan>;

impl ChunkedScan {
    pub(super) fn from_point(
        source: Arc<dyn Source>,
        options: &Options,
        point: Point<State>,
    ) -> Result<Self> {
        let until = point.state.until;
        let unit = Chunked {
            bounds: Bounds::of(&options.filter),
            content: Content::default(),
            emitting: None,
            chunk: 0..0,
            chunks: Vec::new(),
        };
        let mut scan = Self::new(source, options, point, unit)?;
        if let Until::Part { range, .. } = until {
            scan.input.read_ahead_until(range.until);
        }
        Ok(scan)
    }

    /// The walk of this scan.
    pub(super) const fn into_walk(self) -> ChunkedWalk {
        let is_over = matches!(self.state.until, Until::Here);
        Driver::resume(self, is_over)
    }

    /// The good chunks that the last step finished, as index items.
    pub(super) fn chunks(&self) -> &[Item] {
        &self.unit.chunks
    }

    /// Examines `at`. The last good chunk ended with the message offset `end`.
    pub(super) fn examine(&mut self, at: u64, end: u64) -> Result<Judged<Next>> {
        let len = self.input.len();
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
                let data_end = self.input.data_end()?;
                judge::unused(at, data_end).map(|()| Next::Unused)
            }
            Head::Bad(fault) => Err(fault),
            Head::Sound(header) => {
                // The content that is buffered becomes this chunk's.
                self.unit.emitting = None;
                let payload = check(&mut self.input, &header, at, &mut self.unit.content)?;
                judge::verdict(header, payload, end).map(|()| {
                    self.unit.emitting = Some(Emitting {
                        position: at,
                        header,
                        done: 0,
                        skipped: 0,
                        next: 0,
                    });
                    Next::Chunk(header)
                })
            }
        })
    }

    /// Reads the header at `at`.
    fn head(&mut self, at: u64) -> Result<Head> {
        let len = self.input.len();
        let left = saturating_usize(len - at);
        let bytes = self.input.load(at, left.min(HEADER_BYTES))?;
        Ok(structure(at, bytes, len))
    }

    fn examine_padding(&mut self, at: u64, end: u64) -> Result<Judged<Next>> {
        if self.input.is_growing() && end < align(at) {
            return Ok(Ok(Next::End));
        }
        let len = saturating_usize(end - at);
        let bytes = Cursor::new(self.input.load(at, len)?).run_up_to(len);
        Ok(judge::padding(at, bytes).map(|()| Next::Padding(end)))
    }

    /// Whether the walk ends after the wanted offsets, and the file has more.
    fn ends_early(&self) -> bool {
        matches!(self.state.until, Until::Filter) && self.at() < self.input.len()
    }

    /// Whether such a walk ends here: after what is wanted, and not in doubt.
    fn is_past(&mut self) -> Result<bool> {
        let at = self.at();
        if !self.ends_early() || self.state.fate.is_some() || !at.is_multiple_of(ALIGNMENT) {
            return Ok(false);
        }
        match self.head(at)? {
            Head::Sound(header) if self.unit.bounds.is_past(header.start) => {
                let (gap, source) = (Gap::after(header, at), &**self.input.source());
                Ok(gap.hop(source, || self.input.data_end())?.confirms())
            }
            _ => Ok(false),
        }
    }

    /// Whether the part ends here, where the next one begins.
    fn is_past_part(&self) -> bool {
        let at = self.at();
        matches!(self.state.until, Until::Part { range, follows_good: true }
            if at.is_multiple_of(ALIGNMENT) && (range.until..self.input.len()).contains(&at))
    }

    /// Records, for a part, whether the last chunk before the scan's offset is good.
    const fn follow(&mut self, good: bool) {
        if let Until::Part { follows_good, .. } = &mut self.state.until {
            *follows_good = good;
        }
    }

    /// Checks damage here. Only files without damage that must be searched are split into parts.
    fn check_part(&mut self, fault: Fault) -> Result<()> {
        let at = self.at();
        // After a good chunk, padding can be damaged.
        if at.is_multiple_of(ALIGNMENT) {
            self.follow(false);
        }
        let is_known = matches!(fault.extent(at, self.input.len()), Extent::Known(_));
        if !is_known && matches!(self.state.until, Until::Part { .. }) {
            return Err(self.changed());
        }
        Ok(())
    }

    /// Emits the next records of the current chunk.
    fn emit(&mut self) -> Result<()> {
        let Some(emitting) = &mut self.unit.emitting else {
            return Err(self.changed());
        };
        if emitting.done < self.state.emitted {
            emitting.skipped = self.state.emitted;
        }
        emitting.next(
            &self.input,
            &self.unit.bounds,
            &self.unit.content,
            &mut self.records,
        )?;
        let (position, header, done) = (emitting.position, emitting.header, emitting.done);
        self.unit.chunk = position..header.payload_end(position);
        if !emitting.is_done() {
            self.state.emitted = done;
            return Ok(());
        }
        self.unit.emitting = None;
        self.state.emitted = 0;
        self.state.end = header.end();
        self.state.fate = None;
        self.follow(true);
        self.cover(self.unit.chunk.end, Kind::Chunk, None);
        self.unit.chunks.extend(Item::of(&header, position));
        Ok(())
    }

    /// Goes on by a chunk, some of its records, padding, or damage.
    fn next(&mut self) -> Result<Advance> {
        let at = self.at();
        let growing = self.input.is_growing();
        if self.is_past_part() {
            return Ok(Advance::End);
        }
        if let Some(emitting) = &self.unit.emitting
            && emitting.position == at
        {
            // Checked before: on the way to it, or in an earlier step.
            if self.unit.bounds.is_past(emitting.header.start) {
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
            Err(fault) => {
                self.check_part(fault)?;
                return self.damage(&fault);
            }
        };
        Ok(match found {
            Next::End | Next::Unused if growing && !self.ends_early() => Advance::Wait,
            Next::End => Advance::End,
            Next::Unused => {
                self.cover(self.input.len(), Kind::Unused, None);
                Advance::End
            }
            Next::Padding(end) => {
                self.cover(end, Kind::Padding, None);
                Advance::On
            }
            Next::Chunk(header) if self.unit.bounds.is_past(header.start) => Advance::End,
            Next::Chunk(_) => {
                self.emit()?;
                Advance::On
            }
        })
    }
}

impl Unit for Chunked {
    type State = State;
    type Record = ContentRecord;
    type Fault = Fault;
    type Rows<'a> = ChunkRows<'a>;

    const FILE: &'static str = "a chunked segment";
    const NAME: &'static str = "chunk";
    const CHECKED: Checked = FORMAT.spec.checked;

    fn advance(scan: &mut ChunkedScan) -> Result<Advance> {
        let advance = scan.next()?;
        if advance == Advance::End && matches!(scan.state.until, Until::Part { .. }) {
            scan.state.until = Until::Here;
        }
        // No search before this is made any more.
        if scan.state.twice_until <= scan.at() {
            scan.state.twice_until = 0;
        }
        Ok(advance)
    }

    fn end(scan: &mut ChunkedScan, fault: &Fault) -> Result<End> {
        let at = scan.at();
        let extent = fault.extent(at, scan.input.len());
        let is_known = matches!(extent, Extent::Known(_));
        let before = scan.state.twice_until;
        let end = match scan.reach(at, extent)? {
            // A refused chunk that verifies is corrupt, whatever follows.
            End::Followed(end) if !is_known || !is_refused(fault.cause()) => end,
            end => return Ok(end),
        };
        let fate = match scan.state.fate {
            Some(fate) => fate,
            None => scan.look_ahead(end)?,
        };
        if fate == Fate::Corrupt || !scan.input.is_growing() {
            scan.state.fate = Some(fate);
        } else {
            scan.state.twice_until = before;
        }
        Ok(match fate {
            Fate::Corrupt => End::Followed(end),
            fate => End::Last(end, fate),
        })
    }

    fn begin_step(&mut self) -> Result<()> {
        self.chunks.clear();
        Ok(())
    }

    fn rows(scan: &ChunkedScan) -> ChunkRows<'_> {
        ChunkRows {
            chunk: &scan.unit.chunk,
            content: &scan.unit.content.bytes,
            records: &scan.records,
        }
    }
}

/// What a [`Carry`](crate::walk::Carry) has of a chunked segment. Its offset is that of what comes next: a chunk if it is aligned, else
/// padding.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The message offset after the last record of the last good chunk.
    pub(super) end: u64,
    /// How many records of the next chunk were emitted or skipped.
    pub(super) emitted: u64,
    /// Whether any header's CRC matched.
    pub(super) verified: bool,
    /// The fate of damage up to the next good chunk, if it is known.
    pub(super) fate: Option<Fate>,
    /// Before this offset each search is made twice, the first time to decide the fate of damage. It is charged
    /// twice.
    pub(super) twice_until: u64,
    /// Where the walk ends.
    pub(super) until: Until,
}

/// Where a walk ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Until {
    /// With the file.
    #[default]
    End,
    /// At the first header after the wanted offsets, unless damage makes it doubtful.
    Filter,
    /// With the part. The next part begins after its end if the last chunk before that was good.
    Part {
        range: ChunkRange,
        follows_good: bool,
    },
    /// Here, for a part. It may begin before the part's end, if nothing in it is its own or matches the filter.
    Here,
}

/// A verified chunk, whose content is in the buffer and whose records are being emitted.
pub(super) struct Emitting {
    pub(super) position: u64,
    pub(super) header: Header,
    /// How many of its records are done.
    pub(super) done: u64,
    /// How many were done when this began. They are skipped.
    skipped: u64,
    /// Where the next record begins in the buffered content.
    next: usize,
}

impl Emitting {
    /// Whether all records are done.
    const fn is_done(&self) -> bool {
        self.done >= self.header.records as u64
    }

    /// Makes `rows` the next records that match the filter, as positions in `content`. Empty if there are no more.
    fn next(
        &mut self,
        input: &Input,
        bounds: &Bounds,
        content: &Content,
        rows: &mut Vec<ContentRecord>,
    ) -> Result<()> {
        rows.clear();
        if !bounds.overlaps(self.header.start, self.header.end()) {
            self.done = self.header.records.into();
        }
        // The total length of this step's bodies.
        let mut bytes = 0;
        while rows.len() < LIMITS.chunked_step_rows && !self.is_done() {
            let header = content.bytes.get(self.next..).and_then(<[u8]>::first_chunk);
            let header = header.or_bug("as many records as were counted")?;
            let (timestamp, parsed) = decode_record(header);
            let number = saturating_usize(self.done);
            let len = content.lengths.get(number).copied().unwrap_or(parsed);
            let offset = self.header.start.saturating_add_unsigned(self.done);
            let wanted = self.done >= self.skipped && bounds.contains(offset, timestamp);
            let start = self.next + RECORD_HEADER_BYTES;
            let mut taken = 0;
            if wanted && input.options.values {
                let needed = u64::from(len) + RECORD_HEADER_BYTES as u64;
                let most = input.options.record_bytes;
                taken = saturating_usize(len);
                bytes += taken;
                // Left to the next step.
                if !rows.is_empty() && (needed > most || bytes > LIMITS.chunked_step_bytes) {
                    return Ok(());
                }
                if needed > most {
                    let what = format!(
                        "the record of message offset {offset} in the chunk at offset {}",
                        self.position
                    );
                    return Err(Error::record_too_large(input.path(), what, needed, most));
                }
            }
            self.next = start.saturating_add(saturating_usize(len));
            if wanted {
                rows.push(ContentRecord {
                    offset,
                    timestamp,
                    start,
                    len: taken,
                });
            }
            self.done += 1;
        }
        Ok(())
    }
}
