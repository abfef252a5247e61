//! One message of any dialect, and the buffer that it is framed in.

use super::draft::{Reference, Scope};
use super::keys::KeyTable;
use super::layout::compact::{Body, Bytes, Items, KEY_BYTES, Key, Read, Reader, Run, uint_bytes};
use super::{autobase, draft};
use crate::engine::Dialect;
use crate::error::Finding;
use crate::ledger::Cause;
use crate::record::Value;

/// Where the fields of a message are.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Draft(draft::Message),
    // Boxed, being several times as large: messages of both dialects are moved by the larger one's bytes.
    Autobase(Box<autobase::Message>),
}

/// A message that decodes, by where it is.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Where its buffer's length begins in the file.
    pub(super) position: u64,
    /// How many bytes that length takes.
    pub(super) head: u64,
    /// How many bytes the message has.
    pub(super) len: u64,
    /// Its sequence number, where that is known.
    pub(super) seq: Option<u64>,
    /// Whether a key reference points nowhere.
    pub(super) dangling: bool,
    pub(super) message: Message,
}

impl Message {
    /// Reads and checks a whole message, but for where references lead.
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

    /// A column of unsigned integers; `None` of any other, and where the message has none.
    pub(super) const fn number(&self, column: usize) -> Option<u64> {
        match self {
            Self::Draft(message) => message.number(column),
            Self::Autobase(message) => message.number(column),
        }
    }

    /// Whether its value is there, be it empty.
    pub(super) const fn has_value(&self) -> bool {
        match self {
            Self::Draft(_) => true,
            Self::Autobase(message) => message.value().len > 0,
        }
    }

    /// Whether a column of structures or of lists is null, without looking at the message's bytes.
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

    /// How many bytes its arrays take in columns beside those that they have here, where they have more than a few items: a
    /// reference of three bytes becomes a key, three numbers and a place in a list.
    pub(super) fn spread(&self) -> u64 {
        const FEW_ITEMS: u64 = 16;
        const ITEM_BYTES: u64 = 64;
        let items = match self {
            Self::Draft(message) => message.clock.count,
            Self::Autobase(message) => message.items(),
        };
        items.saturating_sub(FEW_ITEMS).saturating_mul(ITEM_BYTES)
    }

    /// The keys that it declares, end to end, if there are any.
    pub(super) fn keys(&self) -> Option<Run> {
        match self {
            Self::Draft(message) => message.keys.filter(|keys| keys.count > 0).map(key_run),
            Self::Autobase(_) => None,
        }
    }

    /// Where the references are that have to be looked at, if there are any.
    pub(super) fn references(&self) -> Option<(&draft::Message, Items)> {
        match self {
            Self::Draft(message) if message.keys.is_some() && message.clock.count > 0 => {
                Some((message, message.clock))
            }
            _ => None,
        }
    }

    /// The first clock entry, by its place, that refers to nothing.
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
        let scope = Scope {
            seq,
            keys,
            resolved: None,
        };
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

    /// Where its first byte is, in bytes from the start of the file.
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

    /// A column but for the sequence number.
    pub(super) fn field<'a>(
        &self,
        body: Body<'a>,
        column: usize,
        keys: &'a KeyTable,
        resolved: Option<&'a [Option<Key>]>,
    ) -> Read<Value<'a>> {
        let scope = Scope {
            seq: self.seq,
            keys,
            resolved,
        };
        match &self.message {
            Message::Draft(message) => message.field(body, column, scope),
            Message::Autobase(message) => message.field(body, column),
        }
    }
}

/// What strict reading says of a reference that leads nowhere.
pub(super) fn dangling_finding(place: u64, reference: Reference) -> Finding {
    let Reference { seq, offset, .. } = reference;
    Finding::words(
        Cause::DanglingReference,
        format!("clock entry {place} to refer to a key of an earlier message or of its own"),
        format!("a reference to key {offset} of message {seq}, which is not there"),
    )
}

/// What stands where a buffer should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A buffer that lies within the file: `head` bytes of length, and `len` bytes.
    Whole { head: u64, len: u64 },
    /// The file ends inside the length, which has so many bytes.
    Truncated { needed: u64 },
    /// The buffer reaches beyond the file: it has so many bytes.
    TooLong { needed: u64 },
    /// The length reaches beyond the bytes at hand, though not beyond the file.
    NeedMore,
}

impl Frame {
    /// Parses what stands at the beginning of `bytes`; the file has `left` bytes from there on, `bytes` among them.
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
