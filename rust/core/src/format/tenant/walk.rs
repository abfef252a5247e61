//! The walk: entry by entry, each block checked before anything of it is given out.

use std::sync::Arc;

use super::VERSION_1;
use super::block::Name;
use super::front::{COUNT_BYTES, Front};
use super::give::{Checks, Chosen, Open};
use super::layout::{self, Layout, Origin};
use super::part::Progress;
use super::partitions::{Gap, Part};
use super::probe::Probe;
use super::ranges::{self, Ranges};
use super::rows::{Message, Tenant, TenantRows};
use super::start::no_message;
use super::toc::{Ahead, Entries, Entry, TOC_START};
use crate::engine::{Advance, Carry, Driver, Options, Scan, Start};
use crate::error::{Error, Result};
use crate::ledger::{Kind, Span};
use crate::limits::LIMITS;
use crate::record::Checked;
use crate::source::{Source, Window};

/// How many entries are tried between two looks at whether to stop.
const POLL_ENTRIES: u64 = 1 << 10;

pub(super) struct TenantScan {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
    pub(super) front: Arc<Front>,
    pub(super) wanted: Chosen,
    pub(super) entries: Entries,
    pub(super) next: Option<Entry>,
    pub(super) ahead: Ahead,
    pub(super) before: Option<u32>,
    pub(super) end: Option<u64>,
    pub(super) last: Option<(u32, Name)>,
    pub(super) probe: Probe,
    /// The search budget has ended.
    pub(super) limited: bool,
    /// Where the bytes end that an entry named and that were checked last.
    pub(super) examined: u64,
    /// What was learned of the places behind the last good block.
    pub(super) tried: Vec<super::blocks::Tried>,
    /// The same of version 1.
    pub(super) tried_partition: Option<super::partitions::Tried>,
    /// The window that rows lie in.
    pub(super) data: Window,
    pub(super) layout: Layout,
    pub(super) ranges: Ranges,
    pub(super) gap: Gap,
    pub(super) part: Option<Part>,
    pub(super) open: Option<Open>,
    pub(super) checks: Checks,
    /// The tenant ID of the open block, once it is needed.
    pub(super) tenant: Option<Tenant>,
    /// It is not among those of the step yet.
    pub(super) fresh_tenant: bool,
    pub(super) messages: Vec<Message>,
    pub(super) tenants: Vec<Tenant>,
    /// The blocks that were kept, of the latest step.
    pub(super) kept: Vec<Kept>,
    /// How many bytes their tenant IDs take.
    kept_bytes: usize,
    /// Version 1: the partitions that were kept, also those without tenants.
    pub(super) kept_partitions: Vec<KeptPartition>,
    pub(super) from: Option<u64>,
    /// It began within the file, and knows nothing of what is in front.
    pub(super) partial: bool,
    /// The part that this walk is of, and how far it is.
    pub(super) portion: Option<Progress>,
    /// Entries are chosen by what is wanted, and each stands for itself: the ledger is of these.
    pub(super) direct: bool,
    /// How many messages were given out, and how many are not given out again.
    pub(super) given: u64,
    pub(super) skip: u64,
    /// Damage was met: going on only to find the first.
    pub(super) silent: bool,
}

/// Walks one segment.
pub(super) type TenantWalk = Driver<TenantScan>;

/// A good block.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) position: u64,
    pub(super) partition: u32,
    pub(super) tenant: Name,
    pub(super) messages: u32,
    /// Version 2: its length, and the CRC-32 that it was checked by.
    pub(super) checked: Option<(u64, u32)>,
}

/// A good partition of version 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptPartition {
    pub(super) partition: u32,
    /// Where its number of tenants stands.
    pub(super) at: u64,
    /// How many tenants are good: fewer than it says where the file was cut inside it.
    pub(super) tenants: u32,
    /// Where the last of them ends.
    pub(super) end: u64,
}

impl TenantWalk {
    pub(super) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        start: Start<'_>,
    ) -> Result<Self> {
        let front = Arc::new(Front::read(&*source, options)?);
        match start {
            Start::Beginning => Ok(Self::new(TenantScan::begin(source, options, front))),
            Start::Part(part) => TenantScan::in_part(source, options, front, part.portion()?),
            Start::Offset(offset) => {
                TenantScan::from_message(source, options, front, offset).map(Self::new)
            }
            Start::Carry(carry) => TenantScan::resume(source, options, front, carry),
        }
    }
}

impl TenantScan {
    /// A walk through the whole file.
    pub(super) fn begin(source: Arc<dyn Source>, options: &Options, front: Arc<Front>) -> Self {
        Self::at(source, options, front, TOC_START, None)
    }

    /// A walk from the entry at `entry` on, `left` entries being left.
    pub(super) fn at(
        source: Arc<dyn Source>,
        options: &Options,
        front: Arc<Front>,
        entry: u64,
        left: Option<u64>,
    ) -> Self {
        let left = left.unwrap_or(front.entries);
        let end = front.end();
        let data_start = front.toc_end.map(|end| end + COUNT_BYTES);
        Self {
            entries: front.from(options, entry, left),
            ahead: Ahead::new(front.from(options, entry, left)),
            next: None,
            before: None,
            end: data_start,
            last: None,
            probe: Probe::default(),
            limited: false,
            examined: 0,
            tried: Vec::new(),
            tried_partition: None,
            data: Window::default(),
            layout: Layout::new(end, front.len),
            ranges: Ranges::new(&front, end, end),
            gap: Gap::default(),
            part: None,
            open: None,
            checks: Checks::Unknown,
            tenant: None,
            fresh_tenant: false,
            messages: Vec::new(),
            tenants: Vec::new(),
            kept: Vec::new(),
            kept_bytes: 0,
            kept_partitions: Vec::new(),
            from: None,
            partial: false,
            portion: None,
            direct: false,
            given: 0,
            skip: 0,
            silent: false,
            wanted: Chosen::of(&options.wanted),
            options: options.clone(),
            source,
            front,
        }
    }

    /// The entry that comes next.
    pub(super) fn peek(&mut self) -> Result<Option<&Entry>> {
        if self.next.is_none() {
            self.next = self.entries.next(&*self.source)?;
        }
        Ok(self.next.as_ref())
    }

    /// Goes on behind the entry that came next.
    pub(super) fn pass(&mut self) {
        let Some(entry) = self.next.take() else {
            self.before = None;
            return;
        };
        self.before = Some(entry.partition);
        if let Some(progress) = &mut self.portion {
            progress.pass(entry.at, self.entries.left + 1);
        }
    }

    /// How many entries have been passed, as far as their number is right.
    fn passed(&self) -> u64 {
        self.front.entries.saturating_sub(self.entries.left)
    }

    /// Goes on by an entry, a block, or as many messages as a step has room for.
    fn go_on(&mut self) -> Result<Advance> {
        if self.passed().is_multiple_of(POLL_ENTRIES) {
            self.options.poll()?;
        }
        if self.open.is_some() {
            return self.give();
        }
        if self.part.is_some() {
            return self.next_block();
        }
        if self.front.refused {
            self.refuse();
            return Ok(Advance::End);
        }
        if self.direct {
            return self.advance_direct();
        }
        if self.front.version == VERSION_1 {
            self.advance_partition()
        } else {
            self.advance_block()
        }
    }

    /// The whole file is what its front makes of it.
    fn refuse(&mut self) {
        let len = self.front.len;
        let kind = layout::kind(self.front.broken, true);
        self.ranges
            .cover(len, kind, self.front.broken, Origin::None);
        if len == 0 {
            // The one range that is empty: a file written whole has at least its front.
            self.ranges.spans.push(Span {
                start: 0,
                end: 0,
                kind,
                cause: self.front.broken,
            });
        }
    }

    /// Whether what is there is enough for a step.
    fn is_crowded(&self) -> bool {
        let first = self.messages.first().map(|message| message.position);
        let reach = self.messages.last().map(|message| message.position);
        let bytes = reach
            .zip(first)
            .map_or(0, |(reach, first)| reach.saturating_sub(first));
        self.messages.len() >= LIMITS.tenant_step_rows
            || self.kept_bytes >= self.options.window_bytes
            || self.ranges.spans.len() >= LIMITS.tenant_step_spans
            || bytes >= self.options.window_bytes as u64
    }

    /// Whether as many messages were found as a step gives.
    pub(super) fn is_full(&self) -> bool {
        !self.messages.is_empty() && self.is_crowded()
    }

    /// Strict reading gives no range that is damaged.
    fn hide_damage(&mut self) {
        self.ranges.spans.retain(|span| !span.is_damage());
    }

    fn clear(&mut self) {
        self.messages.clear();
        self.tenants.clear();
        self.kept.clear();
        self.kept_bytes = 0;
        self.kept_partitions.clear();
        self.ranges.spans.clear();
    }

    /// Whether damage has shown itself that strict reading does not pass.
    fn is_damaged(&self) -> bool {
        let front = &self.front;
        let by_front = !self.partial
            && !self.direct
            && (front.broken.is_some() || !front.refused && ranges::front_is_damaged(front));
        by_front || self.ranges.is_damaged()
    }

    /// Gives ranges of the front, behind those of all that follows it.
    fn give_front(&mut self) -> Result<Advance> {
        Ok(match self.ranges.finish(&self.front)? {
            true => Advance::Full,
            false => Advance::End,
        })
    }

    /// Goes on to where it is known which damage is the first.
    fn fail(&mut self) -> Result<Advance> {
        self.silent = true;
        self.open = None;
        let begins_damaged = self.front.broken.is_some() && !self.partial;
        while !(begins_damaged && self.ranges.is_damaged()) && self.go_on()? != Advance::End {
            self.clear();
        }
        self.clear();
        // The one file with damage but no range of it is empty.
        let empty = Span {
            start: 0,
            end: 0,
            kind: Kind::Corrupt,
            cause: self.front.broken,
        };
        let first = self.ranges.first_damage(&self.front)?;
        let first = first.or(begins_damaged.then_some((empty, Origin::None)));
        let Some((span, origin)) = first else {
            return Err(self.changed());
        };
        let damage = self.explain(&span, origin)?;
        Err(Error::Damage(Box::new(damage)))
    }

    /// A good block was found.
    pub(super) fn note(&mut self, kept: impl FnOnce() -> Kept) {
        if !self.silent {
            let kept = kept();
            self.kept_bytes += kept.tenant.bytes().map_or(0, |bytes| bytes.len());
            self.kept.push(kept);
        }
    }

    pub(super) fn changed(&self) -> Error {
        Error::changed(self.source.path(), "it")
    }
}

impl Scan for TenantScan {
    type Rows<'a> = TenantRows<'a>;

    fn options(&self) -> &Options {
        &self.options
    }

    fn begin_step(&mut self) -> Result<()> {
        self.clear();
        Ok(())
    }

    fn advance(&mut self) -> Result<Advance> {
        if self.ranges.is_at_front() {
            return self.give_front();
        }
        let strict = self.options.strict;
        let mut advance = Advance::End;
        if !strict || !self.is_damaged() {
            advance = self.go_on()?;
        }
        if advance == Advance::On && self.is_crowded() {
            advance = Advance::Full;
        }
        if strict && advance != Advance::On {
            self.hide_damage();
        }
        if advance != Advance::End {
            return Ok(advance);
        }
        if strict && self.is_damaged() {
            // Good messages go first; the damage is met again then.
            return match self.messages.is_empty() {
                true => self.fail(),
                false => Ok(Advance::Full),
            };
        }
        match self.from {
            Some(from) => Err(no_message(from)),
            None => self.give_front(),
        }
    }

    fn finish(&mut self) {}

    fn has_found(&self) -> bool {
        !self.messages.is_empty() || !self.ranges.spans.is_empty() || !self.kept.is_empty()
    }

    /// What is enough makes an advance [`Advance::Full`].
    fn is_enough(&self) -> bool {
        false
    }

    fn rows(&self) -> TenantRows<'_> {
        let base = self.messages.first().map_or(0, |first| first.position);
        let bytes = if self.options.values {
            self.data.bytes(&*self.source, base)
        } else {
            &[]
        };
        TenantRows {
            base,
            bytes,
            messages: &self.messages,
            tenants: &self.tenants,
        }
    }

    fn spans(&self) -> &[Span] {
        &self.ranges.spans
    }

    fn front_end(&self) -> u64 {
        self.ranges.front_end()
    }

    fn checked(&self) -> Checked {
        if self.front.version == VERSION_1 {
            Checked::Structure
        } else {
            Checked::Checksum
        }
    }

    fn offset(&self, ended: bool) -> u64 {
        if ended {
            return self.front.len;
        }
        let open = self.open.as_ref().map(|open| open.position);
        open.unwrap_or(self.ranges.at()).min(self.front.len)
    }

    fn carry(&self, ended: bool) -> Carry {
        self.to_carry(ended)
    }
}
