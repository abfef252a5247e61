//! The ledger: contiguous byte ranges that cover a file exactly. Each has a kind and, if it is damaged, a cause.

mod covered;
mod last;
mod notes;
mod span;
mod summary;
mod tail;
#[cfg(test)]
mod tests;
mod tiling;
mod totals;

use covered::Covered;
pub(crate) use last::emit_last;
pub(crate) use notes::{Note, Notes, Place};
pub use span::{Kind, RecordRun, Span};
pub use summary::Summary;
#[cfg(feature = "chunked")]
pub(crate) use tail::is_refused;
pub(crate) use tail::{Fate, tail_end, whole_kind};
pub(crate) use tiling::Tiling;
pub use totals::{Total, Totals};

pub use crate::cause::Cause;
