//! Where a walk begins: at the first entry, at a message, or where another walk was.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::block::Name;
use super::front::{COUNT_BYTES, Front};
use super::give::Open;
use super::layout::{self, Layout};
use super::marks::Marks;
use super::part::Progress;
use super::partitions::{Gap, Part};
use super::ranges::{self, Ranges};
use super::toc::TOC_START;
use super::walk::{TenantScan, TenantWalk};
use crate::engine::{Budget, Carry, Options};
use crate::error::{Error, Result};
use crate::source::Source;

/// What a [`Carry`] holds, with the notes of a gap and the marks, which are many in hostile files alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State<G, M> {
    /// Where the next entry begins in the table of contents, and how many are left from there on.
    entry: u64,
    left: u64,
    /// The partition of the entry in front of it.
    before: Option<u32>,
    /// Where the last good block (version 1: partition) ends. Before the first it is where the number of partitions does, if
    /// that is known.
    end: Option<u64>,
    /// The last good block's partition, and where its tenant ID stands.
    last: Option<(u32, u64, u32)>,
    budget: Budget,
    limited: bool,
    open: Option<Open>,
    part: Option<Part>,
    gap: G,
    layout: layout::Saved,
    ranges: ranges::Saved,
    marks: M,
    /// Where the first wanted message begins, for a walk that began there.
    from: Option<u64>,
    partial: bool,
    /// It goes only to the blocks that are wanted.
    #[serde(default)]
    direct: bool,
    /// How many messages were given out, and how many are not given out again, by a walk that did so.
    #[serde(default)]
    given: u64,
    #[serde(default)]
    skip: u64,
    ended: bool,
    portion: Option<Progress>,
}

impl<G, M> State<G, M> {
    /// Whether all offsets are within a file of `len` bytes.
    fn fits(&self, len: u64) -> bool {
        let within = |start: u64, end: u64| start <= end && end <= len;
        let open = self
            .open
            .as_ref()
            .is_none_or(|open| within(open.at, open.position) && within(open.position, open.end));
        let part = self.part.as_ref();
        let part = part.is_none_or(|part| within(part.at, part.end));
        let last = self
            .last
            .is_none_or(|(_, at, len)| within(at, at.saturating_add(len.into())));
        // The number of partitions may be cut off.
        let end = self.end.unwrap_or_default() <= len.saturating_add(COUNT_BYTES);
        // So may the fields in front of the first entry.
        open && part && last && end && self.entry <= len.max(TOC_START)
    }
}

impl TenantScan {
    /// A walk from the message at `offset` on: its block is found by the table of contents.
    pub(super) fn from_message(
        source: Arc<dyn Source>,
        options: &Options,
        front: Arc<Front>,
        offset: u64,
    ) -> Result<Self> {
        let mut entries = front.begin(options);
        let mut before = None;
        loop {
            let (at, left) = (entries.at, entries.left);
            let Some(entry) = entries.next(&*source)? else {
                return Err(no_message(offset));
            };
            let names_it = (entry.offset..entry.block_end()).contains(&offset);
            if names_it && front.in_bounds(entry.offset) {
                let mut walk = Self::at(source, options, front, at, Some(left));
                walk.before = before;
                walk.end = Some(entry.offset);
                walk.layout = Layout::new(entry.offset, walk.front.len);
                walk.ranges = Ranges::new(&walk.front, entry.offset, 0);
                walk.from = Some(offset);
                walk.partial = true;
                return Ok(walk);
            }
            before = Some(entry.partition);
        }
    }

    pub(super) fn resume(
        source: Arc<dyn Source>,
        options: &Options,
        front: Arc<Front>,
        carry: &Carry,
    ) -> Result<TenantWalk> {
        let state: State<Gap, Marks> = serde_json::from_str(&carry.0).map_err(|error| {
            Error::Usage(format!(
                "this is not a point from which a tenant segment can be read on: {error}"
            ))
        })?;
        if !state.fits(front.len) {
            return Err(Error::Usage(format!(
                "this is not a point in a file of {} bytes from which can be read on",
                front.len
            )));
        }
        let mut walk = Self::at(source, options, front, state.entry, Some(state.left));
        let front_end = if state.partial { 0 } else { walk.front.end() };
        walk.before = state.before;
        walk.end = state.end;
        walk.last = match state.last {
            Some((partition, at, len)) => Some((partition, Name::read(&*walk.source, at, len)?)),
            None => None,
        };
        walk.probe.budget = state.budget;
        walk.limited = state.limited;
        walk.open = state.open;
        walk.part = state.part;
        walk.gap = state.gap;
        walk.layout = Layout::restore(state.layout, walk.front.len);
        walk.ranges = Ranges::restore(&walk.front, state.ranges, state.marks, front_end);
        walk.from = state.from;
        walk.partial = state.partial;
        walk.direct = state.direct;
        (walk.given, walk.skip) = (state.given, state.skip);
        walk.resume_part(state.portion)?;
        Ok(TenantWalk::resume(walk, state.ended))
    }

    /// Where another walk would go on.
    pub(super) fn to_carry(&self, ended: bool) -> Carry {
        let (entry, left) = match &self.next {
            Some(entry) => (entry.at, self.entries.left + 1),
            None => (self.entries.at, self.entries.left),
        };
        let last = self.last.as_ref();
        let state = State {
            entry,
            left,
            before: self.before,
            end: self.end,
            last: last.map(|(partition, name)| (*partition, name.at, name.len)),
            budget: self.probe.budget,
            limited: self.limited,
            open: self.open.clone(),
            part: self.part.clone(),
            gap: &self.gap,
            layout: self.layout.save(),
            ranges: self.ranges.save(),
            marks: self.ranges.marks(),
            from: self.from,
            partial: self.partial,
            direct: self.direct,
            given: self.given,
            skip: self.skip,
            ended,
            portion: self.progress(),
        };
        // Numbers and causes always have a JSON form; marks that cannot be read back have none.
        Carry(serde_json::to_string(&state).unwrap_or_default())
    }
}

/// The error of a start that is none.
pub(super) fn no_message(offset: u64) -> Error {
    Error::Usage(format!(
        "no message begins at offset {offset}: start at a position that reading has given"
    ))
}
