//! The walk: which of the scans reads a file, where it begins, and what all of them share.

use std::sync::{Arc, OnceLock};

use super::VERSION_1;
use super::block_search::BlockSearch;
use super::claims::{Claims, Origin};
use super::emit::{Open, no_message};
use super::explain::{explain, explain_entry};
use super::front::{COUNT_BYTES, Front, Segment};
use super::listed::{Listed, Pruned};
use super::part::{self, EntryRange, Progress};
use super::partitions::Partitions;
use super::probe::Input;
use super::reading::{OpenPartition, Position, ScanState};
use super::rows::TenantRows;
use super::toc::{Entry, TOC_START};
use super::unlisted::Unlisted;
use crate::bug::OrBug;
use crate::error::{Damage, Error, Result};
use crate::ledger::Span;
use crate::limits::LIMITS;
use crate::record::{Checked, Scalar};
use crate::source::Source;
use crate::spec::Filter;
use crate::walk::{Advance, Begin, Driver, Options, Scan, cannot_resume};

/// How many entries are tried between two polls of the interrupt.
const POLL_ENTRIES: u64 = 1 << 10;

pub(super) struct TenantScan {
    pub(super) on: ScanState,
    course: Course,
    /// Whether it began within the file, and knows nothing of what is before.
    is_partial: bool,
    /// Whether the next step also reports the ranges that were found before it.
    has_ranges: bool,
    /// Set if it only raises the file's first damage, which is stored here once it is known.
    refusal: Option<Arc<OnceLock<Damage>>>,
}

/// Walks one segment.
pub(super) type TenantWalk = Driver<TenantScan>;

impl TenantWalk {
    pub(super) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        start: Begin<'_>,
    ) -> Result<Self> {
        let segment = Segment::open(source, options)?;
        match start {
            Begin::Beginning => Ok(Self::new(TenantScan::begin(&segment))),
            Begin::Part(part) => {
                let (scan, ended) = TenantScan::in_part(Input::new(&segment), part.plan()?)?;
                Ok(Self::resume(scan, ended))
            }
            Begin::Offset(offset) => TenantScan::from_message(&segment, offset).map(Self::new),
            Begin::Carry(_) => Err(cannot_resume("tenant")),
        }
    }
}

impl TenantScan {
    /// Begins at a place. Everything up to `at` is committed.
    fn new(input: Input, place: Position, at: u64) -> Self {
        Self {
            course: Course::of(&input.front, place.is_pruned, at),
            on: ScanState::new(input, place, at),
            is_partial: false,
            has_ranges: false,
            refusal: None,
        }
    }

    /// Begins before the `left` entries from the one at `entry` on. No block is known yet.
    fn at(input: Input, is_pruned: bool, (entry, left): (u64, u64)) -> Self {
        let data_start = input.front.toc_end.map(|end| end + COUNT_BYTES);
        let (table, at) = (input.table(entry, left, None), input.front.end());
        let mut scan = Self::new(input, Position::new(table, is_pruned, data_start), at);
        scan.on.ranges.note_fields(Origin::None);
        scan
    }

    /// A scan through the whole file.
    pub(super) fn begin(segment: &Segment) -> Self {
        let place = segment.front.place();
        Self::at(Input::new(segment), false, place)
    }

    /// A scan of only the blocks that match, by a table of contents that [leads](Front::leads_directly) to them: by as
    /// many entries from one on. Its ledger covers these blocks and the front.
    pub(super) fn prune(segment: &Segment, place: (u64, u64)) -> Self {
        let mut scan = Self::at(Input::new(segment), true, place);
        if segment.options.strict && scan.on.ranges.first_damage().is_some() {
            scan.on.ranges.leave_front();
        }
        scan
    }

    /// A scan of only the unit that this entry describes, which a scan through the file [verified]: a block, or a
    /// partition of version 1. Its ledger covers this unit.
    ///
    /// [verified]: super::lookup::VerifiedBlocks
    pub(super) fn of_unit(segment: &Segment, unit: &Entry) -> Self {
        let mut scan = Self::prune(segment, (unit.at, 0));
        let on = &mut scan.on;
        on.ranges.leave_front();
        if on.input.front.version != VERSION_1 {
            on.place.table.entries.only(unit.clone());
            return scan;
        }
        on.ranges.skip_to(unit.offset);
        OpenPartition::begin(on, unit.clone(), false);
        scan
    }

    /// A scan that raises the first damage of a file that is read strictly and known to be damaged. No record
    /// comes before it. The damage is stored once it is known.
    pub(super) fn refusing(segment: &Segment, damage: Arc<OnceLock<Damage>>) -> Self {
        let mut scan = Self::begin(segment);
        scan.refusal = Some(damage);
        scan
    }

    /// A scan through the whole file that emits no messages: it only finds the good blocks.
    pub(super) fn of_blocks(segment: &Segment) -> Self {
        let nothing = Filter::default().among("tenant", Vec::<Scalar>::new());
        Self::begin(&segment.with(segment.options.clone().filter(nothing)))
    }

    /// A scan from the message at `offset` on. The table of contents says where its block is. If it is not there,
    /// only a scan from the beginning finds it.
    fn from_message(segment: &Segment, offset: u64) -> Result<Self> {
        let mut entries = segment.entries();
        if !segment.front.leads_directly() {
            entries.left = 0;
        }
        let mut before = None;
        while let Some(entry) = entries.next(&*segment.source)? {
            let (at, left) = (entry.at, entries.left + 1);
            if (entry.offset..entry.block_end()).contains(&offset) {
                let input = Input::new(segment);
                let (table, start) = (input.table(at, left, before), entry.offset);
                let place = Position::new(table, false, Some(start));
                let mut scan = Self::new(input, place, start);
                if scan.seek_message(offset, entry.end)? {
                    return Ok(scan);
                }
                break;
            }
            before = Some(entry.partition);
        }
        let mut scan = Self::begin(segment);
        match scan.seek_message(offset, u64::MAX)? {
            true => Ok(scan),
            false => Err(no_message(offset)),
        }
    }

    /// Advances to the block that has the message at `offset`, by the entries before `until`. Nothing before it is
    /// reported. `false` if none of them has it.
    fn seek_message(&mut self, offset: u64, until: u64) -> Result<bool> {
        self.is_partial = true;
        self.on.emitter.from = Some(offset);
        while self.on.emitter.from.is_some() && self.on.emitter.open.is_none() {
            if self.on.ranges.has_front() {
                self.begin_step()?;
            }
            let is_past = self.on.partition.is_none() && self.on.place.table.place().0 >= until;
            if is_past || self.go_on()? == Advance::End {
                return Ok(false);
            }
        }
        self.has_ranges = true;
        let open = self.on.emitter.open.as_ref();
        Ok(open.is_none_or(|open| open.block.offset <= offset))
    }

    /// Begins at a part. With pruning only the blocks that match are read. Returns whether the part has ended.
    fn in_part(input: Input, range: EntryRange) -> Result<(Self, bool)> {
        range.check(&*input.source, &input.front)?;
        let is_pruned = input.options.prunes();
        let Some(before) = range.before else {
            let place = input.front.place();
            let mut scan = Self::at(input, is_pruned, place);
            let end = scan.on.input.front.end();
            scan.set_part(0, range, (TOC_START, end));
            return Ok((scan, false));
        };
        let Some((entry, shape, left)) = part::beginning(&input, &range, before)? else {
            // The part before covers all of this one.
            return Ok((Self::at(input, is_pruned, (before.0, 0)), true));
        };
        let tenant = input.name(entry.offset, &shape)?;
        let (next, end) = (entry.end, entry.block_end());
        let table = input.table(next, left, Some(entry.partition));
        let mut place = Position::new(table, is_pruned, Some(end));
        place.go_past(end, Entry { tenant, ..entry });
        let mut scan = Self::new(input, place, end);
        scan.set_part(next, range, (next, end));
        Ok((scan, false))
    }

    /// Makes this the scan of a part whose front begins at `front`, and whose entries and blocks begin at `start`.
    fn set_part(&mut self, front: u64, range: EntryRange, start: (u64, u64)) {
        self.on.ranges.begin_part(front);
        self.on.part = Some(Progress {
            range,
            // A pruned scan need not look at the entry before the first one: it was checked.
            passed: range.before.filter(|_| !self.on.place.is_pruned),
            in_place: true,
            start,
        });
    }

    /// Advances by an entry, a block, or as many messages as a step has room for.
    fn go_on(&mut self) -> Result<Advance> {
        let on = &mut self.on;
        let (_, left) = on.place.table.place();
        if left.is_multiple_of(POLL_ENTRIES) {
            on.input.options.poll()?;
        }
        if let Some(open) = on.emitter.open.take() {
            return self.emit(open);
        }
        if let Some(mut partition) = on.partition.take() {
            if partition.advance(on)? {
                on.partition = Some(partition);
            }
            return Ok(Advance::On);
        }
        match &mut self.course {
            Course::Refused => {
                let front = &on.input.front;
                let cause = front.broken.or_bug("why nothing can be read")?;
                on.ranges.refuse(front.len, cause, Origin::None);
                Ok(Advance::End)
            }
            Course::Partitions(partitions) => partitions.advance(on),
            Course::Listed(listed) => listed.advance(on),
            Course::Unlisted(unlisted) => unlisted.advance(on),
            Course::Pruned(pruned) => match pruned.advance(on)? {
                Ok(advance) => Ok(advance),
                Err((entry, cause)) if on.input.options.strict && on.part.is_none() => {
                    let damage = explain_entry(&on.input, &entry, cause)?;
                    Err(Error::Damage(Box::new(damage)))
                }
                Err(_) => self.go_through(),
            },
        }
    }

    /// Emits messages of the open block.
    fn emit(&mut self, open: Open) -> Result<Advance> {
        let on = &mut self.on;
        let Some(end) = on.emitter.emit(open, &mut on.input, &mut on.found)? else {
            return Ok(Advance::Full);
        };
        if let Some(partition) = &mut on.partition {
            partition.end_block(&mut on.ranges, end);
        }
        Ok(Advance::On)
    }

    /// Continues through the whole file or part: only such a scan may find a block that is not where its entry says.
    fn go_through(&mut self) -> Result<Advance> {
        let (emitted, until) = (self.on.emitter.emitted, self.on.ranges.at());
        let segment = self.on.input.segment();
        *self = match self.on.part {
            Some(part) => {
                let whole = segment.with(segment.options.clone().prune(false));
                Self::in_part(Input::new(&whole), part.range)?.0
            }
            None => Self::begin(&segment),
        };
        self.on.ranges.leave_good(until);
        self.on.emitter.skip = emitted;
        Ok(Advance::On)
    }

    /// Whether there is enough for a step.
    fn is_crowded(&self) -> bool {
        self.on.found.is_crowded(&self.on.input)
            || self.on.ranges.spans.len() >= LIMITS.tenant_step_spans
    }

    /// Whether the first range is damaged, because the front is broken.
    fn begins_damaged(&self) -> bool {
        !self.on.input.front.is_sound() && !self.is_partial
    }

    /// Whether there is damage that a strict walk must not pass.
    fn is_damaged(&self) -> bool {
        self.begins_damaged() || self.on.ranges.first_damage().is_some()
    }

    /// Continues until the first damage in the file is known.
    fn seek_first(&mut self) -> Result<Advance> {
        self.on.found.is_silent = true;
        self.on.emitter.open = None;
        let is_known =
            |scan: &Self| scan.begins_damaged() && scan.on.ranges.first_damage().is_some();
        while !is_known(self) && self.go_on()? != Advance::End {
            self.begin_step()?;
        }
        self.begin_step()?;
        let Some((span, origin)) = self.on.ranges.first_damage() else {
            return Err(self.on.input.changed());
        };
        let damage = explain(&self.on.input, span, *origin)?;
        Err(Error::Damage(Box::new(damage)))
    }

    /// Raises the first damage. Finds it first, unless it is known already.
    fn refuse(&mut self, known: &OnceLock<Damage>) -> Result<Advance> {
        if let Some(damage) = known.get() {
            return Err(Error::Damage(Box::new(damage.clone())));
        }
        self.seek_first().inspect_err(|error| {
            if let Error::Damage(damage) = error {
                known.get_or_init(|| (**damage).clone());
            }
        })
    }
}

impl Scan for TenantScan {
    type Rows<'a> = TenantRows<'a>;

    fn options(&self) -> &Options {
        &self.on.input.options
    }

    fn begin_step(&mut self) -> Result<()> {
        self.on.found.clear();
        if !std::mem::take(&mut self.has_ranges) {
            self.on.ranges.spans.clear();
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Advance> {
        if let Some(known) = self.refusal.clone() {
            return self.refuse(&known);
        }
        if self.on.ranges.is_at_front() {
            return Ok(self.on.ranges.emit_front());
        }
        let strict = self.on.input.options.strict;
        let advance = loop {
            if strict && self.is_damaged() {
                break Advance::End;
            }
            match self.go_on()? {
                Advance::On if self.is_crowded() => break Advance::Full,
                Advance::On => {}
                advance => break advance,
            }
        };
        if strict {
            // A strict walk emits no damaged ranges.
            self.on.ranges.spans.retain(|span| !span.is_damage());
        }
        if advance != Advance::End {
            return Ok(advance);
        }
        if strict && self.is_damaged() {
            // Good messages are emitted first. The next step meets the damage again.
            return match self.on.is_held() {
                true => Ok(Advance::Full),
                false => self.seek_first(),
            };
        }
        match self.on.emitter.from {
            Some(from) => Err(no_message(from)),
            None => Ok(self.on.ranges.emit_front()),
        }
    }

    fn finish(&mut self) {}

    fn has_found(&self) -> bool {
        !self.on.found.is_empty() || !self.on.ranges.spans.is_empty()
    }

    /// An advance is [`Advance::Full`] if there is enough.
    fn is_enough(&self) -> bool {
        false
    }

    fn rows(&self) -> TenantRows<'_> {
        self.on.found.rows(&self.on.input)
    }

    fn spans(&self) -> &[Span] {
        &self.on.ranges.spans
    }

    fn front_end(&self) -> u64 {
        self.on.ranges.front_end()
    }

    fn checked(&self) -> Checked {
        self.on.input.front.checked()
    }

    fn offset(&self, ended: bool) -> u64 {
        let len = self.on.input.front.len;
        if ended {
            return len;
        }
        match &self.on.emitter.open {
            Some(open) => open.position.min(len),
            None => self.on.ranges.at().min(len),
        }
    }
}

/// The scan of a file, with its progress.
#[derive(Debug)]
enum Course {
    /// None: the front decides about the whole file.
    Refused,
    /// Version 1.
    Partitions(Partitions),
    /// Version 2 with a sound table of contents.
    Listed(Listed),
    /// Version 2 without a sound table of contents.
    Unlisted(Unlisted),
    /// Only the blocks that match, with a sound table of contents.
    Pruned(Pruned),
}

impl Course {
    /// The scan of a file with this front, of which everything up to `at` is committed.
    fn of(front: &Front, is_pruned: bool, at: u64) -> Self {
        match front.version {
            _ if front.refused => Self::Refused,
            _ if is_pruned => Self::Pruned(Pruned::default()),
            VERSION_1 => Self::Partitions(Partitions::default()),
            _ if front.is_sound() => Self::Listed(Listed {
                search: BlockSearch::default(),
                claims: Claims::new(at, front.len),
            }),
            _ => Self::Unlisted(Unlisted::new(front.toc_end, front.len)),
        }
    }
}
