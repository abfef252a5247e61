//! Versions 0 and 1, which are only read.
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

use super::{Checkpoint, Checkpointer, Digest, Message, Node, index_checkpoint};
use crate::format::oplog::layout::compact::{Bytes, Counts, Items, KEY_BYTES, Read, Reader};

/// The outer flags.
const CHECKPOINT: u64 = 1;
const OPTIMISTIC: u64 = 2;

/// The flags of version 0's additional fields.
const ENCRYPTION_ID: u64 = 1;
const ABI: u64 = 2;

/// The signature, namespace and public key of an indexer.
const LEAST_INDEXER_BYTES: u64 = 1 + 2 * KEY_BYTES;

pub(super) fn read_v1<B: Bytes>(reader: &mut Reader<B>) -> Read<Message> {
    let max_supported_version = reader.uint("max supported version")?;
    let flags = reader.uint("flags")?;
    let mut message = Message {
        version: 1,
        checkpoint: None,
        digest: None,
        max_supported_version: Some(max_supported_version),
        optimistic: Some(flags & OPTIMISTIC != 0),
        trace: None,
        extra: None,
        flags,
        node: Node::default(),
    };
    if flags & CHECKPOINT != 0 {
        message.checkpoint = Some(checkpoint(reader)?);
        let pointer = reader.counted(Counts::Back, "a digest's pointer")?;
        let key = if pointer == 0 {
            Some(reader.run(KEY_BYTES, "a digest's key")?)
        } else {
            None
        };
        message.digest = Some(Digest { pointer, key });
    }
    message.node = Node::read(reader)?;
    reader.finish()?;
    Ok(message)
}

pub(super) fn read_v0<B: Bytes>(reader: &mut Reader<B>) -> Read<Message> {
    let flags = reader.uint("flags")?;
    let checkpoint = if flags & CHECKPOINT != 0 {
        skip_digest(reader)?;
        Some(checkpoint(reader)?)
    } else {
        None
    };
    let node = Node::read(reader)?;
    skip_additional(reader)?;
    let max_supported_version = if reader.left() > 0 {
        reader.uint("max supported version")?
    } else {
        0
    };
    reader.finish()?;
    Ok(Message {
        version: 0,
        node,
        checkpoint,
        digest: None,
        max_supported_version: Some(max_supported_version),
        optimistic: None,
        trace: None,
        extra: None,
        flags,
    })
}

fn checkpoint<B: Bytes>(reader: &mut Reader<B>) -> Read<Checkpoint> {
    let count = reader.count("checkpointers", 1)?;
    let system = if count > 0 {
        Some(checkpointer(reader)?)
    } else {
        None
    };
    let user = Items {
        at: reader.at(),
        count: count.saturating_sub(1),
    };
    for _ in 0..user.count {
        checkpointer(reader)?;
    }
    Ok(Checkpoint {
        system,
        encryption: None,
        user: Some(user),
    })
}

pub(super) fn checkpointer<B: Bytes>(reader: &mut Reader<B>) -> Read<Checkpointer> {
    let checkpointer = reader.counted(Counts::Back, "a checkpointer")?;
    let checkpoint = if checkpointer == 0 {
        Some(index_checkpoint(reader)?)
    } else {
        None
    };
    Ok(Checkpointer {
        checkpointer,
        checkpoint,
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
        if flags & ENCRYPTION_ID != 0 {
            reader.run(KEY_BYTES, "an encryption id")?;
        }
        if flags & ABI != 0 {
            reader.uint("abi")?;
        }
    }
    Ok(())
}
