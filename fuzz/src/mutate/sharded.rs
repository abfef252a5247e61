//! `length u32 ‖ time i64 ‖ shard u16 ‖ sequence u64 ‖ level u8 ‖ checksum u32 ‖ body`

use super::{Draw, off, put, uint_usize};

/// The length of the fields before the checksum, and with it.
const HASHED: usize = 23;
const HEADER: usize = HASHED + 4;

/// Changes one record's length.
pub(super) fn edit(bytes: &mut [u8], draw: &mut Draw) {
    let starts = starts(bytes);
    if !starts.is_empty() {
        let at = *draw.of_these(&starts);
        let length = uint_usize::<4>(bytes, at).unwrap_or_default();
        put::<4>(bytes, at, off(length as u64, draw));
    }
}

/// Makes the checksums of all records match.
pub(super) fn mend(bytes: &mut [u8]) {
    for at in starts(bytes) {
        let length = uint_usize::<4>(bytes, at).unwrap_or_default();
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[at..at + HASHED]);
        crc.update(&bytes[at + HEADER..at + HEADER + length]);
        put::<4>(bytes, at + HASHED, crc.finalize().into());
    }
}

/// Where records begin by their own lengths, whatever they contain.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(length) = uint_usize::<4>(bytes, at) {
        let end = at + HEADER + length;
        if end > bytes.len() {
            break;
        }
        starts.push(at);
        at = end;
    }
    starts
}
