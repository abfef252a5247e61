//! Finds where a segment that may grow ends, by its headers and few of its payloads.

use std::collections::VecDeque;
use std::sync::Arc;

use super::hop::{Gap, Hop};
use super::layout::align;
use super::part::POLL_HEADERS;
use super::state::{Own, State, Until};
use super::walk::{ChunkedScan, Next};
use crate::error::Result;
use crate::source::Source;
use crate::walk::Options;

/// How many chunks are verified to find a sound one. The last one may be unfinished in a preallocated file.
const TRIED: usize = 4;

impl ChunkedScan {
    /// A scan that begins with the last sound chunk that has records, as far as headers lead to it from this state on. `None` if none of
    /// the last few is sound.
    ///
    /// It ends where a scan from the state would, in the same state: a header is believed whatever its payload is (rule 27), and these
    /// ascend. So each chunk on the way begins after all good ones before it, nothing is searched for, and a sound chunk ends the damage
    /// before it.
    pub(super) fn at_last_sound(
        source: &Arc<dyn Source>,
        options: &Options,
        state: &State,
    ) -> Result<Option<Self>> {
        if state.own.until != Until::End || state.own.emitted > 0 || state.pending.is_some() {
            return Ok(None);
        }
        for gap in last_gaps(&**source, options, state)?.into_iter().rev() {
            let state = State {
                at: gap.at,
                own: Own {
                    end: gap.end,
                    ..state.own.clone()
                },
                ..state.clone()
            };
            let mut scan = Self::from_state(source.clone(), options, state)?;
            if matches!(scan.examine(gap.at, gap.end)?, Ok(Next::Chunk(_))) {
                return Ok(Some(scan));
            }
        }
        Ok(None)
    }
}

/// The gaps before the last chunks that headers lead to. Only chunks that state records are among them: with a sound one, it is
/// certain that there is a record.
fn last_gaps(source: &dyn Source, options: &Options, state: &State) -> Result<VecDeque<Gap>> {
    let mut last = VecDeque::with_capacity(TRIED);
    let mut gap = Gap {
        at: align(state.at),
        end: state.own.end,
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
