//! What a look-up found in the file as it was covered, compared with what the sidecar says of these records.

use super::Check;
use crate::error::{Error, Result};
use crate::walk::{Hits, Reading, Unproven};

impl Check {
    pub(super) fn judged(&self, mut hits: Hits, reading: Reading) -> Result<Hits> {
        if !self.bands.is_damaged() {
            return Ok(hits);
        }
        let (trust, affected) = (self.trust()?, self.affected()?);
        let mut places = std::mem::take(&mut hits.places);
        {
            let sets: Vec<_> = hits.sets.iter().map(|set| set.rows()).collect();
            for place in &mut places {
                let found = place.and_then(|(set, row)| Some(sets.get(set)?.position(row)));
                let restored = found
                    .and_then(|at| affected.restored_at(trust, at))
                    .filter(|_| !reading.repairs);
                let unproven = found.and_then(|at| affected.unproven_at(at));
                let Some(left_out) = unproven.or(restored) else {
                    continue;
                };
                if reading.strict {
                    return Err(Error::Damage(self.damage(left_out)));
                }
                *place = None;
                hits.unproven = Some(Unproven::Damage);
            }
        }
        // Where records are lost, one that was not found may have been among them.
        if let Some(lost) = affected.unproven.first()
            && places.contains(&None)
        {
            if reading.strict {
                return Err(Error::Damage(self.damage(lost)));
            }
            hits.unproven = Some(Unproven::Damage);
        }
        hits.places = places;
        Ok(hits)
    }
}
