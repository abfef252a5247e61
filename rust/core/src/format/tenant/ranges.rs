//! The ranges of a walk: those of the data in file order, and those of the front after the walk has decided what
//! they are.

use std::mem;

use super::claims::Origin;
use super::front::Front;
use super::marks::{Marks, Next};
use super::toc::{STATED_START, TOC_START, VERSION_START};
use super::{MAGIC, VERSION_1};
use crate::error::Result;
use crate::ledger::{Cause, Kind, Span, Tiling, emit_last};

/// Marks entries that were not followed. No damaged entry has this cause.
const NOT_FOLLOWED: Cause = Cause::Unreferenced;

/// The ranges found so far.
#[derive(Debug)]
pub(super) struct Ranges {
    /// The ranges of the latest step.
    pub(super) spans: Vec<Span>,
    tiling: Tiling,
    state: State,
    /// The damaged entries.
    marks: Marks,
    /// The ranges of the front that are being emitted.
    front: FrontRanges,
    /// The kind and cause of the range that ends where the data begins.
    front_last: (Kind, Option<Cause>),
    front_end: u64,
}

/// What is known between two steps.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The end of the data's known ranges.
    at: u64,
    /// Whether the data's first range is known.
    begun: bool,
    /// The data's first range, if it joins the front's last one.
    joint: Option<Span>,
    /// The first damage among the data's ranges.
    first: Option<(Span, Origin)>,
    /// Once all ranges of the data were emitted: up to where those of the front were.
    front_at: Option<u64>,
    /// Before this, only damaged ranges of the data are emitted.
    emitted_until: u64,
    /// Whether an entry is marked because it is damaged.
    marked: bool,
    /// For a part: the range of the table that its front is.
    range: Option<TocRange>,
}

/// A range of the table of contents: where it begins, and where it ends, unless that is the end of the front.
#[derive(Clone, Copy, Debug)]
struct TocRange {
    start: u64,
    end: Option<u64>,
}

impl Ranges {
    /// Creates empty ranges. The first one of the data begins at `at`.
    pub(super) fn new(front: &Front, at: u64) -> Self {
        let state = State {
            at,
            ..State::default()
        };
        Self {
            spans: Vec::new(),
            tiling: Tiling::resume(at, None),
            state,
            marks: Marks::default(),
            front: FrontRanges::default(),
            front_last: front.partitions_verdict(),
            front_end: front.end(),
        }
    }

    /// Sets the entry at which the front of a part begins.
    pub(super) const fn begin_range(&mut self, start: u64) {
        self.state.range = Some(TocRange { start, end: None });
    }

    /// Sets the entry before which the front of a part ends.
    pub(super) const fn end_range(&mut self, entry: u64) {
        if let Some(range) = &mut self.state.range {
            range.end = Some(entry);
        }
    }

    /// Leaves the front out.
    pub(super) const fn leave_front(&mut self) {
        self.front_end = 0;
    }

    /// Leaves out an entry that is not followed: whether it is right is unknown.
    pub(super) fn leave_entry(&mut self, start: u64, end: u64) -> Result<()> {
        if self.front_end == 0 {
            return Ok(());
        }
        self.marks.push(start, end, NOT_FOLLOWED)
    }

    /// Continues at `at`. What is before it has not been read.
    pub(super) fn skip_to(&mut self, at: u64) {
        if at != self.state.at {
            self.flush();
            self.tiling = Tiling::resume(at, None);
            self.state.at = at;
        }
    }

    /// Commits the data's pending range, because what comes next does not touch it.
    pub(super) fn flush(&mut self) {
        let before = self.spans.len();
        self.tiling.finish(&mut self.spans);
        self.settle(before);
    }

    /// An earlier walk emitted the good ranges before `until`, but did not store which. So this walk emits no good
    /// ranges there.
    pub(super) const fn leave_good(&mut self, until: u64) {
        self.state.emitted_until = until;
    }

    /// The offset up to which ranges come last.
    pub(super) const fn front_end(&self) -> u64 {
        self.front_end
    }

    /// The end of the data's known ranges.
    pub(super) const fn at(&self) -> u64 {
        self.state.at
    }

    /// Whether any damage was found.
    pub(super) fn is_damaged(&self) -> bool {
        self.state.first.is_some() || self.state.marked
    }

    /// Covers the data's bytes up to `end`.
    pub(super) fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>, origin: Origin) {
        if end <= self.state.at {
            return;
        }
        if cause.is_some() && self.state.first.is_none() {
            let start = self.state.at;
            self.state.first = Some((
                Span {
                    start,
                    end,
                    kind,
                    cause,
                },
                origin,
            ));
        }
        self.state.at = end;
        let before = self.spans.len();
        self.tiling.cover(end, kind, cause, &mut self.spans);
        self.settle(before);
    }

    /// Holds back or drops the new ranges, from this index on, that must not be emitted.
    fn settle(&mut self, place: usize) {
        self.hold_first(place);
        let until = self.state.emitted_until;
        if until > 0 {
            for mut span in self.spans.split_off(place) {
                if !span.is_damage() {
                    // Only as much of a range was emitted as had been read of it.
                    span.start = span.start.max(until);
                }
                self.spans
                    .extend(Some(span).filter(|span| span.start < span.end));
            }
        }
    }

    /// Holds back the data's first range if it joins the front's last one.
    fn hold_first(&mut self, place: usize) {
        let Some(first) = self.spans.get(place).filter(|_| !self.state.begun) else {
            return;
        };
        self.state.begun = true;
        let joins = first.start == self.front_end && (first.kind, first.cause) == self.front_last;
        // The front's last range may be another part's.
        if joins && self.front_end > 0 && self.state.range.is_none() && first.kind != Kind::Block {
            self.state.joint = Some(self.spans.remove(place));
        }
    }

    /// Marks a damaged entry. A walk that began within the file cannot judge entries.
    pub(super) fn mark(&mut self, start: u64, end: u64, cause: Cause) -> Result<()> {
        if self.front_end == 0 {
            return Ok(());
        }
        self.state.marked = true;
        self.marks.push(start, end, cause)
    }

    /// Whether all ranges of the data were emitted.
    pub(super) const fn is_at_front(&self) -> bool {
        self.state.front_at.is_some()
    }

    /// Emits the data's pending range, and then the front's ranges, some with each call. `false` if there are no
    /// more.
    pub(super) fn finish(&mut self, front: &Front) -> Result<bool> {
        if self.state.front_at.is_none() {
            self.flush();
            self.marks.sort();
        }
        let mut emitted = *self.state.front_at.get_or_insert(0);
        if self.front_end == 0 {
            return Ok(false);
        }
        let (mut laid, mut spans) = (mem::take(&mut self.front), mem::take(&mut self.spans));
        let more = emit_last(&mut emitted, &mut spans, |out| {
            self.cover_front(front, &mut laid, out)
        })?;
        (self.front, self.spans) = (laid, spans);
        self.state.front_at = Some(emitted);
        Ok(more)
    }

    /// Commits the front up to the next damaged entry, or to its end if there is none: then `false`.
    fn cover_front(
        &self,
        front: &Front,
        ranges: &mut FrontRanges,
        out: &mut Vec<Span>,
    ) -> Result<bool> {
        let tiling = &mut ranges.tiling;
        let damaged = |is_damaged: bool, cause| match is_damaged {
            true => (Kind::Corrupt, Some(cause)),
            false => (Kind::Header, None),
        };
        let range = self.state.range;
        let is_begun = mem::replace(&mut ranges.begun, true);
        if let Some(TocRange { start, .. }) = range
            && !is_begun
        {
            *tiling = Tiling::resume(start, None);
        }
        let mut cover = |end, kind, cause| tiling.cover(end, kind, cause, out);
        if !is_begun && range.is_none_or(|range| range.start == 0) {
            let (kind, cause) = damaged(front.magic != MAGIC, Cause::BadMagic);
            cover(VERSION_START, kind, cause);
            let (kind, cause) = damaged(is_mended(front), Cause::UnsupportedVersion);
            cover(STATED_START, kind, cause);
            let (kind, cause) = damaged(count_is_wrong(front), Cause::CountMismatch);
            cover(TOC_START, kind, cause);
        }
        if let Some(mark) = self.marks.next(&mut ranges.marks)? {
            cover(mark.start, Kind::Header, None);
            if mark.cause == NOT_FOLLOWED {
                tiling.finish(out);
                *tiling = Tiling::resume(mark.end, None);
                return Ok(true);
            }
            cover(mark.end, Kind::Corrupt, Some(mark.cause));
            return Ok(true);
        }
        if let Some(end) = range.and_then(|range| range.end) {
            cover(end, Kind::Header, None);
            tiling.finish(out);
            return Ok(false);
        }
        cover(front.toc_end.unwrap_or(front.len), Kind::Header, None);
        let (kind, cause) = front.partitions_verdict();
        cover(self.front_end, kind, cause);
        if let Some(joint) = &self.state.joint {
            cover(joint.end, joint.kind, joint.cause);
        }
        tiling.finish(out);
        Ok(false)
    }

    /// The first damage in the file, known after the whole walk, and its origin if it is not in the front.
    pub(super) fn first_damage(&mut self, front: &Front) -> Result<Option<(Span, Origin)>> {
        self.marks.sort();
        let mut more = self.front_end > 0;
        let mut ranges = FrontRanges::default();
        let mut first = None;
        let mut spans = Vec::new();
        while more && first.is_none() {
            spans.clear();
            more = self.cover_front(front, &mut ranges, &mut spans)?;
            first = spans.iter().find(|span| span.is_damage()).copied();
        }
        let first = first.filter(|first| first.start < self.front_end);
        let first = first.map(|span| (span, Origin::None));
        Ok(first.or(self.state.first))
    }
}

/// How far the front's ranges are committed.
#[derive(Debug, Default)]
struct FrontRanges {
    begun: bool,
    tiling: Tiling,
    marks: Next,
}

/// Whether the front alone shows damage.
pub(super) fn front_is_damaged(front: &Front) -> bool {
    front.magic != MAGIC
        || is_mended(front)
        || count_is_wrong(front)
        || front.toc_end != Some(front.len) && front.partitions_verdict().1.is_some()
}

/// Whether the file is read as another version than it states.
const fn is_mended(front: &Front) -> bool {
    front.stated_version != front.version
}

/// Whether the number of entries is wrong, or claims more than there is.
pub(super) fn count_is_wrong(front: &Front) -> bool {
    let stated = u64::from(front.stated);
    front.version == VERSION_1 && stated != front.entries || front.ends_after_toc()
}
