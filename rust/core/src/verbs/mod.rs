//! Operations on files of any format: one module for each verb.
//!
//! Each takes a [source](crate::source), or a path where it changes files in place; options for reading; and its own options. The last
//! argument is called at intervals with how many bytes are done. An error that it returns ends the work.
//!
//! ```
//! use std::sync::Arc;
//!
//! use seglake::Options;
//! use seglake::source::FileSource;
//! use seglake::verbs::{RecoverOptions, recover};
//! # use seglake::format::active;
//! # let folder = tempfile::tempdir()?;
//! # let (damaged, sound) = (folder.path().join("damaged.active"), folder.path().join("sound.active"));
//! # let mut segment = Vec::new();
//! # let uuids = seglake::uuid6::Generator::default();
//! # for value in [b"first", b"other", b"third"] {
//! #     active::encode(&mut segment, &Default::default(), uuids.now().as_bytes(), b"", value)?;
//! # }
//! # segment[50] ^= 1; // damage to the second of three records
//! # std::fs::write(&damaged, segment)?;
//!
//! let source = Arc::new(FileSource::open(&damaged)?);
//! let done = recover(source, &Options::default(), &sound, &RecoverOptions::default(), |_| Ok(()))?;
//! assert!(done.is_lossy());
//! assert!(seglake::verify(&sound)?.is_sound());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod convert;
mod diagnose;
mod diagnosis;
#[cfg(feature = "chunked")]
mod index;
mod ledger;
mod paths;
mod proof;
mod protect;
mod recover;
mod repair;
mod report;
mod seal;
mod serialized;
mod stages;
mod verify;

pub use convert::{ConvertOptions, convert};
pub use diagnose::{DiagnoseOptions, diagnose};
pub use diagnosis::{Certainty, Diagnosis, Edit, Missing, Neighbour, Reason, Repair};
#[cfg(feature = "chunked")]
pub use index::{Indexed, index};
pub use ledger::Ledger;
pub use protect::{ProtectOptions, Protected, SidecarChange, protect};
#[doc(hidden)]
pub use protect::{find_sidecar, open_sidecar};
pub use recover::{RecoverOptions, Recovered, recover, undo_recover};
pub use repair::{RepairOptions, Repaired, repair};
pub(crate) use repair::{kept_of, repaired_name};
pub use report::{ParityReport, Report};
pub use seal::{SealOptions, seal};
pub use verify::{verify, verify_in_parts, verify_parallel, verify_parity};
