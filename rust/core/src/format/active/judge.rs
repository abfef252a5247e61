//! What a record has to be (rule 8): each check in one function, in the order of the rule, with the numbers that an error needs.
//!
//! Lengths have to fit before anything is hashed, so there are two steps: [`structure`] tells what to hash, [`verdict`] judges
//! it. The walk, its searches, the diagnosis and the detection all ask here. Shortcuts, which are groups of records and the
//! search for versions of UUIDs, only tell where nothing has to be asked.

use super::layout::{Header, UUID_BYTES};
use crate::checksum::{Key, hash};
use crate::error::Finding;
use crate::ledger::Cause;
use crate::uuid6;

/// What is wrong with a record: the first check that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A UUID of zeros, with other bytes in front of the offset `until`.
    Nonzero { until: u64 },
    /// The header reaches beyond the file.
    Truncated { needed: u64, available: u64 },
    /// Body or checksum reach beyond the file.
    TooLong { needed: u64, available: u64 },
    /// The checksum is another one. `computed` is `None` under a secret key.
    Checksum { stored: u64, computed: Option<u64> },
    /// The UUID is not of version 6, variant 10.
    BadUuid { uuid: [u8; UUID_BYTES] },
    /// The UUID is not greater than the last good one.
    OutOfOrder {
        last: [u8; UUID_BYTES],
        uuid: [u8; UUID_BYTES],
    },
}

impl Fault {
    /// What an error says of it.
    pub(super) const fn finding(self) -> Finding {
        match self {
            Self::Nonzero { until } => Finding::Nonzero { until },
            Self::Truncated { needed, available } => Finding::Truncated { needed, available },
            Self::TooLong { needed, available } => Finding::TooLong { needed, available },
            Self::Checksum { stored, computed } => Finding::Checksum { stored, computed },
            Self::BadUuid { uuid } => Finding::BadUuid { uuid },
            Self::OutOfOrder { last, uuid } => Finding::OutOfOrder { last, uuid },
        }
    }

    pub(super) fn cause(self) -> Cause {
        self.finding().cause()
    }
}

/// What stands where a record should begin, by its lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Structure {
    /// A record that lies within the file. What is to be hashed of it, its header tells.
    Record(Header),
    /// Something that does not.
    Bad(Fault),
    /// The header reaches beyond the bytes at hand, though not beyond the file.
    NeedMore,
}

impl Structure {
    /// The header of a record that lies within the file.
    pub(super) const fn record(self) -> Option<Header> {
        match self {
            Self::Record(header) => Some(header),
            Self::Bad(_) | Self::NeedMore => None,
        }
    }
}

/// The checksum that a record has, and the one that it should have under a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) stored: u64,
    pub(super) computed: u64,
    pub(super) key: Key,
}

/// Whether unused space begins here, if anything does: a UUID of zeros, or as much of one as the file has.
#[inline]
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    match bytes.first_chunk::<UUID_BYTES>() {
        Some(uuid) => *uuid == [0; UUID_BYTES],
        None => bytes.iter().all(|byte| *byte == 0),
    }
}

/// The first check, where the bytes at `at` [are zero](is_zero): unused space is zeros to the end of the file (rule 9). `data_end`
/// is the offset behind the last byte that is not zero.
pub(super) const fn unused(at: u64, data_end: u64) -> Result<(), Fault> {
    match data_end > at {
        true => Err(Fault::Nonzero { until: data_end }),
        false => Ok(()),
    }
}

/// The second and third check: the record that `bytes` begin with lies within the file, which has `left` bytes from there on,
/// `bytes` among them.
pub(super) fn structure(bytes: &[u8], left: u64) -> Structure {
    let available = left;
    match Header::parse(bytes) {
        Ok(header) if header.total() <= left => Structure::Record(header),
        Ok(header) => Structure::Bad(Fault::TooLong {
            needed: header.total(),
            available,
        }),
        Err(needed) if bytes.len() as u64 >= left => {
            Structure::Bad(Fault::Truncated { needed, available })
        }
        Err(_) => Structure::NeedMore,
    }
}

/// The fourth check.
pub(super) fn checksum(sums: &Sums) -> Result<(), Fault> {
    if sums.computed == sums.stored {
        return Ok(());
    }
    Err(Fault::Checksum {
        stored: sums.stored,
        computed: sums.key.disclosed(sums.computed),
    })
}

/// The fifth check.
pub(super) const fn version(uuid: [u8; UUID_BYTES]) -> Result<(), Fault> {
    match uuid6::is_v6(&uuid) {
        true => Ok(()),
        false => Err(Fault::BadUuid { uuid }),
    }
}

/// The sixth check: the UUID is greater than the last good one.
pub(super) fn order(uuid: [u8; UUID_BYTES], last: Option<[u8; UUID_BYTES]>) -> Result<(), Fault> {
    match last {
        Some(last) if uuid <= last => Err(Fault::OutOfOrder { last, uuid }),
        _ => Ok(()),
    }
}

/// The fifth and sixth check, which need no hash.
pub(super) fn sequence(
    uuid: [u8; UUID_BYTES],
    last: Option<[u8; UUID_BYTES]>,
) -> Result<(), Fault> {
    version(uuid)?;
    order(uuid, last)
}

/// The checks of a record whose lengths fit, once it has been hashed. `last` is the last good UUID.
pub(super) fn verdict(
    header: &Header,
    sums: &Sums,
    last: Option<[u8; UUID_BYTES]>,
) -> Result<(), Fault> {
    checksum(sums)?;
    sequence(header.uuid, last)
}

/// The first of these keys under which the checksum of `body` is `stored`, and its place among them.
pub(super) fn key_of(keys: &[Key], (body, stored): (&[u8], u64)) -> Option<(usize, Key)> {
    let sums = |key: Key| Sums {
        stored,
        computed: hash(&key, body),
        key,
    };
    let mut keys = keys.iter().copied().enumerate();
    keys.find(|(_, key)| checksum(&sums(*key)).is_ok())
}
