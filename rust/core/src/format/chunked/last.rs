//! Finds where a segment that may grow ends, by its headers and few of its payloads.

use std::collections::VecDeque;
use std::sync::Arc;

use super::hop::{Gap, Hop};
use super::layout::align;
use super::part::POLL_HEADERS;
use super::state::{State, Until};
use super::walk::{ChunkedScan, Next};
use crate::error::Result;
use crate::source::Source;
use crate::walk::Options;
use crate::walk::stream::Point;

/// How many chunks are verified to find a sound one. The last one may be unfinished in a preallocated file.
const TRIED: usize = 4;

impl ChunkedScan {
    /// A scan that begins with the last sound chunk that has records, as far as headers lead to it from this point on. `None` if none of
    /// the last few is sound.
    ///
    /// It ends where a scan from the point would, in the same state: a header is believed whatever its payload is (rule 27), and these
    /// ascend. So each chunk on the way begins after all good ones before it, nothing is searched for, and a sound chunk ends the damage
    /// before it.
    pub(super) fn at_last_sound(
        source: &Arc<dyn Source>,
        options: &Options,
        point: &Point<State>,
    ) -> Result<Option<Self>> {
        if point.own.until != Until::End || point.own.emitted > 0 || point.pending.is_some() {
            return Ok(None);
        }
        for gap in last_gaps(&**source, options, point)?.into_iter().rev() {
            let point = Point {
                at: gap.at,
                own: State {
                    end: gap.end,
                    ..point.own.clone()
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
        end: point.own.end,
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
