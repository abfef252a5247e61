//! Records as columns: plain buffers here, and, with the feature `arrow`, Arrow record batches made of them without a copy.

#[cfg(feature = "arrow")]
mod ahead;
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
mod uint64;
#[cfg(feature = "arrow")]
mod walk_batches;

pub use crate::record::UuidType;
#[doc(hidden)]
#[cfg(feature = "arrow")]
pub use crate::record::Views;
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
pub use uint64::Uint64Type;
#[cfg(feature = "arrow")]
#[doc(hidden)] // public for the Python extension
pub use walk_batches::Batch;
#[cfg(feature = "arrow")]
pub use walk_batches::Limits;
