//! Assigns the bytes after a sound table of contents of version 2. Good blocks take theirs first, then the numbers
//! of tenants, then the ranges of failed entries in the order of the table. The rest is unreferenced.
//!
//! Ranges are committed in file order as soon as nothing still to come can change them. If entries name adjacent
//! blocks, as every writer's do, that is soon. Otherwise everything after the first gap is pending until the last
//! entry.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ledger::{Cause, Kind, whole_kind};
use crate::walk::indexed::{Ranges, kind};

/// Where a range comes from, to explain it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// The entry at this offset failed.
    Entry(u64),
    /// A number of tenants, which should be this.
    Tenants(u64),
    /// No entry or number accounts for it.
    #[default]
    None,
}

/// The range of a number of tenants, or of failed entries. Failed entries that are adjacent in the table, have the
/// same cause and name touching ranges share one claim, unless only the last of them is a torn tail (rule 5).
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// Where the range begins and ends.
    start: u64,
    end: u64,
    pub(super) cause: Option<Cause>,
    pub(super) origin: Origin,
    /// For failed entries: the end of the last one in the table, and their number.
    toc_end: u64,
    pub(super) entries: u64,
    /// What it has received so far.
    left: Vec<(u64, u64)>,
}

impl Claim {
    /// The claim of entries that end at `toc_end` to the range from `start` to `end`.
    const fn new(
        start: u64,
        end: u64,
        cause: Option<Cause>,
        origin: Origin,
        toc_end: u64,
        entries: u64,
    ) -> Self {
        Self {
            start,
            end,
            cause,
            origin,
            toc_end,
            entries,
            left: Vec::new(),
        }
    }

    /// Whether it has received the whole range.
    fn is_whole(&self) -> bool {
        self.left == [(self.start, self.end)]
    }

    fn take(&mut self, start: u64, end: u64) {
        match self.left.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => self.left.push((start, end)),
        }
    }

    /// Whether it received any of this range.
    pub(super) fn has_left(&self, start: u64, end: u64) -> bool {
        let after = self.left.partition_point(|left| left.1 <= start);
        self.left.get(after).is_some_and(|left| left.0 < end)
    }
}

/// Numbers of tenants rank before failed entries, each in the order of the table.
type Rank = (bool, u64);

/// The bytes after the number of partitions.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// The end of the file.
    len: u64,
    /// The end of the committed ranges.
    at: u64,
    /// Good blocks that are pending.
    blocks: VecDeque<(u64, u64)>,
    /// Claims that begin later, by where.
    coming: BTreeMap<(u64, Rank), Claim>,
    /// Those that began, and where each ends.
    active: BTreeMap<Rank, Claim>,
    ends: BTreeSet<(u64, Rank)>,
    /// The last claim. The next one may still join it until it begins.
    last: Option<(u64, Rank)>,
}

impl Claims {
    pub(super) fn new(at: u64, len: u64) -> Self {
        Self {
            len,
            at,
            ..Self::default()
        }
    }

    /// The end of the committed ranges. No block that is found later begins before it.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Adds a good block, which is after all others.
    pub(super) fn block(&mut self, start: u64, end: u64) {
        self.blocks.push_back((start, end));
    }

    /// Adds the number of tenants at `at`, of the partition whose first entry is at `toc_at`. `expected` is the
    /// table's number.
    pub(super) fn tenants(&mut self, at: u64, toc_at: u64, expected: u64, cause: Option<Cause>) {
        let end = (at + super::front::COUNT_BYTES).min(self.len);
        let claim = Claim::new(at, end, cause, Origin::Tenants(expected), toc_at, 0);
        if at < end {
            self.coming.insert((at, (false, toc_at)), claim);
        }
    }

    /// Adds the range of a failed entry, which is at `toc_at` to `toc_end` in the table.
    pub(super) fn failed(&mut self, start: u64, end: u64, cause: Cause, toc_at: u64, toc_end: u64) {
        if let Some(last) = self.last.and_then(|key| self.coming.get_mut(&key))
            && (last.end, last.cause, last.toc_end) == (start, Some(cause), toc_at)
            && whole_kind(cause, end == self.len) == Kind::Corrupt
        {
            last.end = end;
            last.toc_end = toc_end;
            last.entries += 1;
            return;
        }
        let key = (start, (true, toc_at));
        let claim = Claim::new(start, end, Some(cause), Origin::Entry(toc_at), toc_end, 1);
        self.last = Some(key);
        self.coming.insert(key, claim);
    }

    /// How many blocks and claims are pending.
    pub(super) fn pending(&self) -> usize {
        self.blocks.len() + self.coming.len() + self.active.len()
    }

    /// Claims the rest of the file as one range that the search did not reach, for this many `entries` from the
    /// one at `toc_at` on. Returns false if no byte is left.
    pub(super) fn end_search(&mut self, toc_at: u64, entries: u64) -> bool {
        let (cause, origin) = (Some(Cause::SearchLimit), Origin::Entry(toc_at));
        let claim = Claim::new(self.at, self.len, cause, origin, toc_at, entries);
        let is_any = self.at < self.len;
        if is_any {
            self.coming.insert((self.at, (true, u64::MAX)), claim);
        }
        is_any
    }

    /// Commits everything up to `until`, before which nothing more can come, and the blocks directly after it.
    /// Returns the failed entries that are done and lost bytes to others.
    pub(super) fn commit(&mut self, until: u64, out: &mut Ranges<Origin>) -> Vec<Claim> {
        let mut clipped = Vec::new();
        loop {
            if let Some(&(start, end)) = self.blocks.front()
                && start == self.at
            {
                self.blocks.pop_front();
                self.at = end;
                out.cover(end, Kind::Block, None, Origin::None);
                continue;
            }
            let next = self.blocks.front().map_or(until, |(start, _)| *start);
            let gap_end = next.min(until);
            if self.at >= gap_end {
                break;
            }
            self.cover_gap(gap_end, &mut clipped, out);
        }
        self.begin(self.at);
        self.retire(&mut clipped);
        clipped.sort_by_key(|claim| claim.toc_end);
        clipped
    }

    /// Commits a range that no good block takes.
    fn cover_gap(&mut self, end: u64, clipped: &mut Vec<Claim>, out: &mut Ranges<Origin>) {
        while self.at < end {
            self.begin(self.at + 1);
            self.retire(clipped);
            let top = self.active.first_key_value();
            let top = top.map(|(rank, claim)| (*rank, claim.end));
            let mut piece_end = top.map_or(end, |(_, top_end)| top_end.min(end));
            // A claim that begins meanwhile takes over only if it ranks higher.
            while let Some((&(start, rank), _)) = self.coming.first_key_value()
                && start < piece_end
            {
                if top.is_none_or(|(top, _)| rank < top) {
                    piece_end = start;
                    break;
                }
                self.begin_first();
            }
            if let Some(mut claim) = self.active.first_entry() {
                let claim = claim.get_mut();
                claim.take(self.at, piece_end);
                let kind = kind(claim.cause, piece_end == self.len);
                out.cover(piece_end, kind, claim.cause, claim.origin);
            } else {
                let cause = Some(Cause::Unreferenced);
                out.cover(piece_end, Kind::Corrupt, cause, Origin::None);
            }
            self.at = piece_end;
        }
    }

    /// Makes the claims active that begin before an offset.
    fn begin(&mut self, until: u64) {
        while self
            .coming
            .first_key_value()
            .is_some_and(|((start, _), _)| *start < until)
        {
            self.begin_first();
        }
    }

    fn begin_first(&mut self) {
        if let Some(((_, rank), claim)) = self.coming.pop_first() {
            self.ends.insert((claim.end, rank));
            self.active.insert(rank, claim);
        }
    }

    /// Removes the active claims that end before the committed end, or there.
    fn retire(&mut self, clipped: &mut Vec<Claim>) {
        while let Some(&(end, rank)) = self.ends.first()
            && end <= self.at
        {
            self.ends.pop_first();
            let claim = self.active.remove(&rank);
            let is_clipped =
                |claim: &Claim| matches!(claim.origin, Origin::Entry(_)) && !claim.is_whole();
            clipped.extend(claim.filter(is_clipped));
        }
    }
}
