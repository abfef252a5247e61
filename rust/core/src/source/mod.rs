//! Sources give bytes by offset, and only they read. A window caches the range that a walk works on.
//!
//! [`FileSource`] is a file, [`BytesSource`] a buffer. Anything else implements [`Source`]:
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use seglake::source::Source;
//! use seglake::{Error, Options, Reader, Result};
//!
//! /// An object of a store, of which ranges are requested.
//! struct Object(Vec<u8>);
//!
//! impl Source for Object {
//!     fn len(&self) -> u64 {
//!         self.0.len() as u64
//!     }
//!
//!     fn path(&self) -> Option<&Path> {
//!         Some(Path::new("bucket/orders.active"))
//!     }
//!
//!     fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
//!         let found = self.0.get(offset as usize..).and_then(|rest| rest.get(..buffer.len()));
//!         let Some(found) = found else {
//!             let missing = std::io::ErrorKind::UnexpectedEof.into();
//!             return Err(Error::io(self.path(), format!("cannot read at offset {offset}"), missing));
//!         };
//!         buffer.copy_from_slice(found);
//!         Ok(())
//!     }
//! }
//! # use seglake::format::active;
//! # let mut segment = Vec::new();
//! # let uuid = seglake::uuid6::Generator::default().now();
//! # active::encode(&mut segment, &Default::default(), uuid.as_bytes(), b"", b"hello")?;
//!
//! let reader = Reader::new(Arc::new(Object(segment)), Options::default())?;
//! assert_eq!(reader.records().count(), 1);
//! # Ok::<(), Error>(())
//! ```

mod ahead;
mod bound;
mod file;
mod memory;
mod unchanged;
mod view;
mod window;

use std::any::Any;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

#[doc(hidden)]
pub use ahead::{PieceSizes, ReadAhead};
pub(crate) use bound::expected_len;
#[doc(hidden)]
pub use bound::{Bound, SaidBy};
pub use file::FileSource;
#[doc(hidden)]
pub use file::open_regular;
pub(crate) use file::up_to_page;
pub(crate) use memory::out_of_bounds;
pub use memory::{BytesSource, MappedSource};
pub(crate) use unchanged::{ReadAgain, Unchanged};
#[doc(hidden)]
pub use view::CappedSource;
pub(crate) use view::{BoundSource, Change, Fill, View, uncompared};
pub(crate) use window::{Window, data_end, data_end_after, read_array};

use crate::disk::{DiskRef, Kind};
use crate::error::{Error, Result};

/// Bytes of a fixed length that can be read at any offset.
///
/// The length is set when the source is created. Bytes that are appended later are not visible. Bytes that vanish are
/// an error, and never make the file shorter.
pub trait Source: Send + Sync {
    /// The number of bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    #[doc(hidden)] // for clippy: a type with `len` has it
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path or name for errors.
    fn path(&self) -> Option<&Path>;

    /// All bytes, if they are in memory already. Then nothing is copied. They are the same at each call.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Io`] if the bytes cannot be read, also if the file has shrunk.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// The same, of bytes that were read before, and whose hashes the caller compares with those of what it read then. So a source that
    /// verifies what it gives need not verify these once more.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at).
    #[doc(hidden)]
    fn read_again_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_exact_at(offset, buffer)
    }

    /// The file beside this one, with the same name but this extension. `None` if there is none, or if this source has
    /// no name. By default a [`path`](Self::path) is one of this machine.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, or if its existence cannot be checked.
    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        file_beside(&DiskRef::default(), self.path(), extension)
    }

    /// Whether the bytes may come from several files in turn, so that a reader must [confirm](Self::confirm) that they
    /// do not.
    fn is_replaceable(&self) -> bool {
        false
    }

    /// Confirms that all bytes were read from the same file. An object of a store may have been replaced by another
    /// meanwhile. Called before damage is reported, and at the end of a walk.
    ///
    /// # Errors
    /// [`Error::Io`] if the file was replaced, or if that cannot be checked.
    fn confirm(&self) -> Result<()> {
        Ok(())
    }

    /// Whether a writer has the file open, or has written to it since it was opened here. Then a record that is not finished at its end is
    /// no damage. By default nothing is known of writers.
    ///
    /// # Errors
    /// [`Error::Io`].
    #[doc(hidden)] // files alone know of writers
    fn is_written(&self) -> Result<bool> {
        Ok(false)
    }

    /// How far the file has to be filled with records, as a [log](crate::store) says of its segments. `None` where nothing is known,
    /// as of a file by itself.
    #[doc(hidden)]
    fn bound(&self) -> Option<Bound> {
        None
    }

    /// The [file](crate::parity::ProtectedSource) that this is, or is a part of, if that is read by its parity sidecar.
    #[doc(hidden)]
    fn by_sidecar(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
}

/// What a source passes on to the one that it wraps, its field `source`: which file it is, with `bound` how far that has to reach, and
/// unless its bytes are `other` ones by which sidecar it is read.
macro_rules! passed_on {
    (bound) => {
        passed_on!();

        fn bound(&self) -> Option<$crate::source::Bound> {
            self.source.bound()
        }
    };
    () => {
        passed_on!(other);

        fn by_sidecar(&self) -> Option<Arc<dyn std::any::Any + Send + Sync>> {
            self.source.by_sidecar()
        }
    };
    (other) => {
        fn path(&self) -> Option<&Path> {
            self.source.path()
        }

        fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
            self.source.beside(extension)
        }

        fn is_replaceable(&self) -> bool {
            self.source.is_replaceable()
        }

        fn confirm(&self) -> Result<()> {
            self.source.confirm()
        }

        fn is_written(&self) -> Result<bool> {
            self.source.is_written()
        }
    };
}
pub(crate) use passed_on;

/// Refuses to read beyond the end of a source that ends before the one that it wraps.
pub(crate) fn check_within(source: &dyn Source, offset: u64, len: usize) -> Result<()> {
    match offset.saturating_add(len as u64) > source.len() {
        true => Err(out_of_bounds(source, offset, len)),
        false => Ok(()),
    }
}

/// The file beside a file, as [`Source::beside`].
fn file_beside(
    disk: &DiskRef,
    file: Option<&Path>,
    extension: &str,
) -> Result<Option<Arc<dyn Source>>> {
    let Some(file) = file else {
        return Ok(None);
    };
    let path = file.with_extension(extension);
    if path == file {
        return Ok(None);
    }
    match disk.stat(&path, true) {
        Ok(stat) if stat.kind == Kind::File => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(Some(&path), "cannot stat", error)),
    }
    Ok(Some(Arc::new(FileSource::open_on(disk, &path)?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_beyond_the_end_of_a_part() {
        let whole: Arc<dyn Source> = Arc::new(BytesSource::new(b"some bytes"));
        let bound = Bound {
            offset: 4,
            last: None,
            said_by: SaidBy::Mark,
            is_complete: false,
        };
        let parts: [Box<dyn Source>; 2] = [
            Box::new(CappedSource::new(whole.clone(), 4)),
            Box::new(BoundSource::up_to(whole, bound)),
        ];
        for part in parts {
            let mut buffer = [0; 3];
            for (offset, is_within) in [(1, true), (2, false), (5, false), (u64::MAX, false)] {
                assert_eq!(part.read_exact_at(offset, &mut buffer).is_ok(), is_within);
                assert_eq!(part.read_again_at(offset, &mut buffer).is_ok(), is_within);
            }
        }
    }
}
