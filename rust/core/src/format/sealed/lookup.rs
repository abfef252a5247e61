//! Finds messages by UUID, ranges of them, and one by its number, without reading the rest.

use std::collections::BTreeMap;
use std::iter::repeat;
use std::sync::{Arc, Mutex};

use super::check::Checker;
use super::front::Segment;
use super::group::Group;
use super::layout::{Entry, UUID_BYTES};
use super::proof::{Answer, IndexProof};
use super::reader::Reader;
use super::rows::FoundMessages;
use super::trailer::Trailer;
use super::walk::{ScanState, SealedScan};
use crate::bug::OrBug;
use crate::engine::position::{Extent, Numbered};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::private::Sealed;
use crate::record::{Checked, RecordId};
use crate::source::Source;
use crate::spec::{Filter, UuidBounds};
use crate::uuid6;
use crate::walk::{Hits, Lookup, Options, Unproven, Walk};

/// How many threads' look-up states are reused. Others create one each time.
const MAX_IDLE: usize = 4;
/// How many groups are looked up between two polls of the interrupt.
const POLL_GROUPS: usize = (1 << 12) / LIMITS.lookup_group;

/// Looks up messages of one segment.
pub(super) struct SealedLookup {
    proof: IndexProof,
    #[expect(
        clippy::vec_box,
        reason = "they are taken out and put back for each look-up"
    )]
    idle: Mutex<Vec<Box<Handle>>>,
}

/// The state that one thread needs to look up.
struct Handle {
    checker: Checker,
    group: Group,
    uuids: Vec<[u8; UUID_BYTES]>,
}

impl SealedLookup {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Ok(Self {
            proof: IndexProof::open(source, options)?,
            idle: Mutex::new(Vec::new()),
        })
    }

    fn segment(&self) -> &Segment {
        &self.proof.segment
    }

    fn checker(&self) -> Checker {
        Checker::new(self.segment(), Reader::sparse)
    }

    /// A state that was used before, if the lock is free: after a fork it may stay locked for ever.
    fn handle(&self) -> Box<Handle> {
        let idle = self.idle.try_lock().ok().and_then(|mut idle| idle.pop());
        match idle {
            Some(handle) => handle,
            None => Box::new(Handle {
                checker: self.checker(),
                group: Group::default(),
                uuids: Vec::new(),
            }),
        }
    }

    fn put_back(&self, mut handle: Box<Handle>) {
        handle.checker.reader.forget(); // a file that was truncated since must be noticed
        if let Ok(mut idle) = self.idle.try_lock()
            && idle.len() < MAX_IDLE
        {
            idle.push(handle);
        }
    }

    /// The number of the first entry whose UUID is at least this one.
    fn lower_bound(&self, checker: &mut Checker, uuid: &[u8; UUID_BYTES]) -> Result<u64> {
        let entry = |number| self.entry(checker, number);
        let (mut search, _) = self.proof.search(uuid, entry)?;
        while let Some(place) = search.place() {
            search.saw(&checker.reader.entry(place)?.uuid);
        }
        Ok(search.answer())
    }

    /// Looks up these UUIDs, and passes each result to `take`, in their order.
    fn find(
        &self,
        handle: &mut Handle,
        mut take: impl FnMut(&mut Checker, Answer) -> Result<()>,
    ) -> Result<()> {
        let Handle {
            checker,
            group,
            uuids,
        } = handle;
        let Segment {
            source,
            options,
            front,
        } = self.segment();
        // Without all checksums, only all entries together show what the walk would do with one of them.
        let is_searchable = front.unreadable.is_none()
            && (front.checked() == Checked::Checksum || self.proof.survey()?.ascends);
        for (number, some) in uuids.chunks(LIMITS.lookup_group).enumerate() {
            if number % POLL_GROUPS == POLL_GROUPS - 1 {
                options.poll()?;
            }
            if let Some(bytes) = source.as_slice().filter(|_| is_searchable) {
                group.find(&self.proof, checker, bytes, some, &mut take)?;
                continue;
            }
            for uuid in some {
                let answer = match is_searchable {
                    true => self.find_one(checker, uuid)?,
                    false => self.proof.unproven(None)?,
                };
                take(checker, answer)?;
            }
        }
        Ok(())
    }

    /// Looks up one UUID.
    fn find_one(&self, checker: &mut Checker, uuid: &[u8; UUID_BYTES]) -> Result<Answer> {
        let number = self.lower_bound(checker, uuid)?;
        let entry = self.entry(checker, number)?;
        let entry = entry.filter(|entry| entry.uuid == *uuid);
        self.proof.examine(checker, entry)
    }

    fn entry(&self, checker: &mut Checker, number: u64) -> Result<Option<Entry>> {
        if number >= self.segment().front.entries {
            return Ok(None);
        }
        checker.reader.entry(number).map(Some)
    }

    /// Looks up the UUIDs of `handle`.
    fn get_each(&self, handle: &mut Handle) -> Result<Hits> {
        let count = handle.uuids.len();
        let mut found = FoundMessages::new(self.segment().source.clone(), count);
        let mut places = Vec::with_capacity(count);
        let mut unsure = Vec::new();
        self.find(handle, |checker, answer| {
            places.push(match answer {
                Answer::Hit(message) => Some((0, found.take(checker, message)?)),
                Answer::Absent => None,
                Answer::Unsure => {
                    unsure.push(places.len());
                    None
                }
            });
            Ok(())
        })?;
        let mut is_damaged = false;
        if !unsure.is_empty() {
            self.walk_for(&handle.uuids, &unsure, &mut found, &mut places)?;
            let is_missing = |place: &usize| places.get(*place).is_some_and(Option::is_none);
            is_damaged = unsure.iter().any(is_missing);
        }
        let mut unproven = None;
        if places.contains(&None) {
            // Only a proven index is known to list all messages.
            is_damaged |= !self.proof.is_index_proven(self.proof.survey()?);
            unproven = match self.segment().front.trailer {
                Some(_) => Unproven::of(is_damaged, Checked::Checksum),
                None => Some(Unproven::Unchecked),
            };
        }
        Ok(Hits {
            places,
            unproven,
            sets: vec![Box::new(found)],
            ..Hits::default()
        })
    }

    /// The same, each UUID once and in ascending order: reading only goes forward, and no message is copied twice.
    fn get_sorted(&self, handle: &mut Handle) -> Result<Hits> {
        let asked = std::mem::take(&mut handle.uuids);
        handle.uuids.extend_from_slice(&asked);
        handle.uuids.sort_unstable();
        handle.uuids.dedup();
        let mut hits = self.get_each(handle)?;
        if handle.uuids != asked {
            let place = |uuid: &[u8; UUID_BYTES]| {
                let place = handle.uuids.binary_search(uuid).ok()?;
                hits.places.get(place).copied().flatten()
            };
            hits.places = asked.iter().map(place).collect();
        }
        Ok(hits)
    }

    /// Runs the walk for the UUIDs at these positions in `uuids`.
    fn walk_for(
        &self,
        uuids: &[[u8; UUID_BYTES]],
        unsure: &[usize],
        found: &mut FoundMessages,
        places: &mut [Option<(usize, usize)>],
    ) -> Result<()> {
        let uuid = |place: &usize| uuids.get(*place).copied();
        let mut rows: BTreeMap<_, _> = unsure.iter().filter_map(uuid).zip(repeat(None)).collect();
        let mut filter = Filter::default();
        if let (Some((first, _)), Some((last, _))) = (rows.first_key_value(), rows.last_key_value())
        {
            filter = filter.at_least("uuid", *first).at_most("uuid", *last);
        }
        let mut messages = Vec::new();
        self.segment().walk_to(filter, |message| {
            messages.extend(rows.contains_key(&message.uuid).then_some(*message));
            false // all of them
        })?;
        let mut checker = self.checker();
        for message in messages {
            let row = found.take(&mut checker, message)?;
            rows.insert(message.uuid, Some(row));
        }
        for place in unsure {
            let row = uuid(place).and_then(|uuid| rows.get(&uuid).copied().flatten());
            if row.is_none() && self.segment().options.strict {
                self.proof.unproven(None)?;
            }
            if let Some(place) = places.get_mut(*place) {
                *place = row.map(|row| (0, row));
            }
        }
        Ok(())
    }
}

impl Sealed for SealedLookup {}

impl Lookup for SealedLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        let mut handle = self.handle();
        handle.uuids.clear();
        for id in ids {
            handle
                .uuids
                .push(id.as_uuid().or_bug("an identifier that is a UUID")?);
        }
        self.proof.count(ids.len())?;
        let hits = match self.segment().source.as_slice() {
            Some(_) => self.get_each(&mut handle),
            None => self.get_sorted(&mut handle),
        };
        self.put_back(handle);
        hits
    }

    fn prepare(&self) -> Result<()> {
        self.proof.prepare().map(|_| ())
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let options = self.segment().options.clone().filter(filter.clone());
        let is_doubt_damage = options.strict || options.prune;
        let (mut state, mut index_hash) = (self.segment().beginning(), None);
        if let Some(since) = UuidBounds::of(filter).since() {
            let survey = self.proof.survey()?;
            if self.proof.is_index_proven(survey) || survey.ascends && !is_doubt_damage {
                let mut checker = self.checker();
                let first = self.lower_bound(&mut checker, &since)?;
                let least = first.saturating_sub(LIMITS.run_in_entries);
                let entries = self.segment().front.entries;
                // Without such a message, from the first entry on.
                if let Some(message) = checker.run_in(least..first, entries)? {
                    state = ScanState::after(&message);
                }
                index_hash = survey.hash;
            }
        }
        let mut scan = SealedScan::new(&self.segment().with(options), state);
        scan.index_hash = index_hash;
        Ok(Box::new(scan.into_walk()))
    }
}

/// The record of the entry with this number; without one, of the last entry whose message is in the file. `None` if it is not
/// certain that a walk returns it, and no record after it.
pub(super) fn numbered(
    source: &Arc<dyn Source>,
    options: &Options,
    number: Option<u64>,
) -> Result<Option<Numbered>> {
    let segment = Segment::open(source.clone(), options)?;
    let (entries, is_sought) = (segment.front.entries, number.is_some());
    let whole = match segment.front.checked() {
        Checked::Checksum => entries,
        _ => whole(&segment)?,
    };
    let Some(number) = number.or(whole.checked_sub(1)).filter(|nth| *nth < whole) else {
        return Ok(None);
    };
    let mut checker = Checker::new(&segment, Reader::sparse);
    let Some(message) = checker.in_place(number)? else {
        return Ok(None);
    };
    let is_last = message.number + 1 == entries;
    let ends_with_file = |trailer: Trailer| trailer.end == segment.front.len;
    Ok(Some(Numbered {
        number: message.number,
        uuid: message.uuid,
        place: Extent {
            at: message.position,
            nbytes: message.header.total(),
        },
        is_last,
        is_proven: is_sought
            && is_last
            && segment.front.trailer.is_some_and(ends_with_file)
            && segment.survey(|_| {})?.is_proven,
    }))
}

/// How many entries have their messages in a file without checksums, which may have been cut off within or after the last.
/// 0 if other entries are damaged, so that it is not clear which messages a walk returns.
fn whole(segment: &Segment) -> Result<u64> {
    let (mut whole, mut begun) = (0, 0);
    let (mut is_clear, mut last) = (true, None::<Entry>);
    segment.survey(|entry| {
        let ascends = last.is_none_or(|last| last.uuid < entry.uuid && last.offset < entry.offset);
        let is_here = entry.offset < segment.front.data_end;
        if ascends && is_here && entry.number == whole && uuid6::is_v6(&entry.uuid) {
            (whole, begun) = (whole + 1, entry.offset);
        } else {
            is_clear &= ascends && !is_here;
        }
        last = Some(*entry);
    })?;
    if whole > 0 && Reader::sparse(segment).header(begun)?.is_err() {
        whole -= 1;
    }
    Ok(if is_clear { whole } else { 0 })
}
