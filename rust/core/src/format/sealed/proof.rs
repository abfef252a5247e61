//! What a segment's index proves of a message or of an absent one, and where a search in it begins: between the
//! index's ends, or, once many look-ups were made, between two positions of a table.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::check::{Checker, Effort};
use super::front::{Segment, Survey};
use super::judge::{Fault, Judged, Prior};
use super::layout::{Entry, Message, UUID_BYTES};
use super::search::{Near, Search, Table};
use crate::error::{Damage, Error, Result};
use crate::ledger::Cause;
use crate::limits::LIMITS;
use crate::source::Source;
use crate::spec::Filter;
use crate::uuid6;
use crate::walk::{Options, Step, Walk};

/// The result of a search for one UUID.
pub(super) enum Answer {
    /// The message.
    Hit(Message),
    /// The UUID is absent, as far as the file can prove that.
    Absent,
    /// Only the walk can decide.
    Unsure,
}

/// What is proven of the index of an open segment, computed on first use, and the table that speeds up searches.
pub(super) struct IndexProof {
    pub(super) segment: Segment,
    survey: OnceLock<Survey>,
    /// The times of the first and the last entry, in ticks.
    ends: OnceLock<[u64; 2]>,
    /// Set once the table was built, or could not be.
    table: OnceLock<Option<Table>>,
    looked_up: AtomicU64,
}

impl IndexProof {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        Ok(Self {
            segment: Segment::open(source, options)?,
            survey: OnceLock::new(),
            ends: OnceLock::new(),
            table: OnceLock::new(),
            looked_up: AtomicU64::default(),
        })
    }

    /// What reading the whole index proves. Computed on first use.
    pub(super) fn survey(&self) -> Result<Survey> {
        if let Some(survey) = self.survey.get() {
            return Ok(*survey);
        }
        let survey = self.segment.survey(|_| {})?;
        Ok(*self.survey.get_or_init(|| survey))
    }

    /// Whether the entries are as they were written, as far as this file can prove it.
    pub(super) fn is_index_proven(&self, survey: Survey) -> bool {
        survey.ascends && (survey.is_proven || self.segment.front.trailer.is_none())
    }

    /// The table, if there is one.
    pub(super) fn table(&self) -> Option<&Table> {
        self.table.get().and_then(Option::as_ref)
    }

    /// Counts look-ups, and builds the table once it would have paid off. Other threads continue without it
    /// meanwhile.
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
        // Of several threads one counts the look-up that is enough.
        if !(before..before.saturating_add(lookups)).contains(&(enough - 1)) {
            return Ok(());
        }
        match self.prepare() {
            Err(Error::Interrupted) => {
                self.looked_up.store(0, Ordering::Relaxed);
                return Err(Error::Interrupted);
            }
            // Look-ups continue without a table: the unreadable bytes may be far from what they look for.
            Err(_) => self.table.get_or_init(|| None),
            Ok(table) => table,
        };
        Ok(())
    }

    /// Builds the table now.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Interrupted`].
    pub(super) fn prepare(&self) -> Result<&Option<Table>> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let table = Table::build(&self.segment)?;
        Ok(self.table.get_or_init(|| table))
    }

    /// A search for the first entry whose UUID is at least this one, and about where it will end, if that is
    /// known. `entry` returns an entry by its number.
    pub(super) fn search(
        &self,
        uuid: &[u8; UUID_BYTES],
        mut entry: impl FnMut(u64) -> Result<Option<Entry>>,
    ) -> Result<(Search, Option<Near>)> {
        if let Some(search) = self.table().and_then(|table| table.search(uuid)) {
            return Ok(search);
        }
        let entries = self.segment.front.entries;
        let search = Search::new(*uuid, 0..entries);
        let [first, last] = match self.ends.get() {
            Some(ends) => *ends,
            None => {
                let ends = (entry(0)?, entry(entries.saturating_sub(1))?);
                let (Some(first), Some(last)) = ends else {
                    return Ok((search, None)); // without entries
                };
                let ends = [first, last].map(|entry| uuid6::ticks(&entry.uuid));
                *self.ends.get_or_init(|| ends)
            }
        };
        Ok((search.by_time(first..last), None))
    }

    /// The result of a search that ended at this entry, if the entry has the UUID.
    pub(super) fn examine(&self, checker: &mut Checker, entry: Option<Entry>) -> Result<Answer> {
        let Some(entry) = entry else {
            let survey = self.survey()?;
            // In an unproven index the walk returns nothing without an entry.
            let is_absent =
                self.is_index_proven(survey) || survey.ascends && !self.segment.options.strict;
            return match is_absent {
                true => Ok(Answer::Absent),
                false => self.unproven(None),
            };
        };
        match self.check(checker, &entry)? {
            Ok(message) if checker.is_independent(&message)? => Ok(Answer::Hit(message)),
            Ok(_) => Ok(Answer::Unsure),
            Err(fault) if self.is_index_proven(self.survey()?) => {
                self.unproven(Some(self.damage(&entry, fault)))
            }
            Err(_) => self.unproven(None),
        }
    }

    /// Whether an entry's message is good at its own offset, regardless of the ones before.
    pub(super) fn check(&self, checker: &mut Checker, entry: &Entry) -> Result<Judged<Message>> {
        let front = &self.segment.front;
        if front.in_bounds(entry.offset) {
            let body = front.trailer.is_some() || self.segment.options.values;
            let reader = &mut checker.reader;
            let next = reader.beginning(entry.number + 1)?;
            reader.load_message(entry.offset, body, next.saturating_sub(entry.offset))?;
        }
        checker.effort = Effort::default(); // other look-ups' effort is not charged to this one
        checker.check(entry, &Prior::nothing(front))
    }

    /// The damage of an entry whose message is not good, in a proven index.
    fn damage(&self, entry: &Entry, fault: Fault) -> Damage {
        let front = &self.segment.front;
        let finding = fault.finding(front, entry, &Prior::nothing(front));
        let offset = match finding.cause() {
            Cause::OffsetOutOfBounds => front.entry_at(entry.number),
            _ => entry.offset,
        };
        Damage::new(self.segment.source.path(), offset, finding)
    }

    /// Handles damage that prevents an answer: an error if strict, by default the first damage of the file. Else
    /// the walk decides.
    pub(super) fn unproven(&self, damage: Option<Damage>) -> Result<Answer> {
        if !self.segment.options.strict {
            return Ok(Answer::Unsure);
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
        Ok(Answer::Unsure)
    }
}
