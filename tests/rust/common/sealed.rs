//! Sealed segments to test with, made by plain code of their own.

use std::sync::Arc;

use proptest::prelude::*;
use seglake::checksum::{Key, hash};
use seglake::format::{Options, sealed};
use seglake::ledger::{Cause, Span};
use seglake::source::Source;

use super::{Plain, scan, uuid};

/// UUID, type and value.
pub(crate) type Record = ([u8; 16], Vec<u8>, Vec<u8>);

/// Options that add damage to the ledger and continue.
pub(crate) fn lenient() -> Options {
    Options::default().format(&sealed::FORMAT).strict(false)
}

/// The bytes of a segment.
pub(crate) fn segment(key: &Key, records: &[Record], trailer: bool) -> Vec<u8> {
    let (mut index, mut data, mut checksums) = (Vec::new(), Vec::new(), Vec::new());
    let data_start = 24 * (records.len() as u64 + 1);
    for (uuid, type_, value) in records {
        let offset = data_start + data.len() as u64;
        index.extend_from_slice(uuid);
        index.extend_from_slice(&offset.to_be_bytes());
        let start = data.len();
        data.push(u8::try_from(type_.len()).unwrap());
        data.extend_from_slice(type_);
        data.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
        data.extend_from_slice(value);
        let hashed = [uuid, &data[start..]].concat();
        checksums.extend_from_slice(&hash(key, &hashed).to_be_bytes());
    }
    index.extend_from_slice(&[0; 24]);
    if !trailer {
        return [index, data].concat();
    }
    let index_hash = hash(key, &[index.as_slice(), &checksums].concat());
    let count = records.len() as u64;
    let foot = [hash(key, &[]), count, index_hash].map(u64::to_be_bytes);
    [index, data, checksums, foot.concat(), b"SLKSEAL1".to_vec()].concat()
}

/// Ascending records.
pub(crate) fn records() -> impl Strategy<Value = Vec<Record>> {
    let message = (
        1_u64..50,
        prop::collection::vec(any::<u8>(), 0..20),
        prop::collection::vec(any::<u8>(), 0..200),
    );
    prop::collection::vec(message, 0..30).prop_map(|messages| {
        let mut tick = 1000;
        let record = |(step, type_, value)| {
            tick += step;
            (uuid(tick), type_, value)
        };
        messages.into_iter().map(record).collect()
    })
}

/// The change made to a segment.
#[derive(Clone, Debug)]
enum Damage {
    /// Bytes from here on become this one.
    Fill(prop::sample::Index, u8, usize),
    /// A bit is flipped.
    Flip(prop::sample::Index, u8),
    /// An entry gets the offset, or the UUID, of another; or they change places.
    Offset(prop::sample::Index, prop::sample::Index),
    Uuid(prop::sample::Index, prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    /// An entry's offset moves.
    Shift(prop::sample::Index, i8),
    /// The file ends here.
    Cut(prop::sample::Index),
    /// Bytes are put in.
    Insert(prop::sample::Index, Vec<u8>),
}

impl Damage {
    fn apply(self, bytes: &mut Vec<u8>, entries: usize) {
        if bytes.is_empty() {
            return;
        }
        let entry = |index: prop::sample::Index| {
            (entries > 0)
                .then(|| 24 * index.index(entries))
                .filter(|at| at + 24 <= bytes.len())
        };
        match self {
            Self::Fill(at, byte, len) => {
                let start = at.index(bytes.len());
                let end = bytes.len().min(start + len);
                bytes[start..end].fill(byte);
            }
            Self::Flip(at, bit) => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << (bit % 8);
            }
            Self::Offset(one, other) => {
                if let (Some(one), Some(other)) = (entry(one), entry(other)) {
                    bytes.copy_within(other + 16..other + 24, one + 16);
                }
            }
            Self::Uuid(one, other) => {
                if let (Some(one), Some(other)) = (entry(one), entry(other)) {
                    bytes.copy_within(other..other + 16, one);
                }
            }
            Self::Swap(one, other) => {
                if let (Some(one), Some(other)) = (entry(one), entry(other)) {
                    for byte in 0..24 {
                        bytes.swap(one + byte, other + byte);
                    }
                }
            }
            Self::Shift(at, by) => {
                if let Some(at) = entry(at) {
                    let place = &mut bytes[at + 16..at + 24];
                    let offset = u64::from_be_bytes(place.try_into().unwrap());
                    place.copy_from_slice(&offset.wrapping_add_signed(by.into()).to_be_bytes());
                }
            }
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Self::Insert(at, new) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, new);
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || any::<prop::sample::Index>();
    prop_oneof![
        2 => (at(), any::<u8>(), 1_usize..40).prop_map(|(at, byte, len)| Damage::Fill(at, byte, len)),
        3 => (at(), any::<u8>()).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => (at(), at()).prop_map(|(one, other)| Damage::Offset(one, other)),
        1 => (at(), at()).prop_map(|(one, other)| Damage::Uuid(one, other)),
        1 => (at(), at()).prop_map(|(one, other)| Damage::Swap(one, other)),
        1 => (at(), any::<i8>()).prop_map(|(at, by)| Damage::Shift(at, by)),
        1 => at().prop_map(Damage::Cut),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..30)).prop_map(|(at, new)| Damage::Insert(at, new)),
    ]
}

/// Records, and their segment damaged in some places.
pub(crate) fn damaged() -> impl Strategy<Value = (Vec<Record>, Vec<u8>)> {
    let damages = prop::collection::vec(damage(), 0..5);
    (records(), any::<bool>(), damages).prop_map(|(records, trailer, damages)| {
        let mut bytes = segment(&Key::DEFAULT, &records, trailer);
        for damage in damages {
            damage.apply(&mut bytes, records.len());
        }
        (records, bytes)
    })
}

/// A segment of about `len` bytes, of messages of many sizes.
pub(crate) fn varied(len: usize, trailer: bool) -> Vec<u8> {
    let (mut records, mut size, mut tick) = (Vec::new(), 24, 0x1000);
    while size < len {
        tick += 1;
        let value: Vec<u8> = (0..tick * 37 % 400)
            .map(|byte| u8::try_from(byte % 251).unwrap())
            .collect();
        size += 24 + 18 + value.len() + if trailer { 8 } else { 0 };
        records.push((uuid(tick * 1000), b"order.created".to_vec(), value));
    }
    segment(&Key::DEFAULT, &records, trailer)
}

/// A segment whose first message has the three others, of `len` bytes each, inside it: which no writer makes.
pub(crate) fn overlapping(len: usize) -> Vec<u8> {
    let message = |body: &[u8]| {
        let len = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[0], len.as_slice(), body].concat()
    };
    let inner = [1, 2, 3].map(|byte| message(&vec![byte; len]));
    let outer = message(&inner.concat());
    let (first, step) = (24 * 5_u64, inner[0].len() as u64);
    let offsets = [0, 5, 5 + step, 5 + 2 * step].map(|offset| first + offset);
    let messages = [&outer, &inner[0], &inner[1], &inner[2]];
    let (mut index, mut checksums) = (Vec::new(), Vec::new());
    for (number, (offset, message)) in (1..).zip(offsets.iter().zip(messages)) {
        let uuid = uuid(number * 100);
        index.extend_from_slice(&uuid);
        index.extend_from_slice(&offset.to_be_bytes());
        let checksum = hash(&Key::DEFAULT, &[uuid.as_slice(), message].concat());
        checksums.extend_from_slice(&checksum.to_be_bytes());
    }
    index.extend_from_slice(&[0; 24]);
    let index_hash = hash(&Key::DEFAULT, &[index.as_slice(), &checksums].concat());
    let key_check = hash(&Key::DEFAULT, &[]);
    let foot = [key_check, 4, index_hash].map(u64::to_be_bytes).concat();
    [index, outer, checksums, foot, b"SLKSEAL1".to_vec()].concat()
}

pub(crate) fn contents(records: &[Plain]) -> Vec<Record> {
    let content = |record: &Plain| (record.uuid, record.type_.clone(), record.value.clone());
    records.iter().map(content).collect()
}

impl Plain {
    /// Where the record ends in its file.
    pub(crate) fn end(&self) -> usize {
        usize::try_from(self.position).unwrap() + 5 + self.type_.len() + self.value.len()
    }
}

/// Where the first damage is, and its cause.
pub(crate) fn first_damage(ledger: &[Span]) -> Option<(u64, Cause)> {
    ledger
        .iter()
        .find_map(|span| span.cause.map(|cause| (span.start, cause)))
}

/// All records, and the ledger in file order. A walk emits the ranges of the front last.
pub(crate) fn scan_sorted(
    source: Arc<dyn Source>,
    options: &Options,
) -> seglake::Result<(Vec<Plain>, Vec<Span>)> {
    let (records, mut ledger) = scan(source, options)?;
    ledger.sort_by_key(|span| (span.start, span.end));
    Ok((records, ledger))
}
