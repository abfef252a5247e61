//! Salvages the good chunks of a damaged log, each with its padding, so that the next one begins at a multiple of
//! the alignment.

use super::layout::ALIGNMENT;
use super::walk::ChunkedWalk;
use crate::engine::Salvage;
use crate::error::Result;
use crate::ledger::{Cause, Kind};
use crate::saturating::saturating_usize;
use crate::walk::{Begin, Step, Walk};

pub(super) fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let mut walk = ChunkedWalk::open(salvage.source(), salvage.options(), Begin::Beginning)?;
    let mut is_behind_chunk = false;
    while walk.step()? == Step::More {
        for span in walk.spans() {
            match (span.kind, span.cause) {
                (Kind::Chunk | Kind::Unused, None) => salvage.carry(span.start..span.end)?,
                // Zeros in place of a lost chunk would be damage, so they are left out.
                (Kind::Padding, None) if is_behind_chunk => salvage.carry(span.start..span.end)?,
                (_, Some(Cause::NonzeroPadding)) if is_behind_chunk => {
                    // Less than the alignment.
                    let len = saturating_usize(span.len().min(ALIGNMENT));
                    salvage.put(&vec![0; len], None)?;
                }
                _ => {}
            }
            is_behind_chunk = span.kind == Kind::Chunk;
        }
    }
    Ok(())
}
