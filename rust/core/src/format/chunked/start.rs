//! Where a walk begins: at the beginning, at an offset, where another one stopped, after what is known, in a part, or
//! at the last sound chunk, to find where a segment that may grow ends.

use std::collections::VecDeque;
use std::sync::Arc;

use super::hop::{ChunkRange, Gap, Hop, POLL_HEADERS};
use super::judge::Extent;
use super::layout::{ALIGNMENT, align};
use super::walk::{Chunked, ChunkedScan, Next, State, Until};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::walk::part::another_file;
use crate::walk::stream::{Point, Unit};
use crate::walk::{Begin, Opening, Options, Purpose};

/// How many chunks are verified to find a sound one. The last one may be unfinished in a preallocated file.
const TRIED: usize = 4;

impl ChunkedScan {
    pub(super) fn open<'a>(
        source: Arc<dyn Source>,
        options: &Options,
        opening: impl Into<Opening<'a>>,
    ) -> Result<Self> {
        let Opening { begin, purpose, .. } = opening.into();
        let point = match begin {
            Begin::Part(part) => return Self::in_part(source, options, part.plan()?),
            Begin::Offset(offset) if !offset.is_multiple_of(ALIGNMENT) => {
                return Err(Error::Usage(format!(
                    "no chunk begins at offset {offset}: chunks begin at multiples of {ALIGNMENT}"
                )));
            }
            begin => Point::of(begin, Chunked::FILE, State::default())?,
        };
        if purpose == Purpose::End
            && let Some(scan) = Self::at_last_sound(&source, options, &point)?
        {
            return Ok(scan);
        }
        Self::from_point(source, options, point)
    }

    /// A walk after a gap whose chunk before it is good.
    pub(super) fn after_gap(
        source: Arc<dyn Source>,
        options: &Options,
        Gap { at, end }: Gap,
    ) -> Result<Self> {
        let state = State {
            end,
            verified: at > 0,
            ..State::default()
        };
        Self::from_point(source, options, Point::new(at, state))
    }

    /// The state at the beginning of a part: after the first good chunk, of the part's and the one before them.
    fn in_part(source: Arc<dyn Source>, options: &Options, range: ChunkRange) -> Result<Self> {
        let until = |follows_good| Until::Part {
            range,
            follows_good,
        };
        let state = State {
            until: until(false),
            ..State::default()
        };
        let mut walk = Self::from_point(source.clone(), options, Point::new(range.from, state))?;
        if !range.is_of(&*source)? {
            return Err(another_file(source.path()));
        }
        let to_skip = walk.last_unmatched(&*source, &range)?;
        let mut at = match to_skip {
            None if range.from == 0 => return Ok(walk),
            None => range.before,
            Some(at) => at,
        };
        while at < range.until {
            options.poll()?;
            let (end, good) = match walk.examine(at, 0)? {
                Ok(Next::Chunk(header)) => (header.payload_end(at), Some(header)),
                Err(fault) => match fault.extent(at, source.len()) {
                    Extent::Known(end) => (end, None),
                    Extent::Tail | Extent::Search(_) => return Err(another_file(source.path())),
                },
                Ok(Next::Unused | Next::End) => break,
                Ok(Next::Padding(_)) => return Err(another_file(source.path())),
            };
            at = align(end);
            if let Some(header) = good.filter(|_| at < range.until) {
                let bounds = walk.unit.bounds.clone();
                let state = State {
                    end: header.end(),
                    verified: true,
                    until: until(true),
                    ..State::default()
                };
                let mut walk = Self::from_point(source, options, Point::new(at, state))?;
                // The walk of the whole file has ended before this.
                if bounds.is_past(header.start) {
                    walk.state.until = Until::Here;
                }
                return Ok(walk);
            }
        }
        // The part before covers all of this one.
        walk.state.until = Until::Here;
        Ok(walk)
    }

    /// The last good chunk of a part before the ones that may match, as far as the headers show.
    fn last_unmatched(&mut self, source: &dyn Source, range: &ChunkRange) -> Result<Option<u64>> {
        let first = self.unit.bounds.offsets.start;
        let at = range.from;
        let (mut gap, mut last) = (Gap { at, end: 0 }, None);
        while self.input.options.prunes() && gap.at < range.until {
            self.input.options.poll()?;
            // Zeros end it, unused or not.
            match gap.hop(source, || Ok(u64::MAX))? {
                Hop::Chunk(header) if header.end() <= first => {
                    last = Some(gap.at);
                    gap = Gap::after(header, gap.at);
                }
                Hop::Chunk(_) | Hop::End | Hop::Fault(_) => break,
            }
        }
        let Some(last) = last else { return Ok(None) };
        let is_good = matches!(self.examine(last, 0)?, Ok(Next::Chunk(_)));
        Ok(is_good.then_some(last))
    }

    /// A scan that begins with the last sound chunk that has records, as far as headers lead to it from this point on. `None` if none of
    /// the last few is sound.
    ///
    /// It ends where a scan from the point would, in the same state: a header is believed whatever its payload is (rule 27), and these
    /// ascend. So each chunk on the way begins after all good ones before it, nothing is searched for, and a sound chunk ends the damage
    /// before it.
    fn at_last_sound(
        source: &Arc<dyn Source>,
        options: &Options,
        point: &Point<State>,
    ) -> Result<Option<Self>> {
        if point.state.until != Until::End || point.state.emitted > 0 || point.pending.is_some() {
            return Ok(None);
        }
        for gap in last_gaps(&**source, options, point)?.into_iter().rev() {
            let point = Point {
                at: gap.at,
                state: State {
                    end: gap.end,
                    ..point.state.clone()
                },
                ..point.clone()
            };
            let mut scan = Self::from_point(source.clone(), options, point)?;
            if matches!(scan.examine(gap.at, gap.end)?, Ok(Next::Chunk(_))) {
                return Ok(Some(scan));
            }
        }
        Ok(None)
    }
}

/// The gaps before the last chunks that headers lead to. Only chunks that state records are among them: with a sound one, it is
/// certain that there is a record.
fn last_gaps(
    source: &dyn Source,
    options: &Options,
    point: &Point<State>,
) -> Result<VecDeque<Gap>> {
    let mut last = VecDeque::with_capacity(TRIED);
    let mut gap = Gap {
        at: align(point.at),
        end: point.state.end,
    };
    for number in 0_u64.. {
        if number.is_multiple_of(POLL_HEADERS) {
            options.poll()?;
        }
        // Zeros end it, unused or not.
        let Hop::Chunk(header) = gap.hop(source, || Ok(u64::MAX))? else {
            break;
        };
        if header.records > 0 {
            if last.len() == TRIED {
                last.pop_front();
            }
            last.push_back(gap);
        }
        gap = Gap::after(header, gap.at);
    }
    Ok(last)
}
