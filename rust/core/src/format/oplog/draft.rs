//! Messages of the dialects `draft` and `draft-1.1`: where their fields are, what they contain, and how they are encoded.
//!
//! ```text
//! system:    version uint ‖ checkpointer uint ‖ [tree hash fixed32 ‖ length uint, where checkpointer is 0]
//! draft:     system ‖ clock array(key fixed32 ‖ length uint) ‖ abi uint ‖ batch uint ‖ value buffer
//! draft-1.1: system ‖ clock array(seq uint ‖ offset uint ‖ length uint) ‖ abi uint ‖ batch uint ‖ value buffer
//!            ‖ keys array(fixed32)
//! ```

use std::collections::HashMap;

use super::keys::KeyTable;
use super::layout::columns::{ABI, BATCH, CHECKPOINT, CHECKPOINTER, CLOCK, KEYS, VALUE, VERSION};
use super::layout::fields::{
    absent, all, binary, check_count, fixed, heads, list, nullable, parts, present, put_heads,
    read_heads, uint, values,
};
use super::layout::{
    Body, Bytes, Counts, Items, KEY_BYTES, Key, Read, Reader, Run, put_buffer, put_uint,
};
use crate::error::{Error, Result};
use crate::record::Value;
use crate::spec::Dialect;

/// The fields of System.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    pub(super) version: u64,
    pub(super) checkpointer: u64,
    /// The tree hash and the length, if there is a checkpoint.
    pub(super) checkpoint: Option<(Run, u64)>,
}

/// Where the fields of a message are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    system: System,
    pub(super) clock: Items,
    abi: u64,
    batch: u64,
    pub(super) value: Run,
    /// The keys, end to end; `None` in `draft`.
    pub(super) keys: Option<Items>,
}

/// A clock entry of `draft-1.1`: the key at `offset` among those of message `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) seq: u64,
    pub(super) offset: u64,
    length: u64,
}

/// The keys that one message's references can refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    /// The message's own sequence number. Without it nothing resolves.
    pub(super) seq: Option<u64>,
    /// The keys of the messages before it. May include its own and later ones.
    pub(super) keys: &'a KeyTable,
}

impl System {
    #[inline]
    pub(super) fn read<B: Bytes>(reader: &mut Reader<B>) -> Read<Self> {
        let version = reader.uint("version")?;
        let checkpointer = reader.counted(Counts::Back, "checkpointer")?;
        let checkpoint = reader.only_if(checkpointer == 0, |reader| {
            let hash = reader.run(KEY_BYTES, "the checkpoint's tree hash")?;
            Ok((hash, reader.uint("the checkpoint's length")?))
        })?;
        Ok(Self {
            version,
            checkpointer,
            checkpoint,
        })
    }
}

impl Message {
    /// Reads and checks a whole message, except whether its references resolve.
    #[inline]
    pub(super) fn read<B: Bytes>(reader: &mut Reader<B>, references: bool) -> Read<Self> {
        let system = System::read(reader)?;
        let clock = if references {
            reader.items("clock", 3, |reader| Reference::read(reader).map(drop))?
        } else {
            read_heads(reader)?
        };
        let message = Self {
            system,
            clock,
            abi: reader.uint("abi")?,
            batch: reader.counted(Counts::Batch, "batch")?,
            value: reader.buffer("value")?,
            keys: reader.only_if(references, keys)?,
        };
        reader.finish()?;
        Ok(message)
    }

    /// The index of the first dangling clock entry. `reader` is at the first entry.
    pub(super) fn dangling<B: Bytes>(
        &self,
        reader: &mut Reader<B>,
        scope: Scope<'_>,
    ) -> Read<Option<(u64, Reference)>> {
        let Some(own) = self.keys else {
            return Ok(None);
        };
        for place in 0..self.clock.count {
            let reference = Reference::read(reader)?;
            let is_own = scope.seq == Some(reference.seq) && reference.offset < own.count;
            if !is_own && scope.key(reference).is_none() {
                return Ok(Some((place, reference)));
            }
        }
        Ok(None)
    }

    /// The value of a column of unsigned integers. `None` for other columns.
    pub(super) const fn number(&self, column: usize) -> Option<u64> {
        match column {
            VERSION => Some(self.system.version),
            CHECKPOINTER => Some(self.system.checkpointer),
            ABI => Some(self.abi),
            BATCH => Some(self.batch),
            _ => None,
        }
    }

    /// Whether a column of structures or of lists is null.
    pub(super) const fn lacks(&self, column: usize) -> bool {
        match column {
            CHECKPOINT => self.system.checkpoint.is_none(),
            KEYS => self.keys.is_none(),
            _ => false,
        }
    }

    /// The value of a column other than the sequence number.
    pub(super) fn field<'a>(
        &self,
        body: Body<'a>,
        column: usize,
        scope: Scope<'a>,
    ) -> Read<Value<'a>> {
        Ok(match column {
            CHECKPOINT => nullable(self.system.checkpoint, |(hash, length)| {
                Value::Struct(vec![Value::Binary(body.get(hash)), Value::UInt64(length)])
            }),
            CLOCK if self.keys.is_some() => self.references(body, scope)?,
            CLOCK => heads(body, self.clock)?,
            VALUE => Value::Binary(body.get(self.value)),
            KEYS => nullable(self.keys, |keys| {
                let key = |place| Value::Binary(body.get(key_run(keys, place)));
                Value::List((0..keys.count).map(key).collect())
            }),
            _ => nullable(self.number(column), Value::UInt64),
        })
    }

    /// The clock of `draft-1.1`, with the keys that its references resolve to.
    fn references<'a>(&self, body: Body<'a>, scope: Scope<'a>) -> Read<Value<'a>> {
        values(body, self.clock, |reader| {
            let reference = Reference::read(reader)?;
            let own = self.keys.filter(|keys| reference.offset < keys.count);
            let key = match scope.seq == Some(reference.seq) {
                true => own.map(|keys| body.get(key_run(keys, reference.offset))),
                false => scope.key(reference).map(<[u8; 32]>::as_slice),
            };
            Ok(Value::Struct(vec![
                nullable(key, Value::Binary),
                Value::UInt64(reference.length),
                Value::UInt64(reference.seq),
                Value::UInt64(reference.offset),
            ]))
        })
    }
}

/// Where one of these keys is.
const fn key_run(keys: Items, place: u64) -> Run {
    Run {
        at: keys.at + place * KEY_BYTES,
        len: KEY_BYTES,
    }
}

impl Reference {
    fn read<B: Bytes>(reader: &mut Reader<B>) -> Read<Self> {
        Ok(Self {
            seq: reader.counted(Counts::Number, "a clock entry's seq")?,
            offset: reader.uint("a clock entry's offset")?,
            length: reader.uint("a clock entry's length")?,
        })
    }
}

impl<'a> Scope<'a> {
    /// The key of an earlier message that a clock entry refers to. Later ones' keys do not resolve, even if they are already known.
    fn key(&self, reference: Reference) -> Option<&'a Key> {
        self.seq.filter(|seq| reference.seq < *seq)?;
        self.keys.get(reference.seq, reference.offset)
    }
}

fn keys<B: Bytes>(reader: &mut Reader<B>) -> Read<Items> {
    let count = reader.count("keys", KEY_BYTES)?;
    let run = reader.run(count * KEY_BYTES, "keys")?;
    Ok(Items { at: run.at, count })
}

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
    let declared = if dialect == Dialect::Draft11 {
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
        put_uint(out, declared.len() as u64);
        out.extend_from_slice(declared.as_flattened());
    }
    Ok(declared)
}

/// Appends a clock whose entries refer to keys. Returns the keys to declare: the ones used first here, in the
/// order of their use, and after them the given ones that nothing uses. Each is declared once.
fn references(
    out: &mut Vec<u8>,
    clock: &Value<'_>,
    keys: &Value<'_>,
    naming: Naming<'_>,
) -> Result<Vec<Key>> {
    let mut declared = DeclaredKeys::default();
    let entries = list(clock, "clock")?;
    put_uint(out, entries.len() as u64);
    for (place, entry) in entries.iter().enumerate() {
        let [key, length, seq, offset] = parts(entry, format_args!("clock entry {place}"))?;
        let given = given_reference(place, seq, offset)?;
        let (seq, offset) = match given.filter(|given| naming.is_elsewhere(given.0)) {
            Some(elsewhere) => elsewhere,
            None => declared.reference(place, key, given, naming)?,
        };
        put_uint(out, seq);
        put_uint(out, offset);
        let name = format_args!("the length of clock entry {place}");
        put_uint(out, uint(length, name)?);
    }
    let keys = match present(keys) {
        Some(keys) => list(keys, "keys")?,
        None => &[],
    };
    for (place, key) in keys.iter().enumerate() {
        let key = fixed::<32>(key, format_args!("key {place}"))?;
        if naming.find(key).is_none() {
            declared.place(key);
        }
    }
    check_count(declared.keys.len(), "keys")?;
    Ok(declared.keys)
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
            let given = match given {
                Some((seq, offset)) => {
                    format!(" (it refers to key {offset} of message {seq}, which was not found)")
                }
                None => String::new(),
            };
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
