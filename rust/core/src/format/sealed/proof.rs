//! What a segment's index proves of one message or of none, whoever looks it up, and where a search in it begins: between its
//! ends, or, once that has paid, between two places of a table.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::check::{Checker, Effort};
use super::front::{Segment, Survey};
use super::judge::{Fault, Judged, Prior};
use super::layout::{Entry, Message, UUID_BYTES};
use super::search::Search;
use super::table::{Near, Table};
use crate::engine::{Filter, Options, Step, Walk};
use crate::error::{Damage, Error, Result};
use crate::ledger::Cause;
use crate::limits::LIMITS;
use crate::source::Source;
use crate::uuid6;

/// What a search for one UUID came to.
pub(super) enum Sought {
    /// Here it is.
    Hit(Message),
    /// It is not there, as far as the file can prove that.
    Absent,
    /// Only the walk can tell.
    Unsure,
}

/// What is proven of the index of an open segment once it had to be, and what is known of where UUIDs stand in it.
pub(super) struct Proof {
    pub(super) segment: Segment,
    survey: OnceLock<Survey>,
    /// The times of the first and the last entry, in ticks.
    ends: OnceLock<[u64; 2]>,
    /// Once it was made, or could not be.
    table: OnceLock<Option<Table>>,
    is_being_made: AtomicBool,
    looked_up: AtomicU64,
}

impl Proof {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Ok(Self {
            segment: Segment::open(source, options)?,
            survey: OnceLock::new(),
            ends: OnceLock::new(),
            table: OnceLock::new(),
            is_being_made: AtomicBool::default(),
            looked_up: AtomicU64::default(),
        })
    }

    /// What reading the whole index proves. Read once, when it is first needed.
    pub(super) fn survey(&self) -> Result<Survey> {
        if let Some(survey) = self.survey.get() {
            return Ok(*survey);
        }
        let survey = self.segment.survey(|_| {})?;
        Ok(*self.survey.get_or_init(|| survey))
    }

    /// Whether the entries are as they were written, as far as that can be known of this file.
    pub(super) fn is_index_believed(&self, survey: Survey) -> bool {
        survey.ascends && (survey.is_proven || self.segment.front.trailer.is_none())
    }

    /// The table, if there is one.
    pub(super) fn table(&self) -> Option<&Table> {
        self.table.get().and_then(Option::as_ref)
    }

    /// Counts look-ups, and makes the table once it would have paid. Other threads go on without meanwhile.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(super) fn count(&self, lookups: usize) -> Result<()> {
        if self.table.get().is_some() {
            return Ok(());
        }
        let lookups = lookups as u64;
        let before = self.looked_up.fetch_add(lookups, Ordering::Relaxed);
        let entries = self.segment.front.entries;
        let enough = (entries / LIMITS.entries_per_lookup).max(LIMITS.least_lookups);
        if before.saturating_add(lookups) < enough
            || self.is_being_made.swap(true, Ordering::AcqRel)
        {
            return Ok(());
        }
        let made = self.prepare();
        self.is_being_made.store(false, Ordering::Release);
        match made {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            // Looking up does without: what cannot be read may be far from what is looked for.
            Err(_) => self.table.get_or_init(|| None),
            Ok(table) => table,
        };
        Ok(())
    }

    /// Makes the table now.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Interrupted`].
    pub(super) fn prepare(&self) -> Result<&Option<Table>> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let Segment {
            source,
            options,
            front,
        } = &self.segment;
        let table = Table::build(&**source, options, front)?;
        Ok(self.table.get_or_init(|| table))
    }

    /// A search for the first entry whose UUID is not smaller than this one, and about where it will end, if that is known;
    /// `entry` gives one by its number.
    pub(super) fn search(
        &self,
        uuid: &[u8; UUID_BYTES],
        mut entry: impl FnMut(u64) -> Result<Option<Entry>>,
    ) -> Result<(Search, Option<Near>)> {
        if let Some(search) = self.table().and_then(|table| table.search(uuid)) {
            return Ok(search);
        }
        let entries = self.segment.front.entries;
        let [first, last] = match self.ends.get() {
            Some(ends) => *ends,
            None => {
                let mut time =
                    |number| Ok(entry(number)?.map_or(0, |entry| uuid6::ticks(&entry.uuid)));
                let ends = [time(0)?, time(entries.saturating_sub(1))?];
                *self.ends.get_or_init(|| ends)
            }
        };
        Ok((Search::new(*uuid, 0..entries, first..last), None))
    }

    /// What it comes to that a search ended at this entry, if it has the UUID, or at none.
    pub(super) fn examine(&self, checker: &mut Checker, entry: Option<Entry>) -> Result<Sought> {
        let Some(entry) = entry else {
            let survey = self.survey()?;
            // Where the index is not believed, the walk gives nothing that has no entry.
            let is_absent =
                self.is_index_believed(survey) || survey.ascends && !self.segment.options.strict;
            return match is_absent {
                true => Ok(Sought::Absent),
                false => self.unproven(None),
            };
        };
        match self.check(checker, &entry)? {
            Ok(message) if checker.stands_alone(&entry)? => Ok(Sought::Hit(message)),
            Ok(_) => Ok(Sought::Unsure),
            Err(fault) if self.is_index_believed(self.survey()?) => {
                self.unproven(Some(self.damage(&entry, fault)))
            }
            Err(_) => self.unproven(None),
        }
    }

    /// Whether an entry's message counts at its own offset, whatever was before it.
    pub(super) fn check(&self, checker: &mut Checker, entry: &Entry) -> Result<Judged<Message>> {
        let front = &self.segment.front;
        if front.in_bounds(entry.offset) {
            let body = front.trailer.is_some() || self.segment.options.values;
            let reader = &mut checker.reader;
            let next = reader.beginning(entry.number + 1)?;
            reader.bring(entry.offset, body, next.saturating_sub(entry.offset))?;
        }
        checker.effort = Effort::default(); // what other look-ups hashed in vain is not this one's
        checker.check(entry, &Prior::nothing(front))
    }

    /// An entry whose message does not count, of an index that is believed.
    fn damage(&self, entry: &Entry, fault: Fault) -> Damage {
        let front = &self.segment.front;
        let finding = fault.finding(front, entry, &Prior::nothing(front));
        let offset = match finding.cause() {
            Cause::OffsetOutOfBounds => front.entry_at(entry.number),
            _ => entry.offset,
        };
        Damage::new(self.segment.source.path(), offset, finding)
    }

    /// Damage is in the way: an error if reading strictly, by default the first of the file; else the walk tells.
    pub(super) fn unproven(&self, damage: Option<Damage>) -> Result<Sought> {
        if !self.segment.options.strict {
            return Ok(Sought::Unsure);
        }
        if let Some(damage) = damage {
            return Err(Error::Damage(Box::new(damage)));
        }
        let options = self
            .segment
            .options
            .clone()
            .values(false)
            .filter(Filter::default());
        let mut walk = self.segment.with(options).whole().into_walk();
        while walk.step()? == Step::More {}
        Ok(Sought::Unsure)
    }
}
