//! What is asked of the operating system about files: the one seam that every read, write, sync and rename passes, and at
//! which tests make them fail (the feature `faults`; without it nothing is added to the calls).

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use crate::bug::OrBug;
use crate::cursor::Cursor;
#[cfg(feature = "faults")]
use crate::faults::{reach, reach_sync};
use crate::operation::Operation;

/// Goes on with an operation, on so many bytes of those that were asked for.
#[cfg(not(feature = "faults"))]
#[inline(always)]
const fn reach(_: Operation, bytes: usize) -> io::Result<usize> {
    Ok(bytes)
}

/// Goes on with a sync of this file or folder.
#[cfg(not(feature = "faults"))]
#[inline(always)]
fn reach_sync(_: &File) -> io::Result<()> {
    reach(Operation::Sync, 0).map(drop)
}

/// Syncs a file or folder. The one place that does, so that tests that see it reached see the sync.
fn sync(file: &File, how: fn(&File) -> io::Result<()>) -> io::Result<()> {
    reach_sync(file)?;
    how(file)
}

/// An open file. Only the process that opened it writes to it: a fork of that has the same buffers, and would write what is in
/// them a second time.
#[derive(Debug)]
pub(crate) struct Handle {
    file: File,
    owner: Owner,
}

impl Handle {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            owner: Owner::here(),
        }
    }

    /// As a fork of the process that opened the file has it.
    #[cfg(test)]
    pub(crate) const fn disown(&mut self) {
        self.owner = Owner::elsewhere();
    }

    pub(crate) fn open(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        reach(Operation::Open, 0)?;
        options.open(path).map(Self::new)
    }

    /// A file without a name in this folder.
    pub(crate) fn nameless(folder: &Path) -> io::Result<Self> {
        reach(Operation::Open, 0)?;
        tempfile::tempfile_in(folder).map(Self::new)
    }

    /// Another handle of the same file.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        reach(Operation::Open, 0)?;
        Ok(Self {
            file: self.file.try_clone()?,
            owner: self.owner,
        })
    }

    /// The file's length in bytes.
    pub(crate) fn len(&self) -> io::Result<u64> {
        reach(Operation::Stat, 0)?;
        self.file.metadata().map(|metadata| metadata.len())
    }

    /// Keeps other writers out, on Unix: gives [`ErrorKind::ResourceBusy`] where there is one.
    pub(crate) fn lock(&self) -> io::Result<()> {
        #[cfg(unix)]
        self.file.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => {
                io::Error::new(ErrorKind::ResourceBusy, "another writer has it open")
            }
            fs::TryLockError::Error(error) => error,
        })?;
        Ok(())
    }

    /// Reads once, at most as many bytes as the buffer has.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = reach(Operation::Read, buffer.len())?;
        let buffer = buffer
            .get_mut(..bytes)
            .or_bug("no more bytes to read than were asked for")
            .map_err(io::Error::other)?;
        read_at(&self.file, buffer, offset)
    }

    /// Fills the buffer, however often it takes; [`ErrorKind::UnexpectedEof`] where the file ends before.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read_at(rest, offset + done as u64) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => done += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of the bytes, however often it takes.
    pub(crate) fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        self.owner.check()?;
        while !bytes.is_empty() {
            let written = reach(Operation::Write, bytes.len())
                .and_then(|most| write_at(&self.file, Cursor::new(bytes).run_up_to(most), offset));
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = bytes
                        .get(written..)
                        .or_bug("no more bytes written than were given")
                        .map_err(io::Error::other)?;
                    offset += written as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.owner.check()?;
        reach(Operation::Truncate, 0)?;
        self.file.set_len(len)
    }

    /// Hands the bytes to the disk, and what it takes to find them again.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.owner.check()?;
        sync(&self.file, File::sync_data)
    }

    /// Hands everything to the disk, times and permissions too.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        self.owner.check()?;
        sync(&self.file, File::sync_all)
    }

    /// Whether this process opened it.
    pub(crate) fn is_own(&self) -> bool {
        self.owner.is_here()
    }
}

impl Write for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.owner.check()?;
        let most = reach(Operation::Write, bytes.len())?;
        self.file.write(Cursor::new(bytes).run_up_to(most))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Handle {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The process that something belongs to. A fork of it shares its files, but must leave them alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    /// This process.
    pub(crate) fn here() -> Self {
        Self(std::process::id())
    }

    /// Another process.
    #[cfg(test)]
    pub(crate) const fn elsewhere() -> Self {
        Self(0)
    }

    /// Whether that is this process.
    pub(crate) fn is_here(self) -> bool {
        self == Self::here()
    }

    fn check(self) -> io::Result<()> {
        if self.is_here() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "process {} opened it, and this one is a fork of that: write there, or open a file of its own here",
            self.0
        )))
    }
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    reach(Operation::Open, 0)?;
    File::open(path)
}

/// What is at a path, links followed.
pub(crate) fn metadata(path: &Path) -> io::Result<fs::Metadata> {
    reach(Operation::Stat, 0)?;
    fs::metadata(path)
}

/// Gives a file another name, in the place of what has it.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    reach(Operation::Rename, 0)?;
    fs::rename(from, to)
}

/// Gives a file a second name, if nothing has that.
pub(crate) fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    reach(Operation::Rename, 0)?;
    fs::hard_link(from, to)
}

/// Gives a temporary file its name, in the place of what has it or only if nothing has.
pub(crate) fn persist(from: tempfile::TempPath, to: &Path, overwrite: bool) -> io::Result<()> {
    reach(Operation::Rename, 0)?;
    let persisted = if overwrite {
        from.persist(to)
    } else {
        from.persist_noclobber(to)
    };
    persisted.map_err(|error| error.error)
}

/// Begins a temporary file or folder by `make`.
pub(crate) fn temporary<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    reach(Operation::Open, 0)?;
    make()
}

/// The files in a folder.
pub(crate) fn read_folder(path: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    reach(Operation::Open, 0)?;
    fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect()
}

/// Makes the names in a folder last: on Unix that takes a sync of its own.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        sync(&File::open(folder)?, File::sync_all)?;
    }
    Ok(())
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
    fn only_the_process_that_opened_a_file_writes_to_it() {
        let mut file = Handle::nameless(&std::env::temp_dir()).unwrap();
        assert!(file.is_own());
        file.write_all(b"own").unwrap();
        file.disown();
        assert!(!file.is_own());
        assert!(!file.try_clone().unwrap().is_own());
        for refused in [
            file.write_all_at(b"other", 0),
            file.write_all(b"other"),
            file.set_len(1),
            file.sync_data(),
            file.sync_all(),
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("process 0 opened it"), "{error}");
        }
        let mut bytes = [0; 3];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!((&bytes, file.len().unwrap()), (b"own", 3));
    }

    #[cfg(unix)]
    #[test]
    fn one_writer_keeps_another_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || Handle::open(file.path(), OpenOptions::new().write(true)).unwrap();
        let (first, second) = (open(), open());
        first.lock().unwrap();
        let refused = second.lock().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
        drop(first);
        second.lock().unwrap();
    }

    /// Linux refuses to sync what has no disk, so that an error shows that it was asked to.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_sync_reaches_the_system() {
        let null = Handle::open(Path::new("/dev/null"), OpenOptions::new().write(true)).unwrap();
        let invalid =
            |result: io::Result<()>| result.unwrap_err().kind() == ErrorKind::InvalidInput;
        assert!(invalid(null.sync_data()));
        assert!(invalid(null.sync_all()));
        assert!(invalid(sync_folder(Path::new("/proc"))));
        let folder = tempfile::tempdir().unwrap();
        sync_folder(folder.path()).unwrap();
    }
}
