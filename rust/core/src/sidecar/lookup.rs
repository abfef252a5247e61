//! A look-up in the file as it was covered, compared with what the sidecar says of the records that are found.

use std::sync::Arc;

use super::Check;
use crate::engine::{Filter, Hits, Lookup, Options, ParityCheck as _, Restored, Unproven, Walk};
use crate::error::{Error, Result};
use crate::own::Own;
use crate::record::RecordId;

/// Records that are not proven are not found. In strict reading they are the error.
pub(super) struct WatchedLookup {
    lookup: Box<dyn Lookup>,
    check: Arc<Check>,
    options: Options,
}

impl WatchedLookup {
    pub(super) fn new(lookup: Box<dyn Lookup>, check: Arc<Check>, options: &Options) -> Self {
        Self {
            lookup,
            check,
            options: options.clone(),
        }
    }
}

impl Own for WatchedLookup {}

impl Lookup for WatchedLookup {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        let mut hits = self.lookup.get(ids)?;
        if !self.check.bands.is_damaged() {
            return Ok(hits);
        }
        let (trust, affected) = (self.check.trust()?, self.check.affected()?);
        let mut places = std::mem::take(&mut hits.places);
        {
            let sets: Vec<_> = hits.sets.iter().map(|set| set.rows()).collect();
            for place in &mut places {
                let found = place.and_then(|(set, row)| Some(sets.get(set)?.position(row)));
                let restored = found
                    .and_then(|at| affected.restored_at(trust, at))
                    .filter(|_| self.options.restored == Restored::LeftOut);
                let unproven = found.and_then(|at| affected.unproven_at(at));
                let Some(left_out) = unproven.or(restored) else {
                    continue;
                };
                if self.options.strict {
                    return Err(Error::Damage(self.check.damage(left_out)));
                }
                *place = None;
                hits.unproven = Some(Unproven::Damage);
            }
        }
        // Where records are lost, one that was not found may have been among them.
        if let Some(lost) = affected.unproven.first()
            && places.contains(&None)
        {
            if self.options.strict {
                return Err(Error::Damage(self.check.damage(lost)));
            }
            hits.unproven = Some(Unproven::Damage);
        }
        hits.places = places;
        Ok(hits)
    }

    fn prepare(&self) -> Result<()> {
        self.lookup.prepare()
    }

    fn range(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let walk = self.lookup.range(filter)?;
        Ok(self.check.clone().watch(walk, &self.options, false))
    }
}
