//! The good records of a damaged segment, one behind the other, and its unused space as it is.

use super::walk::ActiveWalk;
use crate::engine::{Salvage, Start, Step, Walk};
use crate::error::Result;

pub(super) fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let mut walk = ActiveWalk::open(salvage.source(), salvage.options(), Start::Beginning)?;
    while walk.step()? == Step::More {
        for span in walk.spans().iter().filter(|span| !span.is_damage()) {
            salvage.carry(span.start..span.end)?;
        }
    }
    Ok(())
}
