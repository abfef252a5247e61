//! Reading what somebody may replace meanwhile: no damage is told, and nothing missed, of a file that is another by now.

use std::sync::Arc;

use super::{Carry, Filter, Hits, Lookup, Step, Walk};
use crate::error::{Error, Result};
use crate::ledger::{RecordRun, Span};
use crate::record::Checked;
use crate::record::{RecordId, Rows};
use crate::source::Source;

/// A walk that has its source [confirm](Source::confirm) what it read before it tells of damage, and at its end.
///
/// Passes on every method of [`Walk`], also those that have a default.
pub(crate) struct ConfirmedWalk {
    pub(crate) walk: Box<dyn Walk>,
    pub(crate) source: Arc<dyn Source>,
}

impl Walk for ConfirmedWalk {
    fn step(&mut self) -> Result<Step> {
        let step = confirmed_damage(self.walk.step(), &*self.source)?;
        if step != Step::More || self.walk.found_damage() {
            self.source.confirm()?;
        }
        Ok(step)
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        self.walk.rows()
    }

    fn spans(&self) -> &[Span] {
        self.walk.spans()
    }

    fn record_run(&self) -> Option<RecordRun> {
        self.walk.record_run()
    }

    fn front_end(&self) -> u64 {
        self.walk.front_end()
    }

    fn checked(&self) -> Checked {
        self.walk.checked()
    }

    fn offset(&self) -> u64 {
        self.walk.offset()
    }

    fn carry(&self) -> Carry {
        self.walk.carry()
    }

    fn suspects_key(&self) -> bool {
        self.walk.suspects_key()
    }
}

/// Likewise of looking up, where what is not found counts like damage.
pub(crate) struct ConfirmedLookup {
    pub(crate) lookup: Box<dyn Lookup>,
    pub(crate) source: Arc<dyn Source>,
}

impl Lookup for ConfirmedLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        let hits = confirmed_damage(self.lookup.get(ids), &*self.source)?;
        if hits.places.iter().any(Option::is_none) {
            self.source.confirm()?;
        }
        Ok(hits)
    }

    fn prepare(&self) -> Result<()> {
        self.lookup.prepare()
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let walk = confirmed_damage(self.lookup.range(filter), &*self.source)?;
        let source = self.source.clone();
        Ok(Box::new(ConfirmedWalk { walk, source }))
    }
}

/// The same result, unless it is damage of a file that is another by now.
fn confirmed_damage<T>(result: Result<T>, source: &dyn Source) -> Result<T> {
    if let Err(Error::Damage(_)) = &result {
        source.confirm()?;
    }
    result
}
