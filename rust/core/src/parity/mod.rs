//! Parity sidecars: damage to a file, or to the sidecar itself, is repaired bit for bit.
//!
//! A sidecar has a frame for each band of the file: a hash of each block, and Reed–Solomon parity of groups of blocks.
//! [`protect`](crate::verbs::protect) writes it, [`repair`](crate::verbs::repair) repairs by it, and
//! [`ProtectedSource`] reads by it. Comments name the rules of the format by their numbers.
//!
//! ```
//! use seglake::Options;
//! use seglake::parity::Outcome;
//! use seglake::verbs::{ProtectOptions, RepairOptions, protect, repair};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("orders.active");
//! # let mut writer = seglake::create(&seglake::format::active::FORMAT, &path)?;
//! # let null = seglake::Value::Null;
//! # writer.write(&[null.clone(), null, "order.paid".into(), (&[b'x'; 100_000][..]).into()])?;
//! # writer.close()?;
//!
//! // orders.active.par, from which damage is restored.
//! protect(&path, &Options::default(), &ProtectOptions::default(), |_| Ok(()))?;
//! # let mut bytes = std::fs::read(&path)?;
//! # bytes[20] ^= 1; // damage
//! # std::fs::write(&path, bytes)?;
//!
//! // A damaged file is read by its sidecar, and repaired by it.
//! assert_eq!(seglake::verify(&path)?.parity.map(|parity| parity.outcome()), Some(Outcome::Repaired));
//! let repaired = repair(&path, &Options::default(), &RepairOptions::default(), |_| Ok(()))?;
//! assert_eq!(repaired.outcome(), Outcome::Repaired);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! A hash has 64 bits, and the set's ID is in the sidecar. So this is for accidents: it does not stop somebody who can
//! read the sidecar and write the file, or write the sidecar.

mod band;
mod bytes;
mod checks;
mod encode;
mod extend;
mod frames;
mod judge;
mod layout;
mod ledger;
mod protected;
mod report;

#[doc(hidden)]
pub use bytes::Files;
#[doc(hidden)]
pub use encode::{Change, protect};
#[doc(hidden)]
pub use extend::{Coverage, Extended, extend};

pub(crate) use layout::MAGIC;
pub use layout::Parameters;
#[doc(hidden)]
pub use layout::Set;
pub use ledger::{Cause, FileKind, FileSpan, LostRange};
#[doc(hidden)]
// public for the Python extension, which shows them: users have the `Outcome` and the file's ranges
pub use ledger::{SidecarKind, SidecarSpan, WorstGroup};
pub(crate) use protected::Differences;
pub use protected::ProtectedSource;
#[doc(hidden)]
pub use report::{FrameSpan, Options, repair, verify};
pub(crate) use report::{NAME_ANOTHER, no_frame};
pub use report::{Outcome, Refused, Report};
