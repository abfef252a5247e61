//! Parts of a segment: spans of entries, each with its bytes of the index and its messages.
//!
//! Only a segment whose index ascends is split, as its trailer proves if the key is known. So the last good
//! message before an entry has a smaller UUID and, unless messages overlap, ends before it. If an entry's message
//! is good at its own offset, the walk continues after it as if nothing else were known.

use std::ops::Range;
use std::sync::Arc;

use super::check::Checker;
use super::front::{POLL_EVERY, Segment};
use super::judge::Prior;
use super::layout::{Entry, Message};
use super::reader::Reader;
use super::search::Search;
use super::walk::{EntryRange, Progress, ScanState, SealedScan, extent};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::source::{Source, read_array};
use crate::spec::UuidBounds;
use crate::uuid6::ticks;
use crate::walk::part::{self, another_file, check_share, exhausted, inseparable};
use crate::walk::{Advance, Options};

/// Splits a segment by its index alone. Reads the index and the checksums once.
pub(super) fn split(
    source: &Arc<dyn Source>,
    options: &Options,
    target: u64,
) -> Result<Vec<part::PlannedPart>> {
    let segment = Segment::open(source.clone(), options)?;
    let front = &segment.front;
    let Some(trailer) = front.trailer else {
        return Ok(Vec::new());
    };
    let first = (0, front.data_start);
    let (mut cuts, mut cut, mut last) = (vec![first], first, first);
    let mut visit = |number: u64, offset: u64| {
        let (began, start) = cut;
        if extent(number - began, start, offset) > target && last.0 > began {
            cut = last;
            cuts.push(cut);
        }
        last = (number, offset);
    };
    let survey = segment.survey(|entry| visit(entry.number, entry.offset))?;
    visit(front.entries, front.data_end);
    // Without the right key the hash cannot be verified. An index that ascends suffices to make parts exact.
    let is_sound = survey.is_proven || trailer.key_check_is_wrong() && trailer.is_very_likely();
    // What finding the trailer took may leave too little for the parts.
    let is_enough_left = front.searched.left(0) > 0;
    if !survey.ascends || !is_sound || !front.terminator_is_zero || !is_enough_left {
        return Ok(Vec::new());
    }
    let ends = cuts.iter().skip(1).copied();
    let ends = ends.chain([(front.entries, front.data_end)]);
    let (foot, trailer, searched) = (trailer.foot, trailer.start, front.searched);
    let range = |((from, start), (until, end))| {
        let bytes = extent(until - from, start, end);
        let range = EntryRange {
            foot,
            trailer,
            searched,
            from,
            until,
        };
        part::PlannedPart::new(bytes, range)
    };
    Ok(cuts.iter().copied().zip(ends).map(range).collect())
}

impl Segment {
    /// The state at the beginning of a part: after the first message that is good at its own offset, of the part's
    /// entries and the one before them.
    pub(super) fn in_part(&self, range: EntryRange) -> Result<ScanState> {
        let (front, options) = (&self.front, &self.options);
        if !range.fits(front) {
            return Err(another_file(self.source.path()));
        }
        let start = front.data_start;
        let mut state = ScanState::before(range.from, start);
        state.part = Some(Progress { range, start });
        let mut checker = Checker::new(self, Reader::sparse);
        let bounds = UuidBounds::of(&options.filter);
        let first = checker.first_match(options, &range)?;
        let least = first.saturating_sub(LIMITS.run_in_entries + 1);
        let least = least.max(range.from.saturating_sub(1));
        if first > range.from
            && let Some(message) = checker.run_in(least..first, range.until)?
        {
            let next = message.number + 1;
            let part = state.part;
            state = ScanState {
                part,
                ..ScanState::after(&message)
            };
            // The next part begins there.
            state.ended =
                next == range.until || checker.matches_none(next, range.until, &bounds)?;
            return Ok(state);
        }
        if range.from == 0 {
            state.ended = options.prunes() && checker.matches_none(0, range.until, &bounds)?;
            return Ok(state);
        }
        for next in range.from..range.until {
            if next.is_multiple_of(POLL_EVERY) {
                options.poll()?;
            }
            if let Some(message) = checker.in_place(next - 1)? {
                let start = message.end();
                let part = Some(Progress { range, start });
                state = ScanState {
                    part,
                    ..ScanState::after(&message)
                };
                // The walk of the whole file has ended before this.
                state.ended = bounds.is_past(&message.uuid)
                    || options.prunes() && checker.matches_none(next, range.until, &bounds)?;
                return Ok(state);
            }
        }
        // The part before covers all of this one.
        state.ended = true;
        Ok(state)
    }
}

impl Checker {
    /// The first entry of a part that can match the filter, or the end of the part, as far as the index shows.
    fn first_match(&mut self, options: &Options, range: &EntryRange) -> Result<u64> {
        let bounds = UuidBounds::of(&options.filter);
        let Some(since) = bounds.since().filter(|_| options.prunes()) else {
            return Ok(range.from);
        };
        let mut uuid = |number| Ok(self.entry_elsewhere(number)?.uuid);
        let times = ticks(&uuid(range.from)?)..ticks(&uuid(range.until - 1)?);
        let mut search = Search::new(since, range.from..range.until).by_time(times);
        while let Some(place) = search.place() {
            search.saw(&uuid(place)?);
        }
        Ok(search.answer())
    }

    /// The message of an entry, if it is good at its own offset, regardless of the ones before.
    pub(super) fn in_place(&mut self, number: u64) -> Result<Option<Message>> {
        let entry = self.entry_elsewhere(number)?;
        let nothing = Prior::nothing(&self.front);
        let checked = self.check(&entry, &nothing)?;
        Ok(checked.ok())
    }

    /// The last message of these entries that is good at its own offset, and after which the walk certainly continues:
    /// it joins the next one, among the entries before `until`, and depends on none before it.
    pub(super) fn run_in(&mut self, entries: Range<u64>, until: u64) -> Result<Option<Message>> {
        for number in entries.rev() {
            let entry = self.reader.entry(number)?;
            if let Ok(message) = self.check(&entry, &Prior::nothing(&self.front))?
                && self.joins(&message, until)?
                && self.is_independent(&message)?
            {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Whether a message that is good at its own offset ends where the next one begins, among the entries before
    /// `until`. If not, something is damaged, perhaps its entry: an empty message verifies wherever bytes are
    /// zero.
    fn joins(&mut self, message: &Message, until: u64) -> Result<bool> {
        let next = message.number + 1;
        Ok(next >= until || self.entry_elsewhere(next)?.offset == message.end())
    }

    /// Whether the index shows that no message from entry `from` to entry `until` matches the filter.
    fn matches_none(&mut self, from: u64, until: u64, bounds: &UuidBounds) -> Result<bool> {
        if bounds.is_past(&self.entry_elsewhere(from)?.uuid) {
            return Ok(true);
        }
        let last = self.entry_elsewhere(until - 1)?.uuid;
        // If the last one is not good at its own offset, the part continues after it.
        Ok(bounds.since().is_some_and(|since| last < since) && self.in_place(until - 1)?.is_some())
    }
}

impl SealedScan {
    /// Limits read-ahead to the part, if the walk is of one.
    pub(super) fn keep_to_part(&mut self) -> Result<()> {
        let Some(until) = self.state.part.map(|part| part.range.until) else {
            return Ok(());
        };
        let mut data_until = self.front().data_end;
        if until < self.front().entries {
            let entry = read_array(self.source(), self.front().entry_at(until))?;
            data_until = Entry::parse(until, &entry).offset;
        }
        self.checker.reader.read_ahead_until(until, data_until);
        Ok(())
    }

    /// Whether the part ends before the next entry, where the next part begins.
    pub(super) fn is_past_part(&mut self) -> Result<bool> {
        let next = self.state.next;
        let is_past = |part: Progress| next >= part.range.until;
        if !self.state.part.is_some_and(is_past) {
            return Ok(false);
        }
        if self.state.in_place {
            return Ok(true);
        }
        // The check is repeated later if needed, so it is not charged.
        let effort = self.checker.effort;
        let in_place = self.checker.in_place(next.saturating_sub(1))?;
        self.checker.effort = effort;
        let Some(Message { position, .. }) = in_place else {
            return Ok(false);
        };
        let why =
            format!("the message at offset {position} is good, but overlaps another before it");
        Err(inseparable(self.source().path(), &why))
    }

    /// How many of `most` entries are left of the part. After its end, entries are checked one by one.
    pub(super) fn left_of_part(&self, most: usize) -> usize {
        let Some(part) = self.state.part else {
            return most;
        };
        let left = part.range.until.saturating_sub(self.state.next).max(1);
        usize::try_from(left).map_or(most, |left| left.min(most))
    }

    /// Handles an exhausted search budget. A part cannot decide alone whether the whole walk's is exhausted.
    pub(super) fn exhaust_part(&self) -> Result<()> {
        match self.state.part {
            Some(_) => Err(exhausted(self.source().path())),
            None => Ok(()),
        }
    }

    /// Begins the ranges of the index up to entry `until`, with the terminator after the last entry. Everything
    /// after the index is covered. Refuses a part if the whole walk may have ended a search in it or after it.
    pub(super) fn begin_front(&mut self, until: u64) -> Result<Advance> {
        if let Some(part) = self.state.part {
            let entries = self.state.next - self.state.from;
            let bytes = extent(entries, part.start, self.state.end);
            let budgets = (self.front().searched, self.checker.effort.budget);
            check_share(self.source().path(), budgets, bytes, self.front().len)?;
        }
        if until < self.front().entries {
            self.ranges.end_part(self.front().entry_at(until));
        }
        Ok(Advance::End)
    }
}
