//! Records as columns: plain buffers here, and, with the feature `arrow`, Arrow record batches made of them without a copy.

#[cfg(feature = "arrow")]
mod arrays;
#[cfg(feature = "arrow")]
mod batches;
mod buffer;
#[cfg(feature = "arrow")]
mod damage;
mod extend;
#[cfg(feature = "arrow")]
mod pipe;
#[cfg(feature = "arrow")]
mod selection;
#[cfg(feature = "arrow")]
mod side_by_side;
#[cfg(feature = "arrow")]
mod views;

#[cfg(feature = "arrow")]
pub use batches::{Batch, Batches, Limits};
pub use buffer::{ColumnBuffer, Values};
#[cfg(feature = "arrow")]
pub use damage::{damage, damage_schema};
#[cfg(feature = "arrow")]
pub use selection::Selection;
#[cfg(feature = "arrow")]
pub use views::Views;

/// How UUIDs appear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UuidType {
    /// As fixed-size binary of 16 bytes, in network byte order.
    #[default]
    Fixed,
    /// The same bytes as plain binary.
    Binary,
    /// As hyphenated lower-case text.
    Text,
}
