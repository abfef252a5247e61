//! Sources of files that are read twice: what is read again is compared, here or by the caller.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::window::data_len;
use super::{Source, check_within, passed_on};
use crate::bug::OrBug;
use crate::checksum::{Key, hash};
use crate::error::{Error, Result};
use crate::saturating::saturating_usize;
use crate::sync::{Mutex, Unpoisoned as _};

/// How many bytes have a hash. Of a file of 1 TiB the hashes take about 100 MiB.
const PIECE_BYTES: u64 = 256 << 10;

/// Another source. It keeps a hash of each piece that was read: one that is read again and differs is an error. So what is used is what was
/// verified.
pub(crate) struct Unchanged<S> {
    source: S,
    state: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// By the offset of the piece: up to its last byte that is not zero.
    hashes: HashMap<u64, (usize, u64)>,
    /// The last piece, and its offset.
    last: Option<(u64, Vec<u8>)>,
}

impl<S: Source> Unchanged<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            state: Mutex::new(Seen::default()),
        }
    }

    /// Fills `buffer` with as much as the piece has from `at` on, and returns how much that is.
    fn read_piece(&self, at: u64, buffer: &mut [u8]) -> Result<usize> {
        let start = at - at % PIECE_BYTES;
        let mut state = self.state.lock().unpoisoned();
        let (_, bytes) = match state.last.take() {
            Some(last) if last.0 == start => last,
            last => {
                let mut bytes = match last {
                    Some((_, bytes)) => bytes,
                    None => Vec::new(),
                };
                bytes.resize(saturating_usize(PIECE_BYTES.min(self.len() - start)), 0);
                self.source.read_exact_at(start, &mut bytes)?;
                let first = state.hashes.get(&start).copied();
                let len = match first {
                    Some((len, _)) => len,
                    None => data_len(&bytes),
                };
                // What was zero still is, whatever a writer appends meanwhile into space that was filled in advance.
                bytes.get_mut(len..).or_bug("a part of the piece")?.fill(0);
                let now = hash(
                    &Key::DEFAULT,
                    bytes.get(..len).or_bug("a part of the piece")?,
                );
                if state.hashes.entry(start).or_insert((len, now)).1 != now {
                    let what = format!("bytes {start} to {}", start + bytes.len() as u64);
                    return Err(Error::changed(self.path(), &what));
                }
                (start, bytes)
            }
        };
        let from = bytes.get(saturating_usize(at - start)..);
        let from = from.or_bug("an offset within the piece")?;
        let len = from.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..len), from.get(..len)) {
            to.copy_from_slice(from);
        }
        state.last = Some((start, bytes));
        Ok(len)
    }
}

impl<S: Source> Source for Unchanged<S> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let len = self.read_piece(at, rest)?;
            at += len as u64;
            rest = rest
                .get_mut(len..)
                .or_bug("no more bytes than were asked for")?;
        }
        Ok(())
    }

    passed_on!(bound);
}

/// A source of which all that is read was read before, by a caller that compares the hashes of both.
pub(crate) struct ReadAgain<'a> {
    source: &'a dyn Source,
}

impl<'a> ReadAgain<'a> {
    pub(crate) const fn new(source: &'a dyn Source) -> Self {
        Self { source }
    }
}

impl Source for ReadAgain<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn as_slice(&self) -> Option<&[u8]> {
        self.source.as_slice()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.source.read_again_at(offset, buffer)
    }

    passed_on!(bound);
}
