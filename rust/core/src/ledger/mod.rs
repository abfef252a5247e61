//! The ledger: contiguous byte ranges that cover a file exactly. Each has a kind and, if it is damaged, a cause.
//!
//! ```
//! use std::sync::Arc;
//!
//! use seglake::ledger::Kind;
//! use seglake::source::BytesSource;
//! use seglake::{Options, Reader};
//! # use seglake::format::active;
//! # let mut segment = Vec::new();
//! # let uuids = seglake::uuid6::Generator::default();
//! # for value in [b"first", b"other", b"third"] {
//! #     active::encode(&mut segment, &Default::default(), uuids.now().as_bytes(), b"", value)?;
//! # }
//! # segment[50] ^= 1; // damage to the second of three records
//!
//! let reader = Reader::new(Arc::new(BytesSource::new(segment)), Options::default())?;
//! let mut kinds = Vec::new();
//! for range in reader.ledger()? {
//!     kinds.push(range?.kind);
//! }
//! assert_eq!(kinds, [Kind::Record, Kind::Corrupt, Kind::Record]);
//! # Ok::<(), seglake::Error>(())
//! ```

mod span;
mod summary;

#[doc(hidden)]
pub use span::RecordRun;
#[cfg(feature = "chunked")]
pub(crate) use span::is_refused;
pub(crate) use span::{Fate, Tiling, overlapping, tail_end, whole_kind};
pub use span::{Kind, Span};
pub use summary::{Summary, Total, Totals};

pub use crate::words::Cause;
