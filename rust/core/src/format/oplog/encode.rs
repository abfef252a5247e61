//! Encodes messages of the dialects `draft` and `draft-1.1`.

use std::collections::HashMap;

use super::layout::compact::{Key, put_buffer, put_uint};
use super::layout::fields::{
    absent, all, binary, check_count, fixed, list, parts, present, put_heads, uint,
};
use crate::error::{Error, Result};
use crate::record::Value;
use crate::spec::Dialect;

/// How keys are named in a message of `draft-1.1`: by the message that declared them and their index there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming<'a> {
    /// The message's own sequence number.
    pub(super) seq: Option<u64>,
    /// Where the keys of the messages before it were declared. `None` for a message on its own.
    pub(super) declared: Option<&'a HashMap<Key, (u64, u64)>>,
}

impl Naming<'_> {
    fn find(&self, key: &Key) -> Option<(u64, u64)> {
        self.declared
            .and_then(|declared| declared.get(key).copied())
    }

    /// Whether a reference to this message must be written as given, because nothing is known of that message.
    fn is_elsewhere(&self, seq: u64) -> bool {
        self.declared.is_none() && self.seq != Some(seq)
    }
}

/// Appends a message, and returns the keys that it declares.
pub(super) fn encode(
    out: &mut Vec<u8>,
    fields: &[Value<'_>],
    dialect: Dialect,
    naming: Naming<'_>,
) -> Result<Vec<Key>> {
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
    ] = all(fields)?;
    put_uint(out, uint(version, "version")?);
    let checkpointer = uint(checkpointer, "checkpointer")?;
    put_uint(out, checkpointer);
    match (checkpointer, present(checkpoint)) {
        (0, Some(checkpoint)) => {
            let [hash, length] = parts(checkpoint, "checkpoint")?;
            out.extend_from_slice(fixed::<32>(hash, "checkpoint.tree_hash")?);
            put_uint(out, uint(length, "checkpoint.length")?);
        }
        (0, None) => {
            return Err(Error::Usage(
                "checkpointer 0 needs a checkpoint: give one, or set checkpointer to how many messages back it is"
                    .to_owned(),
            ));
        }
        (_, Some(_)) => {
            return Err(Error::Usage(format!(
                "checkpointer {checkpointer} says that the checkpoint is in an earlier message: leave checkpoint out, or make checkpointer 0"
            )));
        }
        (_, None) => {}
    }
    let own = if dialect == Dialect::Draft11 {
        references(out, clock, keys, naming)?
    } else {
        absent(keys, "keys", "only the dialect draft-1.1 has them")?;
        put_heads(out, clock)?;
        Vec::new()
    };
    put_uint(out, uint(abi, "abi")?);
    put_uint(out, uint(batch, "batch")?);
    put_buffer(out, binary(value, "value")?);
    if dialect == Dialect::Draft11 {
        put_uint(out, own.len() as u64);
        out.extend_from_slice(own.as_flattened());
    }
    Ok(own)
}

/// Appends a clock whose entries refer to keys. Returns the keys to declare: the ones used first here, in the
/// order of their use, and after them the given ones that nothing uses. Each is declared once.
fn references(
    out: &mut Vec<u8>,
    clock: &Value<'_>,
    keys: &Value<'_>,
    naming: Naming<'_>,
) -> Result<Vec<Key>> {
    let mut own = DeclaredKeys::default();
    let entries = list(clock, "clock")?;
    put_uint(out, entries.len() as u64);
    for (place, entry) in entries.iter().enumerate() {
        let [key, length, seq, offset] = parts(entry, format_args!("clock entry {place}"))?;
        let given = given_reference(place, seq, offset)?;
        let (seq, offset) = match given.filter(|given| naming.is_elsewhere(given.0)) {
            Some(elsewhere) => elsewhere,
            None => own.reference(place, key, given, naming)?,
        };
        put_uint(out, seq);
        put_uint(out, offset);
        let name = format_args!("the length of clock entry {place}");
        put_uint(out, uint(length, name)?);
    }
    let keys = present(keys).map_or(Ok([].as_slice()), |keys| list(keys, "keys"))?;
    for (place, key) in keys.iter().enumerate() {
        let key = fixed::<32>(key, format_args!("key {place}"))?;
        if naming.find(key).is_none() {
            own.place(key);
        }
    }
    check_count(own.keys.len(), "keys")?;
    Ok(own.keys)
}

/// The keys that a message declares.
#[derive(Default)]
struct DeclaredKeys {
    keys: Vec<Key>,
    places: HashMap<Key, u64>,
}

impl DeclaredKeys {
    /// The index of a key here. Declares it if it is new.
    fn place(&mut self, key: &Key) -> u64 {
        let next = self.keys.len() as u64;
        *self.places.entry(*key).or_insert_with(|| {
            self.keys.push(*key);
            next
        })
    }

    fn reference(
        &mut self,
        place: usize,
        key: &Value<'_>,
        given: Option<(u64, u64)>,
        naming: Naming<'_>,
    ) -> Result<(u64, u64)> {
        if *key == Value::Null {
            let given = given.map_or_else(String::new, |(seq, offset)| {
                format!(" (it refers to key {offset} of message {seq}, which was not found)")
            });
            return Err(Error::Usage(format!(
                "clock entry {place} has no key{given}: a message with a reference that leads nowhere cannot be written. Give the key, or leave the entry out"
            )));
        }
        let key = fixed::<32>(key, format_args!("the key of clock entry {place}"))?;
        let right = match (naming.find(key), naming.seq) {
            (Some(declared), _) => declared,
            (None, Some(seq)) => (seq, self.place(key)),
            (None, None) => {
                return Err(Error::Usage(format!(
                    "clock entry {place} names a key that this message declares: seq is needed to refer to it"
                )));
            }
        };
        match given.filter(|given| *given != right) {
            Some(given) => Err(Error::Usage(format!(
                "clock entry {place} gives seq and offset {given:?}, and its key will be at {right:?}: leave both out"
            ))),
            None => Ok(right),
        }
    }
}

fn given_reference(
    place: usize,
    seq: &Value<'_>,
    offset: &Value<'_>,
) -> Result<Option<(u64, u64)>> {
    if (seq, offset) == (&Value::Null, &Value::Null) {
        return Ok(None);
    }
    let seq = uint(seq, format_args!("the seq of clock entry {place}"))?;
    let offset = uint(offset, format_args!("the offset of clock entry {place}"))?;
    Ok(Some((seq, offset)))
}
