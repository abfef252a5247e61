//! What can be done with any format: one file a verb.

mod convert;
mod ledger;
mod verify;

pub use convert::{Conversion, convert};
pub use ledger::Ledger;
pub use verify::{Report, verify};
