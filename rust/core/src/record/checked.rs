//! How records are known to be right.

/// How records are known to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checked {
    /// Each by a checksum.
    Checksum,
    /// By nothing but that lengths and offsets fit.
    Structure,
}

impl Checked {
    /// The word that reports use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Checksum => "checksum",
            Self::Structure => "structure",
        }
    }
}
