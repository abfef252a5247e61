//! The rules for a record (rule 8): one function for each check, in the order of the rule, with the numbers that
//! an error needs.
//!
//! Lengths must fit before anything is hashed. So there are two steps: [`structure`] says what to hash,
//! [`verdict`] judges the result. The walk, its searches, the diagnosis and the detection all use these functions.
//! The shortcuts (groups of records, the search for version bits) only skip bytes that these functions would
//! refuse.

use super::layout::{Header, MAX_HEADER_BYTES, UUID_BYTES};
use crate::checksum::{Key, hash};
use crate::error::Finding;
use crate::saturating::saturating_usize;
use crate::source::Bound;
use crate::text::is_readable;
use crate::uuid6;

/// The greatest UUID of version 6.
const LATEST: [u8; UUID_BYTES] =
    *b"\xff\xff\xff\xff\xff\xff\x6f\xff\xbf\xff\xff\xff\xff\xff\xff\xff";

/// What is wrong with a record: the first check that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A zero UUID, with nonzero bytes before the offset `until`.
    Nonzero { until: u64 },
    /// Nothing but zeros, or the end of the file of `len` bytes, before what its log says that it has to reach.
    Cut { bound: Bound, len: u64 },
    /// The header extends past the end of the file.
    Truncated { needed: u64, available: u64 },
    /// The body or checksum extends past the end of the file.
    TooLong { needed: u64, available: u64 },
    /// The checksum does not match. `computed` is `None` under a secret key.
    Checksum { stored: u64, computed: Option<u64> },
    /// The UUID is not of version 6, variant 10.
    BadUuid { uuid: [u8; UUID_BYTES] },
    /// The UUID is not greater than the last good one.
    OutOfOrder {
        last: [u8; UUID_BYTES],
        uuid: [u8; UUID_BYTES],
    },
}

impl From<Fault> for Finding {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Nonzero { until } => Self::Nonzero { until },
            Fault::Cut { bound, len } => bound.cut(len),
            Fault::Truncated { needed, available } => Self::Truncated { needed, available },
            Fault::TooLong { needed, available } => Self::TooLong { needed, available },
            Fault::Checksum { stored, computed } => Self::Checksum { stored, computed },
            Fault::BadUuid { uuid } => Self::BadUuid { uuid },
            Fault::OutOfOrder { last, uuid } => Self::OutOfOrder { last, uuid },
        }
    }
}

/// The stored checksum, and the computed one under a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) stored: u64,
    pub(super) computed: u64,
    pub(super) key: Key,
}

/// Whether the bytes begin like unused space: a zero UUID, or as much of one as the file has.
#[inline]
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    match bytes.first_chunk::<UUID_BYTES>() {
        Some(uuid) => *uuid == [0; UUID_BYTES],
        None => bytes.iter().all(|byte| *byte == 0),
    }
}

/// The first check, for bytes at `at` that [are zero](is_zero): unused space is zeros to the end of the file (rule
/// 9), in a segment of a log after its bound. `data_end` is the offset after the last nonzero byte, and the file has `len` bytes.
pub(super) const fn unused(
    at: u64,
    data_end: u64,
    len: u64,
    bound: Option<Bound>,
) -> Result<(), Fault> {
    match bound {
        _ if data_end > at => Err(Fault::Nonzero { until: data_end }),
        Some(bound) if at < bound.offset => Err(Fault::Cut { bound, len }),
        _ => Ok(()),
    }
}

/// The second and third check: the header of the record that begins `bytes`, and lies within the file. It says what to hash. `left` is
/// the file's length from there on, `bytes` included. `None` if the header is not whole in `bytes`, but in the file.
pub(super) fn structure(bytes: &[u8], left: u64) -> Result<Option<Header>, Fault> {
    let available = left;
    match Header::parse(bytes) {
        Ok(header) if header.total() <= left => Ok(Some(header)),
        Ok(header) => Err(Fault::TooLong {
            needed: header.total(),
            available,
        }),
        Err(needed) if bytes.len() as u64 >= left => Err(Fault::Truncated { needed, available }),
        Err(_) => Ok(None),
    }
}

/// The header of the record that begins `bytes`, if it is whole there and the record lies within the file.
pub(super) fn record(bytes: &[u8], left: u64) -> Option<Header> {
    match structure(bytes, left) {
        Ok(Some(header)) => Some(header),
        Ok(None) | Err(_) => None,
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

/// The fifth and sixth check, neither of which needs a hash.
pub(super) fn sequence(
    uuid: [u8; UUID_BYTES],
    last: Option<[u8; UUID_BYTES]>,
) -> Result<(), Fault> {
    version(uuid)?;
    order(uuid, last)
}

/// The remaining checks of a record whose lengths fit and which was hashed. `last` is the last good UUID.
pub(super) fn verdict(
    header: &Header,
    sums: &Sums,
    last: Option<[u8; UUID_BYTES]>,
) -> Result<(), Fault> {
    checksum(sums)?;
    sequence(header.uuid, last)
}

/// Whether a torn tail is one record that was not written to its end. `tail` is its beginning, as long as the longest header if there
/// are so many bytes; it has `len` bytes, after which there are only zeros. `last` is the last good UUID.
///
/// Of a record that was not written to its end at least `missing` bytes are not there.
pub(super) fn is_unfinished(
    tail: &[u8],
    len: u64,
    last: Option<[u8; UUID_BYTES]>,
    missing: u64,
) -> bool {
    // What of a UUID was not written may have been anything.
    let mut uuid = LATEST;
    uuid.iter_mut()
        .zip(tail)
        .for_each(|(byte, given)| *byte = *given);
    let mut head = [0; MAX_HEADER_BYTES];
    head.iter_mut()
        .zip(tail)
        .for_each(|(byte, given)| *byte = *given);
    let least = len.saturating_add(missing);
    let is_long = Header::parse(&head).is_ok_and(|header| header.total() >= least);
    is_long && sequence(uuid, last).is_ok() && !is_readable(tail)
}

/// Whether a record may begin in `bytes` that is later than the one of this UUID, by at most two hours, and ends within the `len` bytes
/// of the data from there on. Its checksum may not match. In a file that was changed as a whole, such as by turning LF into CR LF,
/// there are many.
pub(super) fn begins_later(bytes: &[u8], len: u64, uuid: &[u8; UUID_BYTES]) -> bool {
    let [first, second, third, ..] = *uuid;
    let alike = bytes.windows(3).zip(0_u64..);
    let mut alike = alike.filter(|(window, _)| **window == [first, second, third]);
    alike.any(|(_, place)| {
        let rest = bytes.get(saturating_usize(place)..);
        let header = rest.and_then(|rest| record(rest, len - place));
        header.is_some_and(|header| sequence(header.uuid, Some(*uuid)).is_ok())
    })
}

/// The first key under which the checksum of `body` is `stored`, and its index in `keys`.
pub(super) fn key_of(keys: &[Key], (body, stored): (&[u8], u64)) -> Option<(usize, Key)> {
    let sums = |key: Key| Sums {
        stored,
        computed: hash(&key, body),
        key,
    };
    let mut keys = keys.iter().copied().enumerate();
    keys.find(|(_, key)| checksum(&sums(*key)).is_ok())
}
