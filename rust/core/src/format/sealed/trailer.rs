//! The trailer: the checksums, and the fields that prove that it is there and under which key.

use serde::{Deserialize, Serialize};

use super::layout::{CHECKSUM_BYTES, FOOT_BYTES, MAGIC};
use crate::checksum::{Key, hash};
use crate::cursor::fields;
use crate::error::{Finding, Result};
use crate::ledger::Cause;
use crate::saturating::saturating_usize;
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

    fn parse(bytes: &[u8; FOOT_BYTES]) -> Self {
        let (key_check, count, index_hash, magic) = fields(bytes);
        Self {
            key_check,
            count,
            index_hash,
            magic,
        }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.key_check, self.count, self.index_hash].map(u64::to_be_bytes);
        [numbers.as_flattened(), &self.magic].concat()
    }
}

/// The length of a trailer for this many messages.
pub(super) const fn trailer_bytes(count: u64) -> u64 {
    count * CHECKSUM_BYTES as u64 + FOOT_BYTES as u64
}

/// The key check of this key.
fn key_check(key: &Key) -> u64 {
    hash(key, &[])
}

/// The bytes where a trailer would be. The file may end inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trailer {
    /// Where the checksums begin and the data ends.
    pub(super) start: u64,
    /// Where it ends, at most at the end of the file.
    pub(super) end: u64,
    /// How many of its checksums are whole in the file.
    pub(super) checksums: u64,
    /// The fixed part, with zeros instead of bytes that are not in the file.
    pub(super) foot: Foot,
    /// How many bytes of the fixed part are in the file.
    foot_bytes: usize,
    // A field that is right is whole in the file.
    pub(super) key_check_is_right: bool,
    count_is_right: bool,
    magic_is_right: bool,
}

impl Trailer {
    /// Reads the trailer for this many messages that begins at `start`, which is within the file.
    pub(super) fn read(source: &dyn Source, key: &Key, count: u64, start: u64) -> Result<Self> {
        let end = source.len().min(start + trailer_bytes(count));
        let foot_at = start + count * CHECKSUM_BYTES as u64;
        let foot_bytes = saturating_usize(end.saturating_sub(foot_at));
        let mut bytes = [0; FOOT_BYTES];
        if let Some(bytes) = bytes.get_mut(..foot_bytes).filter(|_| foot_bytes > 0) {
            source.read_exact_at(foot_at, bytes)?;
        }
        let foot = Foot::parse(&bytes);
        Ok(Self {
            start,
            end,
            checksums: count.min((end - start) / CHECKSUM_BYTES as u64),
            foot,
            foot_bytes,
            key_check_is_right: foot_bytes >= 8 && foot.key_check == key_check(key),
            count_is_right: foot_bytes >= 16 && foot.count == count,
            magic_is_right: foot_bytes == FOOT_BYTES && foot.magic == MAGIC,
        })
    }

    /// Whether the key check is in the file, and under another key.
    pub(super) const fn key_check_is_wrong(&self) -> bool {
        self.foot_bytes >= 8 && !self.key_check_is_right
    }

    /// Whether the file ends before the key check does.
    pub(super) const fn key_check_is_cut(&self) -> bool {
        self.foot_bytes < 8
    }

    /// The index hash, if it is whole in the file.
    pub(super) fn index_hash(&self) -> Option<u64> {
        (self.foot_bytes >= 24).then_some(self.foot.index_hash)
    }

    /// Whether all of it is in the file.
    pub(super) const fn is_whole(&self) -> bool {
        self.foot_bytes == FOOT_BYTES
    }

    /// The offset of the checksum of entry number `number`.
    pub(super) const fn checksum_at(&self, number: u64) -> u64 {
        self.start + number * CHECKSUM_BYTES as u64
    }

    /// Whether one of its fields is right, without the index hash: enough where the messages end (rule 14a). An empty
    /// segment's count proves nothing.
    pub(super) const fn is_likely(&self) -> bool {
        self.key_check_is_right || self.magic_is_right || self.count_is_right && self.foot.count > 0
    }

    /// Whether the count and one more field are right, without the index hash: enough elsewhere (rule 14b).
    pub(super) const fn is_very_likely(&self) -> bool {
        self.count_is_right && (self.key_check_is_right || self.magic_is_right)
    }

    /// What is wrong with it. `computed` is the index hash of the file's bytes, `count` the number of entries.
    pub(super) fn finding(&self, key: &Key, count: u64, computed: Option<u64>) -> Option<Finding> {
        let (stored, index_hash) = (self.foot.key_check, self.foot.index_hash);
        let Some(computed) = computed.filter(|_| self.is_whole()) else {
            return Some(Finding::Number {
                cause: Cause::TruncatedTrailer,
                what: "the trailer's length in bytes",
                expected: trailer_bytes(count),
                actual: self.end - self.start,
            });
        };
        if !self.magic_is_right {
            let actual = escape(&self.foot.magic).into_owned();
            return Some(Finding::words(
                Cause::BadMagic,
                "the magic SLKSEAL1 at the end of the trailer",
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
                match key.disclosed(computed) {
                    Some(computed) => format!("others, whose hash is {computed:#018x}"),
                    None => "others, whose hash under the secret key is another".to_owned(),
                },
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
