//! Active segments.

use seglake::checksum::{Key, hash};

use super::files::{Make, Random, struck, u32_of, uuid};

pub(crate) fn hostile() -> Vec<(&'static str, Make)> {
    vec![
        ("headers with false lengths", false_lengths),
        ("records nested in records", nested),
        ("1 MiB of random bytes", |len| struck(clean(len))),
        ("a long false length before each record", alternating),
        ("a chain of records, all checksums wrong", chain),
        ("valid records in damaged ones", embedded),
        ("short candidates, dense", dense_short),
        ("implausible candidates, dense", dense_long),
        ("every other record damaged", every_other),
    ]
}

/// Messages of mixed lengths.
pub(crate) fn clean(len: usize) -> Vec<u8> {
    let (mut random, mut bytes, mut tick) = (Random::new(3), Vec::with_capacity(len + 4096), 0);
    while bytes.len() < len {
        tick += 1 + random.below(1000);
        let value_len = random.lognormal();
        let value = random.bytes(value_len);
        push(&mut bytes, tick, &value, 0);
    }
    bytes
}

fn header(out: &mut Vec<u8>, tick: u64, value_len: usize) {
    out.extend_from_slice(&uuid(tick));
    out.extend_from_slice(b"\x0dorder.created");
    out.extend_from_slice(&u32_of(value_len));
}

/// A record whose checksum differs from the correct one by `wrong`.
fn push(out: &mut Vec<u8>, tick: u64, value: &[u8], wrong: u64) {
    let start = out.len();
    header(out, tick, value.len());
    out.extend_from_slice(value);
    let checksum = hash(&Key::DEFAULT, &out[start..]) ^ wrong;
    out.extend_from_slice(&checksum.to_be_bytes());
}

/// Adjacent headers, each of which claims the rest of the file, or much of it.
fn false_lengths(len: usize) -> Vec<u8> {
    let (mut random, mut bytes, mut tick) = (Random::new(4), Vec::with_capacity(len), 0);
    while bytes.len() + 64 < len {
        tick += 1;
        let rest = len - bytes.len() - 64;
        let claimed = match tick % 4 {
            0 => rest,
            1 => random.below(rest as u64) as usize,
            2 => (64 << 10).min(rest),
            _ => (1 << 20).min(rest),
        };
        header(&mut bytes, tick, claimed);
    }
    bytes.resize(len, 1);
    bytes
}

/// Each record's body is the next record, down to the middle of the file.
fn nested(len: usize) -> Vec<u8> {
    let (mut bytes, depth) = (Vec::with_capacity(len), len / 42);
    for level in 0..depth {
        header(&mut bytes, level as u64, 42 * (depth - level - 1));
    }
    bytes.resize(len, 1);
    bytes
}

/// Sound records, each after a header that claims the rest of the file.
fn alternating(len: usize) -> Vec<u8> {
    let (mut bytes, mut tick) = (Vec::with_capacity(len), 0);
    while bytes.len() + 256 < len {
        let rest = len - bytes.len() - 64;
        header(&mut bytes, tick + 1, rest);
        push(&mut bytes, tick + 2, b"good", 0);
        tick += 2;
    }
    bytes.resize(len, 1);
    bytes
}

fn chain(len: usize) -> Vec<u8> {
    let (mut bytes, mut tick) = (Vec::with_capacity(len + 64), 0);
    while bytes.len() < len {
        tick += 1;
        push(&mut bytes, tick, b"bad", 1);
    }
    bytes
}

/// Damaged records of 1 MiB that contain sound ones.
fn embedded(len: usize) -> Vec<u8> {
    let (mut bytes, mut tick) = (Vec::with_capacity(len + (1 << 20)), 0);
    while bytes.len() < len {
        tick += 1;
        let (outer, mut body) = (tick, Vec::new());
        while body.len() < 1 << 20 {
            tick += 1;
            push(&mut body, tick, &[2; 120], 0);
        }
        push(&mut bytes, outer, &body, 1);
    }
    bytes
}

/// Looks like a short record at as many bytes as possible.
fn dense_short(len: usize) -> Vec<u8> {
    // Version and variant at every fourth byte; a type as long as the version byte, then a length of zeros.
    let mut bytes: Vec<u8> = [0x60, 0, 0x80, 0].into_iter().cycle().take(len).collect();
    for place in (0..len).step_by(128) {
        let end = len.min(place + 16);
        bytes[place..end].fill(0);
    }
    bytes
}

/// The same, with a large length.
fn dense_long(len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = [0x60, 0, 0x80, 0].into_iter().cycle().take(len).collect();
    for place in (0..len).step_by(32) {
        let end = len.min(place + 5);
        bytes[place..end].copy_from_slice(&[0, 2, 0, 0, 0][..end - place]);
    }
    bytes
}

fn every_other(len: usize) -> Vec<u8> {
    let (mut bytes, mut tick) = (Vec::with_capacity(len + 64), 0);
    while bytes.len() < len {
        tick += 1;
        push(&mut bytes, tick, b"x", tick % 2);
    }
    bytes
}
