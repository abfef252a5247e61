//! An open file, for code that reads and writes it.

use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::sync::Arc;

use super::{DiskFile, Owner, Stat};
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
        self.file.len()
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
        self.file.node()
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

impl Seek for Handle {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
            SeekFrom::End(distance) => self.len()?.checked_add_signed(distance),
        };
        self.position = position.ok_or(ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

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

    #[test]
    fn writing_goes_on_where_it_was_sought() {
        let mut file = nameless();
        file.write_all(b"first").unwrap();
        assert_eq!(file.seek(SeekFrom::Current(-2)).unwrap(), 3);
        file.write_all(b"m").unwrap();
        assert_eq!(file.seek(SeekFrom::End(1)).unwrap(), 6);
        file.write_all(b"x").unwrap();
        assert_eq!(file.seek(SeekFrom::Start(0)).unwrap(), 0);
        file.write_all(b"F").unwrap();
        let refused = file.seek(SeekFrom::Current(-2)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let mut bytes = [0; 7];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"Firmt\0x");
    }
}
