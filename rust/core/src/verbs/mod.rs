//! What can be done with any format: one file a verb.

mod verify;

pub use verify::{Report, verify};
