//! Messages of the dialect `autobase`: what the npm package `autobase` reads and writes.
//!
//! ```text
//! node:    heads array(key fixed32 ‖ length uint) ‖ batch uint ‖ value buffer, of length 0 where there is none
//! message: version uint ‖ as that version has it
//! ```
//! Version 2 is read and written. The older versions 0 and 1 are only read:
//!
//! ```text
//! version 1:    version ‖ max supported version uint ‖ flags uint ‖ [array(checkpointer) ‖ digest] ‖ node
//! digest:       pointer uint ‖ [key fixed32, where that is 0]
//! version 0:    version ‖ flags uint ‖ [digest v0 ‖ array(checkpointer)] ‖ node ‖ additional ‖ [max supported version uint]
//! digest v0:    pointer uint ‖ [array(signature uint ‖ namespace fixed32 ‖ public key fixed32), where that is 0]
//! additional:   pointer uint ‖ [flags uint ‖ [encryption id fixed32] ‖ [abi uint], where that is 0]
//! checkpointer: checkpointer uint ‖ [signature fixed64 ‖ length uint, where that is 0]
//! ```
//! The first checkpointer is the system's, the others are the user views'.

mod v2;

pub(super) use v2::encode;

use super::layout::columns::{
    BATCH, CHECKPOINT, CLOCK, DIGEST, EXTRA, FLAGS, KEYS, MAX_SUPPORTED_VERSION, OPTIMISTIC, TRACE,
    VALUE, VERSION,
};
use super::layout::fields::{heads, nullable, read_heads, values};
use super::layout::{Body, Bytes, Counts, Items, KEY_BYTES, Read, Reader, Run, Stop};
use crate::error::Finding;
use crate::ledger::Cause;
use crate::record::Value;

const SIGNATURE_BYTES: u64 = 64;

/// The outer flags of versions 0 and 1.
const HAS_CHECKPOINT: u64 = 1;
const IS_OPTIMISTIC: u64 = 2;

/// The flags of version 0's additional fields.
const HAS_ENCRYPTION_ID: u64 = 1;
const HAS_ABI: u64 = 2;

/// The signature, namespace and public key of an indexer.
const LEAST_INDEXER_BYTES: u64 = 1 + 2 * KEY_BYTES;

/// Where the fields of a message are. Fields that its version lacks are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Message {
    version: u64,
    node: Node,
    checkpoint: Option<Checkpoint>,
    digest: Option<Digest>,
    max_supported_version: Option<u64>,
    optimistic: Option<bool>,
    trace: Option<Trace>,
    /// The bytes after the known fields.
    extra: Option<Run>,
    /// The outer flags, known and unknown.
    flags: u64,
}

/// The fields of all versions.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    heads: Items,
    batch: u64,
    value: Run,
}

/// How far each view is signed.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    system: Option<Checkpointer>,
    encryption: Option<Checkpointer>,
    user: Option<Items>,
}

/// A view's checkpoint, or how many messages back it is.
#[derive(Clone, Copy, Debug)]
struct Checkpointer {
    checkpointer: u64,
    /// The signature and the length.
    checkpoint: Option<(Run, u64)>,
}

/// A key, or how many messages back it is.
#[derive(Clone, Copy, Debug)]
struct Digest {
    pointer: u64,
    key: Option<Run>,
}

/// Which blocks of which view made this message.
#[derive(Clone, Copy, Debug)]
struct Trace {
    system: Items,
    encryption: Items,
    user: Items,
}

impl Message {
    /// Reads and checks a whole message.
    pub(super) fn read<B: Bytes>(reader: &mut Reader<B>) -> Read<Self> {
        match reader.uint("version")? {
            0 => read_v0(reader),
            1 => read_v1(reader),
            2 => v2::read(reader),
            version => Err(Stop::fault(0, || {
                Finding::words(
                    Cause::UnsupportedVersion,
                    "version 0, 1 or 2 of the dialect autobase",
                    format!("version {version}"),
                )
            })),
        }
    }

    pub(super) const fn value(&self) -> Run {
        self.node.value
    }

    /// The number of items in its arrays. The blocks of a view are counted as part of the views.
    pub(super) fn items(&self) -> u64 {
        let trace = self
            .trace
            .map(|trace| [trace.system, trace.encryption, trace.user]);
        let user = self.checkpoint.and_then(|checkpoint| checkpoint.user);
        let arrays = trace.into_iter().flatten().chain(user);
        arrays.fold(self.node.heads.count, |all, items| {
            all.saturating_add(items.count)
        })
    }

    /// The value of a column of unsigned integers. `None` for other columns, and if the message lacks it.
    pub(super) const fn number(&self, column: usize) -> Option<u64> {
        match column {
            VERSION => Some(self.version),
            BATCH => Some(self.node.batch),
            MAX_SUPPORTED_VERSION => self.max_supported_version,
            FLAGS => Some(self.flags),
            _ => None,
        }
    }

    pub(super) const fn clock_count(&self) -> u64 {
        self.node.heads.count
    }

    /// Whether a column of structures or of lists is null.
    pub(super) const fn lacks(&self, column: usize) -> bool {
        match column {
            CHECKPOINT => self.checkpoint.is_none(),
            KEYS => true,
            DIGEST => self.digest.is_none(),
            TRACE => self.trace.is_none(),
            _ => false,
        }
    }

    /// The value of a column other than the sequence number.
    pub(super) fn field<'a>(&self, body: Body<'a>, column: usize) -> Read<Value<'a>> {
        let binary = |run| nullable(run, |run| Value::Binary(body.get(run)));
        Ok(match column {
            CHECKPOINT => match &self.checkpoint {
                Some(checkpoint) => self.checkpoint_field(body, checkpoint)?,
                None => Value::Null,
            },
            CLOCK => heads(body, self.node.heads)?,
            VALUE => binary(Some(self.node.value).filter(|value| value.len > 0)),
            OPTIMISTIC => nullable(self.optimistic, Value::Boolean),
            DIGEST => nullable(self.digest, |digest| {
                Value::Struct(vec![Value::UInt64(digest.pointer), binary(digest.key)])
            }),
            TRACE => match &self.trace {
                Some(trace) => trace.field(body)?,
                None => Value::Null,
            },
            EXTRA => binary(self.extra),
            _ => nullable(self.number(column), Value::UInt64),
        })
    }

    fn checkpoint_field<'a>(&self, body: Body<'a>, checkpoint: &Checkpoint) -> Read<Value<'a>> {
        let view = |view| nullable(view, |view: Checkpointer| view.field(body));
        let user = match checkpoint.user {
            None => Value::Null,
            Some(user) => values(body, user, |reader| {
                let view = match self.version {
                    2 => v2::checkpointer(reader)?,
                    _ => old_checkpointer(reader)?,
                };
                Ok(view.field(body))
            })?,
        };
        Ok(Value::Struct(vec![
            view(checkpoint.system),
            view(checkpoint.encryption),
            user,
        ]))
    }
}

impl Node {
    fn read<B: Bytes>(reader: &mut Reader<B>) -> Read<Self> {
        Ok(Self {
            heads: read_heads(reader)?,
            batch: reader.counted(Counts::Batch, "batch")?,
            value: reader.buffer("value")?,
        })
    }
}

impl Checkpointer {
    fn field<'a>(&self, body: Body<'a>) -> Value<'a> {
        let (signature, length) = match self.checkpoint {
            Some((run, length)) => (Value::Binary(body.get(run)), Value::UInt64(length)),
            None => (Value::Null, Value::Null),
        };
        Value::Struct(vec![Value::UInt64(self.checkpointer), signature, length])
    }
}

impl Trace {
    fn field<'a>(&self, body: Body<'a>) -> Read<Value<'a>> {
        let user = values(body, self.user, |reader| {
            let (view, blocks) = v2::view(reader)?;
            Ok(Value::Struct(vec![
                Value::UInt64(view),
                uints(body, blocks)?,
            ]))
        })?;
        Ok(Value::Struct(vec![
            uints(body, self.system)?,
            uints(body, self.encryption)?,
            user,
        ]))
    }
}

/// The signature and length of an index checkpoint.
fn index_checkpoint<B: Bytes>(reader: &mut Reader<B>) -> Read<(Run, u64)> {
    let signature = reader.run(SIGNATURE_BYTES, "a checkpoint's signature")?;
    Ok((signature, reader.uint("a checkpoint's length")?))
}

fn uints<'a>(body: Body<'a>, items: Items) -> Read<Value<'a>> {
    values(body, items, |reader| {
        reader.uint("an item").map(Value::UInt64)
    })
}

fn read_v1<B: Bytes>(reader: &mut Reader<B>) -> Read<Message> {
    let max_supported_version = reader.uint("max supported version")?;
    let flags = reader.uint("flags")?;
    let mut message = Message {
        version: 1,
        max_supported_version: Some(max_supported_version),
        optimistic: Some(flags & IS_OPTIMISTIC != 0),
        flags,
        ..Message::default()
    };
    if flags & HAS_CHECKPOINT != 0 {
        message.checkpoint = Some(old_checkpoint(reader)?);
        let pointer = reader.counted(Counts::Back, "a digest's pointer")?;
        let key = reader.only_if(pointer == 0, digest_key)?;
        message.digest = Some(Digest { pointer, key });
    }
    message.node = Node::read(reader)?;
    reader.finish()?;
    Ok(message)
}

fn digest_key<B: Bytes>(reader: &mut Reader<B>) -> Read<Run> {
    reader.run(KEY_BYTES, "a digest's key")
}

fn read_v0<B: Bytes>(reader: &mut Reader<B>) -> Read<Message> {
    let flags = reader.uint("flags")?;
    let mut message = Message {
        flags,
        max_supported_version: Some(0),
        ..Message::default()
    };
    if flags & HAS_CHECKPOINT != 0 {
        skip_digest(reader)?;
        message.checkpoint = Some(old_checkpoint(reader)?);
    }
    message.node = Node::read(reader)?;
    skip_additional(reader)?;
    if reader.left() > 0 {
        message.max_supported_version = Some(reader.uint("max supported version")?);
    }
    reader.finish()?;
    Ok(message)
}

fn old_checkpoint<B: Bytes>(reader: &mut Reader<B>) -> Read<Checkpoint> {
    let count = reader.count("checkpointers", 1)?;
    let system = reader.only_if(count > 0, old_checkpointer)?;
    let user = Items {
        at: reader.at(),
        count: count.saturating_sub(1),
    };
    for _ in 0..user.count {
        old_checkpointer(reader)?;
    }
    Ok(Checkpoint {
        system,
        encryption: None,
        user: Some(user),
    })
}

fn old_checkpointer<B: Bytes>(reader: &mut Reader<B>) -> Read<Checkpointer> {
    let checkpointer = reader.counted(Counts::Back, "a checkpointer")?;
    Ok(Checkpointer {
        checkpointer,
        checkpoint: reader.only_if(checkpointer == 0, index_checkpoint)?,
    })
}

/// Skips version 0's digest, which means something else than the later one.
fn skip_digest<B: Bytes>(reader: &mut Reader<B>) -> Read<()> {
    if reader.counted(Counts::Back, "a digest's pointer")? == 0 {
        reader.items("a digest's indexers", LEAST_INDEXER_BYTES, |reader| {
            reader.uint("an indexer's signature")?;
            reader
                .run(2 * KEY_BYTES, "an indexer's namespace and key")
                .map(drop)
        })?;
    }
    Ok(())
}

fn skip_additional<B: Bytes>(reader: &mut Reader<B>) -> Read<()> {
    if reader.counted(Counts::Back, "a pointer to additional fields")? == 0 {
        let flags = reader.uint("the additional fields' flags")?;
        if flags & HAS_ENCRYPTION_ID != 0 {
            reader.run(KEY_BYTES, "an encryption id")?;
        }
        if flags & HAS_ABI != 0 {
            reader.uint("abi")?;
        }
    }
    Ok(())
}
