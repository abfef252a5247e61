//! The walk: a group of records at once where all are sound, else record by record.

use std::ops::Range;
use std::slice;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::group::{self, ActiveRows, Extent, Group, Record, end_of};
use super::judge::{Fault, is_zero, record, structure, unused, verdict};
use super::layout::{Header, MAX_HEADER_BYTES, UUID_BYTES, type_of};
use crate::bug::OrBug;
use crate::checksum::Key;
use crate::error::{Error, Finding, Result};
use crate::ledger::{Kind, RecordRun, Span, Tiling};
use crate::limits::LIMITS;
use crate::record::{Checked, Rows};
use crate::saturating::saturating_usize;
use crate::source::{Bound, Source, expected_len};
use crate::spec::{Types, UuidBounds};
use crate::walk::stream::{End, Framed, Point, Stop, Stream, Unit};
use crate::walk::{Advance, Begin, Driver, Options};

/// What a [`Carry`](crate::walk::Carry) has of an active segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// The last good UUID.
    pub(super) last: Option<[u8; UUID_BYTES]>,
    /// Which key is the file's. Unknown until a record is verified under one of several.
    key: Option<usize>,
    /// Whether any record was verified.
    pub(super) verified: bool,
    /// The batch limit: how many bytes may be hashed together after the next record. It is what was committed
    /// since the last failure. So a failure never wastes more hashing than what was good before it, and hostile
    /// files take linear time.
    batch_limit: u64,
    /// Whether nothing verifies although the structure is sound.
    pub(super) suspects_key: bool,
}

/// The records of one active segment.
pub(crate) struct Active {
    bounds: UuidBounds,
    types: Types,
    group: Group,
    /// The records that a step took, if they are a whole group, as they nearly always are. Their ranges are made only on request.
    run: Option<RecordRun>,
    run_spans: OnceLock<Vec<Span>>,
    /// The file's key, or the first of several while the file's is unknown.
    key: Key,
}

pub(super) type ActiveScan = Stream<Active>;

/// Walks one active segment.
pub(crate) type ActiveWalk = Driver<ActiveScan>;

impl ActiveWalk {
    /// Begins a walk at `offset`. `last` is the last good UUID before it.
    pub(crate) fn from(
        source: Arc<dyn Source>,
        options: &Options,
        offset: u64,
        last: Option<[u8; UUID_BYTES]>,
    ) -> Result<Self> {
        let mut walk = Self::open(source, options, Begin::Offset(offset))?;
        let state = &mut walk.scan_mut().state;
        (state.last, state.verified) = (last, last.is_some());
        Ok(walk)
    }

    /// Begins a walk of a file.
    ///
    /// # Errors
    /// [`Error::Usage`] if the start is not valid for this file.
    pub(crate) fn open(
        source: Arc<dyn Source>,
        options: &Options,
        begin: Begin<'_>,
    ) -> Result<Self> {
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
            group: Group::default(),
            run: None,
            run_spans: OnceLock::new(),
            key: *key,
        };
        Stream::new(source, options, point, unit).map(Self::new)
    }
}

impl ActiveScan {
    /// The keys that a record may be under: the file's key, or all of them while it is unknown.
    pub(super) fn keys(&self) -> &[Key] {
        match self.state.key {
            Some(_) => slice::from_ref(&self.unit.key),
            None => &self.input.options.keys,
        }
    }

    /// The file's key, once a record was verified under it.
    pub(crate) const fn file_key(&self) -> Key {
        self.unit.key
    }

    /// Calls `take` with each record of the last step and its stored checksum.
    ///
    /// # Errors
    /// The errors of `take`.
    pub(crate) fn each_record(&self, mut take: impl FnMut(Record<'_>) -> Result<()>) -> Result<()> {
        let rows = Active::rows(self);
        (0..rows.len()).try_for_each(|row| take(rows.stored_record(row)))
    }

    /// Takes the records that follow each other here together. `None` if they have to be judged one by one: a checksum does not match, the
    /// file's key is unknown, or they reach a limit, the bound or the end of what is wanted.
    fn take_group(&mut self) -> Option<Advance> {
        let (at, left) = (self.at(), self.input.len() - self.at());
        let Self { input, state, .. } = self;
        if state.key.is_none() || state.batch_limit == 0 {
            return None;
        }
        let (bytes, options) = (input.bytes(at), &input.options);
        let group = &mut self.unit.group;
        group.parse(&group::Input {
            bytes,
            left,
            limit: state.batch_limit.min(options.window_bytes as u64),
            last: state.last,
        });
        let (extents, len) = (group.extents(), group.end() as u64);
        let uuid_at = |(offset, _): &Extent| bytes.get(*offset..)?.first_chunk::<UUID_BYTES>();
        let (first, last) = (uuid_at(extents.first()?)?, *uuid_at(extents.last()?)?);
        // The group is at least as long as each of its records, and UUIDs ascend.
        let is_too_large = options.values && len > options.record_bytes;
        let (bounds, types, key) = (&self.unit.bounds, &self.unit.types, &self.unit.key);
        let ends_early = bounds.is_past(&last) || reaches(input.bound, at..at + len).is_some();
        if is_too_large || ends_early || !group.is_sound(key, bytes) {
            return None;
        }
        debug_assert!(
            group.is_judged_good(bytes, left, state.last, key),
            "a sound group has a record that judge refuses"
        );
        let extents = group.extents();
        (state.verified, state.suspects_key) = (true, false);
        state.last = Some(last);
        state.batch_limit = state.batch_limit.saturating_add(len);
        if bounds.contains(first) && types.are_all() {
            self.records.extend_from_slice(extents);
            self.unit.run = self.tiling.cover_run(at + len, extents.len() as u64);
        } else {
            let matches = |extent: &&Extent| {
                let record = bytes.get(extent.0..).or_bug_default("the record's bytes");
                uuid_at(extent).is_some_and(|uuid| bounds.contains(uuid))
                    && types.contain(type_of(record))
            };
            self.records.extend(extents.iter().filter(matches));
        }
        if self.unit.run.is_none() {
            self.tiling
                .cover_records(ends(at, extents), &mut self.spans);
        }
        Some(Advance::On)
    }

    /// Goes on where the unused space begins, or damage that looks like it.
    fn take_unused(&mut self) -> Result<Advance> {
        let (at, len) = (self.at(), self.input.len());
        let data_end = self.input.data_end()?;
        if let Err(fault) = unused(at, data_end, len, self.input.bound) {
            return self.damage(&fault);
        }
        if self.input.is_growing() {
            return Ok(Advance::Wait);
        }
        self.cover(len, Kind::Unused, None);
        Ok(Advance::End)
    }
}

/// The bound, if bytes of this range are the last before it: there the last record is known.
fn reaches(bound: Option<Bound>, range: Range<u64>) -> Option<Bound> {
    bound.filter(|bound| range.start < bound.offset && bound.offset <= range.end)
}

/// Where records end. Their positions are relative to `base`.
fn ends(base: u64, records: &[Extent]) -> impl Iterator<Item = u64> {
    let end = move |record| base + end_of(record) as u64;
    records.iter().map(end)
}

impl Unit for Active {
    type State = State;
    type Record = Extent;
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
        scan.base = at;
        let header_bytes = saturating_usize(len - at).min(MAX_HEADER_BYTES);
        if is_zero(scan.input.load(at, header_bytes)?) {
            return scan.take_unused();
        }
        match scan.take_group() {
            Some(advance) => Ok(advance),
            None => scan.advance_until(u64::MAX),
        }
    }

    fn end(scan: &mut ActiveScan, fault: &Fault) -> Result<End> {
        let at = scan.at();
        let header = record(scan.input.bytes(at), scan.input.len() - at);
        match (fault, header) {
            // Only the record itself is in doubt.
            (Fault::BadUuid { .. } | Fault::OutOfOrder { .. }, Some(header)) => {
                return Ok(End::Followed(at + header.total()));
            }
            (Fault::Checksum { .. }, Some(header)) => scan.budget.spend(header.total()),
            _ => {}
        }
        scan.state.batch_limit = 0;
        scan.end_of_damage(at)
    }

    fn begin_step(&mut self) -> Result<()> {
        self.run = None;
        self.run_spans.take();
        Ok(())
    }

    fn spans(scan: &ActiveScan) -> &[Span] {
        let Some(run) = scan.unit.run else {
            return &scan.spans;
        };
        scan.unit.run_spans.get_or_init(|| {
            let mut spans = Vec::with_capacity(scan.records.len());
            let ends = ends(scan.base, &scan.records);
            Tiling::resume(run.start, None).cover_records(ends, &mut spans);
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
        ActiveRows {
            base: scan.base,
            bytes: scan.input.bytes(scan.base),
            records: &scan.records,
        }
    }
}

impl Framed for Active {
    type Header = Header;

    const HEADER_BYTES: usize = MAX_HEADER_BYTES;

    fn header(bytes: &[u8], left: u64) -> std::result::Result<Option<Header>, Fault> {
        match structure(bytes, left)? {
            // Unused space, which only a step that begins there looks at.
            Some(Header { uuid, .. }) if uuid == [0; UUID_BYTES] => Err(Fault::BadUuid { uuid }),
            header => Ok(header),
        }
    }

    fn total(header: Header) -> u64 {
        header.total()
    }

    fn is_loaded(_: &Options, header: Header) -> bool {
        header.total() <= LIMITS.unverified_bytes
    }

    fn judge(scan: &mut ActiveScan, header: Header) -> std::result::Result<(), Stop<Fault>> {
        let at = scan.at();
        let (place, sums) = scan.sums(at, &header)?;
        let verdict = verdict(&header, &sums, scan.state.last);
        if let Err(Fault::Checksum { .. }) = verdict {
            scan.state.batch_limit = 0;
            if at == 0 {
                scan.state.suspects_key = scan.nothing_verifies()?;
            }
        } else {
            scan.state.key.get_or_insert(place);
            scan.unit.key = sums.key;
            (scan.state.verified, scan.state.suspects_key) = (true, false);
        }
        verdict.map_err(|fault| Stop::Fault(Box::new(fault)))?;
        if scan.unit.bounds.is_past(&header.uuid) {
            return Err(Stop::Past);
        }
        let offset = saturating_usize(at - scan.base);
        scan.records
            .push((offset, saturating_usize(header.hashed())));
        Ok(())
    }

    fn matches(scan: &ActiveScan, header: Header) -> bool {
        let bytes = scan.input.bytes(scan.at());
        scan.unit.bounds.contains(&header.uuid) && scan.unit.types.contain(type_of(bytes))
    }

    fn flaw(scan: &ActiveScan, header: Header) -> Option<Finding> {
        let range = scan.at()..scan.at() + header.total();
        reaches(scan.input.bound, range)?.other_last(header.uuid)
    }

    fn commit(scan: &mut ActiveScan, header: Header) -> Result<()> {
        scan.state.last = Some(header.uuid);
        scan.state.batch_limit = scan.state.batch_limit.saturating_add(header.total());
        Ok(())
    }
}
