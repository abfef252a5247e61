//! Reads, writes and verifies binary log segments: every record is checked, and every byte of a damaged file is accounted
//! for.
//!
//! ```
//! use std::sync::Arc;
//! use seglake::format::{Options, Start, Step, active};
//! use seglake::source::BytesSource;
//!
//! let mut segment = Vec::new();
//! let uuid = seglake::uuid6::Generator::default().now();
//! active::encode(&mut segment, &Default::default(), uuid.as_bytes(), b"greeting", b"hello")?;
//!
//! let source = Arc::new(BytesSource::new(segment));
//! let mut walk = seglake::format::open(source, &Options::default(), Start::Beginning)?;
//! while walk.step()? == Step::More {
//!     let rows = walk.rows();
//!     for row in 0..rows.len() {
//!         assert_eq!(rows.value(row), b"hello");
//!     }
//! }
//! # Ok::<(), seglake::Error>(())
//! ```
//!
//! Bytes flow one way: a [`source`] gives windows, a [`format`](mod@format)'s walk turns them into checked records and ranges of the
//! [`ledger`], and [`columns`] and [`verbs`] make Arrow batches and reports of those. There is one walk per format, so no
//! two readers can disagree about a byte.

mod bug;
mod cause;
pub mod checksum;
pub mod columns;
mod compress;
mod cursor;
mod disk;
mod engine;
pub mod error;
#[cfg(feature = "faults")]
pub mod faults;
pub mod format;
pub mod ledger;
mod limits;
mod operation;
mod output;
mod prefetch;
mod record;
mod saturating;
pub mod source;
pub mod text;
pub mod uuid6;
pub mod verbs;
mod words;

#[doc(hidden)]
pub use bug::OrBug;
pub use error::{Damage, Error, Finding, Result};
