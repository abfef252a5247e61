//! The file system of the operating system. Tests make its calls fail (feature `faults`; without it the calls have no
//! additions).

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use memmap2::Mmap;

#[cfg(feature = "faults")]
use super::faults::reach;
use super::{Disk, DiskFile, Kind, Opening, Operation, Stat};
use crate::bug::OrBug;
use crate::cursor::Cursor;

/// Continues an operation with the number of bytes to transfer.
#[cfg(not(feature = "faults"))]
#[inline(always)]
const fn reach(_: Operation, bytes: usize) -> io::Result<usize> {
    Ok(bytes)
}

/// Syncs a file or folder. Only this function does, so tests that see it called see every sync.
fn sync(file: &File, how: fn(&File) -> io::Result<()>) -> io::Result<()> {
    reach(Operation::Sync, 0)?;
    let synced = how(file);
    // There the standard library also empties the cache of the drive, which file systems of the network know nothing of.
    #[cfg(unix)]
    if cfg!(target_vendor = "apple") {
        return or_plainly(synced, || Ok(rustix::fs::fsync(file)?));
    }
    synced
}

/// Syncs plainly what a file system cannot sync in the way that failed.
#[cfg(unix)]
fn or_plainly(synced: io::Result<()>, plainly: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    use rustix::io::Errno;
    let unknown = [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::INVAL, Errno::NOTTY];
    match synced {
        Err(error) if Errno::from_io_error(&error).is_some_and(|code| unknown.contains(&code)) => {
            plainly()
        }
        synced => synced,
    }
}

/// How often a lock is tried that another one has, and how long between two tries: readers have it for a moment.
const LOCK_TRIES: usize = 20;
const LOCK_WAIT: Duration = Duration::from_millis(1);

/// The operating system's file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System;

impl System {
    /// Opens a file for reading.
    pub(crate) fn read(path: &Path) -> io::Result<File> {
        reach(Operation::Open, 0)?;
        File::open(path)
    }

    /// Maps a file.
    #[allow(unsafe_code)]
    pub(crate) fn map(file: &File) -> io::Result<Mmap> {
        reach(Operation::Open, 0)?;
        // SAFETY: the map is only read, and only by a `MappedSource`. Who makes one promises that the bytes do not change.
        unsafe { Mmap::map(file) }
    }
}

/// `FILE_SHARE_READ | FILE_SHARE_WRITE`.
#[cfg(windows)]
const READ_AND_WRITE: u32 = 1 | 2;

/// Refuses what is not a regular file.
fn refuse_irregular(kind: fs::FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    let found = match kind {
        kind if kind.is_symlink() => "a symbolic link, which is not followed",
        kind if kind.is_dir() => "a folder",
        _ => "a pipe, socket or device",
    };
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        format!("expected a regular file, found {found}. Move it elsewhere"),
    ))
}

/// Opens a regular file. It is looked at before, since opening a device may do something, and afterwards, since another one may have
/// its name by then.
fn open_own(path: &Path, write: bool) -> io::Result<File> {
    refuse_irregular(fs::symlink_metadata(path)?.file_type())?;
    let mut options = OpenOptions::new();
    options.read(true).write(write);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK,
    );
    // Others may read and write it, but not remove or rename it while it is open.
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, READ_AND_WRITE);
    let file = options.open(path)?;
    refuse_irregular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reading and writing, by the owner alone.
#[cfg(unix)]
const OWNER: u32 = 0o600;

/// Lets those read and write a file who may another one. Its owner may do both, as it is written to again.
#[cfg(unix)]
fn share_like(file: &File, like: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let metadata = file.metadata()?;
    let (user, group) = (metadata.uid() != like.uid(), metadata.gid() != like.gid());
    // Only root may give a file away, and others only to their groups.
    let is_given = fchown(file, user.then(|| like.uid()), group.then(|| like.gid())).is_ok()
        || !group
        || fchown(file, None, Some(like.gid())).is_ok();
    let (group, others) = (like.mode() >> 3 & 0o6, like.mode() & 0o6);
    let shared = match is_given {
        true => group << 3 | others,
        // The members of either group may be among the others of the other file.
        false => (group & others) << 3 | group & others,
    };
    match file.set_permissions(fs::Permissions::from_mode(OWNER | shared)) {
        // Some file systems have no such permissions. What nobody else may read stays so.
        Err(_) if file.metadata()?.mode() & 0o066 & !shared == 0 => Ok(()),
        done => done,
    }
}

/// Gives a file the mode of another one, if both are of one owner and group. Otherwise it would let others read and write it.
#[cfg(unix)]
fn set_mode_like(file: &File, like: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let of = |metadata: &fs::Metadata| (metadata.uid(), metadata.gid());
    let metadata = file.metadata()?;
    if of(&metadata) == of(like) && metadata.mode() != like.mode() {
        return file.set_permissions(like.permissions());
    }
    Ok(())
}

impl Disk for System {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn DiskFile>> {
        if opening == Opening::Read {
            return Ok(Arc::new(Self::read(path)?));
        }
        if let Opening::ReadOwn | Opening::WriteOwn = opening {
            reach(Operation::Open, 0)?;
            return Ok(Arc::new(open_own(path, opening == Opening::WriteOwn)?));
        }
        reach(Operation::Open, 0)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.create_new(!opening.is_existing());
        Ok(Arc::new(options.open(path)?))
    }

    #[cfg(unix)]
    fn create_like(&self, path: &Path, like: &Path) -> io::Result<Arc<dyn DiskFile>> {
        use std::os::unix::fs::OpenOptionsExt;
        reach(Operation::Open, 0)?;
        let like = fs::metadata(like)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(OWNER);
        let file = options.open(path)?;
        if let Err(error) = share_like(&file, &like) {
            let _ = fs::remove_file(path); // the first error is reported
            return Err(error);
        }
        Ok(Arc::new(file))
    }

    fn nameless(&self, folder: &Path) -> io::Result<Arc<dyn DiskFile>> {
        reach(Operation::Open, 0)?;
        Ok(Arc::new(tempfile::tempfile_in(folder)?))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        reach(Operation::Open, 0)?;
        fs::create_dir(path)
    }

    fn stat(&self, path: &Path, follow: bool) -> io::Result<Stat> {
        reach(Operation::Stat, 0)?;
        let metadata = if follow {
            fs::metadata(path)
        } else {
            fs::symlink_metadata(path)
        }?;
        Ok(stat_of(&metadata))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        reach(Operation::Open, 0)?;
        fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        reach(Operation::Rename, 0)?;
        fs::rename(from, to)
    }

    /// The standard library has no such call, and tempfile has one for each system.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        reach(Operation::Rename, 0)?;
        let mut from = tempfile::TempPath::try_from_path(from)?;
        from.disable_cleanup(true);
        from.persist_noclobber(to).map_err(|error| error.error)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        reach(Operation::Rename, 0)?;
        fs::hard_link(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    /// Windows has no locks of folders.
    fn open_folder(&self, folder: &Path) -> io::Result<Arc<dyn DiskFile>> {
        if cfg!(unix) {
            return Ok(Arc::new(Self::read(folder)?));
        }
        Err(ErrorKind::Unsupported.into())
    }

    /// On Windows names need no sync of their own.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if cfg!(unix) {
            sync(&File::open(folder)?, File::sync_all)?;
        }
        Ok(())
    }
}

impl DiskFile for File {
    fn stat(&self) -> io::Result<Stat> {
        reach(Operation::Stat, 0)?;
        self.metadata().map(|metadata| stat_of(&metadata))
    }

    fn set_like(&self, like: &dyn DiskFile) -> io::Result<()> {
        reach(Operation::Stat, 0)?;
        let like = like.system().or_bug("a file of the same disk");
        let like = like.map_err(io::Error::other)?.metadata()?;
        #[cfg(unix)]
        set_mode_like(self, &like)?;
        match like.modified() {
            Ok(modified) => self.set_modified(modified),
            Err(_) => Ok(()), // some systems have no such time
        }
    }

    /// What the system cannot do, or not now, reading and writing does, or reports.
    #[cfg(target_os = "linux")]
    fn copy_from(&self, other: &dyn DiskFile, offset: u64, len: usize) -> io::Result<usize> {
        let len = reach(Operation::Write, len)?;
        let (mut from, mut to) = (offset, offset);
        let copied = other.system().map(|other| {
            rustix::fs::copy_file_range(other, Some(&mut from), self, Some(&mut to), len)
        });
        Ok(copied.and_then(Result::ok).unwrap_or_default())
    }

    fn system(&self) -> Option<&File> {
        Some(self)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = reach(Operation::Read, buffer.len())?;
        let buffer = buffer
            .get_mut(..bytes)
            .or_bug("no more bytes to read than were asked for")
            .map_err(io::Error::other)?;
        read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let most = reach(Operation::Write, bytes.len())?;
        write_at(self, Cursor::new(bytes).run_up_to(most), offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        reach(Operation::Truncate, 0)?;
        Self::set_len(self, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        sync(self, Self::sync_data)
    }

    fn sync_all(&self) -> io::Result<()> {
        sync(self, Self::sync_all)
    }

    fn lock(&self) -> io::Result<()> {
        let mut tries = LOCK_TRIES;
        loop {
            match self.try_lock() {
                // Perhaps a reader looks whether there is a writer.
                Err(fs::TryLockError::WouldBlock) if tries > 0 => {
                    tries -= 1;
                    crate::sync::sleep(LOCK_WAIT);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    let error = "another writer has it open";
                    return Err(io::Error::new(ErrorKind::ResourceBusy, error));
                }
                Err(fs::TryLockError::Error(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Shared, so that readers do not take each other for writers.
    fn is_locked(&self) -> io::Result<bool> {
        match self.try_lock_shared() {
            Ok(()) => Self::unlock(self).map(|()| false),
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        Self::unlock(self)
    }
}

fn stat_of(metadata: &fs::Metadata) -> Stat {
    let kind = match metadata.file_type() {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Folder,
        _ => Kind::Other,
    };
    Stat {
        kind,
        len: metadata.len(),
        node: node(metadata),
        modified: metadata.modified().ok(), // some systems have no such time
    }
}

#[cfg(unix)]
fn node(metadata: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
const fn node(_: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_keeps_another_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || System.open(file.path(), Opening::Write).unwrap();
        let (first, second) = (open(), open());
        first.lock().unwrap();
        let refused = second.lock().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
        drop(first);
        second.lock().unwrap();
    }

    /// A fork of the process has the same open file, and may live on.
    #[cfg(unix)]
    #[test]
    fn a_lock_ends_though_a_fork_has_the_file_open() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let first = File::open(file.path()).unwrap();
        let fork = first.try_clone().unwrap();
        let second = System.open(file.path(), Opening::Write).unwrap();
        DiskFile::lock(&first).unwrap();
        DiskFile::unlock(&first).unwrap();
        second.lock().unwrap();
        drop(fork);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_locked_and_known_by_its_identity() {
        let folder = tempfile::tempdir().unwrap();
        let open = || System.open_folder(folder.path()).unwrap();
        let (first, second) = (open(), open());
        first.lock().unwrap();
        assert_eq!(second.lock().unwrap_err().kind(), ErrorKind::ResourceBusy);
        let node = System.stat(folder.path(), true).unwrap().node;
        assert!(node.is_some());
        assert_eq!(first.stat().unwrap().node, node);
    }

    /// Linux refuses to sync a file without a disk. So an error shows that the system was called.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_sync_reaches_the_system() {
        let null = System.open(Path::new("/dev/null"), Opening::Write).unwrap();
        let invalid =
            |result: io::Result<()>| result.unwrap_err().kind() == ErrorKind::InvalidInput;
        assert!(invalid(null.sync_data()));
        assert!(invalid(null.sync_all()));
        assert!(invalid(System.sync_folder(Path::new("/proc"))));
        let folder = tempfile::tempdir().unwrap();
        System.sync_folder(folder.path()).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn what_a_file_system_does_not_know_is_synced_plainly() {
        use rustix::io::Errno;
        let plainly = || Err(ErrorKind::StorageFull.into());
        for errno in [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::INVAL, Errno::NOTTY] {
            let synced = or_plainly(Err(errno.into()), plainly);
            assert_eq!(synced.unwrap_err().kind(), ErrorKind::StorageFull);
        }
        for done in [Ok(()), Err(Errno::IO), Err(Errno::NOSPC)] {
            let is_called = std::cell::Cell::new(false);
            let synced = or_plainly(done.map_err(io::Error::from), || {
                is_called.set(true);
                Ok(())
            });
            assert_eq!((synced.is_ok(), is_called.get()), (done.is_ok(), false));
        }
        or_plainly(Err(Errno::INVAL.into()), || {
            Ok(rustix::fs::fsync(tempfile::tempfile()?)?)
        })
        .unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn folders_have_the_permissions_of_new_folders() {
        let folder = tempfile::tempdir().unwrap();
        let [inside, other] = ["inside", "other"].map(|name| folder.path().join(name));
        System.create_folder(&inside).unwrap();
        fs::create_dir(&other).unwrap();
        let permissions = |path| fs::metadata(path).unwrap().permissions();
        assert_eq!(permissions(inside), permissions(other));
    }

    #[cfg(unix)]
    #[test]
    fn own_files_are_regular_ones() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let [file, link, pipe, inside] =
            ["file", "link", "pipe", "inside"].map(|name| folder.path().join(name));
        fs::write(&file, b"own").unwrap();
        symlink(&file, &link).unwrap();
        fs::create_dir(&inside).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for opening in [Opening::ReadOwn, Opening::WriteOwn] {
            assert_eq!(System.open(&file, opening).unwrap().stat().unwrap().len, 3);
            for (path, found) in [
                (&link, "a symbolic link, which is not followed"),
                (&pipe, "a pipe, socket or device"),
                (&inside, "a folder"),
                (&"/dev/null".into(), "a pipe, socket or device"),
            ] {
                let error = System.open(path, opening).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.to_string().contains(found), "{error}");
            }
            let missing = System.open(&folder.path().join("missing"), opening);
            assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
        }
    }

    #[test]
    fn names_are_replaced_only_if_asked() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        for path in [&first, &second] {
            fs::write(path, path.to_str().unwrap()).unwrap();
        }
        for refused in [
            System.rename_new(&first, &second),
            System.hard_link(&first, &second),
            System.create_folder(&second),
            System.open(&second, Opening::New).map(drop),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::AlreadyExists);
        }
        assert_eq!(System.list(folder.path()).unwrap().len(), 2);
        System.rename(&first, &second).unwrap();
        assert_eq!(
            fs::read(&second).unwrap(),
            first.to_str().unwrap().as_bytes()
        );
        System.rename_new(&second, &first).unwrap();
        let stat = System.stat(&first, true).unwrap();
        assert_eq!(
            (stat.kind, stat.len),
            (Kind::File, first.as_os_str().len() as u64)
        );
        assert_eq!(System.list(folder.path()).unwrap(), [first]);
    }
}
