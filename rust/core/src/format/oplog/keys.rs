//! The keys that the messages of a `draft-1.1` oplog declare.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::late_keys::{LateKeys, OWNER_BYTES};
use super::layout::compact::Key;
use crate::bug::OrBug;
use crate::error::Result;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::text::hex_byte;

const KEY_BYTES: usize = size_of::<Key>();

/// The keys of the messages read so far, by message: 32 bytes for each key, and 16 for each message that has any.
/// A later message may refer to any of them, so all are kept: the first in memory, the rest in temporary files.
/// The [`Carry`](crate::format::Carry) contains them all.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "Unchecked")]
pub(super) struct KeyTable {
    /// For each message with keys: its sequence number and the index of its first key. Both ascend.
    owners: Vec<(u64, u64)>,
    /// The keys, concatenated.
    keys: Vec<u8>,
    /// The keys that no longer fit in memory.
    late: Option<LateKeys>,
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
        let mut table = Self::default();
        let ends = owners.iter().skip(1).map(|owner| owner.1).chain([count]);
        for ((seq, start), end) in owners.iter().zip(ends) {
            let bytes = |place: u64| saturating_usize(place) * KEY_BYTES;
            let own = keys.get(bytes(*start)..bytes(end));
            let added = own.or_bug("keys in order").and_then(|own| {
                table.begin(*seq, own.len() as u64)?;
                table.extend(own)
            });
            added.map_err(|error| error.to_string())?;
        }
        Ok(table)
    }
}

impl KeyTable {
    /// How many keys are in memory.
    const fn early(&self) -> u64 {
        (self.keys.len() / KEY_BYTES) as u64
    }

    /// Begins the keys of the next message, which have this many bytes. [`extend`](Self::extend) adds them.
    pub(super) fn begin(&mut self, seq: u64, bytes: u64) -> Result<()> {
        let held = self.keys.len() + OWNER_BYTES * self.owners.len();
        if self.late.is_none() && bytes.saturating_add(held as u64) > LIMITS.key_table_bytes {
            self.late = Some(LateKeys::new(self.early()));
        }
        match &mut self.late {
            Some(late) => late.begin(seq),
            None => {
                self.owners.push((seq, self.early()));
                Ok(())
            }
        }
    }

    /// Adds keys of the last message that was begun, concatenated.
    pub(super) fn extend(&mut self, keys: &[u8]) -> Result<()> {
        match &mut self.late {
            Some(late) => late.extend(keys),
            None => {
                self.keys.extend_from_slice(keys);
                Ok(())
            }
        }
    }

    /// Whether all keys are in memory.
    pub(super) const fn is_in_memory(&self) -> bool {
        self.late.is_none()
    }

    /// The index of the key at `offset` among those of message `seq`.
    fn place(&self, seq: u64, offset: u64) -> Result<Option<u64>> {
        let places = match (self.early_places(seq), &self.late) {
            (None, Some(late)) => late.find(seq)?,
            (early, _) => early,
        };
        Ok(places.and_then(|places| place_in(places, offset)))
    }

    /// The indices of a message's keys that are in memory: the first, and the end.
    fn early_places(&self, seq: u64) -> Option<(u64, u64)> {
        let next = self.owners.partition_point(|owner| owner.0 <= seq);
        let (_, first) = *self
            .owners
            .get(next.checked_sub(1)?)
            .filter(|found| found.0 == seq)?;
        let end = self.owners.get(next).map_or(self.early(), |next| next.1);
        Some((first, end))
    }

    /// Whether message `seq` has a key at `offset`.
    pub(super) fn has(&self, seq: u64, offset: u64) -> Result<bool> {
        Ok(self.place(seq, offset)?.is_some())
    }

    /// The key at `offset` among those of message `seq`.
    pub(super) fn get(&self, seq: u64, offset: u64) -> Result<Option<Key>> {
        match (self.place(seq, offset)?, &self.late) {
            (Some(place), Some(late)) if place >= self.early() => late.key(place),
            (Some(place), _) => Ok(self.early_key(place).copied()),
            (None, _) => Ok(None),
        }
    }

    /// The key at `offset` among those of message `seq`, if all keys are in memory.
    pub(super) fn get_early(&self, seq: u64, offset: u64) -> Option<&Key> {
        self.early_key(place_in(self.early_places(seq)?, offset)?)
    }

    fn early_key(&self, place: u64) -> Option<&Key> {
        let (keys, _) = self.keys.as_chunks::<KEY_BYTES>();
        keys.get(saturating_usize(place))
    }

    /// Where each key was declared first. Takes memory for all keys.
    pub(super) fn places(&self) -> Result<HashMap<Key, (u64, u64)>> {
        let mut places = HashMap::new();
        let Whole { owners, keys } = self.whole()?;
        let mut owners = owners.iter().copied().peekable();
        let mut owner = (0, 0);
        for (place, key) in (0..).zip(keys.as_chunks::<KEY_BYTES>().0) {
            while let Some(next) = owners.next_if(|next| next.1 <= place) {
                owner = next;
            }
            places.entry(*key).or_insert((owner.0, place - owner.1));
        }
        Ok(places)
    }

    /// The whole table, in memory.
    fn whole(&self) -> Result<Whole<'_>> {
        let mut whole = Whole {
            owners: Cow::Borrowed(&self.owners),
            keys: Cow::Borrowed(&self.keys),
        };
        if let Some(late) = &self.late {
            late.append_to(whole.owners.to_mut(), whole.keys.to_mut())?;
        }
        Ok(whole)
    }
}

/// The index of the key at `offset` among these.
fn place_in((first, end): (u64, u64), offset: u64) -> Option<u64> {
    first.checked_add(offset).filter(|place| *place < end)
}

/// A table in memory, to be serialised.
#[derive(Serialize)]
struct Whole<'a> {
    owners: Cow<'a, [(u64, u64)]>,
    #[serde(serialize_with = "to_hex")]
    keys: Cow<'a, [u8]>,
}

impl Serialize for KeyTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.whole()
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

#[allow(clippy::ptr_arg, reason = "serde gives the field as it is")]
fn to_hex<S: Serializer>(
    bytes: &Cow<'_, [u8]>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let digit = |nibble: u8| match nibble {
        0..10 => char::from(b'0' + nibble),
        _ => char::from(b'a' - 10 + nibble),
    };
    let text: String = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)])
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
mod tests {
    use super::*;

    fn add(table: &mut KeyTable, seq: u64, keys: &[u8]) {
        let added = table.begin(seq, keys.len() as u64);
        assert!(added.and_then(|()| table.extend(keys)).is_ok());
    }

    fn table() -> KeyTable {
        let mut table = KeyTable::default();
        add(&mut table, 0, &[1; 32]);
        add(&mut table, 3, &[2; 64]);
        add(&mut table, 7, &[1; 32]);
        table
    }

    fn get(table: &KeyTable, seq: u64, offset: u64) -> Option<Key> {
        let key = table.get(seq, offset).ok().flatten();
        assert_eq!(table.has(seq, offset).ok(), Some(key.is_some()));
        key
    }

    #[test]
    fn keys_are_found_by_message_and_offset() {
        let table = table();
        assert_eq!(get(&table, 0, 0), Some([1; 32]));
        assert_eq!(get(&table, 3, 1), Some([2; 32]));
        for (seq, offset) in [(0, 1), (1, 0), (3, 2), (7, 1), (8, 0), (7, u64::MAX)] {
            assert_eq!(get(&table, seq, offset), None, "({seq}, {offset})");
        }
        let places = table.places().unwrap_or_default();
        assert_eq!(places.get(&[1; 32]), Some(&(0, 0)));
        assert_eq!(places.get(&[2; 32]), Some(&(3, 0)));
    }

    #[test]
    fn keys_that_find_no_room_in_memory_are_found_all_the_same() {
        let mut table = KeyTable::default();
        let key = |seq: u64, offset: u64| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&(seq * 8 + offset).to_be_bytes());
            key
        };
        let count = |seq: u64| seq % 3 + 1;
        let seqs = || (0..600_000_u64).step_by(2);
        for seq in seqs() {
            let keys: Vec<_> = (0..count(seq))
                .flat_map(|offset| key(seq, offset))
                .collect();
            add(&mut table, seq, &keys);
        }
        assert!(!table.is_in_memory());
        assert!(table.keys.len() as u64 <= LIMITS.key_table_bytes);
        for seq in seqs().step_by(97).chain(599_900..600_010) {
            for offset in 0..4 {
                let is_there = seq % 2 == 0 && seq < 600_000 && offset < count(seq);
                let expected = is_there.then(|| key(seq, offset));
                assert_eq!(get(&table, seq, offset), expected, "({seq}, {offset})");
            }
        }
        let json = serde_json::to_string(&table).unwrap_or_default();
        let back: KeyTable = serde_json::from_str(&json).unwrap_or_default();
        assert_eq!(get(&back, 599_998, 0), Some(key(599_998, 0)));
        let places = back.places().unwrap_or_default();
        assert_eq!(places.get(&key(599_996, 0)), Some(&(599_996, 0)));
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
