//! Operations on files of any format: one module for each verb.

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
pub use diagnosis::{Certainty, Diagnosis, Neighbour, Reason, Repair};
#[cfg(feature = "chunked")]
pub use index::{Indexed, index};
pub use ledger::Ledger;
pub use protect::{ProtectOptions, Protected, SidecarChange, default_sidecar, protect};
#[doc(hidden)]
pub use protect::{find_sidecar, open_sidecar};
pub use recover::{RecoverOptions, Recovered, recover, undo_recover};
pub use repair::{RepairOptions, Repaired, repair};
pub(crate) use repair::{kept_of, repaired_name};
pub use report::{ParityReport, Report};
pub use seal::{SealOptions, seal};
pub use verify::{verify, verify_in_parts, verify_parallel, verify_parity};
