//! Finding messages by UUID, and ranges of them, without reading the rest.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use super::check::{Checker, Prior};
use super::front::Front;
use super::index::{Survey, survey};
use super::reader::Reader;
use super::rows::SealedRows;
use super::search::lower_bound;
use super::walk::{SealedWalk, State};
use super::{COLUMNS, Entry, FORMAT, Message, UUID_BYTES};
use crate::error::{Damage, Error, Result};
use crate::format::lookup::no_such_id;
use crate::format::{
    Bound, Found, Hits, Lookup, Options, RecordId, Rows, Step, UuidBounds, Walk, Wanted,
};
use crate::ledger::Cause;
use crate::source::Source;

/// How many entries in front of a range may be damaged before all of the file is walked.
const MAX_RUN_IN: u64 = 64;

/// Looks up messages of one segment.
pub(super) struct SealedLookup {
    source: Arc<dyn Source>,
    options: Options,
    front: Front,
    /// What is proven of the index, once it had to be.
    survey: OnceLock<Survey>,
}

/// What a search for one UUID came to.
enum Sought {
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

    /// The number of the first entry whose UUID is not smaller than this one.
    fn lower_bound(&self, checker: &mut Checker, uuid: &[u8; UUID_BYTES]) -> Result<u64> {
        let entries = self.front.entries;
        lower_bound(entries, uuid, |number| {
            Ok(checker.reader.entry(number, entries)?.uuid)
        })
    }

    /// Looks for one UUID.
    fn find(&self, checker: &mut Checker, uuid: &[u8; UUID_BYTES]) -> Result<Sought> {
        if self.front.unreadable.is_some() {
            return self.unproven(None);
        }
        let has_checksums = self.front.trailer.is_some();
        // Without checksums it takes all entries to know what the walk would make of one of them.
        if !has_checksums && !self.survey()?.ascends {
            return self.unproven(None);
        }
        let number = self.lower_bound(checker, uuid)?;
        let entry = self
            .entry(checker, number)?
            .filter(|entry| entry.uuid == *uuid);
        let mut own = None;
        if let Some(entry) = &entry {
            let checked = self.check(checker, number, entry)?;
            if let Ok(message) = checked {
                if checker.stands_alone(number, entry)? {
                    return Ok(Sought::Hit(message));
                }
                return Ok(Sought::Unsure);
            }
            own = checked.err();
        }
        let survey = self.survey()?;
        match (entry, own) {
            (None, _) if self.is_index_believed(survey) => Ok(Sought::Absent),
            // The walk gives nothing that has no entry.
            (None, _) if survey.ascends && !self.options.strict => Ok(Sought::Absent),
            (Some(entry), Some(fault)) if self.is_index_believed(survey) => {
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
    ) -> Result<std::result::Result<Message, super::check::Fault>> {
        if self.front.in_bounds(entry.offset) {
            let body = self.front.trailer.is_some() || self.options.values;
            checker
                .reader
                .bring(entry.offset, self.front.data_end, body)?;
        }
        checker.spent = 0; // what other look-ups hashed in vain is not this one's
        checker.check(number, entry, entry.offset, &self.nothing_before())
    }

    const fn nothing_before(&self) -> Prior {
        Prior {
            last: None,
            end: self.front.data_start,
        }
    }

    fn walk(&self, options: &Options, state: State) -> SealedWalk {
        SealedWalk::new(self.source.clone(), options, self.front, state)
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
        for number in (first.saturating_sub(MAX_RUN_IN)..first).rev() {
            let entry = checker.reader.entry(number, self.front.entries)?;
            let Ok(message) = self.check(&mut checker, number, &entry)? else {
                continue;
            };
            if checker.stands_alone(number, &entry)? {
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
        let mut uuids = Vec::with_capacity(ids.len());
        for id in ids {
            match id {
                RecordId::Uuid(uuid) => uuids.push(*uuid),
                _ => return Err(no_such_id(&FORMAT, id)),
            }
        }
        let distinct: BTreeSet<_> = uuids.iter().copied().collect();
        let (mut checker, mut unsure) = (self.checker(), BTreeSet::new());
        let mut found = FoundMessages::new(self.source.clone());
        for uuid in distinct {
            match self.find(&mut checker, &uuid)? {
                Sought::Hit(message) => found.take(&mut checker, message, &self.options)?,
                Sought::Absent => {}
                Sought::Unsure => {
                    unsure.insert(uuid);
                }
            }
        }
        if !unsure.is_empty() {
            self.scan(&unsure, &mut found)?;
            let rows: BTreeSet<_> = found.uuids().collect();
            if self.options.strict && !unsure.is_subset(&rows) {
                self.unproven(None)?;
            }
        }
        let rows: HashMap<_, _> = found.uuids().zip(0..).collect();
        let places = uuids.iter().map(|uuid| rows.get(uuid).map(|row| (0, *row)));
        Ok(Hits {
            places: places.collect(),
            sets: vec![Box::new(found)],
        })
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
        if !self.is_index_believed(survey) && (self.options.strict || !survey.ascends) {
            return Ok(Box::new(self.walk(&options, whole)));
        }
        let first = self.lower_bound(&mut self.checker(), &since)?;
        let state = self.run_in(first)?.unwrap_or(whole);
        let mut walk = self.walk(&options, state);
        walk.index_hash = survey.hash;
        Ok(Box::new(walk))
    }
}

/// Messages that were looked up.
struct FoundMessages {
    source: Arc<dyn Source>,
    messages: Vec<Message>,
    /// Their bytes, where the source does not have them in memory.
    bytes: Vec<Vec<u8>>,
}

impl FoundMessages {
    const fn new(source: Arc<dyn Source>) -> Self {
        Self {
            source,
            messages: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn uuids(&self) -> impl Iterator<Item = [u8; UUID_BYTES]> {
        self.messages.iter().map(|message| message.uuid)
    }

    /// Takes in a message that was checked.
    fn take(&mut self, checker: &mut Checker, message: Message, options: &Options) -> Result<()> {
        let len = checker.bring_checked(&message, options)?;
        if self.source.as_slice().is_none() {
            let reader = &checker.reader;
            let held = reader.held(message.position, len);
            let bytes = held.ok_or_else(|| reader.changed(message.position))?;
            self.bytes.push(bytes.to_vec());
        }
        self.messages.push(message);
        Ok(())
    }
}

impl Found for FoundMessages {
    fn rows(&self) -> Box<dyn Rows + '_> {
        let whole = self.source.as_slice();
        Box::new(SealedRows {
            messages: &self.messages,
            bytes_of: move |row: usize, message: &Message| match whole {
                Some(bytes) => usize::try_from(message.position)
                    .ok()
                    .and_then(|start| bytes.get(start..))
                    .unwrap_or_default(),
                None => self.bytes.get(row).map(Vec::as_slice).unwrap_or_default(),
            },
        })
    }
}
