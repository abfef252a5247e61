//! The trailer: the checksums, and the fields that prove that it is there and under which key.

use serde::{Deserialize, Serialize};

use super::index::read_array;
use super::layout::{CHECKSUM_BYTES, FOOT_BYTES, MAGIC};
use crate::checksum::{Key, hash};
use crate::cursor::fields;
use crate::error::{Finding, Result};
use crate::ledger::Cause;
use crate::source::Source;
use crate::text::escape;

/// The fixed part of a trailer, after the checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Foot {
    /// HighwayHash-64 of no bytes. Distinguishes a wrong key from damage.
    pub(super) key_check: u64,
    pub(super) count: u64,
    /// HighwayHash-64 of entries, terminator and checksums.
    pub(super) index_hash: u64,
    pub(super) magic: [u8; 8],
}

impl Foot {
    /// The fixed part that a writer puts after this many checksums.
    pub(super) fn new(key: &Key, count: u64, index_hash: u64) -> Self {
        Self {
            key_check: key_check(key),
            count,
            index_hash,
            magic: MAGIC,
        }
    }

    /// Parses the last bytes of a file.
    fn parse(bytes: &[u8; FOOT_BYTES]) -> Self {
        let (key_check, count, index_hash, magic) = fields(bytes);
        Self {
            key_check,
            count,
            index_hash,
            magic,
        }
    }

    pub(super) fn to_bytes(self) -> [u8; FOOT_BYTES] {
        let mut bytes = [0; FOOT_BYTES];
        let fields = [
            self.key_check.to_be_bytes(),
            self.count.to_be_bytes(),
            self.index_hash.to_be_bytes(),
            self.magic,
        ];
        for (place, field) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(fields) {
            *place = field;
        }
        bytes
    }
}

/// The length of a trailer for this many messages.
pub(super) const fn trailer_bytes(count: u64) -> u64 {
    count * CHECKSUM_BYTES as u64 + FOOT_BYTES as u64
}

/// The key check of this key.
pub(super) fn key_check(key: &Key) -> u64 {
    hash(key, &[])
}

/// The bytes where a trailer would be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trailer {
    /// Where the checksums begin and the data ends.
    pub(super) start: u64,
    pub(super) foot: Foot,
    pub(super) key_check_is_right: bool,
    pub(super) count_is_right: bool,
    pub(super) magic_is_right: bool,
}

impl Trailer {
    /// Reads the end of a file with this many entries. `None` if no trailer fits after them.
    pub(super) fn read(
        source: &dyn Source,
        key: &Key,
        count: u64,
        data_start: u64,
    ) -> Result<Option<Self>> {
        let start = source.len().checked_sub(trailer_bytes(count));
        let Some(start) = start.filter(|start| *start >= data_start) else {
            return Ok(None);
        };
        let foot = Foot::parse(&read_array(source, source.len() - FOOT_BYTES as u64)?);
        Ok(Some(Self {
            start,
            foot,
            key_check_is_right: foot.key_check == key_check(key),
            count_is_right: foot.count == count,
            magic_is_right: foot.magic == MAGIC,
        }))
    }

    /// The offset of the checksum of entry number `number`.
    pub(super) const fn checksum_at(&self, number: u64) -> u64 {
        self.start + number * CHECKSUM_BYTES as u64
    }

    /// How many of its fields are right, without the index hash.
    pub(super) fn fields_right(&self) -> u32 {
        u32::from(self.key_check_is_right)
            + u32::from(self.count_is_right)
            + u32::from(self.magic_is_right)
    }

    /// Whether enough fields are right, whatever the index hash.
    pub(super) fn is_likely(&self) -> bool {
        self.fields_right() > 1
    }

    /// What is wrong with it. `computed` is the index hash of the file's bytes, `count` the number of entries.
    pub(super) fn finding(&self, key: &Key, count: u64, computed: u64) -> Option<Finding> {
        let (stored, index_hash) = (self.foot.key_check, self.foot.index_hash);
        if !self.magic_is_right {
            let actual = escape(&self.foot.magic).into_owned();
            return Some(Finding::words(
                Cause::BadMagic,
                "the magic SLKSEAL1 at the end of the file",
                actual,
            ));
        }
        if !self.count_is_right {
            return Some(Finding::Number {
                cause: Cause::CountMismatch,
                what: "the trailer's count",
                expected: count,
                actual: self.foot.count,
            });
        }
        let cause = Cause::HeaderChecksumMismatch;
        if index_hash != computed {
            return Some(Finding::words(
                cause,
                format!(
                    "an index and checksums whose hash is {index_hash:#018x}, as the trailer says"
                ),
                key.disclosed(computed).map_or_else(
                    || "others, whose hash under the secret key is another".to_owned(),
                    |computed| format!("others, whose hash is {computed:#018x}"),
                ),
            ));
        }
        (!self.key_check_is_right).then(|| {
            Finding::words(
                cause,
                format!("key check {:#018x}", key_check(key)),
                format!("{stored:#018x} in the trailer"),
            )
        })
    }

    /// The finding for a file that is under another key.
    pub(super) fn wrong_key(&self, key: &Key) -> Finding {
        Finding::words(
            Cause::WrongKey,
            format!("key check {:#018x}", self.foot.key_check),
            format!("{:#018x} under the key that was given", key_check(key)),
        )
    }
}
