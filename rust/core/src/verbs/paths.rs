//! Paths of a verb's files, which must differ.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::disk::{DiskRef, Kind};
use crate::error::{Error, Result};
use crate::output::folder;
use crate::source::Source;
use crate::text;

/// The path with a suffix after its name.
pub(super) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The file that a link leads to; any other path as it is.
pub(super) fn led_to(disk: &DiskRef, path: &Path) -> PathBuf {
    let is_link = disk
        .stat(path, false)
        .is_ok_and(|stat| stat.kind == Kind::Other);
    // A link that leads nowhere cannot be opened either, which says more.
    match is_link.then(|| disk.canonical(path)) {
        Some(Ok(target)) => target,
        _ => path.to_path_buf(),
    }
}

/// Refuses two names of one file.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn refuse_same(disk: &DiskRef, files: &[(&str, Option<&Path>)]) -> Result<()> {
    let named = files
        .iter()
        .filter_map(|(what, path)| path.map(|path| (*what, path)));
    let known: Vec<_> = named
        .map(|(what, path)| (what, path, Identity::of(disk, path)))
        .collect();
    for (number, (what, path, identity)) in known.iter().enumerate() {
        let others = known.iter().take(number);
        for (other, other_path, other_identity) in others {
            if identity.is_same(other_identity) {
                return Err(Error::Usage(format!(
                    "{}: {what} would be {other}, {}: name another file",
                    text::path(path),
                    text::path(other_path)
                )));
            }
        }
    }
    Ok(())
}

/// Refuses to write the file that is read. A file elsewhere may have the path of one here.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn refuse_source(
    disk: &DiskRef,
    source: &dyn Source,
    destination: Option<&Path>,
) -> Result<()> {
    let files = [
        (
            "the file that is read",
            source.path().filter(|_| !source.is_replaceable()),
        ),
        ("the new file", destination),
    ];
    refuse_same(disk, &files)
}

/// What identifies a file, whatever its name.
struct Identity {
    /// Its path with links resolved, as far as it exists.
    path: PathBuf,
    /// Device and number, if the file exists.
    node: Option<(u64, u64)>,
}

impl Identity {
    fn of(disk: &DiskRef, path: &Path) -> Self {
        let in_folder = |folder: PathBuf| match path.file_name() {
            Some(name) => folder.join(name),
            None => folder,
        };
        let canonical = disk
            .canonical(path)
            .or_else(|_| disk.canonical(folder(path)).map(in_folder))
            .unwrap_or_else(|_| path.to_path_buf());
        Self {
            path: canonical,
            node: disk.stat(path, true).ok().and_then(|stat| stat.node),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.path == other.path || self.node.is_some() && self.node == other.node
    }
}
