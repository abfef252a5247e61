//! The ledger: contiguous byte ranges that cover a file exactly. Each has a kind and, if it is damaged, a cause.

mod span;
mod summary;
mod tail;
#[cfg(test)]
mod tests;
mod tiling;
mod totals;

#[doc(hidden)]
pub use span::RecordRun;
pub(crate) use span::overlapping;
pub use span::{Kind, Span};
pub use summary::Summary;
#[cfg(feature = "chunked")]
pub(crate) use tail::is_refused;
pub(crate) use tail::{Fate, tail_end, whole_kind};
use tiling::Covered;
pub(crate) use tiling::Tiling;
pub use totals::{Total, Totals};

pub use crate::cause::Cause;
