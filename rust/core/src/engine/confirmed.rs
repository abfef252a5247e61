//! Object stores: confirm that the object was not replaced before damage or a miss is reported.

use std::sync::Arc;

use super::around::{Around, Change};
use super::{Filter, Hits, Lookup, Step, Walk};
use crate::error::{Error, Result};
use crate::own::Own;
use crate::record::RecordId;
use crate::source::Source;

/// [Confirms](Source::confirm) a walk's source before damage is reported, and at the end of the walk.
pub(crate) struct Confirming {
    walk: Box<dyn Walk>,
    source: Arc<dyn Source>,
}

impl Confirming {
    /// Wraps a walk.
    pub(crate) fn around(walk: Box<dyn Walk>, source: Arc<dyn Source>) -> Box<dyn Walk> {
        Box::new(Around(Self { walk, source }))
    }

    fn confirmed(&self, step: Result<Step>) -> Result<Step> {
        let step = confirmed_damage(step, &*self.source)?;
        if step != Step::More || self.walk.found_damage() {
            self.source.confirm()?;
        }
        Ok(step)
    }
}

impl Change for Confirming {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        let step = self.walk.step();
        self.confirmed(step)
    }

    fn settle(&mut self) -> Result<Step> {
        let settled = self.walk.settle();
        self.confirmed(settled)
    }
}

/// The same for a look-up, where a miss is confirmed like damage.
pub(crate) struct ConfirmedLookup {
    pub(crate) lookup: Box<dyn Lookup>,
    pub(crate) source: Arc<dyn Source>,
}

impl Own for ConfirmedLookup {}

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
        Ok(Confirming::around(walk, self.source.clone()))
    }
}

/// Returns the result. If it is damage, the source is confirmed first.
fn confirmed_damage<T>(result: Result<T>, source: &dyn Source) -> Result<T> {
    if let Err(Error::Damage(_)) = &result {
        source.confirm()?;
    }
    result
}
