//! One message of any dialect, and the buffer that frames it.

use super::draft::{Naming, Reference, Scope};
use super::keys::KeyTable;
use super::layout::{Body, Bytes, Items, KEY_BYTES, Key, Read, Reader, Run, uint_bytes};
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
    /// The first clock entry that refers to no key, and its place. Boxed, because hardly any message has one.
    pub(super) dangling: Option<Box<(u64, Reference)>>,
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
}

const fn key_run(keys: Items) -> Run {
    Run {
        at: keys.at,
        len: keys.count.saturating_mul(KEY_BYTES),
    }
}

impl Record {
    /// Reads and checks a message of `len` bytes.
    #[inline]
    pub(super) fn read<B: Bytes>(
        bytes: B,
        len: u64,
        dialect: Dialect,
        seq: Option<u64>,
        keys: &KeyTable,
    ) -> Read<Self> {
        let mut reader = Reader::new(bytes, 0, len);
        let message = Message::read(&mut reader, dialect)?;
        let dangling = match &message {
            Message::Draft(message) if message.keys.is_some() => {
                reader.go_to(message.clock.at);
                message.dangling(&mut reader, Scope { seq, keys })?
            }
            _ => None,
        };
        Ok(Self {
            position: 0,
            head: 0,
            len,
            seq,
            dangling: dangling.map(Box::new),
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
        if self.dangling.is_some() {
            Some(Cause::DanglingReference)
        } else {
            None
        }
    }

    /// Its sequence number as a value.
    pub(super) fn seq(&self) -> Value<'static> {
        match self.seq.map(i64::try_from) {
            Some(Ok(seq)) => Value::Int64(seq),
            // Unknown, or one that the column cannot hold.
            Some(Err(_)) | None => Value::Null,
        }
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

/// Appends a message, and returns the keys that it declares.
pub(super) fn encode(
    out: &mut Vec<u8>,
    fields: &[Value<'_>],
    dialect: Dialect,
    naming: Naming<'_>,
) -> crate::Result<Vec<Key>> {
    match dialect {
        Dialect::Autobase => autobase::encode(out, fields).map(|()| Vec::new()),
        Dialect::Draft | Dialect::Draft11 => draft::encode(out, fields, dialect, naming),
    }
}

/// The finding of a dangling reference.
pub(super) fn dangling_finding((place, reference): &(u64, Reference)) -> Finding {
    let Reference { seq, offset, .. } = reference;
    Finding::words(
        Cause::DanglingReference,
        format!("clock entry {place} to refer to a key of an earlier message or of its own"),
        format!("a reference to key {offset} of message {seq}, which is not there"),
    )
}

/// The buffer that a message is in, within the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// How many bytes the length takes.
    pub(super) head: u64,
    /// The length of the message in bytes.
    pub(super) len: u64,
}

impl Frame {
    /// The frame that begins `bytes`. The file has `available` bytes from there on, `bytes` included. `None` if the length is not
    /// whole in `bytes`, but in the file.
    #[inline(always)]
    pub(super) fn parse(bytes: &[u8], available: u64) -> Result<Option<Self>, Finding> {
        let head = match bytes.first() {
            Some(first) => uint_bytes(*first),
            None => 1,
        };
        if head > available {
            let needed = head;
            return Err(Finding::Truncated { needed, available });
        }
        let Ok(len) = Body::new(bytes).reader(0).uint("length") else {
            return Ok(None);
        };
        let frame = Self { head, len };
        match frame.total() {
            needed if needed > available => Err(Finding::TooLong { needed, available }),
            _ => Ok(Some(frame)),
        }
    }

    /// The length of the whole buffer in bytes.
    pub(super) const fn total(self) -> u64 {
        self.head.saturating_add(self.len)
    }
}
