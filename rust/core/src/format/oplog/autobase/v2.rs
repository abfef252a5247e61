//! Version 2: reads and encodes its messages.
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
use crate::error::{Error, Result};
use crate::format::oplog::layout::fields::{
    absent, all, binary, fixed, list, parts, present, put_heads, uint,
};
use crate::format::oplog::layout::{
    Bytes, Counts, Items, KEY_BYTES, Read, Reader, put_buffer, put_uint,
};
use crate::record::Value;

/// The outer flags: which frames are present, and fields that need no bytes.
const CHECKPOINT: u64 = 1;
const DIGEST: u64 = 2;
const OPTIMISTIC: u64 = 4;
const TRACE: u64 = 8;
/// The known flags.
const KNOWN: u64 = CHECKPOINT | DIGEST | OPTIMISTIC | TRACE;

/// The flags of a checkpoint: which views it has.
const SYSTEM: u64 = 1;
const ENCRYPTION: u64 = 2;
const USER: u64 = 4;

/// The flags of a checkpointer.
const HAS_CHECKPOINTER: u8 = 1;
const HAS_CHECKPOINT: u8 = 2;

/// The flags of a digest.
const HAS_POINTER: u64 = 1;
const HAS_KEY: u64 = 2;

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

/// Appends a message of version 2.
pub(in crate::format::oplog) fn encode(out: &mut Vec<u8>, fields: &[Value<'_>]) -> Result<()> {
    let [
        _,
        version,
        checkpointer,
        checkpoint,
        clock,
        abi,
        batch,
        value,
        keys,
        max_supported_version,
        optimistic,
        digest,
        trace,
        extra,
        flags,
    ] = all(fields)?;
    let version = uint(version, "version")?;
    if version != 2 {
        return Err(Error::Usage(format!(
            "version {version} of the dialect autobase cannot be written: only version 2 can. Versions 0 and 1 are read only"
        )));
    }
    let none = "version 2 of the dialect autobase has no such field";
    absent(checkpointer, "checkpointer", none)?;
    absent(abi, "abi", none)?;
    absent(keys, "keys", none)?;
    absent(max_supported_version, "max_supported_version", none)?;

    put_uint(out, 2);
    put_heads(out, clock)?;
    put_uint(out, uint(batch, "batch")?);
    match present(value) {
        Some(value) => put_buffer(out, binary(value, "value")?),
        None => put_buffer(out, &[]),
    }

    let optimistic = match optimistic {
        Value::Null => false,
        Value::Boolean(optimistic) => *optimistic,
        _ => {
            return Err(Error::Usage("optimistic must be a truth value".to_owned()));
        }
    };
    let frames = [checkpoint, digest, trace].map(present);
    put_frames(out, frames, optimistic, flags)?;
    if let Some(extra) = present(extra) {
        out.extend_from_slice(binary(extra, "extra")?);
    }
    Ok(())
}

/// Appends the outer flags, and a frame for each field that is present: checkpoint, digest, trace.
fn put_frames(
    out: &mut Vec<u8>,
    [checkpoint, digest, trace]: [Option<&Value<'_>>; 3],
    optimistic: bool,
    flags: &Value<'_>,
) -> Result<()> {
    let implied = flag(checkpoint.is_some(), CHECKPOINT)
        | flag(digest.is_some(), DIGEST)
        | flag(optimistic, OPTIMISTIC)
        | flag(trace.is_some(), TRACE);
    put_uint(out, all_flags(flags, implied)?);
    let mut frame = Vec::new();
    let mut put = |field, content: fn(&mut Vec<u8>, &Value<'_>) -> Result<()>| {
        if let Some(field) = field {
            content(&mut frame, field)?;
            put_buffer(out, &frame);
            frame.clear();
        }
        Ok(())
    };
    put(checkpoint, put_checkpoint)?;
    put(digest, put_digest)?;
    put(trace, put_trace)
}

const fn flag(set: bool, flag: u64) -> u64 {
    if set { flag } else { 0 }
}

/// The outer flags: the ones that the fields imply, and the unknown ones of those given.
fn all_flags(given: &Value<'_>, implied: u64) -> Result<u64> {
    let given = match present(given) {
        Some(given) => uint(given, "flags")?,
        None => 0,
    };
    let contradicted = given & KNOWN & !implied;
    if contradicted != 0 {
        return Err(Error::Usage(format!(
            "flags {given} promises what checkpoint, digest, optimistic and trace do not have (bits {contradicted:#x}): leave flags out, or give the fields"
        )));
    }
    Ok(given & !KNOWN | implied)
}

fn put_checkpoint(out: &mut Vec<u8>, checkpoint: &Value<'_>) -> Result<()> {
    let [system, encryption, user] = parts(checkpoint, "checkpoint")?;
    let user = present(user);
    let flags = flag(present(system).is_some(), SYSTEM)
        | flag(present(encryption).is_some(), ENCRYPTION)
        | flag(user.is_some(), USER);
    put_uint(out, flags);
    for (view, name) in [
        (system, "checkpoint.system"),
        (encryption, "checkpoint.encryption"),
    ] {
        if let Some(view) = present(view) {
            put_checkpointer(out, view, name)?;
        }
    }
    if let Some(user) = user {
        let views = list(user, "checkpoint.user")?;
        put_uint(out, views.len() as u64);
        for view in views {
            put_checkpointer(out, view, "an item of checkpoint.user")?;
        }
    }
    Ok(())
}

fn put_checkpointer(out: &mut Vec<u8>, view: &Value<'_>, name: &str) -> Result<()> {
    let [checkpointer, signature, length] = parts(view, name)?;
    let checkpointer = uint(checkpointer, format_args!("the checkpointer of {name}"))?;
    let checkpoint = if (signature, length) == (&Value::Null, &Value::Null) {
        None
    } else {
        let signature = fixed::<64>(signature, format_args!("the signature of {name}"))?;
        Some((
            signature,
            uint(length, format_args!("the length of {name}"))?,
        ))
    };
    let mut flags = 0;
    if checkpointer != 0 {
        flags |= HAS_CHECKPOINTER;
    }
    if checkpoint.is_some() {
        flags |= HAS_CHECKPOINT;
    }
    out.push(flags);
    if checkpointer != 0 {
        put_uint(out, checkpointer);
    }
    if let Some((signature, length)) = checkpoint {
        out.extend_from_slice(signature);
        put_uint(out, length);
    }
    Ok(())
}

fn put_digest(out: &mut Vec<u8>, digest: &Value<'_>) -> Result<()> {
    let [pointer, key] = parts(digest, "digest")?;
    let (pointer, key) = (uint(pointer, "digest.pointer")?, present(key));
    let flags = flag(pointer != 0, HAS_POINTER) | flag(key.is_some(), HAS_KEY);
    put_uint(out, flags);
    if pointer != 0 {
        put_uint(out, pointer);
    }
    if let Some(key) = key {
        out.extend_from_slice(fixed::<32>(key, "digest.key")?);
    }
    Ok(())
}

fn put_trace(out: &mut Vec<u8>, trace: &Value<'_>) -> Result<()> {
    let [system, encryption, user] = parts(trace, "trace")?;
    put_uints(out, system, "trace.system")?;
    put_uints(out, encryption, "trace.encryption")?;
    let views = list(user, "trace.user")?;
    put_uint(out, views.len() as u64);
    for item in views {
        let [view, blocks] = parts(item, "an item of trace.user")?;
        put_uint(out, uint(view, "a view of trace.user")?);
        put_uints(out, blocks, "the blocks of a view of trace.user")?;
    }
    Ok(())
}

fn put_uints(out: &mut Vec<u8>, values: &Value<'_>, name: &str) -> Result<()> {
    let values = list(values, name)?;
    put_uint(out, values.len() as u64);
    for value in values {
        put_uint(out, uint(value, format_args!("an item of {name}"))?);
    }
    Ok(())
}
