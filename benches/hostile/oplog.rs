//! Oplogs of the dialects `draft` and `draft-1.1`.

use super::files::{Make, Random, struck};

pub(crate) fn hostile() -> Vec<(&'static str, Make)> {
    vec![
        ("false lengths", false_lengths),
        ("messages nested in messages", nested),
        ("1 MiB of random bytes", |len| struck(clean(len))),
        ("every other message damaged", every_other),
        ("messages of one byte", |len| vec![1; len]),
        ("large messages, every other damaged", large_every_other),
    ]
}

pub(crate) fn hostile_11() -> Vec<(&'static str, Make)> {
    vec![
        ("1 MiB of random bytes", |len| struck(clean_11(len))),
        ("many keys, references to any of them", scattered),
        ("references alone", references_alone),
    ]
}

fn uint(out: &mut Vec<u8>, value: usize) {
    if value <= 0xfc {
        out.push(value as u8);
    } else if value <= 0xffff {
        out.push(0xfd);
        out.extend_from_slice(&(value as u16).to_le_bytes());
    } else {
        out.push(0xfe);
        out.extend_from_slice(&(value as u32).to_le_bytes());
    }
}

/// A buffer.
fn push(out: &mut Vec<u8>, body: &[u8]) {
    uint(out, body.len());
    out.extend_from_slice(body);
}

/// A message of `draft` with one clock entry.
fn draft(value: &[u8]) -> Vec<u8> {
    let mut body = vec![1, 1, 1];
    body.extend_from_slice(&[7; 32]);
    body.extend_from_slice(&[5, 1, 1]);
    push(&mut body, value);
    body
}

/// A message of `draft-1.1`.
fn draft_11(references: &[(usize, usize)], value: &[u8], keys: &[u8]) -> Vec<u8> {
    let mut body = vec![1, 1];
    uint(&mut body, references.len());
    for (seq, offset) in references {
        uint(&mut body, *seq);
        uint(&mut body, *offset);
        body.push(1);
    }
    body.extend_from_slice(&[1, 1]);
    push(&mut body, value);
    uint(&mut body, keys.len() / 32);
    body.extend_from_slice(keys);
    body
}

pub(crate) fn clean(len: usize) -> Vec<u8> {
    let (mut random, mut bytes) = (Random::new(17), Vec::with_capacity(len + 4096));
    while bytes.len() < len {
        let value_len = random.lognormal();
        let value = random.bytes(value_len);
        push(&mut bytes, &draft(&value));
    }
    bytes
}

/// Ten writers, whose keys the first messages declare.
pub(crate) fn clean_11(len: usize) -> Vec<u8> {
    let (mut random, mut bytes) = (Random::new(18), Vec::with_capacity(len + 4096));
    let mut seq = 0;
    while bytes.len() < len {
        let keys = if seq < 10 {
            random.bytes(32)
        } else {
            Vec::new()
        };
        let known = seq.min(9) + 1;
        let references: Vec<_> = (0..known.min(3))
            .map(|_| (random.below(known as u64) as usize, 0))
            .collect();
        let value_len = random.lognormal();
        let value = random.bytes(value_len);
        push(&mut bytes, &draft_11(&references, &value, &keys));
        seq += 1;
    }
    bytes
}

/// Messages whose value claims more bytes than the message has.
fn false_lengths(len: usize) -> Vec<u8> {
    let mut body = draft(&[0; 40]);
    let at = body.len() - 41;
    body[at] = 0xfc;
    let mut bytes = Vec::with_capacity(len + 128);
    while bytes.len() < len {
        push(&mut bytes, &body);
        push(&mut bytes, &draft(b""));
    }
    bytes
}

/// Each message's value is the next message's buffer. All lengths are correct, and the outermost message does not
/// decode.
fn nested(len: usize) -> Vec<u8> {
    let depth = len / 16;
    let mut bytes = Vec::with_capacity(len + 16);
    for level in 0..depth {
        let left = 16 * (depth - level - 1);
        bytes.push(0xfe);
        bytes.extend_from_slice(&u32::try_from(left + 11).unwrap().to_le_bytes());
        bytes.extend_from_slice(&[if level == 0 { 0xff } else { 1 }, 1, 0, 1, 1, 0xfe]);
        bytes.extend_from_slice(&u32::try_from(left).unwrap().to_le_bytes());
        bytes.push(0);
    }
    bytes
}

fn every_other(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 16);
    while bytes.len() < len {
        bytes.extend_from_slice(&[1, 1]);
        push(&mut bytes, &[1, 1, 0, 1, 1, 0]);
    }
    bytes
}

fn large_every_other(len: usize) -> Vec<u8> {
    let good = draft(&vec![3; 10 << 20]);
    let mut bad = good.clone();
    bad.push(0);
    let mut bytes = Vec::with_capacity(len + (30 << 20));
    while bytes.len() < len {
        push(&mut bytes, &bad);
        push(&mut bytes, &good);
    }
    bytes
}

fn keys(len: usize) -> Vec<u8> {
    let (mut random, mut bytes) = (Random::new(19), Vec::with_capacity(len + 64));
    while bytes.len() < len {
        push(&mut bytes, &draft_11(&[], b"", &random.bytes(32)));
    }
    bytes
}

/// Messages that declare a key each, nearly as many as a reader keeps. The others refer to them in random order.
fn scattered(len: usize) -> Vec<u8> {
    let mut random = Random::new(20);
    let mut bytes = keys((len / 2).min(12 << 20));
    let owners = bytes.len() / 40;
    while bytes.len() < len {
        let references: Vec<_> = (0..100)
            .map(|_| (random.below(owners as u64) as usize, 0))
            .collect();
        push(&mut bytes, &draft_11(&references, b"", b""));
    }
    bytes
}

/// The longest possible clocks, with references to one key.
fn references_alone(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + (4 << 20));
    push(&mut bytes, &draft_11(&[(0, 0)], b"", &[7; 32]));
    let message = draft_11(&vec![(0, 0); 0x10_0000.min(len / 8)], b"", b"");
    while bytes.len() < len {
        push(&mut bytes, &message);
    }
    bytes
}
