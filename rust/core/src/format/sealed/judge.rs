//! Whether an entry's message counts: the checks of rules 15 and 16, and nothing that reads.

use uuid::Uuid;

use super::front::Front;
use super::layout::{Entry, Message, Parsed, Short, UUID_BYTES};
use crate::engine::Budget;
use crate::error::Finding;
use crate::ledger::Cause;
use crate::uuid6;

/// What is judged, or why it does not count.
pub(super) type Judged<T> = std::result::Result<T, Fault>;

/// What came before an entry: the last good message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prior {
    pub(super) last: Option<[u8; UUID_BYTES]>,
    /// Where it ends; before the first, where the data begins.
    pub(super) end: u64,
}

impl Prior {
    /// Nothing came before.
    pub(super) const fn nothing(front: &Front) -> Self {
        Self {
            last: None,
            end: front.data_start,
        }
    }
}

/// Why an entry's message does not count. The numbers are those that its [`Finding`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    OutOfBounds,
    /// It begins before the last good message ends.
    Overlap,
    /// It leaves the data.
    Short(Short),
    Checksum {
        stored: u64,
        computed: u64,
    },
    BadUuid,
    /// Its UUID is not greater than this one, the last good one.
    NotAbove([u8; UUID_BYTES]),
    /// Its UUID is greater than this one, which comes behind it.
    Ahead([u8; UUID_BYTES]),
    /// It ends here, and neither of the next two entries bears that out.
    Unconfirmed {
        end: u64,
        expected: u64,
    },
    /// Too much was hashed in vain already.
    SearchLimit,
}

impl Fault {
    pub(super) const fn cause(self) -> Cause {
        match self {
            Self::OutOfBounds => Cause::OffsetOutOfBounds,
            Self::Overlap | Self::NotAbove(_) | Self::Ahead(_) => Cause::OutOfOrder,
            Self::Short(short) if short.in_header => Cause::TruncatedHeader,
            Self::Short(_) => Cause::LengthOutOfBounds,
            Self::Checksum { .. } => Cause::ChecksumMismatch,
            Self::BadUuid => Cause::BadUuid,
            Self::Unconfirmed { .. } => Cause::IndexDisagrees,
            Self::SearchLimit => Cause::SearchLimit,
        }
    }

    /// The numbers for a person.
    pub(super) fn finding(self, front: &Front, entry: &Entry, prior: &Prior) -> Finding {
        let Entry { uuid, offset, .. } = *entry;
        let cause = self.cause();
        let name = Uuid::from_bytes(uuid);
        let stated = || format!("{offset} in the index entry of {name}");
        let (expected, actual) = match self {
            Self::Checksum { stored, computed } => {
                let computed = front.key.disclosed(computed);
                return Finding::Checksum { stored, computed };
            }
            Self::BadUuid => return Finding::BadUuid { uuid },
            Self::NotAbove(last) => return Finding::OutOfOrder { last, uuid },
            Self::OutOfBounds => (
                format!(
                    "an offset from {} on and below {}, where the messages are",
                    front.data_start, front.data_end
                ),
                stated(),
            ),
            Self::Overlap => {
                let end = prior.end;
                let expected =
                    format!("an offset of at least {end}, where the message before ends");
                (expected, stated())
            }
            Self::Short(Short {
                in_header,
                needed,
                left,
            }) => {
                let expected = match in_header {
                    true => format!("at least {needed} bytes for the lengths and type of {name}"),
                    false => format!("{needed} bytes, as the lengths of {name} say"),
                };
                (expected, format!("{left} bytes left in the data"))
            }
            Self::Ahead(next) => {
                let next = Uuid::from_bytes(next);
                let expected = format!("a UUID smaller than the next one, {next}");
                (expected, name.to_string())
            }
            Self::Unconfirmed { end, expected } => (
                format!(
                    "the message of {name} to end at {expected}, where the index says that the next one begins"
                ),
                format!("lengths that end it at {end}"),
            ),
            Self::SearchLimit => (
                format!("at most {} bytes hashed in vain", Budget::total(front.len)),
                format!(
                    "an index whose entries would take more: {name} and those behind it are not looked at"
                ),
            ),
        };
        Finding::words(cause, expected, actual)
    }
}

/// Whether a message can begin at `place`.
pub(super) const fn in_bounds(front: &Front, place: u64) -> Judged<()> {
    if front.in_bounds(place) {
        Ok(())
    } else {
        Err(Fault::OutOfBounds)
    }
}

/// Whether `place` is behind the last good message.
pub(super) const fn no_overlap(place: u64, prior: &Prior) -> Judged<()> {
    if place < prior.end {
        return Err(Fault::Overlap);
    }
    Ok(())
}

/// Whether a UUID is of version 6 and greater than the last good one.
pub(super) fn ascends(uuid: &[u8; UUID_BYTES], prior: &Prior) -> Judged<()> {
    if !uuid6::is_v6(uuid) {
        return Err(Fault::BadUuid);
    }
    match prior.last {
        Some(last) if *uuid <= last => Err(Fault::NotAbove(last)),
        _ => Ok(()),
    }
}

/// Whether an entry says something about the order of those in front of it.
pub(super) fn is_evidence(front: &Front, entry: &Entry) -> bool {
    front.in_bounds(entry.offset) && uuid6::is_v6(&entry.uuid)
}

/// Whether no UUID behind this one, of the next entry that is evidence, says that it is too great.
pub(super) fn not_ahead(
    uuid: &[u8; UUID_BYTES],
    next: Option<[u8; UUID_BYTES]>,
    prior: &Prior,
) -> Judged<()> {
    match next {
        Some(next) if next < *uuid && prior.last.is_none_or(|last| next > last) => {
            Err(Fault::Ahead(next))
        }
        _ => Ok(()),
    }
}

/// What stands where an entry says that its message is.
pub(super) fn message(entry: &Entry, parsed: Parsed) -> Judged<Message> {
    let header = parsed.map_err(Fault::Short)?;
    Ok(Message {
        number: entry.number,
        uuid: entry.uuid,
        position: entry.offset,
        header,
    })
}

/// Whether the extent of a message that ends at `end` is confirmed without its checksum: by the next entry, which says that
/// its message begins at `expected`, or by what stands at `end`, if that ends where the entry behind that one says.
pub(super) fn confirmed(end: u64, expected: u64, next_fits: bool) -> Judged<()> {
    if end == expected || next_fits {
        return Ok(());
    }
    Err(Fault::Unconfirmed { end, expected })
}

/// Whether no message in front of one with a right checksum can keep the walk from giving it: the entry before is smaller.
pub(super) fn is_alone(uuid: &[u8; UUID_BYTES], before: Option<Entry>) -> bool {
    before.is_none_or(|before| before.uuid < *uuid)
}

/// A message that lies within the data, if its checksum is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) message: Message,
    /// The checksum in the trailer.
    pub(super) stored: u64,
}

impl Claim {
    /// What the message comes to, its checksum being `computed`.
    pub(super) fn judge(self, computed: u64, prior: &Prior) -> Judged<Message> {
        let Self { message, stored } = self;
        if computed != stored {
            return Err(Fault::Checksum { stored, computed });
        }
        ascends(&message.uuid, prior).map(|()| message)
    }
}
