//! Version 2.
//!
//! ```text
//! message:      version ‖ node ‖ flags uint ‖ [frame(checkpoint)] ‖ [frame(digest)] ‖ [frame(trace)] ‖ later fields
//! frame(x):     uint byte length ‖ x ‖ later fields
//! checkpoint:   flags uint ‖ [system checkpointer] ‖ [encryption checkpointer] ‖ [user array(checkpointer)]
//! checkpointer: flags u8 ‖ [checkpointer uint] ‖ [signature fixed64 ‖ length uint]
//! digest:       flags uint ‖ [pointer uint] ‖ [key fixed32]
//! trace:        system array(uint) ‖ encryption array(uint) ‖ user array(view uint ‖ blocks array(uint))
//! ```

use super::{Checkpoint, Checkpointer, Digest, Message, Node, Trace, index_checkpoint};
use crate::format::oplog::layout::compact::{Bytes, Counts, Items, KEY_BYTES, Read, Reader};

/// The outer flags: which frames are present, and fields that need no bytes.
pub(super) const CHECKPOINT: u64 = 1;
pub(super) const DIGEST: u64 = 2;
pub(super) const OPTIMISTIC: u64 = 4;
pub(super) const TRACE: u64 = 8;
/// The known flags.
pub(super) const KNOWN: u64 = CHECKPOINT | DIGEST | OPTIMISTIC | TRACE;

/// The flags of a checkpoint: which views it has.
pub(super) const SYSTEM: u64 = 1;
pub(super) const ENCRYPTION: u64 = 2;
pub(super) const USER: u64 = 4;

/// The flags of a checkpointer.
pub(super) const HAS_CHECKPOINTER: u8 = 1;
pub(super) const HAS_CHECKPOINT: u8 = 2;

/// The flags of a digest.
pub(super) const HAS_POINTER: u64 = 1;
pub(super) const HAS_KEY: u64 = 2;

pub(super) fn read<B: Bytes>(reader: &mut Reader<B>) -> Read<Message> {
    let node = Node::read(reader)?;
    let flags = reader.uint("flags")?;
    let checkpoint = frame(reader, flags & CHECKPOINT != 0, "checkpoint", checkpoint)?;
    let digest = frame(reader, flags & DIGEST != 0, "digest", digest)?;
    let trace = frame(reader, flags & TRACE != 0, "trace", trace)?;
    let left = reader.left();
    let extra = reader.run(left, "later fields")?;
    Ok(Message {
        version: 2,
        node,
        checkpoint,
        digest,
        max_supported_version: None,
        optimistic: Some(flags & OPTIMISTIC != 0),
        trace,
        extra: Some(extra).filter(|extra| extra.len > 0),
        flags,
    })
}

fn frame<B: Bytes, T>(
    reader: &mut Reader<B>,
    present: bool,
    what: &'static str,
    content: impl FnOnce(&mut Reader<B>) -> Read<T>,
) -> Read<Option<T>> {
    if present {
        reader.frame(what, content).map(Some)
    } else {
        Ok(None)
    }
}

fn checkpoint<B: Bytes>(reader: &mut Reader<B>) -> Read<Checkpoint> {
    let flags = reader.uint("a checkpoint's flags")?;
    let view = |reader: &mut Reader<B>, flag| {
        let present = flags & flag != 0;
        present.then(|| checkpointer(reader)).transpose()
    };
    let system = view(reader, SYSTEM)?;
    let encryption = view(reader, ENCRYPTION)?;
    let user = if flags & USER != 0 {
        Some(reader.items("the user views' checkpoints", 1, |reader| {
            checkpointer(reader).map(drop)
        })?)
    } else {
        None
    };
    Ok(Checkpoint {
        system,
        encryption,
        user,
    })
}

pub(super) fn checkpointer<B: Bytes>(reader: &mut Reader<B>) -> Read<Checkpointer> {
    let flags = reader.u8("a checkpointer's flags")?;
    let checkpointer = if flags & HAS_CHECKPOINTER != 0 {
        reader.counted(Counts::Back, "a checkpointer")?
    } else {
        0
    };
    let checkpoint = if flags & HAS_CHECKPOINT != 0 {
        Some(index_checkpoint(reader)?)
    } else {
        None
    };
    Ok(Checkpointer {
        checkpointer,
        checkpoint,
    })
}

fn digest<B: Bytes>(reader: &mut Reader<B>) -> Read<Digest> {
    let flags = reader.uint("a digest's flags")?;
    let pointer = if flags & HAS_POINTER != 0 {
        reader.counted(Counts::Back, "a digest's pointer")?
    } else {
        0
    };
    let key = if flags & HAS_KEY != 0 {
        Some(reader.run(KEY_BYTES, "a digest's key")?)
    } else {
        None
    };
    Ok(Digest { pointer, key })
}

fn trace<B: Bytes>(reader: &mut Reader<B>) -> Read<Trace> {
    Ok(Trace {
        system: blocks(reader)?,
        encryption: blocks(reader)?,
        user: reader.items("the trace's user views", 2, |reader| view(reader).map(drop))?,
    })
}

/// A user view of a trace, and its blocks.
pub(super) fn view<B: Bytes>(reader: &mut Reader<B>) -> Read<(u64, Items)> {
    Ok((reader.uint("a view in the trace")?, blocks(reader)?))
}

fn blocks<B: Bytes>(reader: &mut Reader<B>) -> Read<Items> {
    reader.items("a trace's blocks", 1, |reader| {
        reader.uint("a trace's block").map(drop)
    })
}
