//! The walk: parses a window, hashes many records together, commits the ones before the first failure, and
//! resynchronises from there.

use std::slice;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::committed::Committed;
use super::group::{Extent, Group, Input};
use super::judge::{Fault, Structure, is_zero, key_of, structure, unused, verdict};
use super::layout::{Header, MAX_HEADER_BYTES, UUID_BYTES, type_of};
use super::resync::{End, Resync, Resynced, Search};
use super::rows::{ActiveRows, Record};
use crate::bug::OrBug;
use crate::checksum::Key;
use crate::error::{Damage, Error, Finding, Result};
use crate::ledger::{Cause, Fate, Kind, RecordRun, Span};
use crate::limits::LIMITS;
use crate::record::{self, Rows};
use crate::saturating::saturating_usize;
use crate::source::{Bound, Source, Window, expected_len};
use crate::spec::{Types, UuidBounds};
use crate::walk::{Advance, Begin, Budget, Carry, Driver, Eof, Options, Scan};

/// The state in a [`Carry`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    /// The offset of the next record.
    at: u64,
    /// The last good UUID.
    last: Option<[u8; UUID_BYTES]>,
    /// Which key is the file's. Unknown until a record is verified under one of several.
    key: Option<usize>,
    /// Whether any record was verified.
    verified: bool,
    /// Bytes hashed in vain.
    budget: Budget,
    /// The batch limit: how many bytes may be hashed together after the next record. It is what was committed
    /// since the last failure. So a failure never wastes more hashing than what was good before it, and hostile
    /// files take linear time.
    batch_limit: u64,
    /// Damage up to `at` that may still grow.
    pending: Option<Span>,
    /// Whether nothing verifies although the structure is sound.
    #[serde(default)]
    suspects_key: bool,
}

/// Walks one active segment.
pub(crate) struct ActiveScan {
    source: Arc<dyn Source>,
    /// How far the records have to reach.
    bound: Option<Bound>,
    options: Options,
    bounds: UuidBounds,
    types: Types,
    state: State,
    search: Search,
    window: Window,
    committed: Committed,
    group: Group,
    /// The offset that the positions in the group are relative to.
    base: u64,
    /// The file's key, or the first of several while the file's is unknown.
    key: Key,
}

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
        ActiveScan::new(source, options, start).map(Self::new)
    }

    /// Begins a walk at `offset`. `last` is the last good UUID before it.
    pub(crate) fn from(
        source: Arc<dyn Source>,
        options: &Options,
        offset: u64,
        last: Option<[u8; UUID_BYTES]>,
    ) -> Result<Self> {
        let mut scan = ActiveScan::new(source, options, Begin::Offset(offset))?;
        scan.state.last = last;
        scan.state.verified = last.is_some();
        Ok(Self::new(scan))
    }
}

impl ActiveScan {
    fn new(source: Arc<dyn Source>, options: &Options, start: Begin<'_>) -> Result<Self> {
        let Some(first_key) = options.keys.first() else {
            return Err(Error::Usage(
                "no key was given: give at least one to verify records".to_owned(),
            ));
        };
        let key = (options.keys.len() == 1).then_some(0);
        let fresh = |at| State {
            at,
            last: None,
            key,
            verified: false,
            budget: Budget::default(),
            batch_limit: u64::MAX,
            pending: None,
            suspects_key: false,
        };
        let state = match start {
            // An active segment has one part, the whole.
            Begin::Beginning | Begin::Part(_) => fresh(0),
            Begin::Offset(offset) => fresh(offset),
            Begin::Carry(carry) => carry.state("an active segment")?,
        };
        let key = match state.key {
            Some(place) => options.keys.get(place),
            None => Some(first_key),
        };
        let Some(key) = key.filter(|_| state.at <= expected_len(&*source)) else {
            let message = format!(
                "cannot resume at offset {} in a file of {} bytes with these keys: give the same file and keys as before",
                state.at,
                source.len()
            );
            return Err(Error::Usage(message));
        };
        Ok(Self {
            key: *key,
            search: Search::default(),
            window: Window::default(),
            committed: Committed::resume(state.at, state.pending),
            group: Group::default(),
            base: 0,
            bounds: UuidBounds::of(&options.filter),
            types: Types::of(&options.filter),
            options: options.clone(),
            bound: source.bound(),
            source,
            state,
        })
    }

    /// A search of this file.
    fn resync(&mut self) -> Resync<'_> {
        Resync {
            source: &*self.source,
            options: &self.options,
            window: &self.window,
            search: &mut self.search,
            budget: &mut self.state.budget,
            keys: match self.state.key {
                Some(_) => slice::from_ref(&self.key),
                None => &self.options.keys,
            },
            last: self.state.last,
        }
    }

    /// The file's key, once a record was verified under it.
    pub(crate) const fn file_key(&self) -> Key {
        self.key
    }

    fn active_rows(&self) -> ActiveRows<'_> {
        ActiveRows {
            base: self.base,
            bytes: self.window.bytes(&*self.source, self.base),
            records: self.group.emitted(),
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
        let bytes = self.window.bytes(&*self.source, self.base);
        if self.state.key.is_none() {
            let first = self.group.first(bytes);
            match first.and_then(|first| key_of(&self.options.keys, first)) {
                Some((place, key)) => (self.state.key, self.key) = (Some(place), key),
                None => self.group.keep_first(),
            }
        }
        self.group.hash(&self.key, bytes);
    }

    /// Commits the whole group, if [`commit`](Self::commit) would commit and emit each of its records.
    fn commit_whole(&mut self) -> bool {
        let bytes = self.window.bytes(&*self.source, self.base);
        let uuid_at = |(offset, _): &Extent| bytes.get(*offset..)?.first_chunk::<UUID_BYTES>();
        let extents = self.group.extents();
        let (Some(first), Some(last)) = (
            extents.first().and_then(uuid_at),
            extents.last().and_then(uuid_at),
        ) else {
            return false;
        };
        let len = self.group.end() as u64;
        // The group is at least as long as each of its records.
        let too_large = self.options.values && len > self.options.record_bytes;
        // UUIDs ascend, so if the first and the last match, all between them do.
        let matches = self.bounds.contains(first) && self.bounds.contains(last);
        // A group that reaches over the bound is judged record by record.
        let is_other = self.other_last(self.base, self.base + len, *last).is_some();
        if !self.group.is_sound() || !matches || too_large || is_other {
            return false;
        }
        debug_assert!(
            {
                let left = self.source.len() - self.base;
                self.group
                    .is_judged_good(bytes, left, self.state.last, &self.key)
            },
            "a sound group has a record that judge refuses"
        );
        self.state.last = Some(*last);
        self.state.verified = true;
        self.state.suspects_key = false;
        self.state.batch_limit = self.state.batch_limit.saturating_add(len);
        self.state.at = self.base + len;
        if self.types.are_all() {
            self.committed.cover_run(self.base, extents);
            self.group.emit_all();
        } else {
            self.committed.cover_records(self.base, extents);
            let types = &self.types;
            self.group.emit_matching(|(offset, _)| {
                let record = bytes.get(*offset..);
                types.contain(type_of(record.or_bug_default("the record's bytes")))
            });
        }
        true
    }

    /// Commits the records of the group before the first whose checksum does not match.
    fn commit_group(&mut self) -> Result<Advance> {
        for index in 0..self.group.extents().len() {
            let ((offset, _), sums) = self.group.sums(index, self.key)?;
            let position = self.base + offset as u64;
            let bytes = self.window.bytes(&*self.source, position);
            let Structure::Record(header) = structure(bytes, self.source.len() - position) else {
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
            return self.damage(fault, header.total()).map(Some);
        }
        self.state.verified = true;
        self.state.suspects_key = false;
        let end = position + header.total();
        if let Err(fault) = verdict {
            if self.raises(position) {
                return self.after_rows(|walk| walk.damage_error(fault)).map(Some);
            }
            self.cover_damage(end, Kind::Corrupt, fault.cause());
        } else {
            if self.bounds.is_past(&header.uuid) {
                return Ok(Some(Advance::End));
            }
            let matches = self.bounds.contains(&header.uuid) && self.matches_type(position);
            if matches && self.options.values && header.total() > self.options.record_bytes {
                let too_large = |walk: &Self| walk.too_large(position, header);
                return self.after_rows(too_large).map(Some);
            }
            let other = self.other_last(position, end, header.uuid);
            if let Some(finding) = other.clone().filter(|_| self.options.strict) {
                let error = |walk: &Self| walk.damage_of(finding);
                return self.after_rows(error).map(Some);
            }
            // The record itself is sound, so it is kept.
            self.cover(end, Kind::Record, other.map(|other| other.cause()));
            self.state.last = Some(header.uuid);
            if matches {
                let offset = saturating_usize(position - self.base);
                self.group.emit((offset, saturating_usize(header.hashed())));
            }
        }
        self.state.batch_limit = self.state.batch_limit.saturating_add(header.total());
        Ok(None)
    }

    /// Fails, unless good records are still to be emitted. In that case the next step meets the same failure.
    fn after_rows(&self, error: impl FnOnce(&Self) -> Error) -> Result<Advance> {
        if self.group.emitted().is_empty() {
            Err(error(self))
        } else {
            Ok(Advance::On)
        }
    }

    /// Handles what is not a record that fits into the window.
    fn advance_singly(&mut self) -> Result<Advance> {
        let (at, len) = (self.state.at, self.source.len());
        let bytes = self.window.bytes(&*self.source, at);
        if is_zero(bytes) {
            let data_end = self.resync().data_end()?;
            if let Err(fault) = unused(at, data_end, len, self.bound) {
                return self.damage(fault, 0);
            }
            if self.options.eof == Eof::Growing {
                return Ok(Advance::Wait);
            }
            self.cover(len, Kind::Unused, None);
            return Ok(Advance::End);
        }
        match structure(bytes, len - at) {
            Structure::Bad(fault) => self.damage(fault, 0),
            Structure::Record(header) => self.advance_large(&header),
            // The window holds the longest header, or the end of the file.
            Structure::NeedMore => Err(self.changed()),
        }
    }

    /// Handles a record that is larger than the window. It is hashed in pieces, so that a false length costs no
    /// memory.
    fn advance_large(&mut self, header: &Header) -> Result<Advance> {
        let (at, total) = (self.state.at, header.total());
        let Ok(whole) = usize::try_from(total) else {
            return Err(self.too_large(at, header));
        };
        if total <= LIMITS.unverified_bytes {
            // At least a window, so that the buffer keeps its size.
            let want = self.options.window_bytes;
            self.window.load(&*self.source, at, whole, want)?;
            return Ok(Advance::On);
        }
        let (place, sums) = self.resync().sums(at, header)?;
        let verdict = verdict(header, &sums, self.state.last);
        if !matches!(verdict, Err(Fault::Checksum { .. })) {
            self.state.key.get_or_insert(place);
            self.key = sums.key;
            if self.options.values
                && self.bounds.contains(&header.uuid)
                && self.matches_type(at)
                && total <= self.options.record_bytes
            {
                // Loads and hashes the bytes again, so that exactly the hashed bytes are returned.
                self.window.load(&*self.source, at, whole, whole)?;
                let hashed = header.split(self.window.bytes(&*self.source, at));
                let is_same = |(body, _)| key_of(&[sums.key], (body, sums.stored)).is_some();
                if !hashed.is_some_and(is_same) {
                    return Err(self.changed());
                }
            }
        }
        Ok(self.commit(at, header, verdict)?.unwrap_or(Advance::On))
    }

    /// Handles damage at the next record. `hashed` is how many bytes were hashed to find it.
    fn damage(&mut self, fault: Fault, hashed: u64) -> Result<Advance> {
        let (at, len, cause) = (self.state.at, self.source.len(), fault.cause());
        if at == 0 && cause == Cause::ChecksumMismatch {
            self.state.suspects_key = self.resync().nothing_verifies()?;
        }
        // Where the file is cut, only a search tells whether this record is, or has a wrong length.
        let cut = self.cut_at(at).filter(|_| fault.is_cut());
        if self.raises(at) && self.options.eof == Eof::Final && cut.is_none() {
            return Err(self.damage_error(fault));
        }
        let budget = self.state.budget;
        self.state.budget.spend(hashed);
        self.state.batch_limit = 0;
        let Resynced { end: found, proven } = self.resync().end(at)?;
        if proven {
            self.state.verified = true;
            self.state.suspects_key = false;
        }
        match found {
            End::Followed(end) | End::Limit(end) => {
                if self.raises(at) {
                    return Err(self.damage_error(fault));
                }
                self.cover_damage(end, Kind::Corrupt, cause);
                if let End::Limit(_) = found {
                    self.cover_damage(len, Kind::Corrupt, Cause::SearchLimit);
                }
            }
            End::Lengths(end) | End::Nothing(end) => {
                if self.options.eof == Eof::Growing {
                    self.state.budget = budget;
                    return Ok(Advance::Wait);
                }
                if let Some(cut) = cut.filter(|_| self.raises(at)) {
                    return Err(self.damage_error(cut));
                }
                // What was synced is no interrupted write, and its zeros are no unused space.
                let bound = self.bound.filter(|bound| at < bound.offset);
                let fate = match proven || bound.is_some() {
                    true => Fate::Corrupt,
                    false => Fate::of_tail(self.state.verified),
                };
                let end = bound.map_or(end, |bound| end.max(bound.offset.min(len)));
                let cause = match cut {
                    Some(cut) => cut.cause(),
                    None => cause,
                };
                self.cover_damage(end, fate.kind(cause), cause);
                if let End::Nothing(_) = found {
                    self.cover(len, Kind::Unused, None);
                }
            }
        }
        Ok(Advance::On)
    }

    /// Whether the type of the record at `position` matches the filter. Its header is in the window.
    fn matches_type(&self, position: u64) -> bool {
        let bytes = self.window.bytes(&*self.source, position);
        self.types.contain(type_of(bytes))
    }

    /// Whether damage that begins at this offset ends the walk.
    fn raises(&self, at: u64) -> bool {
        self.options.strict && self.counts(at)
    }

    /// Whether what is wrong at this offset is damage.
    fn counts(&self, at: u64) -> bool {
        self.bound.is_none_or(|bound| bound.counts(at))
    }

    /// The fault of what is missing from this offset on, if the file ends before what it has to reach.
    fn cut_at(&self, at: u64) -> Option<Fault> {
        let len = self.source.len();
        let is_cut = |bound: &Bound| at < bound.offset && len < bound.offset;
        let bound = self.bound.filter(is_cut)?;
        Some(Fault::Cut { bound, len })
    }

    /// What is wrong with the records from `start` to `end`, the last of which has this UUID, if they reach the bound: there the
    /// last one is known.
    fn other_last(&self, start: u64, end: u64, last: [u8; UUID_BYTES]) -> Option<Finding> {
        let reaches = |bound: &Bound| start < bound.offset && bound.offset <= end;
        self.bound.filter(reaches)?.other_last(last)
    }

    /// Goes on where the file ends: what it lacks of what it has to reach is damage.
    fn at_end(&mut self) -> Result<Advance> {
        let cut = self.cut_at(self.state.at);
        let (Some(fault), Eof::Final) = (cut, self.options.eof) else {
            return Ok(self.options.eof.reached());
        };
        if self.options.strict {
            return Err(self.damage_error(fault));
        }
        self.cover(
            expected_len(&*self.source),
            Kind::Corrupt,
            Some(fault.cause()),
        );
        Ok(Advance::On)
    }

    fn cover_damage(&mut self, end: u64, kind: Kind, cause: Cause) {
        match self.counts(self.state.at) {
            true => self.cover(end, kind, Some(cause)),
            false => self.cover(end, Kind::Unproven, None),
        }
    }

    fn cover(&mut self, end: u64, kind: Kind, cause: Option<Cause>) {
        self.committed.cover(end, kind, cause);
        self.state.at = end.max(self.state.at);
    }

    fn damage_error(&self, fault: Fault) -> Error {
        self.damage_of(fault.finding())
    }

    fn damage_of(&self, finding: Finding) -> Error {
        Error::Damage(Box::new(Damage {
            wrong_key: self.state.suspects_key,
            ..Damage::new(self.source.path(), self.state.at, finding)
        }))
    }

    fn too_large(&self, position: u64, header: &Header) -> Error {
        Error::record_too_large(
            self.source.path(),
            format!("the record at offset {position}"),
            header.total(),
            self.options.record_bytes,
        )
    }

    fn changed(&self) -> Error {
        let what = format!("the record at offset {}", self.state.at);
        Error::changed(self.source.path(), &what)
    }
}

impl Scan for ActiveScan {
    type Rows<'a> = ActiveRows<'a>;

    fn options(&self) -> &Options {
        &self.options
    }

    fn begin_step(&mut self) -> Result<()> {
        self.group.emit_none();
        self.committed.clear();
        Ok(())
    }

    fn advance(&mut self) -> Result<Advance> {
        let (at, len) = (self.state.at, self.source.len());
        if at >= len {
            return self.at_end();
        }
        let header_bytes = saturating_usize(len - at).min(MAX_HEADER_BYTES);
        self.window
            .load(&*self.source, at, header_bytes, self.options.window_bytes)?;
        self.group.parse(&Input {
            bytes: self.window.bytes(&*self.source, at),
            left: len - at,
            limit: self.state.batch_limit.min(self.options.window_bytes as u64),
            last: self.state.last,
        });
        self.base = at;
        if self.group.extents().is_empty() {
            return self.advance_singly();
        }
        self.hash_group();
        if self.commit_whole() {
            return Ok(Advance::On);
        }
        self.commit_group()
    }

    fn finish(&mut self) {
        self.committed.finish();
    }

    fn has_found(&self) -> bool {
        !self.group.emitted().is_empty() || !self.committed.is_empty()
    }

    fn rows(&self) -> ActiveRows<'_> {
        self.active_rows()
    }

    fn spans(&self) -> &[Span] {
        self.committed.spans(self.base, self.group.extents())
    }

    fn record_run(&self) -> Option<RecordRun> {
        self.committed.run()
    }

    fn checked(&self) -> record::Checked {
        record::Checked::Checksum
    }

    fn offset(&self, _: bool) -> u64 {
        self.state.at
    }

    fn carry(&self, _: bool) -> Option<Carry> {
        Some(Carry::of(&State {
            pending: self.committed.pending(),
            ..self.state.clone()
        }))
    }

    fn suspects_key(&self) -> bool {
        self.state.suspects_key
    }
}
