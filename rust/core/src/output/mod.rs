//! Only this module writes files: it appends to them, changes them in place, or writes them whole before they get their
//! names.

mod appender;
mod locked_file;
mod new_file;
mod spool;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::disk::DiskRef;
use crate::error::{Error, Result};
pub(crate) use appender::{Appender, WriteBuffer, is_quarantine_offset, pieces, quarantine_suffix};
pub(crate) use locked_file::LockedFile;
pub(crate) use new_file::{NewFile, Staging, commit_together};
pub(crate) use spool::Spool;

/// The error if a new file does not get its name.
const NOT_PLACED: &str = "cannot put the new file in its place, so it is removed";

/// The longest name that can be extended to one of a temporary file: file systems allow 255 bytes.
const LONGEST_NAME_BYTES: usize = 200;

/// The beginning of a temporary file's name, made from the final one.
pub(crate) fn prefix(path: &Path) -> OsString {
    let name = match path.file_name() {
        Some(name) if name.len() <= LONGEST_NAME_BYTES => name,
        _ => OsStr::new("seglake"),
    };
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Refuses a target that is not a regular file, through links too: it can be neither appended to nor replaced.
///
/// # Errors
/// [`Error::Io`].
fn refuse_irregular(disk: &DiskRef, path: &Path) -> Result<()> {
    let regular = match disk.stat(path, true) {
        Ok(stat) => stat.kind.regular("name a file"),
        Err(_) => Ok(()), // a missing file is made, and what hinders that says more
    };
    regular.map_err(|error| Error::io(Some(path), "cannot open for writing", error))
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::disk::DiskRef;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn a_file_is_in_a_folder() {
        for (path, expected) in [
            ("new", "."),
            ("./new", "."),
            ("a/new", "a"),
            ("/new", "/"),
            ("/a/b/new", "/a/b"),
        ] {
            assert_eq!(folder(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn temporary_names_begin_like_the_file_if_that_leaves_room() {
        let long = "n".repeat(LONGEST_NAME_BYTES);
        for (name, expected) in [
            ("a/new.sealed".to_owned(), ".new.sealed.".to_owned()),
            (long.clone(), format!(".{long}.")),
            (format!("{long}n"), ".seglake.".to_owned()),
            ("/".to_owned(), ".seglake.".to_owned()),
        ] {
            assert_eq!(prefix(Path::new(&name)), *expected, "{name}");
        }
    }

    #[test]
    fn a_new_file_that_is_dropped_is_removed_by_its_own_process() {
        for is_own in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("new");
            let mut file = NewFile::create(&DiskRef::default(), &path, false).unwrap();
            assert_eq!(names(folder.path()).len(), 1);
            if !is_own {
                file.file().disown();
            }
            drop(file);
            assert_eq!(names(folder.path()).is_empty(), is_own);
        }
    }

    #[test]
    fn a_new_log_that_is_discarded_is_removed_by_its_own_process() {
        for (is_new, is_own, stays) in [
            (true, true, false),
            (true, false, true),
            (false, true, true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            if !is_new {
                fs::write(&path, b"there before").unwrap();
            }
            let mut log = Appender::open(&DiskRef::default(), &path, true).unwrap();
            log.buffer().extend_from_slice(b"not to be written");
            if !is_own {
                log.disown();
            }
            log.discard();
            drop(log);
            assert_eq!(names(folder.path()).len(), usize::from(stays));
            if stays {
                let before: &[u8] = if is_new { b"" } else { b"there before" };
                assert_eq!(fs::read(&path).unwrap(), before);
            }
        }
    }

    #[test]
    fn a_private_folder_is_removed_by_its_own_process() {
        for is_own in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let mut staging =
                Staging::create(&DiskRef::default(), &folder.path().join("new"), false).unwrap();
            if !is_own {
                staging.disown();
            }
            drop(staging);
            assert_eq!(names(folder.path()).is_empty(), is_own);
        }
    }
}
