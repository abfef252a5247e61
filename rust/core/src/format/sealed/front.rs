//! What is known of a segment before any message is read: where its index, data and trailer are.

use super::index::{each_piece, index_hash, read_array};
use super::layout::{ENTRY_BYTES, Entry};
use super::trailer::Trailer;
use crate::checksum::{Incremental, Key};
use crate::error::{Finding, Result};
use crate::ledger::Cause;
use crate::record::Checked;
use crate::uuid6;
use crate::walk::Budget;
use crate::walk::indexed::{self, Fields};

/// The offsets of a segment's sections. In a sound file a few short reads find them, however many messages there
/// are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    /// The file's length.
    pub(super) len: u64,
    /// The number of entries.
    pub(super) entries: u64,
    /// Where the first message can begin: after the terminator.
    pub(super) data_start: u64,
    /// Where the data ends: before the trailer, else at the end of the file.
    pub(super) data_end: u64,
    /// The file's key.
    pub(super) key: Key,
    /// Whether the terminator is all zeros.
    pub(super) terminator_is_zero: bool,
    pub(super) trailer: Option<Trailer>,
    /// What finding the trailer has cost of the search budget.
    pub(super) searched: Budget,
    /// Why nothing in the file can be read, if so.
    pub(super) unreadable: Option<Cause>,
}

impl Front {
    /// The trailer, if it has the whole checksum of entry number `number`.
    pub(super) fn trailer_of(&self, number: u64) -> Option<&Trailer> {
        self.trailer.as_ref().filter(|own| number < own.checksums)
    }

    /// Whether the file itself confirms this key.
    pub(super) fn is_key_certain(&self) -> bool {
        self.trailer
            .is_some_and(|trailer| trailer.key_check_is_right)
    }

    /// Whether the file may be under another key, judged without the index hash.
    pub(super) fn may_be_under_another_key(&self) -> bool {
        self.trailer.is_some_and(|own| own.key_check_is_wrong())
    }

    /// The offset of an entry. After the last entry: of the terminator.
    pub(super) const fn entry_at(&self, number: u64) -> u64 {
        number * ENTRY_BYTES as u64
    }

    /// The ranges of the index and the terminator. `None` if the file has none.
    pub(super) fn fields(&self) -> Option<Fields> {
        let terminator = (!self.terminator_is_zero).then_some(Cause::BadTerminator);
        self.unreadable.is_none().then(|| Fields {
            len: self.len,
            before: Vec::new(),
            after: [
                (self.entry_at(self.entries), None),
                (self.data_start, terminator),
            ],
        })
    }

    /// Whether a message can begin at this offset.
    pub(super) const fn in_bounds(&self, offset: u64) -> bool {
        self.data_start <= offset && offset < self.data_end
    }

    pub(super) const fn checked(&self) -> Checked {
        match self.trailer {
            Some(own) if own.checksums == self.entries => Checked::Checksum,
            _ => Checked::Structure,
        }
    }

    /// Why nothing in the file can be read.
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
                "24 zero bytes at a multiple of 24, after the entries of an index",
                "none in the whole file",
            ),
        }
    }
}

/// What one pass over the whole index proves, without reading messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// Every UUID is of version 6 and greater than the one before, and every offset is in bounds and greater than
    /// the one before. So a search among the entries finds every UUID that is there.
    pub(super) ascends: bool,
    /// The index hash, computed from the file's bytes. `None` if the file has none.
    pub(super) hash: Option<u64>,
    /// The index hash matches, so the entries are as they were written. False if the file has none.
    pub(super) is_proven: bool,
}

pub(super) type Segment = indexed::Segment<Front>;

impl Segment {
    /// The index hash, computed from the file's bytes. `None` if the file has none.
    pub(super) fn index_hash(&self) -> Result<Option<u64>> {
        let Front { key, entries, .. } = &self.front;
        let Some(trailer) = self.front.trailer.filter(|own| own.index_hash().is_some()) else {
            return Ok(None);
        };
        let (source, options) = (&*self.source, &self.options);
        let at = self.front.entry_at(*entries);
        let terminator = (at, read_array(source, at)?);
        let checksums = trailer.start..trailer.checksum_at(*entries);
        index_hash(source, options, key, terminator, checksums).map(Some)
    }

    /// Whether the trailer's index hash matches the file's bytes.
    pub(super) fn is_index_hash_right(&self) -> Result<bool> {
        let stored = self.front.trailer.and_then(|own| own.index_hash());
        Ok(stored.is_some() && self.index_hash()? == stored)
    }

    /// Reads the index once, and passes each entry to `look`.
    pub(super) fn survey(&self, mut look: impl FnMut(&Entry)) -> Result<Survey> {
        let (source, options, front) = (&*self.source, &self.options, &self.front);
        let (mut ascends, mut last, mut numbers) = (true, None::<Entry>, 0..front.entries);
        let mut hasher = Incremental::new(&front.key);
        each_piece(source, options, 0, front.data_start, |bytes| {
            hasher.update(bytes);
            // The terminator follows the entries.
            for (entry, number) in bytes.as_chunks().0.iter().zip(&mut numbers) {
                let entry = Entry::parse(number, entry);
                look(&entry);
                ascends &= uuid6::is_v6(&entry.uuid)
                    && front.in_bounds(entry.offset)
                    && last.is_none_or(|last| last.uuid < entry.uuid && last.offset < entry.offset);
                last = Some(entry);
            }
            true
        })?;
        let mut survey = Survey {
            ascends,
            hash: None,
            is_proven: false,
        };
        if let Some(trailer) = front.trailer
            && let Some(stored) = trailer.index_hash()
        {
            let end = trailer.checksum_at(front.entries);
            each_piece(source, options, trailer.start, end, |bytes| {
                hasher.update(bytes);
                true
            })?;
            let hash = hasher.finish();
            survey.hash = Some(hash);
            survey.is_proven = hash == stored;
        }
        Ok(survey)
    }
}
