//! What is asked of the operating system about files.

/// What is asked of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    not(feature = "faults"),
    allow(unreachable_pub, reason = "`faults` is what makes it public")
)]
pub enum Operation {
    /// Opening or creating a file or folder, or a second handle of one.
    Open,
    /// Asking for a file's length or kind.
    Stat,
    /// Reading, once: what was asked for may take several.
    Read,
    /// Writing, once.
    Write,
    /// Cutting a file off, or making it longer.
    Truncate,
    /// Handing a file or folder to the disk.
    Sync,
    /// Giving a file a name: a rename or a link.
    Rename,
}
