//! `(uuid 16 ‖ offset u64)* ‖ 24 zero bytes ‖ messages ‖ checksums u64* ‖ key check u64 ‖ count u64 ‖ index hash u64 ‖ magic`

use seglake::checksum::{Key, hash};

use super::{Draw, off, put, uint, uint_usize};

const ENTRY: usize = 24;
const FOOT: usize = 32;

/// The number of entries before the first 24 zero bytes.
fn entries(bytes: &[u8]) -> usize {
    let is_entry = |entry: &&[u8]| entry.iter().any(|byte| *byte != 0);
    bytes.chunks_exact(ENTRY).take_while(is_entry).count()
}

/// Changes an entry, or a message's length.
pub(super) fn edit(bytes: &mut [u8], draw: &mut Draw) {
    let entries = entries(bytes);
    if entries == 0 {
        return;
    }
    let (at, other) = (ENTRY * draw.below(entries), ENTRY * draw.below(entries));
    match draw.below(5) {
        0 => {
            let offset = uint::<8>(bytes, at + 16).unwrap_or_default();
            put::<8>(bytes, at + 16, off(offset, draw));
        }
        1 => bytes.copy_within(other + 16..other + ENTRY, at + 16),
        2 => bytes.copy_within(other..other + 16, at),
        3 => (0..ENTRY).for_each(|byte| bytes.swap(at + byte, other + byte)),
        _ => {
            let message = uint_usize::<8>(bytes, at + 16).unwrap_or_default();
            let type_len = uint_usize::<1>(bytes, message).unwrap_or_default();
            let length_at = message.saturating_add(1 + type_len);
            let len = uint::<4>(bytes, length_at).unwrap_or_default();
            put::<4>(bytes, length_at, off(len, draw));
        }
    }
}

/// Replaces the trailer, if one ends the file, with the one of these entries.
pub(super) fn mend(bytes: &mut [u8]) {
    let entries = entries(bytes);
    let Some(foot) = bytes.len().checked_sub(FOOT) else {
        return;
    };
    let Some(checksums) = foot.checked_sub(8 * entries) else {
        return;
    };
    if !bytes.ends_with(b"SLKSEAL1") || checksums < ENTRY * (entries + 1) {
        return;
    }
    for number in 0..entries {
        let entry = ENTRY * number;
        let Some(at) = uint_usize::<8>(bytes, entry + 16) else {
            continue;
        };
        let Some(type_len) = uint_usize::<1>(bytes, at) else {
            continue;
        };
        let Some(len) = uint_usize::<4>(bytes, at + 1 + type_len) else {
            continue;
        };
        if let Some(message) = bytes.get(at..at + 5 + type_len + len) {
            let checksum = hash(
                &Key::DEFAULT,
                &[&bytes[entry..entry + 16], message].concat(),
            );
            put::<8>(bytes, checksums + 8 * number, checksum);
        }
    }
    let index = [&bytes[..ENTRY * (entries + 1)], &bytes[checksums..foot]].concat();
    put::<8>(bytes, foot, hash(&Key::DEFAULT, &[]));
    put::<8>(bytes, foot + 8, entries as u64);
    put::<8>(bytes, foot + 16, hash(&Key::DEFAULT, &index));
}
