//! Sources in memory: a buffer, or a mapped file.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::Source;
use crate::disk::System;
use crate::error::{Error, Result};

/// A buffer as a source.
#[derive(Debug)]
pub struct BytesSource<B> {
    bytes: B,
    path: Option<PathBuf>,
}

impl<B: AsRef<[u8]> + Send + Sync> BytesSource<B> {
    /// A source of `bytes`. Errors name it `<buffer>`.
    pub const fn new(bytes: B) -> Self {
        Self { bytes, path: None }
    }
}

impl<B: AsRef<[u8]> + Send + Sync> Source for BytesSource<B> {
    fn len(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(self.bytes.as_ref())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|start| {
                self.bytes
                    .as_ref()
                    .get(start..start.checked_add(buffer.len())?)
            })
            .ok_or_else(|| out_of_bounds(self, offset, buffer.len()))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

pub(crate) fn out_of_bounds(source: &dyn Source, offset: u64, len: usize) -> Error {
    let action = format!(
        "cannot read {len} bytes at offset {offset} of {}",
        source.len()
    );
    Error::io(
        source.path(),
        action,
        std::io::ErrorKind::UnexpectedEof.into(),
    )
}

/// A mapped file as a source. It needs no copies, and a random access costs a page fault.
///
/// Map only files that nobody changes, on disks that do not fail. If another process truncates the file, or a page
/// cannot be read, access to that page kills this process (`SIGBUS` on Unix). If another process writes to the file,
/// the returned bytes may differ from the verified ones. The system is not told to read ahead, because maps are for
/// look-ups.
#[derive(Debug)]
pub struct MappedSource(BytesSource<Mmap>);

impl MappedSource {
    /// Maps `file`. Errors name it `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be mapped.
    ///
    /// # Safety
    /// As long as the source lives, nobody changes or truncates the file: its bytes are borrowed as `&[u8]`.
    #[allow(unsafe_code)]
    pub unsafe fn new(file: &File, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = System::map(file)
            .map_err(|error| Error::io(Some(path), "cannot map the file", error))?;
        Ok(Self(BytesSource {
            bytes,
            path: Some(path.to_path_buf()),
        }))
    }
}

impl Source for MappedSource {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn path(&self) -> Option<&Path> {
        self.0.path()
    }

    fn as_slice(&self) -> Option<&[u8]> {
        self.0.as_slice()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[allow(unsafe_code)]
    #[test]
    fn a_mapped_file_is_read_as_its_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"some bytes").unwrap();
        // SAFETY: nobody else has the file.
        let mapped = unsafe { MappedSource::new(file.as_file(), file.path()) }.unwrap();
        assert_eq!(mapped.as_slice().unwrap(), b"some bytes");
        let mut buffer = [0; 5];
        mapped.read_exact_at(5, &mut buffer).unwrap();
        assert_eq!(&buffer, b"bytes");
        assert_eq!((mapped.len(), mapped.path()), (10, Some(file.path())));
        assert!(mapped.read_exact_at(6, &mut buffer).is_err());
    }
}
