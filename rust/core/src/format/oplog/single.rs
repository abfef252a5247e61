//! Single messages from anywhere: bodies in another format, a column of a table, a message of a queue.

use super::draft::{self, Naming};
use super::keys::KeyTable;
use super::layout::fields;
use super::layout::{Body, Stop};
use super::message::{Record, encode};
use super::rows::{Bodies, OplogRows};
use crate::error::{Error, Result};
use crate::private::Sealed;
use crate::record::{RecordSet, Rows, Value};
use crate::spec::Dialect;

/// One message that decodes, and its bytes.
pub struct Single<B> {
    bytes: B,
    record: Record,
    keys: KeyTable,
}

impl<B> Sealed for Single<B> {}

impl<B: AsRef<[u8]> + Send> RecordSet for Single<B> {
    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(OplogRows {
            records: std::slice::from_ref(&self.record),
            bodies: Bodies::From(0, self.bytes.as_ref()),
            values: true,
            keys: &self.keys,
        })
    }
}

/// Decodes a single message, without the length that frames it in a file.
///
/// `seq` is its sequence number, if known. It becomes the column `seq`, and a message of `draft-1.1` can then
/// refer to its own keys. References to other messages' keys (without `seq`: all references) are dangling: the key
/// is null, and the row has a [cause](Rows::cause).
///
/// # Errors
/// [`Error::Damage`] if the bytes are not a message of this dialect, with the offset within the message.
pub fn decode_message<B: AsRef<[u8]> + Send>(
    bytes: B,
    dialect: Dialect,
    seq: Option<u64>,
) -> Result<Single<B>> {
    let body = bytes.as_ref();
    let keys = KeyTable::default();
    let record = Record::read(Body::new(body), body.len() as u64, dialect, seq, &keys);
    Ok(Single {
        record: record.map_err(damage)?,
        bytes,
        keys,
    })
}

/// Encodes a single message, without the length that frames it in a file. Takes a value for each of the dialect's
/// columns, as [`Writer::write`](crate::format::Writer::write) does.
///
/// In `draft-1.1`, `seq` is needed if the message refers to its own keys. Clock entries that give `seq` and
/// `offset` of another message are written unchecked. In `autobase` version 2 is written.
///
/// # Errors
/// [`Error::Usage`] for values that the dialect cannot represent.
pub fn encode_message(fields: &[Value<'_>], dialect: Dialect) -> Result<Vec<u8>> {
    let (mut out, declared) = (Vec::new(), None);
    let seq = fields::seq(fields)?;
    encode(&mut out, fields, dialect, Naming { seq, declared })?;
    Ok(out)
}

/// The part of a message that is never encrypted, and the rest undecoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct System<'a> {
    /// The layout's version.
    pub version: u64,
    /// How many messages back the checkpoint is. 0 if it is in this one.
    pub checkpointer: u64,
    /// The checkpoint's tree hash and length.
    pub checkpoint: Option<(&'a [u8], u64)>,
    /// Node, clock through value or keys, which may be encrypted.
    pub node: &'a [u8],
}

/// Decodes the System part of a single message, and leaves Node undecoded.
///
/// # Errors
/// [`Error::Damage`] if the bytes end before System does, with the offset within the message. [`Error::Usage`] for
/// the dialect `autobase`, whose version 2 has Node first.
pub fn decode_system(bytes: &[u8], dialect: Dialect) -> Result<System<'_>> {
    if dialect == Dialect::Autobase {
        return Err(Error::Usage(
            "System cannot be decoded alone in the dialect autobase: in its version 2 Node comes first. Decode the whole message, decrypted"
                .to_owned(),
        ));
    }
    let body = Body::new(bytes);
    let mut reader = body.reader(0);
    let system = draft::System::read(&mut reader).map_err(damage)?;
    let left = reader.left();
    let node = reader.run(left, "node").map_err(damage)?;
    Ok(System {
        version: system.version,
        checkpointer: system.checkpointer,
        checkpoint: system
            .checkpoint
            .map(|(hash, length)| (body.get(hash), length)),
        node: body.get(node),
    })
}

fn damage(stop: Stop) -> Error {
    match stop {
        Stop::Error(error) => *error,
        Stop::Fault(fault) => Error::damage(None, fault.at, fault.finding),
    }
}
