//! The only room that reads: sources give bytes by offset, and a window keeps the stretch that a walk works on.

mod file;
mod memory;
mod patched;
mod tail;
mod window;

use std::path::Path;

pub use file::{FileSource, open_regular};
pub use memory::{BytesSource, MappedSource};
pub(crate) use patched::PatchedSource;
pub(crate) use tail::data_end;
pub(crate) use window::Window;

use crate::error::Result;

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
    /// [`Error::Io`](crate::Error::Io) where the bytes cannot be read, also where the file has shrunk.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}
