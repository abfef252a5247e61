//! What is known of a segment before any message is looked at: where its index, its data and its trailer are.

use std::sync::Arc;

use super::index::{count_entries, index_hash};
use super::layout::ENTRY_BYTES;
use super::reader::{Reader, read_array};
use super::torn::torn_trailer;
use super::trailer::Trailer;
use crate::checksum::Key;
use crate::engine::Options;
use crate::error::{Finding, Result};
use crate::ledger::Cause;
use crate::record::Checked;
use crate::source::Source;

/// Where the parts of a segment are. In a sound file, finding out takes a few short reads, however many messages there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    /// The file's length.
    pub(super) len: u64,
    /// The number of entries.
    pub(super) entries: u64,
    /// Where the first message can begin: behind the terminator.
    pub(super) data_start: u64,
    /// Where the data ends: in front of the trailer, or of what there is of one, or of the file's end.
    pub(super) data_end: u64,
    /// The file's key.
    pub(super) key: Key,
    /// Whether the terminator is zeros.
    pub(super) terminator_is_zero: bool,
    pub(super) trailer: Option<Trailer>,
    /// Why nothing of the file can be read at all.
    pub(super) unreadable: Option<Cause>,
}

impl Front {
    /// Looks at a file under this key.
    pub(super) fn under(source: &Arc<dyn Source>, options: &Options, key: &Key) -> Result<Self> {
        let len = source.len();
        let mut front = Self {
            len,
            entries: 0,
            data_start: len,
            data_end: len,
            key: *key,
            terminator_is_zero: true,
            trailer: None,
            unreadable: None,
        };
        if len < ENTRY_BYTES as u64 {
            front.unreadable = Some(Cause::TruncatedHeader);
            return Ok(front);
        }
        let Some(entries) = count_entries(&**source, options)? else {
            front.unreadable = Some(Cause::BadTerminator);
            return Ok(front);
        };
        front.entries = entries;
        let terminator = front.entry_at(entries);
        front.data_start = terminator + ENTRY_BYTES as u64;
        front.terminator_is_zero = read_array(&**source, terminator)? == [0; ENTRY_BYTES];
        front.trailer = Self::find_trailer(&**source, options, &front)?;
        front.data_end = match &front.trailer {
            Some(trailer) => trailer.start,
            None => {
                let mut reader = Reader::sequential(source.clone(), options);
                torn_trailer(&mut reader, options, key, entries)?.unwrap_or(len)
            }
        };
        Ok(front)
    }

    /// The trailer, where at least two of its four fields are right. The index is hashed only where that decides.
    fn find_trailer(
        source: &dyn Source,
        options: &Options,
        front: &Self,
    ) -> Result<Option<Trailer>> {
        let found = Trailer::read(source, &front.key, front.entries, front.data_start)?;
        let Some(trailer) = found.filter(|trailer| trailer.fields_right() > 0) else {
            return Ok(None);
        };
        let is_there = trailer.is_likely()
            || front.index_hash(source, options, &trailer)? == trailer.foot.index_hash;
        Ok(is_there.then_some(trailer))
    }

    /// Whether what stands behind the data is the beginning of a trailer.
    pub(super) const fn is_torn(&self) -> bool {
        self.trailer.is_none() && self.data_end < self.len
    }

    /// Whether the file says itself that this is its key.
    pub(super) fn is_key_certain(&self) -> bool {
        self.trailer
            .is_some_and(|trailer| trailer.key_check_is_right)
    }

    /// The index hash of what is in the file.
    pub(super) fn index_hash(
        &self,
        source: &dyn Source,
        options: &Options,
        trailer: &Trailer,
    ) -> Result<u64> {
        index_hash(source, options, &self.key, self.entries, trailer.start)
    }

    /// Whether the trailer's index hash is that of what is in the file.
    pub(super) fn is_index_hash_right(
        &self,
        source: &dyn Source,
        options: &Options,
    ) -> Result<bool> {
        match &self.trailer {
            Some(trailer) => {
                Ok(self.index_hash(source, options, trailer)? == trailer.foot.index_hash)
            }
            None => Ok(false),
        }
    }

    /// Whether a key that is not the file's would look like this, as far as can be told without the index hash.
    pub(super) fn may_be_under_another_key(&self) -> bool {
        self.trailer.is_some_and(|trailer| {
            !trailer.key_check_is_right && trailer.count_is_right && trailer.magic_is_right
        })
    }

    /// Where an entry begins; behind the last, the terminator.
    pub(super) const fn entry_at(&self, number: u64) -> u64 {
        number * ENTRY_BYTES as u64
    }

    /// Whether a message can begin at this offset.
    pub(super) const fn in_bounds(&self, offset: u64) -> bool {
        self.data_start <= offset && offset < self.data_end
    }

    pub(super) const fn checked(&self) -> Checked {
        match self.trailer {
            Some(_) => Checked::Checksum,
            None => Checked::Structure,
        }
    }

    /// Why nothing of the file can be read.
    pub(super) fn unreadable_finding(&self, cause: Cause) -> Finding {
        match cause {
            Cause::TruncatedHeader => Finding::Number {
                cause,
                what: "the least length of a sealed segment in bytes",
                expected: ENTRY_BYTES as u64,
                actual: self.len,
            },
            cause => Finding::words(
                cause,
                "24 zero bytes at a multiple of 24, behind the entries of an index",
                "none in the whole file",
            ),
        }
    }
}
