//! Sealed segments.

use seglake::checksum::{Key, hash};

use super::files::{Make, Random, struck, u32_of, uuid};

pub(crate) fn hostile() -> Vec<(&'static str, Make)> {
    vec![
        ("false lengths", |len| false_lengths(len, true)),
        ("messages nested in messages", |len| nested(len, true)),
        ("1 MiB of random bytes", |len| struck(clean(len))),
        ("entries that name one giant message", giant),
        ("entries that name any place", |len| anywhere(len, true)),
        ("all checksums wrong", wrong_checksums),
        ("entries wrong in turns", |len| in_turns(len, true)),
    ]
}

pub(crate) fn hostile_bare() -> Vec<(&'static str, Make)> {
    vec![
        ("false lengths", |len| false_lengths(len, false)),
        ("messages nested in messages", |len| nested(len, false)),
        ("1 MiB of random bytes", |len| struck(bare(len))),
        ("entries that name any place", |len| anywhere(len, false)),
        ("entries wrong in turns", |len| in_turns(len, false)),
    ]
}

pub(crate) fn clean(len: usize) -> Vec<u8> {
    sound(len, true)
}

pub(crate) fn bare(len: usize) -> Vec<u8> {
    sound(len, false)
}

fn sound(len: usize, trailer: bool) -> Vec<u8> {
    let (mut random, mut entries, mut data) = (Random::new(5), Vec::new(), Vec::new());
    let mut tick = 0;
    while data.len() + 32 * entries.len() < len {
        tick += 1 + random.below(1000);
        entries.push((uuid(tick), data.len() as u64));
        let value_len = random.lognormal();
        message(&mut data, &random.bytes(value_len));
    }
    assemble(&entries, &data, trailer, |at| {
        let at = at as usize;
        let value_len = u32::from_be_bytes(data[at + 14..at + 18].try_into().unwrap());
        at + 18 + value_len as usize
    })
}

fn message(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(b"\x0dorder.created");
    out.extend_from_slice(&u32_of(value.len()));
    out.extend_from_slice(value);
}

/// Index, data and trailer. Offsets are within the data. `end` returns where the message at an offset ends, and the
/// bytes to hash.
fn assemble(
    entries: &[([u8; 16], u64)],
    data: &[u8],
    trailer: bool,
    end: impl Fn(u64) -> usize,
) -> Vec<u8> {
    let data_start = 24 * (entries.len() as u64 + 1);
    let mut bytes = Vec::with_capacity(data.len() + 32 * entries.len() + 64);
    for (uuid, offset) in entries {
        bytes.extend_from_slice(uuid);
        bytes.extend_from_slice(&data_start.wrapping_add(*offset).to_be_bytes());
    }
    bytes.extend_from_slice(&[0; 24]);
    bytes.extend_from_slice(data);
    if !trailer {
        return bytes;
    }
    let mut checksums = Vec::with_capacity(8 * entries.len());
    let mut hashed = Vec::new();
    for (uuid, offset) in entries {
        let at = usize::try_from(*offset)
            .unwrap_or(usize::MAX)
            .min(data.len());
        hashed.clear();
        hashed.extend_from_slice(uuid);
        hashed.extend_from_slice(data.get(at..end(at as u64)).unwrap_or_default());
        checksums.extend_from_slice(&hash(&Key::DEFAULT, &hashed).to_be_bytes());
    }
    let mut index = bytes[..usize::try_from(data_start).unwrap()].to_vec();
    index.extend_from_slice(&checksums);
    let foot = [
        hash(&Key::DEFAULT, &[]),
        entries.len() as u64,
        hash(&Key::DEFAULT, &index),
    ];
    bytes.extend_from_slice(&checksums);
    foot.iter()
        .for_each(|field| bytes.extend_from_slice(&field.to_be_bytes()));
    bytes.extend_from_slice(b"SLKSEAL1");
    bytes
}

/// The number of entries for messages of `each` bytes in a file of `len` bytes.
fn count(len: usize, each: usize) -> usize {
    len / (32 + each)
}

/// Messages where their entries say, each of which claims much more than it has.
fn false_lengths(len: usize, trailer: bool) -> Vec<u8> {
    let (mut random, each) = (Random::new(6), 18 + 46);
    let count = count(len, each);
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for number in 0..count {
        entries.push((uuid(number as u64), data.len() as u64));
        let rest = (count - number) * each - 18;
        data.extend_from_slice(b"\x0dorder.created");
        let claimed = match number % 3 {
            0 => rest,
            1 => random.below(rest as u64) as usize,
            _ => (64 << 10).min(rest),
        };
        data.extend_from_slice(&u32_of(claimed));
        data.resize(data.len() + 46, 1);
    }
    assemble(&entries, &data, trailer, |_| 0)
}

/// Each message's body is the next message.
fn nested(len: usize, trailer: bool) -> Vec<u8> {
    let count = count(len, 18);
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for number in 0..count {
        entries.push((uuid(number as u64), data.len() as u64));
        data.extend_from_slice(b"\x0dorder.created");
        data.extend_from_slice(&u32_of(18 * (count - number - 1)));
    }
    assemble(&entries, &data, trailer, |_| 0)
}

fn giant(len: usize) -> Vec<u8> {
    let count = count(len, 96);
    let mut data = Vec::new();
    message(&mut data, &vec![1; 96 * count]);
    let entries: Vec<_> = (0..count as u64).map(|number| (uuid(number), 0)).collect();
    assemble(&entries, &data, true, |_| 0)
}

/// Entries in random order, into data full of short messages.
fn anywhere(len: usize, trailer: bool) -> Vec<u8> {
    let (mut random, count) = (Random::new(7), count(len, 18));
    let mut data = Vec::new();
    for _ in 0..count {
        message(&mut data, &[]);
    }
    let entries: Vec<_> = (0..count as u64)
        .map(|number| (uuid(number), 18 * random.below(count as u64)))
        .collect();
    assemble(&entries, &data, trailer, |_| 0)
}

fn wrong_checksums(len: usize) -> Vec<u8> {
    let count = count(len, 18);
    let mut data = Vec::new();
    for _ in 0..count {
        message(&mut data, &[]);
    }
    let entries: Vec<_> = (0..count as u64)
        .map(|number| (uuid(number), 18 * number))
        .collect();
    assemble(&entries, &data, true, |_| 0)
}

/// Entries in turns out of bounds and without a message, so that no two neighbours fail for the same cause.
fn in_turns(len: usize, trailer: bool) -> Vec<u8> {
    let count = count(len, 5);
    let data = vec![0; 5 * count];
    let entries: Vec<_> = (0..count as u64)
        .map(|number| {
            let offset = if number % 2 == 0 {
                u64::MAX >> 1
            } else {
                5 * number
            };
            (uuid(number), offset)
        })
        .collect();
    assemble(&entries, &data, trailer, |_| 0)
}
