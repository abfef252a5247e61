//! Parts of a segment: ranges of the table of contents, with their blocks.
//!
//! Only a segment of version 2 with a sound table of contents, whose entries ascend and name adjacent blocks in
//! order, is split. So after a block that is good where its entry says, nothing before it is pending, and the next
//! block is looked for where it would be.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::front::{COUNT_BYTES, Front, Segment};
use super::layout::Shape;
use super::probe::{Hashed, Input, block_crc};
use super::toc::{Entry, TOC_START};
use super::{VERSION_2, judge};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::source::{Source, Window};
use crate::walk::Options;
use crate::walk::part::{self, another_file};

/// A part preferably begins after a block of at most this share of the target size, because that block is checked
/// again.
const SMALL_SHARE: u64 = 8;

/// A range of entries. Each entry is given by its offset in the table, with how many are left from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryRange {
    /// The table's CRC-32, so that a part of another file is refused.
    crc: u32,
    /// The entry before it. `None` for the first part.
    pub(super) before: Option<(u64, u64)>,
    /// The offset of its first entry.
    from: u64,
    /// The offset after its last entry.
    until: u64,
}

/// The progress of a walk of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) range: EntryRange,
    /// The last entry that was passed.
    pub(super) passed: Option<(u64, u64)>,
    /// Whether its block is good where the entry says.
    pub(super) in_place: bool,
    /// Where its entries and its blocks begin.
    pub(super) start: (u64, u64),
}

impl Progress {
    /// Whether the entry at `at` is after those of the part.
    pub(super) const fn is_past(&self, at: u64) -> bool {
        at >= self.range.until
    }
}

/// Whether a file with this front can be split.
fn is_splittable(front: &Front) -> bool {
    front.version == VERSION_2 && front.leads_directly() && !front.is_damaged()
}

/// Splits a segment. Reads the table of contents.
pub(super) fn split(
    source: &Arc<dyn Source>,
    options: &Options,
    target: u64,
) -> Result<Vec<part::PlannedPart>> {
    let segment = Segment::open(source.clone(), options)?;
    let front = &*segment.front;
    if !is_splittable(front) {
        return Ok(Vec::new());
    }
    let target = match front.toc_end {
        Some(table) if table > LIMITS.short_toc_bytes => {
            target.max(table.saturating_mul(SMALL_SHARE))
        }
        _ => target,
    };
    // Each with where its blocks begin, and the length of its blocks and of its range of the table.
    let (mut plans, mut last) = (
        Vec::<(EntryRange, u64, u64)>::new(),
        None::<(u64, u64, u64)>,
    );
    let mut entries = segment.entries();
    while let Some(entry) = entries.next(&**source)? {
        if entry.block_end() > front.len || !front.in_bounds(entry.offset) {
            return Ok(Vec::new());
        }
        let enough = match last {
            Some((.., length)) if length <= target / SMALL_SHARE => target,
            _ => target.saturating_mul(2),
        };
        let bytes = |from: u64, start| {
            let blocks = entry.block_end().saturating_sub(start);
            blocks.saturating_add(entry.end - from)
        };
        match plans.last_mut() {
            Some((range, start, all)) if bytes(range.from, *start) <= enough => {
                (range.until, *all) = (entry.end, bytes(range.from, *start));
            }
            _ => {
                let range = EntryRange {
                    crc: front.stored_crc,
                    before: last.map(|(at, left, _)| (at, left)),
                    from: entry.at,
                    until: entry.end,
                };
                plans.push((range, entry.offset, bytes(entry.at, entry.offset)));
            }
        }
        last = Some((entry.at, entries.left + 1, entry.length));
    }
    let plans = plans.into_iter();
    Ok(plans
        .map(|(range, _, bytes)| part::PlannedPart::new(bytes, range))
        .collect())
}

impl EntryRange {
    /// Refuses a part of another file.
    pub(super) fn check(&self, source: &dyn Source, front: &Front) -> Result<()> {
        let entries_end = front.toc_end.map(|end| end - COUNT_BYTES);
        let begins = match self.before {
            None => self.from == TOC_START,
            Some((at, _)) => at < self.from,
        };
        let is_here = is_splittable(front)
            && front.stored_crc == self.crc
            && entries_end.is_some_and(|end| self.until <= end)
            && self.from < self.until
            && begins;
        match is_here {
            true => Ok(()),
            false => Err(another_file(source.path())),
        }
    }
}

/// Where the part after the entry `before` begins: after the first entry whose block is good in place, of that one
/// and its own; with that block's shape, and how many entries are left. `None` if the part before covers all of it.
pub(super) fn beginning(
    input: &Input,
    range: &EntryRange,
    (at, left): (u64, u64),
) -> Result<Option<(Entry, Shape, u64)>> {
    let mut entries = input.entries(at, left);
    while let Some(entry) = entries.next(&*input.source)?
        && entry.end < range.until
    {
        if let Some(shape) = good_in_place(input, &entry)? {
            return Ok(Some((entry, shape, entries.left)));
        }
    }
    Ok(None)
}

/// The shape of an entry's block, if it is good where the entry says, regardless of the blocks before.
pub(super) fn good_in_place(input: &Input, entry: &Entry) -> Result<Option<Shape>> {
    if judge::block_place(&input.front, entry, 0).is_err() {
        return Ok(None);
    }
    let (source, options, mut window) = (&*input.source, &input.options, Window::default());
    let hashed = Hashed::read(source, options, &mut window, entry.offset, entry.length)?;
    let crc = block_crc(entry.partition, &hashed.crc);
    Ok(judge::block(entry, crc, &hashed.decoder).ok())
}
