//! Records, whatever their format: columns and values, batches of records, and buffers of whole columns.

mod buffer;
mod column;
mod rows;
mod scalar;

pub use buffer::{ColumnBuffer, Values};
pub use column::{Checked, Column, ColumnKind, Order, UuidType, Value};
pub(crate) use rows::OwnedRows;
pub use rows::{Record, RecordId, RecordSet, Room, Rows};
pub use scalar::Scalar;
