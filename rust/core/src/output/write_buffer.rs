//! Bytes on their way into a file.

use std::io;

use crate::disk::Handle;

/// Bytes are collected up to this many before they are written.
pub(super) const BUFFER_BYTES: usize = 1 << 20;

/// Bytes that belong one behind the other in a file, collected so that they are written a mebibyte at a time.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    /// Where the first of them belongs.
    at: u64,
    bytes: Vec<u8>,
}

impl WriteBuffer {
    /// Nothing yet; the first byte will be at this offset.
    pub(crate) const fn new(at: u64) -> Self {
        Self {
            at,
            bytes: Vec::new(),
        }
    }

    /// The bytes that are not in the file yet, to be appended to.
    pub(crate) const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The same, to be looked at.
    pub(crate) fn held(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes are not in the file yet.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Where the first of these belongs.
    pub(crate) const fn start(&self) -> u64 {
        self.at
    }

    /// Where the next byte will be.
    pub(crate) const fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// Whether it is time to write.
    pub(crate) const fn is_full(&self) -> bool {
        self.bytes.len() >= BUFFER_BYTES
    }

    /// Writes all of them. Where that fails they are kept, and writing again puts them where they belong.
    pub(crate) fn write_to(&mut self, file: &Handle) -> io::Result<()> {
        file.write_all_at(&self.bytes, self.at)?;
        self.at = self.end();
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_BYTES * 2);
        Ok(())
    }

    /// Changes bytes that were given before, whether they are in the file already or not. Both ends are on the same side.
    pub(crate) fn patch(&mut self, file: &Handle, at: u64, bytes: [u8; 4]) -> io::Result<()> {
        let place = at
            .checked_sub(self.at)
            .and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.bytes.get_mut(place..)?.first_chunk_mut()) {
            Some(own) => *own = bytes,
            None => file.write_all_at(&bytes, at)?,
        }
        Ok(())
    }
}
