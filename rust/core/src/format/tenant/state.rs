//! The state that a walk is resumed from.

use serde::{Deserialize, Serialize};

use super::emit::Open;
use super::front::COUNT_BYTES;
use super::partitions::Part;
use super::ranges;
use super::reading::Reach;
use super::toc::TOC_START;
use crate::engine::{Budget, Carry};
use crate::error::{Error, Result};

/// The state in a [`Carry`], with the course of the walk and the marks, which are large only in hostile files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State<C, M> {
    /// Where the next entry begins in the table of contents, and how many are left from there on.
    pub(super) entry: u64,
    pub(super) left: u64,
    /// The partition of the entry before it.
    pub(super) before: Option<u32>,
    /// Where the last good block (version 1: partition) ends. Before the first: where the number of partitions
    /// ends, if known.
    pub(super) end: Option<u64>,
    /// The last good block's partition, and the offset and length of its tenant ID.
    pub(super) last: Option<(u32, u64, u32)>,
    pub(super) budget: Budget,
    /// The most bytes that were, or would have been, hashed in vain.
    pub(super) peak: u64,
    pub(super) limited: bool,
    pub(super) open: Option<Open>,
    pub(super) part: Option<Part>,
    pub(super) course: C,
    pub(super) ranges: ranges::Saved,
    pub(super) marks: M,
    /// Where the first message begins, for a walk that began there.
    pub(super) from: Option<u64>,
    pub(super) partial: bool,
    /// Whether it reads only the blocks that match.
    pub(super) reach: Reach,
    /// How many messages were emitted, and how many of them are skipped, if the walk began again.
    #[serde(default)]
    pub(super) emitted: u64,
    #[serde(default)]
    pub(super) skip: u64,
    pub(super) ended: bool,
}

impl<C, M> State<C, M> {
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
        let end = self
            .end
            .is_none_or(|end| end <= len.saturating_add(COUNT_BYTES));
        // So may the fields before the first entry.
        open && part && last && end && self.entry <= len.max(TOC_START)
    }
}

impl<C: for<'a> Deserialize<'a>, M: for<'a> Deserialize<'a>> State<C, M> {
    /// The state in a carry, for a file of `len` bytes.
    pub(super) fn of_carry(carry: &Carry, len: u64) -> Result<Self> {
        let state: Self = carry.state("a tenant segment")?;
        match state.fits(len) {
            true => Ok(state),
            false => Err(no_such_point(len)),
        }
    }
}

/// The error for a carry of another file.
pub(super) fn no_such_point(len: u64) -> Error {
    Error::Usage(format!(
        "this carry is not of a file of {len} bytes: give the same file as before"
    ))
}
