//! The file system as this crate uses it: one trait that every file operation goes through, so that tests can put a
//! disk below it that fails, fills up or loses power.
//!
//! [`System`] is the operating system's file system, and the default everywhere. Another disk can be set in
//! [`Options`](crate::Options) and [`WriteOptions`](crate::format::WriteOptions) as a [`DiskRef`].
#![cfg_attr(
    not(feature = "faults"),
    allow(unreachable_pub, reason = "the feature `faults` makes it public")
)]

#[cfg(feature = "faults")]
pub mod faults;
mod handle;
mod system;

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) use handle::{Handle, Owner};
pub(crate) use system::System;

/// The operations of a file system that this crate uses.
///
/// After a loss of power only this is certain: the bytes of a file up to its last sync, and the names in a folder up to
/// the last sync of that folder. A file that is closed or renamed is not synced by that.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Opens or creates a file.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] and [`ErrorKind::AlreadyExists`] among others.
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a file that holds bytes of another one, to read and write. On Unix others may read and write it if they may that one,
    /// and never more: not for a moment.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn create_like(&self, path: &Path, like: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let _ = like; // without permissions all files are alike
        self.open(path, Opening::New)
    }

    /// Creates a file without a name in a folder. It is gone when its last handle is dropped.
    ///
    /// # Errors
    /// Those of the file system.
    fn nameless(&self, folder: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a folder, with the permissions that new folders of the process have.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if the path exists.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// The file at a path. A symbolic link at its end is followed if `follow` is set.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the path does not exist.
    fn stat(&self, path: &Path, follow: bool) -> io::Result<Stat>;

    /// The path without symbolic links, `.` and `..`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the path does not exist.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// The paths of all files and folders in a folder.
    ///
    /// # Errors
    /// Those of the file system.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Renames a file, and replaces the file that has the new name.
    ///
    /// # Errors
    /// Those of the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file, but replaces none.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if the new name is taken.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if that name is taken.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name of a file.
    ///
    /// # Errors
    /// Those of the file system.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder with its content.
    ///
    /// # Errors
    /// Those of the file system.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Opens a folder, to lock it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the system cannot, among others.
    fn open_folder(&self, folder: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes the names in a folder survive a loss of power.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file of a [`Disk`]. Dropping it closes it.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Properties of the file.
    ///
    /// # Errors
    /// Those of the file system.
    fn stat(&self) -> io::Result<Stat>;

    /// Gives the file the time at which another one was modified, and its mode if both have the same owner and group.
    ///
    /// # Errors
    /// Those of the file system.
    fn set_like(&self, like: &dyn DiskFile) -> io::Result<()>;

    /// Copies bytes of another file to the same offset, without reading them. The files share them if the file system can. Returns how
    /// many were copied: 0 if they have to be read and written.
    ///
    /// # Errors
    /// Those of the file system.
    fn copy_from(&self, other: &dyn DiskFile, offset: u64, len: usize) -> io::Result<usize> {
        let _ = (other, offset, len);
        Ok(0)
    }

    /// The file of the operating system, if it is one.
    fn system(&self) -> Option<&File> {
        None
    }

    /// Reads once, at most as many bytes as the buffer has. Returns 0 at the end of the file.
    ///
    /// # Errors
    /// Those of the file system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes once, perhaps not all of the bytes.
    ///
    /// # Errors
    /// Those of the file system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Cuts the file off at this length, or fills it with zeros up to it.
    ///
    /// # Errors
    /// Those of the file system.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes the bytes and the length survive a loss of power.
    ///
    /// # Errors
    /// Those of the file system. After an error the bytes may be lost although they can still be read.
    fn sync_data(&self) -> io::Result<()>;

    /// As [`sync_data`](Self::sync_data), with times and permissions.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync_all(&self) -> io::Result<()>;

    /// Locks the file until it is closed, everywhere, or unlocked. On Windows others cannot read it meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceBusy`] if another writer holds the lock.
    fn lock(&self) -> io::Result<()>;

    /// Whether another one holds the lock. Looking takes no more than a moment, which a writer that locks the file waits for.
    ///
    /// # Errors
    /// Those of the file system.
    fn is_locked(&self) -> io::Result<bool> {
        match self.lock() {
            Ok(()) => self.unlock().map(|()| false),
            Err(error) if error.kind() == ErrorKind::ResourceBusy => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Ends the lock, also where a fork of the process still has the file open.
    ///
    /// # Errors
    /// Those of the file system.
    fn unlock(&self) -> io::Result<()>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// A new file, to read and write, with the permissions that new files of the process have.
    New,
    /// An existing file that nobody else has a reason to touch, to read. A symbolic link is not followed, and a pipe or device is
    /// refused without waiting for its other end.
    ReadOwn,
    /// The same, to read and write.
    WriteOwn,
}

impl Opening {
    /// Whether the file has to be there.
    #[must_use]
    pub const fn is_existing(self) -> bool {
        !matches!(self, Self::New)
    }
}

/// Properties of the file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its kind.
    pub kind: Kind,
    /// The length in bytes.
    pub len: u64,
    /// Device and inode, if the system has them: two paths of one file have the same.
    pub node: Option<(u64, u64)>,
    /// When it was modified, if the system knows that.
    pub modified: Option<SystemTime>,
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Anything else: a symbolic link, a pipe, a device.
    Other,
}

impl Kind {
    /// Refuses what is not a regular file. `next` says what to do with a pipe or a device.
    pub(crate) fn regular(self, next: &str) -> io::Result<()> {
        match self {
            Self::File => Ok(()),
            Self::Folder => Err(ErrorKind::IsADirectory.into()),
            Self::Other => Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("not a regular file: {next}"),
            )),
        }
    }
}

/// The disk of files: by default the operating system's.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskRef(Option<Arc<dyn Disk>>);

impl From<Arc<dyn Disk>> for DiskRef {
    fn from(disk: Arc<dyn Disk>) -> Self {
        Self(Some(disk))
    }
}

impl Deref for DiskRef {
    type Target = dyn Disk;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            None => &System,
            Some(disk) => &**disk,
        }
    }
}

/// How many names are tried for a temporary file, and how often a file is opened that others replace. Names are random, so that a
/// second try is rare.
const NAMES: usize = 100;

impl DiskRef {
    /// Opens or creates a file.
    pub(crate) fn handle(&self, path: &Path, opening: Opening) -> io::Result<Handle> {
        self.open(path, opening).map(Handle::new)
    }

    /// Opens a file and locks it. Another writer may remove or replace it before it is locked: then the file that has the name now is
    /// opened instead.
    pub(crate) fn locked(
        &self,
        path: &Path,
        follow: bool,
        lock: fn(&Handle) -> io::Result<()>,
        mut open: impl FnMut() -> io::Result<Handle>,
    ) -> io::Result<Handle> {
        for _ in 0..NAMES {
            let file = open()?;
            lock(&file)?;
            if self.names(path, follow, file.node()?)? {
                return Ok(file);
            }
        }
        Err(io::Error::new(
            ErrorKind::ResourceBusy,
            "other writers remove or replace it again and again",
        ))
    }

    /// Whether the file or folder at a path is still this one. Where the system tells no identity, that it is there has to do.
    pub(crate) fn names(
        &self,
        path: &Path,
        follow: bool,
        node: Option<(u64, u64)>,
    ) -> io::Result<bool> {
        match self.stat(path, follow) {
            Ok(stat) => Ok(stat.node == node),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a file exists at a path, also a symbolic link that leads nowhere.
    pub(crate) fn is_taken(&self, path: &Path) -> bool {
        self.stat(path, false).is_ok()
    }

    /// Calls `make` with paths in a folder, of random names with this beginning and end, until one is free.
    pub(crate) fn temporary<T>(
        &self,
        folder: &Path,
        prefix: &std::ffi::OsStr,
        suffix: &str,
        make: impl Fn(&dyn Disk, &Path) -> io::Result<T>,
    ) -> io::Result<(T, PathBuf)> {
        for _ in 0..NAMES {
            let mut name = prefix.to_os_string();
            let (random, _) = crate::sync::random().as_u64_pair();
            name.push(format!("{random:016x}{suffix}"));
            let path = folder.join(name);
            match make(&**self, &path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|made| (made, path)),
            }
        }
        Err(io::Error::new(
            ErrorKind::AlreadyExists,
            format!("{NAMES} random names in a row are taken"),
        ))
    }
}

/// An operation of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

pub mod durable {
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
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let tried = std::cell::Cell::new(0);
        let folder = Path::new("folder");
        let make = |_: &dyn Disk, _: &Path| {
            tried.set(tried.get() + 1);
            match tried.get() {
                3 => Ok(()),
                _ => Err(ErrorKind::AlreadyExists.into()),
            }
        };
        let ((), path) = DiskRef::default()
            .temporary(folder, ".new.".as_ref(), ".tmp", make)
            .unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            name.starts_with(".new.") && name.ends_with(".tmp"),
            "{name}"
        );
        assert_eq!((path.parent(), tried.get()), (Some(folder), 3));
        let taken = |_: &dyn Disk, _: &Path| io::Result::<()>::Err(ErrorKind::AlreadyExists.into());
        let error = DiskRef::default().temporary(folder, ".new.".as_ref(), ".tmp", taken);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_folder_is_removed_with_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskRef::default();
        let inside = folder.path().join("inside");
        disk.create_folder(&inside).unwrap();
        disk.open(&inside.join("file"), Opening::New).unwrap();
        disk.remove_folder(&inside).unwrap();
        assert!(disk.list(folder.path()).unwrap().is_empty());
    }
}
