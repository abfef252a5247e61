//! Parity sidecars: damage to a file, or to the sidecar itself, is repaired bit for bit.
//!
//! A sidecar has a frame for each band of the file: a hash of each block, and Reed–Solomon parity of groups of blocks.
//! Comments name the rules of the format by their numbers. The functions here read [sources](crate::source) and give
//! bytes to a callback; they write no files.
//!
//! ```
//! use seglake::parity::{Files, Options, Outcome, Parameters, Set, protect, repair, verify};
//! use seglake::source::BytesSource;
//!
//! let file = BytesSource::new(b"hello".repeat(1000));
//! let set = Set { id: *b"a secret", parameters: Parameters::DEFAULT };
//! let mut sidecar = Vec::new();
//! protect(&file, 5000, set, &mut |bytes| { sidecar.extend_from_slice(bytes); Ok(()) })?;
//! let sidecar = BytesSource::new(sidecar);
//!
//! let mut damaged = b"hello".repeat(1000);
//! damaged[77] ^= 1;
//! let source = BytesSource::new(damaged.clone());
//! let files = Files::new(&source, &sidecar);
//! assert_eq!(verify(files, Options::default())?.outcome, Outcome::Repaired);
//! repair(files, Options::default(), &mut |change| change.apply_to_file(&mut damaged))?;
//! assert_eq!(damaged, b"hello".repeat(1000));
//! # Ok::<(), seglake::Error>(())
//! ```
//!
//! # Limits
//!
//! A hash has 64 bits, and the set's ID is in the sidecar. So this is for accidents: it does not stop somebody who can
//! read the sidecar and write the file, or write the sidecar.

mod bytes;
mod change;
mod checks;
mod compute;
mod encode;
mod extend;
mod frames;
mod judge;
mod known;
mod layout;
mod ledger;
mod protected;
mod repair;
mod report;

#[doc(hidden)]
pub use bytes::Files;
#[doc(hidden)]
pub use change::Change;
#[doc(hidden)]
pub use encode::protect;
#[doc(hidden)]
pub use extend::{Coverage, Extended, Refusal, RefusedDamage, extend};

pub(crate) use layout::MAGIC;
pub use layout::Parameters;
#[doc(hidden)]
pub use layout::Set;
pub use ledger::{Cause, FileKind, FileSpan, LostRange, SidecarKind, SidecarSpan, WorstGroup};
pub(crate) use protected::Differences;
pub use protected::ProtectedSource;
#[doc(hidden)]
pub use repair::repair;
#[doc(hidden)]
pub use report::{FrameSpan, Options, verify};
pub use report::{Outcome, Refused, Report};
