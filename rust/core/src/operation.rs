//! The operations of the operating system on files.

/// An operation of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    not(feature = "faults"),
    allow(unreachable_pub, reason = "`faults` is what makes it public")
)]
pub enum Operation {
    /// Opening or creating a file or folder, or duplicating a handle.
    Open,
    /// Reading a file's length or kind.
    Stat,
    /// One read call. A request may take several.
    Read,
    /// One write call.
    Write,
    /// Truncating or extending a file.
    Truncate,
    /// Syncing a file or folder.
    Sync,
    /// Naming a file: a rename or a link.
    Rename,
}
