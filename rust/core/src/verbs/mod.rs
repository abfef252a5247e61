//! What can be done with any format: one file a verb.

mod ledger;
mod verify;

pub use ledger::Ledger;
pub use verify::{Report, verify};
