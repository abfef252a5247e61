//! Records, whatever their format: columns and values, batches of records, and buffers of whole columns.

mod buffer;
mod checked;
mod column;
mod extend;
mod id;
mod owned;
mod rows;
mod scalar;
mod uuid_type;
#[cfg(feature = "arrow")]
pub(crate) mod views;

pub use buffer::{ColumnBuffer, Values};
pub use checked::Checked;
pub use column::{Column, ColumnKind, Order, Value};
pub use id::RecordId;
pub(crate) use owned::OwnedRows;
pub use owned::{Record, RecordSet};
pub use rows::{Room, Rows};
pub use scalar::Scalar;
pub use uuid_type::UuidType;
#[cfg(feature = "arrow")]
pub use views::Views;
