//! Reading around pages of a file that the disk cannot read.

use std::io::{self, ErrorKind};

use crate::error::{Error, Result};
use crate::saturating::saturating_usize;
use crate::sync::{Mutex, Unpoisoned as _};

/// What the operating system reads from a disk at a time, and so what one bad sector takes along.
const PAGE_BYTES: usize = 4096;
/// No record of an active segment begins with it: that would be a UUID of another version. And a record that has it where other
/// bytes were is not verified.
const FILL: u8 = 0xff;

/// The first page that could not be read so far: its offset, and why.
#[derive(Debug, Default)]
pub(super) struct Unreadable(Mutex<Option<(u64, String)>>);

impl Unreadable {
    pub(super) fn first(&self) -> Option<(u64, String)> {
        let first = self.0.lock();
        first.unpoisoned().clone()
    }

    fn note(&self, offset: u64, error: &io::Error) {
        let first = self.0.lock();
        let mut first = first.unpoisoned();
        if first.as_ref().is_none_or(|(known, _)| offset < *known) {
            *first = Some((offset, error.to_string()));
        }
    }

    /// Reads as [`Source::read_exact_at`](super::Source::read_exact_at) does. Pages that cannot be read are filled with bytes that are
    /// no record.
    pub(super) fn read_around(
        &self,
        offset: u64,
        buffer: &mut [u8],
        read: impl Fn(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        match read(offset, buffer) {
            Err(Error::Io { source, .. }) if is_of_disk(&source) => {}
            done => return done,
        }
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at_mut(up_to_page(at).min(rest.len()));
            match read(at, piece) {
                Err(Error::Io { source, .. }) if is_of_disk(&source) => {
                    piece.fill(FILL);
                    self.note(at, &source);
                }
                done => done?,
            }
            at += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }
}

/// How many bytes the page at an offset has from there on.
pub(crate) fn up_to_page(offset: u64) -> usize {
    PAGE_BYTES - saturating_usize(offset % PAGE_BYTES as u64)
}

/// Whether an error says that bytes that are there cannot be read.
fn is_of_disk(error: &io::Error) -> bool {
    error.kind() != ErrorKind::UnexpectedEof
}
