//! What makes files durable that others wrote: the calls by which this crate's own writers do it.
//!
//! A new file survives a loss of power as a whole, or not at all, if its content is synced ([`sync_file`]), then it gets its name
//! ([`rename`]), and then the folder of that name is synced ([`sync_folder`]).

use std::io;
use std::path::Path;

use super::{DiskRef, Opening};

/// Makes the content of a file survive a loss of power.
///
/// # Errors
/// Those of the file system. After an error nothing is certain, and a further call says nothing of what failed.
pub fn sync_file(path: impl AsRef<Path>) -> io::Result<()> {
    // Windows syncs no file that is open to read only.
    let opening = if cfg!(windows) {
        Opening::Write
    } else {
        Opening::Read
    };
    DiskRef::default().open(path.as_ref(), opening)?.sync_all()
}

/// Makes the names in a folder survive a loss of power. On Windows they need no sync of their own.
///
/// # Errors
/// As [`sync_file`].
pub fn sync_folder(path: impl AsRef<Path>) -> io::Result<()> {
    DiskRef::default().sync_folder(path.as_ref())
}

/// Gives a file another name, and replaces the file that has it.
///
/// # Errors
/// Those of the file system.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    DiskRef::default().rename(from.as_ref(), to.as_ref())
}

/// Gives a file another name, and replaces none.
///
/// # Errors
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the name is taken; others where the file system can only replace.
pub fn rename_new(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    DiskRef::default().rename_new(from.as_ref(), to.as_ref())
}
