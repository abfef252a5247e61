//! The keys that the messages of a `draft-1.1` oplog declare.

use std::collections::HashMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key.
pub(super) type Key = [u8; 32];

/// The keys of the messages read so far, by message: 32 bytes for each, and 16 for each message that has any. It grows with
/// the keys that are in the file, and so does the [`Carry`](crate::format::Carry) that holds it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub(super) struct KeyTable {
    /// For each message with keys its sequence number and the place of its first key; both ascend.
    owners: Vec<(u64, u64)>,
    /// The keys end to end.
    #[serde(serialize_with = "to_hex")]
    keys: Vec<u8>,
}

/// A table as somebody kept it.
#[derive(Deserialize)]
struct Unchecked {
    owners: Vec<(u64, u64)>,
    #[serde(deserialize_with = "from_hex")]
    keys: Vec<u8>,
}

impl TryFrom<Unchecked> for KeyTable {
    type Error = &'static str;

    fn try_from(Unchecked { owners, keys }: Unchecked) -> Result<Self, Self::Error> {
        let table = Self { owners, keys };
        let count = table.len();
        let first = table.owners.first().map_or(count, |owner| owner.1);
        let ascends = table.owners.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1);
        let within = table.owners.last().is_none_or(|owner| owner.1 < count);
        if first == 0 && ascends && within && table.keys.len().is_multiple_of(32) {
            Ok(table)
        } else {
            Err("the keys are not those of messages in order")
        }
    }
}

impl KeyTable {
    fn len(&self) -> u64 {
        (self.keys.len() / 32) as u64
    }

    /// Begins the keys of the next message, if it has any. [`extend`](Self::extend) adds them.
    pub(super) fn begin(&mut self, seq: u64) {
        self.owners.push((seq, self.len()));
    }

    /// Adds keys of the message begun last, end to end.
    pub(super) fn extend(&mut self, keys: &[u8]) {
        self.keys.extend_from_slice(keys);
    }

    /// The key at `offset` among those of message `seq`.
    pub(super) fn get(&self, seq: u64, offset: u64) -> Option<&Key> {
        let owner = self
            .owners
            .binary_search_by_key(&seq, |owner| owner.0)
            .ok()?;
        let first = self.owners.get(owner)?.1;
        let end = self
            .owners
            .get(owner + 1)
            .map_or_else(|| self.len(), |next| next.1);
        let place = first.checked_add(offset).filter(|place| *place < end)?;
        let start = usize::try_from(place).ok()?.checked_mul(32)?;
        self.keys.get(start..)?.first_chunk()
    }

    /// Where each key was declared first.
    pub(super) fn places(&self) -> HashMap<Key, (u64, u64)> {
        let mut places = HashMap::new();
        let (keys, _) = self.keys.as_chunks::<32>();
        let mut owners = self.owners.iter().copied().peekable();
        let mut owner = (0, 0);
        for (place, key) in (0..).zip(keys) {
            while let Some(next) = owners.next_if(|next| next.1 <= place) {
                owner = next;
            }
            places.entry(*key).or_insert((owner.0, place - owner.1));
        }
        places
    }
}

fn to_hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
    let text: String = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)])
        .collect();
    serializer.serialize_str(&text)
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    let bytes = pairs.iter().map(byte).collect::<Option<_>>();
    bytes
        .filter(|_| rest.is_empty())
        .ok_or_else(|| D::Error::custom("keys are pairs of hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> KeyTable {
        let mut table = KeyTable::default();
        table.begin(0);
        table.extend(&[1; 32]);
        table.begin(3);
        table.extend(&[2; 64]);
        table.begin(7);
        table.extend(&[1; 32]);
        table
    }

    #[test]
    fn keys_are_found_by_message_and_offset() {
        let table = table();
        assert_eq!(table.get(0, 0), Some(&[1; 32]));
        assert_eq!(table.get(3, 1), Some(&[2; 32]));
        for (seq, offset) in [(0, 1), (1, 0), (3, 2), (7, 1), (8, 0), (7, u64::MAX)] {
            assert_eq!(table.get(seq, offset), None, "({seq}, {offset})");
        }
        let places = table.places();
        assert_eq!(places.get(&[1; 32]), Some(&(0, 0)));
        assert_eq!(places.get(&[2; 32]), Some(&(3, 0)));
    }

    #[test]
    fn a_table_survives_as_json_and_a_false_one_is_refused() {
        let json = serde_json::to_string(&table()).unwrap_or_default();
        let back: KeyTable = serde_json::from_str(&json).unwrap_or_default();
        assert_eq!(back.get(3, 1), Some(&[2; 32]));
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
