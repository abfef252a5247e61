//! The only room that writes files: in place behind what is there, or whole and then under their name.

mod appender;
mod new_file;
mod spool;
mod staging;
mod together;
mod write_buffer;

use std::ffi::{OsStr, OsString};
use std::path::Path;

pub(crate) use appender::Appender;
pub(crate) use new_file::NewFile;
pub(crate) use spool::Spool;
pub(crate) use staging::Staging;
pub(crate) use together::commit_together;
pub(crate) use write_buffer::WriteBuffer;

/// What is told where a new file does not come to its name.
const NOT_PLACED: &str = "cannot put the new file in its place, and removes it";
/// What is told where it does, and that alone could not be synced.
const NOT_SYNCED: &str = "the new file is complete and in its place, but a loss of power may undo that: its folder cannot be synced";

/// The longest name that still takes what is put around it: file systems take 255 bytes.
const LONGEST_NAME_BYTES: usize = 200;

/// How the name of a temporary file begins that stands beside the one that it is for.
fn prefix(path: &Path) -> OsString {
    let name = path
        .file_name()
        .filter(|name| name.len() <= LONGEST_NAME_BYTES)
        .unwrap_or(OsStr::new("seglake"));
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
