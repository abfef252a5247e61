//! What a format does, and what all formats share of it: the one opener, growths, salvaging and appending.

pub(crate) mod append;
pub(crate) mod candidate;
mod format;
pub(crate) mod growth;
mod open;
mod pending;
pub(crate) mod position;
pub(crate) mod salvage;
mod walking_lookup;
pub(crate) mod writer;

pub use format::Format;
#[cfg(feature = "chunked")]
pub(crate) use format::IndexFile;
pub(crate) use format::{Likelihood, Stated};
pub use growth::Growth;
pub use open::Start;
pub use position::{Identity, Position};
pub(crate) use salvage::{Carried, Run, Runs, Salvage, each_piece};
pub(crate) use walking_lookup::WalkingLookup;
pub use writer::{IfExists, WriteOptions, Writer};
