//! The only room that reads: sources give bytes by offset, and a window keeps the stretch that a walk works on.

mod ahead;
mod file;
mod memory;
mod patched;
mod tail;
mod window;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

pub use ahead::{PieceSizes, ReadAhead};
pub use file::{FileSource, open_regular};
pub use memory::{BytesSource, MappedSource};
pub(crate) use patched::PatchedSource;
pub(crate) use tail::data_end;
pub(crate) use window::Window;

use crate::disk::{DiskRef, Kind};
use crate::error::{Error, Result};

/// Bytes of a fixed length that can be read at any offset.
///
/// The length is settled when the source is made: bytes that are appended later are not seen, and bytes that vanish are an
/// error, never a shorter file.
pub trait Source: Send + Sync {
    /// The number of bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path or name that errors should give.
    fn path(&self) -> Option<&Path>;

    /// All the bytes at once, where they are in memory already: then nothing is copied.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Io`] where the bytes cannot be read, also where the file has shrunk.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// The file beside this one, of the same name but for its extension; `None` where there is none, or this has no name. A
    /// [`path`](Self::path) names a file of this machine, unless the source knows better.
    ///
    /// # Errors
    /// [`Error::Io`] where that cannot be told, or it cannot be opened.
    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        file_beside(&DiskRef::default(), self.path(), extension)
    }

    /// Whether what is read may be of several files, so that somebody has to [confirm](Self::confirm) that it is not.
    fn is_replaceable(&self) -> bool {
        false
    }

    /// Makes sure that all that was read is of one and the same file, where another may have been put in its place
    /// meanwhile: an object of a store. Asked before damage is told, and at the end of what is read.
    ///
    /// # Errors
    /// [`Error::Io`] where it is another file by now, or that cannot be told.
    fn confirm(&self) -> Result<()> {
        Ok(())
    }
}

/// The file beside a file, as [`Source::beside`].
fn file_beside(
    disk: &DiskRef,
    own: Option<&Path>,
    extension: &str,
) -> Result<Option<Arc<dyn Source>>> {
    let Some(own) = own else {
        return Ok(None);
    };
    let path = own.with_extension(extension);
    if path == own {
        return Ok(None);
    }
    match disk.stat(&path, true) {
        Ok(stat) if stat.kind == Kind::File => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(Some(&path), "cannot stat", error)),
    }
    Ok(Some(Arc::new(FileSource::open(disk, &path)?)))
}
