//! What can be done with any format: one file a verb.

mod index;
mod ledger;
mod verify;

pub use index::{Indexed, index};
pub use ledger::Ledger;
pub use verify::{Report, verify};
