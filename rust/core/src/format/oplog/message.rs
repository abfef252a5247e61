//! One message of any dialect, and the buffer that frames it.

use super::draft::{Reference, Scope};
use super::keys::KeyTable;
use super::layout::compact::{Body, Bytes, Items, KEY_BYTES, Read, Reader, Run, uint_bytes};
use super::{autobase, draft};
use crate::error::Finding;
use crate::ledger::Cause;
use crate::record::Value;
use crate::spec::Dialect;

/// Where the fields of a message are.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Draft(draft::Message),
    // Boxed, because it is several times as large, and messages of both dialects would be moved with its size.
    Autobase(Box<autobase::Message>),
}

/// A message that decodes, by its position.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Where its buffer's length begins in the file.
    pub(super) position: u64,
    /// How many bytes that length takes.
    pub(super) head: u64,
    /// The length of the message in bytes.
    pub(super) len: u64,
    /// Its sequence number, if it is known.
    pub(super) seq: Option<u64>,
    /// Whether a key reference points nowhere.
    pub(super) dangling: bool,
    pub(super) message: Message,
}

impl Message {
    /// Reads and checks a whole message, except whether its references resolve.
    #[inline]
    pub(super) fn read<B: Bytes>(reader: &mut Reader<B>, dialect: Dialect) -> Read<Self> {
        match dialect {
            Dialect::Draft => draft::Message::read(reader, false).map(Self::Draft),
            Dialect::Draft11 => draft::Message::read(reader, true).map(Self::Draft),
            Dialect::Autobase => autobase::Message::read(reader)
                .map(Box::new)
                .map(Self::Autobase),
        }
    }

    pub(super) const fn value(&self) -> Run {
        match self {
            Self::Draft(message) => message.value,
            Self::Autobase(message) => message.value(),
        }
    }

    /// The value of a column of unsigned integers. `None` for other columns, and if the message lacks it.
    pub(super) const fn number(&self, column: usize) -> Option<u64> {
        match self {
            Self::Draft(message) => message.number(column),
            Self::Autobase(message) => message.number(column),
        }
    }

    /// Whether it has a value, which may be empty.
    pub(super) const fn has_value(&self) -> bool {
        match self {
            Self::Draft(_) => true,
            Self::Autobase(message) => message.value().len > 0,
        }
    }

    /// Whether a column of structures or of lists is null, judged without the message's bytes.
    pub(super) const fn lacks(&self, column: usize) -> bool {
        match self {
            Self::Draft(message) => message.lacks(column),
            Self::Autobase(message) => message.lacks(column),
        }
    }

    /// How many clock entries it has.
    pub(super) const fn clock_count(&self) -> u64 {
        match self {
            Self::Draft(message) => message.clock.count,
            Self::Autobase(message) => message.clock_count(),
        }
    }

    /// How many more bytes its arrays take in columns than in the file, if they have more than a few items: a
    /// reference of three bytes becomes a key, three numbers and an offset of a list.
    pub(super) fn spread(&self) -> u64 {
        const FEW_ITEMS: u64 = 16;
        const ITEM_BYTES: u64 = 64;
        let items = match self {
            Self::Draft(message) => message.clock.count,
            Self::Autobase(message) => message.items(),
        };
        items.saturating_sub(FEW_ITEMS).saturating_mul(ITEM_BYTES)
    }

    /// The keys that it declares, concatenated, if there are any.
    pub(super) fn keys(&self) -> Option<Run> {
        match self {
            Self::Draft(message) => message.keys.filter(|keys| keys.count > 0).map(key_run),
            Self::Autobase(_) => None,
        }
    }

    /// The references that need to be resolved, if there are any.
    pub(super) fn references(&self) -> Option<(&draft::Message, Items)> {
        match self {
            Self::Draft(message) if message.keys.is_some() && message.clock.count > 0 => {
                Some((message, message.clock))
            }
            _ => None,
        }
    }

    /// The index of the first clock entry that refers to nothing.
    pub(super) fn dangling(
        &self,
        body: Body<'_>,
        scope: Scope<'_>,
    ) -> Read<Option<(u64, Reference)>> {
        match self.references() {
            Some((message, clock)) => message.dangling(&mut body.reader(clock.at), scope),
            None => Ok(None),
        }
    }
}

const fn key_run(keys: Items) -> Run {
    Run {
        at: keys.at,
        len: keys.count.saturating_mul(KEY_BYTES),
    }
}

impl Record {
    /// Reads a message that is in memory.
    #[inline]
    pub(super) fn read(
        body: Body<'_>,
        len: u64,
        dialect: Dialect,
        seq: Option<u64>,
        keys: &KeyTable,
    ) -> Read<Self> {
        let message = Message::read(&mut body.reader(0), dialect)?;
        let scope = Scope { seq, keys };
        let dangling = message.dangling(body, scope)?.is_some();
        Ok(Self {
            position: 0,
            head: 0,
            len,
            seq,
            dangling,
            message,
        })
    }

    /// The offset of its first byte, from the beginning of the file.
    pub(super) const fn start(&self) -> u64 {
        self.position.saturating_add(self.head)
    }

    /// Where the next buffer begins.
    pub(super) const fn end(&self) -> u64 {
        self.start().saturating_add(self.len)
    }

    pub(super) const fn cause(&self) -> Option<Cause> {
        if self.dangling {
            Some(Cause::DanglingReference)
        } else {
            None
        }
    }

    /// Its sequence number as a value.
    pub(super) fn seq(&self) -> Value<'static> {
        let seq = self.seq.and_then(|seq| i64::try_from(seq).ok());
        seq.map_or(Value::Null, Value::Int64)
    }

    /// The value of a column other than the sequence number.
    pub(super) fn field<'a>(
        &self,
        body: Body<'a>,
        column: usize,
        keys: &'a KeyTable,
    ) -> Read<Value<'a>> {
        let scope = Scope {
            seq: self.seq,
            keys,
        };
        match &self.message {
            Message::Draft(message) => message.field(body, column, scope),
            Message::Autobase(message) => message.field(body, column),
        }
    }
}

/// The finding of a dangling reference.
pub(super) fn dangling_finding(place: u64, reference: Reference) -> Finding {
    let Reference { seq, offset, .. } = reference;
    Finding::words(
        Cause::DanglingReference,
        format!("clock entry {place} to refer to a key of an earlier message or of its own"),
        format!("a reference to key {offset} of message {seq}, which is not there"),
    )
}

/// The bytes where a buffer should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A buffer that lies within the file: `head` bytes of length, and `len` bytes of message.
    Whole { head: u64, len: u64 },
    /// The file ends inside the length, which has this many bytes.
    Truncated { needed: u64 },
    /// The buffer extends past the end of the file. It has this many bytes.
    TooLong { needed: u64 },
    /// The length extends past the available bytes, but not past the end of the file.
    NeedMore,
}

impl Frame {
    /// Parses the beginning of `bytes`. The file has `left` bytes from there on, `bytes` included.
    pub(super) fn parse(bytes: &[u8], left: u64) -> Self {
        let Some(first) = bytes.first() else {
            return if left == 0 {
                Self::Truncated { needed: 1 }
            } else {
                Self::NeedMore
            };
        };
        let head = uint_bytes(*first);
        if head > left {
            return Self::Truncated { needed: head };
        }
        let body = Body::new(bytes);
        match body.reader(0).uint("length") {
            Ok(len) if len <= left - head => Self::Whole { head, len },
            Ok(len) => Self::TooLong {
                needed: head.saturating_add(len),
            },
            Err(_) => Self::NeedMore,
        }
    }
}
