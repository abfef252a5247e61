//! Buffered bytes of a file.

use std::io;

use crate::bug::OrBug;
use crate::disk::Handle;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::prefetch::CACHE_LINE_BYTES;
use crate::saturating::saturating_usize;

/// [`Limits::write_buffer_bytes`](crate::limits::Limits::write_buffer_bytes).
pub(super) const BUFFER_BYTES: usize = LIMITS.write_buffer_bytes;

/// Consecutive bytes of a file, written [`BUFFER_BYTES`] at a time.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    /// The offset of the first byte.
    at: u64,
    /// The bytes, after `padding` zeros. With padding, they have the same place in their cache lines as in the file,
    /// which makes copying into the page cache fastest.
    bytes: Vec<u8>,
    padding: usize,
}

impl WriteBuffer {
    /// An empty buffer; the first byte will be at this offset.
    pub(crate) const fn new(at: u64) -> Self {
        Self {
            at,
            bytes: Vec::new(),
            padding: 0,
        }
    }

    /// The bytes that are not in the file yet, after padding, to append to.
    pub(crate) const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The pending bytes.
    pub(crate) fn pending(&self) -> Result<&[u8]> {
        let pending = self.bytes.get(self.padding..);
        pending.or_bug("bytes that are only appended to")
    }

    /// The number of pending bytes.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.padding
    }

    /// The offset of the first pending byte.
    pub(crate) const fn start(&self) -> u64 {
        self.at
    }

    /// The offset of the next byte.
    pub(crate) const fn end(&self) -> u64 {
        self.at + self.len() as u64
    }

    /// Whether the buffer should be written.
    pub(crate) const fn is_full(&self) -> bool {
        self.len() >= BUFFER_BYTES
    }

    /// Writes all pending bytes. On failure they stay, and writing again puts them in their place.
    pub(crate) fn write_to(&mut self, file: &Handle) -> io::Result<()> {
        let pending = self.pending().map_err(io::Error::other)?;
        file.write_all_at(pending, self.at)?;
        self.go_to(self.end());
        Ok(())
    }

    /// Drops the pending bytes; the next byte will be at this offset.
    pub(crate) fn go_to(&mut self, at: u64) {
        self.at = at;
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_BYTES * 2);
        let within_line = saturating_usize(at % CACHE_LINE_BYTES as u64);
        self.padding = if self.bytes.capacity() < CACHE_LINE_BYTES {
            0 // no memory yet that would have an address
        } else {
            within_line.wrapping_sub(self.bytes.as_ptr().addr()) % CACHE_LINE_BYTES
        };
        self.bytes.resize(self.padding, 0);
    }

    /// Overwrites earlier bytes, whether they are in the file or pending. All of them must be on the same side.
    pub(crate) fn patch(&mut self, file: &Handle, at: u64, bytes: [u8; 4]) -> io::Result<()> {
        let place = at
            .checked_sub(self.at)
            .and_then(|place| usize::try_from(place).ok());
        let own = place.and_then(|place| self.bytes.get_mut(self.padding + place..));
        match own.and_then(<[u8]>::first_chunk_mut) {
            Some(own) => *own = bytes,
            None => file.write_all_at(&bytes, at)?,
        }
        Ok(())
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

    /// Memory is reused for later bytes, except that of one large record.
    #[test]
    fn two_mebibytes_are_kept_at_most() {
        let file = nameless();
        let mut buffer = WriteBuffer::new(0);
        buffer.bytes().resize(BUFFER_BYTES * 3 / 2, 1);
        let usual = buffer.bytes.capacity();
        buffer.write_to(&file).unwrap();
        assert_eq!(buffer.bytes.capacity(), usual);
        buffer.bytes().resize(BUFFER_BYTES * 8, 1);
        buffer.write_to(&file).unwrap();
        assert_eq!(buffer.bytes.capacity(), BUFFER_BYTES * 2);
    }

    proptest::proptest! {
        #[test]
        fn what_is_given_is_written_to_where_it_belongs(start in 0..200_u64, pieces: Vec<(Vec<u8>, bool)>) {
            let file = nameless();
            let (mut buffer, mut expected) = (WriteBuffer::new(start), Vec::new());
            for (bytes, is_flushed) in pieces {
                buffer.bytes().extend_from_slice(&bytes);
                expected.extend_from_slice(&bytes);
                if is_flushed {
                    buffer.write_to(&file).unwrap();
                    proptest::prop_assert_eq!(buffer.len(), 0);
                    // After memory was allocated, the next byte has the same place in its cache line as in the file's
                    // page.
                    let next = buffer.bytes.as_ptr().addr() + buffer.bytes.len();
                    let distance = next.abs_diff(usize::try_from(buffer.end()).unwrap());
                    proptest::prop_assert!(
                        distance.is_multiple_of(CACHE_LINE_BYTES) || buffer.bytes.capacity() < CACHE_LINE_BYTES
                    );
                }
                proptest::prop_assert_eq!(buffer.end(), start + expected.len() as u64);
                proptest::prop_assert!(expected.ends_with(buffer.pending().unwrap()));
            }
            buffer.write_to(&file).unwrap();
            let mut written = vec![0; expected.len()];
            file.read_exact_at(&mut written, start).unwrap();
            proptest::prop_assert_eq!(written, expected);
        }

        #[test]
        fn bytes_are_forgotten_and_changed_on_either_side(flushed: [u8; 100], kept: [u8; 50], place in 0..47_u64) {
            let file = nameless();
            let mut buffer = WriteBuffer::new(3);
            buffer.bytes().extend_from_slice(&flushed);
            buffer.write_to(&file).unwrap();
            buffer.bytes().extend_from_slice(&kept);
            buffer.patch(&file, 3 + place, [1, 2, 3, 4]).unwrap();
            buffer.patch(&file, 103 + place, [5, 6, 7, 8]).unwrap();
            let at = usize::try_from(place).unwrap();
            proptest::prop_assert_eq!(buffer.pending().unwrap().get(at..at + 4), Some(&[5, 6, 7, 8][..]));
            let mut written = [0; 4];
            file.read_exact_at(&mut written, 3 + place).unwrap();
            proptest::prop_assert_eq!(written, [1, 2, 3, 4]);
            buffer.go_to(buffer.start());
            proptest::prop_assert_eq!((buffer.len(), buffer.end()), (0, 103));
        }
    }
}
