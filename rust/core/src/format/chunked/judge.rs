//! The verdicts on chunks: the checks of rules 26 to 30 in their order, with the numbers that an error needs, and
//! how far damage reaches. Pure: it gets bytes and numbers, and reads nothing.
//!
//! A chunk is judged in two steps. [`structure`] judges its header alone, [`verdict`] the chunk once its payload
//! was checked. Hopping from header to header has no payload, and uses [`order`] alone.

use std::fmt;

use super::layout::{ALIGNMENT, HEADER_BYTES, Header, ITEM_BYTES, Item, OFFSETS_END};
use crate::compress::BadFrame;
use crate::error::Finding;
use crate::ledger::Cause;

/// A good value, or why the bytes are damage.
pub(super) type Judged<T> = Result<T, Fault>;

/// What is wrong with a payload, if it is not good.
pub(super) type Payload = Result<(), BadPayload>;

/// Why bytes are damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Zeros where a header should be, followed by nonzero bytes, the last of them before `until`.
    Nonzero { until: u64 },
    /// The file ends inside the header.
    Truncated { available: u64 },
    /// The header's CRC does not match, so its fields are unreliable.
    HeaderChecksum {
        header: Header,
        stored: u32,
        computed: u32,
    },
    /// A header whose CRC matches, of a chunk that is refused.
    Refused(Header, Refusal),
    /// Padding that should be zeros up to `end`, with another byte at `place`.
    Padding { end: u64, place: u64 },
}

/// What is wrong with a chunk whose header's CRC matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has flags, and none are defined.
    Flags,
    /// Message offsets are from 0 to 2^63-1.
    Offsets,
    /// It takes more bytes than the file has left.
    TooLong { needed: u64, available: u64 },
    /// Its payload does not match the header.
    Payload(BadPayload),
    /// It begins before `end`, where the last good chunk ended.
    OutOfOrder { end: u64 },
}

/// Rule 28: what can be wrong with the payload of a good header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadPayload {
    /// It is not exactly one valid zstd frame.
    Frame(BadFrame),
    /// Bytes follow the last record.
    MoreRecords,
    /// The content ends inside this record, counted from 1.
    CutRecord(u32),
    /// There are only this many records.
    FewerRecords(u32),
}

/// How far damage reaches, judged by the damaged bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// To here.
    Known(u64),
    /// To the end of the data, because it claims more than there is.
    Tail,
    /// To the next header whose CRC matches, unless the length in this damaged one proves itself.
    Search(Option<Header>),
}

/// The bytes where a header should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Only zeros, as far as a header reaches or the file does: [unused space, or damage](unused).
    Zeros,
    /// The header of a chunk that lies within the file.
    Sound(Header),
    /// Damage.
    Bad(Fault),
}

/// Rule 26, first step: judges the bytes at `at`, which begin `bytes`, in a file of `len` bytes. `bytes` are at
/// least as long as a header, or reach the end of the file.
pub(super) fn structure(at: u64, bytes: &[u8], len: u64) -> Head {
    let head = match bytes.first_chunk() {
        Some(bytes) if *bytes == [0; HEADER_BYTES] => return Head::Zeros,
        Some(bytes) => checksum(bytes),
        None if bytes.iter().all(|byte| *byte == 0) => return Head::Zeros,
        None => Err(Fault::Truncated {
            available: bytes.len() as u64,
        }),
    };
    match head.and_then(|header| possible(header, at, len)) {
        Ok(header) => Head::Sound(header),
        Err(fault) => Head::Bad(fault),
    }
}

/// The header in `bytes`, if its CRC matches. Fast, for testing many positions of which few have one.
pub(super) fn verified(bytes: &[u8]) -> Option<Header> {
    checksum(bytes.first_chunk()?).ok()
}

fn checksum(bytes: &[u8; HEADER_BYTES]) -> Judged<Header> {
    let ((header, stored), computed) = (Header::decode(bytes), Header::crc(bytes));
    if stored == computed {
        return Ok(header);
    }
    Err(Fault::HeaderChecksum {
        header,
        stored,
        computed,
    })
}

/// Whether a header whose CRC matches can be that of a chunk at `at` in a file of `len` bytes.
fn possible(header: Header, at: u64, len: u64) -> Judged<Header> {
    let end = header.payload_end(at);
    let refusal = if header.flags != 0 {
        Refusal::Flags
    } else if header.start < 0 || header.end() > OFFSETS_END {
        Refusal::Offsets
    } else if end > len {
        Refusal::TooLong {
            needed: end.saturating_sub(at),
            available: len.saturating_sub(at),
        }
    } else {
        return Ok(header);
    };
    Err(Fault::Refused(header, refusal))
}

/// Rule 26, second step: judges a chunk by the verdict on its payload. The last good chunk ended with the message
/// offset `end`.
pub(super) fn verdict(header: Header, payload: Payload, end: u64) -> Judged<()> {
    payload.map_err(|bad| Fault::Refused(header, Refusal::Payload(bad)))?;
    order(header, end)
}

/// Whether a chunk begins at or after the message offset `end`, where the last good one ended.
pub(super) fn order(header: Header, end: u64) -> Judged<()> {
    if header.start.cast_unsigned() < end {
        return Err(Fault::Refused(header, Refusal::OutOfOrder { end }));
    }
    Ok(())
}

/// Rule 26: whether zeros at `at` are unused space. The file's last nonzero byte is before `data_end`.
pub(super) const fn unused(at: u64, data_end: u64) -> Judged<()> {
    if data_end > at {
        return Err(Fault::Nonzero { until: data_end });
    }
    Ok(())
}

/// Rule 29: whether `bytes`, which begin at `at`, are padding.
pub(super) fn padding(at: u64, bytes: &[u8]) -> Judged<()> {
    match bytes.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(place) => Err(Fault::Padding {
            end: at + bytes.len() as u64,
            place: at + place as u64,
        }),
    }
}

/// Rule 30, first step: the item that begins `bytes`.
pub(super) fn item(bytes: &[u8]) -> Result<Item, Cause> {
    let bytes: &[u8; ITEM_BYTES] = bytes.first_chunk().ok_or(Cause::TruncatedHeader)?;
    Item::decode(bytes).ok_or(Cause::ChecksumMismatch)
}

/// Rule 30: where in a log of `len` bytes an item's chunk can be.
pub(super) fn place(item: Item, len: u64) -> Option<u64> {
    let place = item.file_offset.cast_unsigned();
    (item.file_offset >= 0 && place.is_multiple_of(ALIGNMENT) && place < len).then_some(place)
}

/// Rule 30: whether this is the header of the item's chunk.
pub(super) fn agrees(item: Item, head: Head) -> bool {
    let header = head.verified();
    header.is_some_and(|header| header.start == item.offset)
}

/// Rule 30, second step: the verdict on an item. `agrees` is whether its chunk is where it says, `last` the last
/// good item.
pub(super) fn item_verdict(item: Item, agrees: bool, last: Option<Item>) -> Result<Item, Cause> {
    if !agrees {
        return Err(Cause::IndexDisagrees);
    }
    let ascends = |last: Item| item.offset > last.offset && item.file_offset > last.file_offset;
    if !last.is_none_or(ascends) {
        return Err(Cause::OutOfOrder);
    }
    Ok(item)
}

impl Head {
    /// The header, if its CRC matches.
    pub(super) const fn verified(self) -> Option<Header> {
        match self {
            Self::Sound(header) | Self::Bad(Fault::Refused(header, _)) => Some(header),
            Self::Zeros | Self::Bad(_) => None,
        }
    }
}

impl Fault {
    /// Rules 27 and 29: how far damage at `at` reaches in a file of `len` bytes.
    pub(super) const fn extent(self, at: u64, len: u64) -> Extent {
        match self {
            Self::Nonzero { .. } => Extent::Search(None),
            Self::Truncated { .. } => Extent::Tail,
            Self::HeaderChecksum { header, .. } => Extent::Search(Some(header)),
            Self::Refused(header, _) if header.payload_end(at) > len => Extent::Tail,
            Self::Refused(header, _) => Extent::Known(header.payload_end(at)),
            Self::Padding { end, .. } => Extent::Known(end),
        }
    }

    /// The cause for the ledger.
    pub(super) fn cause(self) -> Cause {
        Finding::from(self).cause()
    }
}

impl From<Fault> for Finding {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Nonzero { until } => Self::Nonzero { until },
            Fault::Truncated { available } => Self::Truncated {
                needed: HEADER_BYTES as u64,
                available,
            },
            Fault::HeaderChecksum {
                stored, computed, ..
            } => Self::words(
                Cause::HeaderChecksumMismatch,
                format!("a chunk header whose CRC-32 is {stored:#010x}, as stored"),
                format!("header bytes whose CRC-32 is {computed:#010x}"),
            ),
            Fault::Refused(header, refusal) => refusal.finding(header),
            Fault::Padding { end, place } => Self::words(
                Cause::NonzeroPadding,
                format!("padding of zeros up to offset {end}"),
                format!("another byte at offset {place}"),
            ),
        }
    }
}

impl Refusal {
    fn finding(self, header: Header) -> Finding {
        match self {
            Self::Flags => {
                let flags = header.flags;
                let bits: Vec<_> = (0..8).filter(|bit| flags >> bit & 1 == 1).collect();
                Finding::words(
                    Cause::UnsupportedFlags,
                    "flags 0x00: none is defined",
                    format!("flags {flags:#04x}, with bits {bits:?} set"),
                )
            }
            Self::Offsets => Finding::words(
                Cause::OffsetOutOfBounds,
                "message offsets from 0 to 2^63-1",
                format!(
                    "start offset {} and {} records",
                    header.start, header.records
                ),
            ),
            Self::TooLong { needed, available } => Finding::TooLong { needed, available },
            Self::Payload(bad) => Finding::words(
                Cause::PayloadInvalid,
                format!(
                    "a payload of one zstd frame with content checksum, of exactly {} records",
                    header.records
                ),
                bad.to_string(),
            ),
            Self::OutOfOrder { end } => Finding::words(
                Cause::OutOfOrder,
                format!("a start offset of at least {end}, where the last good chunk ended"),
                format!("start offset {}", header.start),
            ),
        }
    }
}

impl fmt::Display for BadPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(bad) => bad.fmt(f),
            Self::MoreRecords => f.write_str("content that continues after the last of them"),
            Self::CutRecord(number) => {
                write!(f, "content that ends inside record {number} of them")
            }
            Self::FewerRecords(records) => write!(f, "content of {records} records"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The fast test for many positions agrees with the walk's check of one.
        #[test]
        fn a_header_checks_exactly_where_a_look_says_so(
            flags: u8, length: u32, start: i64, records: u32, len: u64, cut in 0..=HEADER_BYTES, flip in 0..HEADER_BYTES * 8 + 8,
        ) {
            let mut bytes = Header { flags, length, start, records }.encode();
            if let Some(byte) = bytes.get_mut(flip / 8) {
                *byte ^= 1 << (flip % 8);
            }
            let zeros = [0; HEADER_BYTES];
            let cuts = [bytes.as_slice(), &zeros].map(|bytes| bytes.get(..cut).unwrap_or_default());
            for bytes in cuts.into_iter().chain([bytes.as_slice()]) {
                prop_assert_eq!(verified(bytes), structure(0, bytes, len).verified());
            }
        }
    }
}
