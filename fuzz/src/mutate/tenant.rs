//! `magic u32 ‖ version u16 ‖ number u32 ‖ entries ‖ (version 2: CRC-32) ‖ partitions`

use super::{Draw, off, put, uint, uint_usize};

const TOC: usize = 10;

/// Where the entries of the table of contents begin, and where they end.
fn entries(bytes: &[u8]) -> (Vec<usize>, usize) {
    let (mut entries, mut at) = (Vec::new(), TOC);
    let is_v1 = uint::<2>(bytes, 4) == Some(1);
    for _ in 0..uint::<4>(bytes, 6).unwrap_or_default().min(1000) {
        let name = if is_v1 {
            Some(0)
        } else {
            uint_usize::<4>(bytes, at + 4)
        };
        let end = name.map(|name| at + if is_v1 { 20 } else { 32 + name });
        let Some(end) = end.filter(|end| *end <= bytes.len()) else {
            break;
        };
        entries.push(at);
        at = end;
    }
    (entries, at)
}

/// The place of an entry's offset; its length follows.
fn offset_at(bytes: &[u8], entry: usize) -> usize {
    match uint::<2>(bytes, 4) {
        Some(1) => entry + 4,
        _ => entry + 12 + uint_usize::<4>(bytes, entry + 4).unwrap_or_default(),
    }
}

/// Changes a number of the table of contents, or of a block that an entry names.
pub(super) fn edit(bytes: &mut [u8], draw: &mut Draw) {
    let (entries, end) = entries(bytes);
    if entries.is_empty() {
        return;
    }
    let (entry, other) = (*draw.of_these(&entries), *draw.of_these(&entries));
    let place = offset_at(bytes, entry);
    let block = uint_usize::<8>(bytes, place).unwrap_or_default();
    let other = offset_at(bytes, other);
    let (at, is_wide) = match draw.below(9) {
        0 => (6, false),
        1 => (entry, false),
        2 => (entry + 4, false),
        3 => (place, true),
        4 => (place + 8, true),
        5 => (end.saturating_sub(4), false),
        6 => (block, false),
        7 => (block.saturating_add(4), false),
        _ => {
            if other + 16 <= bytes.len() {
                bytes.copy_within(other..other + 16, place);
            }
            return;
        }
    };
    if is_wide {
        let number = uint::<8>(bytes, at).unwrap_or_default();
        put::<8>(bytes, at, off(number, draw));
    } else {
        let number = uint::<4>(bytes, at).unwrap_or_default();
        put::<4>(bytes, at, off(number, draw));
    }
}

/// Makes the checksums of version 2 match: of each block where its entry says, and of the table of contents.
pub(super) fn mend(bytes: &mut [u8]) {
    if uint::<2>(bytes, 4) == Some(1) {
        return;
    }
    let (entries, end) = entries(bytes);
    for entry in entries {
        let at = offset_at(bytes, entry);
        let start = uint_usize::<8>(bytes, at).unwrap_or(usize::MAX);
        let len = uint_usize::<8>(bytes, at + 8).unwrap_or(usize::MAX);
        if let Some(block) = start.checked_add(len).and_then(|end| bytes.get(start..end)) {
            let covered = [&bytes[entry..entry + 4], block].concat();
            put::<4>(bytes, at + 16, crc32fast::hash(&covered).into());
        }
    }
    let crc = crc32fast::hash(&bytes[..end.min(bytes.len())]);
    put::<4>(bytes, end, crc.into());
}
