//! How records are verified.

use serde::{Deserialize, Serialize};

/// How records are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Checked {
    /// By a checksum for each.
    Checksum,
    /// By their structure alone: lengths and offsets are consistent.
    Structure,
    /// By their structure, and their bytes by a parity sidecar.
    Parity,
}

impl Checked {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Checksum => "checksum",
            Self::Structure => "structure",
            Self::Parity => "parity",
        }
    }
}
