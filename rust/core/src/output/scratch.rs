//! Files without a name, for what does not fit in memory.

use std::fs::File;
use std::path::Path;

use super::folder;
use crate::error::{Error, Result};

/// A temporary file in the folder of `path`, readable by its owner alone. It has no name, or loses it at once, so nothing is
/// left of it whatever happens.
///
/// # Errors
/// [`Error::Io`] where the folder cannot be written to.
pub(crate) fn scratch_file(path: &Path) -> Result<File> {
    tempfile::tempfile_in(folder(path)).map_err(|error| {
        Error::io(
            Some(path),
            "cannot create a temporary file beside it",
            error,
        )
    })
}
