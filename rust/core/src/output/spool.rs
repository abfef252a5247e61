//! A spool: bytes that are stored until their place is known.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{WriteBuffer, folder};
use crate::cursor::Cursor;
use crate::disk::{DiskRef, Handle};
use crate::error::{Error, Result};
use crate::saturating::saturating_usize;
use crate::source::FileSource;

/// A buffered file without a name, in the folder of the file that will be made from it. It vanishes with its writer,
/// also after a kill.
#[derive(Debug)]
pub(crate) struct Spool {
    /// Without a path, there is none before the first flush.
    file: Option<Handle>,
    disk: DiskRef,
    /// The path of the final file, if there is one.
    path: Option<PathBuf>,
    buffer: WriteBuffer,
}

impl Spool {
    /// An empty spool for the file that will be `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if its folder cannot be written to.
    pub(crate) fn create(disk: &DiskRef, path: &Path) -> Result<Self> {
        let file = disk.nameless(folder(path)).map_err(|error| {
            Error::io(Some(path), "cannot open a temporary file beside it", error)
        })?;
        Ok(Self {
            file: Some(Handle::new(file)),
            disk: disk.clone(),
            path: Some(path.to_path_buf()),
            buffer: WriteBuffer::new(0),
        })
    }

    /// An empty spool without a final file. It is in memory as long as it fits into the buffer, then in the system's
    /// folder for temporary files.
    pub(crate) fn aside() -> Self {
        Self {
            file: None,
            disk: DiskRef::default(),
            path: None,
            buffer: WriteBuffer::new(0),
        }
    }

    /// The bytes that are not in the file yet, to append to. There may be padding before them.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.bytes()
    }

    /// The number of bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.buffer.end()
    }

    /// Flushes a full buffer.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.is_full() {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Hands all bytes to the operating system.
    ///
    /// # Errors
    /// [`Error::Io`]. Unwritten bytes stay buffered, and flushing again writes them to their place.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let bytes = self.buffer.len();
        let path = beside(self.path.as_deref());
        let failed = |error| {
            let action = format!(
                "cannot write {bytes} bytes to a temporary file beside it: they stay buffered"
            );
            Error::io(Some(&path), action, error)
        };
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = self.disk.nameless(folder(&path)).map_err(failed)?;
                none.insert(Handle::new(file))
            }
        };
        self.buffer.write_to(file).map_err(failed)
    }

    /// All bytes, to read.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn source(&mut self) -> Result<FileSource> {
        self.flush()?;
        let file = match &self.file {
            Some(file) => Ok(file.another()),
            None => Err(std::io::ErrorKind::NotFound.into()),
        };
        let file = file.map_err(|error| self.unreadable(error))?;
        FileSource::of(file, &self.disk, &beside(self.path.as_deref()))
    }

    /// Reads at most `most` bytes from `at` on into `out`. Past the end it reads none.
    ///
    /// # Errors
    /// [`Error::Io`] if they cannot be read.
    pub(crate) fn read(&self, at: u64, most: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let start = self.buffer.start();
        let in_file = start.saturating_sub(at);
        let len = saturating_usize(in_file).min(most);
        if len > 0 {
            out.resize(len, 0);
            let read = match &self.file {
                Some(file) => file.read_exact_at(out, at),
                None => Err(std::io::ErrorKind::NotFound.into()),
            };
            read.map_err(|error| {
                out.clear();
                self.unreadable(error)
            })?;
        }
        let mut pending = Cursor::new(self.buffer.pending()?);
        pending.run_up_to(saturating_usize(at.saturating_sub(start)));
        out.extend_from_slice(pending.run_up_to(most - len));
        Ok(())
    }

    fn unreadable(&self, error: std::io::Error) -> Error {
        let action = "cannot read a temporary file beside it";
        Error::io(Some(&beside(self.path.as_deref())), action, error)
    }
}

/// The path beside which a temporary file is created, for its folder and for errors. The system's folder is looked up
/// only when needed: most spools stay empty, and a walk may make one for each record.
fn beside(path: Option<&Path>) -> Cow<'_, Path> {
    path.map_or_else(
        || Cow::from(std::env::temp_dir().join("seglake")),
        Cow::from,
    )
}
