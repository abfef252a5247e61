//! The verdict on an entry's message: the checks of rules 15 and 16. Reads nothing.

use uuid::Uuid;

use super::front::Front;
use super::layout::{Entry, Message, Parsed, Short, UUID_BYTES};
use crate::error::Finding;
use crate::ledger::Cause;
use crate::uuid6;
use crate::walk::Budget;

/// A good value, or the fault that makes it damage.
pub(super) type Judged<T> = std::result::Result<T, Fault>;

/// The state before an entry: the last good message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prior {
    pub(super) last: Option<[u8; UUID_BYTES]>,
    /// Where it ends. Before the first message: where the data begins.
    pub(super) end: u64,
}

impl Prior {
    /// The state before the first message.
    pub(super) const fn nothing(front: &Front) -> Self {
        Self {
            last: None,
            end: front.data_start,
        }
    }
}

/// Why an entry's message is not good. The numbers are the ones that its [`Finding`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    OutOfBounds,
    /// It begins before the last good message ends.
    Overlap,
    /// It extends past the end of the data.
    Short(Short),
    Checksum {
        stored: u64,
        computed: u64,
    },
    BadUuid,
    /// Its UUID is not greater than this one, the last good one.
    NotAbove([u8; UUID_BYTES]),
    /// Its UUID is greater than this one, which comes later.
    Ahead([u8; UUID_BYTES]),
    /// It ends here, and neither of the next two entries confirms that.
    Unconfirmed {
        end: u64,
        expected: u64,
    },
    /// The search budget is used up.
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

    /// The expected and actual values, as text for people.
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
                    "an index whose entries would take more: {name} and the ones after it are not checked"
                ),
            ),
        };
        Finding::words(cause, expected, actual)
    }
}

/// Whether `place` is at or after the end of the last good message.
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

/// Whether an entry is evidence for the order of the entries before it.
pub(super) fn is_evidence(front: &Front, entry: &Entry) -> bool {
    front.in_bounds(entry.offset) && uuid6::is_v6(&entry.uuid)
}

/// Whether the UUID of the next entry that is evidence allows this one.
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

/// The message at an entry's offset.
pub(super) fn message(entry: &Entry, parsed: Parsed) -> Judged<Message> {
    let header = parsed.map_err(Fault::Short)?;
    Ok(Message {
        number: entry.number,
        uuid: entry.uuid,
        position: entry.offset,
        header,
    })
}

/// Whether a message that ends at `end` has a confirmed extent without its checksum. The next entry confirms it if
/// its message begins at `expected`, the same offset. So does the message at `end`, if that one ends where the
/// entry after it says.
pub(super) fn confirmed(end: u64, expected: u64, next_fits: bool) -> Judged<()> {
    if end == expected || next_fits {
        return Ok(());
    }
    Err(Fault::Unconfirmed { end, expected })
}

/// Whether no earlier message can keep the walk from returning a verified one: the entry before has a smaller
/// UUID.
pub(super) fn is_alone(uuid: &[u8; UUID_BYTES], before: Option<Entry>) -> bool {
    before.is_none_or(|before| before.uuid < *uuid)
}

/// A message that lies within the data, still to be verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) message: Message,
    /// The checksum in the trailer.
    pub(super) stored: u64,
}

impl Candidate {
    /// The verdict on the message, whose checksum was computed as `computed`.
    pub(super) fn judge(self, computed: u64, prior: &Prior) -> Judged<Message> {
        let Self { message, stored } = self;
        if computed != stored {
            return Err(Fault::Checksum { stored, computed });
        }
        ascends(&message.uuid, prior).map(|()| message)
    }
}
