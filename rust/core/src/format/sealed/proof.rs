//! What a segment's index proves of one message or of none, whoever looks it up.

use std::sync::{Arc, OnceLock};

use super::front::Front;
use super::guide::Guide;
use super::judge::{Judged, Prior};
use super::layout::{Entry, Message, UUID_BYTES};
use super::open;
use super::search::Search;
use super::state::State;
use super::survey::{Survey, survey};
use super::table::Near;
use super::walk::SealedScan;
use crate::engine::{Options, Step, Walk, Wanted};
use crate::error::{Damage, Error, Result};
use crate::ledger::Cause;
use crate::source::Source;

/// What a search for one UUID came to.
pub(super) enum Sought {
    /// Here it is.
    Hit(Message),
    /// It is not there, as far as the file can prove that.
    Absent,
    /// Only the walk can tell.
    Unsure,
}

/// What is known of one open segment, and what is proven of its index once it had to be.
pub(super) struct Proof {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
    pub(super) front: Front,
    survey: OnceLock<Survey>,
    pub(super) guide: Guide,
}

impl Proof {
    pub(super) fn open(source: Arc<dyn Source>, options: &Options) -> Result<Self> {
        let front = open::front(&source, options)?;
        Ok(Self {
            source,
            options: options.clone(),
            front,
            survey: OnceLock::new(),
            guide: Guide::default(),
        })
    }

    /// What reading the whole index proves. Read once, when it is first needed.
    pub(super) fn survey(&self) -> Result<Survey> {
        if let Some(survey) = self.survey.get() {
            return Ok(*survey);
        }
        let survey = survey(&*self.source, &self.options, &self.front)?;
        Ok(*self.survey.get_or_init(|| survey))
    }

    /// Whether the entries are as they were written, as far as that can be known of this file.
    pub(super) fn is_index_believed(&self, survey: Survey) -> bool {
        survey.ascends && (survey.is_proven || self.front.trailer.is_none())
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

    /// What it comes to that a search ended at this entry, whose message was checked and [stands
    /// alone](Checker::stands_alone) or not, or found no entry.
    pub(super) fn conclude(
        &self,
        number: u64,
        found: Option<(Entry, Judged<Message>)>,
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
                self.unproven(Some(Damage::new(
                    self.source.path(),
                    match finding.cause() {
                        Cause::OffsetOutOfBounds => self.front.entry_at(number),
                        _ => entry.offset,
                    },
                    finding,
                )))
            }
            _ => self.unproven(None),
        }
    }

    /// Damage is in the way: an error if reading strictly, by default the first of the file; else the walk tells.
    pub(super) fn unproven(&self, damage: Option<Damage>) -> Result<Sought> {
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
        let scan = self.scan(
            &options,
            State::before(&self.front, 0, self.front.data_start),
        );
        let mut walk = scan.into_walk();
        while walk.step()? == Step::More {}
        Ok(Sought::Unsure)
    }

    pub(super) const fn nothing_before(&self) -> Prior {
        Prior {
            last: None,
            end: self.front.data_start,
        }
    }

    pub(super) fn scan(&self, options: &Options, state: State) -> SealedScan {
        SealedScan::new(self.source.clone(), options, self.front, state)
    }
}
