//! Reads, writes and verifies binary log segments. Every record is verified, and the ledger of a damaged file accounts
//! for every byte.
//!
//! There are six families of segments; [`format`](mod@format) has their table. Reading is strict by default:
//! damage is an error.
//!
//! ```
//! use seglake::format::active;
//! use seglake::{RecordId, Value};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("greetings.active");
//!
//! // Write: a value for each column.
//! let uuid = seglake::uuid6::Generator::default().now();
//! let mut writer = seglake::create(&active::FORMAT, &path)?;
//! writer.write(&[uuid.into(), Value::Null, "greeting".into(), b"hello"[..].into()])?;
//! writer.sync()?;
//! writer.close()?;
//!
//! // Read.
//! for record in seglake::open(&path)?.records() {
//!     let record = record?;
//!     assert_eq!(record.field("type"), Some(Value::Text(b"greeting")));
//!     assert_eq!(record.value(), b"hello");
//! }
//!
//! // Look up.
//! let found = seglake::open(&path)?.get(&RecordId::from(uuid))?;
//! assert_eq!(found.map(|record| record.value().to_vec()), Some(b"hello".to_vec()));
//!
//! // Verify: damage is in the report.
//! let report = seglake::verify(&path)?;
//! assert!(report.is_sound());
//! assert_eq!(report.summary.records, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! - `chunked`, on by default: chunked segments, and zstd, which is compiled from C. Without the feature, this format
//!   is not in the [table](format::FORMATS), its files are of an unknown format, and there is no verb `index`.
//! - `arrow`: Arrow record batches ([`columns`]).
//!
//! The variants of enums do not depend on features.
//!
//! # Logs and sidecars
//!
//! [`store`] has a durable log of segments, to write, read and follow. [`parity`] has sidecars, from which damage is restored bit for
//! bit. [`checksum`] has keys, without which nobody changes a record unnoticed.
//!
//! # From whole files to bytes
//!
//! [`Reader::on_damage`] reads the sound records of a damaged file. [`verbs`] has functions for whole files: recover,
//! convert, seal, diagnose. They take [`Reader::source`]. [`Options`] are for reading,
//! [`WriteOptions`](format::WriteOptions) for writing.
//!
//! Below that, bytes flow one way. A [`source`] reads windows. A [`format`](mod@format)'s [`Walk`](format::Walk) turns
//! them into verified records and ranges of the [`ledger`]. [`columns`] and [`verbs`] make Arrow batches and reports of
//! those. There is one walk for each format, so all readers agree about every byte. Its batches of records borrow from
//! the window, so nothing is copied:
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

#![cfg_attr(docsrs, feature(doc_cfg))]

mod bug;
pub mod checksum;
pub mod columns;
#[cfg(feature = "chunked")]
mod compress;
mod cursor;
mod disk;
mod engine;
pub mod error;
pub mod format;
pub mod ledger;
mod limits;
mod os_paths;
mod output;
pub mod parity;
mod prefetch;
mod private;
mod reader;
mod record;
mod saturating;
mod setters;
pub mod source;
mod spec;
pub mod store;
mod sync;
#[doc(hidden)]
pub mod text;
pub mod uuid6;
pub mod verbs;
mod walk;
mod words;

#[doc(hidden)]
pub use bug::OrBug;
#[doc(hidden)]
pub use disk::durable;
#[cfg(feature = "faults")]
#[doc(hidden)]
pub use disk::faults;
pub use error::{Damage, Error, Finding, Result};
pub use format::{OnDamage, Options, RecordId, Sidecar, Value};
pub use reader::{Reader, Records, create, open, verify};
pub use record::Record;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
