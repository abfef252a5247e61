//! Reading strictly: at the first damage that is met the walk runs on, without records, to learn which is the first in the
//! file.

use super::ranges::bad_terminator;
use super::walk::SealedScan;
use crate::engine::UuidBounds;
use crate::engine::{Advance, Scan};
use crate::error::{Damage, Finding, Result};
use crate::ledger::Cause;

impl SealedScan {
    /// Whether the next damage ends the reading.
    pub(super) const fn stops_at_damage(&self) -> bool {
        self.options.strict && !self.runs_on
    }

    /// Damage comes next. What this step has found in front of it is given out first: it is met again then.
    pub(super) fn meet_damage(&mut self) -> Result<Advance> {
        if self.has_found() {
            return Ok(Advance::Full);
        }
        self.runs_on = true;
        self.bounds = UuidBounds::default();
        let terminator = self.front().entry_at(self.front().entries);
        if !self.front().terminator_is_zero && self.state.from == 0 {
            self.note(terminator, bad_terminator());
        }
        self.run_on()
    }

    /// Goes on to where it is known which damage is the first.
    pub(super) fn run_on(&mut self) -> Result<Advance> {
        let terminator = self.front().entry_at(self.front().entries);
        loop {
            let advance = self.go_on()?;
            self.spans.clear();
            // Entries are marked in their order, and come before everything else; only the key can be wrong before that.
            let is_settled = self
                .first
                .as_ref()
                .is_some_and(|first| first.offset < terminator)
                && (self.state.counted || !self.front().may_be_under_another_key());
            if advance == Advance::End || is_settled {
                return Err(self.raised());
            }
        }
    }

    /// Whether damage at `offset` is to be noted: the first of the file is looked for, and is not in front of this.
    pub(super) fn is_first(&self, offset: u64) -> bool {
        self.runs_on
            && self
                .first
                .as_ref()
                .is_none_or(|first| offset < first.offset)
    }

    /// Notes the first damage.
    pub(super) fn note(&mut self, offset: u64, finding: Finding) {
        self.first = Some(Damage {
            wrong_key: self.suspects_key,
            ..Damage::new(self.source().path(), offset, finding)
        });
    }

    /// What is wrong with an entry that failed with this cause since the last good message: by checking it once more.
    pub(super) fn explain(&mut self, number: u64, cause: Cause) -> Result<Finding> {
        let (prior, front) = (self.state.prior(), *self.front());
        let entry = self.checker.entry_elsewhere(number)?;
        if cause == Cause::SearchLimit {
            return Ok(super::judge::Fault::SearchLimit.finding(&front, &entry, &prior));
        }
        let budget = std::mem::take(&mut self.checker.budget);
        let checked = self.checker.check(number, &entry, entry.offset, &prior)?;
        self.checker.budget = budget;
        match checked {
            Err(fault) => Ok(fault.finding(&front, &entry, &prior)),
            Ok(message) => Err(self.checker.reader.changed(message.position)),
        }
    }
}
