//! The good chunks of a damaged log, each with its padding: so the next begins at a multiple of the alignment again.

use super::layout::ALIGNMENT;
use super::walk::ChunkedWalk;
use crate::engine::{Salvage, Start, Step, Walk};
use crate::error::Result;
use crate::ledger::{Cause, Kind};
use crate::saturating::saturating_usize;

pub(super) fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let mut walk = ChunkedWalk::open(salvage.source(), salvage.options(), Start::Beginning)?;
    let mut is_behind_chunk = false;
    while walk.step()? == Step::More {
        for span in walk.spans() {
            match (span.kind, span.cause) {
                (Kind::Chunk | Kind::Unused, None) => salvage.carry(span.start..span.end)?,
                // Where the chunk is lost, zeros in its place would be damage.
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
