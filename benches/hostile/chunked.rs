//! Chunked segments.

use super::files::{Make, Random, struck};

pub(crate) fn hostile() -> Vec<(&'static str, Make)> {
    vec![
        ("headers with false lengths", false_lengths),
        ("chunks nested in chunks", nested),
        ("1 MiB of random bytes", |len| struck(clean(len))),
        ("right headers, wrong payloads", wrong_payloads),
        ("right headers, payloads that begin well", |len| {
            begun(len, true)
        }),
        ("damaged headers, payloads that begin well", |len| {
            begun(len, false)
        }),
        ("damaged headers before one large frame", one_large),
        ("frames that fail at their end", fail_at_end),
        ("every other header damaged", every_other),
    ]
}

/// Chunks of about 256 KiB of records of mixed lengths.
pub(crate) fn clean(len: usize) -> Vec<u8> {
    let (mut random, mut bytes, mut next) =
        (Random::new(13), Vec::with_capacity(len + (1 << 19)), 0);
    while bytes.len() < len {
        let (content, records) = content(&mut random, next, 256 << 10);
        push(&mut bytes, next, records, &frame(&content, 3), 0);
        next += i64::from(records);
    }
    bytes
}

/// Records of text that compresses to about a third.
fn content(random: &mut Random, first: i64, len: usize) -> (Vec<u8>, u32) {
    let (mut content, mut records) = (Vec::new(), 0);
    while content.len() < len {
        content.extend_from_slice(&(first + i64::from(records)).to_be_bytes());
        let text: String = (0..random.lognormal() / 6 + 1)
            .map(|_| ["order ", "created", " total", "=12.30", " by #7"][random.below(5) as usize])
            .collect();
        content.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
        content.extend_from_slice(text.as_bytes());
        records += 1;
    }
    (content, records)
}

fn frame(content: &[u8], level: i32) -> Vec<u8> {
    let mut encoder = zstd::bulk::Compressor::new(level).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.compress(content).unwrap()
}

/// Compresses at a level that finds nothing to compress.
fn stored(content: &[u8]) -> Vec<u8> {
    frame(content, *zstd::compression_level_range().start())
}

fn header(out: &mut Vec<u8>, length: usize, start: i64, records: u32, wrong: u32) {
    let at = out.len();
    out.push(0);
    out.extend_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
    out.extend_from_slice(&start.to_be_bytes());
    out.extend_from_slice(&records.to_be_bytes());
    let crc = crc32fast::hash(&out[at..]) ^ wrong;
    out.extend_from_slice(&crc.to_be_bytes());
}

fn push(out: &mut Vec<u8>, start: i64, records: u32, payload: &[u8], wrong: u32) {
    header(out, payload.len(), start, records, wrong);
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(0x80), 0);
}

fn false_lengths(len: usize) -> Vec<u8> {
    let (mut bytes, mut random, mut start) = (Vec::with_capacity(len), Random::new(14), 0);
    while bytes.len() + 0x100 < len {
        let rest = len - bytes.len() - 0x80;
        let wrong = u32::from(start % 8 > 0);
        let claimed = match start % 8 {
            0 => 0x300,
            1 => random.below(rest as u64) as usize,
            _ => rest.min(64 << 10),
        };
        header(&mut bytes, claimed, start, 1, wrong);
        bytes.resize(bytes.len().next_multiple_of(0x80), 0x55);
        start += 1;
    }
    bytes.resize(len, 0x55);
    bytes
}

/// Sound chunks, stored unchanged in the payloads of chunks with damaged headers.
pub(crate) fn nested(len: usize) -> Vec<u8> {
    let (mut random, mut bytes, mut next) =
        (Random::new(15), Vec::with_capacity(len + (1 << 20)), 0);
    while bytes.len() < len {
        let mut inner = vec![0; 0x80 - 21 - 12];
        while inner.len() < 64 << 10 {
            let (content, records) = content(&mut random, next, 1 << 10);
            push(&mut inner, next, records, &frame(&content, 3), 0);
            next += i64::from(records);
        }
        push(&mut bytes, next, 1, &stored(&inner), 1);
    }
    bytes
}

fn wrong_payloads(len: usize) -> Vec<u8> {
    let (mut bytes, mut start) = (Vec::with_capacity(len + 0x80), 0);
    while bytes.len() < len {
        push(&mut bytes, start, 1, &[0x55; 100], 0);
        start += 1;
    }
    bytes
}

/// Chunks of 0x80 bytes, each with a frame that begins correctly; damaged ones claim 1 MiB.
fn begun(len: usize, right: bool) -> Vec<u8> {
    let good = frame(&[7; 12 + 1000], 3);
    let (mut bytes, mut start) = (Vec::with_capacity(len + (2 << 20)), 0);
    let mut payload = good[..good.len().min(12)].to_vec();
    payload.resize(100, 0xee);
    while bytes.len() < len {
        let at = bytes.len();
        if right {
            push(&mut bytes, start, 1, &payload, 0);
        } else {
            let wrong = start % 2 == 0;
            let claimed = if wrong { 1 << 20 } else { payload.len() };
            header(&mut bytes, claimed, start, 1, u32::from(wrong));
            bytes.extend_from_slice(&payload);
            bytes.resize(at + 0x80, 0);
        }
        start += 1;
    }
    bytes.resize(len + (1 << 20), 0);
    bytes
}

/// Raw blocks of one frame without an end, each after a damaged header and before a sound one.
fn one_large(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + (1 << 20));
    let mut start = 0;
    while bytes.len() + (1 << 20) < len {
        let claimed = len - bytes.len() - 0x80;
        header(&mut bytes, claimed, start, 1, 1);
        // Content checksum, window of 1 MiB; then raw blocks of 100 bytes without a last one.
        bytes.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x50]);
        while bytes.len() % (64 << 10) < (63 << 10) {
            bytes.extend_from_slice(&(100_u32 << 3).to_le_bytes()[..3]);
            bytes.resize(bytes.len() + 100, 0x33);
        }
        bytes.resize(bytes.len().next_multiple_of(0x80), 0);
        header(&mut bytes, 10, start + 1, 1, 0);
        bytes.resize(bytes.len().next_multiple_of(64 << 10), 0);
        start += 2;
    }
    bytes
}

/// Large frames with wrong checksums.
fn fail_at_end(len: usize) -> Vec<u8> {
    let (mut random, mut bytes) = (Random::new(16), Vec::with_capacity(len + (1 << 21)));
    let (content, records) = content(&mut random, 0, 4 << 20);
    let mut payload = frame(&content, 3);
    let last = payload.len() - 1;
    payload[last] ^= 1;
    let mut start = 0;
    while bytes.len() < len {
        push(&mut bytes, start, records, &payload, 0);
        start += i64::from(records);
    }
    bytes
}

fn every_other(len: usize) -> Vec<u8> {
    let (mut bytes, mut start) = (Vec::with_capacity(len + 0x80), 0);
    let payload = frame(&[0; 12], 3);
    while bytes.len() < len {
        push(&mut bytes, start, 1, &payload, u32::from(start % 2 == 0));
        start += 1;
    }
    bytes
}
