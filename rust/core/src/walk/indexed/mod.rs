//! What walks of files with an index in front share: sealed segments and tenant segments.
//!
//! An index, or table of contents, can only be verified by what its entries name. So a walk takes entry by entry, and its ledger
//! ([`Ranges`]) has two parts: ranges of the data in file order, with gaps that no entry's unit takes, and after them those of the front,
//! in which damaged entries are marked. A strict walk that meets damage goes on without records, since the first damage in the file may
//! be a mark.

mod marks;
mod notes;
mod ranges;

pub(crate) use notes::{Note, Notes};
pub(crate) use ranges::{Fields, Ranges, kind};
