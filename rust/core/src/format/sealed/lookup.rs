//! Finding messages by UUID, and ranges of them, without reading the rest.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use super::check::{Checker, Fault, Prior};
use super::found::FoundMessages;
use super::front::Front;
use super::group::Group;
use super::guide::Guide;
use super::index::{Survey, survey};
use super::reader::Reader;
use super::search::Search;
use super::table::Near;
use super::walk::{SealedWalk, State};
use super::{COLUMNS, Entry, FORMAT, Message, UUID_BYTES};
use crate::engine::lookup::no_such_id;
use crate::engine::{Bound, Hits, Lookup, Options, Step, UuidBounds, Walk, Wanted};
use crate::error::{Damage, Error, Result};
use crate::ledger::Cause;
use crate::limits::LIMITS;
use crate::record::RecordId;
use crate::source::Source;

/// How many threads find what they need to look up laid out; others lay it out anew each time.
const MAX_IDLE: usize = 4;
/// How many are looked up between two looks at whether to stop.
const POLL_LOOKUPS: usize = 1 << 12;

/// Looks up messages of one segment.
pub(super) struct SealedLookup {
    source: Arc<dyn Source>,
    options: Options,
    pub(super) front: Front,
    /// What is proven of the index, once it had to be.
    survey: OnceLock<Survey>,
    pub(super) guide: Guide,
    #[expect(
        clippy::vec_box,
        reason = "they are taken out and put back for each look-up"
    )]
    idle: Mutex<Vec<Box<Tools>>>,
}

/// What one thread needs to look up.
struct Tools {
    checker: Checker,
    group: Group,
    uuids: Vec<[u8; UUID_BYTES]>,
}

/// What a search for one UUID came to.
pub(super) enum Sought {
    /// Here it is.
    Hit(Message),
    /// It is not there, as far as the file can prove that.
    Absent,
    /// Only the walk can tell.
    Unsure,
}

impl SealedLookup {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        let front = Front::open(&source, options)?;
        Ok(Self {
            source,
            options: options.clone(),
            front,
            survey: OnceLock::new(),
            guide: Guide::default(),
            idle: Mutex::new(Vec::new()),
        })
    }

    /// What reading the whole index proves. Read once, when it is first needed.
    fn survey(&self) -> Result<Survey> {
        if let Some(survey) = self.survey.get() {
            return Ok(*survey);
        }
        let survey = survey(&*self.source, &self.options, &self.front)?;
        Ok(*self.survey.get_or_init(|| survey))
    }

    /// Whether the entries are as they were written, as far as that can be known of this file.
    fn is_index_believed(&self, survey: Survey) -> bool {
        survey.ascends && (survey.is_proven || self.front.trailer.is_none())
    }

    fn checker(&self) -> Checker {
        let reader = || Reader::sparse(self.source.clone(), &self.options);
        Checker::new(reader(), reader(), self.front)
    }

    /// What was used before, if it is to be had at once: a fork may have taken the lock along.
    fn tools(&self) -> Box<Tools> {
        let idle = self.idle.try_lock().ok().and_then(|mut idle| idle.pop());
        idle.unwrap_or_else(|| {
            Box::new(Tools {
                checker: self.checker(),
                group: Group::default(),
                uuids: Vec::new(),
            })
        })
    }

    fn put_back(&self, mut tools: Box<Tools>) {
        tools.checker.reader.forget(); // a file that was cut off since is to be noticed
        if let Ok(mut idle) = self.idle.try_lock()
            && idle.len() < MAX_IDLE
        {
            idle.push(tools);
        }
    }

    /// A search for the first entry whose UUID is not smaller than this one, and about where it will end, if that is known;
    /// `entry` gives one by its number.
    pub(super) fn search(
        &self,
        uuid: &[u8; UUID_BYTES],
        entry: impl FnMut(u64) -> Result<Option<Entry>>,
    ) -> Result<(Search, Option<Near>)> {
        self.guide.search(uuid, self.front.entries, entry)
    }

    /// The number of the first entry whose UUID is not smaller than this one.
    fn lower_bound(&self, checker: &mut Checker, uuid: &[u8; UUID_BYTES]) -> Result<u64> {
        let (mut search, _) = self.search(uuid, |number| self.entry(checker, number))?;
        while let Some(place) = search.place() {
            search.saw(&checker.reader.entry(place, self.front.entries)?.uuid);
        }
        Ok(search.answer())
    }

    /// Looks for these UUIDs, and hands what that comes to to `take`, in their order.
    fn find(
        &self,
        tools: &mut Tools,
        mut take: impl FnMut(&mut Checker, usize, Sought) -> Result<()>,
    ) -> Result<()> {
        let Tools {
            checker,
            group,
            uuids,
        } = tools;
        // Without checksums it takes all entries to know what the walk would make of one of them.
        let is_searchable = self.front.unreadable.is_none()
            && (self.front.trailer.is_some() || self.survey()?.ascends);
        if !is_searchable {
            for place in 0..uuids.len() {
                let sought = self.unproven(None)?;
                take(checker, place, sought)?;
            }
            return Ok(());
        }
        let Some(bytes) = self.source.as_slice() else {
            for (place, uuid) in uuids.iter().enumerate() {
                if place % POLL_LOOKUPS == POLL_LOOKUPS - 1 {
                    self.options.poll()?;
                }
                let sought = self.find_one(checker, uuid)?;
                take(checker, place, sought)?;
            }
            return Ok(());
        };
        let mut place = 0;
        for some in uuids.chunks(LIMITS.lookup_group) {
            if place % POLL_LOOKUPS == POLL_LOOKUPS - LIMITS.lookup_group {
                self.options.poll()?;
            }
            group.find(self, checker, bytes, some, |checker, sought| {
                take(checker, place, sought)?;
                place += 1;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Looks for one UUID.
    fn find_one(&self, checker: &mut Checker, uuid: &[u8; UUID_BYTES]) -> Result<Sought> {
        let number = self.lower_bound(checker, uuid)?;
        let entry = self
            .entry(checker, number)?
            .filter(|entry| entry.uuid == *uuid);
        let checked = match &entry {
            Some(entry) => Some(self.check(checker, number, entry)?),
            None => None,
        };
        let is_alone = match (&entry, &checked) {
            (Some(entry), Some(Ok(_))) => checker.stands_alone(number, entry)?,
            _ => false,
        };
        self.conclude(number, entry.zip(checked), is_alone)
    }

    /// What it comes to that a search ended at this entry, whose message was checked and [stands
    /// alone](Checker::stands_alone) or not, or found no entry.
    pub(super) fn conclude(
        &self,
        number: u64,
        found: Option<(Entry, std::result::Result<Message, Fault>)>,
        is_alone: bool,
    ) -> Result<Sought> {
        if let Some((_, Ok(message))) = found {
            return Ok(match is_alone {
                true => Sought::Hit(message),
                false => Sought::Unsure,
            });
        }
        let survey = self.survey()?;
        match found {
            None if self.is_index_believed(survey) => Ok(Sought::Absent),
            // The walk gives nothing that has no entry.
            None if survey.ascends && !self.options.strict => Ok(Sought::Absent),
            Some((entry, Err(fault))) if self.is_index_believed(survey) => {
                let prior = self.nothing_before();
                let finding = fault.finding(&self.front, &entry, &prior);
                self.unproven(Some(Damage {
                    path: self.source.path().map(Into::into),
                    offset: match finding.cause() {
                        Cause::OffsetOutOfBounds => self.front.entry_at(number),
                        _ => entry.offset,
                    },
                    cause: finding.cause(),
                    finding,
                    wrong_key: false,
                }))
            }
            _ => self.unproven(None),
        }
    }

    /// Damage is in the way: an error if reading strictly, by default the first of the file; else the walk tells.
    fn unproven(&self, damage: Option<Damage>) -> Result<Sought> {
        if !self.options.strict {
            return Ok(Sought::Unsure);
        }
        if let Some(damage) = damage {
            return Err(Error::Damage(Box::new(damage)));
        }
        let options = Options {
            values: false,
            wanted: Wanted::default(),
            ..self.options.clone()
        };
        let mut walk = self.walk(
            &options,
            State::before(&self.front, 0, self.front.data_start),
        );
        while walk.step()? == Step::More {}
        Ok(Sought::Unsure)
    }

    fn entry(&self, checker: &mut Checker, number: u64) -> Result<Option<Entry>> {
        if number >= self.front.entries {
            return Ok(None);
        }
        let entry = checker.reader.entry(number, self.front.entries)?;
        Ok(Some(entry))
    }

    /// Whether an entry's message counts at its own offset, whatever was before it.
    fn check(
        &self,
        checker: &mut Checker,
        number: u64,
        entry: &Entry,
    ) -> Result<std::result::Result<Message, Fault>> {
        if self.front.in_bounds(entry.offset) {
            let body = self.front.trailer.is_some() || self.options.values;
            let expected = checker.beginning(number + 1)?.saturating_sub(entry.offset);
            let (reader, end) = (&mut checker.reader, self.front.data_end);
            reader.bring_expected(entry.offset, end, body, expected)?;
        }
        checker.budget = Default::default(); // what other look-ups hashed in vain is not this one's
        checker.check(number, entry, entry.offset, &self.nothing_before())
    }

    pub(super) const fn nothing_before(&self) -> Prior {
        Prior {
            last: None,
            end: self.front.data_start,
        }
    }

    fn walk(&self, options: &Options, state: State) -> SealedWalk {
        SealedWalk::new(self.source.clone(), options, self.front, state)
    }

    /// What the UUIDs of `tools` come to.
    fn get_each(&self, tools: &mut Tools) -> Result<Hits> {
        let count = tools.uuids.len();
        let mut found = FoundMessages::new(self.source.clone(), count);
        let mut places = Vec::with_capacity(count);
        let mut unsure = Vec::new();
        self.find(tools, |checker, place, sought| {
            places.push(match sought {
                Sought::Hit(message) => {
                    found.take(checker, message, &self.options)?;
                    Some((0, found.len() - 1))
                }
                Sought::Absent => None,
                Sought::Unsure => {
                    unsure.push(place);
                    None
                }
            });
            Ok(())
        })?;
        if !unsure.is_empty() {
            self.ask_walk(&tools.uuids, &unsure, &mut found, &mut places)?;
        }
        Ok(Hits {
            places,
            sets: vec![Box::new(found)],
        })
    }

    /// The same, each UUID once and in ascending order, so that reading goes forward and no message is copied twice.
    fn get_sorted(&self, tools: &mut Tools) -> Result<Hits> {
        let asked = std::mem::take(&mut tools.uuids);
        tools.uuids.extend_from_slice(&asked);
        tools.uuids.sort_unstable();
        tools.uuids.dedup();
        let mut hits = self.get_each(tools)?;
        if tools.uuids != asked {
            let place = |uuid: &[u8; UUID_BYTES]| {
                let place = tools.uuids.binary_search(uuid).ok()?;
                hits.places.get(place).copied().flatten()
            };
            hits.places = asked.iter().map(place).collect();
        }
        Ok(hits)
    }

    /// Has the walk tell about the UUIDs at these places among `uuids`.
    fn ask_walk(
        &self,
        uuids: &[[u8; UUID_BYTES]],
        unsure: &[usize],
        found: &mut FoundMessages,
        places: &mut [Option<(usize, usize)>],
    ) -> Result<()> {
        let uuid = |place: &usize| uuids.get(*place).copied();
        let wanted: BTreeSet<_> = unsure.iter().filter_map(uuid).collect();
        let before = found.len();
        self.scan(&wanted, found)?;
        let rows: HashMap<_, _> = found.uuids().zip(0..).skip(before).collect();
        for place in unsure {
            let row = uuid(place).and_then(|uuid| rows.get(&uuid).copied());
            if row.is_none() && self.options.strict {
                self.unproven(None)?;
            }
            if let Some(own) = places.get_mut(*place) {
                *own = row.map(|row| (0, row));
            }
        }
        Ok(())
    }

    /// Looks for these UUIDs by walking.
    fn scan(&self, uuids: &BTreeSet<[u8; UUID_BYTES]>, found: &mut FoundMessages) -> Result<()> {
        let next = |uuid: &[u8; UUID_BYTES]| u128::from_be_bytes(*uuid).checked_add(1);
        let until = uuids.last().and_then(next).map(u128::to_be_bytes);
        let options = Options {
            strict: false,
            wanted: Wanted {
                since: uuids.first().copied().map(Bound::Uuid),
                until: until.map(Bound::Uuid),
                ..Wanted::default()
            },
            // What is not asked for may be too large.
            values: false,
            ..self.options.clone()
        };
        let mut walk = self.walk(
            &options,
            State::before(&self.front, 0, self.front.data_start),
        );
        let mut messages = Vec::new();
        while walk.step()? == Step::More {
            let wanted = walk
                .messages
                .iter()
                .filter(|message| uuids.contains(&message.uuid));
            messages.extend(wanted.copied());
        }
        let mut checker = self.checker();
        for message in messages {
            found.take(&mut checker, message, &self.options)?;
        }
        Ok(())
    }

    /// In front of the entry `first` with all that the walk would know there; `None` where that takes a walk.
    fn run_in(&self, first: u64) -> Result<Option<State>> {
        if first == 0 {
            return Ok(Some(State::before(&self.front, 0, self.front.data_start)));
        }
        let mut checker = self.checker();
        for number in (first.saturating_sub(LIMITS.run_in_entries)..first).rev() {
            let entry = checker.reader.entry(number, self.front.entries)?;
            let Ok(message) = self.check(&mut checker, number, &entry)? else {
                continue;
            };
            if checker.joins(&message, self.front.entries)?
                && checker.stands_alone(number, &entry)?
            {
                let mut state = State::before(&self.front, number + 1, message.end());
                state.last = Some(message.uuid);
                return Ok(Some(state));
            }
        }
        Ok(None)
    }
}

impl Lookup for SealedLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        let mut tools = self.tools();
        tools.uuids.clear();
        for id in ids {
            match id {
                RecordId::Uuid(uuid) => tools.uuids.push(*uuid),
                _ => return Err(no_such_id(&FORMAT, id)),
            }
        }
        self.guide
            .count(ids.len(), &*self.source, &self.options, &self.front)?;
        let hits = if self.source.as_slice().is_some() {
            self.get_each(&mut tools)
        } else {
            self.get_sorted(&mut tools)
        };
        self.put_back(tools);
        hits
    }

    fn prepare(&self) -> Result<()> {
        self.guide
            .prepare(&*self.source, &self.options, &self.front)
    }

    fn range(&self, wanted: &Wanted) -> Result<Box<dyn Walk>> {
        wanted.check(&FORMAT, COLUMNS)?;
        let options = Options {
            wanted: wanted.clone(),
            ..self.options.clone()
        };
        let whole = State::before(&self.front, 0, self.front.data_start);
        let Some(since) = UuidBounds::of(wanted).since() else {
            return Ok(Box::new(self.walk(&options, whole)));
        };
        let survey = self.survey()?;
        let is_doubt_damage = self.options.strict || self.options.prune;
        if !self.is_index_believed(survey) && (is_doubt_damage || !survey.ascends) {
            return Ok(Box::new(self.walk(&options, whole)));
        }
        let first = self.lower_bound(&mut self.checker(), &since)?;
        let state = self.run_in(first)?.unwrap_or(whole);
        let mut walk = self.walk(&options, state);
        walk.index_hash = survey.hash;
        Ok(Box::new(walk))
    }
}
