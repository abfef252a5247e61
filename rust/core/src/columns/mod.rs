//! Records as columns: plain buffers here, and, with the feature `arrow`, Arrow record batches made of them without a copy.

#[cfg(feature = "arrow")]
mod batches;
mod buffer;

#[cfg(feature = "arrow")]
pub use batches::{Batch, Batches, Limits, Selection, UuidType};
pub use buffer::ColumnBuffer;
