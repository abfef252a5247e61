//! An open file, for code that reads and writes it, and the process that owns it.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
#[cfg(unix)]
use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use super::{DiskFile, Stat};
use crate::bug::OrBug;

/// An open file. Only the process that opened it writes to it: a fork has the same buffers, and would write their bytes
/// a second time.
#[derive(Debug)]
pub(crate) struct Handle {
    file: Arc<dyn DiskFile>,
    /// Where [`Write`] continues.
    position: u64,
    owner: Owner,
}

impl Handle {
    pub(crate) fn new(file: Arc<dyn DiskFile>) -> Self {
        Self {
            file,
            position: 0,
            owner: Owner::here(),
        }
    }

    /// Marks it as inherited by a fork of the process that opened the file.
    #[cfg(test)]
    pub(crate) const fn disown(&mut self) {
        self.owner = Owner::elsewhere();
    }

    /// Another handle of the same file.
    pub(crate) fn another(&self) -> Self {
        Self {
            file: self.file.clone(),
            position: 0,
            owner: self.owner,
        }
    }

    /// The file's length in bytes.
    pub(crate) fn len(&self) -> io::Result<u64> {
        self.stat().map(|stat| stat.len)
    }

    /// Properties of the file.
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    /// As [`DiskFile::set_like`].
    pub(crate) fn set_like(&self, like: &Self) -> io::Result<()> {
        self.owner.check()?;
        self.file.set_like(&*like.file)
    }

    /// As [`DiskFile::copy_from`].
    pub(crate) fn copy_from(&self, other: &Self, offset: u64, len: usize) -> io::Result<usize> {
        self.owner.check()?;
        loop {
            match self.file.copy_from(&*other.file, offset, len) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                copied => return copied,
            }
        }
    }

    /// Locks the file: [`ErrorKind::ResourceBusy`] if another one holds the lock.
    pub(crate) fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    /// Whether a writer holds the lock.
    pub(crate) fn is_locked(&self) -> io::Result<bool> {
        self.file.is_locked()
    }

    /// Locks a file against other writers that others read meanwhile. On Windows that would keep these out too, so there is no lock.
    pub(crate) fn lock_beside_readers(&self) -> io::Result<()> {
        if cfg!(windows) {
            return Ok(());
        }
        self.lock()
    }

    /// Ends a lock of this process. A fork of it may have the file open, and would keep the lock.
    pub(crate) fn unlock(&self) {
        if self.is_own() {
            let _ = self.file.unlock(); // it ends with the file anyway
        }
    }

    /// Device and inode, if the system has them.
    pub(crate) fn node(&self) -> io::Result<Option<(u64, u64)>> {
        self.stat().map(|stat| stat.node)
    }

    /// Fills the buffer, in as many reads as needed; [`ErrorKind::UnexpectedEof`] if the file ends before.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset + done as u64) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => done += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of the bytes, in as many writes as needed.
    pub(crate) fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        self.owner.check()?;
        while !bytes.is_empty() {
            match self.file.write_at(bytes, offset) {
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
        self.file.set_len(len)
    }

    /// Makes the bytes and the length survive a loss of power.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.owner.check()?;
        self.file.sync_data()
    }

    /// As [`sync_data`](Self::sync_data), with times and permissions.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        self.owner.check()?;
        self.file.sync_all()
    }

    /// Whether this process opened it.
    pub(crate) fn is_own(&self) -> bool {
        self.owner.is_here()
    }
}

impl Write for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.owner.check()?;
        let written = self.file.write_at(bytes, self.position)?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The process that owns something. A fork of it shares its files, but must not change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    process: u32,
    /// How many forks that process is away from the first one.
    forks: u64,
}

impl Owner {
    /// This process.
    pub(crate) fn here() -> Self {
        count_forks();
        Self {
            process: std::process::id(),
            forks: forks(),
        }
    }

    /// Another process.
    #[cfg(test)]
    pub(crate) const fn elsewhere() -> Self {
        Self {
            process: 0,
            forks: u64::MAX,
        }
    }

    /// Whether this is the owner. Asked with each record, so it is one load.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.forks == forks()
    }

    fn check(self) -> io::Result<()> {
        if self.is_here() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "process {} opened it, and this one is a fork of that: write there, or open a file of its own here",
            self.process
        )))
    }
}

/// How many forks this process is away from the one that loaded the crate, since [`count_forks`] was called first.
#[cfg(unix)]
static FORKS: AtomicU64 = AtomicU64::new(0);

#[cfg(unix)]
#[inline]
fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Elsewhere no process is a fork.
#[cfg(not(unix))]
const fn forks() -> u64 {
    0
}

/// Has each fork from now on count itself.
#[cfg(unix)]
#[allow(unsafe_code)]
fn count_forks() {
    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> std::ffi::c_int;
    }
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static COUNTED: OnceLock<()> = OnceLock::new();
    COUNTED.get_or_init(|| {
        // SAFETY: the signature is that of POSIX. The handler lives as long as the code that it is part of, and only adds to an
        // atomic number, which a child may do whatever its parent's other threads were doing.
        if unsafe { pthread_atfork(None, None, Some(in_child)) } != 0 {
            // The only error: there is no memory for it.
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[Handler; 3]>());
        }
    });
}

#[cfg(not(unix))]
const fn count_forks() {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::disk::{Disk, System};

    fn nameless() -> Handle {
        Handle::new(System.nameless(&std::env::temp_dir()).unwrap())
    }

    #[test]
    fn only_the_process_that_opened_a_file_writes_to_it() {
        let mut file = nameless();
        assert!(file.is_own());
        file.write_all(b"own").unwrap();
        file.disown();
        assert!(!file.is_own());
        assert!(!file.another().is_own());
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
}
