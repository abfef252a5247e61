//! Where a walk begins: at the first entry, where another walk was, or at a message in the middle.

use std::sync::Arc;

use super::front::Front;
use super::reader::Reader;
use super::walk::{SealedWalk, State};
use crate::error::{Error, Result};
use crate::format::{Carry, Options, Start, Step, Walk, Wanted};
use crate::source::Source;

impl State {
    /// In front of entry number `next`, whose message begins at `end` or behind it.
    pub(super) fn before(front: &Front, next: u64, end: u64) -> Self {
        Self {
            size: front.len,
            entries: front.entries,
            from: next,
            next,
            last: None,
            end,
            counted: next > 0,
            spent: 0,
            tried: None,
            failed: Default::default(),
            marks: Default::default(),
            ended: false,
        }
    }

    /// Where a walk of this file begins.
    pub(super) fn at(
        source: &Arc<dyn Source>,
        front: &Front,
        options: &Options,
        start: Start<'_>,
    ) -> Result<Self> {
        match start {
            Start::Beginning => Ok(Self::before(front, 0, front.data_start)),
            Start::Offset(offset) => match find_entry(source, front, options, offset)? {
                Some(number) if front.in_bounds(offset) => Ok(Self::before(front, number, offset)),
                _ => Self::at_moved(source, front, options, offset),
            },
            Start::Carry(Carry(json)) => {
                let state: Self = serde_json::from_str(json).map_err(|error| {
                    Error::Usage(format!(
                        "this is not a point from which a sealed segment can be read on: {error}"
                    ))
                })?;
                if state.fits(front) {
                    return Ok(state);
                }
                Err(Error::Usage(format!(
                    "this is a point in another file: it had {} bytes and {} messages, this one has {} and {}",
                    state.size, state.entries, front.len, front.entries
                )))
            }
        }
    }

    fn fits(&self, front: &Front) -> bool {
        let is_in_front = self.size == front.len
            && self.entries == front.entries
            && self.from <= self.next
            && self.next <= front.entries
            && front.data_start <= self.end
            && self.end <= front.data_end;
        is_in_front
            && self.marks.lie_within(self.from, self.next)
            && self.failed.lie_within(self.from, self.next)
    }

    /// In front of the message at `offset`, though no entry says that it is there.
    fn at_moved(
        source: &Arc<dyn Source>,
        front: &Front,
        options: &Options,
        offset: u64,
    ) -> Result<Self> {
        let lenient = Options {
            strict: false,
            values: false,
            wanted: Wanted::default(),
            ..options.clone()
        };
        let state = Self::before(front, 0, front.data_start);
        let mut walk = SealedWalk::new(source.clone(), &lenient, *front, state);
        while walk.step()? == Step::More {
            let found = walk
                .messages
                .iter()
                .find(|message| message.position == offset);
            if let Some(message) = found {
                return Ok(Self::before(front, message.number, offset));
            }
        }
        Err(Error::Usage(format!(
            "cannot start at offset {offset}: no message of this file begins there"
        )))
    }
}

/// The number of the first entry that points at `offset`.
fn find_entry(
    source: &Arc<dyn Source>,
    front: &Front,
    options: &Options,
    offset: u64,
) -> Result<Option<u64>> {
    let mut reader = Reader::sequential(source.clone(), options);
    for number in 0..front.entries {
        if number % super::check::POLL_EVERY == 0 {
            options.poll()?;
        }
        if reader.entry(number, front.entries)?.offset == offset {
            return Ok(Some(number));
        }
    }
    Ok(None)
}
