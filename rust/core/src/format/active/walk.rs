//! The walk: parses a window, hashes many records together, commits the ones before the first failure, and
//! resynchronises from there.

use std::slice;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::group::{ActiveRows, Extent, Group, Input, Record, end_of};
use super::judge::{Fault, Structure, is_zero, key_of, structure, unused, verdict};
use super::layout::{Header, MAX_HEADER_BYTES, UUID_BYTES, type_of};
use super::resync::{End, Resync, Resynced, Search};
use crate::bug::OrBug;
use crate::checksum::Key;
use crate::error::{Error, Finding, Result};
use crate::ledger::{Fate, Kind, RecordRun, Span, Tiling};
use crate::limits::LIMITS;
use crate::record::{Checked, Rows};
use crate::saturating::saturating_usize;
use crate::source::{Bound, Source, expected_len};
use crate::spec::{Types, UuidBounds};
use crate::walk::stream::{self, Point, Stream, Unit};
use crate::walk::{Advance, Begin, Driver, Options};

/// What a [`Carry`](crate::walk::Carry) has of an active segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// The last good UUID.
    last: Option<[u8; UUID_BYTES]>,
    /// Which key is the file's. Unknown until a record is verified under one of several.
    key: Option<usize>,
    /// Whether any record was verified.
    verified: bool,
    /// The batch limit: how many bytes may be hashed together after the next record. It is what was committed
    /// since the last failure. So a failure never wastes more hashing than what was good before it, and hostile
    /// files take linear time.
    batch_limit: u64,
    /// Whether nothing verifies although the structure is sound.
    suspects_key: bool,
}

/// The records of one active segment.
pub(crate) struct Active {
    bounds: UuidBounds,
    types: Types,
    search: Search,
    group: Group,
    /// The records that a step committed, if they are a whole group, as they nearly always are. Their ranges are made only on request.
    run: Option<RecordRun>,
    run_spans: OnceLock<Vec<Span>>,
    /// The file's key, or the first of several while the file's is unknown.
    key: Key,
}

type ActiveScan = Stream<Active>;

/// Walks one active segment.
pub(crate) type ActiveWalk = Driver<ActiveScan>;

impl ActiveWalk {
    /// Begins a walk of a file.
    ///
    /// # Errors
    /// [`Error::Usage`] if the start is not valid for this file.
    pub(crate) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        start: Begin<'_>,
    ) -> Result<Self> {
        ActiveScan::open(source, options, start).map(Self::new)
    }

    /// Begins a walk at `offset`. `last` is the last good UUID before it.
    pub(crate) fn from(
        source: Arc<dyn Source>,
        options: &Options,
        offset: u64,
        last: Option<[u8; UUID_BYTES]>,
    ) -> Result<Self> {
        let mut scan = ActiveScan::open(source, options, Begin::Offset(offset))?;
        scan.state.last = last;
        scan.state.verified = last.is_some();
        Ok(Self::new(scan))
    }
}

impl ActiveScan {
    fn open(source: Arc<dyn Source>, options: &Options, begin: Begin<'_>) -> Result<Self> {
        let Some(first_key) = options.keys.first() else {
            return Err(Error::Usage(
                "no key was given: give at least one to verify records".to_owned(),
            ));
        };
        let state = State {
            last: None,
            key: (options.keys.len() == 1).then_some(0),
            verified: false,
            batch_limit: u64::MAX,
            suspects_key: false,
        };
        let point = Point::of(begin, Active::FILE, state)?;
        let key = match point.state.key {
            Some(place) => options.keys.get(place),
            None => Some(first_key),
        };
        let Some(key) = key.filter(|_| point.at <= expected_len(&*source)) else {
            let message = format!(
                "cannot resume at offset {} in a file of {} bytes with these keys: give the same file and keys as before",
                point.at,
                source.len()
            );
            return Err(Error::Usage(message));
        };
        let unit = Active {
            bounds: UuidBounds::of(&options.filter),
            types: Types::of(&options.filter),
            search: Search::default(),
            group: Group::default(),
            run: None,
            run_spans: OnceLock::new(),
            key: *key,
        };
        Self::new(source, options, point, unit)
    }

    /// A search of this file.
    fn resync(&mut self) -> Resync<'_> {
        Resync {
            input: &self.input,
            search: &mut self.unit.search,
            budget: &mut self.budget,
            keys: match self.state.key {
                Some(_) => slice::from_ref(&self.unit.key),
                None => &self.input.options.keys,
            },
            last: self.state.last,
        }
    }

    /// The file's key, once a record was verified under it.
    pub(crate) const fn file_key(&self) -> Key {
        self.unit.key
    }

    fn active_rows(&self) -> ActiveRows<'_> {
        ActiveRows {
            base: self.base,
            bytes: self.input.bytes(self.base),
            records: self.unit.group.emitted(),
        }
    }

    /// Calls `take` with each record of the last step and its stored checksum.
    ///
    /// # Errors
    /// The errors of `take`.
    pub(crate) fn each_record(&self, mut take: impl FnMut(Record<'_>) -> Result<()>) -> Result<()> {
        let rows = self.active_rows();
        (0..rows.len()).try_for_each(|row| take(rows.stored_record(row)))
    }

    fn hash_group(&mut self) {
        let bytes = self.input.bytes(self.base);
        if self.state.key.is_none() {
            let first = self.unit.group.first(bytes);
            match first.and_then(|first| key_of(&self.input.options.keys, first)) {
                Some((place, key)) => (self.state.key, self.unit.key) = (Some(place), key),
                None => self.unit.group.keep_first(),
            }
        }
        self.unit.group.hash(&self.unit.key, bytes);
    }

    /// Commits the whole group, if [`commit`](Self::commit) would commit and emit each of its records.
    fn commit_whole(&mut self) -> bool {
        let bytes = self.input.bytes(self.base);
        let uuid_at = |(offset, _): &Extent| bytes.get(*offset..)?.first_chunk::<UUID_BYTES>();
        let extents = self.unit.group.extents();
        let (Some(first), Some(last)) = (
            extents.first().and_then(uuid_at),
            extents.last().and_then(uuid_at),
        ) else {
            return false;
        };
        let len = self.unit.group.end() as u64;
        // The group is at least as long as each of its records.
        let too_large = self.input.options.values && len > self.input.options.record_bytes;
        // UUIDs ascend, so if the first and the last match, all between them do.
        let matches = self.unit.bounds.contains(first) && self.unit.bounds.contains(last);
        // A group that reaches over the bound is judged record by record.
        let is_other = self.other_last(self.base, self.base + len, *last).is_some();
        if !self.unit.group.is_sound() || !matches || too_large || is_other {
            return false;
        }
        debug_assert!(
            {
                let left = self.input.len() - self.base;
                self.unit
                    .group
                    .is_judged_good(bytes, left, self.state.last, &self.unit.key)
            },
            "a sound group has a record that judge refuses"
        );
        self.state.last = Some(*last);
        self.state.verified = true;
        self.state.suspects_key = false;
        self.state.batch_limit = self.state.batch_limit.saturating_add(len);
        if self.unit.types.are_all() {
            let records = extents.len() as u64;
            self.unit.run = self.tiling.cover_run(self.base + len, records);
            if self.unit.run.is_none() {
                self.tiling
                    .cover_records(ends(self.base, extents), &mut self.spans);
            }
            self.unit.group.emit_all();
        } else {
            self.tiling
                .cover_records(ends(self.base, extents), &mut self.spans);
            let types = &self.unit.types;
            self.unit.group.emit_matching(|(offset, _)| {
                let record = bytes.get(*offset..);
                types.contain(type_of(record.or_bug_default("the record's bytes")))
            });
        }
        true
    }

    /// Commits the records of the group before the first whose checksum does not match.
    fn commit_group(&mut self) -> Result<Advance> {
        for index in 0..self.unit.group.extents().len() {
            let ((offset, _), sums) = self.unit.group.sums(index, self.unit.key)?;
            let position = self.base + offset as u64;
            let bytes = self.input.bytes(position);
            let Structure::Record(header) = structure(bytes, self.input.len() - position) else {
                // The record was parsed from these bytes, so they are a map of a file that is being written to.
                return Err(self.changed());
            };
            let verdict = verdict(&header, &sums, self.state.last);
            if index > 0 && matches!(verdict, Err(Fault::Checksum { .. })) {
                // The next step meets it again, first and alone, after the good records before it are emitted.
                self.state.batch_limit = 0;
                return Ok(Advance::On);
            }
            if let Some(stop) = self.commit(position, &header, verdict)? {
                return Ok(stop);
            }
        }
        Ok(Advance::On)
    }

    /// Commits one judged record. Returns how the advance ends, if it ends with this record.
    fn commit(
        &mut self,
        position: u64,
        header: &Header,
        verdict: std::result::Result<(), Fault>,
    ) -> Result<Option<Advance>> {
        if let Err(fault @ Fault::Checksum { .. }) = verdict {
            if position == 0 {
                self.state.suspects_key = self.resync().nothing_verifies()?;
            }
            return self.damage(&fault).map(Some);
        }
        self.state.verified = true;
        self.state.suspects_key = false;
        let end = position + header.total();
        if let Err(fault) = verdict {
            if self.input.raises(position) {
                return self
                    .after_rows(|walk| walk.damage_error(fault.into()))
                    .map(Some);
            }
            self.cover_damage(end, Kind::Corrupt, fault.cause());
        } else {
            if self.unit.bounds.is_past(&header.uuid) {
                return Ok(Some(Advance::End));
            }
            let matches = self.unit.bounds.contains(&header.uuid) && self.matches_type(position);
            if matches
                && self.input.options.values
                && header.total() > self.input.options.record_bytes
            {
                let too_large = |walk: &Self| walk.too_large(header.total());
                return self.after_rows(too_large).map(Some);
            }
            let other = self.other_last(position, end, header.uuid);
            if let Some(finding) = other.clone().filter(|_| self.input.options.strict) {
                let error = |walk: &Self| walk.damage_error(finding);
                return self.after_rows(error).map(Some);
            }
            // The record itself is sound, so it is kept.
            self.cover(end, Kind::Record, other.map(|other| other.cause()));
            self.state.last = Some(header.uuid);
            if matches {
                let offset = saturating_usize(position - self.base);
                self.unit
                    .group
                    .emit((offset, saturating_usize(header.hashed())));
            }
        }
        self.state.batch_limit = self.state.batch_limit.saturating_add(header.total());
        Ok(None)
    }

    /// Fails, unless good records are still to be emitted. In that case the next step meets the same failure.
    fn after_rows(&self, error: impl FnOnce(&Self) -> Error) -> Result<Advance> {
        if self.unit.group.emitted().is_empty() {
            Err(error(self))
        } else {
            Ok(Advance::On)
        }
    }

    /// Handles what is not a record that fits into the window.
    fn advance_singly(&mut self) -> Result<Advance> {
        let (at, len) = (self.at(), self.input.len());
        let bytes = self.input.bytes(at);
        if is_zero(bytes) {
            let data_end = self.input.data_end()?;
            if let Err(fault) = unused(at, data_end, len, self.input.bound) {
                return self.damage(&fault);
            }
            if self.input.is_growing() {
                return Ok(Advance::Wait);
            }
            self.cover(len, Kind::Unused, None);
            return Ok(Advance::End);
        }
        match structure(bytes, len - at) {
            Structure::Bad(fault) => self.damage(&fault),
            Structure::Record(header) => self.advance_large(&header),
            // The window holds the longest header, or the end of the file.
            Structure::NeedMore => Err(self.changed()),
        }
    }

    /// Handles a record that is larger than the window. It is hashed in pieces, so that a false length costs no
    /// memory.
    fn advance_large(&mut self, header: &Header) -> Result<Advance> {
        let (at, total) = (self.at(), header.total());
        let Ok(whole) = usize::try_from(total) else {
            return Err(self.too_large(total));
        };
        if total <= LIMITS.unverified_bytes {
            // At least a window, so that the buffer keeps its size.
            self.input.load(at, whole)?;
            return Ok(Advance::On);
        }
        let (place, sums) = self.resync().sums(at, header)?;
        let verdict = verdict(header, &sums, self.state.last);
        if !matches!(verdict, Err(Fault::Checksum { .. })) {
            self.state.key.get_or_insert(place);
            self.unit.key = sums.key;
            if self.input.options.values
                && self.unit.bounds.contains(&header.uuid)
                && self.matches_type(at)
                && total <= self.input.options.record_bytes
            {
                // Loads and hashes the bytes again, so that exactly the hashed bytes are returned.
                self.input
                    .window
                    .load(&*self.input.source, at, whole, whole)?;
                let hashed = header.split(self.input.bytes(at));
                let is_same = |(body, _)| key_of(&[sums.key], (body, sums.stored)).is_some();
                if !hashed.is_some_and(is_same) {
                    return Err(self.changed());
                }
            }
        }
        Ok(self.commit(at, header, verdict)?.unwrap_or(Advance::On))
    }

    /// Whether the type of the record at `position` matches the filter. Its header is in the window.
    fn matches_type(&self, position: u64) -> bool {
        let bytes = self.input.bytes(position);
        self.unit.types.contain(type_of(bytes))
    }

    /// What is wrong with the records from `start` to `end`, the last of which has this UUID, if they reach the bound: there the
    /// last one is known.
    fn other_last(&self, start: u64, end: u64, last: [u8; UUID_BYTES]) -> Option<Finding> {
        let reaches = |bound: &Bound| start < bound.offset && bound.offset <= end;
        self.input.bound.filter(reaches)?.other_last(last)
    }
}

/// Where records end. Their positions are relative to `base`.
fn ends(base: u64, records: &[Extent]) -> impl Iterator<Item = u64> {
    let end = move |record| base + end_of(record) as u64;
    records.iter().map(end)
}

impl Unit for Active {
    type State = State;
    /// They are in the group.
    type Record = ();
    type Fault = Fault;
    type Rows<'a> = ActiveRows<'a>;

    const FILE: &'static str = "an active segment";
    const NAME: &'static str = "record";
    const CHECKED: Checked = Checked::Checksum;

    fn advance(scan: &mut ActiveScan) -> Result<Advance> {
        let (at, len) = (scan.at(), scan.input.len());
        if at >= len {
            return scan.at_end();
        }
        let header_bytes = saturating_usize(len - at).min(MAX_HEADER_BYTES);
        let input = &mut scan.input;
        let want = input.options.window_bytes;
        input.window.load(&*input.source, at, header_bytes, want)?;
        scan.unit.group.parse(&Input {
            bytes: scan.input.bytes(at),
            left: len - at,
            limit: scan
                .state
                .batch_limit
                .min(scan.input.options.window_bytes as u64),
            last: scan.state.last,
        });
        scan.base = at;
        if scan.unit.group.extents().is_empty() {
            return scan.advance_singly();
        }
        scan.hash_group();
        if scan.commit_whole() {
            return Ok(Advance::On);
        }
        scan.commit_group()
    }

    fn end(scan: &mut ActiveScan, fault: &Fault) -> Result<stream::End> {
        let (at, left) = (scan.at(), scan.input.len() - scan.at());
        if let (Fault::Checksum { .. }, Structure::Record(header)) =
            (fault, structure(scan.input.bytes(at), left))
        {
            scan.budget.spend(header.total());
        }
        scan.state.batch_limit = 0;
        let Resynced { end, proven } = scan.resync().end(at)?;
        if proven {
            scan.state.verified = true;
            scan.state.suspects_key = false;
        }
        let fate = match proven {
            true => Fate::Corrupt,
            false => Fate::of_tail(scan.state.verified),
        };
        Ok(match end {
            End::Followed(end) => stream::End::Followed(end),
            End::Lengths(end) => stream::End::Last(end, fate),
            End::Nothing(_) => stream::End::Nothing(fate),
            End::Limit(end) => stream::End::Limit(end),
        })
    }

    fn begin_step(&mut self) -> Result<()> {
        self.group.emit_none();
        self.run = None;
        self.run_spans.take();
        Ok(())
    }

    fn spans(scan: &ActiveScan) -> &[Span] {
        let Some(run) = scan.unit.run else {
            return &scan.spans;
        };
        scan.unit.run_spans.get_or_init(|| {
            let records = scan.unit.group.extents();
            let mut spans = Vec::with_capacity(records.len());
            Tiling::resume(run.start, None).cover_records(ends(scan.base, records), &mut spans);
            spans
        })
    }

    fn record_run(&self) -> Option<RecordRun> {
        self.run
    }

    fn suspects_key(state: &State) -> bool {
        state.suspects_key
    }

    fn rows(scan: &ActiveScan) -> ActiveRows<'_> {
        scan.active_rows()
    }
}
