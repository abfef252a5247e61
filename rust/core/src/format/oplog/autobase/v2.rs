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

use super::{Checkpoint, Checkpointer, Digest, Message, Node, Trace, digest_key, index_checkpoint};
use crate::error::{Error, Result};
use crate::format::oplog::layout::fields::{
    absent, all, binary, fixed, list, parts, present, put_heads, uint,
};
use crate::format::oplog::layout::{Bytes, Counts, Items, Read, Reader, put_buffer, put_uint};
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
const HAS_CHECKPOINTER: u64 = 1;
const HAS_CHECKPOINT: u64 = 2;

/// The flags of a digest.
const HAS_POINTER: u64 = 1;
const HAS_KEY: u64 = 2;

pub(super) fn read<B: Bytes>(reader: &mut Reader<B>) -> Read<Message> {
    let node = Node::read(reader)?;
    let flags = reader.uint("flags")?;
    let checkpoint = reader.only_if(flags & CHECKPOINT != 0, |reader| {
        reader.frame("checkpoint", checkpoint)
    })?;
    let digest = reader.only_if(flags & DIGEST != 0, |reader| reader.frame("digest", digest))?;
    let trace = reader.only_if(flags & TRACE != 0, |reader| reader.frame("trace", trace))?;
    let left = reader.left();
    let extra = reader.run(left, "later fields")?;
    Ok(Message {
        version: 2,
        node,
        checkpoint,
        digest,
        optimistic: Some(flags & OPTIMISTIC != 0),
        trace,
        extra: Some(extra).filter(|extra| extra.len > 0),
        flags,
        ..Message::default()
    })
}

fn checkpoint<B: Bytes>(reader: &mut Reader<B>) -> Read<Checkpoint> {
    let flags = reader.uint("a checkpoint's flags")?;
    Ok(Checkpoint {
        system: reader.only_if(flags & SYSTEM != 0, checkpointer)?,
        encryption: reader.only_if(flags & ENCRYPTION != 0, checkpointer)?,
        user: reader.only_if(flags & USER != 0, |reader| {
            reader.items("the user views' checkpoints", 1, |reader| {
                checkpointer(reader).map(drop)
            })
        })?,
    })
}

pub(super) fn checkpointer<B: Bytes>(reader: &mut Reader<B>) -> Read<Checkpointer> {
    let flags: u64 = reader.u8("a checkpointer's flags")?.into();
    let checkpointer = if flags & HAS_CHECKPOINTER != 0 {
        reader.counted(Counts::Back, "a checkpointer")?
    } else {
        0
    };
    Ok(Checkpointer {
        checkpointer,
        checkpoint: reader.only_if(flags & HAS_CHECKPOINT != 0, index_checkpoint)?,
    })
}

fn digest<B: Bytes>(reader: &mut Reader<B>) -> Read<Digest> {
    let flags = reader.uint("a digest's flags")?;
    let pointer = if flags & HAS_POINTER != 0 {
        reader.counted(Counts::Back, "a digest's pointer")?
    } else {
        0
    };
    let key = reader.only_if(flags & HAS_KEY != 0, digest_key)?;
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
    let has_checkpoint = (signature, length) != (&Value::Null, &Value::Null);
    // Few bits, and so one byte.
    put_uint(
        out,
        flag(checkpointer != 0, HAS_CHECKPOINTER) | flag(has_checkpoint, HAS_CHECKPOINT),
    );
    if checkpointer != 0 {
        put_uint(out, checkpointer);
    }
    if has_checkpoint {
        let signature = fixed::<64>(signature, format_args!("the signature of {name}"))?;
        out.extend_from_slice(signature);
        put_uint(out, uint(length, format_args!("the length of {name}"))?);
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
