//! `flags u8 ‖ length u32 ‖ start offset i64 ‖ record length u32 ‖ head crc i32 ‖ payload ‖ padding`, and the index's
//! `offset i64 ‖ file offset i64 ‖ checksum u32`

use std::io::Read;

use super::{Change, Draw, change_bytes, off, put, uint, uint_usize};

const ALIGNMENT: usize = 0x80;
const HEADER: usize = 21;
const ITEM: usize = 20;
/// Larger contents are not changed.
const CONTENT: u64 = 64 << 10;

/// Where chunks begin, by the lengths of earlier ones, and at the next aligned place if a length leads nowhere.
fn chunks(bytes: &[u8]) -> Vec<usize> {
    let (mut chunks, mut at) = (Vec::new(), 0);
    while at + HEADER <= bytes.len() {
        if bytes[at..at + HEADER].iter().any(|byte| *byte != 0) {
            chunks.push(at);
        }
        let end = uint_usize::<4>(bytes, at + 1).map(|len| at + HEADER + len);
        let end = end.filter(|end| *end <= bytes.len()).unwrap_or(at + 1);
        at = end.next_multiple_of(ALIGNMENT);
    }
    chunks
}

/// Changes a number of a header, or the content of a payload, which is then compressed again.
pub(super) fn edit(change: Change, bytes: &mut Vec<u8>, max: usize, draw: &mut Draw) {
    let chunks = chunks(bytes);
    if chunks.is_empty() {
        return;
    }
    let at = *draw.of_these(&chunks);
    match draw.below(6) {
        0 => bytes[at] = 1 << draw.below(9).min(7),
        1 => {
            let length = uint::<4>(bytes, at + 1).unwrap_or_default();
            put::<4>(bytes, at + 1, off(length, draw));
        }
        2 => {
            let start = uint::<8>(bytes, at + 5).unwrap_or_default();
            put::<8>(bytes, at + 5, off(start, draw));
        }
        3 => {
            let records = uint::<4>(bytes, at + 13).unwrap_or_default();
            put::<4>(bytes, at + 13, off(records, draw));
        }
        _ => edit_content(change, bytes, at, max, draw),
    }
}

fn edit_content(change: Change, bytes: &mut Vec<u8>, at: usize, max: usize, draw: &mut Draw) {
    let start = at + HEADER;
    let end = start + uint_usize::<4>(bytes, at + 1).unwrap_or_default();
    let Some(payload) = bytes.get(start..end) else {
        return;
    };
    let mut content = Vec::new();
    let decoder = zstd::stream::Decoder::new(payload);
    if decoder.is_ok_and(|decoder| decoder.take(CONTENT).read_to_end(&mut content).is_err()) {
        return;
    }
    change_bytes(change, &mut content, max, draw);
    let records = records(&content);
    let Some(frame) = frame(&content, draw) else {
        return;
    };
    put::<4>(bytes, at + 1, frame.len() as u64);
    if draw.below(4) > 0 {
        put::<4>(bytes, at + 13, records);
    }
    let padded = (start + frame.len()).next_multiple_of(ALIGNMENT) - start;
    let until = end.next_multiple_of(ALIGNMENT).min(bytes.len());
    let mut frame = frame;
    frame.resize(padded, 0);
    bytes.splice(start..until, frame);
}

/// How many records begin in a content.
fn records(content: &[u8]) -> u64 {
    let (mut records, mut at) = (0, 0);
    while let Some(len) = uint_usize::<4>(content, at + 8) {
        records += 1;
        at += 12 + len;
    }
    records
}

/// A frame, usually with a checksum, at a level that compresses or one that does not, with or without its content's
/// size.
fn frame(content: &[u8], draw: &mut Draw) -> Option<Vec<u8>> {
    let level = if draw.below(2) == 0 {
        3
    } else {
        *zstd::compression_level_range().start()
    };
    let mut encoder = zstd::bulk::Compressor::new(level).ok()?;
    encoder.include_checksum(draw.below(8) > 0).ok()?;
    encoder.include_contentsize(draw.below(4) > 0).ok()?;
    encoder.compress(content).ok()
}

/// Makes the headers' checksums match.
pub(super) fn mend(bytes: &mut [u8]) {
    for at in chunks(bytes) {
        let crc = crc32fast::hash(&bytes[at..at + 17]);
        put::<4>(bytes, at + 17, crc.into());
    }
}

/// Changes, doubles, swaps or removes an item.
pub(super) fn edit_index(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let items = bytes.len() / ITEM;
    if items == 0 {
        return;
    }
    let (one, other) = (ITEM * draw.below(items), ITEM * draw.below(items));
    let item = bytes[one..one + ITEM].to_vec();
    match draw.below(5) {
        0 => drop(bytes.drain(one..one + ITEM)),
        1 => drop(bytes.splice(other..other, item)),
        2 => (0..ITEM).for_each(|byte| bytes.swap(one + byte, other + byte)),
        3 => {
            let offset = uint::<8>(bytes, one).unwrap_or_default();
            put::<8>(bytes, one, off(offset, draw));
        }
        _ => {
            let place = uint::<8>(bytes, one + 8).unwrap_or_default();
            let aligned = place
                .wrapping_add(0x80 * (draw.any() % 9))
                .wrapping_sub(0x200);
            put::<8>(bytes, one + 8, aligned);
        }
    }
}

/// Makes the items' checksums match.
pub(super) fn mend_index(bytes: &mut [u8]) {
    for item in bytes.chunks_exact_mut(ITEM) {
        let crc = crc32fast::hash(&item[..16]);
        put::<4>(item, 16, crc.into());
    }
}
