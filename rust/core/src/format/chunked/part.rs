//! Parts of a segment: stretches of chunks.
//!
//! Only of a segment whose headers all check and ascend, from the first chunk to the end or to unused space. Then nothing is ever
//! searched for, a chunk is good or not whatever is in front of it, and damage in front of a good chunk cannot be of one piece
//! with what is behind it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::hop::{self, Gap, Hop};
use super::judge::Extent;
use super::layout::{ALIGNMENT, align};
use super::state::State;
use super::walk::{ChunkedScan, Found};
use crate::engine::Options;
use crate::engine::part::{self, another_file};
use crate::error::{Error, Result};
use crate::source::{Source, data_end};

/// How many headers are read between two looks at whether to stop.
const POLL_HEADERS: u64 = 1 << 10;

/// A stretch of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Portion {
    /// Where the chunk in front of it begins; 0 for the first part.
    before: u64,
    /// Where its first chunk begins, and the message offset that its header has, so that a part of another file is refused.
    from: u64,
    start: i64,
    /// Where its last chunk begins.
    last: u64,
    /// Where the first chunk behind it begins, or the end of the file.
    pub(super) until: u64,
}

/// Splits a segment. Reads each chunk's header, and zeros at the end.
pub(super) fn split(
    source: &Arc<dyn Source>,
    options: &Options,
    target: u64,
) -> Result<Vec<part::Portion>> {
    let len = source.len();
    let (mut portions, mut gap) = (Vec::<Portion>::new(), Gap::default());
    let (mut before, mut polled) = (0, 0_u64);
    while gap.at < len {
        if polled.is_multiple_of(POLL_HEADERS) {
            options.poll()?;
        }
        polled += 1;
        let header = match gap.hop(&**source, || data_end(&**source, || options.poll()))? {
            Hop::Chunk(header) => header,
            Hop::End => break,
            Hop::Fault(_) => return Ok(Vec::new()),
        };
        let (at, next) = (gap.at, Gap::behind(header, gap.at));
        if portions
            .last()
            .is_none_or(|last| next.at - last.from > target)
        {
            if let Some(last) = portions.last_mut() {
                last.until = at;
            }
            portions.push(Portion {
                before,
                from: at,
                start: header.start,
                last: at,
                until: len,
            });
        }
        if let Some(own) = portions.last_mut() {
            own.last = at;
        }
        (before, gap) = (at, next);
    }
    let portions = portions.into_iter();
    Ok(portions
        .map(|portion| part::Portion::new(portion.until - portion.from, portion))
        .collect())
}

impl ChunkedScan {
    /// At the beginning of a part: behind the first good one of its chunks, or the one in front of them.
    pub(super) fn in_part(
        source: Arc<dyn Source>,
        options: &Options,
        portion: Portion,
    ) -> Result<Self> {
        let state = State {
            at: portion.from,
            portion: Some(portion),
            ..State::default()
        };
        let mut walk = Self::from_state(source.clone(), options, state)?;
        let header = hop::read(&*source, portion.from)?.believed();
        let is_there = header.is_some_and(|header| header.start == portion.start);
        let is_aligned = portion.from.is_multiple_of(ALIGNMENT)
            && portion.before.is_multiple_of(ALIGNMENT)
            && portion.before <= portion.from
            && portion.last.is_multiple_of(ALIGNMENT)
            && (portion.from..source.len()).contains(&portion.last);
        if !is_there || !is_aligned {
            return Err(another_file(source.path()));
        }
        let unwanted = walk.last_unwanted(&portion)?;
        if portion.from == 0 && unwanted.is_none() {
            walk.state.is_over = walk.is_unwanted(&portion)?;
            return Ok(walk);
        }
        let mut at = unwanted.unwrap_or(portion.before);
        while at < portion.until {
            options.poll()?;
            let (end, good) = match walk.examine(at, 0)? {
                Found::Chunk(header) => (header.payload_end(at), Some(header)),
                Found::Damage(fault) => match fault.extent(at, source.len()) {
                    Extent::Known(end) => (end, None),
                    Extent::Tail | Extent::Search(_) => return Err(another_file(source.path())),
                },
                Found::Unused | Found::End => break,
                Found::Padding(_) | Found::Growing => return Err(another_file(source.path())),
            };
            at = align(end);
            if let Some(header) = good.filter(|_| at < portion.until) {
                let filter = walk.filter.clone();
                let state = State {
                    at,
                    end: header.end(),
                    checked: true,
                    portion: Some(portion),
                    stands: true,
                    ..State::default()
                };
                let mut walk = Self::from_state(source, options, state)?;
                // The walk of the whole has ended in front of it.
                walk.state.is_over = filter.is_past(header.start) || walk.is_unwanted(&portion)?;
                return Ok(walk);
            }
        }
        // The part before goes on through all of it.
        walk.state.is_over = true;
        Ok(walk)
    }

    /// Whether only what is wanted is to be read, and the headers say that nothing in this part is.
    fn is_unwanted(&mut self, portion: &Portion) -> Result<bool> {
        if !self.input.options.prune {
            return Ok(false);
        }
        let source = self.input.source.clone();
        let Some(first) = hop::read(&*source, self.state.at)?.believed() else {
            return Ok(false);
        };
        if self.filter.is_past(first.start) {
            return Ok(true);
        }
        let last = hop::read(&*source, portion.last)?.believed();
        if last.is_none_or(|last| last.end() > self.filter.offsets.start) {
            return Ok(false);
        }
        // Where the last one is damaged, the part goes on behind it.
        let stands = matches!(self.examine(portion.last, 0)?, Found::Chunk(_));
        self.giving = None;
        Ok(stands)
    }

    /// The last good chunk of a part in front of those that can be wanted, as far as the rest need not be read.
    fn last_unwanted(&mut self, portion: &Portion) -> Result<Option<u64>> {
        let first = self.filter.offsets.start;
        let (mut gap, mut last) = (
            Gap {
                at: portion.from,
                end: 0,
            },
            None,
        );
        while self.input.options.prune && gap.at < portion.until {
            self.input.options.poll()?;
            // Zeros end it, unused or not.
            match gap.hop(&*self.input.source, || Ok(u64::MAX))? {
                Hop::Chunk(header) if header.end() <= first => {
                    last = Some(gap.at);
                    gap = Gap::behind(header, gap.at);
                }
                Hop::Chunk(_) | Hop::End | Hop::Fault(_) => break,
            }
        }
        let Some(last) = last else { return Ok(None) };
        let is_good = matches!(self.examine(last, 0)?, Found::Chunk(_));
        Ok(is_good.then_some(last))
    }

    /// Whether the part ends here: the next one begins.
    pub(super) fn is_behind_part(&self) -> bool {
        let State {
            at,
            portion,
            stands,
            ..
        } = self.state;
        stands
            && at.is_multiple_of(ALIGNMENT)
            && portion.is_some_and(|portion| at >= portion.until)
            && at < self.input.source.len()
    }

    /// Damage was met at `at`. A file with parts has none whose end has to be searched for.
    pub(super) fn check_part(&mut self, at: u64, extent: Extent) -> Result<()> {
        // Behind a good chunk, padding can be damaged.
        if at.is_multiple_of(ALIGNMENT) {
            self.state.stands = false;
        }
        match extent {
            Extent::Known(_) => Ok(()),
            Extent::Tail | Extent::Search(_) if self.state.portion.is_none() => Ok(()),
            Extent::Tail | Extent::Search(_) => Err(self.changed(at)),
        }
    }

    fn changed(&self, at: u64) -> Error {
        Error::changed(
            self.input.source.path(),
            &format!("the chunk at offset {at}"),
        )
    }
}
