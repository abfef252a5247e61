//! The only room that writes files: in place behind what is there, or whole and then under their name.

mod appender;
mod new_file;
mod spool;
mod staging;

use std::fs::File;
use std::path::Path;

pub(crate) use appender::Appender;
pub(crate) use new_file::NewFile;
pub(crate) use spool::Spool;
pub(crate) use staging::Staging;

/// Makes a new file's name last: on Unix that takes a sync of its folder.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        File::open(folder(path))?.sync_all()?;
    }
    Ok(())
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
