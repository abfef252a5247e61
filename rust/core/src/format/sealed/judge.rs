//! Whether an entry's message counts: the rules, and nothing that reads.

use uuid::Uuid;

use super::front::Front;
use super::layout::{Entry, Message, Parsed, UUID_BYTES};
use crate::engine::Budget;
use crate::error::Finding;
use crate::ledger::Cause;
use crate::uuid6;

/// What came before an entry: the last good message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prior {
    pub(super) last: Option<[u8; UUID_BYTES]>,
    /// Where it ends; before the first, where the data begins.
    pub(super) end: u64,
}

/// Why an entry's message does not count. The numbers are those that its [`Finding`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    OutOfBounds,
    /// It begins before the last good message ends.
    Overlap,
    Truncated {
        needed: u64,
        left: u64,
    },
    TooLong {
        needed: u64,
        left: u64,
    },
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
            Self::Truncated { .. } => Cause::TruncatedHeader,
            Self::TooLong { .. } => Cause::LengthOutOfBounds,
            Self::Checksum { .. } => Cause::ChecksumMismatch,
            Self::BadUuid => Cause::BadUuid,
            Self::Unconfirmed { .. } => Cause::IndexDisagrees,
            Self::SearchLimit => Cause::SearchLimit,
        }
    }

    /// The numbers for a person.
    pub(super) fn finding(self, front: &Front, entry: &Entry, prior: &Prior) -> Finding {
        let Entry { uuid, offset } = *entry;
        let cause = self.cause();
        let name = Uuid::from_bytes(uuid);
        match self {
            Self::OutOfBounds => Finding::words(
                cause,
                format!(
                    "an offset from {} on and below {}, where the messages are",
                    front.data_start, front.data_end
                ),
                format!("{offset} in the index entry of {name}"),
            ),
            Self::Overlap => Finding::words(
                cause,
                format!(
                    "an offset of at least {}, where the message before ends",
                    prior.end
                ),
                format!("{offset} in the index entry of {name}"),
            ),
            Self::Truncated { needed, left } => Finding::words(
                cause,
                format!("at least {needed} bytes for the lengths and type of {name}"),
                format!("{left} bytes left in the data"),
            ),
            Self::TooLong { needed, left } => Finding::words(
                cause,
                format!("{needed} bytes, as the lengths of {name} say"),
                format!("{left} bytes left in the data"),
            ),
            Self::Checksum { stored, computed } => Finding::Checksum {
                stored,
                computed: front.key.disclosed(computed),
            },
            Self::BadUuid => Finding::BadUuid { uuid },
            Self::NotAbove(last) => Finding::OutOfOrder { last, uuid },
            Self::Ahead(next) => Finding::words(
                cause,
                format!(
                    "a UUID smaller than the next one, {}",
                    Uuid::from_bytes(next)
                ),
                name.to_string(),
            ),
            Self::Unconfirmed { end, expected } => Finding::words(
                cause,
                format!(
                    "the message of {name} to end at {expected}, where the index says that the next one begins"
                ),
                format!("lengths that end it at {end}"),
            ),
            Self::SearchLimit => Finding::words(
                cause,
                format!("at most {} bytes hashed in vain", Budget::total(front.len)),
                format!(
                    "an index whose entries would take more: {name} and those behind it are not looked at"
                ),
            ),
        }
    }
}

/// What stands at `place` as an entry's message, where the data has `left` bytes.
pub(super) fn message(
    number: u64,
    entry: &Entry,
    place: u64,
    parsed: Parsed,
    left: u64,
) -> std::result::Result<Message, Fault> {
    match parsed {
        Parsed::Message(header) => Ok(Message {
            number,
            uuid: entry.uuid,
            position: place,
            header,
        }),
        Parsed::Truncated(needed) => Err(Fault::Truncated { needed, left }),
        Parsed::TooLong(needed) => Err(Fault::TooLong { needed, left }),
    }
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
    pub(super) fn judge(self, computed: u64, prior: &Prior) -> std::result::Result<Message, Fault> {
        let Self { message, stored } = self;
        if computed != stored {
            Err(Fault::Checksum { stored, computed })
        } else if !uuid6::is_v6(&message.uuid) {
            Err(Fault::BadUuid)
        } else if let Some(last) = prior.last.filter(|last| message.uuid <= *last) {
            Err(Fault::NotAbove(last))
        } else {
            Ok(message)
        }
    }
}
