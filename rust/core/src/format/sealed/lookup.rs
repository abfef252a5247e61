//! Finding messages by UUID, and ranges of them, without reading the rest.

use super::proof::{Proof, Sought};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use super::check::Checker;
use super::found::FoundMessages;
use super::group::Group;
use super::judge::Judged;
use super::layout::{Entry, Message, UUID_BYTES};
use super::reader::Reader;
use super::state::State;
use super::{COLUMNS, FORMAT};
use crate::engine::lookup::no_such_id;
use crate::engine::{Bound, Hits, Lookup, Options, Step, UuidBounds, Walk, Wanted};
use crate::error::Result;
use crate::limits::LIMITS;
use crate::record::RecordId;
use crate::source::Source;

/// How many threads find what they need to look up laid out; others lay it out anew each time.
const MAX_IDLE: usize = 4;
/// How many are looked up between two looks at whether to stop.
const POLL_LOOKUPS: usize = 1 << 12;

/// Looks up messages of one segment.
pub(super) struct SealedLookup {
    proof: Proof,
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

impl SealedLookup {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Ok(Self {
            proof: Proof::open(source, options)?,
            idle: Mutex::new(Vec::new()),
        })
    }

    fn checker(&self) -> Checker {
        let reader = || Reader::sparse(self.proof.source.clone(), &self.proof.options);
        Checker::new(reader(), reader(), self.proof.front)
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

    /// The number of the first entry whose UUID is not smaller than this one.
    fn lower_bound(&self, checker: &mut Checker, uuid: &[u8; UUID_BYTES]) -> Result<u64> {
        let (mut search, _) = self
            .proof
            .search(uuid, |number| self.entry(checker, number))?;
        while let Some(place) = search.place() {
            search.saw(&checker.reader.entry(place, self.proof.front.entries)?.uuid);
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
        let is_searchable = self.proof.front.unreadable.is_none()
            && (self.proof.front.trailer.is_some() || self.proof.survey()?.ascends);
        if !is_searchable {
            for place in 0..uuids.len() {
                let sought = self.proof.unproven(None)?;
                take(checker, place, sought)?;
            }
            return Ok(());
        }
        let Some(bytes) = self.proof.source.as_slice() else {
            for (place, uuid) in uuids.iter().enumerate() {
                if place % POLL_LOOKUPS == POLL_LOOKUPS - 1 {
                    self.proof.options.poll()?;
                }
                let sought = self.find_one(checker, uuid)?;
                take(checker, place, sought)?;
            }
            return Ok(());
        };
        let mut place = 0;
        for some in uuids.chunks(LIMITS.lookup_group) {
            if place % POLL_LOOKUPS == POLL_LOOKUPS - LIMITS.lookup_group {
                self.proof.options.poll()?;
            }
            group.find(&self.proof, checker, bytes, some, |checker, sought| {
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
        self.proof.conclude(number, entry.zip(checked), is_alone)
    }

    fn entry(&self, checker: &mut Checker, number: u64) -> Result<Option<Entry>> {
        if number >= self.proof.front.entries {
            return Ok(None);
        }
        let entry = checker.reader.entry(number, self.proof.front.entries)?;
        Ok(Some(entry))
    }

    /// Whether an entry's message counts at its own offset, whatever was before it.
    fn check(&self, checker: &mut Checker, number: u64, entry: &Entry) -> Result<Judged<Message>> {
        if self.proof.front.in_bounds(entry.offset) {
            let body = self.proof.front.trailer.is_some() || self.proof.options.values;
            let expected = checker.beginning(number + 1)?.saturating_sub(entry.offset);
            let (reader, end) = (&mut checker.reader, self.proof.front.data_end);
            reader.bring_expected(entry.offset, end, body, expected)?;
        }
        checker.budget = Default::default(); // what other look-ups hashed in vain is not this one's
        checker.check(number, entry, entry.offset, &self.proof.nothing_before())
    }

    /// What the UUIDs of `tools` come to.
    fn get_each(&self, tools: &mut Tools) -> Result<Hits> {
        let count = tools.uuids.len();
        let mut found = FoundMessages::new(self.proof.source.clone(), count);
        let mut places = Vec::with_capacity(count);
        let mut unsure = Vec::new();
        self.find(tools, |checker, place, sought| {
            places.push(match sought {
                Sought::Hit(message) => {
                    found.take(checker, message, &self.proof.options)?;
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
            if row.is_none() && self.proof.options.strict {
                self.proof.unproven(None)?;
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
            ..self.proof.options.clone()
        };
        let scan = self.proof.scan(
            &options,
            State::before(&self.proof.front, 0, self.proof.front.data_start),
        );
        let mut walk = scan.into_walk();
        let mut messages = Vec::new();
        while walk.step()? == Step::More {
            let wanted = walk
                .scan()
                .messages
                .iter()
                .filter(|message| uuids.contains(&message.uuid));
            messages.extend(wanted.copied());
        }
        let mut checker = self.checker();
        for message in messages {
            found.take(&mut checker, message, &self.proof.options)?;
        }
        Ok(())
    }

    /// In front of the entry `first` with all that the walk would know there; `None` where that takes a walk.
    fn run_in(&self, first: u64) -> Result<Option<State>> {
        if first == 0 {
            return Ok(Some(State::before(
                &self.proof.front,
                0,
                self.proof.front.data_start,
            )));
        }
        let mut checker = self.checker();
        for number in (first.saturating_sub(LIMITS.run_in_entries)..first).rev() {
            let entry = checker.reader.entry(number, self.proof.front.entries)?;
            let Ok(message) = self.check(&mut checker, number, &entry)? else {
                continue;
            };
            if checker.joins(&message, self.proof.front.entries)?
                && checker.stands_alone(number, &entry)?
            {
                let mut state = State::before(&self.proof.front, number + 1, message.end());
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
        self.proof.guide.count(
            ids.len(),
            &*self.proof.source,
            &self.proof.options,
            &self.proof.front,
        )?;
        let hits = if self.proof.source.as_slice().is_some() {
            self.get_each(&mut tools)
        } else {
            self.get_sorted(&mut tools)
        };
        self.put_back(tools);
        hits
    }

    fn prepare(&self) -> Result<()> {
        self.proof
            .guide
            .prepare(&*self.proof.source, &self.proof.options, &self.proof.front)
    }

    fn range(&self, wanted: &Wanted) -> Result<Box<dyn Walk>> {
        wanted.check(&FORMAT, COLUMNS)?;
        let options = Options {
            wanted: wanted.clone(),
            ..self.proof.options.clone()
        };
        let whole = State::before(&self.proof.front, 0, self.proof.front.data_start);
        let Some(since) = UuidBounds::of(wanted).since() else {
            return Ok(Box::new(self.proof.scan(&options, whole).into_walk()));
        };
        let survey = self.proof.survey()?;
        let is_doubt_damage = self.proof.options.strict || self.proof.options.prune;
        if !self.proof.is_index_believed(survey) && (is_doubt_damage || !survey.ascends) {
            return Ok(Box::new(self.proof.scan(&options, whole).into_walk()));
        }
        let first = self.lower_bound(&mut self.checker(), &since)?;
        let state = self.run_in(first)?.unwrap_or(whole);
        let mut scan = self.proof.scan(&options, state);
        scan.index_hash = survey.hash;
        Ok(Box::new(scan.into_walk()))
    }
}
