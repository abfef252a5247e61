//! Reads, looks up and writes files, whatever their format: the interface of formats, and machinery that all of them
//! share.

mod alike;
pub(crate) mod append;
pub(crate) mod appended;
pub(crate) mod around;
mod budget;
pub(crate) mod candidate;
mod confirmed;
mod driver;
pub(crate) mod empty;
mod filter;
mod filtered;
mod format;
pub(crate) mod growth;
pub(crate) mod lookup;
mod open;
mod options;
mod parity;
pub(crate) mod part;
mod pending;
pub(crate) mod position;
pub(crate) mod salvage;
pub(crate) mod settings;
pub(crate) mod spec;
mod walk;
mod walking_lookup;
pub(crate) mod writer;

pub(crate) use alike::has_same_records;
pub(crate) use budget::{Budget, follows_plausibly};
pub(crate) use driver::{Advance, Driver, Scan};
pub use filter::Filter;
pub(crate) use filter::{Types, UuidBounds};
pub(crate) use filtered::SelectedRows;
pub use format::Format;
#[cfg(feature = "chunked")]
pub(crate) use format::IndexFile;
pub(crate) use format::Likelihood;
pub use growth::Growth;
pub use lookup::{Hits, Lookup, Unproven};
pub use open::Start;
pub use options::{IndexSource, Interrupt, Options};
pub use parity::ParityCheck;
pub(crate) use parity::{Reading, Watch};
pub use part::Part;
pub(crate) use part::part_bytes;
pub use position::{Identity, Position};
pub(crate) use salvage::{Carried, Run, Runs, Salvage, each_piece};
pub use settings::{FormatOption, OptionKind, Setting};
pub(crate) use spec::Applied;
pub use spec::{Dialect, Spec};
pub(crate) use walk::{Begin, OffsetNumbering, Opening, Purpose, UnprovenPolicy};
pub use walk::{Carry, Eof, Step, Walk};
pub(crate) use walk::{cannot_resume, check_start, sum_up};
pub(crate) use walking_lookup::WalkingLookup;
pub use writer::{IfExists, WriteOptions, Writer};
