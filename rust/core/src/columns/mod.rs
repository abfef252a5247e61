//! Records as columns: plain buffers here, and, with the feature `arrow`, Arrow record batches made of them without a copy.
#![cfg_attr(feature = "arrow", doc = "```")]
#![cfg_attr(not(feature = "arrow"), doc = "```ignore")]
//! use seglake::columns::{Batches, Limits, Selection, UuidType};
//! use seglake::{Options, Reader};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("orders.active");
//! # let mut writer = seglake::create(&seglake::format::active::FORMAT, &path)?;
//! # let null = seglake::Value::Null;
//! # writer.write(&[null.clone(), null, "order.paid".into(), b"{}"[..].into()])?;
//! # writer.close()?;
//!
//! let (reader, options) = (Reader::open(&path, Options::default())?, Options::default());
//! let selection = Selection::new(reader.format(), &options, None, UuidType::Extension)?;
//! for batch in Batches::threaded(reader.source(), &options, selection, Limits::default(), 2)? {
//!     println!("{} records", batch?.num_rows());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "arrow")]
mod arrays;
#[cfg(feature = "arrow")]
mod batches;
#[cfg(feature = "arrow")]
mod damage;
#[cfg(feature = "arrow")]
mod parallel;
#[cfg(feature = "arrow")]
mod selection;
#[cfg(feature = "arrow")]
mod walk_batches;

pub use crate::record::UuidType;
#[doc(hidden)]
pub use crate::record::{ColumnBuffer, Values};
#[cfg(feature = "arrow")]
pub use batches::Batches;
#[cfg(feature = "arrow")]
#[doc(hidden)] // public for the Python extension
pub use damage::{damage, damage_schema};
#[cfg(feature = "arrow")]
pub use selection::Selection;
#[cfg(feature = "arrow")]
pub use selection::Uint64Type;
#[cfg(feature = "arrow")]
#[doc(hidden)] // public for the Python extension
pub use walk_batches::Batch;
#[cfg(feature = "arrow")]
pub use walk_batches::Limits;
