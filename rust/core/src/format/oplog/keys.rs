//! The keys that the messages of a `draft-1.1` oplog declare.

use std::collections::HashMap;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::layout::Key;
use crate::bug::OrBug;
use crate::error::{Error, Result, name};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::text::hex_byte;

const KEY_BYTES: usize = size_of::<Key>();
/// What a message with keys takes beside them.
const OWNER_BYTES: u64 = size_of::<(u64, u64)>() as u64;

/// The keys of the messages read so far, by message: 32 bytes for each key, and 16 for each message that has any.
/// A later message may refer to any of them, so all are kept, up to a limit. The [`Carry`](crate::format::Carry) contains them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub(super) struct KeyTable {
    /// For each message with keys: its sequence number and the index of its first key. Both ascend.
    owners: Vec<(u64, u64)>,
    /// The keys, concatenated.
    #[serde(serialize_with = "to_hex")]
    keys: Vec<u8>,
}

/// A table from JSON, before it is checked.
#[derive(Deserialize)]
struct Unchecked {
    owners: Vec<(u64, u64)>,
    #[serde(deserialize_with = "from_hex")]
    keys: Vec<u8>,
}

impl TryFrom<Unchecked> for KeyTable {
    type Error = String;

    fn try_from(Unchecked { owners, keys }: Unchecked) -> std::result::Result<Self, String> {
        let count = (keys.len() / KEY_BYTES) as u64;
        let first = owners.first().map_or(count, |owner| owner.1);
        let ascends = owners.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1);
        let within = owners.last().is_none_or(|owner| owner.1 < count);
        if first != 0 || !ascends || !within || !keys.len().is_multiple_of(KEY_BYTES) {
            return Err("the keys are not those of messages in order".to_owned());
        }
        Ok(Self { owners, keys })
    }
}

/// Refuses a message, which has this sequence number, if the keys up to it have more than these bytes.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn refuse_too_many(seq: u64, bytes: u64, path: Option<&Path>) -> Result<()> {
    if bytes <= LIMITS.key_table_bytes {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{}: expected at most {} bytes for the keys that messages declare, since later ones may refer to any of them, found more at \
         message {seq}. Begin a new oplog before it has so many: one with more cannot be read",
        name(&path.map(Path::to_path_buf)),
        LIMITS.key_table_bytes
    )))
}

/// The bytes that a message takes in the table if its keys have this many.
pub(super) const fn taken_by(key_bytes: u64) -> u64 {
    match key_bytes {
        0 => 0,
        key_bytes => key_bytes.saturating_add(OWNER_BYTES),
    }
}

impl KeyTable {
    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.keys.len() as u64 + OWNER_BYTES * self.owners.len() as u64
    }

    /// How many keys it has.
    const fn len(&self) -> u64 {
        (self.keys.len() / KEY_BYTES) as u64
    }

    /// Begins the keys of the next message, which have this many bytes. [`extend`](Self::extend) adds them.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are too many.
    pub(super) fn begin(&mut self, seq: u64, bytes: u64, path: Option<&Path>) -> Result<()> {
        let all = self.bytes().saturating_add(taken_by(bytes));
        refuse_too_many(seq, all, path)?;
        self.owners.push((seq, self.len()));
        Ok(())
    }

    /// Adds keys of the last message that was begun, concatenated.
    pub(super) fn extend(&mut self, keys: &[u8]) {
        self.keys.extend_from_slice(keys);
    }

    /// The key at `offset` among those of message `seq`.
    pub(super) fn get(&self, seq: u64, offset: u64) -> Option<&Key> {
        let next = self.owners.partition_point(|owner| owner.0 <= seq);
        let (_, first) = *self
            .owners
            .get(next.checked_sub(1)?)
            .filter(|found| found.0 == seq)?;
        let end = self.owners.get(next).map_or(self.len(), |next| next.1);
        let place = first.checked_add(offset).filter(|place| *place < end)?;
        let (keys, _) = self.keys.as_chunks::<KEY_BYTES>();
        keys.get(saturating_usize(place))
    }

    /// Where each key was declared first.
    pub(super) fn places(&self) -> HashMap<Key, (u64, u64)> {
        let mut places = HashMap::new();
        let mut keys = self.keys.as_chunks::<KEY_BYTES>().0.iter();
        let ends = self.owners.iter().skip(1).map(|owner| owner.1);
        for ((seq, first), end) in self.owners.iter().zip(ends.chain([self.len()])) {
            for (offset, key) in (0..end - first).zip(keys.by_ref()) {
                places.entry(*key).or_insert((*seq, offset));
            }
        }
        places
    }
}

fn to_hex<S: Serializer>(keys: &[u8], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    let digits = keys.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let digits = digits.map(|digit| char::from_digit(digit.into(), 16));
    let text: String = digits
        .map(|digit| digit.or_bug_default("a digit"))
        .collect();
    serializer.serialize_str(&text)
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().copied().map(hex_byte).collect::<Option<_>>();
    bytes
        .filter(|_| rest.is_empty())
        .ok_or_else(|| D::Error::custom("keys are pairs of hexadecimal digits"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn add(table: &mut KeyTable, seq: u64, keys: &[u8]) {
        table.begin(seq, keys.len() as u64, None).unwrap();
        table.extend(keys);
    }

    fn table() -> KeyTable {
        let mut table = KeyTable::default();
        add(&mut table, 0, &[1; 32]);
        add(&mut table, 3, &[2; 64]);
        add(&mut table, 7, &[1; 32]);
        table
    }

    fn get(table: &KeyTable, seq: u64, offset: u64) -> Option<Key> {
        table.get(seq, offset).copied()
    }

    #[test]
    fn keys_are_found_by_message_and_offset() {
        let table = table();
        assert_eq!(get(&table, 0, 0), Some([1; 32]));
        assert_eq!(get(&table, 3, 1), Some([2; 32]));
        for (seq, offset) in [(0, 1), (1, 0), (3, 2), (7, 1), (8, 0), (7, u64::MAX)] {
            assert_eq!(get(&table, seq, offset), None, "({seq}, {offset})");
        }
        let places = table.places();
        assert_eq!(places.get(&[1; 32]), Some(&(0, 0)));
        assert_eq!(places.get(&[2; 32]), Some(&(3, 0)));
    }

    #[test]
    fn keys_beyond_the_limit_are_refused() {
        let mut table = KeyTable::default();
        add(&mut table, 0, &[1; 32]);
        let room = LIMITS.key_table_bytes - 64;
        let refused = table.begin(1, room + 1, None).unwrap_err();
        assert!(table.begin(1, room, None).is_ok());
        assert!(
            refused.to_string().contains("found more at message 1"),
            "{refused}"
        );
    }

    #[test]
    fn a_table_survives_as_json_and_a_false_one_is_refused() {
        let json = serde_json::to_string(&table()).unwrap_or_default();
        let back: KeyTable = serde_json::from_str(&json).unwrap_or_default();
        assert_eq!(get(&back, 3, 1), Some([2; 32]));
        let key = "00".repeat(32);
        for json in [
            format!(r#"{{"owners":[[0,1]],"keys":"{key}"}}"#),
            format!(r#"{{"owners":[[1,0],[1,1]],"keys":"{key}{key}"}}"#),
            format!(r#"{{"owners":[[0,0],[1,5]],"keys":"{key}"}}"#),
            format!(r#"{{"owners":[[0,0]],"keys":"{key}0"}}"#),
            format!(r#"{{"owners":[[0,0]],"keys":"{key}0g"}}"#),
            format!(r#"{{"owners":[],"keys":"{key}"}}"#),
        ] {
            assert!(serde_json::from_str::<KeyTable>(&json).is_err(), "{json}");
        }
    }
}
